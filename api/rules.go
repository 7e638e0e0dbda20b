package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/policy/actionrisk"
)

// ruleCatalogue is the rule set of the action-safety services.
type ruleCatalogue struct {
	RulesetVersion string            `json:"rulesetVersion"`
	RulesetHash    string            `json:"rulesetHash"`
	Rules          []actionrisk.Rule `json:"rules"`
}

var listRules = &operation{
	id: "list_rules", method: http.MethodGet, path: "/api/rules",
	summary: "Every rule of the action-safety services, with what it looks for, its level, and examples.",
	output:  reflect.TypeFor[ruleCatalogue](),
	run: func(*Server, *call) (reply, error) {
		version, hash := actionrisk.Ruleset()
		return reply{value: ruleCatalogue{version, hash, actionrisk.Rules()}, header: public()}, nil
	},
}

// public are the headers of documents that anybody may keep for a while.
func public() http.Header {
	return http.Header{"Cache-Control": {"public, max-age=300"}, "Access-Control-Allow-Origin": {"*"}}
}
