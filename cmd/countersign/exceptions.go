package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// exceptionsFile is the user's own file: in the folder of the command or the
// nearest above it, else in the home folder. The nearest counts alone.
//
//	{
//	  "askFrom": "medium", "denyFrom": "critical",
//	  "allow": [
//	    {"rule": "git.push.force-branch", "path": "/home/ada/web", "until": "2026-04-01T00:00:00Z", "reason": "rebasing the release"},
//	    {"action": "<64 hex of an action hash>", "reason": "the nightly clean-up"}
//	  ]
//	}
//
// It moves within what the operator of the machine allows in operatorFile,
// {"allowUpTo": "high"}: no exception lowers a rule above that level, and where the
// file says "low" there are none. Writing either file is a high risk for a guarded
// agent. The service and the engine know nothing of them.
const (
	exceptionsFile = ".countersign.json"
	operatorFile   = "/etc/countersign.json"
)

// exceptions is what such a file says.
type exceptions struct {
	AskFrom  string      `json:"askFrom,omitempty"`  // level from which the user is asked; high if absent
	DenyFrom string      `json:"denyFrom,omitempty"` // level from which it is denied; critical if absent
	Allow    []exception `json:"allow,omitempty"`

	place string           // of the file
	most  actionrisk.Level // the operator's word
}

// exception lets one rule, or one exact action, pass.
type exception struct {
	Rule   string `json:"rule,omitempty"`
	Action string `json:"action,omitempty"` // its whole hash
	Path   string `json:"path,omitempty"`   // the folder in and below which it counts; absent: everywhere
	Until  string `json:"until,omitempty"`  // RFC 3339; absent: without end
	Reason string `json:"reason"`
}

// readExceptions finds the file that counts for a folder. A file that cannot be
// read is an error: what it might allow is not guessed, and neither is what it
// might deny.
func readExceptions(cwd string) (exceptions, error) {
	x := exceptions{most: actionrisk.High}
	place := nearestExceptions(cwd)
	if place == "" {
		return x, nil
	}
	x, err := parseExceptions(place)
	if err != nil {
		return x, err
	}
	x.most, err = operatorAllows()
	return x, err
}

func nearestExceptions(cwd string) string {
	var folders []string
	if filepath.IsAbs(cwd) {
		for folder := filepath.Clean(cwd); ; folder = filepath.Dir(folder) {
			folders = append(folders, folder)
			if folder == filepath.Dir(folder) {
				break
			}
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, home)
	}
	for _, folder := range folders {
		place := filepath.Join(folder, exceptionsFile)
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place
		}
	}
	return ""
}

func parseExceptions(place string) (exceptions, error) {
	x := exceptions{place: place, most: actionrisk.High}
	text, err := os.ReadFile(place)
	if err != nil {
		return x, fmt.Errorf("%s cannot be read", place)
	}
	if err := canon.Decode(text, &x); err != nil {
		return x, fmt.Errorf("%s: %w", place, err)
	}
	for name, level := range map[string]string{"askFrom": x.AskFrom, "denyFrom": x.DenyFrom} {
		if level != "" && !slices.Contains([]string{"low", "medium", "high", "critical"}, level) {
			return x, fmt.Errorf("%s: %s must be low, medium, high or critical", place, name)
		}
	}
	for i, e := range x.Allow {
		if err := e.check(); err != nil {
			return x, fmt.Errorf("%s: allow %d: %w", place, i+1, err)
		}
	}
	return x, nil
}

func (e exception) check() error {
	_, bad := time.Parse(time.RFC3339, e.Until)
	switch {
	case (e.Rule == "") == (e.Action == ""):
		return errors.New("rule or action is required, not both")
	case e.Action != "" && (len(e.Action) != 64 || strings.Trim(e.Action, "0123456789abcdef") != ""):
		return errors.New("action must be 64 lower-case hex digits")
	case e.Path != "" && !filepath.IsAbs(e.Path):
		return errors.New("path must be absolute")
	case e.Until != "" && bad != nil:
		return errors.New("until must be an RFC 3339 time")
	case strings.TrimSpace(e.Reason) == "":
		return errors.New("reason is required")
	}
	return nil
}

// operatorAllows is the highest level that an exception may lower: high where the
// operator has said nothing.
func operatorAllows() (actionrisk.Level, error) {
	text, err := os.ReadFile(operatorFile)
	if errors.Is(err, fs.ErrNotExist) {
		return actionrisk.High, nil
	}
	var said struct {
		AllowUpTo string `json:"allowUpTo"`
	}
	if err == nil {
		err = canon.Decode(text, &said)
	}
	if err != nil || !slices.Contains([]string{"low", "medium", "high", "critical"}, said.AllowUpTo) {
		return actionrisk.Low, fmt.Errorf("%s: allowUpTo must be low, medium, high or critical", operatorFile)
	}
	return levelOf(said.AllowUpTo), nil
}

// counts says whether an exception is in force for a folder at a time.
func (e exception) counts(cwd string, now time.Time) bool {
	if until, err := time.Parse(time.RFC3339, e.Until); e.Until != "" && (err != nil || !now.Before(until)) {
		return false
	}
	cwd = filepath.Clean(cwd)
	return e.Path == "" || cwd == filepath.Clean(e.Path) || strings.HasPrefix(cwd, strings.TrimSuffix(filepath.Clean(e.Path), "/")+"/")
}

// lower takes the rules that are excepted out of a verdict. What is left decides:
// the worst rule that is not excepted. note says which exceptions were used.
func (x exceptions) lower(score actionrisk.ScoreOutput, cwd string, now time.Time) (left actionrisk.ScoreOutput, note string) {
	used := func(e exception) string { return fmt.Sprintf("allowed by %s (%s)", x.place, e.Reason) }
	left = score
	left.MatchedRules = nil
	level := actionrisk.Low
	for _, r := range score.MatchedRules {
		i := slices.IndexFunc(x.Allow, func(e exception) bool {
			return e.counts(cwd, now) && (e.Action != "" && e.Action == score.ActionHash || e.Rule != "" && e.Rule == r.ID)
		})
		if i >= 0 && levelOf(r.Severity) <= x.most {
			note = used(x.Allow[i])
			continue
		}
		left.MatchedRules = append(left.MatchedRules, r)
		level = max(level, levelOf(r.Severity))
	}
	if note == "" {
		return score, "" // also what no rule raised: an action of unknown parts
	}
	left.Risk = level.String()
	return left, note
}

// verdict is what becomes of a level, by the file's own levels. They may make it
// stricter without bound, and milder up to what the operator allows.
func (x exceptions) verdict(level actionrisk.Level, strict bool) decision {
	usual := verdictOf(level, strict)
	if x.AskFrom == "" && x.DenyFrom == "" {
		return usual
	}
	wanted := pass
	if x.AskFrom != "" && level >= levelOf(x.AskFrom) || x.AskFrom == "" && usual != pass {
		wanted = query
	}
	if x.DenyFrom != "" && level >= levelOf(x.DenyFrom) || x.DenyFrom == "" && usual == deny {
		wanted = deny
	}
	if rank(wanted) < rank(usual) && level > x.most {
		return usual
	}
	return wanted
}

func rank(d decision) int { return slices.Index([]decision{pass, query, deny}, d) }

// describeExceptions says which file counts in a folder; nothing where there is none.
func describeExceptions(folder string) []finding {
	x, err := readExceptions(folder)
	switch {
	case err != nil:
		return []finding{{"hook", "bad", "blocks everything: " + err.Error()}}
	case x.place == "":
		return nil
	}
	return []finding{{"hook", "ok", fmt.Sprintf("%s counts here: %d exceptions, up to %s risk", x.place, len(x.Allow), x.most)}}
}

// gateAllowCmd writes an exception.
type gateAllowCmd struct {
	Rule   string        `arg:"" optional:"" help:"Id of the rule, as the verdict names it."`
	Action string        `help:"Instead of a rule: the hash of one exact action, as gate log shows it." placeholder:"HASH"`
	Here   bool          `help:"Only in this folder and below; the exception stands in its .countersign.json."`
	For    time.Duration `help:"For how long, such as 24h (1d: 24h); without it, until it is taken out." placeholder:"TIME" type:"days"`
	Reason string        `required:"" help:"Why; it stands in the file." placeholder:"TEXT"`
}

// Run adds the exception to the file of this folder, or of the home folder.
func (c *gateAllowCmd) Run(o *output) error {
	folder, err := os.UserHomeDir()
	here, err2 := os.Getwd()
	if c.Here {
		folder, err = here, err2
	}
	if err != nil {
		return fmt.Errorf("find the folder: %w", err)
	}
	e := exception{Rule: c.Rule, Action: c.Action, Reason: c.Reason}
	if c.Here {
		e.Path = here
	}
	if c.For > 0 {
		e.Until = time.Now().Add(c.For).UTC().Format(time.RFC3339)
	}
	if e.Rule != "" && !slices.ContainsFunc(actionrisk.Rules(), func(r actionrisk.Rule) bool { return r.ID == e.Rule }) {
		return fmt.Errorf("there is no rule of this name; countersign gate \"COMMAND\" names those that a command matches")
	}
	if err := e.check(); err != nil {
		return err
	}
	place := filepath.Join(folder, exceptionsFile)
	if err := addException(place, e); err != nil {
		return err
	}
	text := "written to " + place + "\n"
	if most, err := operatorAllows(); err == nil {
		text += "it lowers rules up to " + most.String() + " risk\n"
	}
	return o.result(e, text)
}

// addException keeps whatever else stands in the file.
func addException(place string, e exception) error {
	members := map[string]jsontext.Value{}
	text, err := os.ReadFile(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read %s: %w", place, err)
	default:
		if _, err := parseExceptions(place); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &members); err != nil {
			return err
		}
	}
	var list []exception
	if members["allow"] != nil {
		if err := json.Unmarshal(members["allow"], &list); err != nil {
			return err
		}
	}
	if members["allow"], err = json.Marshal(append(list, e)); err != nil {
		return err
	}
	whole, err := json.Marshal(members, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return files.Replace(place, append(whole, '\n'))
}
