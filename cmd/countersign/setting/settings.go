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
	"time"

	"github.com/countersign/countersign/api/catalog"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/ledger/seal"
)

// Ledger says where the ledger is and which keys it is used with. Every command that opens
// a ledger has these settings.
type Ledger struct {
	Data        string `help:"Data folder of the private PostgreSQL." env:"DATA_DIR" placeholder:"DIR"`
	DatabaseURL string `help:"PostgreSQL to use instead of a private one." env:"DATABASE_URL" name:"database-url" placeholder:"URL" secret:""`
	Durability  string `help:"Who keeps commits: database refuses to serve on a PostgreSQL with fsync or full_page_writes off; provider is for a service of PostgreSQL that keeps them durable elsewhere." env:"DURABILITY" enum:"database,provider" default:"database" rare:""`
	NoFetch     bool   `help:"Never download PostgreSQL." rare:""`
	WALDir      string `help:"Folder, best on another disk, that takes the log of the private PostgreSQL as it is written: with a base copy (backup --base) it brings the ledger back to its last minute. The data folder remembers it." env:"WAL_DIR" name:"wal-dir" placeholder:"DIR" rare:""`
	Origin      string `help:"Name of the ledger, for ever: a schemeless URL you control. Only the first start needs it." env:"LEDGER_ORIGIN" name:"ledger-origin" aliases:"origin" placeholder:"NAME" rare:""`
	Partitions  int    `help:"Into how many partitions a new ledger is divided, for ever: 1, or 16 where it is to be distributed over several machines. A ledger that is there refuses another number." env:"LEDGER_PARTITIONS" name:"ledger-partitions" placeholder:"N" rare:""`
	SigningKey  string `help:"Ed25519 key that signs records: a seed as 64 hex digits or PKCS #8 PEM, or the ssh-ed25519 line of a key in the SSH agent." env:"SIGNING_KEY" name:"signing-key" secret:"" placeholder:"KEY"`
	NextKey     string `help:"The signing key after this one: nodes that have both go on with it as soon as signer rotate activates it." env:"NEXT_SIGNING_KEY" name:"next-signing-key" secret:"" placeholder:"KEY" rare:""`
	CatalogFile string `help:"Catalogue of products that takes the place of the built-in one." env:"CATALOG_FILE" name:"catalog-file" placeholder:"FILE" rare:""`
	DataKEK     string `help:"Key of 64 hex digits that wraps the data keys of personal members. Keep a copy: without it they cannot be read." env:"DATA_KEK" name:"data-kek" secret:"" placeholder:"KEY" rare:""`

	CheckpointKey     string   `help:"Key that signs the heads of the ledger's tree, as the signing key's but another." env:"CHECKPOINT_KEY" name:"checkpoint-key" secret:"" placeholder:"KEY" rare:""`
	CheckpointDir     string   `help:"Folder for signed heads, best on another disk than the database; default: checkpoints in the data folder." env:"CHECKPOINT_DIR" name:"checkpoint-dir" placeholder:"DIR" rare:""`
	CheckpointMirrors []string `help:"Further places: a folder, git:FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME." env:"CHECKPOINT_MIRRORS" name:"checkpoint-mirrors" placeholder:"PLACE" rare:""`
	ArchiveStore      string   `help:"Where the payloads lie that countersign archive has moved out of the database: a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME." env:"ARCHIVE_STORE" name:"archive-store" placeholder:"PLACE" rare:""`
	Witnesses         []string `help:"Witnesses that cosign heads (C2SP tlog-witness), each as 'KEY URL'." env:"WITNESSES" name:"witnesses" placeholder:"WITNESS" rare:""`

	Serves           bool `kong:"-"` // set by serve alone: what it acknowledges must be durable
	Begins           bool `kong:"-"` // the command may create a ledger here: the database and its keys
	RollbackAccepted bool `kong:"-"` // serve goes on although published events are missing
	FindingsAccepted bool `kong:"-"` // serve goes on although the daily verification found history altered
	Unsigned         bool `kong:"-"` // the command signs nothing, so it works without the key and with a retired one
}

// Dir returns the data folder of the private PostgreSQL.
func (d *Ledger) Dir() string {
	if d.Data != "" {
		return d.Data
	}
	return localpg.DefaultDataDir()
}

// NoLedger is the error of a command that may not create a ledger.
func (d *Ledger) NoLedger() error {
	return fmt.Errorf("no ledger in %s: start one with countersign serve, or name its folder with --data", d.Dir())
}

// Private says whether the ledger is in a PostgreSQL of our own.
func (d *Ledger) Private() bool { return d.DatabaseURL == "" }

// ByProvider says that the database service keeps commits durable by other means than fsync.
func (d *Ledger) ByProvider() bool { return d.Durability == "provider" }

// Service is what serve is told beyond where the ledger is.
type Service struct {
	OwnershipProofs []string      `help:"Proofs for indexers that whoever is paid runs this service." env:"X402_OWNERSHIP_PROOFS" name:"x402-ownership-proofs" placeholder:"PROOF" rare:""`
	Listen          string        `help:"Address of the public listener." env:"LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	BaseURL         string        `help:"Address under which callers reach the service; default: the listener's." env:"BASE_URL" name:"base-url" placeholder:"URL"`
	MetricsListen   string        `help:"Address of the listener for metrics and profiles; default: 127.0.0.1:9464, or a free port where that is taken." env:"METRICS_LISTEN" name:"metrics-listen" placeholder:"HOST:PORT" rare:""`
	RateLimit       string        `help:"on or off; off only on a loopback listener and base URL." env:"RATE_LIMIT" name:"rate-limit" default:"on" enum:"on,off"`
	TrustedProxies  []string      `help:"Networks whose X-Forwarded-For counts." env:"TRUSTED_PROXIES" name:"trusted-proxies" placeholder:"CIDR" rare:""`
	ContactEmail    string        `help:"E-mail address for callers; needed when the base URL is not loopback." env:"CONTACT_EMAIL" name:"contact-email" placeholder:"EMAIL"`
	SMTPURL         string        `help:"Mail server for sign-in links; without it they are printed and kept in the data folder, on the private database, a loopback listener and a loopback base URL only." env:"SMTP_URL" name:"smtp-url" secret:"" placeholder:"URL"`
	MCPOrigins      []string      `help:"Web origins that may use /mcp, beside the own one." env:"MCP_ALLOWED_ORIGINS" name:"mcp-allowed-origins" placeholder:"ORIGIN" rare:""`
	TokenKey        string        `help:"Ed25519 seeds of access tokens, as the signing key's but another; the first signs, further ones after a comma verify while keys rotate." env:"TOKEN_KEY" name:"token-key" secret:"" placeholder:"KEY" rare:""`
	SupportClients  []string      `help:"Agents (agt_...) whose tokens may carry support:read." env:"SUPPORT_CLIENTS" name:"support-clients" placeholder:"ID" rare:""`
	StripeKey       string        `help:"Secret key of the Stripe account for card checkout; without it, checkout answers 503." env:"STRIPE_SECRET_KEY" name:"stripe-secret-key" secret:"" placeholder:"KEY"`
	StripeWebhook   string        `help:"Signing secret of the webhook at /api/webhooks/stripe; two with a comma between while rotating." env:"STRIPE_WEBHOOK_SECRET" name:"stripe-webhook-secret" secret:"" placeholder:"SECRET"`
	StripeAPIBase   string        `help:"Loopback address that takes the place of Stripe's, for tests." env:"STRIPE_API_BASE" name:"stripe-api-base" placeholder:"URL" rare:""`
	WebhookNets     []string      `help:"Private networks that webhooks of organizations may reach; none by default." env:"WEBHOOK_NETWORKS" name:"webhook-networks" placeholder:"CIDR" rare:""`
	Traces          string        `help:"OpenTelemetry collector that is sent traces by OTLP over HTTP, such as http://127.0.0.1:4318; without it there are none." env:"OTEL_EXPORTER_OTLP_ENDPOINT" name:"traces" placeholder:"URL" rare:""`
	TraceHeaders    string        `help:"Headers for it, as name=value with commas between." env:"OTEL_EXPORTER_OTLP_HEADERS" name:"trace-headers" secret:"" placeholder:"HEADERS" rare:""`
	Migrate         bool          `help:"Bring the schema of DATABASE_URL up to date first."`
	Drain           time.Duration `help:"How long readiness fails before the listener closes at the end." default:"0s" rare:""`
}

// LettersFile is the file in the data folder that keeps e-mail where no mail server is set.
// Only its owner can read it.
const LettersFile = "letters.txt"

// OnThisMachine says whether only this machine can reach the service. A proxy on this machine
// can make a loopback listener public; then the base URL is not a loopback address.
func (s *Service) OnThisMachine() bool {
	base, err := url.Parse(s.BaseURL)
	return err == nil && Loopback(s.Listen) && Loopback(net.JoinHostPort(base.Hostname(), "0"))
}

// Reachable refuses a listener on every address of the machine if no base URL is set:
// documents, e-mail and payments would name 0.0.0.0.
func (s *Service) Reachable() error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || s.BaseURL != "" {
		return nil // net.Listen explains a wrong address
	}
	ip, err := netip.ParseAddr(host)
	if host != "" && (err != nil || !ip.IsUnspecified()) {
		return nil
	}
	return fmt.Errorf("LISTEN is every address of this machine, and callers need one name for it: add --base-url http://HOST:%s, or https://HOST of the proxy in front (BASE_URL)", port)
}

// Loopback says whether the host of HOST:PORT is a loopback address.
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

// Proxies returns the networks of TRUSTED_PROXIES.
func (s *Service) Proxies() ([]netip.Prefix, error) {
	return Networks("TRUSTED_PROXIES", s.TrustedProxies)
}

// Networks reads the networks of a setting.
func Networks(setting string, texts []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s must list networks such as 10.0.0.0/8", setting)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// Products reads the catalogue: the file of the settings, or the built-in one.
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

// Signer makes the record signer of the settings. On the private database, and
// only if nobody but this machine can ask, a development key is made and kept.
func (d *Ledger) Signer(development bool) (*seal.Signer, error) {
	if d.Unsigned {
		return nil, nil
	}
	return d.KeyFor("SIGNING_KEY", d.SigningKey, "signing.key", development)
}

// DevelopmentKey reads a key of the data folder, which the first start makes. What may
// not begin a ledger goes on without it.
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

// ParseSeed reads an Ed25519 seed: 64 hex digits or PKCS #8 PEM.
func ParseSeed(text string) ([]byte, error) {
	bad := errors.New("want an Ed25519 seed as 64 hex digits or PKCS #8 PEM")
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

// Archive opens the place of the archive; nil where none is named.
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

// ParseKEK reads a key that wraps data keys, as a setting has it.
func ParseKEK(setting, text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 32 {
		return nil, errors.New(setting + ": want 64 hex digits")
	}
	return key, nil
}

// MetricsAddress is the one that OpenTelemetry's exporter for Prometheus has, so
// that a scrape configuration is right before anybody has looked.
const MetricsAddress = "127.0.0.1:9464"
