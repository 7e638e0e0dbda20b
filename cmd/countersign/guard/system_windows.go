package guard

import (
	"time"

	"golang.org/x/sys/windows"
)

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	hundreds := func(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
	return time.Duration(100 * (hundreds(kernel) + hundreds(user)))
}
