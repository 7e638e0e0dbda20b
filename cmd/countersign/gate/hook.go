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
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Hook guards a coding agent. It reads the agent's event from standard input and writes the answer
// to standard output in the agent's format. The exit code is 0 if an answer was written, and 2 if
// the guard failed, with the reason on standard error; a crash of the Go runtime and a wrong flag
// also end with 2. All supported agents block the tool call if the exit code is 2.
type Hook struct {
	Agent       string `help:"Agent in whose format the guard answers: ${enum}. With auto, the guard recognizes the agent by the event; where it would ask a person, it denies the call." enum:"auto,claude,codex,cursor,gemini,opencode,qwen,copilot,vscode,windsurf,cline,kiro,droid" default:"auto"`
	Install     string `help:"Print the configuration for an agent (claude, codex, cursor, gemini, opencode, qwen, copilot) and the name of the file for it. Without --write nothing is written." placeholder:"AGENT" enum:",claude,codex,cursor,gemini,opencode,qwen,copilot" default:""`
	Ask         string `help:"Whether the agent asks the user about high risk: auto (if the agent is known to stop and ask), always (if its format can express it), never (deny)." enum:"auto,always,never" default:"auto"`
	Strict      bool   `help:"Be one step stricter: ask about medium risk, deny high risk."`
	FailClosed  bool   `help:"Treat a command as high risk if no rule matches it and it is not proven read-only. Off by default, because it stops most builds and tests." name:"fail-closed"`
	Environment string `help:"Environment that the agent's commands reach, such as production." name:"environment"`
	AllowProven bool   `help:"Answer allow if every part of a command is proven read-only, so that the agent runs it without asking the user." name:"allow-proven"`
	NoLog       bool   `help:"Do not log the verdicts." name:"no-log"`
	Write       bool   `help:"With --install: add the entry to the agent's settings, keep a copy of the old settings, and test the hook."`
	Uninstall   bool   `help:"With --install: remove the entry from the agent's settings."`
	Project     bool   `help:"With --write or --uninstall: use the settings of the project in this folder, not the user's own."`
	System      bool   `help:"With --write or --uninstall: use the managed settings of the machine, which users and projects cannot override. Needs root."`
}

// Run answers one event, or prints, installs or removes the hook's configuration.
func (c *Hook) Run(ctx context.Context, o *Output) error {
	switch {
	case c.Install == "" && (c.Write || c.Uninstall || c.Project || c.System):
		return errors.New("--write, --uninstall, --project and --system need --install AGENT")
	case c.Project && c.System:
		return errors.New("--project and --system cannot be combined")
	case c.Write && c.Uninstall:
		return errors.New("--write and --uninstall cannot be combined")
	case c.Write:
		return c.write(ctx, o)
	case c.Uninstall:
		return c.takeOut(o)
	case c.Install != "":
		_, err := io.WriteString(o.Stdout, agents.Agent(c.Install).Instructions(ownPath()))
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
		g.Agent = agents.Agent(c.Agent)
	}
	return g
}

// write adds the hook to the agent's settings and then tests it as doctor does.
func (c *Hook) write(ctx context.Context, o *Output) error {
	program, err := installable()
	if err != nil {
		return err
	}
	a := agents.Agent(c.Install)
	done, err := a.Install(program, c.where())
	if err != nil {
		return err
	}
	result, text := c.written(done)
	found := o.Account().Try(ctx, a, nil)
	for _, f := range found {
		text += fmt.Sprintf("%-8s %s\n", f.State, f.Detail)
	}
	if a == agents.Codex {
		text += "open /hooks in Codex and trust the hook: until then Codex skips it silently\n"
	}
	result["works"] = agents.Works(found)
	if err := o.Result(result, text); err != nil {
		return err
	}
	if !agents.Works(found) {
		return screen.ErrNo
	}
	return nil
}

// where returns the settings that the flags select: the user's, the project's or the system's.
func (c *Hook) where() agents.Where {
	switch {
	case c.System:
		return agents.OfSystem
	case c.Project:
		return agents.OfProject
	}
	return agents.OfUser
}

// takeOut removes the hook from the agent's settings.
func (c *Hook) takeOut(o *Output) error {
	done, err := agents.Agent(c.Install).Uninstall(c.where())
	if err != nil {
		return err
	}
	result, text := c.written(done)
	return o.Result(result, text+"the guard was removed\n")
}

// written describes a change of the settings.
func (c *Hook) written(done agents.Change) (result map[string]any, text string) {
	text = "written: " + done.Settings + "\n"
	if done.Copy != "" {
		text += "old settings: " + done.Copy + "\n"
	}
	return map[string]any{"agent": c.Install, "settings": done.Settings, "copy": done.Copy, "installed": c.Write}, text
}

// installable returns the path of this program for an agent's settings. It refuses a program that
// "go run" has built, because that is removed when it ends.
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

// ownPath returns the absolute path of this program for a configuration, because agents may start
// hooks with another PATH.
func ownPath() string {
	self, err := os.Executable()
	if err != nil || strings.Contains(self, "go-build") { // "go run" removes the program when it ends
		return "countersign"
	}
	return self
}

// PlainHook parses the command line of a hook that --install wrote, without the command line
// parser, which takes longer than a verdict. It returns false for all other command lines.
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
	known := h.Agent == "auto" || slices.Contains(agents.Known, agents.Agent(h.Agent))
	return h, known && slices.Contains([]string{"auto", "always", "never"}, h.Ask)
}
