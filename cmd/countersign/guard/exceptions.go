package guard

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

// Exceptions is what such a file says.
type Exceptions struct {
	File string `json:"-"` // where it says so; empty: there is none

	AskFrom  string      `json:"askFrom,omitempty"`  // level from which the user is asked; high if absent
	DenyFrom string      `json:"denyFrom,omitempty"` // level from which it is denied; critical if absent
	Allow    []Exception `json:"allow,omitempty"`

	most actionrisk.Level // the operator's word
}

// Exception lets one rule, or one exact action, pass.
type Exception struct {
	Rule   string `json:"rule,omitempty"`
	Action string `json:"action,omitempty"` // its whole hash
	Path   string `json:"path,omitempty"`   // the folder in and below which it counts; absent: everywhere
	Until  string `json:"until,omitempty"`  // RFC 3339; absent: without end
	Reason string `json:"reason"`
}

// ReadExceptions finds the file that counts for a folder. A file that cannot be
// read is an error: what it might allow is not guessed, and neither is what it
// might deny.
func ReadExceptions(cwd string) (Exceptions, error) {
	place := nearestExceptions(cwd)
	if place == "" {
		return Exceptions{}, nil
	}
	x, err := parseExceptions(place)
	if err != nil {
		return x, err
	}
	x.most, err = AllowedUpTo()
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

func parseExceptions(place string) (Exceptions, error) {
	x := Exceptions{File: place}
	text, err := os.ReadFile(place)
	if err != nil {
		return x, fmt.Errorf("%s cannot be read", place)
	}
	if err := canon.Decode(text, &x); err != nil {
		return x, fmt.Errorf("%s: %w", place, err)
	}
	switch {
	case x.AskFrom != "" && !isLevel(x.AskFrom):
		return x, fmt.Errorf("%s: askFrom must be low, medium, high or critical", place)
	case x.DenyFrom != "" && !isLevel(x.DenyFrom):
		return x, fmt.Errorf("%s: denyFrom must be low, medium, high or critical", place)
	}
	for i, e := range x.Allow {
		if err := e.check(); err != nil {
			return x, fmt.Errorf("%s: allow %d: %w", place, i+1, err)
		}
	}
	return x, nil
}

func (e Exception) check() error {
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

// AllowedUpTo is the highest level that an exception may lower: high where the operator
// of the machine has said nothing.
func AllowedUpTo() (actionrisk.Level, error) {
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
	if err != nil || !isLevel(said.AllowUpTo) {
		return actionrisk.Low, fmt.Errorf("%s: allowUpTo must be low, medium, high or critical", operatorFile)
	}
	return levelOf(said.AllowUpTo), nil
}

// counts says whether an exception is in force for a folder at a time.
func (e Exception) counts(cwd string, now time.Time) bool {
	if until, err := time.Parse(time.RFC3339, e.Until); e.Until != "" && (err != nil || !now.Before(until)) {
		return false
	}
	cwd = filepath.Clean(cwd)
	return e.Path == "" || cwd == filepath.Clean(e.Path) || strings.HasPrefix(cwd, strings.TrimSuffix(filepath.Clean(e.Path), "/")+"/")
}

// Apply is what the exceptions make of a verdict in a folder: what is left of it, and the
// guard's decision on that. note says which exceptions were used.
func (x Exceptions) Apply(score actionrisk.ScoreOutput, cwd string, now time.Time) (left actionrisk.ScoreOutput, d Decision, note string) {
	left, note = x.lower(score, cwd, now)
	return left, x.verdict(levelOf(left.Risk), false), note
}

// lower takes the rules that are excepted out of a verdict. What is left decides:
// the worst rule that is not excepted. note says which exceptions were used.
func (x Exceptions) lower(score actionrisk.ScoreOutput, cwd string, now time.Time) (left actionrisk.ScoreOutput, note string) {
	left = score
	left.MatchedRules = nil
	level := actionrisk.Low
	for _, r := range score.MatchedRules {
		i := slices.IndexFunc(x.Allow, func(e Exception) bool {
			return e.counts(cwd, now) && (e.Action != "" && e.Action == score.ActionHash || e.Rule != "" && e.Rule == r.ID)
		})
		if i >= 0 && levelOf(r.Severity) <= x.most {
			note = fmt.Sprintf("allowed by %s (%s)", x.File, x.Allow[i].Reason)
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
func (x Exceptions) verdict(level actionrisk.Level, strict bool) Decision {
	usual := verdictOf(level, strict)
	if x.AskFrom == "" && x.DenyFrom == "" {
		return usual
	}
	wanted := Pass
	if x.AskFrom != "" && level >= levelOf(x.AskFrom) || x.AskFrom == "" && usual != Pass {
		wanted = Ask
	}
	if x.DenyFrom != "" && level >= levelOf(x.DenyFrom) || x.DenyFrom == "" && usual == Deny {
		wanted = Deny
	}
	if rank(wanted) < rank(usual) && level > x.most {
		return usual
	}
	return wanted
}

func rank(d Decision) int { return slices.Index([]Decision{Pass, Ask, Deny}, d) }

// Allow adds an exception to the file of a folder and names the file. Whatever else stands
// in it is kept.
func Allow(folder string, e Exception) (file string, err error) {
	if e.Rule != "" && !slices.ContainsFunc(actionrisk.Rules(), func(r actionrisk.Rule) bool { return r.ID == e.Rule }) {
		return "", errors.New(`there is no rule of this name; countersign gate "COMMAND" names those that a command matches`)
	}
	if err := e.check(); err != nil {
		return "", err
	}
	file = filepath.Join(folder, exceptionsFile)
	return file, e.addTo(file)
}

func (e Exception) addTo(place string) error {
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
	var list []Exception
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
