package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

var workflowStatus = &operation{
	id: "get_action_safety_workflow_status", method: http.MethodGet, path: "/api/agent-workflows/action-safety/status/{workflowId}",
	cors:    true,
	summary: "The status record of a workflow, kept for 30 days. Free.",
	output:  reflect.TypeFor[projections.StatusRecord](), errors: []int{400, 404, 503}, bareErrors: true,
}

func (s *Server) workflowStatus(c *call) (reply, error) {
	id := c.vars["workflowId"]
	if !isWorkflowID(id) {
		return reply{}, errWorkflowID
	}
	record, err := s.projections.Status(c.request.Context(), id)
	return reply{body: record, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}

// errWorkflowID is the specification's, over HTTP and over MCP.
var errWorkflowID = policy.Refuse("invalid_workflow_id", "", "invalid workflow id")

// isWorkflowID is the specification's pattern ^asw_[0-9a-f-]{36}$.
func isWorkflowID(id string) bool {
	if len(id) != len("asw_")+36 || id[:4] != "asw_" {
		return false
	}
	for _, c := range id[4:] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && c != '-' {
			return false
		}
	}
	return true
}
