package projections

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// The list of decisions is a query on the history. Personal values and values without a column
// are compared by the caller after it opened the records, because an agent's name is stored
// only encrypted.

// DecisionRow is a row of the history about a decision, in addition to its record.
type DecisionRow struct {
	Sequence    int64
	DecisionID  string
	Verdict     *string // the verdict of a person
	ReceiptID   *string
	Outcome     *string
	Conformance *string
	Alerts      []string
}

// DecisionFilter selects decisions; an empty member selects all.
type DecisionFilter struct {
	Actors      []string // nil: of every actor
	Decision    string
	Conformance string // of the receipt; "none": decisions without a receipt
	Agent       string // data key of the agent's name
	Below       int64  // a sequence, as SequenceOf reads it from a cursor
}

// Decisions lists decisions of a tenant, newest first. It waits until everything appended
// before the call is visible, or returns ErrBehind.
func (p *Projections) Decisions(ctx context.Context, tenant string, f DecisionFilter, limit int) ([]DecisionRow, error) {
	if err := p.wait(ctx, history.name, tenant, ""); err != nil {
		return nil, err
	}
	where, args := f.where(tenant)
	return collect(ctx, p, func(row pgx.CollectableRow) (DecisionRow, error) {
		var d DecisionRow
		var item *string
		if err := row.Scan(&d.Sequence, &d.DecisionID, &d.Verdict, &d.ReceiptID, &item, &d.Alerts); err != nil || item == nil {
			return d, err
		}
		var receipt HistoryItem
		err := json.Unmarshal([]byte(*item), &receipt)
		d.Outcome, d.Conformance = receipt.Outcome, receipt.Conformance
		return d, err
	}, `select h.sequence, h.decision_id, h.verdict, r.receipt_id, r.item, h.alerts
		from readmodels.history h left join readmodels.history r on r.tenant = h.tenant and r.decision_id = h.decision_id and r.kind = 'receipt'
		where `+where+` order by h.sequence desc limit `+strconv.Itoa(limit), args...)
}

// where returns the condition of a filter with its arguments. It has only the members that are set,
// because a condition that is true for an empty member cannot use an index.
func (f DecisionFilter) where(tenant string) (condition string, args []any) {
	condition, args = `h.tenant = $1 and h.kind = 'decision' and h.sequence < $2`, []any{tenant, f.Below}
	and := func(text string, value any) {
		args = append(args, value)
		condition += fmt.Sprintf(" and "+text, len(args))
	}
	if f.Actors != nil {
		and("h.actor = any($%d::text[])", f.Actors)
	}
	if f.Decision != "" {
		and("h.decision = $%d", f.Decision)
	}
	if f.Agent != "" {
		and("h.agent = $%d", f.Agent)
	}
	switch f.Conformance {
	case "":
	case "none":
		condition += " and r.receipt_id is null"
	default:
		and("r.tenant = $1 and r.conformance = $%d", f.Conformance)
	}
	return condition, args
}

// Cursor returns the cursor with which a list continues below a sequence.
func Cursor(sequence int64) string { return cursorOf(sequence) }

// SequenceOf returns the sequence below which a list continues for a cursor. Without a cursor
// it begins with the newest. ok is false for a cursor that no page returned.
func SequenceOf(cursor string) (before int64, ok bool) { return sequenceOf(cursor) }

// WrongCursor is the warning about a cursor that no page returned.
const WrongCursor = wrongCursor
