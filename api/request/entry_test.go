package request

import (
	"net/http"
	"testing"
)

// TestAnswersThatAreNotReadTakeNothingDown checks that a request does not count against the limit
// of requests in progress while its answer is sent. So clients that do not read their answers do
// not block others.
func TestAnswersThatAreNotReadTakeNothingDown(t *testing.T) {
	t.Parallel()
	seats := make(chan struct{}, 1)
	w := &recorder{ResponseWriter: blocked{http.Header{}, func() {
		if len(seats) != 0 {
			t.Error("an answer that is being sent holds a seat")
		}
	}}, seat: seat{seats: seats}}
	w.seat.take()
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("an answer"))
}

// blocked is a response writer. It calls its function look while an answer is written.
type blocked struct {
	header http.Header
	look   func()
}

// Header implements http.ResponseWriter.
func (b blocked) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b blocked) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (b blocked) Write(p []byte) (int, error) {
	b.look()
	return len(p), nil
}
