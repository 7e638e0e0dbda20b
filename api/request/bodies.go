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

// A request has a seat only while the service works for it. A client that sends its body
// slowly, or reads its answer slowly, takes a connection and nothing else: the seat is given
// back before the first byte of a body is read, taken again after the last, and given back
// for good when the answer begins.

// seat is the seat of one request among those that are processed at once.
type seat struct {
	seats chan struct{} // one element per seat that is taken; of the server
	held  bool          // owned by the request's own goroutine
}

// take returns false if all seats are taken: a queue would only hide the overload.
func (s *seat) take() bool {
	select {
	case s.seats <- struct{}{}:
		s.held = true
	default:
	}
	return s.held
}

// leave gives the seat back, if it is held.
func (s *seat) leave() {
	if s.held {
		<-s.seats
		s.held = false
	}
}

var (
	errNoSeat   = policy.Refuse(ground.CodeUnavailable, "", ground.SendAgain)
	errSlowBody = policy.Refuse(op.CodeInvalidBody, "", "the body was sent too slowly; send it again in one piece")
	errNoRoom   = policy.Refuse(ground.CodeUnavailable, "", "too many large bodies are being worked for, nothing was done; send it again in a moment")
	errManySlow = policy.Refuse(ground.CodeUnavailable, "", "too many unfinished bodies are being sent; send it again in one piece")
	errUnread   = policy.Refuse(op.CodeInvalidBody, "", "the body could not be read")
)

// Bodies are the bodies that are being read. Each has to arrive at a minimum rate.
// If one address sends too many at once, or all addresses together do, the oldest is cut off
// to make room: a body sent in one piece is never the oldest. A client that was cut off gets
// its answer after a pause, unless too many wait already. Without the pause, slow bodies that
// are opened again at once would keep the machine busy.
//
// All bodies together have a bound of their own, since a thousand bodies that are each
// allowed would take a gigabyte. A request whose body does not fit is answered with 503
// and Retry-After. So is the oldest one that is still being read, which makes room for
// the next request.
type Bodies struct {
	Limits  BodyLimits
	waiting chan struct{} // one element per body that was cut off and is not answered yet

	mu      sync.Mutex // guards what follows
	reading list.List  // of *body, the oldest first
	from    map[string]int
	held    int64 // bytes that all bodies take
}

// BodyLimits are the bounds of bodies. Tests make them smaller.
type BodyLimits struct {
	Grace      time.Duration // before the rate counts
	PerSecond  int64         // bytes
	AtOnce     int
	PerAddress int
	Held       int64  // bytes that all bodies may take
	Pause      func() // before one that was cut off is answered
}

// NewBodies makes bodies with their bounds. Of the clients that were cut off, at most waiting wait
// for their answer.
func NewBodies(waiting int, limits BodyLimits) *Bodies {
	return &Bodies{Limits: limits, waiting: make(chan struct{}, waiting), from: map[string]int{}}
}

// bodyLimits are the bounds in op/limits.go.
func bodyLimits() BodyLimits {
	return BodyLimits{op.BodyGrace, op.BodyPerSecond, op.MaxBodies, op.MaxBodiesPerAddress, op.MaxHeldBodies, func() { time.Sleep(op.CutBodyPause) }}
}

// Held returns the bytes that all bodies take now.
func (bs *Bodies) Held() int64 {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.held
}

// body is the body of one request. It is read by the request's own goroutine; only
// cut is called by others.
type body struct {
	io.ReadCloser
	all     *Bodies
	seat    *seat
	control *http.ResponseController
	address string
	began   time.Time // zero until it is read
	read    int64     // bytes so far
	ended   error     // what the last Read returned; nil before the end

	held  int64         // bytes that it takes; guarded by all.mu
	place *list.Element // guarded by all.mu; nil if it is not being read

	mu     sync.Mutex // guards wasCut, and the deadline against it
	wasCut bool
}

// Read reads the body. It returns a refusal if the body comes too slowly, or if no seat is
// free when it is complete.
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

// hurry sets the time by which the next bytes must arrive.
func (b *body) hurry() {
	limits := b.all.Limits
	allowed := limits.Grace + time.Duration(b.read)*time.Second/time.Duration(limits.PerSecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.wasCut {
		_ = b.control.SetReadDeadline(b.began.Add(min(allowed, op.ReadTimeout)))
	}
}

// cut makes the pending read of a body fail, and every later one.
func (b *body) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wasCut = true
	_ = b.control.SetReadDeadline(b.began)
}

// end returns the error that ends the reading of the body: io.EOF, or a refusal.
func (b *body) end(err error) error {
	b.all.leave(b)
	b.mu.Lock()
	wasCut := b.wasCut
	b.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{}) // from here on the server only waits for the client to hang up
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

// answered is called when the answer begins. What is left of the body then has a
// moment to arrive, so that the connection can be used again; the server reads it
// before it sends the answer.
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

// hold counts bytes that were read of a body, and reports whether there was room for them.
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

// forget stops counting a body whose request is over.
func (bs *Bodies) forget(b *body) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.held -= b.held
	b.held = 0
}

// cutOldest cuts off the oldest body of an address, or of all.
func (bs *Bodies) cutOldest(address string) {
	for e := bs.reading.Front(); e != nil; e = e.Next() {
		if oldest := e.Value.(*body); cmp.Or(address, oldest.address) == oldest.address {
			bs.remove(oldest)
			oldest.cut()
			return
		}
	}
}

// pause delays the answer to a client that was cut off, unless too many wait already.
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

// UnreadBecause returns the refusal in the error of a failed read of a body. Without one it
// says that the body could not be read.
func UnreadBecause(err error) *policy.Error {
	var refused *policy.Error
	if !errors.As(err, &refused) {
		errors.As(errUnread, &refused)
	}
	return refused
}
