//go:build !linux

package actionrisk

import "time"

// threadTime returns the elapsed time, because this system does not report the processor time of a
// thread.
func threadTime() time.Duration { return time.Since(started) }

func lockThread()   {}
func unlockThread() {}
