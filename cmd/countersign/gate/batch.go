package gate

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// batchLine is the verdict on one line of a batch. Secrets in Command are masked, because the
// result may be shown to others.
type batchLine struct {
	Line    int      `json:"line"`
	Risk    string   `json:"risk"` // the risk level, or "refused" if the line is not a valid action
	Stopped bool     `json:"requiresApproval"`
	Rules   []string `json:"matchedRuleIds"`
	Command string   `json:"command"`
	Error   string   `json:"error,omitempty"`
}

// batchResult is the summary of a batch.
type batchResult struct {
	Commands int            `json:"commands"`
	Levels   map[string]int `json:"levels"`
	Stopped  int            `json:"stopped"` // number of commands that need approval
	Rules    map[string]int `json:"rules"`   // number of matches, by rule
	Lines    []batchLine    `json:"lines"`
}

var (
	// historyTime and historyStart match the time stamps in shell histories: bash writes them on a
	// line of their own, zsh before the command.
	historyTime  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^#\d{9,}$`) })
	historyStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^: \d+:\d+;`) })
)

// batch judges each line of a file, so that a team can see what the guard would block before they
// install it. The exit code is 1 if a command needs approval.
func (c *Verdict) batch(o *Output) error {
	text, err := os.Open(c.Batch)
	if c.Batch == "-" {
		text, err = os.Stdin, nil
	}
	if err != nil {
		return fmt.Errorf("--batch: %w", files.WithoutPath(err))
	}
	defer text.Close()
	result, err := c.judgeLines(text)
	if err != nil {
		return err
	}
	if c.CSV {
		err = writeCSV(o.Stdout, result.Lines)
	} else if err = o.Result(result, result.text(o)); err == nil && !o.JSON {
		fmt.Fprintln(o.Stderr, result.summary())
	}
	if err != nil || result.Stopped == 0 {
		return err
	}
	return screen.ErrNo
}

func (c *Verdict) judgeLines(text io.Reader) (batchResult, error) {
	result := batchResult{Levels: map[string]int{}, Rules: map[string]int{}, Lines: []batchLine{}}
	scanner := bufio.NewScanner(text)
	scanner.Buffer(nil, maxCommand)
	number := 1
	for ; scanner.Scan(); number++ {
		line := strings.TrimSpace(historyStart().ReplaceAllString(scanner.Text(), ""))
		if line == "" || historyTime().MatchString(line) || strings.HasPrefix(line, "#") {
			continue
		}
		judged := c.judgeLine(number, line)
		result.Commands++
		result.Levels[judged.Risk]++
		if judged.Stopped {
			result.Stopped++
		}
		for _, rule := range judged.Rules {
			result.Rules[rule]++
		}
		result.Lines = append(result.Lines, judged)
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return result, fmt.Errorf("--batch: line %d is longer than 1 MiB", number)
	}
	return result, scanner.Err()
}

// judgeLine judges one line, which is an action as JSON, or a command to which the flags apply.
func (c *Verdict) judgeLine(number int, line string) batchLine {
	action := c.action(line)
	if strings.HasPrefix(line, "{") {
		var written actionrisk.Action
		if canon.Decode([]byte(line), &written) == nil && written.Command != "" {
			action = written
		}
	}
	shown := batchLine{Line: number, Command: actionrisk.Mask(action.Command), Rules: []string{}}
	if err := actionrisk.Check(action); err != nil {
		shown.Risk, shown.Error, shown.Stopped = "refused", err.Error(), true
		return shown
	}
	score := actionrisk.ScoreAction(action)
	shown.Risk, shown.Stopped, shown.Rules = score.Risk, score.RequiresApproval, score.MatchedRuleIDs
	return shown
}

// text returns the commands that need approval, and the counts.
func (r batchResult) text(o *Output) string {
	stopped := screen.Table{Heads: []string{"line", "level", "rules", "command"}}
	for _, l := range r.Lines {
		if l.Stopped {
			stopped.Add(strconv.Itoa(l.Line), l.Risk, strings.Join(l.Rules, ","), screen.FirstRunes(l.Command, 100))
		}
	}
	text := o.Table(stopped)
	if !o.Terminal {
		return text
	}
	if text != "" {
		text += "\n"
	}
	levels := screen.Table{Heads: []string{"level", "commands", "share"}}
	for _, level := range []string{"low", "medium", "high", "critical", "refused"} {
		if n := r.Levels[level]; n > 0 {
			levels.Add(level, strconv.Itoa(n), fmt.Sprintf("%.1f %%", 100*float64(n)/float64(r.Commands)))
		}
	}
	text += o.Table(levels) + "\n"
	rules := screen.Table{Heads: []string{"rule", "times"}}
	for _, rule := range sortedByCount(r.Rules)[:min(10, len(r.Rules))] {
		rules.Add(rule, strconv.Itoa(r.Rules[rule]))
	}
	if len(rules.Rows) > 0 {
		text += o.Table(rules) + "\n"
	}
	return text
}

func (r batchResult) summary() string {
	return fmt.Sprintf("%d of %d commands need approval", r.Stopped, r.Commands)
}

func writeCSV(to io.Writer, lines []batchLine) error {
	w := csv.NewWriter(to)
	if err := w.Write([]string{"line", "risk", "requiresApproval", "matchedRuleIds", "command", "error"}); err != nil {
		return err
	}
	for _, l := range lines {
		command := l.Command
		if command != "" && slices.Contains([]byte("=+-@\t\r"), command[0]) {
			command = "'" + command // so that a spreadsheet does not run the cell as a formula
		}
		if err := w.Write([]string{strconv.Itoa(l.Line), l.Risk, strconv.FormatBool(l.Stopped), strings.Join(l.Rules, " "), command, l.Error}); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// sortedByCount returns the names, the highest count first.
func sortedByCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
}
