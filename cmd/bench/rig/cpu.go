package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the processor time used so far, user and system: by this process and by the database.
type CPU struct{ Process, Database time.Duration }

// CPUNow reads the processor time from Linux, of this process (client and service) and of the
// scratch's own PostgreSQL. On other systems it returns zero.
func (s *Scratch) CPUNow() CPU {
	var c CPU
	c.Process, _ = cpuOf("/proc/self/stat")
	pid, err := os.ReadFile(filepath.Join(s.Dir, "pg", "postmaster.pid"))
	if err != nil {
		return c
	}
	postmaster, _, _ := strings.Cut(string(pid), "\n")
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if used, parent := cpuOf(path); parent == postmaster || path == "/proc/"+postmaster+"/stat" {
			c.Database += used
		}
	}
	return c
}

// cpuOf reads a stat file. After the name in parentheses, the second field is the parent, and
// the 12th to 15th fields are the ticks of 10 ms used by the process and its ended children.
// With the children included, the total never falls.
func cpuOf(path string) (used time.Duration, parent string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, ""
	}
	for _, field := range fields[11:15] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		used += time.Duration(ticks) * 10 * time.Millisecond
	}
	return used, fields[1]
}

// Per returns the microseconds of processor time per operation.
func (c CPU) Per(n int) string {
	if n == 0 || c.Process == 0 {
		return "-"
	}
	return fmt.Sprintf("%d + %d", c.Process.Microseconds()/int64(n), c.Database.Microseconds()/int64(n))
}
