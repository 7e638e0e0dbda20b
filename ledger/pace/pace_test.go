package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// While others append, a reader works a twentieth of the time; otherwise all of it. The few events
// that the service itself appends do not slow it down.
func TestPaceLetsAppendsGoFirst(t *testing.T) {
	for name, c := range map[string]struct {
		perSecond int64
		want      time.Duration // time for 20 parts of 100 ms
	}{
		"busy": {1000, 2*time.Second + 19*1900*time.Millisecond}, "quiet": {0, 2 * time.Second}, "hardly": {10, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				p := &Pace{head: func(context.Context) (int64, error) {
					return int64(time.Since(began).Seconds() * float64(c.perSecond)), nil
				}}
				if err := p.Rest(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					time.Sleep(100 * time.Millisecond) // simulate work of 100 ms
					if err := p.Rest(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took < c.want || took > c.want+2*time.Second {
					t.Errorf("it took %s, want %s", took, c.want)
				}
			})
		})
	}
	if err := new(Pace).Rest(t.Context()); err != nil {
		t.Error(err)
	}
}
