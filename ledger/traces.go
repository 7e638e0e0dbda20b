package ledger

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// TracerName is what spans of this program name as their source.
const TracerName = "github.com/countersign/countersign"

// appendTrace is the span of one append; nil where the caller is not traced.
type appendTrace struct {
	ctx  context.Context // of the span
	span trace.Span
}

// beginTrace begins the span of an append. The tracer is the caller's, so there is
// nothing to configure here, and nothing is paid where nobody traces.
func beginTrace(ctx context.Context, a *Append) *appendTrace {
	caller := trace.SpanFromContext(ctx)
	if !caller.IsRecording() {
		return nil
	}
	ctx, span := caller.TracerProvider().Tracer(TracerName).Start(ctx, "ledger.append", trace.WithAttributes(
		attribute.String("countersign.event_type", a.Drafts[0].Type), attribute.Int("countersign.events", len(a.Drafts))))
	return &appendTrace{ctx, span}
}

// answered tells what the sequencer did with the append. Its goroutine serves many at
// once and knows no context, so the spans are made of the times it left.
func (t *appendTrace) answered(r *request, out outcome) {
	if t == nil {
		return
	}
	now := time.Now()
	tracer := t.span.TracerProvider().Tracer(TracerName)
	for _, part := range []struct {
		name       string
		begun, end time.Time
	}{{"ledger.wait", r.at, r.taken}, {"ledger.commit", r.taken, now}} {
		if part.begun.IsZero() || part.end.IsZero() { // answered before it was taken
			continue
		}
		_, span := tracer.Start(t.ctx, part.name, trace.WithTimestamp(part.begun))
		span.End(trace.WithTimestamp(part.end))
	}
	t.span.SetAttributes(attribute.Bool("countersign.replayed", out.replayed))
	if out.err != nil {
		t.span.SetStatus(codes.Error, "not appended")
	}
}

func (t *appendTrace) end() {
	if t != nil {
		t.span.End()
	}
}
