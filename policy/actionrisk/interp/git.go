package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// GitSettingOf returns the value of a Git setting. The name must be in lower case.
func (e *Env) GitSettingOf(v *act.Invocation, name string) (act.Word, bool) {
	w, ok := e.gitConfig[name]
	key := ""
	for _, a := range v.Env {
		switch {
		case strings.HasPrefix(a.Name, "GIT_CONFIG_KEY_"):
			key = strings.ToLower(a.Value.Text)
		case strings.HasPrefix(a.Name, "GIT_CONFIG_VALUE_") && key == name:
			w, ok = a.Value, true
		}
	}
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Name == "-c" && o.Given {
			if n, value, valued := strings.Cut(o.Value.Text, "="); valued && strings.EqualFold(n, name) {
				w, ok = o.Value.Tail(len(n)+1), true
				w.Text = value
			}
		}
	}
	return w, ok
}

// RemembersSetting stores the setting of a command "git config key value".
func (e *Env) RemembersSetting(words []act.Word) {
	if len(words) > 0 && words[0].Text == "set" {
		words = words[1:]
	}
	if len(words) < 2 {
		return
	}
	if len(e.gitConfig) < scan.MaxFiles {
		scan.Put(&e.gitConfig, strings.ToLower(words[0].Text), words[1])
	}
}

// GitOff reports whether the value of a Git setting means false.
func GitOff(value string) bool {
	switch strings.ToLower(value) {
	case "false", "no", "off", "0", "":
		return true
	}
	return false
}
