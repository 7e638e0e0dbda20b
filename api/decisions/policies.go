package decisions

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// policyDraft is a saved draft of a policy. It can be activated once.
type policyDraft struct {
	DraftID    string              `json:"draftId"`
	PolicyID   string              `json:"policyId"`
	Policy     jsontext.Value      `json:"policy"`
	PolicyHash string              `json:"policyHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	Author     string              `json:"author"`
	Reason     string              `json:"reason" jsonschema_description:"Why the author proposes the draft; may be empty."`
	DraftedAt  string              `json:"draftedAt" jsonschema:"format=date-time"`
	Activated  bool                `json:"activated"`
	Lint       []events.PolicyLint `json:"lint"`
}

func showDraft(d decisions.Draft) policyDraft {
	return policyDraft{d.DraftID, d.PolicyID, d.Canonical, d.Hash, d.Author, d.Reason, d.DraftedAt, d.Activated, d.Lint}
}

// policyActivation is a version of the policy that is or was active.
type policyActivation struct {
	PolicyID          string         `json:"policyId"`
	Version           int            `json:"version"`
	Policy            jsontext.Value `json:"policy"`
	PolicyHash        string         `json:"policyHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	ActivatedSequence int64          `json:"activatedSequence"`
	ActivatedAt       string         `json:"activatedAt" jsonschema:"format=date-time"`
	DraftID           string         `json:"draftId"`
	Author            string         `json:"author"`
	Activator         string         `json:"activator"`
	SelfActivated     bool           `json:"selfActivated"`
	Reason            string         `json:"reason"`
	Changed           []string       `json:"changed" jsonschema_description:"Members of the policy that differ from the version before."`
}

func showActivation(v decisions.Activation) policyActivation {
	return policyActivation{v.PolicyID, v.Version, v.Canonical, v.Hash, v.ActivatedSequence, v.ActivatedAt,
		v.DraftID, v.Author, v.Activator, v.SelfActivated, v.Reason, v.Changed}
}

type policyList struct {
	Active      *policyActivation  `json:"active" jsonschema:"nullable"`
	Drafts      []policyDraft      `json:"drafts" jsonschema_description:"Drafts of this page, the oldest first."`
	Activations []policyActivation `json:"activations" jsonschema_description:"Activations of this page, the oldest first."`
	op.Paged
}

// policyStep is a draft or an activation. Both lists are paged together.
type policyStep struct {
	id         string
	draft      *policyDraft
	activation *policyActivation
}

func policySteps(drafts []decisions.Draft, activations []decisions.Activation) (steps []policyStep) {
	for _, d := range drafts {
		shown := showDraft(d)
		steps = append(steps, policyStep{id: d.DraftID, draft: &shown})
	}
	for _, v := range activations {
		shown := showActivation(v)
		steps = append(steps, policyStep{id: strconv.Itoa(v.Version), activation: &shown})
	}
	return steps
}

// ListPolicies is the operation that lists the active policy, the drafts and the activations.
var ListPolicies = &op.Operation{
	ID: "list_policies", Method: http.MethodGet, Path: "/api/assurance/policies",
	Summary: "The active policy, then every draft, then every activation." + op.PagedBy,
	Access:  credential.WithRight(organizations.RightPolicies), Output: reflect.TypeFor[policyList](), Errors: []int{400, 401, 403, 503},
}

// Policies serves the policies of an organization.
type Policies struct {
	Commands *decisions.Decisions
	Drafts   *mail.Drafts // tells the other admins of a saved draft
}

// Operations lists the operations on policies.
func (s *Policies) Operations() []*op.Operation {
	return []*op.Operation{ListPolicies.Does(s.listPolicies), draftPolicy.Does(s.draftPolicy), previewPolicy.Does(s.previewPolicy),
		activatePolicy.Does(s.activatePolicy), freezePolicy.Does(s.freezePolicy)}
}

// Schema lists the operation that returns the JSON Schema of a policy.
func (s *Policies) Schema() []*op.Operation {
	return []*op.Operation{policySchema.Does(s.policySchema)}
}

func (s *Policies) listPolicies(c *op.Call) (op.Reply, error) {
	drafts, activations, err := s.Commands.Policies(c.Request.Context(), c.Principal)
	if err != nil {
		return op.Reply{}, err
	}
	steps, page, err := op.Page(c.Request.URL.RawQuery, policySteps(drafts, activations), func(p policyStep) string { return p.id })
	if err != nil {
		return op.Reply{}, err
	}
	list := policyList{Drafts: []policyDraft{}, Activations: []policyActivation{}, Paged: page}
	for _, step := range steps {
		if step.draft != nil {
			list.Drafts = append(list.Drafts, *step.draft)
		} else {
			list.Activations = append(list.Activations, *step.activation)
		}
	}
	if n := len(activations); n > 0 {
		active := showActivation(activations[n-1])
		list.Active = &active
	}
	return op.Reply{Value: list}, nil
}

var draftPolicy = &op.Operation{
	Creates: true, ID: "draft_policy", Method: http.MethodPost, Path: "/api/assurance/policies",
	Summary: "Save a policy as a draft that can be activated. If the policy has a version, it must be the next version.",
	Query:   []op.Parameter{{Name: "reason", Description: "Why the policy should change. Admins read it before they activate the draft. It stays in the ledger, so name no person.", Schema: op.Object{"type": "string", "maxLength": ground.MaxReason}}},
	Access:  credential.WithRight(organizations.RightDraft), Input: reflect.TypeFor[jsontext.Value](), Parses: true, Output: reflect.TypeFor[policyDraft](),
	Example: `{"policyId":"default","maxUsdPerTransaction":5,"allowedHosts":["api.example.com"],"requireHttps":true}`,
	Success: http.StatusCreated, Limit: op.LimitPolicy, Errors: []int{400, 401, 403, 413, 503},
	Refuses: []string{"missing_field", "wrong_type", "unknown_field", "invalid_enum", "invalid_format", "too_many_items", "out_of_range"},
}

func (s *Policies) draftPolicy(c *op.Call) (op.Reply, error) {
	d, err := s.Commands.DraftPolicy(c.Request.Context(), c.Principal, c.Text, c.Request.URL.Query().Get("reason"))
	if err == nil {
		s.Drafts.Tell(c.Principal.OrgID, d)
	}
	return op.Reply{Value: showDraft(d)}, err
}

type activationOrder struct {
	Reason string `json:"reason" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"Reason of the change, recorded in the ledger."`
}

var activatePolicy = &op.Operation{
	ID: "activate_policy", Method: http.MethodPost, Path: "/api/assurance/policies/{draftId}/activate",
	Summary: "Activate a draft. It applies to all decisions after the activation's position in the ledger. Nobody can activate a draft of their own. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightActivate), Input: reflect.TypeFor[activationOrder](), Output: reflect.TypeFor[policyActivation](),
	Example: `{"reason":"Lower the limit, ticket 4711."}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 404, 409, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Policies) activatePolicy(c *op.Call) (op.Reply, error) {
	var in activationOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	v, err := s.Commands.ActivatePolicy(c.Request.Context(), c.Principal, c.Vars["draftId"], in.Reason)
	return op.Reply{Value: showActivation(v)}, err
}

var freezePolicy = &op.Operation{
	ID: "freeze_policies", Method: http.MethodPost, Path: "/api/assurance/policies/freeze",
	Summary: "Emergency stop: deny all hosts and all MCP servers after this event's position in the ledger, until a draft is activated. One administrator is enough. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightActivate), Input: reflect.TypeFor[activationOrder](), Output: reflect.TypeFor[policyActivation](),
	Example: `{"reason":"An agent is out of control, incident 17."}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Policies) freezePolicy(c *op.Call) (op.Reply, error) {
	var in activationOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	v, err := s.Commands.FreezePolicy(c.Request.Context(), c.Principal, in.Reason)
	return op.Reply{Value: showActivation(v)}, err
}

var previewPolicy = &op.Operation{
	ID: "preview_policy", Method: http.MethodGet, Path: "/api/assurance/policies/{draftId}/preview",
	Summary: "The decisions of the last 30 days that a draft would decide differently from the active policy.",
	Access:  credential.WithRight(organizations.RightDraft), Output: reflect.TypeFor[decisions.Preview](), Errors: []int{401, 403, 404, 503},
}

func (s *Policies) previewPolicy(c *op.Call) (op.Reply, error) {
	preview, err := s.Commands.PreviewDraft(c.Request.Context(), c.Principal, c.Vars["draftId"])
	return op.Reply{Value: preview}, err
}
