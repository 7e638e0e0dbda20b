package guard

import (
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
)

// A command that stops the guard's process, or the agent's process that started the shell,
// prevents the guard from judging the next action.

var (
	// stopsByName lists programs that stop processes by name.
	stopsByName = []string{"pkill", "killall", "skill", "snice", "taskkill", "stop-process", "spps", "kill-process"}
	// findsByName lists programs that print the ids of processes by name.
	findsByName = []string{"pgrep", "pidof", "get-process", "gps"}
	// listings lists programs that print all processes; filters lists programs that select lines.
	listings = []string{"ps", "tasklist", "top"}
	filters  = []string{"grep", "egrep", "rg", "awk", "findstr", "sed"}
	// stopsParent matches code in another language that stops the parent process.
	stopsParent = pattern.Lazy(`\bkill\w*\b[^\n;]{0,40}(?:getppid|\.ppid)\b`)
)

// guardProcesses lists the names and command lines of the guard's process.
var guardProcesses = []string{"countersign", "countersign-guard", "countersign gate hook", "countersign-guard gate hook", "countersign.exe", "countersign-guard.exe"}

// namesGuard reports whether a word of a call matches the name of the guard's process.
func namesGuard(u *actionrisk.Use) bool {
	for i := 1; i < len(u.Words); i++ {
		w := u.Words[i]
		if strings.HasPrefix(w.Text, "-") || strings.HasPrefix(w.Text, "/") && len(w.Text) < 4 || !w.Known() || w.Text == "" {
			continue
		}
		pattern, err := regexp.Compile("(?i)" + strings.ReplaceAll(w.Text, "*", ".*"))
		exact := u.Program == "killall" || u.Program == "taskkill" || u.Program == "stop-process" || u.Program == "spps"
		if slices.ContainsFunc(guardProcesses, func(p string) bool {
			if err != nil {
				return strings.Contains(w.Text, p)
			}
			found := pattern.FindString(p)
			return found == p || found != "" && !exact
		}) {
			return true
		}
	}
	return false
}

// stopsGuard reports whether a command stops the guard: by its name, by the id of the shell's
// parent process, or by stopping all processes.
func stopsGuard(trace actionrisk.Trace) bool {
	finds, kills, lists, filtered := false, false, false, false
	for i := range trace.Uses {
		u := &trace.Uses[i]
		switch {
		case u.Remote:
		case slices.Contains(stopsByName, u.Program):
			if namesGuard(u) {
				return true
			}
			kills = true
		case u.Program == "kill":
			signalled, unknown := false, len(u.Words) < 3
			for at, w := range u.Words[1:] {
				switch {
				case w.Text == "-0" || w.Text == "-l" || w.Text == "-L":
					signalled = true
				case w.Var == "PPID" && !signalled, at > 0 && w.Text == "-1":
					return true
				}
				unknown = unknown || !w.Known()
			}
			kills = kills || unknown && !signalled
		case slices.Contains(findsByName, u.Program):
			finds = finds || namesGuard(u)
		case slices.Contains(listings, u.Program):
			lists = true
		case slices.Contains(filters, u.Program):
			filtered = filtered || namesGuard(u)
		}
	}
	for _, t := range trace.Texts {
		if programText(t.Language) && stopsParent().MatchString(t.Text) {
			return true
		}
	}
	return kills && (finds || lists && filtered)
}
