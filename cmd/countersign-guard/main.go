// Command countersign-guard contains the guard of coding agents and the gate, without the service.
// Its commands give the same answers as those of countersign.
//
//	countersign-guard gate COMMAND     print the verdict on a command, offline
//	countersign-guard gate hook        guard a coding agent
//	countersign-guard rules show|list  show the rules of the gate
//	countersign-guard doctor --hook    check whether the installed hooks work
//
// An agent starts the guard at every tool call, so the program must start fast: it contains
// nothing of the service, and it answers a hook's event before it builds the command line parser.
// Exit codes: 0 done, 1 the answer is no, 2 the command failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy"
)

type cli struct {
	JSON    bool             `help:"Print results as JSON." name:"json"`
	Color   string           `help:"When to colour the output: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto"`
	Version kong.VersionFlag `help:"Print the version."`

	Gate   gateCmd     `cmd:"" help:"Print the verdict on a command, offline; or, as the hook of a coding agent, check each command of the agent."`
	Rules  gate.Rules  `cmd:"" help:"List or show the rules of the gate."`
	Doctor gate.Doctor `cmd:"" help:"Check that the installed hooks block a dangerous command."`
}

type gateCmd struct {
	gate.Commands
	Log logCmd `cmd:"" help:"Show what the guard decided on this machine."`
}

type logCmd struct {
	Show gate.LogShow `cmd:"" default:"withargs" help:"Show the log (the default). Exit code 1: the log was cut or edited."`
}

// memory is the heap size in bytes from which garbage is collected. main turns off collection
// below this size.
const memory = 256 << 20

// ownAccount returns the account whose settings apply. askOnTerminal asks the user at the
// terminal. Tests replace both.
var (
	ownAccount    = guard.OwnAccount
	askOnTerminal = gate.AskOnTerminal
)

func main() {
	debug.SetGCPercent(-1) // the program ends before garbage collection would help
	debug.SetMemoryLimit(memory)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit code. The command line of an installed hook is
// read without the parser, which is slow.
func run(args []string, stdout, stderr io.Writer) int {
	o := &gate.Output{Output: &screen.Output{Stdout: stdout, Stderr: stderr}, Account: ownAccount, Ask: askOnTerminal}
	if hook, ok := gate.PlainHook(args); ok {
		return ended(stderr, hook.Run(context.Background(), o))
	}
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("countersign-guard"), kong.Description("The guard of a coding agent: deterministic verdicts on what it is about to do."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppSummary: true}),
		kong.UsageOnError(), kong.NamedMapper("days", kong.MapperFunc(gate.ReadDays)), kong.Vars{"version": "countersign-guard " + policy.Version})
	if err != nil {
		return ended(stderr, err)
	}
	if len(args) > 0 && args[0] == "gate" {
		args = gate.Args(parser.Model.Node, args)
	}
	command, err := parser.Parse(args)
	switch {
	case exited >= 0: // the parser has printed help or the version
		return exited
	case err != nil:
		return ended(stderr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	o.JSON = c.JSON
	if file, isFile := stdout.(*os.File); isFile && screen.IsTerminal(file) {
		o.Terminal, o.Width = true, screen.WidthOf(file)
	}
	o.Colour = screen.Coloured(c.Color, o.Terminal)
	return ended(stderr, command.Run(o))
}

// ended prints err, unless it is nil or screen.ErrNo, and returns the exit code.
func ended(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, screen.ErrNo):
		return 1
	}
	fmt.Fprintf(stderr, "countersign: %v\n", err)
	return 2
}
