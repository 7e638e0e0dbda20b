// Package faults breaks a running countersign while clients call it, in every way
// of a table, and checks afterwards that nothing anybody was told has been lost,
// doubled or changed.
//
// A round is one row of the table with one seed. It starts the built program on an
// empty data folder, lets clients issue keys, ask the gate, run workflows, decide,
// bind receipts, pay and sign in, breaks something, mends it where a person or a
// supervisor would, and waits until every kind of call is answered again: by itself,
// without another step. Then it asks every acknowledged call again and compares the
// answers octet for octet with the clients' own journal, which was synced before
// they went on, and runs verify, replay diff and replay decisions.
package faults

import "io"

// Options are what a run is told.
type Options struct {
	Program    string    // the built program
	Source     string    // folder of the module, from which another release is built
	Rows       []string  // names; empty: all of Table
	Seeds      int       // rounds of each row, at least 1
	First      uint64    // the first seed; the others count up from it
	Partitions int       // of the ledgers; 0: one
	Calls      int       // acknowledged calls of each kind before and after the fault
	Out        io.Writer // gets the table
	Log        io.Writer // gets progress and what programs say that failed

	scratch string // folder of what is built and run
}
