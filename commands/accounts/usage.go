package accounts

import (
	"context"
	"time"

	"github.com/countersign/countersign/commands/ground"
)

// Usage is how many calls of its month a free key has used.
type Usage struct {
	Used, Remaining int64
	ResetsAt        time.Time
}

// Usage counts the calls of the caller's month, which is the version of the caller's usage
// stream. No append checks the key's stream here, so Usage reads that stream, too.
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

// UsageStream counts the free calls of a month. Keys of one account share it.
func UsageStream(caller Caller, now time.Time) string {
	owner := caller.KeyID
	if caller.CustomerID != "" {
		owner = caller.CustomerID
	}
	return "usage/" + owner + "/" + month(now)
}

// MonthEnds is when the free calls of this month end.
func (a *Accounts) MonthEnds() time.Time { return NextMonth(a.Now()) }

func month(t time.Time) string { return t.UTC().Format("2006-01") }

// NextMonth returns the beginning of the next month, UTC, when the count of free calls starts again.
func NextMonth(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}
