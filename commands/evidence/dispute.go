package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// ExportPayment writes a bundle with all events about one x402 payment, and a page that explains
// them, and records export.created. The payment's tenant follows from its id. For a decision of a
// tenant, see Export.Dispute.
func (a *Evidence) ExportPayment(ctx context.Context, e Export, paymentID string) (Exported, error) {
	e.Tenant = a.ServiceOf(paymentID)
	x := a.exporting(e)
	list := func(ctx context.Context) error {
		return x.dispute(ctx, "no payment has this id", func(ctx context.Context) error { return x.paymentStreams(ctx, paymentID) })
	}
	return x.run(ctx, []func(context.Context) error{list, x.writeDispute, x.writeRest, x.record})
}

// decisionStream lists the stream of the decision that Export.Dispute names.
func (x *exporting) decisionStream(ctx context.Context) error {
	return x.dispute(ctx, "no decision of this organization has this id", func(ctx context.Context) error {
		_, err := x.stream(ctx, "decision/"+x.e.Dispute)
		return err
	})
}

// dispute begins the manifest of a dispute pack: list adds the streams that the pack contains. If
// it adds none, dispute refuses the export with the text unknown.
func (x *exporting) dispute(ctx context.Context, unknown string, list func(context.Context) error) error {
	head, err := x.home().Head(ctx)
	if err != nil {
		return err
	}
	x.manifest.Schema, x.manifest.Dispute = bundle.DisputeSchema, &bundle.Dispute{Through: head}
	if err := list(ctx); err != nil {
		return err
	}
	if len(x.manifest.Dispute.Streams) == 0 {
		return policy.Refuse(ground.CodeNotFound, "/dispute", unknown)
	}
	return x.cover(ctx, head)
}

// stream returns the events of a stream, and lists the stream in the manifest if it has events.
func (x *exporting) stream(ctx context.Context, name string) ([]ledger.Event, error) {
	d := x.manifest.Dispute
	list, err := x.streamTo(ctx, name, d.Through)
	if n := len(list); n > 0 {
		d.Streams = append(d.Streams, bundle.Stream{Stream: name, Events: int64(n)})
	}
	return list, err
}

// streamTo returns the events of a stream up to a position in the ledger.
func (x *exporting) streamTo(ctx context.Context, name string, through int64) ([]ledger.Event, error) {
	history, err := x.app.Ledger.Read(ctx, x.e.Tenant, name)
	return slices.DeleteFunc(history.Events, func(e ledger.Event) bool { return e.Position > through }), err
}

// paymentStreams lists the stream of a payment, and the streams of the purchase that it paid for.
func (x *exporting) paymentStreams(ctx context.Context, id string) error {
	list, err := x.stream(ctx, "payment/"+id)
	if err != nil || len(list) == 0 {
		return err
	}
	claim, err := events.As[events.PaymentClaimed](list[0])
	if err != nil {
		return err
	}
	for _, prepared := range claim.Prepared {
		purchase, is := strings.CutPrefix(prepared.Stream, "purchase/")
		if !is {
			continue
		}
		for _, name := range []string{prepared.Stream, "download/" + purchase} {
			if _, err := x.stream(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeDispute writes the events of all listed streams, by position.
func (x *exporting) writeDispute(ctx context.Context) error {
	if err := x.createFiles(); err != nil {
		return err
	}
	m := &x.manifest
	var list []ledger.Event
	for _, s := range m.Dispute.Streams {
		found, err := x.streamTo(ctx, s.Stream, m.Dispute.Through)
		if err != nil {
			return err
		}
		list = append(list, found...)
	}
	slices.SortFunc(list, func(a, b ledger.Event) int { return int(a.Position - b.Position) })
	if len(list) == 0 {
		return fmt.Errorf("%w: the streams of the dispute have no events", ledger.ErrTampered)
	}
	for _, e := range list {
		if err := x.write(ctx, e, true, true); err != nil {
			return err
		}
	}
	last := list[len(list)-1]
	m.FirstSequence, m.Count, m.LastHash = list[0].Sequence, int64(len(list)), last.Hash.String()
	return x.closeFiles()
}
