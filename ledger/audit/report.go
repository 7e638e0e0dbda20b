package audit

import (
	"fmt"
	"slices"
)

// Fault is a mismatch that an audit has found. It names table, row and column.
type Fault struct {
	Table    string `json:"table"`
	Row      string `json:"row"`      // by its key, for example "pos 5"
	Position int64  `json:"position"` // of the event; 0 if the fault is not of one event
	Column   string `json:"column"`
	Detail   string `json:"detail"` // what was expected
}

// Error formats a fault for people.
func (f Fault) Error() string {
	return fmt.Sprintf("%s, %s, %s: %s", f.Table, f.Row, f.Column, f.Detail)
}

// eventFault is a fault of an event's row.
func eventFault(position int64, column, format string, args ...any) Fault {
	return Fault{"events", fmt.Sprintf("pos %d", position), position, column, fmt.Sprintf(format, args...)}
}

// Report is the result of an audit.
type Report struct {
	Origin  string  `json:"origin"` // of several partitions: without their numbers
	Events  int64   `json:"events"`
	Tenants int     `json:"tenants"`
	Records int64   `json:"records"` // signatures checked
	Head    int64   `json:"head"`    // of several partitions: the sum
	Hash    string  `json:"hash"`    // of the last event; of several partitions: empty
	Faults  []Fault `json:"faults"`

	Checkpoints int64    `json:"checkpoints"` // number of those whose root and signature were checked
	Trusted     []string `json:"trusted"`     // what was taken from the database without proof
	Gaps        []string `json:"gaps"`        // what could not be checked
	More        bool     `json:"more"`        // there are more faults than are listed

	Partitions []PartitionReport `json:"partitions,omitempty"` // where there is more than one
}

// PartitionReport says up to which event one of several partitions was verified.
type PartitionReport struct {
	Origin string `json:"origin"`
	Events int64  `json:"events"`
	Head   int64  `json:"head"`
	Hash   string `json:"hash"` // of the last event
}

// maxFaults bounds the faults in a report: one changed byte can make every later event
// false.
const maxFaults = 100

// add adds the report of a partition.
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

// Heads are the positions up to which the partitions were verified, by number.
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

// history are the tables in which a fault makes history itself false. The other tables prove
// or hide events and can be rebuilt.
var history = []string{"events", "ledger_head"}

// FalseHistory is the first fault of history itself, empty if there is none.
func (r Report) FalseHistory() string {
	if at := slices.IndexFunc(r.Faults, func(f Fault) bool { return slices.Contains(history, f.Table) }); at >= 0 {
		return r.Faults[at].Error()
	}
	return ""
}
