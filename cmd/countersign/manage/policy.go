package manage

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// Policy has the commands for the policy of an organization.
type Policy struct {
	Init     policyInitCmd     `cmd:"" help:"Write a starter policy: for purchases, for tools, or strict."`
	Lint     policyLintCmd     `cmd:"" help:"Check a policy, without a network. Exit code 1: the policy is refused."`
	Draft    policyDraftCmd    `cmd:"" help:"Store a policy as a draft."`
	Activate policyActivateCmd `cmd:"" help:"Activate a draft, or store a policy file and activate it in one step."`
	Diff     policyDiffCmd     `cmd:"" help:"Compare a policy with the active one, or with another file. Exit code 1: they differ."`
	Schema   policySchemaCmd   `cmd:"" help:"Print the JSON Schema of a policy."`
	Show     policyShowCmd     `cmd:"" help:"Show the active policy, the drafts and the history."`
	Preview  policyPreviewCmd  `cmd:"" help:"List the decisions of the last 30 days that a policy would change. Exit code 1: at least one would change."`
	Freeze   policyFreezeCmd   `cmd:"" help:"Emergency stop: from now on allow no host and no MCP server."`
	Explain  policyExplainCmd  `cmd:"" help:"Show how a decision was made: each rule and the values that it compared."`
}

type policyLintCmd struct {
	File string `arg:"" help:"The policy as JSON, without a version; - for standard input."`
}

// linted is the result of policy lint.
type linted struct {
	Accepted   bool             `json:"accepted"`
	Error      string           `json:"error,omitempty"`
	PolicyID   string           `json:"policyId,omitempty"`
	PolicyHash string           `json:"policyHash,omitempty"`
	Warnings   []policy.Finding `json:"warnings"`
}

// Run checks a policy and prints errors, warnings and remarks.
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
		said += fmt.Sprintf("  %-7s %s\n", w.Severity, strings.TrimSpace(strings.TrimSpace(w.ID+" "+w.Path)+": "+w.Message+" "+w.Evidence))
	}
	return o.Result(linted{true, "", draft.PolicyID, draft.Hash, append([]policy.Finding{}, draft.Warnings...)}, said)
}

type policyDraftCmd struct {
	File   string `required:"" help:"The policy as JSON, without a version; - for standard input."`
	Reason string `help:"Why the policy should change. It is recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run stores the draft and prints its id.
func (c *policyDraftCmd) Run(ctx context.Context, o *screen.Output) error {
	text, err := files.ReadInput(c.File)
	if err != nil {
		return err
	}
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		d, err := app.DraftPolicy(ctx, p, text, c.Reason)
		if err != nil {
			return err
		}
		return o.Made(map[string]any{"draftId": d.DraftID, "policyId": d.PolicyID, "policyHash": d.Hash, "lint": d.Lint},
			d.DraftID, fmt.Sprintf("next: countersign policy preview --org %s --draft %s", p.OrgID, d.DraftID))
	})
}

// policyOrDraft selects a policy in a file, or a stored draft by its id.
type policyOrDraft struct {
	File  string `help:"The policy as JSON, without a version; - for standard input." xor:"what" required:""`
	Draft string `help:"Id of a draft." xor:"what" required:"" placeholder:"ID"`
}

// read returns the text of the file, or nil for a stored draft.
func (c policyOrDraft) read() ([]byte, error) {
	if c.Draft != "" {
		return nil, nil
	}
	return files.ReadInput(c.File)
}

type policyActivateCmd struct {
	policyOrDraft
	Reason string `required:"" help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run activates a policy and prints its version. A policy in a file is drafted and activated in
// one append.
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

// writeActivation prints the activated version.
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

// Run prints all versions, all drafts that were not activated, and the active policy.
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
					"author": d.Author, "reason": d.Reason, "draftedAt": d.DraftedAt, "lint": d.Lint})
				text += fmt.Sprintf("draft %s of %s by %s", d.DraftID, d.DraftedAt, d.Author)
				if d.Reason != "" {
					text += ": " + words.Visible(d.Reason)
				}
				text += "\n"
			}
		}
		var active any
		if n := len(activations); n > 0 {
			active = versions[n-1]
			text += string(activations[n-1].Canonical) + "\n"
		} else {
			text += "no policy is active: every request for a decision is answered 409\n"
		}
		return o.Result(map[string]any{"active": active, "activations": versions, "drafts": waiting}, text)
	})
}

type policyFreezeCmd struct {
	Reason string `required:"" help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run activates the emergency stop and prints its version.
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

// Run prints each decision that would be different under the policy.
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
		said := fmt.Sprintf("%d decisions since %s; %d would differ from the active policy, version %d\n",
			preview.Decisions, preview.Since, len(preview.Flips)+preview.More, preview.Active)
		rows := screen.Table{Heads: []string{"decision", "protocol", "active policy", "draft", "rules"}}
		for _, f := range preview.Flips {
			rows.Add(f.DecisionID, f.Protocol, f.Before, f.After, strings.Join(f.RuleIDs, ", "))
		}
		said += o.Table(rows)
		if preview.NotEvaluated > 0 {
			said += fmt.Sprintf("%d were made by an engine version that this program does not have\n", preview.NotEvaluated)
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

// Run prints the result of each rule. The exit code is 1 if the decision cannot be reproduced.
func (c *policyExplainCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		x, err := app.ExplainDecision(ctx, p, c.Decision)
		if err != nil {
			return err
		}
		intent, err := words.Action(x.Normalized)
		if err != nil {
			return err
		}
		said := fmt.Sprintf("%s: %s, %s, policy version %d\n%s\nintent\n", x.DecisionID, x.Decision, x.IssuedAt, x.PolicyVersion, words.Unverified)
		for _, member := range intent {
			said += "  " + member.Name + ": " + words.Quote(member.Value) + "\n"
		}
		said += "policy\n  " + words.Visible(string(x.Policy)) + "\n"
		rows := screen.Table{Heads: []string{"result", "rule", "condition", "compared"}}
		for _, r := range x.Rules {
			compared := ""
			if r.Result != "passed" {
				compared = fmt.Sprintf("%s: %s; policy requires %s, request has %s (%s)", r.Field, r.Message, words.Visible(r.Expected), words.Quote(r.Actual), r.Source)
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
