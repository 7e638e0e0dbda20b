// Command countersign is the service and everything an operator, an auditor or a
// developer does with it from a terminal.
//
//	countersign serve               start the service (and its own PostgreSQL)
//	countersign demo                the main job from end to end, explained
//	countersign gate COMMAND        the verdict on a command, offline
//	countersign gate hook           the guard of a coding agent, offline
//	countersign rules show|list     what the verdicts rest on
//	countersign verify [FILE]       check a signed record, or the whole ledger
//	countersign key issue|revoke    API keys
//	countersign org create|…        organizations, members, tokens
//	countersign policy activate|…   the policy of an organization
//	countersign webhooks create|…   who is told of an organization's decisions
//	countersign export              signed history, for auditors
//	countersign signer list|rotate  keys that sign
//	countersign erase               erase a person or an agent
//	countersign payments list|…     payments over x402
//	countersign refunds list|…      what is paid back
//	countersign entitlements list|… customers' access to products
//	countersign replay rebuild      build a read model anew
//	countersign backup|restore      copy the ledger, and put it back
//	countersign archive             old payloads out of the database, and back
//	countersign migrate             the database schema
//	countersign tail|top            events as they come; what a ledger does now
//	countersign doctor              what works here and what does not
//
// Results go to stdout, logs to stderr. Exit codes: 0 done, 1 the answer is no
// (tampered, needs approval), 2 it could not be done.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/manage"
	"github.com/countersign/countersign/cmd/countersign/operate"
	"github.com/countersign/countersign/cmd/countersign/proof"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/serve"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/projections"
)

// cli is every flag, environment name and help text of the program.
type cli struct {
	global

	Serve        serve.Command       `cmd:"" help:"Start the service; without DATABASE_URL also a PostgreSQL of its own."`
	Demo         serve.Demo          `cmd:"" help:"The main job from end to end in a scratch folder, explained step by step."`
	Gate         gateCmd             `cmd:"" help:"The verdict on a command, offline; as a hook the guard of a coding agent."`
	Rules        gate.Rules          `cmd:"" help:"The rules behind the verdicts: list, show."`
	Verify       proof.Verify        `cmd:"" help:"Check a signed record, or (no file named) the whole ledger. Exit 1: something is false."`
	Key          manage.Key          `cmd:"" help:"API keys."`
	Org          manage.Org          `cmd:"" help:"Organizations, their members and tokens."`
	Policy       manage.Policy       `cmd:"" help:"The policy of an organization: check, draft, activate, preview, explain."`
	Webhooks     manage.Webhooks     `cmd:"" help:"Who is told of an organization's decisions: create, rotate, remove, list, deliveries, resend."`
	Check        proof.Check         `cmd:"" help:"Just before executing: is this pending call the one that was decided about? Exit 1: it may not be made."`
	Export       proof.Export        `cmd:"" help:"Write the signed history of an organization, with proofs and a verifier."`
	Pin          proof.Pin           `cmd:"" help:"Keep the newest checkpoint you have seen of a ledger, and refuse one that does not continue it. Exit 1: history was taken back, or is another."`
	Signer       operate.Signer      `cmd:"" help:"Keys that sign records and checkpoints: list, rotate."`
	Erase        operate.Erase       `cmd:"" help:"Erase a person or an agent: destroy the data key, with a signed-for event."`
	Payments     manage.Payments     `cmd:"" help:"Payments over x402, for operators."`
	Refunds      manage.Refunds      `cmd:"" help:"Refunds of payments over x402, for operators."`
	Entitlements manage.Entitlements `cmd:"" help:"Customers' access to products, for operators: list, grant, revoke."`
	Replay       proof.Replay        `cmd:"" help:"Build again from the events what was built from them."`
	Backup       operate.Backup      `cmd:"" help:"Copy the ledger into a folder while it is used, its keys apart and encrypted."`
	Restore      operate.Restore     `cmd:"" help:"Put a backup into an empty data folder or database, and verify it. Exit 1: something is false."`
	Archive      operate.Archive     `cmd:"" help:"Move the payloads of old events out of the database into a folder or bucket, signed; check them; bring them back."`
	Migrate      operate.Migrate     `cmd:"" help:"The database schema."`
	Doctor       operate.Doctor      `cmd:"" help:"Check what works here, in words."`
	Config       operate.Config      `cmd:"" help:"Print every setting, its value (secrets masked) and where it comes from."`
	Tail         operate.Tail        `cmd:"" help:"Print events as they come."`
	Top          operate.Top         `cmd:"" help:"What the ledger does now: calls, verdicts, lag, head."`
	Completion   completionCmd       `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	VersionCmd   operate.Version     `cmd:"" name:"version" help:"Print the version and the revision."`
}

// global are the flags that every command has.
type global struct {
	JSON  bool   `help:"Print results as JSON." name:"json"`
	Quiet bool   `help:"Print only the result: no advice about what to do next." name:"quiet" short:"q"`
	Color string `help:"When results are coloured: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto"`

	HelpAll helpAll          `help:"Show help with every flag, also those that are rarely needed." name:"help-all"`
	Version kong.VersionFlag `help:"Print the version."`
}

// commandNamed is the part of cli that the first word of a command line asks for, and
// nil if that is not the name of a command, or of one that looks at the others. To read
// all of the flags takes longer than most commands do, and the guard of a coding agent
// runs at every tool call.
func commandNamed(args []string) kong.Option {
	if len(args) == 0 || args[0] == "completion" {
		return nil
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
		if _, is := field.Tag.Lookup("cmd"); !is || args[0] != cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)) {
			continue
		}
		return kong.DynamicCommand(args[0], field.Tag.Get("help"), "", reflect.New(field.Type).Interface())
	}
	return nil
}

// gateMemory is how much a guard may take before it collects garbage after all.
const gateMemory = 256 << 20

func main() {
	localpg.DieWithGoRun() // first: "go run" does not pass signals on
	if isGate(os.Args[1:]) {
		debug.SetGCPercent(-1) // it ends before a collection would pay
		debug.SetMemoryLimit(gateMemory)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func isGate(args []string) bool { return len(args) > 0 && args[0] == "gate" }

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) (code int) {
	var c cli
	grammar, flags, options := any(&c), &c.global, []kong.Option(nil)
	if command := commandNamed(args); command != nil {
		grammar, options = flags, append(options, command)
	}
	exited := -1
	parser, err := kong.New(grammar, append(options, kong.Name("countersign"),
		kong.Description("Deterministic verdicts on what AI agents are about to do, signed and kept in a verifiable ledger."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppSummary: true}), kong.Help(printHelp), kong.UsageOnError(), kong.NamedMapper("days", kong.MapperFunc(gate.ReadDays)), setting.SecretsFromFiles,
		variables(operate.VersionText()))...)
	if err != nil {
		return fail(stderr, err)
	}
	hideRare(parser.Model.Node)
	switch {
	case isGate(args):
		args = gate.Args(parser.Model.Node, args)
	case len(args) == 0:
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help has been printed
		return exited
	}
	if err != nil {
		return fail(stderr, misread(err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { // a second signal ends at once
		<-ctx.Done()
		stop()
	}()
	command.BindTo(ctx, (*context.Context)(nil))
	o := &screen.Output{Stdout: stdout, Stderr: stderr, JSON: flags.JSON, Quiet: flags.Quiet, Progress: screen.ProgressOn(stderr)}
	if file, isFile := stdout.(*os.File); isFile && screen.IsTerminal(file) {
		o.Terminal, o.Width = true, screen.WidthOf(file)
	}
	o.Colour = screen.Coloured(flags.Color, o.Terminal)
	command.Bind(&gate.Output{Output: o, Account: ownAccount, Ask: askOnTerminal})
	err = command.Run(o)
	o.Progress.End()
	switch {
	case errors.Is(err, screen.ErrNo):
		return 1
	case err != nil:
		return fail(stderr, err)
	}
	return 0
}

// misread says what is wrong with a command line, and whose help says more. Two of the
// parser's sentences are about its own tokens, so they are put into a reader's words.
func misread(err error) error {
	text, help := err.Error(), "countersign --help lists the commands"
	text = valueMissing.ReplaceAllString(text, "a value is missing")
	text = argumentMissing.ReplaceAllString(text, "$1 is missing")
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		if command := parse.Context.Selected(); command != nil {
			help = command.FullPath() + " --help says more"
		}
	}
	return fmt.Errorf("%s (%s)", text, help)
}

// variables are what help texts and --version fill in.
func variables(version string) kong.Vars {
	return kong.Vars{"version": version, "readmodels": strings.Join(projections.Names(), ", ")}
}

var (
	valueMissing    = regexp.MustCompile(`expected \S+ value but got "EOL" \(<EOL>\)`)
	argumentMissing = regexp.MustCompile(`expected "(<[^"]+)"`)
)

func fail(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "countersign: %v\n", err)
	return 2
}
