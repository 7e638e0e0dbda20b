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

// packFolder is the folder of the files that a Pack adds.
const packFolder = "pack/"

// errPack refuses to build an evidence pack again: it has figures of the time when it was made.
var errPack = policy.Refuse(organizations.CodeConflict, "", "an evidence pack has figures of the time when it was made, so it is not built again; make a new one")

// pack lets the caller add its files.
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

// count counts an event of the period for a pack or a statement. It notes the names of agents
// only from openings that the export contains, so that a pack without personal members names no
// agent.
func (x *exporting) count(e bundle.Shows) {
	if x.tally != nil {
		x.tally.Add(e.Type, e.Series, e.Payload)
	}
	if x.agents == nil || e.Type != events.TypeDecisionRecorded || len(x.agents) > MostAgents {
		return
	}
	for _, o := range e.Openings {
		var agent string
		if o.Pointer == "/record/subject/agentId" && json.Unmarshal([]byte(o.Value), &agent) == nil {
			x.agents[agent] = true
		}
	}
}

// beginCounting prepares the counts of a pack or a statement.
func (x *exporting) beginCounting() {
	if x.e.Pack != nil {
		x.agents = map[string]bool{}
	}
	if x.e.Pack != nil || x.e.Statement {
		x.tally = bundle.NewTally()
	}
	if x.e.Statement {
		x.manifest.Statement = &bundle.Statement{} // state fills it
	}
}

// state puts the counts of a statement into the manifest.
func (x *exporting) state() {
	if x.manifest.Statement != nil {
		*x.manifest.Statement = x.tally.Statement()
	}
}
