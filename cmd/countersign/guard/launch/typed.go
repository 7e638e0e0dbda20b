package launch

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
)

// Only a person can consent. A program that types into another terminal or window could consent in
// the user's place, because the terminal does not show who has typed.

// typists lists programs that type into another terminal or window, with the words after which the
// text to type follows.
var typists = map[string][]string{
	"tmux": {"send-keys", "send", "paste-buffer", "pasteb"}, "screen": {"stuff", "paste"}, "zellij": {"write-chars", "write"}, "kitty": {"send-text", "send-key"}, "kitten": {"send-text", "send-key"},
	"wezterm": {"send-text"}, "xdotool": {"type", "key"}, "ydotool": {"type", "key"}, "dotool": nil, "wtype": nil, "ttyecho": nil, "cliclick": nil, "writevt": nil, "herbe": nil, "abduco": nil, "dtach": {"-p"}, "reptyr": nil,
}

// TypesText reports whether a call types text into another terminal or window.
func TypesText(u *actionrisk.Use) bool {
	verbs, known := typists[u.Program]
	return known && !u.Remote && (verbs == nil || slices.ContainsFunc(u.Words, func(w act.Word) bool { return slices.Contains(verbs, w.Text) }))
}

var (
	// answers matches texts that answer a question. The keys to choose and confirm count as
	// answers only if the program is known to ask.
	answers  = pattern.Lazy(`^(?i:y|yes|a|always|allow|approve|ok|[1-3])$`)
	confirms = pattern.Lazy(`^(?i:enter|return|kp_?enter|c-m|c-j|ctrl[+-]m|space|tab|btab|up|down|left|right|13|10|)$`)
	lineEnd  = pattern.Lazy(`(?:\\[nr]|\^M|\\0?15|[\r\n])+$`)
)

// TypesAnswer reports whether the text that a call types is only an answer, or is unknown.
func TypesAnswer(u *actionrisk.Use) bool {
	verbs := typists[u.Program]
	at := max(slices.IndexFunc(u.Words, func(w act.Word) bool { return slices.Contains(verbs, w.Text) }), 0)
	if strings.HasPrefix(u.Words[at].Text, "paste") {
		return true
	}
	keys, answered, agent := 0, false, false
	for _, w := range u.Words[1:] {
		agent = agent || slices.ContainsFunc(agentPrograms, func(name string) bool { return len(name) > 3 && strings.Contains(strings.ToLower(w.Text), name) })
	}
	for i := at + 1; i < len(u.Words); i++ {
		switch text := lineEnd().ReplaceAllString(u.Words[i].Text, ""); {
		case text == "-t" || text == "-N" || text == "-m" || text == "--match" || text == "--pane-id":
			i++ // skip the option's value
		case strings.HasPrefix(text, "-"), strings.HasPrefix(text, "/dev/"):
		case answers().MatchString(text):
			keys, answered = keys+1, true
		case confirms().MatchString(text):
			keys++
		default:
			return false
		}
	}
	return answered || keys > 0 && agent
}

// TypesInText matches code, such as an expect script, that types answers into a terminal or
// window, or that starts an agent and answers its questions.
var TypesInText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bTIOCSTI\b|\bkeystroke "(?i:y|yes|[1-3])"|\b(?:spawn|pexpect\.\w+)\s*\(?\s*(?:-\w+\s+)*['"]?(?:\S*/)?(?:` + strings.Join(longNames(agentPrograms), "|") + `)\b`)
})

// longNames returns names that are long enough to differ from common words, quoted for a regular
// expression.
func longNames(names []string) (out []string) {
	for _, name := range names {
		if len(name) > 4 {
			out = append(out, regexp.QuoteMeta(name))
		}
	}
	return out
}
