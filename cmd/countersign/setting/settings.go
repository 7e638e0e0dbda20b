package setting

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign/countersign/api/catalog"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/ledger/seal"
)

// Ledger has the settings of the ledger and its keys, for all commands that open a ledger.
type Ledger struct {
	Data        string `help:"Data folder of the private PostgreSQL." env:"DATA_DIR" placeholder:"DIR"`
	DatabaseURL string `help:"URL of a PostgreSQL database to use instead of a private one." env:"DATABASE_URL" name:"database-url" placeholder:"URL" secret:""`
	Durability  string `help:"What makes commits durable: database requires fsync and full_page_writes to be on; provider is for a hosted PostgreSQL that makes commits durable by other means." env:"DURABILITY" enum:"database,provider" default:"database" rare:""`
	NoFetch     bool   `help:"Never download PostgreSQL." rare:""`
	WALDir      string `help:"Folder, preferably on another disk, for the write-ahead log of the private PostgreSQL. With a base copy (backup --base) it restores the ledger up to its last minute. The data folder stores this setting." env:"WAL_DIR" name:"wal-dir" placeholder:"DIR" rare:""`
	Origin      string `help:"Permanent name of the ledger: a URL without scheme that you control. Only the first start needs it." env:"LEDGER_ORIGIN" name:"ledger-origin" aliases:"origin" placeholder:"NAME" rare:""`
	Partitions  int    `help:"Number of partitions of a new ledger, which cannot change later: 1, or 16 to distribute it over several machines. An existing ledger refuses another number." env:"LEDGER_PARTITIONS" name:"ledger-partitions" placeholder:"N" rare:""`
	SigningKey  string `help:"Ed25519 key that signs records: a seed as 64 hex digits or PKCS #8 PEM, or the ssh-ed25519 line of a key in the SSH agent." env:"SIGNING_KEY" name:"signing-key" secret:"" placeholder:"KEY"`
	NextKey     string `help:"The next signing key, or the next checkpoint key. Nodes that have both keys switch to it when countersign signer rotate activates it." env:"NEXT_SIGNING_KEY" name:"next-signing-key" secret:"" placeholder:"KEY" rare:""`
	CatalogFile string `help:"Catalogue of products that replaces the built-in one." env:"CATALOG_FILE" name:"catalog-file" placeholder:"FILE" rare:""`
	DataKEK     string `help:"Key of 64 hex digits that encrypts the data keys, which encrypt personal data. Keep a copy: without this key, personal data cannot be read." env:"DATA_KEK" name:"data-kek" secret:"" placeholder:"KEY" rare:""`

	CheckpointKey     string   `help:"Key that signs the ledger's checkpoints (tree heads), in the same format as the signing key. It must be a different key." env:"CHECKPOINT_KEY" name:"checkpoint-key" secret:"" placeholder:"KEY" rare:""`
	CheckpointDir     string   `help:"Folder for signed checkpoints, preferably not on the disk of the database. Default: checkpoints in the data folder." env:"CHECKPOINT_DIR" name:"checkpoint-dir" placeholder:"DIR" rare:""`
	CheckpointMirrors []string `help:"Further stores for signed checkpoints: a folder, git:FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME." env:"CHECKPOINT_MIRRORS" name:"checkpoint-mirrors" placeholder:"PLACE" rare:""`
	ArchiveStore      string   `help:"Store of the payloads that countersign archive moved out of the database: a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME." env:"ARCHIVE_STORE" name:"archive-store" placeholder:"PLACE" rare:""`
	Witnesses         []string `help:"Witnesses that cosign checkpoints (C2SP tlog-witness), each as 'KEY URL'." env:"WITNESSES" name:"witnesses" placeholder:"WITNESS" rare:""`
	TimestampURL      string   `help:"Time-stamp authority (RFC 3161) that signs the newest checkpoint about once an hour. Exports then show that their events existed before that time, by a clock other than the server's." env:"TIMESTAMP_URL" name:"timestamp-url" placeholder:"URL" rare:""`

	Serves           bool `kong:"-"` // set only by serve: refuse a database that can lose commits
	Begins           bool `kong:"-"` // the command may create the ledger, with its database and keys
	RollbackAccepted bool `kong:"-"` // serve continues although published events are missing
	FindingsAccepted bool `kong:"-"` // serve continues although the daily verification found altered history
	Unsigned         bool `kong:"-"` // the command signs nothing, so it also works without a key or with a retired key
}

// Dir returns the path of the data folder.
func (d *Ledger) Dir() string {
	if d.Data != "" {
		return d.Data
	}
	return localpg.DefaultDataDir()
}

// NoLedger returns the error for a data folder without a ledger. Commands that must not create a
// ledger return it.
func (d *Ledger) NoLedger() error {
	return fmt.Errorf("no ledger in %s: create one with countersign serve, or name the data folder with --data", d.Dir())
}

// Private reports whether the ledger is stored in a private PostgreSQL.
func (d *Ledger) Private() bool { return d.DatabaseURL == "" }

// ByProvider reports whether the database provider makes commits durable by other means than
// fsync.
func (d *Ledger) ByProvider() bool { return d.Durability == "provider" }

// Service has the settings that only serve has.
type Service struct {
	OwnershipProofs []string      `help:"Proofs that the owner of the address X402_PAY_TO runs this service, for indexers of x402 services." env:"X402_OWNERSHIP_PROOFS" name:"x402-ownership-proofs" placeholder:"PROOF" rare:""`
	Listen          string        `help:"Address of the public listener." env:"LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	BaseURL         string        `help:"URL by which callers reach the service. Default: the address of the listener." env:"BASE_URL" name:"base-url" placeholder:"URL"`
	MetricsListen   string        `help:"Address of the listener for metrics and profiles. Default: 127.0.0.1:9464, or a free port if that is taken." env:"METRICS_LISTEN" name:"metrics-listen" placeholder:"HOST:PORT" rare:""`
	RateLimit       string        `help:"Rate limits: on, or off (only on a loopback listener and base URL)." env:"RATE_LIMIT" name:"rate-limit" default:"on" enum:"on,off"`
	TrustedProxies  []string      `help:"Networks of proxies whose X-Forwarded-For is trusted." env:"TRUSTED_PROXIES" name:"trusted-proxies" placeholder:"CIDR" rare:""`
	ContactEmail    string        `help:"Contact address for callers; required if the base URL is not loopback." env:"CONTACT_EMAIL" name:"contact-email" placeholder:"EMAIL"`
	SMTPURL         string        `help:"Mail server for sign-in links. Without it, links are printed and stored in the data folder, but only on the private database with a loopback listener and base URL." env:"SMTP_URL" name:"smtp-url" secret:"" placeholder:"URL"`
	MCPOrigins      []string      `help:"Web origins that may use /mcp, in addition to the service's own." env:"MCP_ALLOWED_ORIGINS" name:"mcp-allowed-origins" placeholder:"ORIGIN" rare:""`
	TokenKey        string        `help:"Ed25519 seeds for access tokens, separated by commas and different from the signing key. The first signs; the others verify during a rotation." env:"TOKEN_KEY" name:"token-key" secret:"" placeholder:"KEY" rare:""`
	SupportClients  []string      `help:"Agents (agt_...) whose tokens may have the scope support:read." env:"SUPPORT_CLIENTS" name:"support-clients" placeholder:"ID" rare:""`
	StripeKey       string        `help:"Secret key of the Stripe account for card checkout. Without it, checkout answers 503." env:"STRIPE_SECRET_KEY" name:"stripe-secret-key" secret:"" placeholder:"KEY"`
	StripeWebhook   string        `help:"Signing secret of the webhook at /api/webhooks/stripe; two separated by a comma during a rotation." env:"STRIPE_WEBHOOK_SECRET" name:"stripe-webhook-secret" secret:"" placeholder:"SECRET"`
	StripeAPIBase   string        `help:"Loopback address used instead of Stripe's, for tests." env:"STRIPE_API_BASE" name:"stripe-api-base" placeholder:"URL" rare:""`
	WebhookNets     []string      `help:"Private networks that webhooks of organizations may reach. Default: none." env:"WEBHOOK_NETWORKS" name:"webhook-networks" placeholder:"CIDR" rare:""`
	Traces          string        `help:"OpenTelemetry collector for traces, by OTLP over HTTP, such as http://127.0.0.1:4318. Default: no traces." env:"OTEL_EXPORTER_OTLP_ENDPOINT" name:"traces" placeholder:"URL" rare:""`
	TraceHeaders    string        `help:"Headers for the collector, as name=value separated by commas." env:"OTEL_EXPORTER_OTLP_HEADERS" name:"trace-headers" secret:"" placeholder:"HEADERS" rare:""`
	Migrate         bool          `help:"First migrate the schema of DATABASE_URL."`
	Drain           time.Duration `help:"At shutdown, how long /readyz reports the service as not ready before the listener closes." default:"0s" rare:""`
}

// LettersFile is the file in the data folder to which e-mail is written if no mail server is set.
// Only its owner can read it.
const LettersFile = "letters.txt"

// OnThisMachine reports whether only this machine can reach the service. It also checks the base
// URL, because a proxy on this machine can make a loopback listener public.
func (s *Service) OnThisMachine() bool {
	base, err := url.Parse(s.BaseURL)
	return err == nil && Loopback(s.Listen) && Loopback(net.JoinHostPort(base.Hostname(), "0"))
}

// Check refuses values that no other part of the service would refuse. The error names the
// setting.
func (s *Service) Check() error {
	if s.BaseURL != "" {
		base, err := url.Parse(s.BaseURL)
		if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" || base.Fragment != "" {
			return errors.New("BASE_URL must be an http or https URL without a path, such as https://countersign.example.com")
		}
	}
	if s.ContactEmail != "" {
		if _, err := accounts.CheckEmail(s.ContactEmail); err != nil {
			return errors.New("CONTACT_EMAIL must be one e-mail address, such as security@example.com")
		}
	}
	if s.StripeAPIBase != "" && s.StripeKey == "" {
		return errors.New("STRIPE_API_BASE is set: also set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or unset it")
	}
	if s.TraceHeaders != "" && s.Traces == "" {
		return errors.New("OTEL_EXPORTER_OTLP_HEADERS is set: also set OTEL_EXPORTER_OTLP_ENDPOINT, or unset it")
	}
	return s.reachable()
}

// reachable refuses a listener on all addresses of the machine without a base URL, because
// documents, e-mail and payments would contain the address 0.0.0.0.
func (s *Service) reachable() error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || s.BaseURL != "" {
		return nil // net.Listen reports an invalid address
	}
	ip, err := netip.ParseAddr(host)
	if host != "" && (err != nil || !ip.IsUnspecified()) {
		return nil
	}
	return fmt.Errorf("LISTEN is every address of this machine, and callers need one URL: add --base-url http://HOST:%s, or https://HOST of the proxy in front (BASE_URL)", port)
}

// Loopback reports whether the host of HOST:PORT is a loopback address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Proxies returns the networks in TRUSTED_PROXIES.
func (s *Service) Proxies() ([]netip.Prefix, error) {
	return Networks("TRUSTED_PROXIES", s.TrustedProxies)
}

// Networks parses the networks of a setting. The error names the setting.
func Networks(setting string, texts []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s must be a list of networks such as 10.0.0.0/8", setting)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// Products returns the catalogue of products from CATALOG_FILE, or the built-in one.
func (d *Ledger) Products() ([]store.Product, error) {
	if d.CatalogFile == "" {
		return catalog.Default()
	}
	list, err := catalog.Load(d.CatalogFile)
	if err != nil {
		return nil, fmt.Errorf("CATALOG_FILE: %w", err)
	}
	return list, nil
}

// Signer returns the signer for records. If SIGNING_KEY is not set and development is true, it
// creates a key in the data folder.
func (d *Ledger) Signer(development bool) (*seal.Signer, error) {
	if d.Unsigned {
		return nil, nil
	}
	return d.KeyFor("SIGNING_KEY", d.SigningKey, "signing.key", development)
}

// DevelopmentKey returns a key of the data folder. It creates a missing key if the command may
// create a ledger, and returns "" otherwise.
func (d *Ledger) DevelopmentKey(file string) (string, error) {
	path := filepath.Join(d.Dir(), file)
	text, err := ReadSecret(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return text, err
	case !d.Begins:
		return "", nil
	}
	return KeepSecret(path, NewSecret())
}

// ParseSeed parses an Ed25519 seed in the form of 64 hex digits or PKCS #8 PEM.
func ParseSeed(text string) ([]byte, error) {
	bad := errors.New("the value must be an Ed25519 seed as 64 hex digits or PKCS #8 PEM")
	if block, _ := pem.Decode([]byte(text)); block != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		key, ok := parsed.(ed25519.PrivateKey)
		if err != nil || !ok {
			return nil, bad
		}
		return key.Seed(), nil
	}
	seed, err := hex.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, bad
	}
	return seed, nil
}

// Archive returns the archive's store, or nil if none is set.
func (d *Ledger) Archive() (checkpoint.Files, error) {
	if d.ArchiveStore == "" {
		return nil, nil
	}
	files, err := checkpoint.ParseFiles(d.ArchiveStore, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("ARCHIVE_STORE: %w", err)
	}
	return files, nil
}

// ParseKEK parses a key that encrypts data keys. The error names the setting.
func ParseKEK(setting, text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 32 {
		return nil, errors.New(setting + " must be 64 hex digits")
	}
	return key, nil
}

// MetricsAddress is the default address for metrics. It is that of OpenTelemetry's exporter for
// Prometheus, so usual scrape configurations work.
const MetricsAddress = "127.0.0.1:9464"
