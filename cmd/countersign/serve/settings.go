package serve

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/ledger/seal"
)

// mayServe refuses to serve other machines with settings that are safe only on this machine. The
// error names the settings to add.
func (c *Command) mayServe(proxied bool, log *slog.Logger) error {
	if c.OnThisMachine() {
		return nil
	}
	if c.RateLimit == "off" {
		return errors.New("RATE_LIMIT=off is for a loopback listener and a loopback base URL only")
	}
	var missing []string
	if c.Private() && c.SigningKey == "" {
		missing = append(missing, "SIGNING_KEY")
	}
	base, err := url.Parse(c.BaseURL)
	public := err != nil || !setting.Loopback(net.JoinHostPort(base.Hostname(), "0"))
	if public && c.ContactEmail == "" {
		missing = append(missing, "CONTACT_EMAIL")
	}
	if len(missing) > 0 {
		return fmt.Errorf("other machines can reach the service (LISTEN, BASE_URL): set %s, and SMTP_URL and X402_MODE for sign-in and payments", strings.Join(missing, " and "))
	}
	if public && setting.Loopback(c.Listen) && !proxied {
		log.Warn("the base URL is public and no proxy is trusted, so all callers behind a proxy have its address and share one rate limit; set TRUSTED_PROXIES")
	}
	return nil
}

// tokenKeys returns the keys of access tokens. They must differ from the key that signs records,
// so that an access token cannot be used as a signed record, or a record as a token.
func (c *Command) tokenKeys(signer *seal.Signer) ([]ed25519.PrivateKey, error) {
	text := c.TokenKey
	if text == "" && c.Private() && setting.Loopback(c.Listen) {
		var err error
		if text, err = c.DevelopmentKey("token.key"); err != nil {
			return nil, err
		}
	}
	if text == "" {
		return nil, nil
	}
	var keys []ed25519.PrivateKey
	for part := range strings.SplitSeq(text, ",") {
		seed, err := setting.ParseSeed(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("TOKEN_KEY: %w", err)
		}
		key := ed25519.NewKeyFromSeed(seed)
		if accounts.TokenKeyID(key) == signer.KeyID() {
			return nil, errors.New("TOKEN_KEY is the signing key: access tokens need a separate key")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// supportClients checks the client ids of SUPPORT_CLIENTS, because a misspelled id would grant
// nothing and cause no error.
func (c *Command) supportClients() ([]string, error) {
	for _, id := range c.SupportClients {
		if !accounts.IsAgentID(id) {
			return nil, errors.New("SUPPORT_CLIENTS must be a list of client ids such as agt_01KAH0000000000000000000000")
		}
	}
	return c.SupportClients, nil
}
