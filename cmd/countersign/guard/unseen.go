package guard

import (
	"slices"

	"github.com/countersign/countersign/policy/actionrisk"
)

// unseenInputs are what is typed in the probe of takesInput: each is critical
// for those who would run it.
var unseenInputs = []string{canaryCommand, "drop database production;"}

// opensInput finds what may be a shell or a console where a command begins: much
// else passes on what it is fed (a transport, a body) and is none.
var opensInput = pattern(`(?:^|[;&|({\n]\s*)(?:(?:exec|sudo|env|command|nohup|time|-\S+|\w+=\S*)\s+)*(?:\S*/)?` +
	`(?:(?:ba|da|z|k|fi|c|tc)?sh|pwsh|su|ssh|docker|podman|nerdctl|kubectl|k|oc|` +
	`psql|mysql|mariadb|sqlite3|sqlcmd|sqlplus|clickhouse-client|duckdb|mongosh|redis-cli)(?:\s|$)`)

// takesInput tells whether a command opens a shell or a console that would run
// what is typed into it later: fed with a canary, it runs the canary. Codex
// types with a tool of its own, which no event shows.
func (g Guard) takesInput(a actionrisk.Action) bool {
	command := a.Command
	return opensInput().MatchString(command) && slices.ContainsFunc(unseenInputs, func(typed string) bool {
		a.Command = "echo " + quotePath(typed) + " | {\n" + command + "\n}"
		score, _ := g.Judge(a, actionrisk.Surroundings{})
		return levelOf(score.Risk) == actionrisk.Critical
	})
}
