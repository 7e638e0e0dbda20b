package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

// GuardReport is a section of a guard's log, as one report to the ledger contains it.
type GuardReport struct {
	Machine string         `json:"machine"`
	First   int64          `json:"first"`
	Last    int64          `json:"last"`
	Head    string         `json:"head"`
	Counts  map[string]int `json:"counts"`

	ReportedAt string          `json:"reportedAt"`
	Lines      []guardlog.Line `json:"lines,omitempty"` // lines about commands that the guard denied, asked about, or could not see
}

// guardReport returns the report that an event records, without its lines.
func guardReport(e ledger.Event, stored events.GuardReported) GuardReport {
	return GuardReport{Machine: stored.Machine, First: stored.First, Last: stored.Last, Head: stored.Head, Counts: stored.Counts, ReportedAt: canon.Stamp(e.Occurred())}
}

func guardStream(machine string) string { return "guard/" + machine }

// ReportGuard records a section of a guard's log. The section must continue the machine's last
// report. If the last report is sent again, the answer is the same and nothing is recorded.
func (a *Webhooks) ReportGuard(ctx context.Context, p organizations.Principal, r guardlog.Report) (GuardReport, error) {
	if err := r.Check(); err != nil {
		return GuardReport{}, err
	}
	if a.Vault == nil {
		return GuardReport{}, a.NoVault()
	}
	p, err := a.Permit(ctx, p, organizations.RightDecide)
	if err != nil {
		return GuardReport{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightDecide), func(ctx context.Context) (GuardReport, error) {
		history, err := a.Ledger.Last(ctx, p.OrgID, guardStream(r.Machine()))
		if err != nil {
			return GuardReport{}, err
		}
		var last events.GuardReported
		if n := len(history.Events); n > 0 {
			e := history.Events[n-1]
			if last, err = events.As[events.GuardReported](e); err != nil {
				return GuardReport{}, err
			}
			if last.Head == r.Last().Hash {
				return guardReport(e, last), nil
			}
		}
		if r.Lines[0].Before != last.Head || r.Lines[0].Number != last.Last+1 {
			return GuardReport{}, policy.Refuse(organizations.CodeConflict, "/lines", "lines must continue the last report of this machine; nothing was recorded")
		}
		return a.recordGuard(ctx, p, r, history)
	})
}

func (a *Webhooks) recordGuard(ctx context.Context, p organizations.Principal, r guardlog.Report, history ledger.History) (GuardReport, error) {
	counts := map[string]int{}
	for _, l := range r.Lines {
		counts[l.Decision]++
	}
	stored := events.GuardReported{Machine: r.Machine(), PublicKey: r.PublicKey, First: r.Lines[0].Number, Last: r.Last().Number,
		Before: r.Lines[0].Before, Head: r.Last().Hash, Signature: r.Signature, Counts: counts, Lines: r.Lines}
	dataKey, err := a.Vault.Subject(ctx, p.OrgID, guardStream(r.Machine()), a.NewID("sub_"))
	if err != nil {
		return GuardReport{}, err
	}
	eventID := a.NewID("evt_")
	payload, err := a.Vault.Seal(ctx, p.OrgID, eventID, dataKey, stored)
	if err != nil {
		return GuardReport{}, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: p.OrgID, Preconditions: p.Preconditions, Events: []ledger.Pending{{Stream: guardStream(r.Machine()),
		Expect: history.At(), ID: eventID, Type: events.TypeGuardReported, SchemaVersion: 1, Actor: p.ActorID, Payload: payload}}})
	if err != nil {
		return GuardReport{}, err
	}
	return guardReport(result.Events[0], stored), nil
}

// GuardReports returns the last report of each of the organization's machines, the newest first,
// at most limit. The lines show which commands of agents were denied, asked about or not seen.
func (a *Webhooks) GuardReports(ctx context.Context, p organizations.Principal, limit int) ([]GuardReport, error) {
	p, err := a.Permit(ctx, p, organizations.RightExport)
	if err != nil {
		return nil, err
	}
	var streams []string
	err = a.Ledger.Reading(ctx, func() error {
		rows, err := a.Ledger.Pool().Query(ctx, `select stream from events
			where p = $1 and tenant = $2 and stream >= 'guard/' and stream < 'guard0' group by stream order by max(pos) desc limit $3`,
			a.Ledger.Home(p.OrgID).Number(), p.OrgID, limit)
		if err != nil {
			return err
		}
		streams, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, ground.Refusal(err)
	}
	reports := []GuardReport{}
	for _, stream := range streams {
		history, err := a.Ledger.Last(ctx, p.OrgID, stream)
		if err != nil {
			return nil, ground.Refusal(err)
		}
		for _, e := range history.Events {
			report, err := a.openGuard(ctx, e)
			if err != nil {
				return nil, ground.Refusal(err)
			}
			reports = append(reports, report)
		}
	}
	if slices.ContainsFunc(reports, func(r GuardReport) bool { return len(r.Lines) > 0 }) {
		err = a.NotePersonalOpened(ctx, p, "guard")
	}
	return reports, err
}

// openGuard decrypts a report and keeps the lines that GuardReport shows. If the lines were
// erased, the report has none.
func (a *Webhooks) openGuard(ctx context.Context, e ledger.Event) (GuardReport, error) {
	lines := []guardlog.Line{}
	stored := events.GuardReported{Lines: &lines}
	if err := a.Vault.Open(ctx, e, &stored); err != nil && !errors.Is(err, vault.ErrErased) {
		return GuardReport{}, err
	}
	report := guardReport(e, stored)
	for _, l := range lines {
		if l.Decision != "pass" && l.Decision != "proven" && l.Decision != "canary" {
			report.Lines = append(report.Lines, l)
		}
	}
	return report, nil
}
