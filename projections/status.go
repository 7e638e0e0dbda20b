package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/canon"
)

// status is the read model of workflow records, which are kept for 30 days.
var status = projection{
	name:    "status",
	tables:  []string{"workflow_status"},
	version: 1,
	handles: events.ShownIn("status"),
	signed:  []string{events.TypeCallCompleted},
	apply:   applyStatus,

	applyRun: applyStatuses,

	sweep: `delete from readmodels.workflow_status where expires_at < now() - interval '1 day'`,
}

// StatusRecord is the answer of the status endpoint. A record with an action binding (shape A of
// the specification) has ActionBindingVersion and ActionHash. A legacy record (shape B, from
// workflow.completed) has Binding instead.
type StatusRecord struct {
	WorkflowID           string                  `json:"workflowId" jsonschema:"pattern=^asw_[0-9a-f-]{36}$"`
	Status               string                  `json:"status" jsonschema:"enum=completed,enum=review_required"`
	Risk                 string                  `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical"`
	Decision             string                  `json:"decision" jsonschema:"enum=allow,enum=allow_with_controls,enum=needs_review"`
	RequiresHumanReview  bool                    `json:"requiresHumanReview"`
	Audit                StatusAudit             `json:"audit"`
	CreatedAt            string                  `json:"createdAt" jsonschema:"format=date-time"`
	ExpiresAt            string                  `json:"expiresAt" jsonschema:"format=date-time"`
	ActionBindingVersion string                  `json:"actionBindingVersion,omitempty" jsonschema:"enum=svc-action-v1"`
	ActionHash           string                  `json:"actionHash,omitempty" jsonschema:"pattern=^[a-f0-9]{64}$"`
	Binding              *StatusBinding          `json:"binding,omitempty"`
	Receipt              *seal.Envelope          `json:"receipt,omitempty"`
	Boundaries           actionsafety.Boundaries `json:"boundaries"`
}

// StatusAudit contains the ids of the workflow's component answers.
type StatusAudit struct {
	CommandScoreRequestID *string `json:"commandScoreRequestId" jsonschema:"nullable"`
	ReviewTriageRequestID *string `json:"reviewTriageRequestId" jsonschema:"nullable"`
}

// StatusBinding replaces the action hash in a legacy record.
type StatusBinding struct {
	Available bool   `json:"available" jsonschema:"enum=false" jsonschema_description:"Always false."`
	Reason    string `json:"reason" jsonschema:"enum=legacy_status_record_without_versioned_action_binding" jsonschema_description:"Why there is no action hash."`
}

// legacyReason is the specification's text for a record without an action binding.
const legacyReason = "legacy_status_record_without_versioned_action_binding"

func applyStatus(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	_, err := applyStatuses(ctx, nil, tx, []ledger.Event{e})
	return err
}

// applyStatuses inserts the records of all events of a list in one statement.
func applyStatuses(ctx context.Context, _ *ledger.Ledger, tx pgx.Tx, list []ledger.Event) (n int, err error) {
	var ids, records []string
	var expires []time.Time
	for _, e := range list {
		record, err := statusOf(e)
		if err != nil {
			return 0, err
		}
		if record == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, record.ExpiresAt)
		if err != nil {
			return 0, fmt.Errorf("expiresAt: %w", err)
		}
		text, err := canon.Marshal(record)
		if err != nil {
			return 0, err
		}
		ids, records, expires = append(ids, record.WorkflowID), append(records, string(text)), append(expires, at)
	}
	if len(ids) == 0 {
		return len(list), nil
	}
	_, err = tx.Exec(ctx, `insert into workflow_status (workflow_id, record, expires_at)
		select * from unnest($1::text[], $2::text[], $3::timestamptz[])`, ids, records, expires)
	return len(list), err
}

// statusOf returns the status record of an event that contains a workflow, or nil. It has no side
// effects. A call contains its workflow in the record of its receipt.
func statusOf(e ledger.Event) (*StatusRecord, error) {
	if e.Type == events.TypeWorkflowCompleted {
		stored, err := events.As[events.WorkflowCompleted](e)
		if err != nil {
			return nil, err
		}
		record := recordOf(stored.Workflow)
		record.Binding = &StatusBinding{Reason: legacyReason}
		return record, nil
	}
	s, signed, err := e.Signed()
	if err != nil || !signed {
		return nil, err
	}
	start, end, found := canon.Find(s.Record, "workflow")
	if !found {
		return nil, nil
	}
	var w events.Workflow
	if err := canon.Decode(s.Record[start:end], &w); err != nil {
		return nil, err
	}
	record, position := recordOf(w), e.LedgerPosition()
	record.ActionBindingVersion, record.ActionHash = w.ActionBindingVersion, w.ActionHash
	record.Receipt = &seal.Envelope{Record: s.Record, Integrity: s.Integrity, Ledger: &position, Verify: &seal.VerifyAt{URL: s.VerifyURL, Method: "POST"}}
	return record, nil
}

// recordOf returns the members that both shapes of a record have.
func recordOf(w events.Workflow) *StatusRecord {
	return &StatusRecord{
		WorkflowID: w.WorkflowID, Status: w.Status, Risk: w.Risk, Decision: w.Decision,
		RequiresHumanReview: w.RequiresHumanReview,
		Audit:               StatusAudit{w.Audit.CommandScoreRequestID, w.Audit.ReviewTriageRequestID},
		CreatedAt:           w.CreatedAt, ExpiresAt: w.ExpiresAt,
		Boundaries: actionsafety.Limits,
	}
}

// Status returns the record of a workflow as canonical JSON. It waits until every event appended
// before the call is visible, or returns ErrBehind. For a workflow that is unknown or older than
// 30 days by the database's clock, it returns ErrNotFound. If any event of the tenant is parked,
// it returns ErrBehind instead: the parked event may contain the workflow, because the stream of a
// call does not name its workflow.
func (p *Projections) Status(ctx context.Context, workflowID string) (jsontext.Value, error) {
	if err := p.wait(ctx, "status", p.ledger.Service(workflowID), "workflow/"+workflowID); err != nil {
		return nil, err
	}
	var record string
	err := p.ledger.Pool().QueryRow(ctx, `select record from readmodels.workflow_status
		where workflow_id = $1 and expires_at > now()`, workflowID).Scan(&record)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, cmp.Or(p.wait(ctx, "status", p.ledger.Service(workflowID), ""), ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return jsontext.Value(record), nil
}
