package decisions

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/canon"
)

// decisionQuery lists the query parameters of the search for decisions.
var decisionQuery = []op.Parameter{
	{Name: "decision", Description: "The decision under the policy.", Schema: op.Object{"type": "string", "enum": op.Enum(query.FilterValues()["decision"])}},
	{Name: "conformance", Description: "Outcome in the receipt; none means that there is no receipt.", Schema: op.Object{"type": "string", "enum": op.Enum(query.FilterValues()["conformance"])}},
	{Name: "protocol", Description: "Protocol of the action.", Schema: op.Object{"type": "string", "enum": op.Enum(query.FilterValues()["protocol"])}},
	{Name: "rule", Description: "Id of a rule with a finding.", Schema: op.Object{"type": "string", "maxLength": 200}},
	{Name: "run", Description: "The subject's runId, exactly.", Schema: op.Object{"type": "string", "maxLength": 200}},
	{Name: "agent", Description: "The subject's agentId, exactly.", Schema: op.Object{"type": "string", "maxLength": 200}},
	{Name: "text", Description: "Text that occurs in the action, the run, the agent, the purpose or the id. Case is ignored.", Schema: op.Object{"type": "string", "maxLength": 200}},
	{Name: "target", Description: "The host that is paid (x402), or SERVER/TOOL (mcp), exactly.", Schema: op.Object{"type": "string", "maxLength": 200}},
	{Name: "from", Description: "Start of the period: a date, or an RFC 3339 time.", Schema: dateOrTime()},
	{Name: "to", Description: "End of the period: a date, which is included, or an RFC 3339 time, which is excluded.", Schema: dateOrTime()},
	{Name: "limit", Description: "Default 25, clamped to 1 to 100.", Schema: op.Object{"type": "integer", "minimum": 1, "maximum": 100, "default": 25}},
	{Name: "cursor", Description: "nextCursor of the page before.", Schema: op.Object{"type": "string"}},
}

func dateOrTime() op.Object {
	return op.Object{"anyOf": []any{op.Object{"type": "string", "format": "date"}, op.Object{"type": "string", "format": "date-time"}}}
}

var listDecisions = &op.Operation{
	ID: "assurance_list_decisions", Method: http.MethodGet, Path: "/api/assurance/decisions",
	Summary: "The organization's decisions that match a filter, the newest first, with their approvals and receipts.",
	Access:  credential.WithRight(organizations.RightRead), Query: decisionQuery, Output: reflect.TypeFor[query.DecisionPage](), Errors: []int{400, 401, 403, 503},
}

func (s *Decisions) listDecisions(c *op.Call) (op.Reply, error) {
	names := make([]string, len(decisionQuery))
	for i, q := range decisionQuery {
		names[i] = q.Name
	}
	q, warnings := op.Understood(c.Request.URL.RawQuery, names...)
	f, err := query.ReadFilter(q)
	if err != nil {
		return op.Reply{}, err
	}
	page, err := query.Decisions{Commands: s.Commands, Projections: s.Projections}.Search(c.Request.Context(), c.Principal, f, op.PageLimit(q.Get("limit")), q.Get("cursor"))
	if err != nil {
		return op.Reply{}, err
	}
	page.Warnings = append(page.Warnings, warnings...)
	body, err := canon.Marshal(page)
	return op.Reply{Body: body, Header: op.Private()}, err
}
