package main

import (
	"context"
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

// change merges the agent's entry into its settings, or takes it out. Everything
// else in the file stays; a copy of what was there lies beside it. What was written
// is tried at once, as doctor does.
func (c *hookCmd) change(ctx context.Context, o *output) error {
	a := agent(c.Install)
	place, err := a.ownSettings(c.Project)
	if err != nil {
		return err
	}
	self, err := installable()
	if err != nil && c.Write {
		return err
	}
	before, err := os.ReadFile(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", place, err)
	}
	after, err := a.merged(before, self, c.Write)
	if err != nil {
		return fmt.Errorf("%s: %w; nothing was written, --install %s prints what to add by hand", place, err, a)
	}
	copied := ""
	if len(before) > 0 {
		copied = place + ".before-countersign-" + time.Now().UTC().Format("20060102T150405Z")
		if err := os.WriteFile(copied, before, 0o600); err != nil {
			return fmt.Errorf("keep a copy of %s: %w", place, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if err := files.Replace(place, after); err != nil {
		return err
	}
	result := map[string]any{"agent": string(a), "settings": place, "copy": copied, "installed": c.Write}
	text := "written: " + place + "\n"
	if copied != "" {
		text += "what was there: " + copied + "\n"
	}
	if c.Uninstall {
		return o.result(result, text+"the guard is taken out\n")
	}
	return c.tried(ctx, o, a, text, result)
}

// tried fires the canary at what was written.
func (c *hookCmd) tried(ctx context.Context, o *output, a agent, text string, result map[string]any) error {
	doctor := doctorCmd{Agent: string(a)}
	findings := doctor.guards(ctx)
	ok := true
	for _, f := range findings {
		text += fmt.Sprintf("%-8s %s\n", f.State, f.Detail)
		ok = ok && f.State != "bad"
	}
	if a == codex {
		text += "open /hooks in Codex and trust it: until then Codex skips it without a word\n"
	}
	result["works"] = ok
	if err := o.result(result, text); err != nil {
		return err
	}
	if !ok {
		return errNo
	}
	return nil
}

// installable is the path of this program as an agent can start it. Under "go run"
// there is none that lasts.
func installable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(self, "go-build") && os.Getenv("COUNTERSIGN_TEST_AS_PROGRAM") == "" {
		return "", errors.New(`"go run" removes the program when it ends: build it first (go install ./cmd/countersign), and run that with --write`)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return self, nil
}

// ownSettings is the file that holds the user's hooks of an agent, or the project's.
func (a agent) ownSettings(project bool) (string, error) {
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

// merged is the settings with this program's entry, or without any of ours.
func (a agent) merged(before []byte, self string, install bool) ([]byte, error) {
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
	if install {
		if err := a.addOurs(settings, hooks, self); err != nil {
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
		return !strings.Contains(strings.Join(append([]string{e.Command}, e.Args...), " "), "gate hook --agent ")
	})
}

// addOurs adds the groups of the printed configuration behind those that are there.
func (a agent) addOurs(settings, hooks map[string]jsontext.Value, self string) error {
	entry, err := a.entry(self)
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
