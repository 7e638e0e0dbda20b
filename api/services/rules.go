package services

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// ruleCatalogue is the rule set of the action-safety services.
type ruleCatalogue struct {
	RulesetVersion string               `json:"rulesetVersion"`
	RulesetHash    string               `json:"rulesetHash"`
	Rules          []actionrisk.Summary `json:"rules"`
}

// ListRules is the operation that lists the rules.
var ListRules = &op.Operation{
	ID: "list_rules", Method: http.MethodGet, Path: "/api/rules",
	Summary: "Every rule of the action-safety services: id, level and subject. Each rule has a page.",
	Output:  reflect.TypeFor[ruleCatalogue](),
}

// Rules serves the rules of the action-safety services.
type Rules struct{}

// Operations lists the operations that return rules.
func (s Rules) Operations() []*op.Operation {
	return []*op.Operation{ListRules.Does(s.listRules), getRule.Does(s.getRule)}
}

func (Rules) listRules(_ *op.Call) (op.Reply, error) {
	version, hash := actionrisk.Ruleset()
	return op.Reply{Value: ruleCatalogue{version, hash, actionrisk.Summaries()}, Header: op.Public()}, nil
}

var getRule = &op.Operation{
	ID: "get_rule", Method: http.MethodGet, Path: "/api/rules/{id}",
	Summary: "One rule: what it finds and what it does not find, why, the safer way, and examples with their current verdicts.",
	Output:  reflect.TypeFor[actionrisk.Record](), Errors: []int{http.StatusNotFound},
}

func (Rules) getRule(c *op.Call) (op.Reply, error) {
	record, known := actionrisk.RecordOf(c.Vars["id"])
	if !known {
		return op.Reply{}, policy.Refuse(ground.CodeNotFound, "", "rule not found; GET /api/rules lists them")
	}
	return op.Reply{Value: record, Header: op.Public()}, nil
}
