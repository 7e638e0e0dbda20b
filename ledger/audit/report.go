package audit

import (
	"fmt"
	"slices"
)

// Fault is a mismatch that an audit has found in a column of a row.
type Fault struct {
	Table    string `json:"table"`
	Row      string `json:"row"`      // key of the row, for example "pos 5"
	Position int64  `json:"position"` // position of the event; 0 if the fault does not concern one event
	Column   string `json:"column"`
	Detail   string `json:"detail"` // what is wrong, or what was expected
}

// Error returns the fault as one line of text.
func (f Fault) Error() string {
	return fmt.Sprintf("%s, %s, %s: %s", f.Table, f.Row, f.Column, f.Detail)
}

// eventFault returns a fault in an event's row.
func eventFault(position int64, column, format string, args ...any) Fault {
	return Fault{"events", fmt.Sprintf("pos %d", position), position, column, fmt.Sprintf(format, args...)}
}

// Report is the result of an audit.
type Report struct {
	Origin  string  `json:"origin"` // origin; for several partitions without the partition number
	Events  int64   `json:"events"`
	Tenants int     `json:"tenants"`
	Records int64   `json:"records"` // number of signed records that were checked
	Head    int64   `json:"head"`    // position of the last event; for several partitions the sum
	Hash    string  `json:"hash"`    // hash of the last event; empty for several partitions
	Faults  []Fault `json:"faults"`

	Checkpoints int64    `json:"checkpoints"` // number of checkpoints whose root and signature were checked
	Trusted     []string `json:"trusted"`     // what was taken from the database without proof
	Gaps        []string `json:"gaps"`        // what could not be checked
	More        bool     `json:"more"`        // there are more faults than Faults lists

	Partitions []PartitionReport `json:"partitions,omitempty"` // only if there are several
}

// PartitionReport is the verified extent of one of several partitions.
type PartitionReport struct {
	Origin string `json:"origin"`
	Events int64  `json:"events"`
	Head   int64  `json:"head"`
	Hash   string `json:"hash"` // hash of the last event
}

// maxFaults is the largest number of faults in a report. One changed byte can cause a fault in
// every later event.
const maxFaults = 100

// add appends the report of the next partition.
func (r *Report) add(of Report) {
	p := len(r.Partitions)
	r.Partitions = append(r.Partitions, PartitionReport{of.Origin, of.Events, of.Head, of.Hash})
	if p == 0 {
		r.Origin = of.Origin[:max(len(of.Origin)-len("/0"), 0)]
	}
	r.Events, r.Head = r.Events+of.Events, r.Head+of.Head
	r.Tenants, r.Records, r.Checkpoints = r.Tenants+of.Tenants, r.Records+of.Records, r.Checkpoints+of.Checkpoints
	for _, f := range of.Faults {
		f.Row = fmt.Sprintf("p %d, %s", p, f.Row)
		if len(r.Faults) < maxFaults {
			r.Faults = append(r.Faults, f)
		} else {
			r.More = true
		}
	}
	r.More = r.More || of.More
	for _, list := range []struct {
		all *[]string
		of  []string
	}{{&r.Trusted, of.Trusted}, {&r.Gaps, of.Gaps}} {
		for _, text := range list.of {
			if !slices.Contains(*list.all, text) {
				*list.all = append(*list.all, text)
			}
		}
	}
}

// Heads returns the position up to which each partition was verified, indexed by partition.
func (r Report) Heads() []int64 {
	if len(r.Partitions) == 0 {
		return []int64{r.Head}
	}
	heads := make([]int64, len(r.Partitions))
	for i, p := range r.Partitions {
		heads[i] = p.Head
	}
	return heads
}

// history lists the tables that contain the events themselves. The other tables only prove, find
// or decrypt events. They can be rebuilt, or restored from a backup.
var history = []string{"events", "ledger_head"}

// FalseHistory returns the first fault in the tables of history, or an empty text.
func (r Report) FalseHistory() string {
	if at := slices.IndexFunc(r.Faults, func(f Fault) bool { return slices.Contains(history, f.Table) }); at >= 0 {
		return r.Faults[at].Error()
	}
	return ""
}
