package gate

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
)

// Allow adds an exception to the user's settings after the user has confirmed it at the terminal.
type Allow struct {
	Rule    string        `arg:"" optional:"" help:"Id of the rule, as a verdict shows it. Default: offer the last blocked action."`
	Action  string        `help:"Instead of a rule: allow one exact action, named by its hash (see gate log)." placeholder:"HASH"`
	Once    string        `help:"Instead of a rule: allow once the action that was blocked with this code." placeholder:"CODE"`
	Session bool          `help:"The exception is valid only in the agent session of the last blocked action."`
	Task    bool          `help:"The exception is valid only in the agent session of the last blocked action, and for one hour."`
	Here    bool          `help:"The exception is valid only in this folder and its subfolders, and in the same folder of the repository's other worktrees."`
	For     time.Duration `help:"How long the exception lasts, such as 24h or 7d. Default: until it is removed." placeholder:"TIME" type:"days"`
	Reason  string        `help:"The reason, stored with the exception." placeholder:"TEXT"`
}

// onceWithin is the time for which an exception of --once lasts. taskWithin is the time for which
// --task allows an action.
const onceWithin, taskWithin = 15 * time.Minute, time.Hour

// within returns the time that is d from now, in the form of an exception's Until.
func within(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

// Run asks the user and adds the exception.
func (c *Allow) Run(o *Output) error {
	account := o.Account()
	e := guard.Exception{Rule: c.Rule, Action: c.Action, Reason: c.Reason}
	what := "rule " + c.Rule
	switch {
	case c.Once != "" && (c.Rule != "" || c.Action != ""), c.Rule != "" && c.Action != "":
		return errors.New("give only one of these: a rule, --action, --once")
	case c.Action != "":
		what = "the action " + c.Action
	case c.Once != "" || c.Rule == "":
		return c.blocked(o, account)
	}
	return c.add(o, account, e, what)
}

// blocked offers to allow the action that the guard blocked last, or the one with the code of
// --once.
func (c *Allow) blocked(o *Output, account guard.Account) error {
	b, err := account.BlockedBy(c.Once)
	if err != nil {
		return err
	}
	if err := account.MayAllow(b.Level); err != nil {
		return err
	}
	e := guard.Exception{Action: b.Action, Reason: c.Reason}
	if e.Reason == "" {
		e.Reason = "blocked at " + b.At
	}
	shown := fmt.Sprintf("%s in %s\n(%s risk: %s)", b.Command, b.Cwd, b.Level, strings.Join(b.Rules, ", "))
	if c.Once != "" {
		e.Once, e.Until = true, within(onceWithin)
		return c.add(o, account, e, shown)
	}
	answer, err := o.Ask(screen.Printable(shown) + "\nLet it pass [o]nce, in this [s]ession, for this [t]ask (one hour), [a]lways, or [n]ot? ")
	if err != nil {
		return err
	}
	switch answer = strings.ToLower(answer); answer {
	case "o", "once":
		e.Once, e.Until = true, within(onceWithin)
	case "s", "session", "t", "task":
		if e.Session = b.Session; e.Session == "" {
			return errNoSession
		}
		if answer[0] == 't' {
			e.Until = within(taskWithin)
		}
	case "a", "always":
	default:
		return errNotAllowed
	}
	return written(o, account, e)
}

var (
	errNotAllowed = errors.New("nothing was allowed")
	errNoSession  = errors.New("the agent's event has no session id")
)

// add asks the user to confirm an exception and writes it.
func (c *Allow) add(o *Output, account guard.Account, e guard.Exception, what string) error {
	if c.Session || c.Task {
		last, err := account.BlockedBy("")
		switch {
		case err != nil:
			return err
		case last.Session == "":
			return errNoSession
		}
		e.Session = last.Session
		if c.Task {
			e.Until = within(taskWithin)
		}
	}
	if c.For > 0 {
		e.Until = within(c.For)
	}
	if c.Here {
		here, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the folder: %w", err)
		}
		e.Path = here
	}
	answer, err := o.Ask("Let this pass: " + screen.Printable(what) + limits(e) + " [y/N]? ")
	if err != nil {
		return err
	}
	if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return errNotAllowed
	}
	return written(o, account, e)
}

// limits describes where and how long an exception applies.
func limits(e guard.Exception) (text string) {
	if e.Once {
		text += ", once"
	}
	if e.Path != "" {
		text += ", in " + screen.Printable(e.Path)
	}
	if e.Session != "" {
		text += ", in the session of the last blocked action"
	}
	if e.Until != "" {
		text += ", until " + e.Until
	}
	return text
}

func written(o *Output, account guard.Account, e guard.Exception) error {
	file, err := account.Allow(e)
	if err != nil {
		return err
	}
	return o.Result(e, "written to "+file+"\n")
}

// Trust permits the settings file of a project to relax the guard.
type Trust struct {
	Folder string `arg:"" optional:"" default:"." type:"path" help:"Folder of the project. Default: the current folder."`
}

// Run shows the file and asks the user to confirm.
func (c *Trust) Run(o *Output) error {
	account := o.Account()
	file, text, asks, err := account.ProjectFile(c.Folder)
	if err != nil {
		return err
	}
	if asks == "" {
		return o.Result(map[string]any{"file": file, "trusted": false}, file+" does not relax the guard, so it applies without trust\n")
	}
	answer, err := o.Ask(fmt.Sprintf("%s:\n\n%s\nIt requests %s. Trust exactly this text in this repository [y/N]? ", file, shownText(text), asks))
	if err != nil {
		return err
	}
	if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return errors.New("the file was not trusted")
	}
	if err := account.Trust(file, text, time.Now()); err != nil {
		return err
	}
	return o.Result(map[string]any{"file": file, "trusted": true}, "trusted: "+file+"\n")
}

// shownText returns a text for the terminal, with control characters replaced on each line.
func shownText(text []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		b.WriteString("  " + screen.Printable(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String()
}
