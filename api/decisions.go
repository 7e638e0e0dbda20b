package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/organizations"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/policy/canon"
)

// decisionQuery names the members, for the document and the form.
var decisionQuery = []parameter{
	{"decision", "What the policy said.", object{"type": "string", "enum": anyOf(web.DecisionFilterValues()["decision"])}},
	{"conformance", "Of the receipt; none: there is no receipt.", object{"type": "string", "enum": anyOf(web.DecisionFilterValues()["conformance"])}},
	{"protocol", "Of the action.", object{"type": "string", "enum": anyOf(web.DecisionFilterValues()["protocol"])}},
	{"rule", "A rule that found something.", object{"type": "string", "maxLength": 200}},
	{"run", "The subject's runId, exactly.", object{"type": "string", "maxLength": 200}},
	{"agent", "The subject's agentId, exactly.", object{"type": "string", "maxLength": 200}},
	{"text", "Stands in the action, the run, the agent, the purpose or the id, in any case.", object{"type": "string", "maxLength": 200}},
	{"from", "Date, or RFC 3339 time, from which on.", dateOrTime()},
	{"to", "Date up to the end of which, or RFC 3339 time before which.", dateOrTime()},
	{"limit", "Default 25, clamped to 1 to 100.", object{"type": "integer", "minimum": 1, "maximum": 100, "default": 25}},
	{"cursor", "nextCursor of the page before.", object{"type": "string"}},
}

func dateOrTime() object {
	return object{"anyOf": []any{object{"type": "string", "format": "date"}, object{"type": "string", "format": "date-time"}}}
}

var listDecisions = &operation{
	id: "assurance_list_decisions", method: http.MethodGet, path: "/api/assurance/decisions",
	summary: "The organization's decisions that a filter chooses, the newest first, with what people and receipts said of them.",
	access:  credential.WithRight(organizations.RightRead), query: decisionQuery, output: reflect.TypeFor[web.DecisionPage](), errors: []int{400, 401, 403, 503},
}

func (s *Server) listDecisions(c *call) (reply, error) {
	names := make([]string, len(decisionQuery))
	for i, q := range decisionQuery {
		names[i] = q.name
	}
	query, warnings := understood(c.request.URL.RawQuery, names...)
	f, err := web.ReadDecisionFilter(query)
	if err != nil {
		return reply{}, err
	}
	page, err := s.web.SearchDecisions(c.request.Context(), c.Principal, f, historyLimit(query.Get("limit")), query.Get("cursor"))
	if err != nil {
		return reply{}, err
	}
	page.Warnings = append(page.Warnings, warnings...)
	body, err := canon.Marshal(page)
	return reply{body: body, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}
