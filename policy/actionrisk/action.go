package actionrisk

import (
	"strconv"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/canon"
)

// BindingVersion names the method by which Hash computes the hash of an action.
const BindingVersion = "svc-action-v1"

// bound lists the members of an action that its hash covers.
type bound struct {
	Command     string `json:"command"`
	Repo        string `json:"repo,omitempty"`
	Cwd         string `json:"cwd,omitempty"`
	Branch      string `json:"branch,omitempty"`
	Actor       string `json:"actor,omitempty"`
	Intent      string `json:"intent,omitempty"`
	DiffStat    string `json:"diffStat,omitempty"`
	Environment string `json:"environment,omitempty"`
	Target      string `json:"target,omitempty"`
	Commit      string `json:"commit,omitempty"`
	DiffHash    string `json:"diffHash,omitempty"`
}

// Hash returns the actionHash: the SHA-256, in lower-case hexadecimal, of "svc-action-v1", a line
// feed and the canonical JSON of the members that are present. FailClosedOnUnmatched is not
// covered, because it changes the verdict, not the action.
func Hash(a act.Action) string {
	text, err := canon.Marshal(bound{a.Command, a.Repo, a.Cwd, a.Branch, a.Actor, a.Intent,
		a.DiffStat, a.Environment, a.Target, a.Commit, a.DiffHash})
	if err != nil { // the action has invalid UTF-8, so it cannot have come as JSON: hash the quoted bytes
		text = []byte(strconv.QuoteToASCII(a.Command))
	}
	return canon.Hash(append([]byte(BindingVersion+"\n"), text...))
}
