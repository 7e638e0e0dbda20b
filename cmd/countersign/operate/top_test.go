package operate

import (
	"testing"
	"time"
)

// Top counts members of events. The same text in a free-form reason is not counted.
func TestTopCountsMembersAndNoText(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := topState{window: []counted{
		{now, "approval.recorded", told([]byte(`{"record":{"verdict":"rejected","reason":"not verdict=approved by me"}}`))},
		{now, "approval.recorded", told([]byte(`{"record":{"verdict":"approved","reason":"fine"}}`))},
	}}
	for _, row := range s.counts(now) {
		want := map[string]int{"events": 2, "approved": 1}[row.Name]
		if row.Minute != want || row.Quarter != want {
			t.Errorf("%s: %d and %d, want %d", row.Name, row.Minute, row.Quarter, want)
		}
	}
}
