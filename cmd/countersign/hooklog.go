package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

// The guard's log is a file of its own on this machine: one line of canonical JSON
// for each verdict, with secrets masked. Each line names the hash of the one
// before; the file beside it, gate.head, names the number and hash of the last, so
// that a log that was cut or edited is noticed. What cannot be logged is decided
// all the same: a full disk must not stop anybody's work.
const (
	logName  = "gate.log"
	headName = "gate.head"
)

// logged is one line.
type logged = guardlog.Line

// logHead is where the log ends, or where something has read it to.
type logHead struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
}

// stateFolder is where the log lies: $XDG_STATE_HOME/countersign, or
// ~/.local/state/countersign.
func stateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "countersign"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "countersign"), err
}

// appendLog adds a line under a lock, so that guards that run at once make one
// chain.
func appendLog(folder string, line logged) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, logName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lockFile(f); err != nil {
		return err
	}
	head, err := readHead(filepath.Join(folder, headName))
	if err != nil {
		return err
	}
	line.Number, line.Before = head.Number+1, head.Hash
	if line.Hash, err = line.Sum(); err != nil {
		return err
	}
	text, err := canon.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	head = logHead{line.Number, line.Hash}
	if text, err = canon.Marshal(head); err != nil {
		return err
	}
	return files.Replace(filepath.Join(folder, headName), text)
}

// readHead reads a place in the log, which a file names; without one, its begin.
func readHead(place string) (head logHead, err error) {
	text, err := os.ReadFile(place)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	return head, err
}

// readLog reads the whole log and checks its chain. What is wrong with it is said
// in words; the lines are there nevertheless.
func readLog(folder string) (lines []logged, wrong string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, logName))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil {
		return nil, "", err
	}
	head, err := readHead(filepath.Join(folder, headName))
	if err != nil {
		wrong = "its end is not known: gate.head cannot be read"
	}
	var last logHead
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, maxEvent)
	for scanner.Scan() {
		var line logged
		if json.Unmarshal(scanner.Bytes(), &line) != nil {
			return lines, fmt.Sprintf("line %d cannot be read", len(lines)+1), nil
		}
		hash, err := line.Sum()
		switch {
		case err != nil:
			return lines, "", err
		case wrong != "":
		case hash != line.Hash:
			wrong = fmt.Sprintf("line %d was edited", line.Number)
		case line.Number != last.Number+1 || line.Before != last.Hash:
			wrong = fmt.Sprintf("lines between %d and %d are missing", last.Number, line.Number)
		}
		last = logHead{line.Number, line.Hash}
		lines = append(lines, line)
	}
	if wrong == "" && last != head {
		wrong = fmt.Sprintf("it ends at line %d, and had %d: its end was cut", last.Number, head.Number)
	}
	return lines, wrong, scanner.Err()
}

// gateLogCmd shows the log, or sends it to a ledger.
type gateLogCmd struct {
	Show gateLogShowCmd `cmd:"" default:"withargs" help:"Show the log (the word show may be left out). Exit 1: the log was cut or edited."`
	Push gateLogPushCmd `cmd:"" help:"Send what is new in the log to the team's ledger, signed with a key of this machine."`
}

// gateLogShowCmd shows the log.
type gateLogShowCmd struct {
	Blocked bool `help:"Only what was asked about or denied."`
	Last    int  `help:"How many of the newest lines; 0: all." default:"50" placeholder:"N"`
}

// Run prints the log; a log that was cut or edited is exit code 1.
func (c *gateLogShowCmd) Run(o *output) error {
	lines, wrong, err := ownLog()
	if err != nil {
		return err
	}
	shown := []logged{}
	for _, l := range lines {
		if !c.Blocked || l.Decision == string(deny) || l.Decision == string(query) || l.Decision == "unseen" {
			shown = append(shown, l)
		}
	}
	if c.Last > 0 && len(shown) > c.Last {
		shown = shown[len(shown)-c.Last:]
	}
	var b strings.Builder
	for _, l := range shown {
		fmt.Fprintf(&b, "%s  %-6s  %-8s  %-8s  %s", l.At, l.Agent, l.Decision, l.Level, printable(l.Command))
		if len(l.Rules) > 0 {
			fmt.Fprintf(&b, "  (%s)", strings.Join(l.Rules, ", "))
		}
		if l.Note != "" {
			fmt.Fprintf(&b, "  %s", printable(l.Note))
		}
		b.WriteByte('\n')
	}
	if len(lines) == 0 {
		b.WriteString("nothing is logged yet: countersign gate hook --install claude --write puts a guard in place\n")
	}
	if wrong == "" {
		fmt.Fprintf(&b, "%d lines, whole\n", len(lines))
	} else {
		fmt.Fprintf(&b, "NOT WHOLE: %s\n", wrong)
	}
	if err := o.result(map[string]any{"lines": shown, "whole": wrong == "", "wrong": wrong}, b.String()); err != nil {
		return err
	}
	if wrong != "" {
		return errNo
	}
	return nil
}

func ownLog() (lines []logged, wrong string, err error) {
	folder, err := stateFolder()
	if err != nil {
		return nil, "", err
	}
	lines, wrong, err = readLog(folder)
	if err != nil {
		return nil, "", fmt.Errorf("read the log: %w", err)
	}
	return lines, wrong, nil
}

// gateStatsCmd counts the log.
type gateStatsCmd struct {
	Since time.Duration `help:"How far back, such as 7d." default:"168h" type:"days"`
}

// stats is what it counts.
type stats struct {
	Since  string         `json:"since"`
	Calls  int            `json:"calls"`
	Passed int            `json:"passed"`
	Proven int            `json:"proven"` // prompts saved: proven read-only, so that the agent did not ask either
	Asked  int            `json:"asked"`
	Denied int            `json:"denied"`
	Unseen int            `json:"unseen"` // tools that ran without a verdict
	Rules  map[string]int `json:"rules"`
	Whole  bool           `json:"whole"`
}

// Run prints the numbers.
func (c *gateStatsCmd) Run(o *output) error {
	lines, wrong, err := ownLog()
	if err != nil {
		return err
	}
	from := time.Now().Add(-c.Since)
	s := stats{Since: from.UTC().Format(time.RFC3339), Rules: map[string]int{}, Whole: wrong == ""}
	for _, l := range lines {
		if at, err := time.Parse(time.RFC3339, l.At); err != nil || at.Before(from) || l.Decision == "canary" {
			continue
		}
		switch l.Decision {
		case "unseen":
			s.Unseen++
			continue
		case "proven":
			s.Proven++
		case string(query):
			s.Asked++
		case string(deny):
			s.Denied++
		default:
			s.Passed++
		}
		s.Calls++
		if l.Decision == string(query) || l.Decision == string(deny) {
			for _, r := range l.Rules {
				s.Rules[r]++
			}
		}
	}
	return o.result(s, s.text(wrong))
}

func (s stats) text(wrong string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "since %s: %d calls, %d passed, %d proven read-only (prompts saved), %d asked about, %d denied\n", s.Since, s.Calls, s.Passed, s.Proven, s.Asked, s.Denied)
	if s.Unseen > 0 {
		fmt.Fprintf(&b, "ALARM: %d tools ran without a verdict\n", s.Unseen)
	}
	for _, rule := range sortedByCount(s.Rules) {
		fmt.Fprintf(&b, "  %4d  %s\n", s.Rules[rule], rule)
	}
	if wrong != "" {
		fmt.Fprintf(&b, "NOT WHOLE: %s\n", wrong)
	}
	return b.String()
}

// seenWithin is how much of the log's end is looked through for a tool call.
const seenWithin = 256 << 10

// sawCall says whether the end of the log has a verdict on a tool call. A log that
// cannot be read has seen everything: it must not raise an alarm for itself.
func sawCall(folder, call string) bool {
	f, err := os.Open(filepath.Join(folder, logName))
	if err != nil {
		return true
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > seenWithin {
		if _, err := f.Seek(-seenWithin, io.SeekEnd); err != nil {
			return true
		}
	}
	text, err := io.ReadAll(f)
	quoted, err2 := json.Marshal(call)
	return err != nil || err2 != nil || bytes.Contains(text, append([]byte(`"call":`), quoted...))
}

// sortedByCount are the names with the most first.
func sortedByCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
}
