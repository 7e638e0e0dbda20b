package api

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A body of sixteen times the length may take three times as much processor time as the length asks
// for, and a little more. A scan that starts over takes 256 times as much.
const (
	timedPart = 2 << 10
	timedMany = 16
	timedMost = 3 * timedMany
	timedMore = time.Millisecond
)

// A scanner that allocates nothing can only be measured by its time. The test takes the processor
// time of this thread, to which other processes do not add, and the least of several tries.
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
	// The measure itself: one scan of the text passes, and one scan for each byte does not.
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

var spaces int // so that the scans are not left out

// linear reports whether the time of large is in proportion to that of small. A result that looks
// too large is measured again.
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
