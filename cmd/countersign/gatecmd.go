package main

import (
	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/guard"
)

// gateCmd has the commands of the gate and the guard. They need no network, database or key.
type gateCmd struct {
	gate.Commands
	Log gateLogCmd `cmd:"" help:"Show the log of the guard's verdicts on this machine, or send it to the team's ledger."`
}

// gateLogCmd shows the guard's log or sends it to a ledger.
type gateLogCmd struct {
	Show gate.LogShow   `cmd:"" default:"withargs" help:"Show the log (the default). Exit code 1: the log was cut or edited."`
	Push gateLogPushCmd `cmd:"" help:"Send new lines of the log to the team's ledger, signed with a key of this machine."`
}

// ownAccount returns the account whose settings apply. askOnTerminal asks the user at the
// terminal. Tests replace both.
var (
	ownAccount    = guard.OwnAccount
	askOnTerminal = gate.AskOnTerminal
)
