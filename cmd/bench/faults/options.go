// Package faults breaks a running countersign in every way of a table while clients call it,
// and then checks that nothing that a client was told has been lost, duplicated or changed.
//
// A round is one row of the table with one seed. It starts the built program on an empty data
// folder; clients issue keys, ask the gate, run workflows, request decisions, bind receipts,
// pay and sign in. The round then breaks something, repairs only what a person or a supervisor
// would, and waits until every kind of call is answered again without a further step. Finally
// it repeats every acknowledged call, compares the answers byte for byte with the clients'
// journal, and runs verify, replay diff and replay decisions.
package faults

import "io"

// Options are the settings of a run.
type Options struct {
	Program    string    // the built program
	Source     string    // folder of the module, from which other releases are built
	Rows       []string  // names; empty: all of Table
	Seeds      int       // rounds of each row, at least 1
	First      uint64    // the first seed; each further round adds one
	Partitions int       // of the ledgers; 0: one
	Calls      int       // acknowledged calls of each kind before and after the fault
	Out        io.Writer // receives the table
	Log        io.Writer // receives progress and the output of programs that failed

	scratch string // folder of the built programs and their data
}
