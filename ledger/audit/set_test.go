package audit

import (
	"context"
	"fmt"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/pace"
)

// The check of a small set does not pause, because each pause costs a query.
func TestSmallSetsAreCheckedWithoutARest(t *testing.T) {
	t.Parallel()
	s := newSet(1 << 20)
	defer s.close()
	for i := range 100 {
		s.addEvent(&ledger.Event{ID: fmt.Sprint("evt_", i), Tenant: "t", Stream: fmt.Sprint(i), Version: 1, Position: int64(i)})
	}
	asked := 0
	pace := pace.New(auditShare, func(context.Context) (int64, error) { asked++; return 0, nil })
	if err := s.check(t.Context(), pace, func(f Fault) { t.Error(f) }); err != nil || asked > 0 {
		t.Errorf("asked the database %d times, %v", asked, err)
	}
}
