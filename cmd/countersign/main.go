// Command countersign contains the service, and the commands of operators, auditors and
// developers.
//
//	countersign serve                start the service (and its own PostgreSQL)
//	countersign demo                 show the main functions, step by step
//	countersign gate COMMAND         print the verdict on a command, offline
//	countersign gate hook            guard a coding agent, offline
//	countersign rules show|list      show or list the rules of the gate
//	countersign verify [FILE...]     check a signed record, one or two exports, or the ledger
//	countersign key issue|revoke     manage API keys
//	countersign org create|…         manage organizations, members and tokens
//	countersign policy activate|…    manage the policy of an organization
//	countersign webhooks create|…    manage webhooks for an organization's decisions
//	countersign export               write signed history for auditors
//	countersign evidence pack        collect the evidence that an audit framework requires
//	countersign prove                state what an agent did in a period
//	countersign oversight            show how reviewers decided in a period
//	countersign dispute              write the evidence about one purchase or tool call
//	countersign views EXPORT         convert an export to tables and streams for other tools
//	countersign signer list|rotate   manage the signing keys
//	countersign erase                erase a person or an agent
//	countersign payments list|…      manage x402 payments
//	countersign refunds list|…       manage refunds
//	countersign entitlements list|…  manage customers' access to products
//	countersign replay rebuild       rebuild a read model
//	countersign backup|restore       back up and restore the ledger
//	countersign archive              move old payloads out of the database, and back
//	countersign migrate              manage the database schema
//	countersign tail|top             print new events; show current figures
//	countersign doctor               check what works and what does not
//
// Results go to stdout, logs to stderr. Exit codes: 0 done, 1 the answer is no (tampered, needs
// approval), 2 the command failed.
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
	"github.com/countersign/countersign/ledger/views"
	"github.com/countersign/countersign/projections"
)

// cli declares all commands, flags, environment variables and help texts of the program.
type cli struct {
	global

	Serve        serve.Command       `cmd:"" help:"Start the service and, without DATABASE_URL, a private PostgreSQL."`
	Demo         serve.Demo          `cmd:"" help:"Demonstrate the main functions in a temporary folder, and explain each step."`
	Gate         gateCmd             `cmd:"" help:"Print the verdict on a command, offline; or, as the hook of a coding agent, check each command of the agent."`
	Rules        gate.Rules          `cmd:"" help:"List or show the rules of the gate."`
	Verify       proof.Verify        `cmd:"" help:"Verify a signed record, one or two exports, or, without a file, the ledger. Exit code 1: something does not verify."`
	Key          manage.Key          `cmd:"" help:"Issue and revoke API keys."`
	Org          manage.Org          `cmd:"" help:"Manage organizations, their members and tokens."`
	Policy       manage.Policy       `cmd:"" help:"Manage the policy of an organization: check, draft, activate, preview, explain."`
	Webhooks     manage.Webhooks     `cmd:"" help:"Manage the webhooks that receive an organization's decisions."`
	Check        proof.Check         `cmd:"" help:"Check just before execution that a call matches its decision. Exit code 1: do not make the call."`
	Export       proof.Export        `cmd:"" help:"Export the signed history of an organization, with proofs and a verifier."`
	Dispute      proof.Dispute       `cmd:"" help:"Write all events about one decision or payment to one file, with proofs, a verifier and a readable page."`
	Evidence     proof.Evidence      `cmd:"" help:"Collect the evidence for an audit under a framework such as SOC 2."`
	Prove        proof.Prove         `cmd:"" help:"State what an agent did in a period (counts, largest and total amounts), with the events from which anyone can count again."`
	Recall       proof.Recall        `cmd:"" help:"List the past actions that were allowed and that another policy, or other rules of the gate, would have stopped, with the events from which anyone can compute the list again."`
	Views        proof.Views         `cmd:"" help:"Make tables, streams for other tools and a report from an export, offline."`
	Oversight    proof.Oversight     `cmd:"" help:"Show figures about the reviews of a period: the time to a verdict, the share of verdicts in under five seconds, the share of rejections, reviewers who never rejected, and expired approvals."`
	Pin          proof.Pin           `cmd:"" help:"Store the newest checkpoint of a ledger and refuse one that does not extend the stored one. Exit code 1: the ledger was rolled back or is a different one."`
	Signer       operate.Signer      `cmd:"" help:"List or rotate the keys that sign records and checkpoints."`
	Erase        operate.Erase       `cmd:"" help:"Erase a person or an agent: destroy the data key and record that as an event."`
	Payments     manage.Payments     `cmd:"" help:"List, reconcile and resolve payments over x402, for operators."`
	Refunds      manage.Refunds      `cmd:"" help:"Approve and record refunds of payments over x402, for operators."`
	Entitlements manage.Entitlements `cmd:"" help:"List, grant and revoke customers' access to products, for operators."`
	Replay       proof.Replay        `cmd:"" help:"Compare or rebuild read models from the events, or evaluate recorded decisions again."`
	Backup       operate.Backup      `cmd:"" help:"Copy the ledger into a folder while it is in use, with its keys in a separate encrypted file."`
	Restore      operate.Restore     `cmd:"" help:"Restore a backup into an empty data folder or database, and verify it. Exit code 1: something does not verify."`
	Archive      operate.Archive     `cmd:"" help:"Move the payloads of old events from the database to a signed archive in a folder or bucket, check them, or bring them back."`
	Migrate      operate.Migrate     `cmd:"" help:"Show or change the version of the database schema."`
	Doctor       operate.Doctor      `cmd:"" help:"Check this installation and report what does not work."`
	Config       operate.Config      `cmd:"" help:"Print every setting, its value (secrets masked) and the source of the value."`
	Tail         operate.Tail        `cmd:"" help:"Print the newest events, and new events as they are appended."`
	Top          operate.Top         `cmd:"" help:"Show the activity of the ledger: calls, verdicts, and how far read models and signed checkpoints are behind."`
	Completion   completionCmd       `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	VersionCmd   operate.Version     `cmd:"" name:"version" help:"Print the version and the revision."`
}

// global has the flags of every command.
type global struct {
	JSON  bool   `help:"Print results as JSON." name:"json"`
	Quiet bool   `help:"Print only the result: no advice about what to do next." name:"quiet" short:"q"`
	Color string `help:"When to colour the output: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto"`

	HelpAll helpAll          `help:"Show help with all flags, also those that are rarely needed." name:"help-all"`
	Version kong.VersionFlag `help:"Print the version."`
}

// commandNamed returns a parser option with only the command that args begin with. Parsing the
// declarations of all commands takes longer than most commands run, and the guard of a coding
// agent runs at every tool call. It returns nil if args name no command, or one that needs all
// declarations (help, completion).
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

// gateMemory is the heap size in bytes from which the guard collects garbage. main turns off
// collection below this size.
const gateMemory = 256 << 20

func main() {
	localpg.DieWithGoRun() // must be first, because "go run" does not forward signals
	if isGate(os.Args[1:]) {
		debug.SetGCPercent(-1) // the program ends before garbage collection would help
		debug.SetMemoryLimit(gateMemory)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func isGate(args []string) bool { return len(args) > 0 && args[0] == "gate" }

// run executes a command line and returns the exit code.
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
	if exited >= 0 { // the parser has printed help or the version
		return exited
	}
	if err != nil {
		return fail(stderr, misread(err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { // a second signal ends the program at once
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

// misread adds to a parser's error the --help command that explains the usage, and to the flag
// that it names the environment variable, which may have the wrong value. It replaces messages that
// use internal terms of the parser.
func misread(err error) error {
	text, help := err.Error(), "countersign --help lists the commands"
	text = valueMissing.ReplaceAllString(text, "a value is missing")
	text = argumentMissing.ReplaceAllString(text, "$1 is missing")
	text = numberWrong.ReplaceAllString(text, " must be a whole number")
	text = fromVariable.ReplaceAllString(text, "")
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		if command := parse.Context.Selected(); command != nil {
			help = command.FullPath() + " --help explains the command"
		}
		named := flagNamed.FindString(text)
		for _, flag := range parse.Context.Flags() {
			if named == "--"+flag.Name && len(flag.Envs) > 0 {
				text = strings.Replace(text, named, named+" ($"+flag.Envs[0]+")", 1)
			}
		}
	}
	return fmt.Errorf("%s (%s)", text, help)
}

// variables returns the values for placeholders in help texts, and for --version.
func variables(version string) kong.Vars {
	return kong.Vars{"version": version, "readmodels": strings.Join(projections.Names(), ", "), "viewForms": strings.Join(views.Names(), ", ")}
}

var (
	valueMissing    = regexp.MustCompile(`expected \S+ value but got "EOL" \(<EOL>\)`)
	argumentMissing = regexp.MustCompile(`expected "(<[^"]+)"`)
	numberWrong     = regexp.MustCompile(`: expected a valid 64 bit (?:int|uint) but got ".*?"`)
	fromVariable    = regexp.MustCompile(` \(from envar .*\)$`)
	flagNamed       = regexp.MustCompile(`^--[a-z0-9-]+`)
)

// fail prints an error. An error may quote the name of a file that an attacker has chosen.
func fail(stderr io.Writer, err error) int {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = screen.Printable(line)
	}
	fmt.Fprintf(stderr, "countersign: %s\n", strings.Join(lines, "\n"))
	return 2
}
