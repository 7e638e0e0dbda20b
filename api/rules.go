package api

import (
	"net/http"
	"reflect"

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

var listRules = &operation{
	id: "list_rules", method: http.MethodGet, path: "/api/rules",
	summary: "Every rule of the action-safety services: id, level, what it is about. Each has a page of its own.",
	output:  reflect.TypeFor[ruleCatalogue](),
}

func (*Server) listRules(_ *call) (reply, error) {
	version, hash := actionrisk.Ruleset()
	return reply{value: ruleCatalogue{version, hash, actionrisk.Summaries()}, header: public()}, nil
}

var getRule = &operation{
	id: "get_rule", method: http.MethodGet, path: "/api/rules/{id}",
	summary: "One rule: what it catches and what not, why, the safer way, and examples, judged when asked.",
	output:  reflect.TypeFor[actionrisk.Record](), errors: []int{http.StatusNotFound},
}

func (*Server) getRule(c *call) (reply, error) {
	record, known := actionrisk.RecordOf(c.vars["id"])
	if !known {
		return reply{}, policy.Refuse(ground.CodeNotFound, "", "rule not found; GET /api/rules lists them")
	}
	return reply{value: record, header: public()}, nil
}

// public are the headers of documents that anybody may keep for a while.
func public() http.Header {
	return http.Header{"Cache-Control": {"public, max-age=300"}, "Access-Control-Allow-Origin": {"*"}}
}
