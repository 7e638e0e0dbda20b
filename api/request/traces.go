package request

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign/countersign/api/op"
)

// begin starts the span of a request, as a child of the caller's span if the request names one.
// Health checks have no span.
func (s *Telemetry) begin(r *http.Request) (context.Context, trace.Span) {
	if isHealth(r.URL.Path) {
		return r.Context(), trace.SpanFromContext(context.Background())
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	return s.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
}

// endTrace ends the span of a request. The span has the same attributes as the log line.
func endTrace(span trace.Span, method string, rec *recorder) {
	if !span.IsRecording() {
		return
	}
	span.SetName(method + " " + rec.route)
	span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", rec.route),
		attribute.Int("http.response.status_code", rec.status), attribute.String("countersign.request_id", rec.id))
	if who := rec.caller.Load(); who != nil {
		span.SetAttributes(attribute.String("countersign.tenant", who.tenant), attribute.String("countersign.actor", who.actor))
	}
	if rec.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// step starts a step of a call, with its own metric and span. Call the returned function at its
// end.
func (s *Telemetry) step(c *op.Call, name string) (end func()) {
	began := time.Now()
	request := c.Request
	ctx, span := s.tracer.Start(request.Context(), name)
	if span.IsRecording() {
		c.Request = request.WithContext(ctx)
	}
	return func() {
		s.stage(name, time.Since(began))
		if span.IsRecording() {
			c.Request = request
			span.End()
		}
	}
}
