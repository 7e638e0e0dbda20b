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

// projectFile is the name of a settings file in a folder of a project.
const projectFile = ".countersign.json"

// Settings is what one settings file says.
//
//	{
//	  "askFrom": "medium", "denyFrom": "critical", "observe": false,
//	  "allow": [
//	    {"rule": "git.push.force-branch", "path": "/home/ada/web", "until": "2026-04-01T00:00:00Z", "reason": "rebasing the release"},
//	    {"action": "<64 hex of an action hash>", "reason": "the nightly clean-up"}
//	  ]
//	}
//
// There are three kinds: of the machine's operator, of the user, and of a project. Any of
// them makes the guard stricter. The operator's and the user's may loosen it, a project's
// only after the user trusted exactly this text (gate trust), and none of them if others
// than the user and root can write it.
type Settings struct {
	AskFrom  string      `json:"askFrom,omitempty"`  // level from which the user is asked; high if absent
	DenyFrom string      `json:"denyFrom,omitempty"` // level from which it is denied; critical if absent
	Observe  *bool       `json:"observe,omitempty"`  // true: nothing is stopped, the log says what would have been
	Allow    []Exception `json:"allow,omitempty"`

	// AllowUpTo, in the operator's file only, is the highest level that anything loosens:
	// high if absent.
	AllowUpTo string `json:"allowUpTo,omitempty"`
}

// Exception lets one rule, or one exact action, pass.
type Exception struct {
	Rule    string `json:"rule,omitempty"`
	Action  string `json:"action,omitempty"`  // its whole hash
	Path    string `json:"path,omitempty"`    // the folder in and below which it counts; absent: everywhere
	Session string `json:"session,omitempty"` // the agent's session in which it counts; absent: in all
	Until   string `json:"until,omitempty"`   // RFC 3339; absent: without end
	Once    bool   `json:"once,omitempty"`    // it is used up by the first action
	Reason  string `json:"reason"`

	file string // in which it is written
}

// source is one file of settings and whether it may loosen the guard.
type source struct {
	Settings
	file    string
	folder  string // of a project's file: all it may loosen is in it
	loosens bool
	why     string // why it does not
}

// readSource reads one file; there is none if it does not exist. A file that cannot be
// read is an error: what it might deny is not guessed.
func readSource(file string) (s source, there bool, text []byte, err error) {
	s.file = file
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir(), err != nil && notAFolder(err):
		return s, false, nil, nil
	case err == nil && !info.Mode().IsRegular():
		return s, true, nil, fmt.Errorf("%s is not a regular file", file)
	}
	if text, err = readBounded(file, maxSettings); err != nil {
		return s, true, nil, fmt.Errorf("%s cannot be read", file)
	}
	if err := canon.Decode(text, &s.Settings); err != nil {
		return s, true, nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := s.check(); err != nil {
		return s, true, nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range s.Allow {
		s.Allow[i].file = file
	}
	return s, true, text, nil
}

func (s Settings) check() error {
	for _, level := range [...]struct{ name, value string }{{"askFrom", s.AskFrom}, {"denyFrom", s.DenyFrom}, {"allowUpTo", s.AllowUpTo}} {
		if level.value != "" && !isLevel(level.value) {
			return fmt.Errorf("%s must be low, medium, high or critical", level.name)
		}
	}
	for i, e := range s.Allow {
		if err := e.check(); err != nil {
			return fmt.Errorf("allow %d: %w", i+1, err)
		}
	}
	return nil
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

// asks says in words what a file would loosen if it were trusted; empty: nothing.
func (s Settings) asks() string {
	var parts []string
	if s.AskFrom != "" && levelOf(s.AskFrom) > actionrisk.High {
		parts = append(parts, "askFrom "+s.AskFrom)
	}
	if s.Observe != nil && *s.Observe {
		parts = append(parts, "observe")
	}
	if n := len(s.Allow); n > 0 {
		parts = append(parts, fmt.Sprintf("%d exceptions", n))
	}
	return strings.Join(parts, ", ")
}

// Rules is what all files that count come to, for one action or one folder.
type Rules struct {
	Files []string // those that were read

	sources []source
	most    actionrisk.Level // the highest level that anything may loosen
	session string           // the folder that the session runs in
	acts    []string         // the folders that the action is about
	account Account
}

// ReadRules reads the files that count for a session in a folder and an action in others.
// A project's file counts from the folder of the session, and of what the command is about
// (git -C, cd); it loosens only where the session and all of that are in its own folder.
func (a Account) ReadRules(session string, acts []string) (Rules, error) {
	r := Rules{most: actionrisk.High, session: session, acts: acts, account: a}
	if len(r.acts) == 0 {
		r.acts = []string{session}
	}
	if err := r.add(a.Machine, ""); err != nil {
		return r, err
	}
	if n := len(r.sources); n > 0 && r.sources[0].AllowUpTo != "" {
		if most := levelOf(r.sources[0].AllowUpTo); r.sources[0].loosens || most < r.most {
			r.most = most
		}
	}
	users := a.userFiles()
	for _, file := range append(users, a.allowedFile()) {
		if err := r.add(file, ""); err != nil {
			return r, err
		}
	}
	for _, start := range append([]string{session}, acts...) {
		for _, folder := range upFrom(start) {
			if file := filepath.Join(folder, projectFile); !slices.Contains(r.Files, file) && !slices.Contains(users, file) {
				if err := r.add(file, folder); err != nil {
					return r, err
				}
			}
		}
	}
	return r, nil
}

// RulesFor are those for a command of which the engine told what it does in a folder.
func (a Account) RulesFor(trace actionrisk.Trace, session, cwd string) (Rules, error) {
	return a.ReadRules(session, a.actsIn(trace, cwd))
}

// upFrom are a folder and those above it; none of a path that is not absolute. Of a folder
// that is reached through a link those above its real place count, too.
func upFrom(folder string) (out []string) {
	for _, at := range []string{folder, realPath(folder)} {
		for at = filepath.Clean(at); filepath.IsAbs(at) && !slices.Contains(out, at); at = filepath.Dir(at) {
			out = append(out, at)
		}
	}
	return out
}

// add reads one file; a folder says that it is a project's.
func (r *Rules) add(file, folder string) error {
	if file == "" {
		return nil
	}
	s, there, text, err := readSource(file)
	if err != nil || !there {
		return err
	}
	if s.AllowUpTo != "" && file != r.account.Machine {
		return fmt.Errorf("%s: allowUpTo counts in %s only", file, r.account.Machine)
	}
	s.folder = folder
	switch others := r.account.writtenByOthers(file); {
	case others != "":
		s.why = others
	case folder != "" && !r.account.trusts(folder, text):
		s.why = "it is not trusted: " + Name + " gate trust shows it"
	default:
		s.loosens = folder == "" || !slices.ContainsFunc(append([]string{r.session}, r.acts...), func(act string) bool {
			return !within(act, folder) || !sameRepository(act, folder)
		})
	}
	r.Files, r.sources = append(r.Files, file), append(r.sources, s)
	return nil
}

// Ignored says in words what files ask for that may only make the guard stricter.
func (r Rules) Ignored() (out []string) {
	for _, s := range r.sources {
		if asks := s.asks(); asks != "" && s.why != "" {
			out = append(out, fmt.Sprintf("%s asks for %s, which does not count: %s", s.file, asks, s.why))
		}
	}
	return out
}

// exceptions are all that count.
func (r Rules) exceptions() (out []Exception) {
	for _, s := range r.sources {
		if !s.loosens {
			continue
		}
		for _, e := range s.Allow {
			if s.folder != "" && e.Path == "" {
				e.Path = s.folder
			}
			if s.folder == "" || within(e.Path, s.folder) && sameRepository(e.Path, s.folder) {
				out = append(out, e)
			}
		}
	}
	return out
}

// observes says whether nothing is stopped: a file that may loosen says so, and none says no.
func (r Rules) observes() bool {
	observes := false
	for _, s := range r.sources {
		switch {
		case s.Observe == nil:
		case !*s.Observe:
			return false
		case s.loosens:
			observes = true
		}
	}
	return observes
}

// counts says whether an exception applies to an action: in this session, at this
// time, and in every folder that the action is about.
func (e Exception) counts(acts []string, session string, now time.Time) bool {
	if until, err := time.Parse(time.RFC3339, e.Until); e.Until != "" && (err != nil || !now.Before(until)) {
		return false
	}
	if e.Session != "" && e.Session != session {
		return false
	}
	return e.Path == "" || !slices.ContainsFunc(acts, func(act string) bool { return !e.covers(act) })
}

// covers says whether a folder is in the exception's path, or at the same place in another
// worktree of its repository. Another repository below the path is not in it.
func (e Exception) covers(act string) bool {
	path, act := realPath(e.Path), realPath(act)
	top, repository := repositoryOf(path)
	actTop, actRepository := repositoryOf(act)
	switch {
	case repository == "":
		return within(act, path)
	case repository != actRepository:
		return false
	case top == actTop:
		return within(act, path)
	}
	below, err := filepath.Rel(top, path)
	return err == nil && within(act, filepath.Join(actTop, below))
}

// within says whether a path is a folder or below it. What is not known is in none.
func within(path, folder string) bool {
	if !filepath.IsAbs(path) || !filepath.IsAbs(folder) {
		return false
	}
	below, err := filepath.Rel(realPath(folder), realPath(path))
	return err == nil && filepath.IsLocal(below)
}

// lower takes the rules that are excepted out of a verdict. What is left decides: the worst
// rule that is not excepted. used are the exceptions that took something out.
func (r Rules) lower(score actionrisk.ScoreOutput, session string, now time.Time) (left actionrisk.ScoreOutput, used []Exception) {
	left = score
	left.MatchedRules = nil
	level := actionrisk.Low
	exceptions := r.exceptions()
	for _, rule := range score.MatchedRules {
		i := slices.IndexFunc(exceptions, func(e Exception) bool {
			return (e.Action != "" && e.Action == score.ActionHash || e.Rule != "" && e.Rule == rule.ID) && e.counts(r.acts, session, now)
		})
		if i >= 0 && levelOf(rule.Severity) <= r.most {
			if !slices.Contains(used, exceptions[i]) {
				used = append(used, exceptions[i])
			}
			continue
		}
		left.MatchedRules = append(left.MatchedRules, rule)
		level = max(level, levelOf(rule.Severity))
	}
	if len(used) == 0 {
		return score, nil // also what no rule raised: an action of unknown parts
	}
	left.Risk = level.String()
	return left, used
}

// Apply is what the settings make of a verdict: what is left of it, and the guard's
// decision on that. note says which exceptions were used.
func (r Rules) Apply(score actionrisk.ScoreOutput, now time.Time) (left actionrisk.ScoreOutput, d Decision, note string) {
	left, used := r.lower(score, "", now)
	return left, r.verdict(levelOf(left.Risk), false), noteOf(used)
}

func noteOf(used []Exception) string {
	if len(used) == 0 {
		return ""
	}
	last := used[len(used)-1]
	return fmt.Sprintf("allowed by %s (%s)", last.file, last.Reason)
}

// verdict is what becomes of a level: by the stricter of the levels that are stated, and
// by the usual ones where none is. Strict is stated by the hook's own command line. Nothing
// above the operator's limit becomes milder than usual.
func (r Rules) verdict(level actionrisk.Level, strict bool) Decision {
	ask, deny := actionrisk.Critical+1, actionrisk.Critical+1
	if strict {
		ask, deny = actionrisk.Medium, actionrisk.High
	}
	for _, s := range r.sources {
		stated := func(name string, usual actionrisk.Level, at *actionrisk.Level) {
			if name != "" && (s.loosens || levelOf(name) < usual) {
				*at = min(*at, levelOf(name))
			}
		}
		stated(s.AskFrom, actionrisk.High, &ask)
		stated(s.DenyFrom, actionrisk.Critical, &deny)
	}
	if ask > actionrisk.Critical {
		ask = actionrisk.High
	}
	if deny > actionrisk.Critical {
		deny = actionrisk.Critical
	}
	usual := verdictOf(level, strict)
	wanted := Pass
	switch {
	case level >= deny:
		wanted = Deny
	case level >= ask:
		wanted = Ask
	}
	if rank(wanted) < rank(usual) && level > r.most {
		return usual
	}
	return wanted
}

func rank(d Decision) int { return slices.Index([]Decision{Pass, Ask, Deny}, d) }

// addTo adds an exception to a file. Whatever else is in it is kept.
func (e Exception) addTo(place string) error {
	members := map[string]jsontext.Value{}
	_, there, text, err := readSource(place)
	if err != nil {
		return err
	}
	if there {
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
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	return files.Replace(place, append(whole, '\n'))
}
