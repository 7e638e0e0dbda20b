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
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// projectFile is the name of a project's settings file.
const projectFile = ".countersign.json"

// Settings is the content of a settings file.
//
//	{
//	  "askFrom": "medium", "denyFrom": "critical", "observe": false,
//	  "allow": [
//	    {"rule": "git.push.force-branch", "path": "/home/ada/web", "until": "2026-04-01T00:00:00Z", "reason": "rebasing the release"},
//	    {"action": "<64 hex of an action hash>", "reason": "the nightly clean-up"}
//	  ]
//	}
//
// A settings file belongs to the machine's operator, to the user, or to a project. Each can make
// the guard stricter. The files of the operator and the user can also relax it. A project's file
// can relax it only after the user has trusted exactly its text ("gate trust"). A file that others
// than the user and root can write cannot relax it.
type Settings struct {
	AskFrom  string      `json:"askFrom,omitempty"`  // risk level from which the agent asks the user; absent means high
	DenyFrom string      `json:"denyFrom,omitempty"` // risk level from which the action is denied; absent means critical
	Observe  *bool       `json:"observe,omitempty"`  // true: nothing is blocked, and the log records what would have been
	Allow    []Exception `json:"allow,omitempty"`

	// AllowUpTo is the highest risk level that exceptions can relax; absent means high. Only the
	// operator's file may set it.
	AllowUpTo string `json:"allowUpTo,omitempty"`
}

// Exception allows one rule, or exactly one action.
type Exception struct {
	Rule    string `json:"rule,omitempty"`
	Action  string `json:"action,omitempty"`  // the complete hash of the action
	Path    string `json:"path,omitempty"`    // applies in this folder and its subfolders; absent means everywhere
	Session string `json:"session,omitempty"` // applies in this session of the agent; absent means every session
	Until   string `json:"until,omitempty"`   // RFC 3339 time; absent means no end
	Once    bool   `json:"once,omitempty"`    // true: the exception allows one action
	Reason  string `json:"reason"`

	file string // file that contains the exception
}

// source is a settings file, and whether it may relax the guard.
type source struct {
	Settings
	file    string
	folder  string // folder of a project's file, which may relax only actions inside it; empty for other files
	loosens bool
	why     string // reason why the file must not relax the guard
}

// readSource reads a settings file. The result there is false if the file does not exist. If the
// file exists and cannot be read, readSource returns an error, because the file might contain
// stricter settings.
func readSource(file string) (s source, there bool, text []byte, err error) {
	s.file = file
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir(), err != nil && notAFolder(err):
		return s, false, nil, nil
	case err == nil && !info.Mode().IsRegular():
		return s, true, nil, fmt.Errorf("%s is not a regular file", file)
	}
	if text, err = files.ReadRegular(file, maxSettings); err != nil {
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
		return errors.New("give rule or action, not both")
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

// asks describes what a file would relax if it were trusted, or returns "" if nothing.
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

// Rules is the combination of all settings files that apply to an action.
type Rules struct {
	Files []string // settings files that were read

	sources []source
	most    actionrisk.Level // highest risk level that exceptions may relax
	session string           // folder in which the session runs
	acts    []string         // folders that the action affects
	account Account
}

// ReadRules reads the settings files for an action. session is the folder in which the session
// runs, and acts are the folders that the action affects (for example with git -C or cd). It reads
// the project files of all these folders and their parents. A project's file may relax the guard
// only if session and action are inside the project.
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

// RulesFor returns the rules for a command that runs in cwd, by the trace of its effects.
func (a Account) RulesFor(trace actionrisk.Trace, session, cwd string) (Rules, error) {
	return a.ReadRules(session, a.actsIn(trace, cwd))
}

// upFrom returns a folder and its parents, or nothing if the path is not absolute. If the path
// contains a link, it also returns the real path and its parents.
func upFrom(folder string) (out []string) {
	for _, at := range []string{folder, files.Real(folder)} {
		for at = filepath.Clean(at); filepath.IsAbs(at) && !slices.Contains(out, at); at = filepath.Dir(at) {
			out = append(out, at)
		}
	}
	return out
}

// add reads a settings file. folder is set for a project's file.
func (r *Rules) add(file, folder string) error {
	if file == "" {
		return nil
	}
	s, there, text, err := readSource(file)
	if err != nil || !there {
		return err
	}
	if s.AllowUpTo != "" && file != r.account.Machine {
		return fmt.Errorf("%s: allowUpTo is allowed in %s only", file, r.account.Machine)
	}
	s.folder = folder
	switch others := files.WrittenByOthers(file, r.account.UID); {
	case others != "":
		s.why = others
	case folder != "" && !r.account.trusts(folder, text):
		s.why = "the file is not trusted: " + launch.Name + " gate trust shows it"
	default:
		s.loosens = folder == "" || !slices.ContainsFunc(append([]string{r.session}, r.acts...), func(act string) bool {
			return !within(act, folder) || !sameRepository(act, folder)
		})
	}
	r.Files, r.sources = append(r.Files, file), append(r.sources, s)
	return nil
}

// Ignored describes the requests of files that must not relax the guard, with the reason.
func (r Rules) Ignored() (out []string) {
	for _, s := range r.sources {
		if asks := s.asks(); asks != "" && s.why != "" {
			out = append(out, fmt.Sprintf("%s requests %s, which is ignored: %s", s.file, asks, s.why))
		}
	}
	return out
}

// exceptions returns the exceptions of all files that may relax the guard.
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

// observes reports whether the guard blocks nothing: a file that may relax the guard sets observe
// to true, and no file sets it to false.
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

// counts reports whether an exception applies in this session, at this time, and in all folders
// that the action affects.
func (e Exception) counts(acts []string, session string, now time.Time) bool {
	if until, err := time.Parse(time.RFC3339, e.Until); e.Until != "" && (err != nil || !now.Before(until)) {
		return false
	}
	if e.Session != "" && e.Session != session {
		return false
	}
	return e.Path == "" || !slices.ContainsFunc(acts, func(act string) bool { return !e.covers(act) })
}

// covers reports whether a folder is below the exception's path, or below the same path in another
// worktree of the repository. It does not cover a different repository below the path.
func (e Exception) covers(act string) bool {
	path, act := files.Real(e.Path), files.Real(act)
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

// within reports whether a path is folder or below it. It is false if the path is unknown.
func within(path, folder string) bool {
	if !filepath.IsAbs(path) || !filepath.IsAbs(folder) {
		return false
	}
	below, err := filepath.Rel(files.Real(folder), files.Real(path))
	return err == nil && filepath.IsLocal(below)
}

// lower removes from a verdict the rules that exceptions allow, and sets its level to that of the
// worst remaining rule. used are the exceptions that removed a rule.
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
		return score, nil // keep a level that does not come from a rule, such as that of a command with unknown parts
	}
	left.Risk = level.String()
	return left, used
}

// Apply returns the verdict after exceptions, and the guard's decision on it. note names an
// exception that was used.
func (r Rules) Apply(score actionrisk.ScoreOutput, now time.Time) (left actionrisk.ScoreOutput, d agents.Decision, note string) {
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

// verdict returns the decision for a risk level. If several files set askFrom or denyFrom, the
// strictest value applies. strict is the flag of the hook. Above the operator's limit (allowUpTo),
// settings cannot relax the usual decision.
func (r Rules) verdict(level actionrisk.Level, strict bool) agents.Decision {
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
	wanted := agents.Pass
	switch {
	case level >= deny:
		wanted = agents.Deny
	case level >= ask:
		wanted = agents.Ask
	}
	if rank(wanted) < rank(usual) && level > r.most {
		return usual
	}
	return wanted
}

func rank(d agents.Decision) int {
	return slices.Index([]agents.Decision{agents.Pass, agents.Ask, agents.Deny}, d)
}

// addTo adds an exception to a settings file and keeps the rest of the file.
func (e Exception) addTo(path string) error {
	members := map[string]jsontext.Value{}
	_, there, text, err := readSource(path)
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
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return files.Replace(path, append(whole, '\n'))
}
