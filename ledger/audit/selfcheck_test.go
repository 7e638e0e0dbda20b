package audit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
)

// A check that finds altered events stops appends, and the error says what to do. A check that
// finds no fault, or faults only in tables that prove the events, does not.
func TestAFalseHistoryStopsAppends(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	for _, c := range []struct {
		name, change string
		stops        bool
	}{
		{"nothing", `select 1`, false},
		{"a tile", `update tiles set data = set_byte(data, 0, get_byte(data, 0) # 1)`, false},
		{"a data key", `update subject_keys set kek_id = 'x' || kek_id where destroyed_us is null`, false},
		{"an event", `update events set actor = 'cus_9' where pos = 3`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer a.Restore()
			l := fixture.Open(t, a.DB)
			a.Exec(c.change)
			check := audit.SelfCheck(t.Context(), l, a.Audit.KEK)
			if check.Failed() != (c.name != "nothing") || (check.False != "") != c.stops {
				t.Errorf("%+v", check)
			}
			checks := audit.SelfChecks{Folder: checkpoint.Folder{Path: t.TempDir()}}
			audit.Heed(l, checks, check)
			_, err := l.Append(t.Context(), ledger.Append{Tenant: "org_a", Events: []ledger.Pending{fixture.Pending("s/"+c.name, ledger.New(), "evt_"+c.name)}})
			switch {
			case !c.stops && err != nil:
				t.Error(err)
			case c.stops && (!errors.Is(err, ledger.ErrStopped) || !errors.Is(err, ledger.ErrTampered)):
				t.Errorf("appended, %v", err)
			case c.stops:
				for _, word := range []string{"events, pos 3", "countersign verify", "--accept-findings"} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("the refusal lacks %q: %s", word, err)
					}
				}
			}
		})
	}
}

// After a finding the next start refuses appends at once, until a check finds the events intact or
// the operator accepts the finding.
func TestAFalseHistoryIsRemembered(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	checks := audit.SelfChecks{KEK: a.Audit.KEK, Folder: checkpoint.Folder{Path: t.TempDir()}}
	accepted := checks
	accepted.GoOn = true
	ids := 0
	starts := func(c audit.SelfChecks, name string, appends bool) *ledger.Ledger {
		t.Helper()
		l := fixture.Open(t, a.DB)
		if err := audit.HeedRemembered(l, c); err != nil {
			t.Fatal(err)
		}
		ids++
		_, err := l.Append(t.Context(), ledger.Append{Tenant: "org_a", Events: []ledger.Pending{fixture.Pending(fmt.Sprint("started/", ids), ledger.New(), fmt.Sprint("evt_started_", ids))}})
		if appends != (err == nil) || !appends && (!errors.Is(err, ledger.ErrStopped) || !strings.Contains(err.Error(), "events, pos 3")) {
			t.Errorf("%s: %v", name, err)
		}
		return l
	}
	l := starts(checks, "before", true)
	a.Exec(`update events set actor = 'cus_9' || actor where pos = 3`)
	audit.Heed(l, checks, audit.SelfCheck(t.Context(), l, checks.KEK))
	starts(checks, "after the finding", false)
	l = starts(accepted, "accepted", true)
	audit.Heed(l, accepted, audit.SelfCheck(t.Context(), l, checks.KEK))
	l = starts(checks, "after it was accepted once", false)
	ended, end := context.WithCancel(t.Context())
	end()
	audit.Heed(l, checks, audit.SelfCheck(ended, l, checks.KEK))
	l = starts(checks, "after a verification that did not end", false)
	a.Exec(`update events set actor = substr(actor, 6) where pos = 3`)
	audit.Heed(l, checks, audit.SelfCheck(t.Context(), l, checks.KEK))
	starts(checks, "after history verified", true)
}

// A read that finds an altered event changes the condition and requests a check at once, which
// stops appends earlier than the daily check would. A check without faults clears the finding of
// the read.
func TestAReadThatFindsTamperingAsksForAVerification(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	l := fixture.Open(t, a.DB)
	if word := l.Condition().Word; word != ledger.Unverified {
		t.Errorf("before anybody has looked: %s", word)
	}
	a.Exec(`update events set actor = actor || '9' where pos = 3`)
	if _, err := l.Partition(0).After(t.Context(), 2, 1); !errors.Is(err, ledger.ErrTampered) {
		t.Fatal(err)
	}
	if c := l.Condition(); c.Word != ledger.Altered || c.Sentence != ledger.SaysAltered || l.Stopped() != nil {
		t.Errorf("%+v, stopped %v", c, l.Stopped())
	}
	a.Exec(`update events set actor = left(actor, -1) where pos = 3`)
	if check := audit.SelfCheck(t.Context(), l, a.Audit.KEK); check.Failed() || l.Condition().Word != ledger.Intact {
		t.Errorf("%+v, %+v", check, l.Condition())
	}

	a.Exec(`update events set actor = actor || '9' where pos = 3`)
	if _, err := l.Partition(0).After(t.Context(), 2, 1); !errors.Is(err, ledger.ErrTampered) {
		t.Fatal(err)
	}
	audit.Daily(l, audit.SelfChecks{KEK: a.Audit.KEK, Folder: checkpoint.Folder{Path: t.TempDir()}})
	for l.Stopped() == nil && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if !errors.Is(l.Stopped(), ledger.ErrTampered) || l.Condition().Word != ledger.Altered {
		t.Errorf("%v, %+v", l.Stopped(), l.Condition())
	}
}
