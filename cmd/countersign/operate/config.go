package operate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/payments"
)

// Config prints the settings.
type Config struct {
	setting.Ledger
	setting.Service
	setting.X402
}

// listedSetting is one line of the output of config.
type listedSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // effective value; secrets are masked
	Source string `json:"source"` // "flag", "environment", "file PATH", "data folder", "XDG_DATA_HOME" or "default"
}

const masked = "********"

// Run prints name, effective value and source of each setting. It warns about environment
// variables that look like misspelled settings.
func (c *Config) Run(o *screen.Output, ctx *kong.Context) error {
	settings := c.settings(ctx)
	rows := screen.Table{Heads: []string{"setting", "value", "from"}}
	known := []string{}
	for _, s := range settings {
		rows.Add(s.Name, s.Value, s.Source)
		known = append(known, s.Name)
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"LEDGER_", "SIGNING_", "CHECKPOINT_", "X402_", "STRIPE_", "SMTP_", "MCP_", "WEBHOOK_", "ARCHIVE_"} {
			if strings.HasPrefix(name, prefix) && !slices.Contains(known, strings.TrimSuffix(name, "_FILE")) {
				fmt.Fprintf(o.Stderr, "countersign: %s is set, but no setting has this name\n", name)
			}
		}
	}
	return o.Result(settings, o.Table(rows))
}

func (c *Config) settings(ctx *kong.Context) (settings []listedSetting) {
	for _, part := range []any{c.Ledger, c.Service, c.X402} {
		for field, value := range reflect.ValueOf(part).Fields() {
			env := field.Tag.Get("env")
			if env == "" {
				continue
			}
			s := listedSetting{Name: env, Value: shownValue(value), Source: sourceOf(ctx, env)}
			if s.Source == "default" {
				s.Value, s.Source = c.byDefault(env, s.Value)
			} else if _, secret := field.Tag.Lookup("secret"); secret && s.Value != "" {
				s.Value = masked
			}
			settings = append(settings, s)
		}
	}
	return settings
}

func shownValue(v reflect.Value) string {
	if list, is := v.Interface().([]string); is {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(v.Interface())
}

// sourceOf returns the source of a setting's value. A flag overrides the environment, and the
// environment overrides a file.
func sourceOf(ctx *kong.Context, env string) string {
	for _, p := range ctx.Path {
		if p.Flag != nil && !p.Resolved && slices.Contains(p.Flag.Envs, env) {
			return "flag"
		}
	}
	if os.Getenv(env) != "" {
		return "environment"
	}
	if file := os.Getenv(env + "_FILE"); file != "" {
		return "file " + file
	}
	return "default"
}

// byDefault returns the effective value of a setting that is not set, and the source of this
// value.
func (c *Config) byDefault(env, value string) (effective, source string) {
	base := c.BaseURL
	if base == "" {
		base = "http://" + c.Listen
	}
	local := c.Private() && (&setting.Service{Listen: c.Listen, BaseURL: base}).OnThisMachine()
	switch env {
	case "DATA_DIR":
		if filepath.IsAbs(os.Getenv("XDG_DATA_HOME")) {
			return c.Dir(), "XDG_DATA_HOME"
		}
		return c.Dir(), "default"
	case "DATABASE_URL":
		return "a private PostgreSQL in " + c.Dir(), "default"
	case "BASE_URL":
		return base, "LISTEN"
	case "CHECKPOINT_DIR":
		return filepath.Join(c.Dir(), "checkpoints"), "DATA_DIR"
	case "METRICS_LISTEN":
		return setting.MetricsAddress, "default"
	case "CATALOG_FILE":
		return "the built-in catalogue", "default"
	case "LEDGER_ORIGIN":
		return "the origin stored in the ledger", "ledger"
	case "X402_MODE":
		if local {
			return payments.ModeDev, "default"
		}
		return payments.ModeOff, "default"
	case "CONTACT_EMAIL":
		if local {
			return api.NoContact, "default"
		}
		return value, "default"
	case "SMTP_URL":
		if local {
			return "none: e-mail is written to " + filepath.Join(c.Dir(), setting.LettersFile), "default"
		}
		return "none: sign-in answers 503", "default"
	case "SIGNING_KEY":
		return c.keyByDefault("signing.key", local, "none: signed services answer 503")
	case "CHECKPOINT_KEY":
		return c.keyByDefault("checkpoint.key", local, "none: checkpoints are not signed")
	case "DATA_KEK":
		return c.keyByDefault("data.kek", local, "none: requests that need personal data get 503")
	case "TOKEN_KEY":
		return c.keyByDefault("token.key", local, "none: agents get no access tokens")
	}
	return value, "default"
}

// keyByDefault describes a key that is not set: the development key of the data folder, or none.
func (c *Config) keyByDefault(file string, local bool, none string) (value, source string) {
	if !c.Private() {
		return none, "default"
	}
	path := filepath.Join(c.Dir(), file)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return masked + " (a development key)", "data folder"
	}
	if local {
		return "a development key, created at the first start", "default"
	}
	return none, "default"
}
