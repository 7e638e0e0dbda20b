package guard

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Blocked is an action that the guard asked about or denied. It is stored so that the user can
// allow it; the guard's answer contained Code.
type Blocked struct {
	Code    string   `json:"code"`
	At      string   `json:"at"`
	Agent   string   `json:"agent"`
	Session string   `json:"session,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	Command string   `json:"command"` // secrets are masked
	Action  string   `json:"action"`
	Level   string   `json:"level"`
	Rules   []string `json:"rules"`
}

// keptBlocked is the number of blocked actions that are stored.
const keptBlocked = 32

func (a Account) blockedFile() string { return inState(a, "blocked.json") }

// Blocked returns the stored blocked actions, the newest last.
func (a Account) Blocked() (list []Blocked, err error) {
	text, err := files.ReadRegular(a.blockedFile(), maxTrusted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", a.blockedFile(), err)
	}
	return list, nil
}

// block stores a blocked action and returns its code, or "" if it cannot be stored.
func (a Account) block(b Blocked) (code string) {
	if a.State() == "" {
		return ""
	}
	random := make([]byte, 5)
	if _, err := rand.Read(random); err != nil {
		return ""
	}
	b.Code = base32.StdEncoding.EncodeToString(random)
	err := a.locked(func() error {
		list, err := a.Blocked()
		if err != nil {
			list = nil // a list that cannot be read is replaced
		}
		list = append(list, b)
		return writeState(a.blockedFile(), list[max(0, len(list)-keptBlocked):])
	})
	if err != nil {
		return ""
	}
	return b.Code
}

// locked holds the lock of the account's state while it calls the function do.
func (a Account) locked(do func() error) error { return files.Locked(inState(a, "lock"), do) }

func writeState(path string, value any) error {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return files.Replace(path, append(text, '\n'))
}

// BlockedBy returns the blocked action with a code, or the newest one if code is empty.
func (a Account) BlockedBy(code string) (Blocked, error) {
	list, err := a.Blocked()
	if err != nil {
		return Blocked{}, err
	}
	for _, b := range slices.Backward(list) {
		if code == "" || strings.EqualFold(b.Code, strings.ReplaceAll(code, "-", "")) {
			return b, nil
		}
	}
	if code == "" {
		return Blocked{}, errors.New("nothing was blocked yet on this machine")
	}
	return Blocked{}, errors.New("no blocked action has this code")
}

// MayAllow returns nil if exceptions may allow this risk level, and an error with the reason
// otherwise.
func (a Account) MayAllow(level string) error {
	r, err := a.ReadRules("", nil)
	switch {
	case err != nil:
		return err
	case levelOf(level) > r.most:
		return fmt.Errorf("the rule is %s, and exceptions apply to rules up to %s risk; only allowUpTo in %s changes that", level, r.most, a.Machine)
	}
	return nil
}

// Allow stores an exception and returns the file. One-time exceptions and those of a session are
// stored in the guard's own data (State), all others in the user's settings.
func (a Account) Allow(e Exception) (file string, err error) {
	if i := slices.IndexFunc(actionrisk.Rules(), func(r *actionrisk.Rule) bool { return r.ID == e.Rule }); e.Rule != "" {
		if strings.HasPrefix(e.Rule, "hook.") {
			return "", errors.New("the guard's own rules have no exceptions")
		}
		if i < 0 {
			return "", fmt.Errorf(`no rule has this id; %s gate "COMMAND" shows the ids of the rules that a command matches`, launch.Name)
		}
		if err := a.MayAllow(actionrisk.Rules()[i].Level.String()); err != nil {
			return "", err
		}
	}
	if err := e.check(); err != nil {
		return "", err
	}
	if a.Home == "" {
		return "", errors.New("the user database does not name a home folder for this user")
	}
	switch {
	case e.Once || e.Session != "":
		file = a.allowedFile()
		return file, a.locked(func() error { return e.addTo(file) })
	default:
		file = a.userFiles()[0]
	}
	return file, e.addTo(file)
}

// useUp removes a one-time exception from the guard's own data. It returns false if another call
// has used the exception.
func (a Account) useUp(e Exception, now time.Time) (done bool) {
	err := a.locked(func() error {
		s, there, _, err := readSource(a.allowedFile())
		if err != nil || !there {
			return err
		}
		kept := s.Allow[:0]
		for _, old := range s.Allow {
			until, err := time.Parse(time.RFC3339, old.Until)
			switch {
			case !done && old == e:
				done = true
			case old.Until != "" && err == nil && now.After(until): // remove expired exceptions, too
			default:
				kept = append(kept, old)
			}
		}
		s.Allow = kept
		return writeState(a.allowedFile(), s.Settings)
	})
	return done && err == nil
}
