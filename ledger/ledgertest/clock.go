package ledgertest

import (
	"sync"
	"time"
)

// Clock replaces a machine's clock. Only the test changes its time.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock whose time changes only by Set and Add.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Present returns a time shortly before now, so it is never later than the database's time. Its
// fraction of a second is constant, so that tests of code that truncates times to seconds,
// milliseconds or microseconds do not depend on the moment at which they start.
func Present() time.Time { return time.Now().Truncate(time.Second).Add(-12_345_679) }

// Now returns the time of the clock.
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

// Add moves the clock forward.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
