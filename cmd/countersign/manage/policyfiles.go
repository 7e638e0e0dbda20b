package manage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// policyInitCmd writes a starter policy.
type policyInitCmd struct {
	For     string `required:"" enum:"x402,mcp,strict" placeholder:"x402|mcp|strict" help:"x402: small purchases from named hosts; mcp: named servers, with a person's approval for risky calls; strict: only named hosts and servers."`
	Out     string `help:"File to write, which must not exist. Default: standard output." placeholder:"FILE"`
	BaseURL string `help:"URL of the service whose schema the file names, for completion in editors." env:"BASE_URL" name:"base-url" default:"http://127.0.0.1:8080" placeholder:"URL"`
}

// Run writes the starter policy.
func (c *policyInitCmd) Run(o *screen.Output) error {
	text, _ := assurance.Starter{Name: c.For}.Text() // no error: the parser accepts only names of starters
	head, err := jsontext.AppendQuote([]byte("{\n  \"$schema\": "), strings.TrimSuffix(c.BaseURL, "/")+decisions.PolicySchemaPath)
	if err != nil {
		return errors.New("--base-url must be UTF-8")
	}
	text = string(head) + "," + strings.TrimPrefix(text, "{")
	if c.Out == "" {
		_, err := io.WriteString(o.Stdout, text)
		return err
	}
	f, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", c.Out, files.WithoutPath(err))
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return o.Made(map[string]string{"file": c.Out}, c.Out, fmt.Sprintf("add your hosts and servers to the file\nnext: countersign policy lint %[1]s; countersign policy activate --file %[1]s --reason TEXT", c.Out))
}

// policySchemaCmd prints the schema of a policy.
type policySchemaCmd struct {
	BaseURL string `help:"URL of the service that publishes the schema." env:"BASE_URL" name:"base-url" default:"http://127.0.0.1:8080" placeholder:"URL"`
}

// Run prints the JSON Schema that the service publishes.
func (c *policySchemaCmd) Run(o *screen.Output) error {
	text, err := decisions.PolicySchema(strings.TrimSuffix(c.BaseURL, "/"))
	if err != nil {
		return err
	}
	return o.Result(jsontext.Value(text), words.IndentJSON(text)+"\n")
}

// policyDiffCmd compares policies.
type policyDiffCmd struct {
	File  string `arg:"" help:"The policy as JSON; - for stdin."`
	Other string `arg:"" optional:"" help:"The policy to compare with. Default: the active one."`
	ofOrganization
}

// policyDiff is the difference between two policies.
type policyDiff struct {
	Before  string           `json:"before"` // name of the file, or "version N"
	After   string           `json:"after"`
	Changed []string         `json:"changed"` // names of the members that differ
	Lines   []words.DiffLine `json:"-"`
}

// Run prints what the file would change. The exit code is 1 if the policies differ.
func (c *policyDiffCmd) Run(ctx context.Context, o *screen.Output) error {
	after, err := lintFile(c.File)
	if err != nil {
		return err
	}
	name, before, err := c.before(ctx)
	if err != nil {
		return err
	}
	d := policyDiff{Before: name, After: c.File, Changed: changedMembers(before, after), Lines: words.Diff(words.IndentJSON(before), words.IndentJSON(after))}
	if err := o.Result(d, d.text(o)); err != nil || len(d.Changed) == 0 {
		return err
	}
	return screen.ErrNo
}

// before returns the policy to compare with: the other file, or the active policy, or an empty
// policy if none is active.
func (c *policyDiffCmd) before(ctx context.Context) (name string, canonical []byte, err error) {
	if c.Other != "" {
		canonical, err = lintFile(c.Other)
		return c.Other, canonical, err
	}
	name, canonical = "no policy", []byte("{}")
	err = c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		_, activations, err := app.Policies(ctx, p)
		if n := len(activations); err == nil && n > 0 {
			members, err := canon.Members(activations[n-1].Canonical)
			if err != nil {
				return err
			}
			delete(members, "version") // the policy in a file has no version
			name, canonical = fmt.Sprintf("version %d, active", activations[n-1].Version), canon.Object(members)
		}
		return err
	})
	return name, canonical, err
}

// lintFile checks the policy in a file and returns it in canonical form.
func lintFile(file string) ([]byte, error) {
	text, err := files.ReadInput(file)
	if err != nil {
		return nil, err
	}
	draft, err := assurance.Lint(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return draft.Canonical, nil
}

func changedMembers(before, after []byte) []string {
	a, b := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	_, _ = json.Unmarshal(before, &a), json.Unmarshal(after, &b) // no error: both are canonical JSON
	either := maps.Clone(a)
	maps.Copy(either, b)
	changed := []string{}
	for _, name := range slices.Sorted(maps.Keys(either)) {
		if string(a[name]) != string(b[name]) {
			changed = append(changed, name)
		}
	}
	return changed
}

func (d policyDiff) text(o *screen.Output) string {
	if len(d.Changed) == 0 {
		return d.After + " is the same policy as " + d.Before + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", o.Styled(screen.Bold, "--- "+d.Before), o.Styled(screen.Bold, "+++ "+d.After))
	for _, line := range d.Lines {
		switch line.Kind {
		case "del":
			b.WriteString(o.Styled(screen.Red, "-"+screen.Printable(line.Text)) + "\n")
		case "ins":
			b.WriteString(o.Styled(screen.Green, "+"+screen.Printable(line.Text)) + "\n")
		default:
			b.WriteString(" " + screen.Printable(line.Text) + "\n")
		}
	}
	return b.String()
}
