package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/policy/canon"
)

// Change describes a change of an agent's settings file.
type Change struct {
	Settings string // path of the settings file
	Copy     string // path of a copy of the old file; empty if there was none
}

// Install adds the hook that starts program to the agent's settings. It keeps the rest of the
// file, and copies the old file into the same folder.
func (a Agent) Install(program string, where Where) (Change, error) {
	return a.change(program, where)
}

// Where selects the settings to change.
type Where string

// The user's, the project's and the system's settings. Users and projects cannot override the
// system's, so only these resist an agent that tries to remove its guard.
const (
	OfUser    Where = "user"
	OfProject Where = "project"
	OfSystem  Where = "system"
)

// managedSettings returns the path of the system's settings for Claude Code, from its
// documentation.
func managedSettings() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// forSystem refuses a program that others than root can replace, because the system's settings
// start it for every user.
func forSystem(program string) error {
	if others := files.WrittenByOthers(program, 0); others != "" {
		return fmt.Errorf("the machine's settings may start only a program that only root can write, such as /usr/local/bin/countersign: %s", others)
	}
	return nil
}

// Uninstall removes the hook. If the file has no other changes since Install, the old file is
// restored byte for byte, or the file is removed if there was none.
func (a Agent) Uninstall(where Where) (Change, error) {
	return a.change("", where)
}

// asBefore returns the text that a settings file had before Install, if its present text, "after",
// differs only by what Install added. gone is true if there was no file. known is false if the old
// text cannot be determined.
func asBefore(path string, after []byte) (text []byte, gone, known bool) {
	copies, _ := filepath.Glob(globEscape(path) + copySuffix + "*")
	slices.Sort(copies)
	for _, c := range slices.Backward(copies) {
		before, err := os.ReadFile(c)
		if err == nil && !strings.Contains(string(before), "gate hook --agent ") && (sameJSON(before, after) || sameJSON(before, withoutVersion(after))) {
			return before, false, true
		}
	}
	return nil, true, len(copies) == 0 && slices.Contains([]string{"{}", `{"version":1}`}, compact(after))
}

// withoutVersion returns settings without the member "version", which the entries for Cursor and
// GitHub Copilot CLI add.
func withoutVersion(text []byte) []byte {
	var members map[string]jsontext.Value
	if json.Unmarshal(text, &members) != nil {
		return text
	}
	delete(members, "version")
	out, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return out
}

// copySuffix begins the suffix in the name of a copy.
const copySuffix = ".before-countersign-"

func globEscape(path string) string {
	return strings.NewReplacer(`[`, `\[`, `*`, `\*`, `?`, `\?`).Replace(path)
}

func compact(text []byte) string {
	canonical, err := canon.Canonical(text)
	if err != nil {
		return ""
	}
	return string(canonical)
}

func sameJSON(a, b []byte) bool {
	if len(strings.TrimSpace(string(a))) == 0 {
		a = []byte("{}")
	}
	return compact(a) != "" && compact(a) == compact(b)
}

func (a Agent) change(program string, where Where) (Change, error) {
	path, err := a.fileOf(where, program)
	if err != nil {
		return Change{}, err
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Change{}, fmt.Errorf("read %s: %w", path, err)
	}
	var after []byte
	if a == OpenCode {
		return changePlugin(path, before, program)
	}
	after, err = a.merged(before, program)
	if err != nil {
		return Change{}, fmt.Errorf("%s: %w; nothing was written; --install %s prints the entry to add by hand", path, err, a)
	}
	done := Change{Settings: path}
	if program == "" {
		switch text, gone, known := asBefore(path, after); {
		case !known:
		case gone:
			return done, os.Remove(path)
		default:
			after = text
		}
	}
	if len(before) > 0 && program != "" {
		done.Copy = path + copySuffix + time.Now().UTC().Format("20060102T150405Z")
		for n := 2; files.Exists(done.Copy); n++ { // never overwrite an older copy
			done.Copy = fmt.Sprintf("%s%s%s-%d", path, copySuffix, time.Now().UTC().Format("20060102T150405Z"), n)
		}
		if err := os.WriteFile(done.Copy, before, 0o600); err != nil {
			return Change{}, fmt.Errorf("copy %s: %w", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Change{}, err
	}
	if err := files.Replace(path, after); err != nil {
		return done, err
	}
	if where == OfSystem {
		return done, os.Chmod(path, 0o644) // the agents of all users must be able to read it
	}
	return done, nil
}

// changePlugin writes the plugin, or removes it if program is empty. The whole file belongs to
// this project.
func changePlugin(path string, before []byte, program string) (Change, error) {
	done := Change{Settings: path}
	if _, ours := pluginHook(path, string(before)); len(before) > 0 && !ours {
		return done, fmt.Errorf("%s is not the guard's plugin; nothing was written", path)
	}
	if program == "" {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return done, err
	}
	text, err := OpenCode.entry(program)
	if err != nil {
		return done, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return done, err
	}
	return done, files.Replace(path, []byte(text+"\n"))
}

// systemFile returns the path of the system's settings. Tests replace it.
var systemFile = managedSettings

// fileOf returns the settings file that contains the hooks of an agent.
func (a Agent) fileOf(where Where, program string) (string, error) {
	all := a.SettingsFiles()
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("there is no installer for %s, because none was tested", a)
	case where == OfSystem && a != Claude:
		return "", errors.New("--system works for claude only: the managed settings of other agents were not tested")
	case where == OfSystem:
		if program != "" {
			if err := forSystem(program); err != nil {
				return "", err
			}
		}
		return systemFile(), nil
	case where == OfProject:
		return filepath.Abs(all[0])
	}
	path := all[len(all)-1]
	if !filepath.IsAbs(path) {
		return "", errors.New("the home folder is not known; --project writes into this folder")
	}
	return path, nil
}

// merged returns the settings with the hook that starts program, or without our hooks if program
// is empty.
func (a Agent) merged(before []byte, program string) ([]byte, error) {
	settings := map[string]jsontext.Value{}
	if len(strings.TrimSpace(string(before))) > 0 {
		if err := json.Unmarshal(before, &settings); err != nil {
			return nil, errors.New("the file is not a JSON object that can be preserved")
		}
	}
	hooks := map[string]jsontext.Value{}
	if settings["hooks"] != nil {
		if err := json.Unmarshal(settings["hooks"], &hooks); err != nil {
			return nil, errors.New("its member hooks is not an object")
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

// withoutOurs removes all entries that start the guard.
func withoutOurs(hooks map[string]jsontext.Value) error {
	for event, value := range hooks {
		var groups []jsontext.Value
		if value.Kind() != '[' {
			continue // Gemini also has flags among the hooks
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

// isOurs reports whether all commands of an entry start the guard.
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

// addOurs adds the entries of the guard after the existing ones.
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
				return errors.New("its hooks for " + event + " are not a list")
			}
		}
		if hooks[event], err = json.Marshal(append(there, groups...)); err != nil {
			return err
		}
	}
	for name, value := range ours { // other members of the entry, such as Cursor's version
		if name != "hooks" && settings[name] == nil {
			settings[name] = value
		}
	}
	return nil
}
