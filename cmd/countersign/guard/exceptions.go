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

// Settings are the contents of one settings file.
//
//	{
//	  "askFrom": "medium", "denyFrom": "critical", "observe": false,
//	  "allow": [
//	    {"rule": "git.push.force-branch", "path": "/home/ada/web", "until": "2026-04-01T00:00:00Z", "reason": "rebasing the release"},
//	    {"action": "<64 hex of an action hash>", "reason": "the nightly clean-up"}
//	  ]
//	}
//
// A settings file belongs to the machine's operator, to the user, or to a project. Each of them
// can make the guard stricter. The files of the operator and the user can also relax it. A
// project's file can relax it only after the user trusted exactly its text (gate trust). A file
// that others than the user and root can write cannot relax it.
type Settings struct {
	AskFrom  string      `json:"askFrom,omitempty"`  // level from which the agent asks the user; high if absent
	DenyFrom string      `json:"denyFrom,omitempty"` // level from which the action is denied; critical if absent
	Observe  *bool       `json:"observe,omitempty"`  // true: nothing is stopped, the log records what would have been
	Allow    []Exception `json:"allow,omitempty"`

	// AllowUpTo is the highest level that exceptions may relax; high if absent. Only the
	// operator's file may set it.
	AllowUpTo string `json:"allowUpTo,omitempty"`
}

// Exception allows one rule, or one exact action.
type Exception struct {
	Rule    string `json:"rule,omitempty"`
	Action  string `json:"action,omitempty"`  // its complete hash
	Path    string `json:"path,omitempty"`    // the folder in which the exception applies, with subfolders; absent: everywhere
	Session string `json:"session,omitempty"` // the agent's session in which it applies; absent: every session
	Until   string `json:"until,omitempty"`   // RFC 3339; absent: no end
	Once    bool   `json:"once,omitempty"`    // the first action that it allows uses it up
	Reason  string `json:"reason"`

	file string // the file it was read from
}

// source is one settings file, with whether it may relax the guard.
type source struct {
	Settings
	file    string
	folder  string // the folder of a project's file; the file can relax only actions in it
	loosens bool
	why     string // why it must not relax the guard
}

// readSource reads one file. there is false if the file does not exist. A file that cannot be
// read is an error, because it might deny something.
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

// asks lists what a file would relax if it were trusted, or "".
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

// Rules combines all settings files that apply to one action or one folder.
type Rules struct {
	Files []string // the files that were read

	sources []source
	most    actionrisk.Level // the highest level that exceptions may relax
	session string           // the folder in which the session runs
	acts    []string         // the folders that the action affects
	account Account
}

// ReadRules reads the files for a session in one folder and an action that affects others. It
// reads the project files of the session's folder and of every folder that the command affects
// (git -C, cd). A project's file can relax the guard only if the session and the action stay in
// that project.
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

// RulesFor returns the rules for a command, whose effects in a folder the engine has traced.
func (a Account) RulesFor(trace actionrisk.Trace, session, cwd string) (Rules, error) {
	return a.ReadRules(session, a.actsIn(trace, cwd))
}

// upFrom returns a folder and its parents, or none if the path is not absolute. If the path
// contains a link, it also returns the parents of the real path.
func upFrom(folder string) (out []string) {
	for _, at := range []string{folder, files.Real(folder)} {
		for at = filepath.Clean(at); filepath.IsAbs(at) && !slices.Contains(out, at); at = filepath.Dir(at) {
			out = append(out, at)
		}
	}
	return out
}

// add reads one file. folder is set if the file is a project's.
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

// Ignored lists the requests of files that must not relax the guard, with the reason.
func (r Rules) Ignored() (out []string) {
	for _, s := range r.sources {
		if asks := s.asks(); asks != "" && s.why != "" {
			out = append(out, fmt.Sprintf("%s requests %s, which is ignored: %s", s.file, asks, s.why))
		}
	}
	return out
}

// exceptions returns all exceptions that may apply.
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

// observes reports whether nothing is stopped: at least one file that may relax the guard sets
// observe to true, and no file sets it to false.
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

// counts reports whether an exception applies to an action: in this session, at this time, and
// in every folder that the action affects.
func (e Exception) counts(acts []string, session string, now time.Time) bool {
	if until, err := time.Parse(time.RFC3339, e.Until); e.Until != "" && (err != nil || !now.Before(until)) {
		return false
	}
	if e.Session != "" && e.Session != session {
		return false
	}
	return e.Path == "" || !slices.ContainsFunc(acts, func(act string) bool { return !e.covers(act) })
}

// covers reports whether a folder is in the exception's path, or at the same position in
// another worktree of its repository. A different repository below the path is not covered.
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

// within reports whether a path is a folder or below it. An unknown path is in no folder.
func within(path, folder string) bool {
	if !filepath.IsAbs(path) || !filepath.IsAbs(folder) {
		return false
	}
	below, err := filepath.Rel(files.Real(folder), files.Real(path))
	return err == nil && filepath.IsLocal(below)
}

// lower removes the excepted rules from a verdict; the worst remaining rule then decides. used
// are the exceptions that removed a rule.
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
		return score, nil // this also keeps a level that no rule raised, such as that of an action with unknown parts
	}
	left.Risk = level.String()
	return left, used
}

// Apply returns the verdict that is left after exceptions, and the guard's decision on it. note
// names an exception that was used.
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

// verdict returns the decision on a level. The strictest of the levels in the settings applies,
// or the usual levels if none is set. strict is a flag of the hook's command line. The settings
// cannot relax a level above the operator's limit.
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

// addTo adds an exception to a file and keeps everything else in it.
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
