package projections

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/stored"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// history lists the decisions and receipts of each organization.
var history = projection{
	name:     "history",
	tables:   []string{"history"},
	version:  1,
	handles:  events.ShownIn("history"),
	apply:    applyHistory,
	applyRun: applyRecorded,
}

// alertReused is the alert of decisions and receipts that claim the same settlement.
const alertReused = "settlement_reused"

// HistoryItem is one decision or receipt.
type HistoryItem struct {
	Kind          string              `json:"kind" jsonschema:"enum=decision,enum=receipt"`
	Sequence      int64               `json:"sequence"`
	RecordedAt    string              `json:"recordedAt" jsonschema:"format=date-time"`
	DecisionID    string              `json:"decisionId"`
	ReceiptID     *string             `json:"receiptId" jsonschema:"nullable"`
	Protocol      string              `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	RunID         string              `json:"runId"`
	Decision      string              `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	Outcome       *string             `json:"outcome" jsonschema:"nullable"`
	Conformance   *string             `json:"conformance" jsonschema:"nullable"`
	PolicyID      string              `json:"policyId"`
	PolicyVersion int64               `json:"policyVersion"`
	RuleIDs       []string            `json:"ruleIds"`
	Alerts        []string            `json:"alerts"`
	Integrity     seal.Integrity      `json:"integrity"`
	Ledger        seal.LedgerPosition `json:"ledger"`
}

// applyHistory applies approvals, which applyRecorded does not.
func applyHistory(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	stored, err := events.As[events.ApprovalRecorded](e)
	if err != nil {
		return err
	}
	approval, err := assurance.ReadApproval(stored.Record)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update history set verdict = $3 where tenant = $1 and decision_id = $2`,
		e.Tenant, approval.DecisionID, approval.Verdict)
	return err
}

func itemOf(e ledger.Event, kind string, integrity seal.Integrity) HistoryItem {
	return HistoryItem{Kind: kind, Sequence: e.Sequence, RuleIDs: []string{}, Alerts: []string{}, Integrity: integrity,
		Ledger: e.LedgerPosition()}
}

// applyRecorded inserts the decisions and receipts of a list up to its first approval. For a
// decision, the displayed members are read from its event when it is listed, because far more
// decisions are written than listed.
func applyRecorded(ctx context.Context, l *ledger.Ledger, tx pgx.Tx, list []ledger.Event) (n int, err error) {
	for n < len(list) && list[n].Type != events.TypeApprovalRecorded {
		n++
	}
	return n, insertRecorded(ctx, l, tx, list[:n], &historyRows{})
}

// recordedRows collects the rows that decisions and receipts add to a read model.
type recordedRows interface {
	addDecision(e ledger.Event) error
	addReceipt(e, decision ledger.Event) error
	insert(ctx context.Context, tx pgx.Tx) error
}

// insertRecorded inserts the rows of a list of decisions and receipts. If the decision of a
// receipt is not in the list, it reads that decision from the ledger.
func insertRecorded(ctx context.Context, l *ledger.Ledger, tx pgx.Tx, list []ledger.Event, rows recordedRows) error {
	decisions, err := decisionsOf(ctx, l, tx, list)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Type == events.TypeDecisionRecorded {
			err = rows.addDecision(e)
		} else if decision := decisions[decisionKey(e)]; decision.Type == "" {
			err = errors.New("the decision of a receipt is missing")
		} else {
			err = rows.addReceipt(e, decision)
		}
		if err != nil {
			return err
		}
	}
	return rows.insert(ctx, tx)
}

// decisionKey returns tenant and id of the decision whose stream contains an event.
func decisionKey(e ledger.Event) [2]string {
	return [2]string{e.Tenant, strings.TrimPrefix(e.Stream, "decision/")}
}

// decisionsOf returns the decisions in a list, and the decisions of the receipts in it. A decision
// is the first event of its receipt's stream.
func decisionsOf(ctx context.Context, l *ledger.Ledger, tx pgx.Tx, list []ledger.Event) (map[[2]string]ledger.Event, error) {
	decisions := map[[2]string]ledger.Event{}
	var tenants, ids []string
	for _, e := range list {
		key := decisionKey(e)
		if e.Type == events.TypeDecisionRecorded {
			decisions[key] = e
		} else if _, here := decisions[key]; !here {
			tenants, ids = append(tenants, key[0]), append(ids, key[1])
		}
	}
	if len(ids) == 0 {
		return decisions, nil
	}
	rows, err := tx.Query(ctx, `select w.tenant, w.id, e.tseq, e.type, e.schema_version, e.actor, e.payload, e.agent
		from unnest($1::text[], $2::text[]) w (tenant, id)
		join public.events e on e.p = $3 and e.tenant = w.tenant and e.stream = 'decision/' || w.id and e.version = 1`, tenants, ids, list[0].Partition)
	if err != nil {
		return nil, err
	}
	var key [2]string
	var d ledger.Event
	archived := map[string][]int64{} // sequences of decisions whose payload is archived, by tenant
	_, err = pgx.ForEachRow(rows, []any{&key[0], &key[1], &d.Sequence, &d.Type, &d.SchemaVersion, &d.Actor, &d.Payload, (*zeronull.Text)(&d.Agent)}, func() error {
		d.Tenant, d.Payload = key[0], stored.Payload(d.Payload)
		if decisions[key] = d; d.Payload == nil {
			archived[key[0]] = append(archived[key[0]], d.Sequence)
		}
		return nil
	})
	for tenant, sequences := range archived {
		found, readErr := l.BySequence(ctx, tenant, sequences)
		for _, e := range found {
			decisions[decisionKey(e)] = e
		}
		err = errors.Join(err, readErr)
	}
	return decisions, err
}

// memberOf returns a string member of the record in an event.
func memberOf(e ledger.Event, name string) (text string, err error) {
	err = readMember(events.RecordIn(e.Payload), name, &text)
	return text, err
}

// readMember decodes a member of a record. A record without the member is an error.
func readMember(record []byte, name string, into any) error {
	start, end, _ := canon.Find(record, name)
	if err := json.Unmarshal(record[start:end], into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// decisionItem returns the list entry of a decision.
func decisionItem(e ledger.Event) (HistoryItem, error) {
	stored, _, err := e.Signed()
	if err != nil {
		return HistoryItem{}, err
	}
	d, err := assurance.ReadSummary(stored.Record)
	if err != nil {
		return HistoryItem{}, err
	}
	item := itemOf(e, "decision", stored.Integrity)
	item.RecordedAt, item.DecisionID, item.Protocol, item.RunID = d.IssuedAt, d.DecisionID, d.Protocol, d.RunID
	item.Decision, item.PolicyID, item.PolicyVersion, item.RuleIDs = d.Decision, d.PolicyID, d.PolicyVersion, d.RuleIDs
	return item, nil
}

// historyRows collects rows of the table, with one slice per column.
type historyRows struct {
	tenants, kinds, decisionIDs, actors, decisions []string
	sequences                                      []int64
	receiptIDs, settlements, items                 []*string
	agents                                         []zeronull.Text
	conformances                                   []*string
	protocols, runs, targets, rules                []*string // rules are separated by spaces

	settled [][2]string // tenant and settlement of each receipt that has a settlement
}

func (h *historyRows) add(e ledger.Event, kind, decisionID, decision string, receiptID, settlement, item *string) {
	h.tenants, h.sequences, h.kinds = append(h.tenants, e.Tenant), append(h.sequences, e.Sequence), append(h.kinds, kind)
	h.decisionIDs, h.receiptIDs = append(h.decisionIDs, decisionID), append(h.receiptIDs, receiptID)
	h.actors, h.decisions = append(h.actors, e.Actor), append(h.decisions, decision)
	h.settlements, h.items = append(h.settlements, settlement), append(h.items, item)
	h.agents, h.conformances = append(h.agents, ""), append(h.conformances, nil)
	h.protocols, h.runs, h.targets, h.rules = append(h.protocols, nil), append(h.runs, nil), append(h.targets, nil), append(h.rules, nil)
}

func (h *historyRows) addDecision(e ledger.Event) error {
	record := events.RecordIn(e.Payload)
	d, err := assurance.ReadSummary(record)
	if err != nil {
		return err
	}
	var n assurance.Intent
	if err := readMember(record, "normalized", &n); err != nil {
		return err
	}
	target, rules := assurance.Target(d.Protocol, n), strings.Join(d.RuleIDs, " ")
	h.add(e, "decision", d.DecisionID, d.Decision, nil, nil, nil)
	last := len(h.agents) - 1
	h.agents[last] = zeronull.Text(e.Agent)
	h.protocols[last], h.runs[last], h.targets[last], h.rules[last] = &d.Protocol, &d.RunID, &target, &rules
	return nil
}

func (h *historyRows) addReceipt(e, decision ledger.Event) error {
	r, item, err := receiptItem(e, decision)
	if err != nil {
		return err
	}
	text, err := canon.Marshal(item)
	if err != nil {
		return err
	}
	shown := string(text)
	h.add(e, item.Kind, item.DecisionID, item.Decision, item.ReceiptID, r.SettlementID, &shown)
	h.conformances[len(h.conformances)-1] = item.Conformance
	if r.SettlementID != nil {
		h.settled = append(h.settled, [2]string{e.Tenant, *r.SettlementID})
	}
	return nil
}

// insert inserts the rows. If several receipts claim the same settlement, it marks all of them and
// their decisions, whichever came first.
func (h *historyRows) insert(ctx context.Context, tx pgx.Tx) error {
	if len(h.tenants) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into history (tenant, sequence, kind, decision_id, receipt_id, actor, decision, settlement_id, item, agent, conformance, protocol, run, target, rules)
		select tenant, sequence, kind, decision_id, receipt_id, actor, decision, settlement_id, item, agent, conformance, protocol, run, target, string_to_array(rules, ' ')
		from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
			row (tenant, sequence, kind, decision_id, receipt_id, actor, decision, settlement_id, item, agent, conformance, protocol, run, target, rules)`,
		h.tenants, h.sequences, h.kinds, h.decisionIDs, h.receiptIDs, h.actors, h.decisions, h.settlements, h.items, h.agents, h.conformances,
		h.protocols, h.runs, h.targets, h.rules)
	if err != nil || len(h.settled) == 0 {
		return err
	}
	var tenants, settlements []string
	for _, s := range h.settled {
		tenants, settlements = append(tenants, s[0]), append(settlements, s[1])
	}
	_, err = tx.Exec(ctx, `update history h set alerts = array[$3::text] from (
			select distinct r.tenant, r.decision_id from unnest($1::text[], $2::text[]) s (tenant, id)
			join history r on r.tenant = s.tenant and r.settlement_id = s.id
			where (select count(*) from history c where c.tenant = s.tenant and c.settlement_id = s.id) > 1) reused
		where h.tenant = reused.tenant and h.decision_id = reused.decision_id`, tenants, settlements, alertReused)
	return err
}

// receiptItem returns the list entry of a receipt, from its own event and that of its decision.
func receiptItem(e, decision ledger.Event) (r assurance.ReceiptRecord, item HistoryItem, err error) {
	stored, err := events.As[events.ReceiptRecorded](e)
	if err != nil {
		return r, item, err
	}
	if err := json.Unmarshal(stored.Record, &r); err != nil {
		return r, item, err
	}
	of, err := decisionItem(decision)
	if err != nil {
		return r, HistoryItem{}, err
	}
	item = itemOf(e, "receipt", stored.Integrity)
	item.RecordedAt, item.DecisionID, item.ReceiptID, item.Protocol, item.RunID = r.ReceivedAt, r.DecisionID, &r.ReceiptID, r.Protocol, of.RunID
	item.Decision, item.Outcome, item.Conformance, item.PolicyID, item.PolicyVersion = r.Decision, &r.Outcome, &r.Conformance, of.PolicyID, of.PolicyVersion
	for _, f := range r.Findings {
		item.RuleIDs = append(item.RuleIDs, f.RuleID)
	}
	return r, item, nil
}

// HistoryPage is one page of the history.
type HistoryPage struct {
	Items      []HistoryItem `json:"items"`
	Limit      int           `json:"limit"`
	NextCursor *string       `json:"nextCursor" jsonschema:"nullable"`
	Warnings   []string      `json:"warnings,omitempty" jsonschema_description:"Warnings about query parameters that were ignored."`
}

// History lists the decisions and receipts of an organization, newest first. If actors is not nil,
// it lists only entries of these actors. For a cursor that no page has returned, it returns an
// empty last page and a warning, so that a client that follows cursors terminates. It waits until
// every event appended before the call is visible, or returns ErrBehind.
func (p *Projections) History(ctx context.Context, tenant string, actors []string, limit int, cursor string) (HistoryPage, error) {
	if err := p.wait(ctx, history.name, tenant, ""); err != nil {
		return HistoryPage{}, err
	}
	before, ok := SequenceOf(cursor)
	if !ok {
		return HistoryPage{Items: []HistoryItem{}, Limit: limit, Warnings: []string{WrongCursor}}, nil
	}
	items, err := p.items(ctx, tenant, `tenant = $1 and sequence < $2 and ($3::text[] is null or actor = any($3)) order by sequence desc limit $4`,
		tenant, before, actors, limit+1)
	if err != nil {
		return HistoryPage{}, err
	}
	page := HistoryPage{Items: items, Limit: limit}
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		next := Cursor(page.Items[limit-1].Sequence)
		page.NextCursor = &next
	}
	return page, nil
}

const cursorPrefix = "before:"

// Cursor returns the cursor of a list that continues before a sequence.
func Cursor(sequence int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + strconv.FormatInt(sequence, 10)))
}

// WrongCursor is the warning about a cursor that no page has returned.
const WrongCursor = "cursor was not returned by a page, so nothing follows it: leave it out to get the first page"

// SequenceOf returns the sequence before which a page starts. An empty cursor starts with the
// newest entry. ok is false for a cursor that no page has returned.
func SequenceOf(cursor string) (before int64, ok bool) {
	const newest = 1 << 62
	if cursor == "" {
		return newest, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	digits, ok := strings.CutPrefix(string(text), cursorPrefix)
	n, err2 := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || err2 != nil || n < 1 {
		return 0, false
	}
	return n, cursor == Cursor(n)
}

// DecisionOfReceipt returns the decision of a receipt of the organization; both are in the
// decision's stream. For an unknown id, or one of another organization, it returns ErrNotFound.
func (p *Projections) DecisionOfReceipt(ctx context.Context, tenant, receiptID string) (decisionID string, err error) {
	if err := p.wait(ctx, history.name, tenant, ""); err != nil {
		return "", err
	}
	err = p.ledger.Pool().QueryRow(ctx, `select decision_id from readmodels.history where tenant = $1 and receipt_id = $2`,
		tenant, receiptID).Scan(&decisionID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", ErrNotFound
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return decisionID, nil
}

// ReviewFilter selects decisions that wait for a person's verdict. The zero value selects all of
// them.
type ReviewFilter struct {
	Actors []string // actors who caused the decision; nil means every actor
	Except []string // actors whose decisions are excluded
	After  int64    // sequence after which the list continues
}

// OpenReviews lists decisions that wait for a person's verdict, oldest first.
func (p *Projections) OpenReviews(ctx context.Context, tenant string, f ReviewFilter, limit int) ([]DecisionRow, error) {
	if err := p.wait(ctx, history.name, tenant, ""); err != nil {
		return nil, err
	}
	return collect(ctx, p, func(row pgx.CollectableRow) (d DecisionRow, err error) {
		return d, row.Scan(&d.Sequence, &d.DecisionID)
	}, `select sequence, decision_id from readmodels.history h where `+openReview+`
		and ($2::text[] is null or actor = any($2)) and ($3::text[] is null or actor <> all($3)) and sequence > $4 order by sequence limit $5`,
		tenant, f.Actors, f.Except, f.After, limit)
}

// openReview is a condition on the table history, with alias h. It selects the decisions of tenant
// $1 that wait for a verdict.
const openReview = `tenant = $1 and kind = 'decision' and decision = 'needs_review' and verdict is null
	and not exists (select from readmodels.history r where r.tenant = h.tenant and r.decision_id = h.decision_id and r.kind = 'receipt')`

// CountOpenReviews returns the number of decisions that wait for a person's verdict, at most
// limit. It does not wait for the newest events, because every page shows the count.
func (p *Projections) CountOpenReviews(ctx context.Context, tenant string, limit int) (n int, err error) {
	err = p.ledger.Pool().QueryRow(ctx, `select count(*) from (select from readmodels.history h where `+openReview+` limit $2) waiting`,
		tenant, limit).Scan(&n)
	return n, err
}

// items lists rows of a tenant's history. For a receipt the columns of the row are enough; for a
// decision it also reads the event.
func (p *Projections) items(ctx context.Context, tenant, where string, args ...any) ([]HistoryItem, error) {
	type row struct {
		Sequence int64
		Item     *string
		Alerts   []string
	}
	list, err := collect(ctx, p, pgx.RowToStructByPos[row], `select sequence, item, alerts from readmodels.history h where `+where, args...)
	if err != nil {
		return nil, err
	}
	var sequences []int64
	for _, r := range list {
		if r.Item == nil {
			sequences = append(sequences, r.Sequence)
		}
	}
	decisions, err := p.ledger.BySequence(ctx, tenant, sequences)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	items := make([]HistoryItem, len(list))
	for i, r := range list {
		switch {
		case r.Item != nil:
			err = json.Unmarshal([]byte(*r.Item), &items[i])
		default:
			items[i], err = decisionItem(decisions[r.Sequence])
		}
		if err != nil {
			return nil, fmt.Errorf("%w: list event %d of %s: %w", ErrBehind, r.Sequence, tenant, err)
		}
		items[i].Alerts = append([]string{}, r.Alerts...)
	}
	return items, nil
}
