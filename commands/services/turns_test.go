package services

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestTurnsAreTakenOneAfterTheOther(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	var turns turns
	count := map[string]int{} // protected by the turns: with -race the test fails if two calls hold one turn
	for i := range 64 {
		all.Go(func() {
			done, err := turns.take(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer done()
			count["a"] += i
		})
	}
	all.Wait()
	if count["a"] != 64*63/2 || len(turns.queue) != 0 {
		t.Errorf("count %d, %d funds are remembered", count["a"], len(turns.queue))
	}
}

// A call whose context ends leaves the queue, and calls to other funds do not wait.
func TestTurnsOfOtherFundsAndOfWhoLeaves(t *testing.T) {
	t.Parallel()
	var turns turns
	done, err := turns.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.take(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.take(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	other()
	done()
	again, err := turns.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if len(turns.queue) != 0 {
		t.Errorf("%d funds are remembered", len(turns.queue))
	}
}
