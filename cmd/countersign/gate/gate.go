// Package gate is the command line of the gate and the guard: verdicts, the hook of a
// coding agent, what the user allows and trusts, the log and the rules. It needs no service,
// so that a program of its own can hold it (cmd/countersign-guard); cmd/countersign has the
// same commands.
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

// Output is where a command of the gate writes its result, and the user it works for.
type Output struct {
	*screen.Output
	Account func() guard.Account
	Ask     func(question string) (string, error) // the person at the controlling terminal
}

// AskOnTerminal asks the person at the controlling terminal. Standard
// input is not read, since text from a pipe is not a person's consent.
func AskOnTerminal(question string) (string, error) {
	answer, err := guard.AskOnTerminal(question)
	if err != nil {
		return "", fmt.Errorf("this asks a person: run it in a terminal of your own (%w)", err)
	}
	return answer, nil
}

// Commands are those of the gate that both programs have.
type Commands struct {
	Verdict Verdict `cmd:"" default:"withargs" help:"The verdict on a command (the word verdict may be left out). Exit 1: it needs approval."`
	Explain Explain `cmd:"" help:"What lowered or raised the verdict on a command, rule by rule. Exit 1: it needs approval."`
	Hook    Hook    `cmd:"" help:"Guard a coding agent: read its pre-tool event, answer in its format, fail closed."`
	Allow   Allow   `cmd:"" help:"Let a rule, or one exact action, pass the guard. Asks on the terminal; without a rule it offers the last blocked action."`
	Trust   Trust   `cmd:"" help:"Show what a project's .countersign.json asks for, and let it loosen the guard. Asks on the terminal."`
	Stats   Stats   `cmd:"" help:"What the guard decided, in numbers."`
}

// Args lets a command be written as it is run: "gate ls -la" and "gate -- log"
// mean the command, of which every word is one, whatever flags of ours or names of
// subcommands are in it. Flags of ours stand before it. Only behind a command that is
// one argument ("gate 'ls -la' --json") they may stand as well, since nothing of the
// command can follow there.
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

// takesValue says whether a flag of ours takes the next word.
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

// ReadDays reads a duration that may be in days, such as 7d.
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
		return fmt.Errorf("want a duration such as 90m, 24h or 7d")
	}
	target.SetInt(int64(d * day))
	return nil
}
