package guard

import (
	"slices"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
)

// unseenInputs are the inputs with which takesInput probes a command: each is critical for a
// program that runs it.
var unseenInputs = []string{agents.CanaryCommand, "drop database production;"}

// opensInput matches names of shells and consoles at the start of a command. Many other
// programs pass their input on without running it.
var opensInput = pattern.Lazy(`(?:^|[;&|({\n]\s*)(?:(?:exec|sudo|env|command|nohup|time|-\S+|\w+=\S*)\s+)*(?:\S*/)?` +
	`(?:(?:ba|da|z|k|fi|c|tc)?sh|pwsh|su|ssh|docker|podman|nerdctl|kubectl|k|oc|` +
	`psql|mysql|mariadb|sqlite3|sqlcmd|sqlplus|clickhouse-client|duckdb|mongosh|redis-cli)(?:\s|$)`)

// takesInput reports whether a command opens a shell or a console that would run what is typed
// into it later: it judges the command with a canary as its input. Codex types with a tool of
// its own, for which it sends no event.
func (g Guard) takesInput(a actionrisk.Action) bool {
	command := a.Command
	return opensInput().MatchString(command) && slices.ContainsFunc(unseenInputs, func(typed string) bool {
		a.Command = "echo " + agents.QuotePath(typed) + " | {\n" + command + "\n}"
		score, _ := g.Judge(a, actionrisk.Surroundings{})
		return levelOf(score.Risk) == actionrisk.Critical
	})
}
