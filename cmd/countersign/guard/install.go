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
)

// Change is what was done to an agent's settings.
type Change struct {
	Settings string // the file
	Copy     string // of what was there before; empty: nothing was
}

// Install merges the entry that starts this program as the guard into the agent's
// settings, the user's own or those of this folder's project. Everything else in the file
// stays; a copy of what was there lies beside it.
func (a Agent) Install(program string, project bool) (Change, error) {
	return a.change(program, project)
}

// Uninstall takes the entry out again.
func (a Agent) Uninstall(project bool) (Change, error) {
	return a.change("", project)
}

func (a Agent) change(program string, project bool) (Change, error) {
	place, err := a.ownSettings(project)
	if err != nil {
		return Change{}, err
	}
	before, err := os.ReadFile(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Change{}, fmt.Errorf("read %s: %w", place, err)
	}
	after, err := a.merged(before, program)
	if err != nil {
		return Change{}, fmt.Errorf("%s: %w; nothing was written, --install %s prints what to add by hand", place, err, a)
	}
	done := Change{Settings: place}
	if len(before) > 0 {
		done.Copy = place + ".before-countersign-" + time.Now().UTC().Format("20060102T150405Z")
		if err := os.WriteFile(done.Copy, before, 0o600); err != nil {
			return Change{}, fmt.Errorf("keep a copy of %s: %w", place, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return Change{}, err
	}
	return done, files.Replace(place, after)
}

// ownSettings is the file that holds the user's hooks of an agent, or the project's.
func (a Agent) ownSettings(project bool) (string, error) {
	files := a.settingsFiles()
	if project {
		return filepath.Abs(files[0])
	}
	place := files[len(files)-1]
	if !filepath.IsAbs(place) {
		return "", errors.New("the home folder is not known; --project writes into this folder")
	}
	return place, nil
}

// merged is the settings with the program's entry, or without any of ours.
func (a Agent) merged(before []byte, program string) ([]byte, error) {
	settings := map[string]jsontext.Value{}
	if len(strings.TrimSpace(string(before))) > 0 {
		if err := json.Unmarshal(before, &settings); err != nil {
			return nil, errors.New("it is no JSON object that can be kept as it is")
		}
	}
	hooks := map[string]jsontext.Value{}
	if settings["hooks"] != nil {
		if err := json.Unmarshal(settings["hooks"], &hooks); err != nil {
			return nil, errors.New("its hooks are no object")
		}
	}
	if err := withoutOurs(hooks); err != nil {
		return nil, err
	}
	if program != "" {
		if err := a.addOurs(settings, hooks, program); err != nil {
			return nil, err
		}
	}
	var err error
	if settings["hooks"], err = json.Marshal(hooks, json.Deterministic(true)); err != nil {
		return nil, err
	}
	if len(hooks) == 0 {
		delete(settings, "hooks")
	}
	text, err := json.Marshal(settings, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.EscapeForHTML(false))
	return append(text, '\n'), err
}

// withoutOurs takes every entry out that starts our guard.
func withoutOurs(hooks map[string]jsontext.Value) error {
	for event, value := range hooks {
		var groups []jsontext.Value
		if value.Kind() != '[' {
			continue // Gemini keeps flags beside the lists
		}
		if err := json.Unmarshal(value, &groups); err != nil {
			return err
		}
		kept := slices.DeleteFunc(groups, isOurs)
		if len(kept) == 0 {
			delete(hooks, event)
			continue
		}
		text, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		hooks[event] = text
	}
	return nil
}

// isOurs says whether all that a group starts is our guard.
func isOurs(group jsontext.Value) bool {
	var g hookEntry
	if json.Unmarshal(group, &g) != nil {
		return false
	}
	entries := g.Hooks
	if len(entries) == 0 {
		entries = []hookEntry{g}
	}
	return !slices.ContainsFunc(entries, func(e hookEntry) bool {
		return !e.starts("gate hook --agent ")
	})
}

// addOurs adds the groups of the printed configuration behind those that are there.
func (a Agent) addOurs(settings, hooks map[string]jsontext.Value, program string) error {
	entry, err := a.entry(program)
	if err != nil {
		return err
	}
	var ours map[string]jsontext.Value
	if err := json.Unmarshal([]byte(entry), &ours); err != nil {
		return err
	}
	var events map[string][]jsontext.Value
	if err := json.Unmarshal(ours["hooks"], &events); err != nil {
		return err
	}
	for event, groups := range events {
		var there []jsontext.Value
		if hooks[event] != nil {
			if err := json.Unmarshal(hooks[event], &there); err != nil {
				return errors.New("its hooks of " + event + " are no list")
			}
		}
		if hooks[event], err = json.Marshal(append(there, groups...)); err != nil {
			return err
		}
	}
	for name, value := range ours { // Cursor's version
		if name != "hooks" && settings[name] == nil {
			settings[name] = value
		}
	}
	return nil
}
