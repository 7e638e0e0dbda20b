package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the processor time, user and system, of this process and of the database.
type CPU struct{ Process, Database time.Duration }

// CPUNow returns the processor time used so far by this process, which is client and service, and
// by the PostgreSQL that the scratch started. It reads the time from Linux; on other systems it
// returns zero.
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

// Spent returns the processor time that this process and the database use during some work.
func (s *Scratch) Spent(work func() error) (CPU, error) {
	before := s.CPUNow()
	err := work()
	after := s.CPUNow()
	return CPU{after.Process - before.Process, after.Database - before.Database}, err
}

// cpuOf reads a /proc/PID/stat file. After the name in parentheses, the second field is the
// parent's process id, and the 12th to 15th fields are the ticks of 10 ms that the process and its
// ended children used. Because ended children count, the total never decreases.
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

// Per returns the processor time per operation in microseconds.
func (c CPU) Per(n int) string {
	if n == 0 || c.Process == 0 {
		return "-"
	}
	return fmt.Sprintf("%d + %d", c.Process.Microseconds()/int64(n), c.Database.Microseconds()/int64(n))
}
