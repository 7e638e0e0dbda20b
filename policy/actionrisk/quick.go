package actionrisk

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
)

// NextCall is the call that the caller should make next.
type NextCall struct {
	Method     string `json:"method" jsonschema:"enum=POST" jsonschema_description:"HTTP method of the call."`
	Path       string `json:"path" jsonschema_description:"Path of the call, relative to the URL of the service."`
	PriceCents int    `json:"priceCents" jsonschema_description:"Price of the call in US cents."`
	Tool       string `json:"tool" jsonschema_description:"Name of the MCP tool for the same call."`
}

// The calls that are recommended after a verdict.
var (
	nextScore = NextCall{"POST", "/api/agent-services/command-risk/score", 10, "command_risk_score"}
	nextRun   = NextCall{"POST", "/api/agent-services/action-safety/run", 25, "agent_action_safety_loop"}
)

// QuickOutput is the response of the quick gate.
type QuickOutput struct {
	Status               string    `json:"status" jsonschema:"enum=scored" jsonschema_description:"Always scored."`
	Service              string    `json:"service" jsonschema:"enum=action-safety-quick-gate" jsonschema_description:"Name of the service."`
	Risk                 string    `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"The highest level of the rules that matched."`
	RequiresApproval     bool      `json:"requiresApproval" jsonschema_description:"Whether a person should approve the action before it runs."`
	MatchedRuleIDs       []string  `json:"matchedRuleIds" jsonschema_description:"Ids of the rules that matched."`
	ActionBindingVersion string    `json:"actionBindingVersion" jsonschema:"enum=svc-action-v1" jsonschema_description:"Name of the method that computes actionHash."`
	ActionHash           string    `json:"actionHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical action. An executor compares it with the hash of the action that it runs."`
	NextRecommendedCall  *NextCall `json:"nextRecommendedCall" jsonschema:"nullable" jsonschema_description:"The call to make next; null if none is recommended."`
}

// Quick is the quick gate: it returns the risk of one action, and the call to make next.
var Quick = policy.Declare(policy.Service{
	Name:       "action-safety/quick",
	Operation:  "action_safety_quick_gate",
	PriceCents: 1,
	Group:      policy.GroupSafety,
	Title:      "Action safety quick gate",
	Summary:    "Risk of one shell, Git, SQL, infrastructure, deployment, MCP, wallet or x402 action, before it runs, and the call to make next.",
	Example:    `{"command":"git push --force origin main","repo":"acme/payments","branch":"main","environment":"production"}`,
	Bare:       true,
	Ruleset:    facts.Ruleset,
	BodyLimit:  policy.ActionBody,
}, quick)

func quick(a act.Action) (QuickOutput, error) {
	if err := Check(a); err != nil {
		return QuickOutput{}, err
	}
	got := Assess(a)
	out := QuickOutput{
		Status: "scored", Service: "action-safety-quick-gate", Risk: got.Risk.String(),
		RequiresApproval: got.RequiresApproval, MatchedRuleIDs: got.RuleIDs(),
		ActionBindingVersion: BindingVersion, ActionHash: Hash(a),
	}
	switch got.Risk {
	case act.Medium:
		out.NextRecommendedCall = &nextScore
	case act.High, act.Critical:
		out.NextRecommendedCall = &nextRun
	}
	return out, nil
}

// Check checks the lengths and the white space of an action's members, for callers that do not
// validate against the schema. It returns the first error in the order of the schema.
func Check(a act.Action) error {
	for _, m := range [...]struct {
		name, value string
		most        int
	}{
		{"command", a.Command, 2000}, {"repo", a.Repo, 500}, {"cwd", a.Cwd, 500}, {"branch", a.Branch, 500},
		{"actor", a.Actor, 500}, {"intent", a.Intent, 1000}, {"diffStat", a.DiffStat, 1500},
		{"environment", a.Environment, 500}, {"target", a.Target, 1000}, {"commit", a.Commit, 200}, {"diffHash", a.DiffHash, 200},
	} {
		switch {
		case m.value == "" && m.name == "command":
			return policy.Refuse("missing_field", "/command", "command is required")
		case m.value == "":
		case utf8.RuneCountInString(m.value) > m.most:
			return policy.Refuse("too_long", "/"+m.name, fmt.Sprintf("%s must have at most %d characters", m.name, m.most))
		case m.value != strings.TrimFunc(m.value, whiteSpace):
			return policy.Refuse("out_of_range", "/"+m.name, m.name+" must not start or end with white space")
		}
	}
	return nil
}

// whiteSpace reports whether a character matches \s in ECMA-262.
func whiteSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0x00A0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}
