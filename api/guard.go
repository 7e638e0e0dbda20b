package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

const guardPath = "/api/assurance/guard-logs"

// guardReports is the newest report of each machine.
type guardReports struct {
	Machines []webhooks.GuardReport `json:"machines"`
}

var reportGuard = &operation{
	id: "report_guard_log", method: http.MethodPost, path: guardPath,
	summary: "Report a part of the log of a coding agent's guard, signed by its machine. It must follow on the part before; the same part again is answered as it was.",
	access:  credential.WithRight(organizations.RightDecide), input: reflect.TypeFor[guardlog.Report](), output: reflect.TypeFor[webhooks.GuardReport](),
	limit: limitGuardLog, errors: []int{400, 401, 403, 409, 413, 503},
	example: `{"publicKey":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=","lines":[{"number":1,"at":"2026-11-22T10:00:00Z","agent":"claude","decision":"deny","level":"critical","command":"rm -rf /","before":"","hash":"cc6603ddc207987b52acb54c99b595329804d9976e96e29014e64549c15520d7"}],"signature":"TqJlucdb0CgXP9bbSm8A21cF5qdGYNeI/ZFOWQaXaF//zqvIQRQ6qZaTxRxssT3QOEOfN7b6CSFH+czKmRyfBg=="}`,
}

func (s *Server) reportGuard(c *call) (reply, error) {
	var in guardlog.Report
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	report, err := s.app.ReportGuard(c.request.Context(), c.Principal, in)
	return reply{value: report, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}

var listGuard = &operation{
	id: "list_guard_logs", method: http.MethodGet, path: guardPath,
	summary: "The newest report of each machine: how many calls its guard judged, and what was asked about or denied.",
	access:  credential.WithRight(organizations.RightExport), output: reflect.TypeFor[guardReports](), errors: []int{401, 403, 503},
}

func (s *Server) listGuard(c *call) (reply, error) {
	list, err := s.app.GuardReports(c.request.Context(), c.Principal, web.ShownMachines)
	return reply{value: guardReports{list}, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}
