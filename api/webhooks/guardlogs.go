package webhooks

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

const guardPath = "/api/assurance/guard-logs"

// guardReports is the answer with the newest report of each machine.
type guardReports struct {
	Machines []webhooks.GuardReport `json:"machines"`
}

var reportGuard = &op.Operation{
	ID: "report_guard_log", Method: http.MethodPost, Path: guardPath,
	Summary: "Report a part of the log of a coding agent's guard, signed by its machine. It must continue the part before. A repeated part gets the same answer.",
	Access:  credential.WithRight(organizations.RightDecide), Input: reflect.TypeFor[guardlog.Report](), Output: reflect.TypeFor[webhooks.GuardReport](),
	Limit: op.LimitGuardLog, Errors: []int{400, 401, 403, 409, 413, 503},
	Example: `{"publicKey":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=","lines":[{"number":1,"at":"2026-11-22T10:00:00Z","agent":"claude","decision":"deny","level":"critical","command":"rm -rf /","before":"","hash":"cc6603ddc207987b52acb54c99b595329804d9976e96e29014e64549c15520d7"}],"signature":"TqJlucdb0CgXP9bbSm8A21cF5qdGYNeI/ZFOWQaXaF//zqvIQRQ6qZaTxRxssT3QOEOfN7b6CSFH+czKmRyfBg=="}`,
}

// GuardLogs lists the operations on the logs of guards.
func (s *Webhooks) GuardLogs() []*op.Operation {
	return []*op.Operation{reportGuard.Does(s.reportGuard), listGuard.Does(s.listGuard)}
}

func (s *Webhooks) reportGuard(c *op.Call) (op.Reply, error) {
	var in guardlog.Report
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	report, err := s.Commands.ReportGuard(c.Request.Context(), c.Principal, in)
	return op.Reply{Value: report, Header: op.Private()}, err
}

var listGuard = &op.Operation{
	ID: "list_guard_logs", Method: http.MethodGet, Path: guardPath,
	Summary: "The newest report of each machine: how many calls its guard judged, and which of them it denied or asked a person about.",
	Access:  credential.WithRight(organizations.RightExport), Output: reflect.TypeFor[guardReports](), Errors: []int{401, 403, 503},
}

func (s *Webhooks) listGuard(c *op.Call) (op.Reply, error) {
	list, err := s.Commands.GuardReports(c.Request.Context(), c.Principal, query.MostMachines)
	return op.Reply{Value: guardReports{list}, Header: op.Private()}, err
}
