package ledger

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// TracerName is the instrumentation scope of this program's spans.
const TracerName = "github.com/countersign/countersign"

// appendTrace is the span of one append. It is nil if the caller is not traced.
type appendTrace struct {
	ctx  context.Context // context that contains the span
	span trace.Span
}

// beginTrace begins the span of an append with the tracer of the caller's span. It needs no
// settings, and does nothing if the caller is not traced.
func beginTrace(ctx context.Context, a *Append) *appendTrace {
	caller := trace.SpanFromContext(ctx)
	if !caller.IsRecording() {
		return nil
	}
	ctx, span := caller.TracerProvider().Tracer(TracerName).Start(ctx, "ledger.append", trace.WithAttributes(
		attribute.String("countersign.event_type", a.Events[0].Type), attribute.Int("countersign.events", len(a.Events))))
	return &appendTrace{ctx, span}
}

// answered adds the spans of the sequencer's work. A batch serves many appends and has no context
// of its own, so the spans are made afterwards, from the times in the request.
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
		if part.begun.IsZero() || part.end.IsZero() { // answered before a batch took the request
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
