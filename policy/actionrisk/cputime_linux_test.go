package actionrisk

import (
	"runtime"
	"syscall"
	"time"
)

// threadTime is the processor time of the calling thread, which who else uses the
// machine does not change. The caller has locked its thread.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	if syscall.Getrusage(thread, &used) != nil {
		return time.Since(started)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

var lockThread, unlockThread = runtime.LockOSThread, runtime.UnlockOSThread
