package evidence

import (
	"context"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// packFolder is the folder in a bundle for the files of a Pack.
const packFolder = "pack/"

// errPack refuses to build an evidence pack or a recall again: the figures of a pack depend on the
// time, and the ledger does not have the policy of a recall.
var errPack = policy.Refuse(organizations.CodeConflict, "", "an evidence pack or a recall cannot be built again; make a new one")

// pack calls the export's Pack, if it has one.
func (x *exporting) pack(ctx context.Context) error {
	if x.e.Pack == nil {
		return nil
	}
	found := Found{Agents: slices.Sorted(maps.Keys(x.agents)), More: len(x.agents) > MostAgents, Totals: x.tally.Statement()}
	if found.More {
		found.Agents = found.Agents[:MostAgents]
	}
	return x.e.Pack(ctx, x.manifest, found, func(name string, text []byte) error { return x.folder.Put(packFolder+name, text) })
}

// count adds an event of the period to a recall, and to the counts for a pack or a statement. It
// reads agent ids from the openings that the bundle contains, so a pack without personal data names
// no agent.
func (x *exporting) count(e bundle.Shows) error {
	if x.e.Recall != nil {
		if err := x.e.Recall.add(e); err != nil {
			return err
		}
	}
	if x.tally != nil {
		x.tally.Add(e.Type, e.Series, e.Payload)
	}
	if x.agents == nil || e.Type != events.TypeDecisionRecorded || len(x.agents) > MostAgents {
		return nil
	}
	for _, o := range e.Openings {
		var agent string
		if o.Pointer == "/record/subject/agentId" && json.Unmarshal([]byte(o.Value), &agent) == nil {
			x.agents[agent] = true
		}
	}
	return nil
}

// beginCounting creates the counters that a pack or a statement needs, and adds the policy or the
// rule set of a recall to the files.
func (x *exporting) beginCounting() {
	switch r := x.e.Recall; {
	case r == nil:
	case r.policy != nil:
		x.policies[r.Found.PolicyHash] = r.text
	default:
		x.rules[r.Found.RulesetHash] = r.text
	}
	if x.e.Pack != nil {
		x.agents = map[string]bool{}
	}
	if x.e.Pack != nil || x.e.Statement {
		x.tally = bundle.NewTally()
	}
	if x.e.Statement {
		x.manifest.Statement = &bundle.Statement{} // the method state fills it
	}
}

// state writes the counts of a statement into the manifest.
func (x *exporting) state() {
	if x.manifest.Statement != nil {
		*x.manifest.Statement = x.tally.Statement()
	}
}
