package services

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// WorkflowStatus is the operation that returns the status record of a workflow.
var WorkflowStatus = &op.Operation{
	ID: "get_action_safety_workflow_status", Method: http.MethodGet, Path: "/api/agent-workflows/action-safety/status/{workflowId}",
	CORS:    true,
	Summary: "The status record of a workflow, kept for 30 days. Free.",
	Output:  reflect.TypeFor[projections.StatusRecord](), Errors: []int{400, 404, 503}, BareErrors: true,
}

// Workflows lists the operation that returns a workflow's status.
func (s *Services) Workflows() []*op.Operation {
	return []*op.Operation{WorkflowStatus.Does(s.workflowStatus)}
}

func (s *Services) workflowStatus(c *op.Call) (op.Reply, error) {
	id := c.Vars["workflowId"]
	if !isWorkflowID(id) {
		return op.Reply{}, ErrWorkflowID
	}
	record, err := s.Projections.Status(c.Request.Context(), id)
	return op.Reply{Body: record, Header: op.Private()}, err
}

// ErrWorkflowID is the specification's error for a malformed id, over HTTP and over MCP.
var ErrWorkflowID = policy.Refuse("invalid_workflow_id", "", "invalid workflow id")

// isWorkflowID reports whether an id has the specification's pattern ^asw_[0-9a-f-]{36}$.
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
