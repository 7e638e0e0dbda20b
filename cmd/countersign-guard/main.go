// Command countersign-guard is the guard of a coding agent and the gate, without the
// service: the same commands with the same answers as those of countersign.
//
//	countersign-guard gate COMMAND     the verdict on a command, offline
//	countersign-guard gate hook        the guard of a coding agent
//	countersign-guard rules show|list  what the verdicts rest on
//	countersign-guard doctor --hook    whether the installed hooks guard
//
// A guard runs at every tool call of an agent, so this program is small: nothing of the
// service is in it, and a hook's event is answered before the command line's parser is made.
// Exit codes: 0 done, 1 the answer is no, 2 it could not be done.
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
	Color   string           `help:"When results are coloured: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto"`
	Version kong.VersionFlag `help:"Print the version."`

	Gate   gateCmd     `cmd:"" help:"The verdict on a command, offline; as a hook the guard of a coding agent."`
	Rules  gate.Rules  `cmd:"" help:"The rules behind the verdicts: list, show."`
	Doctor gate.Doctor `cmd:"" help:"Check whether the installed hooks guard."`
}

type gateCmd struct {
	gate.Commands
	Log logCmd `cmd:"" help:"What the guard decided on this machine."`
}

type logCmd struct {
	Show gate.LogShow `cmd:"" default:"withargs" help:"Show the log (the word show may be left out). Exit 1: the log was cut or edited."`
}

// memory is how much the program may take before it collects garbage after all.
const memory = 256 << 20

// ownAccount is whose settings count, and askOnTerminal who consents. Tests put others in
// their place.
var (
	ownAccount    = guard.OwnAccount
	askOnTerminal = gate.AskOnTerminal
)

func main() {
	debug.SetGCPercent(-1) // it ends before a collection would pay
	debug.SetMemoryLimit(memory)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process around it.
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
	case exited >= 0: // --help has been printed
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

// ended is the exit code of a result.
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
