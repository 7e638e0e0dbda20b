package guard

import (
	"slices"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
)

// unseenInputs lists the inputs that takesInput tries with a command. Each of them is critical if
// the command runs it.
var unseenInputs = []string{agents.CanaryCommand, "drop database production;"}

// opensInput matches the name of a shell or console at the start of a command. It is needed
// because many other programs pass their input on and do not run it.
var opensInput = pattern.Lazy(`(?:^|[;&|({\n]\s*)(?:(?:exec|sudo|env|command|nohup|time|-\S+|\w+=\S*)\s+)*(?:\S*/)?` +
	`(?:(?:ba|da|z|k|fi|c|tc)?sh|pwsh|su|ssh|docker|podman|nerdctl|kubectl|k|oc|` +
	`psql|mysql|mariadb|sqlite3|sqlcmd|sqlplus|clickhouse-client|duckdb|mongosh|redis-cli)(?:\s|$)`)

// takesInput reports whether a command opens a shell or console that would run text typed into it
// later. It judges the command with each of unseenInputs as input. Codex types such text with a
// separate tool, and sends no event for that.
func (g Guard) takesInput(a actionrisk.Action) bool {
	command := a.Command
	return opensInput().MatchString(command) && slices.ContainsFunc(unseenInputs, func(typed string) bool {
		a.Command = "echo " + agents.QuotePath(typed) + " | {\n" + command + "\n}"
		score, _ := g.Judge(a, actionrisk.Surroundings{})
		return levelOf(score.Risk) == actionrisk.Critical
	})
}
