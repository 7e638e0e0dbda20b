package actionrisk

import (
	"runtime"
	"syscall"
	"time"
)

// threadTime returns the processor time of the calling thread, which does not depend on other
// processes. The caller must have locked its thread.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	if syscall.Getrusage(thread, &used) != nil {
		return time.Since(started)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

var lockThread, unlockThread = runtime.LockOSThread, runtime.UnlockOSThread
