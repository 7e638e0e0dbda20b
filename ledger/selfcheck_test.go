package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
)

// A verification that finds history false stops appends, and says how to go on; one
// that finds fault with what only proves the events, or finds nothing, stops none.
func TestAFalseHistoryStopsAppends(t *testing.T) {
	a := newAudited(t)
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
			defer a.restore()
			l := open(t, a.db)
			a.exec(c.change)
			check := l.CheckItselfNow(t.Context(), a.audit.KEK)
			if check.Failed() != (c.name != "nothing") || (check.False != "") != c.stops {
				t.Errorf("%+v", check)
			}
			l.Heed(check)
			_, err := l.Append(t.Context(), ledger.Append{Tenant: "org_a", Drafts: []ledger.Draft{draft("s/"+c.name, ledger.New(), "evt_"+c.name)}})
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
