package api

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Limits: a body of sixteen times the length may take three times as long as a linear scan would,
// plus a constant. A quadratic scan takes 256 times as long.
const (
	timedPart = 2 << 10
	timedMany = 16
	timedMost = 3 * timedMany
	timedMore = time.Millisecond
)

// TestNoScanIsQuadratic measures scanners that allocate nothing, for which only the time shows the
// work. It uses the processor time of this thread, which other processes do not affect, and the
// best of several runs.
func TestNoScanIsQuadratic(t *testing.T) {
	compare := func(t *testing.T, name string, small, large func()) {
		t.Helper()
		if one, many, ok := linear(small, large); !ok {
			t.Errorf("%s: %s of the processor, of %d times the body %s", name, one, timedMany, many)
		}
	}
	if bodies := eachGrown(t, timedPart, timedMany*timedPart, compare); bodies < 2000 {
		t.Errorf("only %d bodies were tried", bodies)
	}
	// Check the measure itself: one scan of the text passes, but one scan for each byte does not.
	scan := func(octets, times int) func() {
		text := strings.Repeat("a", octets)
		return func() {
			for range times {
				spaces += strings.Count(text, " b")
			}
		}
	}
	if one, many, ok := linear(scan(timedPart, 1), scan(timedMany*timedPart, 1)); !ok {
		t.Errorf("one scan: %s and %s", one, many)
	}
	if one, many, ok := linear(scan(timedPart, timedPart), scan(timedMany*timedPart, timedMany*timedPart)); ok {
		t.Errorf("a scan for each octet: %s and %s", one, many)
	}
}

var spaces int // prevents the compiler from removing the scans

// linear reports whether the time of large is proportional to the time of small. It measures again
// if the result is too large.
func linear(small, large func()) (one, many time.Duration, ok bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for try := range 5 {
		s, l := threadTime(small), threadTime(large)
		if try == 0 {
			one, many = s, l
		}
		one, many = min(one, s), min(many, l)
		if many <= timedMost*one+timedMore {
			return one, many, true
		}
	}
	return one, many, false
}

// threadTime returns the processor time of the calling thread.
func threadTime(do func()) time.Duration {
	var before, after unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before)
	do()
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after)
	return time.Duration(after.Nano() - before.Nano())
}
