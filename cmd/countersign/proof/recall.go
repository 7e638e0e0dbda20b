package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"

	"github.com/countersign/countersign/api/pack"
	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/bundle"
)

// Recall evaluates past actions again and writes the list of those that were allowed and would be
// stopped now, with the events from which anyone can compute it again.
type Recall struct {
	packed
	Policy  string `help:"Evaluate the allowed decisions of the organization under this policy (JSON); - for standard input." placeholder:"FILE"`
	Rules   string `help:"Evaluate the gate's verdicts under this version of the gate's rules. This program must contain that version. The verdicts are stored in the operator's own tenant, so also set --org service." placeholder:"VERSION"`
	Between string `help:"First moment of the period, as an RFC 3339 time or a date. The first moment after the period follows it: --between 2026-07-01 2026-10-01. Default: the whole history." placeholder:"FROM"`
	Until   string `arg:"" optional:"" name:"to" help:"With --between: the first moment after the period."`
	Period  string `help:"Instead of two times: a quarter, month or year, such as 2026Q3, 2026-09 or 2026." placeholder:"PERIOD"`
}

// Run writes the list and its events.
func (c *Recall) Run(ctx context.Context, o *screen.Output) error {
	switch {
	case (c.Policy == "") == (c.Rules == ""):
		return errors.New("name a policy or a version of the rules, with --policy or --rules")
	case (c.Between == "") != (c.Until == ""):
		return errors.New("--between needs two times: --between 2026-07-01 2026-10-01")
	}
	from, to, err := span(c.Period, bound{"--between", c.Between}, bound{"TO", c.Until})
	if err != nil {
		return err
	}
	r, err := c.recall()
	if err != nil {
		return err
	}
	m, err := c.write(ctx, o, true, func(n *node.Node, e evidence.Export) (evidence.Exported, error) {
		e.Filters = bundle.Filters{From: from, To: to, NoPersonal: c.NoPersonal}
		e.Pack = func(_ context.Context, m bundle.Manifest, _ evidence.Found, put func(string, []byte) error) error {
			var page bytes.Buffer
			if err := recallTemplate.Execute(&page, map[string]any{"Manifest": m, "Recall": r.Found}); err != nil {
				return err
			}
			return put("recall.html", page.Bytes())
		}
		return n.App.Recall(ctx, e, r)
	})
	if err != nil || c.Out == "-" {
		return err
	}
	return o.Made(r.Found, c.Out, o.Wrapped("%s\nread it: unpack it and open export/pack/recall.html; export/%s has the same list\n%s%s", r.Found.Says(), evidence.RecallFile, c.howToCheck(), notEnded(to, m.IssuedAt)))
}

// recall reads the policy or finds the rules.
func (c *Recall) recall() (*evidence.Recall, error) {
	if c.Rules != "" {
		return evidence.RecallUnder(c.Rules)
	}
	text, err := files.ReadInput(c.Policy)
	if err != nil {
		return nil, err
	}
	return evidence.RecallWith(text)
}

// recalled evaluates the events of an export with a recall again. A difference makes the result not
// valid. The text is empty if the export has no recall.
func (c *Verify) recalled(ctx context.Context, opened *bundle.Bundle, result *bundle.Result) (text string, err error) {
	m, err := opened.Manifest()
	if err != nil || !result.Valid || m.Files[evidence.RecallFile] == "" {
		return "", err
	}
	again, err := evidence.RecallAgain(ctx, opened)
	switch {
	case err != nil:
		return "", err
	case again.Gap != "":
		result.Gaps = append(result.Gaps, "the recall: "+again.Gap)
	case again.Fault != "":
		result.Valid, result.Reason, result.Pin = false, evidence.RecallFile+": "+again.Fault, nil
	default:
		result.Proven = append(result.Proven, "recall, evaluated again from these events: "+again.Found.Says())
	}
	if again.Fault != "" {
		text = fmt.Sprintf("RECALL      the export was made by %q: a program of another version may evaluate differently; the events are verified\n", m.Generator)
	}
	return text, nil
}

var recallTemplate = template.Must(template.New("recall").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Recall {{.Manifest.ExportID}}</title>
` + pack.Style + `
<h1>Allowed actions that would have been stopped</h1>
<table><tr><th>tenant</th><td><code>{{.Manifest.Tenant}}</code> of ledger <code>{{.Manifest.Origin}}</code></td></tr>
<tr><th>period</th><td>{{with .Manifest.Filters.From}}from {{.}} {{end}}{{with .Manifest.Filters.To}}to before {{.}}{{else}}to the last event{{end}} (UTC)</td></tr>
<tr><th>evaluated under</th><td>{{with .Recall.PolicyHash}}the policy <code>policies/{{.}}.json</code>{{else}}version {{.Recall.RulesetVersion}} of the rules of the gate, <code>rules/{{.Recall.RulesetHash}}.json</code>{{end}}</td></tr>
<tr><th>result</th><td>{{.Recall.Says}}</td></tr></table>
{{with .Recall.NotReplayed}}<h2>Not replayed</h2>
<p>These are counted, and nothing is assumed about them.</p>
<table>{{range .}}<tr><th>{{.Reason}}</th><td>{{.Count}}</td></tr>
{{end}}</table>{{end}}
<h2>Stopped</h2>
{{with .Recall.Stopped}}<table><tr><th>at</th><th>action</th><th>about</th><th>now</th><th>rules</th></tr>
{{range .}}<tr><td>{{.At}}</td><td><code>{{.ID}}</code> at position {{.Position}}</td><td>{{.Subject}}</td><td>{{.Now}}</td><td>{{range .RuleIDs}}{{.}} {{end}}</td></tr>
{{end}}</table>
{{else}}<p>None.</p>
{{end}}<h2>How to check it</h2>
<p><code>countersign verify FILE --keys jwks.json</code> verifies the events and evaluates them again. <code>verify.py</code> verifies the events, and that this list is the one that the service signed.</p>
<p>Only actions that the policy or the gate allowed by itself are evaluated. An action that a person approved is not here.</p></html>
`))
