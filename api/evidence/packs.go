package evidence

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/pack"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// maxStatements is the largest number of statements in a pack over HTTP, because the request must
// finish in time.
const maxStatements = 25

// packRequest describes an evidence pack.
type packRequest struct {
	Framework   string `json:"framework" jsonschema:"enum=soc2,enum=iso42001,enum=eu-ai-act,enum=nist-ai-rmf,enum=sec17a4" jsonschema_description:"Framework whose requirements the cover page lists."`
	Period      string `json:"period" jsonschema:"pattern=^[0-9]{4}(Q[1-4]|-(0[1-9]|1[0-2]))?$" jsonschema_description:"A quarter, month or year: 2026Q4, 2026-11 or 2026."`
	RequestedBy string `json:"requestedBy,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"The person or organization that requested the pack, for its cover page. Default: the id of the caller."`
	NoPersonal  bool   `json:"noPersonal,omitempty" jsonschema_description:"true omits the members with personal data, and the statements about agents."`
}

// RefusesNull makes the parser refuse null for a member. Null would silently export the personal
// members.
func (packRequest) RefusesNull() {}

var createPack = &op.Operation{
	Creates: true, ID: "create_evidence_pack", Method: http.MethodPost, Path: "/api/assurance/evidence-packs",
	Summary: "The evidence pack of a period for an audit, a tar.gz: a signed export with a cover page, statements about agents, and the histories of reviews, access and policies. The pack is recorded as an event, but not stored: keep the answer.",
	Access:  credential.WithRight(organizations.RightExport), Input: reflect.TypeFor[packRequest](), Media: "application/gzip",
	Success: http.StatusOK, Errors: []int{400, 401, 403, 404, 413, 503}, Example: `{"framework":"soc2","period":"2026Q4"}`,
	Refuses: []string{"invalid_value"},
}

func (s *Exports) createPack(c *op.Call) (op.Reply, error) {
	var in packRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	from, to, ok := query.Period(in.Period)
	if !ok {
		return op.Reply{}, policy.Refuse("invalid_format", "/period", query.WrongPeriod)
	}
	id, packed, err := s.Pack(c.Request.Context(), c.Principal, pack.Order{Framework: in.Framework, From: from, To: to, RequestedBy: in.RequestedBy, NoPersonal: in.NoPersonal})
	return bundleReply(id, packed), err
}

// Pack creates an evidence pack of the principal's organization. It records the pack as an event
// and returns its id and its file. The file cannot be built again later: its figures depend on the
// time, and it contains the state of the ledger's verification at this time.
func (s *Exports) Pack(ctx context.Context, p organizations.Principal, o pack.Order) (exportID string, file []byte, err error) {
	folder, err := os.MkdirTemp("", "countersign-export-*")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(folder)
	o.RequestedBy, o.Statements = cmp.Or(o.RequestedBy, p.ActorID), maxStatements
	maker := pack.Maker{Commands: s.Commands, Projections: s.Projections}
	e, err := maker.Export(evidence.Export{Tenant: p.OrgID, Actor: p.ActorID, Folder: folder, Most: maxExported}, o)
	if err != nil {
		return "", nil, err
	}
	m, err := s.Commands.ExportHistory(ctx, e)
	if err != nil {
		return "", nil, query.Error(err)
	}
	file, err = s.packed(ctx, p, m.Manifest, folder)
	return m.ExportID, file, err
}
