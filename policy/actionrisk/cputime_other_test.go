//go:build !linux

package actionrisk

import "time"

// threadTime is the time that passed: this system does not say what a thread used.
func threadTime() time.Duration { return time.Since(started) }

func lockThread()   {}
func unlockThread() {}
