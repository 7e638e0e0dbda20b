package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Hook is the guard of a coding agent: the agent's pre-tool event comes on
// standard input, the answer in the agent's own format goes to standard output. An
// answer is exit code 0; a failure is exit code 2 with the reason on standard error,
// and so are a crash of the Go runtime and a wrong flag: each of the agents takes that
// for a block.
type Hook struct {
	Agent       string `help:"Whose format to answer in: ${enum}. auto looks at the event, and then never asks." enum:"auto,claude,codex,cursor,gemini,opencode,qwen,copilot,vscode,windsurf,cline,kiro,droid" default:"auto"`
	Install     string `help:"Print the configuration for an agent (claude, codex, cursor, gemini, opencode, qwen, copilot) and where it goes; write nothing." placeholder:"AGENT" enum:",claude,codex,cursor,gemini,opencode,qwen,copilot" default:""`
	Ask         string `help:"Whether high risk may be asked about: auto (where the agent is known to stop and ask), always (wherever its format has a word for it), never (deny)." enum:"auto,always,never" default:"auto"`
	Strict      bool   `help:"One step stricter: ask about medium risk, deny high."`
	FailClosed  bool   `help:"Treat a command that no rule knows and that is not proven read-only as high. Off by default: builds and tests are such commands, and a guard that asks about each of them gets switched off." name:"fail-closed"`
	Environment string `help:"Environment the agent's commands reach." name:"environment"`
	AllowProven bool   `help:"Answer allow where every part of a command is proven read-only, so that the agent does not ask either." name:"allow-proven"`
	NoLog       bool   `help:"Keep no log of the verdicts." name:"no-log"`
	Write       bool   `help:"With --install: merge the entry into the agent's settings, keep a copy of what was there, and try it."`
	Uninstall   bool   `help:"With --install: take the entry out again."`
	Project     bool   `help:"With --write or --uninstall: the settings of this folder's project, not the user's own."`
	System      bool   `help:"With --write or --uninstall: the machine's managed settings, which no user or project leaves out. Needs root."`
}

// Run answers one event.
func (c *Hook) Run(ctx context.Context, o *Output) error {
	switch {
	case c.Install == "" && (c.Write || c.Uninstall || c.Project || c.System):
		return errors.New("--write, --uninstall, --project and --system need --install AGENT")
	case c.Project && c.System:
		return errors.New("--project and --system: give one of them")
	case c.Write && c.Uninstall:
		return errors.New("--write and --uninstall: give one of them")
	case c.Write:
		return c.write(ctx, o)
	case c.Uninstall:
		return c.takeOut(o)
	case c.Install != "":
		_, err := io.WriteString(o.Stdout, guard.Agent(c.Install).Instructions(ownPath()))
		return err
	}
	r := c.guard(o).Answer(os.Stdin)
	if _, err := io.WriteString(o.Stdout, r.Stdout); err != nil {
		return fmt.Errorf("blocked: write the answer: %w", err)
	}
	return r.Failure
}

func (c *Hook) guard(o *Output) guard.Guard {
	g := guard.Guard{Ask: c.Ask, Strict: c.Strict, FailClosed: c.FailClosed, Environment: c.Environment, AllowProven: c.AllowProven,
		Judge: actionrisk.ScoreIn, Now: time.Now()}
	g.Account = o.Account()
	if !c.NoLog {
		g.Log = g.Account.Log()
	}
	if c.Agent != "auto" {
		g.Agent = guard.Agent(c.Agent)
	}
	return g
}

// write merges the guard's entry into the agent's settings, and tries at once what was
// written, as doctor does.
func (c *Hook) write(ctx context.Context, o *Output) error {
	program, err := installable()
	if err != nil {
		return err
	}
	a := guard.Agent(c.Install)
	done, err := a.Install(program, c.where())
	if err != nil {
		return err
	}
	result, text := c.written(done)
	found := o.Account().Try(ctx, a, nil)
	for _, f := range found {
		text += fmt.Sprintf("%-8s %s\n", f.State, f.Detail)
	}
	if a == guard.Codex {
		text += "open /hooks in Codex and trust it: until then Codex skips it without a word\n"
	}
	result["works"] = guard.Works(found)
	if err := o.Result(result, text); err != nil {
		return err
	}
	if !guard.Works(found) {
		return screen.ErrNo
	}
	return nil
}

// where says whose settings are meant.
func (c *Hook) where() guard.Where {
	switch {
	case c.System:
		return guard.OfSystem
	case c.Project:
		return guard.OfProject
	}
	return guard.OfUser
}

// takeOut takes the entry out again.
func (c *Hook) takeOut(o *Output) error {
	done, err := guard.Agent(c.Install).Uninstall(c.where())
	if err != nil {
		return err
	}
	result, text := c.written(done)
	return o.Result(result, text+"the guard is taken out\n")
}

// written says what was done to the settings.
func (c *Hook) written(done guard.Change) (result map[string]any, text string) {
	text = "written: " + done.Settings + "\n"
	if done.Copy != "" {
		text += "what was there: " + done.Copy + "\n"
	}
	return map[string]any{"agent": c.Install, "settings": done.Settings, "copy": done.Copy, "installed": c.Write}, text
}

// installable is the path of this program as an agent can start it. Under "go run"
// there is none that lasts.
func installable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(self, "go-build") && os.Getenv("COUNTERSIGN_TEST_AS_PROGRAM") == "" {
		return "", errors.New(`"go run" removes the program when it ends: build it first (go install ./cmd/countersign), and run that with --write`)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return self, nil
}

// ownPath is how a configuration names this program: by its full path, since
// agents start hooks with a PATH of their own.
func ownPath() string {
	self, err := os.Executable()
	if err != nil || strings.Contains(self, "go-build") { // "go run" removes it
		return "countersign"
	}
	return self
}

// PlainHook reads the command line of an installed hook, as --install writes it, without the
// parser of command lines: to make that takes longer than a verdict. False for any other.
func PlainHook(args []string) (*Hook, bool) {
	if len(args) < 2 || args[0] != "gate" || args[1] != "hook" {
		return nil, false
	}
	h := &Hook{Agent: "auto", Ask: "auto"}
	for i := 2; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		takes := name == "--agent" || name == "--ask" || name == "--environment"
		if takes && !given {
			if i++; i >= len(args) {
				return nil, false
			}
			value = args[i]
		} else if given != takes {
			return nil, false
		}
		switch name {
		case "--agent":
			h.Agent = value
		case "--ask":
			h.Ask = value
		case "--environment":
			h.Environment = value
		case "--strict":
			h.Strict = true
		case "--fail-closed":
			h.FailClosed = true
		case "--allow-proven":
			h.AllowProven = true
		case "--no-log":
			h.NoLog = true
		default:
			return nil, false
		}
	}
	known := h.Agent == "auto" || slices.Contains(guard.Known, guard.Agent(h.Agent))
	return h, known && slices.Contains([]string{"auto", "always", "never"}, h.Ask)
}
