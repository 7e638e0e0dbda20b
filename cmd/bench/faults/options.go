// Package faults breaks a running countersign in each way that a table lists, while clients call
// it. It then checks that no answer that a client got has been lost, duplicated or changed.
//
// A round is one row of the table with one seed. It starts the built program on an empty data
// folder. Clients issue keys, ask the gate, run workflows, request decisions, bind receipts, pay
// and sign in. The round then causes the fault, repairs only what a person or a supervisor would
// repair, and waits until the service answers every kind of call again by itself. Finally it
// repeats every acknowledged call, compares the answers byte for byte with the clients' journal,
// and runs verify, replay diff and replay decisions.
package faults

import "io"

// Options has the settings of a run.
type Options struct {
	Program    string    // path of the built program
	Source     string    // folder of the module's source, from which other releases are built
	Rows       []string  // names of the rows to run; empty runs every row of Table
	Seeds      int       // number of rounds of each row, at least 1
	First      uint64    // seed of the first round; each later round adds one
	Partitions int       // number of partitions of each ledger; 0 means one
	Calls      int       // minimum number of acknowledged calls of each kind, before and after the fault
	Out        io.Writer // the table of results is written here
	Log        io.Writer // progress and the output of failed programs are written here

	scratch string // folder of the built releases and the data of the rounds
}
