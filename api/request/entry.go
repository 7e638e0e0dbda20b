package request

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid"

	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/policy"
)

type contextKey int

const recorderKey contextKey = 0

// RequestID returns the id of the request to which a context belongs, or "" without a request.
func RequestID(ctx context.Context) string {
	if rec, ok := ctx.Value(recorderKey).(*recorder); ok {
		return rec.id
	}
	return ""
}

// NoteCaller adds the caller to the request's log line, so that the operator can see who read
// evidence.
func NoteCaller(ctx context.Context, tenant, actor string) {
	if rec, ok := ctx.Value(recorderKey).(*recorder); ok {
		rec.caller.Store(&caller{tenant, actor})
	}
}

// caller contains the public ids of a caller. tenant is empty if the caller acts for no
// organization.
type caller struct{ tenant, actor string }

// recorder records the route, the caller and the status for the log and the metrics. It releases
// the seat when the answer begins.
type recorder struct {
	http.ResponseWriter
	id     string                 // request id
	caller atomic.Pointer[caller] // nil without a valid credential; atomic, because a tool call may still run when the request ends
	route  string
	status int
	seat   seat
	body   *body // nil for a request without a body
}

// WriteHeader records the status and releases the seat, so that a client that reads slowly holds
// no seat.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		r.over()
	}
	r.ResponseWriter.WriteHeader(status)
}

// over releases the seat, and stops reading the body.
func (r *recorder) over() {
	r.seat.leave()
	if r.body != nil {
		r.body.answered()
	}
}

// Unwrap gives http.ResponseController access to the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Entry handles every request before it is routed. It assigns an id, limits the number of requests
// in progress, recovers from panics, and writes one log line.
type Entry struct {
	Path     *Path
	Mark     func(http.Header) // adds the headers that every answer has
	Loopback bool              // the listener has a loopback address, so every loopback name is accepted

	Seats  chan struct{} // one element per request in progress
	Bodies *Bodies
}

// NewEntry returns the entry for a path.
func NewEntry(p *Path, mark func(http.Header), loopback bool) *Entry {
	return &Entry{Path: p, Mark: mark, Loopback: loopback, Seats: make(chan struct{}, op.MaxInFlight), Bodies: NewBodies(op.MaxBodiesWaiting, bodyLimits())}
}

// Around returns a handler that runs the steps of Entry around the router.
func (s *Entry) Around(router http.Handler) http.Handler {
	answers, t := s.Path.Answers, s.Path.Telemetry
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Give the request an id and the headers of every answer, and begin its trace.
		start := time.Now()
		id := "req_" + ulid.MustNew(ulid.Timestamp(start), rand.Reader).String()
		rec := &recorder{ResponseWriter: w, id: id, route: "unmatched", seat: seat{seats: s.Seats}}
		defer rec.over()
		h := rec.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		s.Mark(h)
		ctx, span := t.begin(r)
		r = r.WithContext(context.WithValue(ctx, recorderKey, rec))
		// At the end, answer a panic with an error, and write metrics, log and trace.
		defer func() {
			if p := recover(); p != nil {
				t.Panics.Inc()
				answers.Fail(rec, r, bareErrors(r), fmt.Errorf("panic: %v", p))
			}
			t.observe(rec.route, rec.status, time.Since(start))
			line := []any{"requestId", id, "method", methodForLog(r.Method), "route", rec.route, "status", rec.status,
				"durationMs", float64(time.Since(start).Microseconds()) / 1000}
			if who := rec.caller.Load(); who != nil {
				line = append(line, "tenant", who.tenant, "actor", who.actor)
			}
			if span.IsRecording() {
				line = append(line, "traceId", span.SpanContext().TraceID().String())
			}
			answers.Log.Info("request", line...)
			endTrace(span, methodForLog(r.Method), rec)
		}()
		// Refuse requests for other hosts, ambiguous paths, and requests beyond the limit.
		if r.URL.IsAbs() || r.URL.Host != "" {
			if !s.isOwnAddress(r.URL) { // an absolute URL of another host is a request to a proxy, which this service is not
				h.Set("Connection", "close")
				answers.Fail(rec, r, false, policy.Refuse(op.CodeInvalidBody, "", "the request target must be a path, or an address of this service"))
				return
			}
			r.URL.Scheme, r.URL.Host, r.URL.User = "", "", nil
		}
		if !plainPath(r.URL.EscapedPath()) {
			answers.NotFound(rec, r)
			return
		}
		if !rec.seat.take() && !isHealth(r.URL.Path) {
			answers.Fail(rec, r, bareErrors(r), errNoSeat)
			return
		}
		// Count the body against the limits of all bodies together.
		if r.Body != http.NoBody {
			rec.body = &body{ReadCloser: r.Body, all: s.Bodies, seat: &rec.seat,
				control: http.NewResponseController(w), address: s.Path.Callers.Network(r)}
			r.Body = rec.body
			defer s.Bodies.forget(rec.body)
		}
		router.ServeHTTP(rec, r)
	})
}

// isOwnAddress reports whether an absolute request target (RFC 9112, section 3.2.2) names this
// service: the host of the base URL or, on a loopback listener, a loopback name. It ignores the
// port.
func (s *Entry) isOwnAddress(target *url.URL) bool {
	name := strings.ToLower(target.Hostname())
	return (target.Scheme == "http" || target.Scheme == "https") && (name == strings.ToLower(op.HostOf(s.Path.Commands.BaseURL)) || s.Loopback && mcp.IsLoopback(name))
}

// isHealth reports whether a path is a health check. Health checks need no seat.
func isHealth(path string) bool {
	return path == op.HealthPath || path == "/healthz" || path == "/readyz"
}

// methodForLog returns a standard HTTP method, or "other", because callers may send any word.
func methodForLog(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// plainPath reports whether all software interprets a path alike. It returns false for empty
// segments, dot segments, encoded slashes and dots, and NUL.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	lower := strings.ToLower(path)
	for _, encoded := range []string{"%2f", "%2e", "%5c", "%00"} {
		if strings.Contains(lower, encoded) {
			return false
		}
	}
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		if segment == "." || segment == ".." || segment == "" && (i < len(segments)-1 || i > 0) {
			return false
		}
	}
	return true
}

// SetRoute records the route of a request for the log and the metrics.
func SetRoute(w http.ResponseWriter, route string) {
	if rec, ok := w.(*recorder); ok {
		rec.route = route
	}
}

// Routed returns a handler that also records the route.
func Routed(route string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetRoute(w, route)
		handler.ServeHTTP(w, r)
	})
}
