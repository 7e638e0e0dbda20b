package projections

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/assurance"
)

// oversight is the read model of reviews by people. The figures about reviews are computed from
// its rows.
var oversight = projection{
	name:    "oversight",
	tables:  []string{"oversight"},
	version: 1,
	handles: events.ShownIn("oversight"),
	apply:   applyOversight,
}

// reviewSeries is the name of the numbered series of the decisions that need a review.
const reviewSeries = "decision/needs_review"

func applyOversight(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	decisionID := strings.TrimPrefix(e.Stream, "decision/")
	switch e.Type {
	case events.TypeDecisionRecorded:
		if e.Series != reviewSeries {
			return nil
		}
		_, err := tx.Exec(ctx, `insert into oversight (tenant, sequence, decision_id, asked_us) values ($1, $2, $3, $4)`, e.Tenant, e.Sequence, decisionID, e.OccurredUS)
		return err
	case events.TypeApprovalRecorded:
		stored, err := events.As[events.ApprovalRecorded](e)
		if err != nil {
			return err
		}
		approval, err := assurance.ReadApproval(stored.Record)
		if err != nil {
			return err
		}
		until, err := assurance.ReadStamp(approval.ValidUntil)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update oversight set verdict = $3, reviewer = $4, answered_us = $5, until_us = $6 where tenant = $1 and decision_id = $2`,
			e.Tenant, decisionID, approval.Verdict, approval.ApprovedBy, e.OccurredUS, until.UnixMicro())
		return err
	}
	approvalID, err := memberOf(e, "approvalId") // empty if it is null
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update oversight set reported = true, used = $3 where tenant = $1 and decision_id = $2`, e.Tenant, decisionID, approvalID != "")
	return err
}

// Oversight contains figures about the reviews of an organization, for the decisions of a period
// that needed a review. The time of a verdict is measured from the recording of the decision to
// that of the verdict. The percentiles are actual times (nearest rank) and never interpolated.
type Oversight struct {
	Asked      int64 `json:"asked"`      // decisions that needed a review
	Answered   int64 `json:"answered"`   // decisions with a verdict
	Approved   int64 `json:"approved"`   // decisions with the verdict approved
	Overruled  int64 `json:"overruled"`  // decisions with the verdict rejected
	Unanswered int64 `json:"unanswered"` // decisions without a verdict
	Unawaited  int64 `json:"unawaited"`  // decisions without a verdict for which the agent has already reported a receipt
	Expired    int64 `json:"expired"`    // approvals that expired before a receipt used them
	Instant    int64 `json:"instant"`    // verdicts given in under five seconds

	MedianSeconds float64 `json:"medianSeconds"`
	P95Seconds    float64 `json:"p95Seconds"`

	Reviewers []Reviewer `json:"reviewers"` // in the order of their ids
}

// Reviewer contains the figures of one reviewer.
type Reviewer struct {
	MemberID      string  `json:"memberId"`
	Answered      int64   `json:"answered"`
	Overruled     int64   `json:"overruled"` // verdicts rejected; 0 if the reviewer has approved everything
	Instant       int64   `json:"instant"`
	MedianSeconds float64 `json:"medianSeconds"`
}

// Share returns part as a percentage of whole, or 0 if whole is 0.
func Share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// NeverRefused lists the reviewers who have approved every request.
func (o Oversight) NeverRefused() (ids []string) {
	for _, r := range o.Reviewers {
		if r.Overruled == 0 {
			ids = append(ids, r.MemberID)
		}
	}
	return ids
}

// Oversight returns the figures of a tenant for the decisions that were recorded in a period: from
// is in the period, to is not. An unused approval counts as expired if it ended before the time
// now. Oversight waits until every event appended before the call is visible, or returns
// ErrBehind.
func (p *Projections) Oversight(ctx context.Context, tenant string, from, to, now time.Time) (Oversight, error) {
	o := Oversight{Reviewers: []Reviewer{}}
	if err := p.wait(ctx, oversight.name, tenant, ""); err != nil {
		return o, err
	}
	const period = ` from readmodels.oversight where tenant = $1 and asked_us >= $2 and asked_us < $3`
	const instant = `count(*) filter (where answered_us - asked_us < 5000000)`
	const median = `coalesce(percentile_disc(0.5) within group (order by answered_us - asked_us) filter (where verdict is not null), 0) / 1e6::float8`
	args := []any{tenant, from.UnixMicro(), to.UnixMicro()}
	err := p.ledger.Pool().QueryRow(ctx, `select count(*), count(verdict), count(*) filter (where verdict = 'approved'), count(*) filter (where verdict = 'rejected'),
			count(*) filter (where verdict is null), count(*) filter (where verdict is null and reported),
			count(*) filter (where verdict = 'approved' and not used and until_us < $4), `+instant+`, `+median+`,
			coalesce(percentile_disc(0.95) within group (order by answered_us - asked_us) filter (where verdict is not null), 0) / 1e6::float8`+period,
		append(args, now.UnixMicro())...).Scan(&o.Asked, &o.Answered, &o.Approved, &o.Overruled, &o.Unanswered, &o.Unawaited, &o.Expired, &o.Instant, &o.MedianSeconds, &o.P95Seconds)
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	o.Reviewers, err = collect(ctx, p, pgx.RowToStructByPos[Reviewer], `select reviewer, count(*), count(*) filter (where verdict = 'rejected'), `+instant+`, `+median+period+`
		and verdict is not null group by reviewer order by reviewer`, args...)
	return o, err
}
