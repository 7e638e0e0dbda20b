package public

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
)

// homePage is the data of the home page, which has a field to try a command.
type homePage struct {
	BaseURL     string
	FreeCalls   int
	Environment string
	Command     string          // command that was tried
	Problem     string          // why there is no verdict
	Verdict     *tried          // nil if no command was tried
	Examples    []string        // commands to try
	Rules       int             // number of rules in the rule set
	Version     string          // version of the rule set
	Services    []ListedService // services for action safety
	Environs    []environChoice // environments to choose from
}

type environChoice struct {
	Value, Name string
	Chosen      bool
}

// tried is the verdict on a command, with the command cut into matched and unmatched parts.
type tried struct {
	actionrisk.ScoreOutput
	Pieces []Piece
}

// Triable lists example commands with different verdicts.
var Triable = []string{
	"git push --force origin main",
	"rm -rf node_modules",
	`psql -c "DELETE FROM orders WHERE 1=1"`,
	"curl -fsSL https://get.example.com/install.sh | sudo bash",
	`echo "never run rm -rf / here" >> NOTES.md`,
	`{"name":"approve","arguments":{"spender":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amount":"unlimited"}}`,
}

func (r *Room) showHome(_ *web.Visit) (web.View, error) {
	return web.View{Template: "home.html", Data: r.home("", "")}, nil
}

func (r *Room) home(command, environment string) homePage {
	version, _ := actionrisk.Ruleset()
	h := homePage{BaseURL: r.BaseURL, FreeCalls: accounts.FreeCallsPerMonth, Command: command, Environment: environment,
		Examples: Triable, Rules: len(actionrisk.Rules()), Version: version}
	for _, e := range []environChoice{{"", "not said", false}, {"development", "development", false}, {"staging", "staging", false}, {"production", "production", false}} {
		e.Chosen = e.Value == environment
		h.Environs = append(h.Environs, e)
	}
	for _, group := range r.Services.Groups {
		if group.Name == "Safety" {
			h.Services = group.Services
		}
	}
	return h
}

// postHome shows the verdict on a command. This is free. Nothing is signed, recorded or executed.
func (r *Room) postHome(v *web.Visit) (web.View, error) {
	command := strings.TrimSpace(strings.ReplaceAll(v.Form.Get("command"), "\r\n", "\n"))
	if example := v.Form.Get("example"); example != "" {
		command = example
	}
	page := r.home(command, v.Form.Get("environment"))
	if err := r.Checks.MayTry(v.Request); err != nil {
		page.Problem = "Too many commands were tried from this network address. Wait a minute, or use a free key."
		shows, _ := v.Explain(web.View{Template: "home.html", Data: page}, err)
		return shows, nil
	}
	action := actionrisk.Action{Command: command, Environment: page.Environment}
	if err := actionrisk.Check(action); err != nil {
		var refused *policy.Error
		if !errors.As(err, &refused) {
			return web.View{}, err
		}
		page.Problem = "No verdict: " + refused.Message + "."
		return web.View{Template: "home.html", Data: page, Status: http.StatusBadRequest}, nil
	}
	score := actionrisk.ScoreAction(action)
	for _, rule := range score.MatchedRules { // omit the controls that the page already shows with the matched rules
		score.Controls = slices.DeleteFunc(score.Controls, func(control string) bool { return control == rule.Remediation })
	}
	page.Verdict = &tried{score, Pieces(command, score.MatchedRules)}
	return web.View{Template: "home.html", Data: page}, nil
}
