// Package gate implements the commands of the gate and the guard: verdicts, the hook of coding
// agents, exceptions and trust, the log and the rules. It needs no service, so that the small
// program cmd/countersign-guard can contain it, as cmd/countersign does.
package gate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
)

// Output is the output of the gate's commands, with the account whose settings apply.
type Output struct {
	*screen.Output
	Account func() guard.Account
	Ask     func(question string) (string, error) // asks the user at the controlling terminal
}

// AskOnTerminal asks the user at the controlling terminal and returns the answer. It does not read
// standard input, because text from a pipe is not the user's consent.
func AskOnTerminal(question string) (string, error) {
	answer, err := onTerminal(question)
	if err != nil {
		return "", fmt.Errorf("a person must answer this question: run the command in your own terminal (%w)", err)
	}
	return answer, nil
}

// Commands has the gate's commands that both programs contain.
type Commands struct {
	Verdict Verdict `cmd:"" default:"withargs" help:"Print the verdict on a command (the default). Exit code 1: the command needs approval."`
	Explain Explain `cmd:"" help:"Explain what raised or lowered the verdict on a command, rule by rule. Exit code 1: the command needs approval."`
	Hook    Hook    `cmd:"" help:"Guard a coding agent: read its pre-tool event and answer in its format. Any failure blocks the tool call."`
	Allow   Allow   `cmd:"" help:"Add an exception to the guard for a rule or for one exact action. The command asks for consent on the terminal. Without arguments, it offers to allow the last blocked action."`
	Trust   Trust   `cmd:"" help:"Show what the .countersign.json of a project requests and, after your consent on the terminal, trust this file to relax the guard."`
	Stats   Stats   `cmd:"" help:"Count the guard's verdicts."`
}

// Args rewrites a command line of the gate, so that a user can write the command to judge without
// quotes. In "gate ls -la" and "gate -- log" all words belong to that command, even if they look
// like flags or subcommands of ours. Our flags must come before it. They may follow only if the
// command is a single argument ("gate 'ls -la' --json"), because then no further word can belong
// to it.
func Args(root *kong.Node, args []string) []string {
	at, asked := root.Children[0], "verdict"
	var flags []string
	for i := 1; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			return slices.Concat([]string{"gate", asked}, flags, args[i:])
		case strings.HasPrefix(word, "-") && word != "-":
			flags = append(flags, word)
			if i+1 < len(args) && takesValue(at, word) {
				i++
				flags = append(flags, args[i])
			}
			continue
		case slices.ContainsFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }):
			if word != "verdict" && word != "explain" {
				return args
			}
			asked = word
			continue
		}
		rest := args[i+1:]
		if strings.ContainsAny(word, " \t\n") && (len(rest) == 0 || strings.HasPrefix(rest[0], "--")) {
			return slices.Concat([]string{"gate", asked}, flags, rest, []string{"--", word})
		}
		return slices.Concat([]string{"gate", asked}, flags, []string{"--"}, args[i:])
	}
	return args
}

// takesValue reports whether this flag of ours takes the next word as its value.
func takesValue(gate *kong.Node, flag string) bool {
	found := false
	eachFlag(gate.Parent, func(f *kong.Flag) {
		found = found || "--"+f.Name == flag && !f.IsBool()
	})
	return found
}

func eachFlag(n *kong.Node, do func(*kong.Flag)) {
	for _, f := range n.Flags {
		do(f)
	}
	for _, child := range n.Children {
		eachFlag(child, do)
	}
}

// ReadDays parses a duration, which may be in days, such as 7d.
func ReadDays(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	day := time.Duration(1)
	if n, is := strings.CutSuffix(text, "d"); is {
		text, day = n+"h", 24
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("expected a duration such as 90m, 24h or 7d")
	}
	target.SetInt(int64(d * day))
	return nil
}
