package ledgertest

import (
	"sync"
	"time"
)

// Clock is a machine's clock that only a test moves.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock is a clock that stands.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Present is about now, never later than the database's, and with one and the same
// fraction in every run: what is cut to seconds, to milliseconds or to microseconds
// must not be right by the moment at which a test begins.
func Present() time.Time { return time.Now().Truncate(time.Second).Add(-12_345_679) }

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock to a time.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Add moves the clock on.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
