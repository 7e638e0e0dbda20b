package commands

import (
	"context"
	"time"
)

// Usage is what a free key has used of its month.
type Usage struct {
	Used, Remaining int64
	ResetsAt        time.Time
}

// Usage counts the calls of the caller's month: the version of its usage stream.
// Nothing is appended that could guard the key, so its stream is looked at, too.
func (a *Accounts) Usage(ctx context.Context, caller Caller) (Usage, error) {
	now := a.now()
	version, err := a.Ledger.Version(ctx, caller.guard.Tenant, caller.guard.Stream)
	if err != nil {
		return Usage{}, refusal(err)
	}
	if version != caller.guard.Version {
		if _, err := a.current(ctx, caller); err != nil {
			return Usage{}, refusal(err)
		}
	}
	used, err := a.Ledger.Version(ctx, caller.guard.Tenant, usageStream(caller, now))
	if err != nil {
		return Usage{}, refusal(err)
	}
	return Usage{Used: used, Remaining: max(FreeCallsPerMonth-used, 0), ResetsAt: nextMonth(now)}, nil
}

// usageStream counts the free calls of a month. Keys of one account share it.
func usageStream(caller Caller, now time.Time) string {
	owner := caller.KeyID
	if caller.CustomerID != "" {
		owner = caller.CustomerID
	}
	return "usage/" + owner + "/" + month(now)
}

// MonthEnds is when the free calls of this month end.
func (a *Accounts) MonthEnds() time.Time { return nextMonth(a.now()) }

func month(t time.Time) string { return t.UTC().Format("2006-01") }

func nextMonth(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}
