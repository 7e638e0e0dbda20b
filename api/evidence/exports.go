package evidence

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/shape"
	"github.com/countersign/countersign/projections"
)

// maxExported is the largest number of events in an export over HTTP, because the request must
// finish in time. An export by the command line has no limit.
const maxExported = 20_000

// ExportsPath is the path at which exports are created and fetched.
const ExportsPath = "/api/assurance/exports"

// exportRequest selects the events of an export, and what it adds to them. Every member is
// optional.
type exportRequest struct {
	From       string `json:"from,omitempty" jsonschema:"format=date-time" jsonschema_description:"Only events from this time on, RFC 3339."`
	To         string `json:"to,omitempty" jsonschema:"format=date-time" jsonschema_description:"Only events before this time, RFC 3339."`
	Protocol   string `json:"protocol,omitempty" jsonschema:"enum=x402,enum=mcp"`
	Decision   string `json:"decision,omitempty" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	Agent      string `json:"agent,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"subject.agentId of the decisions."`
	Run        string `json:"run,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"subject.runId of the decisions."`
	Statement  bool   `json:"statement,omitempty" jsonschema_description:"true adds a statement of what the agent did in the period: counts and amounts that verifiers compute again. Requires agent."`
	Dispute    string `json:"dispute,omitempty" jsonschema:"pattern=^asd_,maxLength=40" jsonschema_description:"Id of a decision: the bundle is a dispute pack with only the events about this decision, and a page that explains them."`
	NoPersonal bool   `json:"noPersonal,omitempty" jsonschema_description:"true omits the members with personal data."`
}

// RefusesNull makes the parser refuse null for a member. Null would silently export the decisions
// of every agent, or the personal members.
func (exportRequest) RefusesNull() {}

// CreatedExport is the signed manifest of an export and the address of its bundle.
type CreatedExport struct {
	bundle.Manifest
	URL string `json:"url" jsonschema_description:"Address of the bundle. Every GET returns the same bytes."`
}

var createExport = &op.Operation{
	Creates: true, ID: "create_export", Method: http.MethodPost, Path: ExportsPath,
	Summary: "Export the organization's signed history, with proofs and a verifier. The export is recorded as an event, and url in the answer is the address of the bundle.",
	Access:  credential.WithRight(organizations.RightExport), Input: reflect.TypeFor[exportRequest](), Output: reflect.TypeFor[CreatedExport](),
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 404, 413, 503}, Example: `{"from":"2026-07-01T00:00:00Z","to":"2026-10-01T00:00:00Z"}`,
	Refuses: []string{"invalid_value"},
	Conditions: []any{
		shape.When(shape.Given("dispute"), shape.All(shape.NoneGiven("from", "to", "protocol", "decision", "agent", "run"), shape.Not(shape.Is("statement", true)))),
		shape.When(shape.Is("statement", true), shape.All(shape.Given("agent"), shape.NoneGiven("protocol", "decision", "run"))),
	},
}

// Exports creates and serves exports of an organization's history.
type Exports struct {
	Commands    *evidence.Evidence
	Projections *projections.Projections
}

// Operations lists the operations on exports, and the one that returns an event.
func (s *Exports) Operations() []*op.Operation {
	return []*op.Operation{createExport.Does(s.createExport), getExport.Does(s.getExport), createPack.Does(s.createPack), getEvent.Does(s.getEvent)}
}

func (s *Exports) createExport(c *op.Call) (op.Reply, error) {
	var in exportRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	manifest, err := s.Export(c.Request.Context(), c.Principal, evidence.Export{Statement: in.Statement, Dispute: in.Dispute,
		Filters: bundle.Filters{From: in.From, To: in.To, Protocol: in.Protocol, Decision: in.Decision, Agent: in.Agent, Run: in.Run, NoPersonal: in.NoPersonal}})
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Value: CreatedExport{manifest.Manifest, s.Commands.BaseURL + ExportsPath + "/" + manifest.ExportID},
		Header: op.Private()}, nil
}

// Export records an export of the principal's organization as an event. The caller sets Filters,
// Statement and Dispute. The bundle is generated from this event each time it is fetched.
func (s *Exports) Export(ctx context.Context, p organizations.Principal, e evidence.Export) (evidence.Exported, error) {
	folder, err := os.MkdirTemp("", "countersign-export-*")
	if err != nil {
		return evidence.Exported{}, err
	}
	defer os.RemoveAll(folder)
	e.Tenant, e.Actor, e.Folder, e.Most = p.OrgID, p.ActorID, folder, maxExported
	return s.Commands.ExportHistory(ctx, e)
}

var getExport = &op.Operation{
	ID: "get_export", Method: http.MethodGet, Path: ExportsPath + "/{exportId}",
	Summary: "The bundle of an export, a tar.gz. The service builds it from the export's event on every request, always with the same bytes.",
	Access:  credential.WithRight(organizations.RightExport), Media: "application/gzip", Errors: []int{401, 403, 404, 409, 503},
}

func (s *Exports) getExport(c *op.Call) (op.Reply, error) {
	folder, err := os.MkdirTemp("", "countersign-export-*")
	if err != nil {
		return op.Reply{}, err
	}
	defer os.RemoveAll(folder)
	manifest, err := s.Commands.ExportAgain(c.Request.Context(), c.Principal.OrgID, c.Vars["exportId"], folder)
	if err != nil {
		return op.Reply{}, err
	}
	packed, err := s.packed(c.Request.Context(), c.Principal, manifest, folder)
	return bundleReply(manifest.ExportID, packed), err
}

// packed returns the file of a bundle, and records that the principal gets the personal data in
// it.
func (s *Exports) packed(ctx context.Context, p organizations.Principal, m bundle.Manifest, folder string) ([]byte, error) {
	if !m.Filters.NoPersonal {
		if err := s.Commands.NotePersonalOpened(ctx, p, "exports"); err != nil {
			return nil, err
		}
	}
	var file bytes.Buffer
	err := bundle.NewFolder(folder).Pack(&file)
	return file.Bytes(), err
}

// bundleReply returns the answer with the file of a bundle.
func bundleReply(exportID string, packed []byte) op.Reply {
	return op.Reply{Body: packed, Media: "application/gzip", Header: http.Header{"Cache-Control": {"private, no-store"},
		"Content-Disposition": {`attachment; filename="` + exportID + `.tar.gz"`}}}
}
