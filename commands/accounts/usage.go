package accounts

import (
	"context"
	"time"

	"github.com/countersign/countersign/commands/ground"
)

// Usage is the number of free calls that were used this month, and that remain.
type Usage struct {
	Used, Remaining int64
	ResetsAt        time.Time
}

// Usage returns the number of free calls that the caller has used this month. That number is the
// version of the usage stream. An append would check as a precondition that the key was not
// revoked, but Usage appends nothing, so it checks this itself.
func (a *Accounts) Usage(ctx context.Context, caller Caller) (Usage, error) {
	now := a.Now()
	version, err := a.Ledger.Version(ctx, caller.precondition.Tenant, caller.precondition.Stream)
	if err != nil {
		return Usage{}, ground.Refusal(err)
	}
	if version != caller.precondition.Version {
		if _, err := a.Current(ctx, caller); err != nil {
			return Usage{}, ground.Refusal(err)
		}
	}
	used, err := a.Ledger.Version(ctx, caller.precondition.Tenant, UsageStream(caller, now))
	if err != nil {
		return Usage{}, ground.Refusal(err)
	}
	return Usage{Used: used, Remaining: max(FreeCallsPerMonth-used, 0), ResetsAt: NextMonth(now)}, nil
}

// UsageStream returns the stream that counts the free calls of a key in a month. The keys of one
// account share a stream.
func UsageStream(caller Caller, now time.Time) string {
	owner := caller.KeyID
	if caller.CustomerID != "" {
		owner = caller.CustomerID
	}
	return "usage/" + owner + "/" + month(now)
}

// MonthEnds returns the time at which the current month of free calls ends.
func (a *Accounts) MonthEnds() time.Time { return NextMonth(a.Now()) }

func month(t time.Time) string { return t.UTC().Format("2006-01") }

// NextMonth returns the first moment of the next month in UTC, when the count of free calls starts
// again.
func NextMonth(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}
