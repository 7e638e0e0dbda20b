package main

import (
	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/guard"
)

// gateCmd is the engine behind every action-safety service, without network,
// database or key: one verdict, or the guard of a coding agent.
type gateCmd struct {
	gate.Commands
	Log gateLogCmd `cmd:"" help:"What the guard decided on this machine: show, push."`
}

// gateLogCmd shows the log, or sends it to a ledger.
type gateLogCmd struct {
	Show gate.LogShow   `cmd:"" default:"withargs" help:"Show the log (the word show may be left out). Exit 1: the log was cut or edited."`
	Push gateLogPushCmd `cmd:"" help:"Send what is new in the log to the team's ledger, signed with a key of this machine."`
}

// ownAccount is whose settings count, and askOnTerminal who consents. Tests put others in
// their place.
var (
	ownAccount    = guard.OwnAccount
	askOnTerminal = gate.AskOnTerminal
)
