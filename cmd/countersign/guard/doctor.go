package guard

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
)

// Try tests hooks: those in the settings of one agent or of all agents, or a given command. It
// starts each hook as the agent would, with an event that runs nothing.
func (a Account) Try(ctx context.Context, only agents.Agent, command []string) []agents.Finding {
	var hooks []agents.Hook
	var found []agents.Finding
	switch len(command) {
	case 0:
		hooks, found = agents.InstalledHooks(only)
	case 1:
		command = []string{"sh", "-c", command[0]}
		fallthrough
	default:
		hooks = []agents.Hook{{By: cmp.Or(only, agents.Claude), Path: "the command line", Argv: command}}
	}
	for _, h := range hooks {
		found = append(found, h.Try(ctx)...)
	}
	found = append(found, a.rulesHere()...)
	if len(hooks) == 0 && agents.Works(found) {
		found = append(found, agents.Finding{State: "bad", Detail: fmt.Sprintf("no guard is installed here: %s gate hook --install %s prints the entry to add; or give the hook's command after --", launch.Name, cmp.Or(only, "AGENT"))})
	}
	return found
}

// rulesHere reports the settings files that apply in this folder, and their requests that are
// ignored.
func (a Account) rulesHere() (found []agents.Finding) {
	here, err := os.Getwd()
	if err != nil {
		return nil
	}
	r, err := a.ReadRules(here, nil)
	if err != nil {
		return []agents.Finding{{State: "bad", Detail: "blocks everything: " + err.Error()}}
	}
	if a.Home == "" {
		found = append(found, agents.Finding{State: "warning", Detail: "the user database has no home folder for this user, so there is no log, and nothing can be trusted or allowed"})
	}
	if len(r.Files) > 0 {
		found = append(found, agents.Finding{State: "ok", Detail: fmt.Sprintf("%s applies here: %d exceptions, up to %s risk", strings.Join(r.Files, ", "), len(r.exceptions()), r.most)})
	}
	if r.observes() {
		found = append(found, agents.Finding{State: "warning", Detail: "OBSERVES ONLY: nothing is stopped here; the log records what would have been stopped"})
	}
	for _, text := range r.Ignored() {
		found = append(found, agents.Finding{State: "warning", Detail: text})
	}
	return found
}
