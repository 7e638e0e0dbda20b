package web

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// LivePath is the path of the stream that keeps the number of pending reviews on an open page up to
// date. A page works without it: then a reload shows the number.
const LivePath = "/live"

// Limits of streams. The limit of requests in progress does not count a request after its answer has
// begun (see the package request), so streams have limits of their own.
const (
	liveStreams   = 256              // open streams of the node
	livePerPerson = 4                // open streams of one person; a browser opens at most six connections to a host
	liveFor       = 25 * time.Second // length of a stream; the browser then opens another, which checks session and role again
	liveEvery     = 2 * time.Second  // time between two counts
)

// streams counts the open streams, so that they can be limited and ended.
type streams struct {
	ended chan struct{} // closed by EndStreams

	mu     sync.Mutex // protects the fields below
	all    int
	person map[string]int // open streams by customer
	closed bool
}

// open counts a new stream of a person, and returns the function to call when the stream ends. It
// returns nil if the stream would exceed a limit, or after EndStreams.
func (s *streams) open(customer string) (free func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.all >= liveStreams || s.person[customer] >= livePerPerson {
		return nil
	}
	s.all++
	s.person[customer]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.person[customer]--; s.person[customer] == 0 {
			delete(s.person, customer)
		}
	}
}

// EndStreams ends the open streams and refuses new ones, because a server that stops waits for its
// requests. It may be called twice.
func (s *Handler) EndStreams() {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	if !s.streams.closed {
		s.streams.closed = true
		close(s.streams.ended)
	}
}

// Live sends the number of pending reviews as server-sent events: first at once, then after each
// change. If the person may give no verdict, it answers 204, after which a browser does not connect
// again.
func (s *Handler) Live(w http.ResponseWriter, r *http.Request) {
	session, err := s.Credentials.Sessions.Load(r)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if session == nil || session.Org == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	free := s.streams.open(session.Customer)
	if free == nil {
		s.Fail(w, r, policy.Refuse(CodeRateLimited, "", "too many pages are open"))
		return
	}
	defer free()
	ctx, orgID := r.Context(), session.Org
	if of, err := s.membership(ctx, session.Customer, orgID); err != nil {
		s.Fail(w, r, err)
		return
	} else if !organizations.RoleMay(of.Role, organizations.RightApprove) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // tells a proxy to pass on each event at once
	if r.Method == http.MethodHead {
		return
	}
	end, tick := time.NewTimer(liveFor), time.NewTicker(liveEvery)
	defer end.Stop()
	defer tick.Stop()
	stream := http.NewResponseController(w)
	for shown := -1; ; {
		n, err := s.Projections.CountOpenReviews(ctx, orgID, MostReviews)
		if err != nil {
			return
		}
		if n != shown {
			shown = n
			if _, err := fmt.Fprintf(w, "retry: 3000\ndata: {\"reviews\":%d,\"more\":%v}\n\n", n, n == MostReviews); err != nil || stream.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-s.streams.ended:
			return
		}
	}
}
