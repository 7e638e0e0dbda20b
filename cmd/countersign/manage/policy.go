package manage

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// Policy is the life of an organization's policy.
type Policy struct {
	Init     policyInitCmd     `cmd:"" help:"Write a policy to begin with: for purchases, for tools, or strict."`
	Lint     policyLintCmd     `cmd:"" help:"Check a policy, offline. Exit 1: it is refused."`
	Draft    policyDraftCmd    `cmd:"" help:"Freeze a policy as a draft."`
	Activate policyActivateCmd `cmd:"" help:"Put a draft in force, or a file in one step."`
	Diff     policyDiffCmd     `cmd:"" help:"What a policy would change about the one in force, or about another file. Exit 1: something."`
	Schema   policySchemaCmd   `cmd:"" help:"Print the JSON Schema of a policy."`
	Show     policyShowCmd     `cmd:"" help:"The policy in force, its drafts and its history."`
	Preview  policyPreviewCmd  `cmd:"" help:"The decisions of the last 30 days that would be others than under the active policy. Exit 1: some would."`
	Freeze   policyFreezeCmd   `cmd:"" help:"Emergency stop: allow no host and no MCP server from now on."`
	Explain  policyExplainCmd  `cmd:"" help:"Rule by rule, what a decision compared with what."`
}

type policyLintCmd struct {
	File string `arg:"" help:"The policy as JSON; a version is that of its activation. - for stdin."`
}

// linted is the answer about a file.
type linted struct {
	Accepted   bool             `json:"accepted"`
	Error      string           `json:"error,omitempty"`
	PolicyID   string           `json:"policyId,omitempty"`
	PolicyHash string           `json:"policyHash,omitempty"`
	Warnings   []policy.Finding `json:"warnings"`
}

// Run prints what is refused, or what a reader should know.
func (c *policyLintCmd) Run(o *screen.Output) error {
	text, err := files.ReadInput(c.File)
	if err != nil {
		return err
	}
	draft, err := assurance.Lint(text)
	if err != nil {
		if err := o.Result(linted{Error: err.Error(), Warnings: []policy.Finding{}}, "refused: "+err.Error()+"\n"); err != nil {
			return err
		}
		return screen.ErrNo
	}
	said := fmt.Sprintf("accepted, hash %s\n", draft.Hash)
	for _, w := range draft.Warnings {
		said += fmt.Sprintf("  %-7s %s %s: %s %s\n", w.Severity, w.ID, w.Path, w.Message, w.Evidence)
	}
	return o.Result(linted{true, "", draft.PolicyID, draft.Hash, append([]policy.Finding{}, draft.Warnings...)}, said)
}

type policyDraftCmd struct {
	File string `required:"" help:"The policy as JSON; a version is that of its activation. - for stdin."`
	ofOrganization
}

// Run prints the draft's id.
func (c *policyDraftCmd) Run(ctx context.Context, o *screen.Output) error {
	text, err := files.ReadInput(c.File)
	if err != nil {
		return err
	}
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		d, err := app.DraftPolicy(ctx, p, text)
		if err != nil {
			return err
		}
		return o.Made(map[string]any{"draftId": d.DraftID, "policyId": d.PolicyID, "policyHash": d.Hash, "lint": d.Lint},
			d.DraftID, fmt.Sprintf("next: countersign policy preview --org %s --draft %s", p.OrgID, d.DraftID))
	})
}

// policyOrDraft is a policy in a file, or a draft that the ledger has.
type policyOrDraft struct {
	File  string `help:"The policy as JSON; a version is that of its activation. - for stdin." xor:"what" required:""`
	Draft string `help:"Id of a draft." xor:"what" required:"" placeholder:"ID"`
}

// read returns the text of the file; nil for a draft.
func (c policyOrDraft) read() ([]byte, error) {
	if c.Draft != "" {
		return nil, nil
	}
	return files.ReadInput(c.File)
}

type policyActivateCmd struct {
	policyOrDraft
	Reason string `required:"" help:"Why; it is recorded." placeholder:"TEXT"`
	ofOrganization
}

// Run drafts and activates a file in one append, or activates a draft, and prints the new
// active version.
func (c *policyActivateCmd) Run(ctx context.Context, o *screen.Output) error {
	text, err := c.read()
	if err != nil {
		return err
	}
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		if c.Draft != "" {
			v, err := app.ActivatePolicy(ctx, p, c.Draft, c.Reason)
			return writeActivation(o, v, err)
		}
		v, err := app.DraftAndActivate(ctx, p, text, c.Reason)
		return writeActivation(o, v, err)
	})
}

// writeActivation prints the version that a command has activated.
func writeActivation(o *screen.Output, v decisions.Activation, err error) error {
	if err != nil {
		return err
	}
	return o.Result(shownActivation(v), describeActivation(v))
}

func shownActivation(v decisions.Activation) map[string]any {
	return map[string]any{"policyId": v.PolicyID, "version": v.Version, "policy": jsontext.Value(v.Canonical), "policyHash": v.Hash,
		"activatedSequence": v.ActivatedSequence, "activatedAt": v.ActivatedAt, "draftId": v.DraftID, "author": v.Author,
		"activator": v.Activator, "selfActivated": v.SelfActivated, "reason": v.Reason, "changed": v.Changed}
}

func describeActivation(v decisions.Activation) string {
	changed := "nothing"
	if len(v.Changed) > 0 {
		changed = strings.Join(v.Changed, ", ")
	}
	return fmt.Sprintf("version %d since sequence %d (%s), by %s: %s; changed: %s\n",
		v.Version, v.ActivatedSequence, v.ActivatedAt, v.Activator, v.Reason, changed)
}

type policyShowCmd struct{ ofOrganization }

// Run prints every version and every draft that waits, and the policy in force.
func (c *policyShowCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		drafts, activations, err := app.Policies(ctx, p)
		if err != nil {
			return err
		}
		waiting, versions, text := []map[string]any{}, []map[string]any{}, ""
		for _, v := range activations {
			versions = append(versions, shownActivation(v))
			text += describeActivation(v)
		}
		for _, d := range drafts {
			if !d.Activated {
				waiting = append(waiting, map[string]any{"draftId": d.DraftID, "policy": jsontext.Value(d.Canonical), "policyHash": d.Hash,
					"author": d.Author, "draftedAt": d.DraftedAt, "lint": d.Lint})
				text += fmt.Sprintf("draft %s of %s by %s\n", d.DraftID, d.DraftedAt, d.Author)
			}
		}
		var active any
		if n := len(activations); n > 0 {
			active = versions[n-1]
			text += string(activations[n-1].Canonical) + "\n"
		} else {
			text += "no policy is active: every decision answers 409\n"
		}
		return o.Result(map[string]any{"active": active, "activations": versions, "drafts": waiting}, text)
	})
}

type policyFreezeCmd struct {
	Reason string `required:"" help:"Why; it is recorded." placeholder:"TEXT"`
	ofOrganization
}

// Run prints the version that stops everything.
func (c *policyFreezeCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		v, err := app.FreezePolicy(ctx, p, c.Reason)
		return writeActivation(o, v, err)
	})
}

type policyPreviewCmd struct {
	policyOrDraft
	ofOrganization
}

// Run prints each decision that would be another one.
func (c *policyPreviewCmd) Run(ctx context.Context, o *screen.Output) error {
	text, err := c.read()
	if err != nil {
		return err
	}
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		var preview decisions.Preview
		var err error
		if c.Draft != "" {
			preview, err = app.PreviewDraft(ctx, p, c.Draft)
		} else {
			preview, err = app.PreviewPolicy(ctx, p, text)
		}
		if err != nil {
			return err
		}
		said := fmt.Sprintf("%d decisions since %s, %d would change against the active policy, version %d\n",
			preview.Decisions, preview.Since, len(preview.Flips)+preview.More, preview.Active)
		rows := screen.Table{Heads: []string{"decision", "protocol", "active policy", "draft", "rules"}}
		for _, f := range preview.Flips {
			rows.Add(f.DecisionID, f.Protocol, f.Before, f.After, strings.Join(f.RuleIDs, ", "))
		}
		said += o.Table(rows)
		if preview.NotEvaluated > 0 {
			said += fmt.Sprintf("%d were made by an engine this program does not have\n", preview.NotEvaluated)
		}
		if err := o.Result(preview, said); err != nil {
			return err
		}
		if len(preview.Flips) > 0 {
			return screen.ErrNo
		}
		return nil
	})
}

type policyExplainCmd struct {
	Decision string `arg:"" help:"Id of the decision."`
	ofOrganization
}

// Run prints every rule; a decision that cannot be reproduced is exit code 1.
func (c *policyExplainCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		x, err := app.ExplainDecision(ctx, p, c.Decision)
		if err != nil {
			return err
		}
		said := fmt.Sprintf("%s: %s, %s, policy version %d\nintent  %s\npolicy  %s\n", x.DecisionID, x.Decision, x.IssuedAt, x.PolicyVersion, x.Normalized, x.Policy)
		rows := screen.Table{Heads: []string{"result", "rule", "condition", "compared"}}
		for _, r := range x.Rules {
			compared := ""
			if r.Result != "passed" {
				compared = fmt.Sprintf("%s: %s; wanted %s, got %s (%s)", r.Field, r.Message, r.Expected, r.Actual, r.Source)
			}
			rows.Add(string(r.Result), r.RuleID, r.Condition, compared)
		}
		said += o.Table(rows)
		if x.Reproduced {
			said += "REPRODUCED: the same decision and findings when evaluated again\n"
		} else {
			said += "NOT REPRODUCED\n"
		}
		if err := o.Result(x, said); err != nil {
			return err
		}
		if !x.Reproduced {
			return screen.ErrNo
		}
		return nil
	})
}
