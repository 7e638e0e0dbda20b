package projections

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// The list of decisions is a query on the table history, which has no personal data: names and
// purposes are stored only encrypted. The caller decrypts the records, and filters by text.

// DecisionRow contains the columns of a decision in the history. The caller reads the record
// itself.
type DecisionRow struct {
	Sequence    int64
	DecisionID  string
	Verdict     *string // verdict of a person; nil if there is none
	ReceiptID   *string
	Outcome     *string
	Conformance *string
	Alerts      []string
}

// DecisionFilter selects decisions. An empty member does not restrict them.
type DecisionFilter struct {
	Actors      []string // actors who caused the decision; nil means every actor
	Decision    string
	Conformance string // conformance of the receipt; "none" selects decisions without a receipt
	Agent       string // data key of the agent's name
	Protocol    string
	Run         string
	Target      string // as assurance.Target returns it
	Rule        string // rule with a finding
	Below       int64  // sequence before which the list continues, as SequenceOf returns it
}

// Decisions lists decisions of a tenant, newest first. It waits until every event appended before
// the call is visible, or returns ErrBehind.
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
	for _, member := range []struct{ text, value string }{
		{"h.decision = $%d", f.Decision}, {"h.agent = $%d", f.Agent}, {"h.protocol = $%d", f.Protocol}, {"h.run = $%d", f.Run},
		{"h.target = $%d", f.Target}, {"$%d = any(h.rules)", f.Rule},
	} {
		if member.value != "" {
			and(member.text, member.value)
		}
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
