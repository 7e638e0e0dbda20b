package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// While others append, a reader works its share of the time, in short parts; otherwise all of it, in
// large parts. The few events that the service itself appends do not slow it down.
func TestPaceLetsAppendsGoFirst(t *testing.T) {
	for name, c := range map[string]struct {
		perSecond int64
		want      time.Duration // time for 20 parts of 100 ms
		part      int64         // events of a part afterwards
	}{
		"busy": {1000, 2*time.Second + 20*49*100*time.Millisecond, 64}, "quiet": {0, 2 * time.Second, 8192}, "hardly": {10, 2 * time.Second, 8192},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				p := New(50, func(context.Context) (int64, error) {
					return int64(time.Since(began).Seconds() * float64(c.perSecond)), nil
				})
				if err := p.Rest(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := p.Part(8192); n != 64 {
					t.Errorf("a part of %d events before it is known whether others append", n)
				}
				for range 20 {
					time.Sleep(100 * time.Millisecond) // simulate work of 100 ms
					if err := p.Rest(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				if n := p.Part(8192); n != c.part || p.Part(10) != 10 {
					t.Errorf("a part of %d events, want %d", n, c.part)
				}
			})
		})
	}
	if err := new(Pace).Rest(t.Context()); err != nil || new(Pace).Part(8192) != 8192 {
		t.Error(err)
	}
}

// The pauses of a request take at most about half of its time, so that it does not fail on a busy
// ledger.
func TestPausesLeaveARequestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		p := New(50, func(context.Context) (int64, error) { return time.Since(began).Milliseconds(), nil })
		for range 300 {
			if err := p.Rest(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // simulate work of 20 ms
		}
		if took := time.Since(began); took < 13*time.Second || took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
