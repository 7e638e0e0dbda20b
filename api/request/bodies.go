package request

import (
	"cmp"
	"container/list"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// A seat is a slot among the requests that are processed at once. A client that sends its body or
// reads its answer slowly holds a connection but no seat. The seat is released before the body is
// read, taken again when the body is complete, and finally released when the answer begins.

// seat is the seat of one request.
type seat struct {
	seats chan struct{} // shared by all requests; it contains one element per taken seat
	held  bool          // used only by the goroutine of the request
}

// take takes a seat. It returns false if all seats are taken. It does not wait, because a queue
// would only hide the overload.
func (s *seat) take() bool {
	select {
	case s.seats <- struct{}{}:
		s.held = true
	default:
	}
	return s.held
}

// leave releases the seat, if it is held.
func (s *seat) leave() {
	if s.held {
		<-s.seats
		s.held = false
	}
}

var (
	errNoSeat   = policy.Refuse(ground.CodeUnavailable, "", ground.SendAgain)
	errSlowBody = policy.Refuse(op.CodeInvalidBody, "", "the body was sent too slowly; send it again in one piece")
	errNoRoom   = policy.Refuse(ground.CodeUnavailable, "", "too many large bodies are being processed and nothing was done: send it again in a moment")
	errManySlow = policy.Refuse(ground.CodeUnavailable, "", "too many clients send their bodies slowly: send it again in one piece")
	errUnread   = policy.Refuse(op.CodeInvalidBody, "", "the body could not be read")
)

// Bodies contains the bodies that are being read. Each must arrive at a minimum rate. If one address
// or all addresses together send too many at once, the reading of the oldest body is ended. A body
// that arrives at once is never the oldest. A client whose body was cut off gets its answer after
// a pause, unless too many such answers wait already. Without the pause, slow clients that
// reconnect at once would keep the machine busy.
//
// The size of all bodies together is limited, too, because a thousand allowed bodies would take a
// gigabyte. A request whose body does not fit is answered with 503 and Retry-After. At the same
// time the oldest body is cut off, to make room for the next request.
type Bodies struct {
	Limits  BodyLimits
	waiting chan struct{} // one element per body that was cut off and not answered yet

	mu      sync.Mutex // protects the fields below
	reading list.List  // elements are *body, oldest first
	from    map[string]int
	held    int64 // bytes that all bodies take
}

// BodyLimits are the limits of bodies. Tests use smaller ones.
type BodyLimits struct {
	Grace      time.Duration // time before PerSecond applies
	PerSecond  int64         // minimum rate in bytes per second
	AtOnce     int
	PerAddress int
	Held       int64  // bytes that all bodies may take together
	Pause      func() // runs before the answer to a body that was cut off
}

// NewBodies returns an empty Bodies. The first argument is the largest number of answers to
// cut-off bodies that wait at once.
func NewBodies(waiting int, limits BodyLimits) *Bodies {
	return &Bodies{Limits: limits, waiting: make(chan struct{}, waiting), from: map[string]int{}}
}

// bodyLimits returns the limits in op/limits.go.
func bodyLimits() BodyLimits {
	return BodyLimits{op.BodyGrace, op.BodyPerSecond, op.MaxBodies, op.MaxBodiesPerAddress, op.MaxHeldBodies, func() { time.Sleep(op.CutBodyPause) }}
}

// Held returns the bytes that all bodies take at the moment.
func (bs *Bodies) Held() int64 {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.held
}

// body is the body of one request. Only the request's own goroutine reads it. Other goroutines
// call only cut.
type body struct {
	io.ReadCloser
	all     *Bodies
	seat    *seat
	control *http.ResponseController
	address string
	began   time.Time // time of the first Read
	read    int64     // bytes read
	ended   error     // final error of Read; nil before the end

	held  int64         // bytes that the body takes; protected by all.mu
	place *list.Element // position in all.reading, or nil; protected by all.mu

	mu     sync.Mutex // protects wasCut, and setting the deadline
	wasCut bool
}

// Read reads the body. It returns an error if the body arrives too slowly, or if all seats are
// taken when the body is complete.
func (b *body) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	if b.began.IsZero() {
		b.began = time.Now()
		b.seat.leave()
		b.all.enter(b)
	}
	b.hurry()
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if !b.all.hold(b, n) {
		b.ended = errNoRoom
		b.all.leave(b)
		_ = b.control.SetReadDeadline(time.Now().Add(op.UnreadBody))
		return n, b.ended
	}
	if err != nil {
		b.ended = b.end(err)
		err = b.ended
	}
	return n, err
}

// hurry sets the deadline for the next bytes.
func (b *body) hurry() {
	limits := b.all.Limits
	allowed := limits.Grace + time.Duration(b.read)*time.Second/time.Duration(limits.PerSecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.wasCut {
		_ = b.control.SetReadDeadline(b.began.Add(min(allowed, op.ReadTimeout)))
	}
}

// cut makes the current read and all later reads of the body fail.
func (b *body) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wasCut = true
	_ = b.control.SetReadDeadline(b.began)
}

// end returns the final error of the body: io.EOF or a refusal.
func (b *body) end(err error) error {
	b.all.leave(b)
	b.mu.Lock()
	wasCut := b.wasCut
	b.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{}) // from here on, the server reads only to detect a disconnected client
		if !b.seat.take() {
			return errNoSeat
		}
		return io.EOF
	case wasCut:
		b.all.pause()
		return errManySlow
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowBody
	}
	return errUnread
}

// answered is called when the answer begins. It gives the rest of the body a moment to arrive, so
// that the connection can be reused. The server reads the rest before it sends the answer.
func (b *body) answered() {
	if b.ended != nil {
		return
	}
	b.ended = errUnread
	b.all.leave(b)
	_ = b.control.SetReadDeadline(time.Now().Add(op.UnreadBody))
}

func (bs *Bodies) enter(b *body) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	switch {
	case bs.from[b.address] >= bs.Limits.PerAddress:
		bs.cutOldest(b.address)
	case bs.reading.Len() >= bs.Limits.AtOnce:
		bs.cutOldest("")
	}
	b.place = bs.reading.PushBack(b)
	bs.from[b.address]++
}

// hold adds bytes that were read to the total, and reports whether they fit into the limit.
func (bs *Bodies) hold(b *body, read int) bool {
	const buffers = 2
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b.held += buffers * int64(read)
	bs.held += buffers * int64(read)
	if bs.held <= bs.Limits.Held {
		return true
	}
	bs.remove(b)
	bs.cutOldest("")
	return false
}

// forget removes a finished body from the total.
func (bs *Bodies) forget(b *body) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.held -= b.held
	b.held = 0
}

// cutOldest cuts off the oldest body of an address, or the oldest of all if address is empty.
func (bs *Bodies) cutOldest(address string) {
	for e := bs.reading.Front(); e != nil; e = e.Next() {
		if oldest := e.Value.(*body); cmp.Or(address, oldest.address) == oldest.address {
			bs.remove(oldest)
			oldest.cut()
			return
		}
	}
}

// pause delays the answer to a client whose body was cut off, unless too many such answers wait.
func (bs *Bodies) pause() {
	select {
	case bs.waiting <- struct{}{}:
		bs.Limits.Pause()
		<-bs.waiting
	default:
	}
}

func (bs *Bodies) leave(b *body) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.remove(b)
}

func (bs *Bodies) remove(b *body) {
	if b.place == nil {
		return
	}
	bs.reading.Remove(b.place)
	b.place = nil
	if bs.from[b.address]--; bs.from[b.address] == 0 {
		delete(bs.from, b.address)
	}
}

// UnreadBecause returns the refusal that a failed read of a body contains. If it contains none, it
// returns an error that says that the body could not be read.
func UnreadBecause(err error) *policy.Error {
	var refused *policy.Error
	if !errors.As(err, &refused) {
		errors.As(errUnread, &refused)
	}
	return refused
}
