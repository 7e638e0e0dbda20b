package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// errNoAgent refuses an agent that no decision names. The search does not create a data key: a
// misspelled id must not look like an agent that has done nothing.
var errNoAgent = policy.Refuse(ground.CodeNotFound, "/agent", "agent must be the id of an agent that a decision of the organization names and that was not erased")

// ask computes the sequence numbers of a selection and appends export.requested, the signed claim
// of what the export will contain. The claim names the ledger's head at that time, because events
// up to the head cannot change any more.
func (x *exporting) ask(ctx context.Context) error {
	m, f := &x.manifest, &x.e.Filters
	_, err := x.lastSequence(ctx) // refuses an unknown organization
	if err != nil {
		return err
	}
	if x.from, err = instant("from", &f.From); err != nil {
		return err
	}
	if x.to, err = instant("to", &f.To); err != nil {
		return err
	}
	m.Schema, m.Filters, m.Selection = bundle.SelectionSchema, *f, &bundle.Selection{}
	if f.Agent != "" {
		if x.app.Vault == nil {
			return x.app.NoVault()
		}
		if x.agentKey, err = x.app.Vault.Find(ctx, x.e.Tenant, "agent:"+f.Agent); err != nil {
			return err
		}
		if x.agentKey == "" {
			return errNoAgent
		}
	}
	m.Selection.Agent = x.agentKey
	if m.Selection.Through, err = x.home().Head(ctx); err != nil {
		return err
	}
	for _, series := range f.Series() {
		r, err := x.numbersOf(ctx, series)
		if err != nil {
			return err
		}
		x.within += r.Last - r.First + 1
		m.Selection.Series = append(m.Selection.Series, r)
	}
	if x.e.Most > 0 && x.within > x.e.Most {
		return policy.Refuse("invalid_value", "/from", fmt.Sprintf("the filters select more than %d events; choose a shorter period, or ask the operator to run countersign export", x.e.Most))
	}
	return x.claim(ctx)
}

// instant parses a bound of the period and rewrites it in UTC with microseconds, the form that
// verifiers read. A beginning before 1970 is removed, since no event is that old. It returns 0 if
// there is no bound.
func instant(name string, bound *string) (us int64, err error) {
	if *bound == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, *bound)
	if err != nil {
		return 0, policy.Refuse("invalid_value", "/"+name, name+" must be an RFC 3339 time")
	}
	switch at = at.UTC(); {
	case at.Year() > 9999: // a time zone can make this of a year that RFC 3339 has
		return 0, policy.Refuse("invalid_value", "/"+name, name+" must be before the year 10000")
	case at.UnixMicro() <= 0 && name == "to":
		return 0, policy.Refuse("invalid_value", "/to", "to must be after 1970-01-01T00:00:00Z")
	case at.UnixMicro() <= 0:
		*bound = ""
		return 0, nil
	}
	*bound = at.Format("2006-01-02T15:04:05.999999Z")
	return at.UnixMicro(), nil
}

// numbersOf returns the range of numbers in a series whose events are in the period. It uses
// binary search, since times do not decrease within a series.
func (x *exporting) numbersOf(ctx context.Context, series string) (bundle.Range, error) {
	r := bundle.Range{Series: series, First: 1}
	found, err := x.app.Ledger.Newest(ctx, x.e.Tenant, x.agentKey, series, x.manifest.Selection.Through)
	if err != nil || len(found) == 0 {
		return r, err
	}
	r.Newest, _ = found[0].Number(x.agentKey)
	r.NewestHash = found[0].Hash.String()
	before := func(us int64) int64 {
		return int64(sort.Search(int(r.Newest), func(i int) bool {
			var list []ledger.Event
			var failed error
			if list, failed = x.app.Ledger.Series(ctx, x.e.Tenant, x.agentKey, series, int64(i)+1, 1); failed == nil && len(list) == 0 {
				failed = fmt.Errorf("%w: number %d of %s is missing", ledger.ErrTampered, i+1, series)
			}
			err = errors.Join(err, failed)
			return failed == nil && list[0].OccurredUS >= us
		}))
	}
	r.Last = r.Newest
	if x.from > 0 {
		r.First = before(x.from) + 1
	}
	if x.to > 0 {
		r.Last = max(before(x.to), r.First-1)
	}
	return r, err
}

// claim signs and appends export.requested.
func (x *exporting) claim(ctx context.Context) error {
	m := &x.manifest
	signer, precondition, err := x.app.ActiveSigner(ctx, x.e.Tenant)
	if err != nil {
		return err
	}
	now := x.app.Now()
	claim := bundle.Claim{Schema: bundle.ClaimSchema, ExportID: m.ExportID, Tenant: x.e.Tenant, Filters: m.Filters, Agent: x.agentKey,
		Through: m.Selection.Through, IssuedAt: canon.Stamp(now)}
	for _, r := range m.Selection.Series {
		claim.Series = append(claim.Series, bundle.Newest{Series: r.Series, Newest: r.Newest, Hash: r.NewestHash})
	}
	envelope, err := signer.Sign(bundle.ClaimType, claim)
	if err != nil {
		return err
	}
	pending, err := x.pending(ctx, events.TypeExportRequested, signer, events.ExportRequested{Record: envelope.Record, Integrity: envelope.Integrity, VerifyURL: x.app.VerifyURL()})
	if err != nil {
		return err
	}
	pending.Expect = ledger.New()
	result, err := x.app.Ledger.Append(ctx, ledger.Append{Tenant: x.e.Tenant, Preconditions: []ledger.Precondition{precondition}, NotBefore: now, Events: []ledger.Pending{pending}})
	if err != nil {
		return err
	}
	x.requested = ledger.History{Tenant: x.e.Tenant, Stream: result.Events[0].Stream, Events: result.Events}
	m.Selection.Claim, m.LastHash = result.Events[0].Position, result.Events[0].Hash.String()
	return nil
}

// coverClaim waits for a checkpoint that covers export.requested.
func (x *exporting) coverClaim(ctx context.Context) error {
	return x.cover(ctx, x.manifest.Selection.Claim)
}

// cover waits up to exportCheckpoint for a checkpoint that covers a position. An export of a
// history is made without a checkpoint if there is none in time; other exports fail.
func (x *exporting) cover(ctx context.Context, position int64) error {
	waiting, cancel := context.WithTimeout(ctx, exportCheckpoint)
	keeper.Covered(waiting, x.home(), position)
	cancel()
	proofs, head, err := keeper.Proofs(ctx, x.home())
	switch {
	case err != nil:
		return err
	case head != nil && head.Size >= position:
		x.proofs, x.head, x.manifest.CheckpointSize = proofs, head, head.Size
	case x.manifest.Schema != bundle.Schema:
		return fmt.Errorf("%w: no checkpoint covers the request for this export yet", ledger.ErrUnavailable)
	}
	return nil
}

// writeSelection merges the events of all series, their approvals and receipts, and the claim, and
// writes them by position.
func (x *exporting) writeSelection(ctx context.Context) error {
	if err := x.createFiles(); err != nil {
		return err
	}
	s := x.manifest.Selection
	x.agentKey, x.within = s.Agent, 0
	// Prepare one page for each series.
	var pages []*seriesPage
	for _, r := range s.Series {
		x.within += r.Last - r.First + 1
		low, high := r.Ends()
		pages = append(pages, &seriesPage{Range: r, low: low, high: high, next: low})
	}
	claim, err := x.home().After(ctx, s.Claim-1, 1)
	if err != nil || len(claim) == 0 {
		return errors.Join(err, fmt.Errorf("%w: position %d is missing", ledger.ErrTampered, s.Claim))
	}
	waiting := claim // events that are in no series, by position: approvals, receipts and last the claim
	for {
		// Fill empty pages, and find the page with the lowest position.
		var first *seriesPage
		for _, p := range pages {
			if len(p.events) == 0 && p.next <= p.high {
				if err := x.pace.Rest(ctx); err != nil {
					return err
				}
				followers, err := x.turn(ctx, p)
				if err != nil {
					return err
				}
				waiting = append(waiting, followers...)
				slices.SortFunc(waiting, func(a, b ledger.Event) int { return int(a.Position - b.Position) })
			}
			if len(p.events) > 0 && (first == nil || p.events[0].Position < first.events[0].Position) {
				first = p
			}
		}
		// Write the event with the lowest position; the claim is the last one.
		switch {
		case first != nil && first.events[0].Position < waiting[0].Position:
			err = x.numberedEvent(ctx, first)
		case len(waiting) == 1:
			err = x.line(ctx, waiting[0], true, true)
			x.state()
			return errors.Join(err, x.closeFiles())
		default:
			err = x.line(ctx, waiting[0], true, true) // it is in no series, so it needs an inclusion proof of its own
			waiting = waiting[1:]
		}
		if err != nil {
			return err
		}
	}
}

// seriesPage is the next page of a series to write.
type seriesPage struct {
	bundle.Range
	low, high int64 // first and last number to write, from Range.Ends
	events    []ledger.Event
	next      int64 // number of the first event after this page
}

// turn reads the next page of a series. It returns the approvals and receipts of the decisions on
// this page, unless the selection has the receipts as a series of their own.
func (x *exporting) turn(ctx context.Context, p *seriesPage) (followers []ledger.Event, err error) {
	limit := x.pace.Part(min(exportPage, p.high-p.next+1))
	if p.events, err = x.app.Ledger.Series(ctx, x.e.Tenant, x.agentKey, p.Series, p.next, int(limit)); err != nil {
		return nil, err
	}
	var last int64
	if int64(len(p.events)) == limit {
		last, _ = p.events[limit-1].Number(x.agentKey)
	}
	if last != p.next+limit-1 {
		return nil, fmt.Errorf("%w: %s lacks a number after %d", ledger.ErrTampered, p.Series, p.next)
	}
	p.next += limit
	var streams []string
	for _, e := range p.events {
		if n, _ := e.Number(x.agentKey); e.Type == events.TypeDecisionRecorded && n >= p.First && n <= p.Last && x.chosen(e) {
			streams = append(streams, e.Stream)
		}
	}
	if x.e.Filters.Receipts || len(streams) == 0 {
		return nil, nil
	}
	return x.app.Ledger.Followers(ctx, x.e.Tenant, streams, x.manifest.Selection.Through)
}

// chosen reports whether an event passes the filters Protocol and Run, which apply to decisions
// only.
func (x *exporting) chosen(e ledger.Event) bool {
	f := x.e.Filters
	if f.Protocol == "" && f.Run == "" || e.Type != events.TypeDecisionRecorded {
		return true
	}
	r, err := forms.ReadRecord(e.Payload)
	return err == nil && (f.Protocol == "" || f.Protocol == r.Protocol) && (f.Run == "" || f.Run == r.Subject.RunID)
}

// numberedEvent writes the next event of a series page.
func (x *exporting) numberedEvent(ctx context.Context, p *seriesPage) error {
	e := p.events[0]
	p.events = p.events[1:]
	n, _ := e.Number(x.agentKey)
	end := n == p.low || n == p.high
	if x.e.Progress != nil && n%exportPage == 0 {
		x.e.Progress(n-p.First+1, p.Last-p.First+1)
	}
	return x.line(ctx, e, n >= p.First && n <= p.Last && x.chosen(e), end || x.within <= bundle.AllProofs)
}

// line writes an event of a selection. show and prove are explained at write.
func (x *exporting) line(ctx context.Context, e ledger.Event, show, prove bool) error {
	if x.manifest.Count++; x.manifest.Count == 1 {
		x.manifest.FirstSequence = e.Sequence
	}
	return x.write(ctx, e, show, prove)
}
