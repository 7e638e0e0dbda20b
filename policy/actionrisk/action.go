package actionrisk

import (
	"strconv"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/canon"
)

// BindingVersion names how an action is bound to its hash.
const BindingVersion = "svc-action-v1"

// bound are the members of an action that its hash commits to.
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

// Hash is the actionHash: lower-case hex SHA-256 of "svc-action-v1", a line feed
// and the canonical JSON of the members present. FailClosedOnUnmatched is a
// wish about the answer, not part of the action, and stands outside.
func Hash(a act.Action) string {
	text, err := canon.Marshal(bound{a.Command, a.Repo, a.Cwd, a.Branch, a.Actor, a.Intent,
		a.DiffStat, a.Environment, a.Target, a.Commit, a.DiffHash})
	if err != nil { // invalid UTF-8: no JSON text ever carried it, so quote the bytes
		text = []byte(strconv.QuoteToASCII(a.Command))
	}
	return canon.Hash(append([]byte(BindingVersion+"\n"), text...))
}
