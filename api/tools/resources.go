package tools

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/policy/canon"
)

// resources lists what a model may read: public documents, workflows and, with an organization's
// token, its records. A record that does not exist and a record of another organization get the
// same answer.
func (s *Tools) resources() ([]mcp.Resource, error) {
	const media = "application/json"
	var list []mcp.Resource
	for _, r := range []struct{ name, title, description, id string }{
		{"rules", "Rules", "Every rule of the action-safety services: id, level and subject.", services.ListRules.ID},
		{"pricing", "Prices", "The price of every tool, the free calls of a key and what the monthly pass adds.", services.ShowPricing.ID},
		{"keys", "Public keys", "The public keys of signed records (a JWK set), with the ledger positions between which each is valid.", evidence.KeySet.ID},
		{"openapi", "OpenAPI document", "The same services over HTTP.", contract.OpenAPI.ID},
	} {
		if s.Table.Find(r.id) == nil {
			return nil, fmt.Errorf("MCP resource %s: there is no operation %s", r.name, r.id)
		}
		list = append(list, mcp.Resource{URI: "countersign://" + r.name, Name: r.name, Title: r.title, Description: r.description,
			Media: media, Listed: true, Public: true, Read: s.reads(s.Table.Find(r.id), "")})
	}
	return append(list,
		mcp.Resource{URI: "countersign://rules/{id}", Name: "rule", Title: "Rule", Media: "text/markdown", Public: true,
			Description: "One rule of the action-safety services, with verdicts on its examples.", Read: s.readRule},
		mcp.Resource{URI: "countersign://workflows/{workflowId}", Name: "workflow", Title: "Workflow status", Media: media,
			Description: "The status record of an action-safety workflow.", Read: s.reads(s.Table.Find(services.WorkflowStatus.ID), "workflowId")},
		mcp.Resource{URI: "countersign://decisions/{id}", Name: "decision", Title: "Decision", Media: media,
			Description: "A recorded decision with its signature. Needs an organization token.", Read: s.reads(s.Table.Find(decisions.GetDecision.ID), "decisionId")},
		mcp.Resource{URI: "countersign://approvals/{decisionId}", Name: "approval", Title: "Approval", Media: media,
			Description: "The signed approval or rejection of a decision that needs a review; not found until a person has reviewed it. Needs an organization token.",
			Read:        s.reads(s.Table.Find(decisions.GetApproval.ID), "decisionId")},
		mcp.Resource{URI: "countersign://standing/{decisionId}", Name: "standing", Title: "State of a decision", Media: media,
			Description: "Whether a decision and its approval may still be acted on. An emergency stop ends both. Read it just before acting. Needs an organization token.",
			Read:        s.reads(s.Table.Find(decisions.GetStanding.ID), "decisionId")},
		mcp.Resource{URI: "countersign://receipts/{id}", Name: "receipt", Title: "Receipt", Media: media,
			Description: "A recorded receipt with its signature. Needs an organization token.", Read: s.reads(s.Table.Find(decisions.GetReceipt.ID), "receiptId")},
		mcp.Resource{URI: "countersign://policy/active", Name: "active-policy", Title: "Active policy", Media: media,
			Description: "The organization's active policy. Needs an organization token that may read policies.", Read: s.readActivePolicy},
	), nil
}

// readRule returns the page of a rule as Markdown.
func (s *Tools) readRule(_ context.Context, _ *http.Request, id string) (string, error) {
	page, known, err := s.Rule(id)
	if err == nil && !known {
		err = mcp.ErrNotFound
	}
	return page, err
}

// reads returns the function that reads a resource by calling an operation. The variable of the
// resource's URI is a variable of the operation's path.
func (s *Tools) reads(o *op.Operation, variable string) func(context.Context, *http.Request, string) (string, error) {
	return func(_ context.Context, r *http.Request, value string) (string, error) {
		body, err := s.read(r, o, map[string]string{variable: value})
		return string(body), err
	}
}

func (s *Tools) read(r *http.Request, o *op.Operation, vars map[string]string) ([]byte, error) {
	answer, err := s.Path.Do(nil, r, o, &op.ToolCall{Vars: vars})
	switch {
	case err != nil && s.Path.Answers.Refused(r, false, err).Status >= http.StatusInternalServerError:
		return nil, mcp.ErrUnavailable
	case err != nil:
		return nil, mcp.ErrNotFound
	case answer.Body != nil:
		return answer.Body, nil
	}
	return canon.Marshal(answer.Value)
}

// readActivePolicy returns the active policy, taken from the list of policies.
func (s *Tools) readActivePolicy(_ context.Context, r *http.Request, _ string) (string, error) {
	body, err := s.read(r, s.Table.Find(decisions.ListPolicies.ID), nil)
	if err != nil {
		return "", err
	}
	var list struct {
		Active jsontext.Value `json:"active"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", err
	}
	if list.Active.Kind() != '{' {
		return "", mcp.ErrNotFound
	}
	return string(list.Active), nil
}

// prompts lists the prompts that a person can start with.
func prompts() []mcp.Prompt {
	return []mcp.Prompt{
		{Name: "preflight_command", Title: "Check a command before it runs",
			Description: "Check one command before it runs.",
			Arguments: []mcp.Argument{
				{Name: "command", Description: "The exact command that would run.", Required: true},
				{Name: "environment", Description: "Environment where it would run, for example production."},
			},
			Text: func(a map[string]string) string {
				where := ""
				if a["environment"] != "" {
					where = ` and this environment: "` + a["environment"] + `"`
				}
				return "Do not run anything yet. Call action_safety_quick_gate with exactly this command" + where + ":\n\n" + a["command"] +
					"\n\nThen follow its nextRecommendedCall, and tell me the risk, the rules it matched and what you recommend. Run the command only if the verdict allows it and I say so."
			}},
		{Name: "authorize_purchase", Title: "Authorize a purchase",
			Description: "Decide one purchase under the organization's policy before anything is paid.",
			Arguments:   []mcp.Argument{{Name: "intent", Description: "The item to buy, the seller and the price.", Required: true}},
			Text: func(a map[string]string) string {
				return "Before anything is paid, call authorize_purchase_intent for this purchase, with one idempotencyKey that you keep for every retry:\n\n" + a["intent"] +
					"\n\nPay only if the decision is allow, and only the purchase that it names. On needs_review ask me to get it approved, and read countersign://approvals/DECISION_ID until the approval exists: " +
					"pay only if its verdict is approved, and before its validUntil. Just before you pay read countersign://standing/DECISION_ID, and pay only if holds is true. On deny stop and show me the rules. " +
					"Afterwards call record_execution_receipt with what you observed."
			}},
		{Name: "explain_decision", Title: "Explain a decision",
			Description: "Explain the reasons of a decision in plain words.",
			Arguments:   []mcp.Argument{{Name: "decisionId", Description: "asd_…", Required: true}},
			Text: func(a map[string]string) string {
				return "Read the resource countersign://decisions/" + a["decisionId"] + ", check it with verify_record, and explain to me in plain words " +
					"what was asked, which rules decided, under which policy version, and what would have to change for another outcome."
			}},
	}
}
