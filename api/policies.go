package api

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// policyDraft is a policy that was frozen and may be activated, once.
type policyDraft struct {
	DraftID    string              `json:"draftId"`
	PolicyID   string              `json:"policyId"`
	Policy     jsontext.Value      `json:"policy"`
	PolicyHash string              `json:"policyHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	Author     string              `json:"author"`
	DraftedAt  string              `json:"draftedAt" jsonschema:"format=date-time"`
	Activated  bool                `json:"activated"`
	Lint       []events.PolicyLint `json:"lint"`
}

func showDraft(d decisions.Draft) policyDraft {
	return policyDraft{d.DraftID, d.PolicyID, d.Canonical, d.Hash, d.Author, d.DraftedAt, d.Activated, d.Lint}
}

// policyActivation is one version that is, or was, in force.
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
	Changed           []string       `json:"changed" jsonschema_description:"Members that differ from the version before."`
}

func showActivation(v decisions.Activation) policyActivation {
	return policyActivation{v.PolicyID, v.Version, v.Canonical, v.Hash, v.ActivatedSequence, v.ActivatedAt,
		v.DraftID, v.Author, v.Activator, v.SelfActivated, v.Reason, v.Changed}
}

type policyList struct {
	Active      *policyActivation  `json:"active" jsonschema:"nullable"`
	Drafts      []policyDraft      `json:"drafts" jsonschema_description:"Of this page, the oldest first."`
	Activations []policyActivation `json:"activations" jsonschema_description:"Of this page, the oldest first."`
	paged
}

// policyStep is a draft or an activation: both lists are paged as one.
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

var listPolicies = &operation{
	id: "list_policies", method: http.MethodGet, path: "/api/assurance/policies",
	summary: "The policy in force, every draft there ever was, and then every activation." + pagedBy,
	access:  credential.WithRight(organizations.RightPolicies), output: reflect.TypeFor[policyList](), errors: []int{400, 401, 403, 503},
}

func (s *Server) listPolicies(c *call) (reply, error) {
	drafts, activations, err := s.app.Policies(c.request.Context(), c.Principal)
	if err != nil {
		return reply{}, err
	}
	steps, page, err := pageOf(c.request.URL.RawQuery, policySteps(drafts, activations), func(p policyStep) string { return p.id })
	if err != nil {
		return reply{}, err
	}
	list := policyList{Drafts: []policyDraft{}, Activations: []policyActivation{}, paged: page}
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
	return reply{value: list}, nil
}

var draftPolicy = &operation{
	anew: true, id: "draft_policy", method: http.MethodPost, path: "/api/assurance/policies",
	summary: "Freeze a policy as a draft that can be activated. A version, if there is one, must be the one that activation would give.",
	access:  credential.WithRight(organizations.RightDraft), input: reflect.TypeFor[jsontext.Value](), parses: true, output: reflect.TypeFor[policyDraft](),
	example: `{"policyId":"default","maxUsdPerTransaction":5,"allowedHosts":["api.example.com"],"requireHttps":true}`,
	success: http.StatusCreated, limit: limitPolicy, errors: []int{400, 401, 403, 413, 503},
}

func (s *Server) draftPolicy(c *call) (reply, error) {
	d, err := s.app.DraftPolicy(c.request.Context(), c.Principal, c.text)
	return reply{value: showDraft(d)}, err
}

type activationOrder struct {
	Reason string `json:"reason" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"Why; it stands in the ledger."`
}

var activatePolicy = &operation{
	id: "activate_policy", method: http.MethodPost, path: "/api/assurance/policies/{draftId}/activate",
	summary: "Put a draft in force from its own ledger position on. Not the own one; needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightActivate), input: reflect.TypeFor[activationOrder](), output: reflect.TypeFor[policyActivation](),
	example: `{"reason":"lower the limit, ticket 4711"}`,
	success: http.StatusCreated, errors: []int{400, 401, 403, 404, 409, 413, 503},
}

func (s *Server) activatePolicy(c *call) (reply, error) {
	var in activationOrder
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	v, err := s.app.ActivatePolicy(c.request.Context(), c.Principal, c.vars["draftId"], in.Reason)
	return reply{value: showActivation(v)}, err
}

var freezePolicy = &operation{
	id: "freeze_policies", method: http.MethodPost, path: "/api/assurance/policies/freeze",
	summary: "The emergency stop: from its own ledger position on no host and no MCP server is allowed, until a draft is activated. One admin is enough; needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightActivate), input: reflect.TypeFor[activationOrder](), output: reflect.TypeFor[policyActivation](),
	example: `{"reason":"an agent runs wild, incident 17"}`,
	success: http.StatusCreated, errors: []int{400, 401, 403, 413, 503},
}

func (s *Server) freezePolicy(c *call) (reply, error) {
	var in activationOrder
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	v, err := s.app.FreezePolicy(c.request.Context(), c.Principal, in.Reason)
	return reply{value: showActivation(v)}, err
}

var previewPolicy = &operation{
	id: "preview_policy", method: http.MethodGet, path: "/api/assurance/policies/{draftId}/preview",
	summary: "The decisions of the last 30 days that would be others under a draft than under the active policy.",
	access:  credential.WithRight(organizations.RightDraft), output: reflect.TypeFor[decisions.Preview](), errors: []int{401, 403, 404, 503},
}

func (s *Server) previewPolicy(c *call) (reply, error) {
	preview, err := s.app.PreviewDraft(c.request.Context(), c.Principal, c.vars["draftId"])
	return reply{value: preview}, err
}
