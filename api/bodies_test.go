package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
)

// halfSent is a request whose body is never completed. With the header Expect, the server reports
// when it starts to read the body; without it, the test cannot find out.
type halfSent struct {
	net.Conn
	reader *bufio.Reader
}

func (n *node) halfSend(head string) halfSent {
	n.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // no test may hang forever
	if _, err := io.WriteString(conn, head); err != nil {
		n.t.Fatal(err)
	}
	return halfSent{conn, bufio.NewReader(conn)}
}

// isRead waits until the service has started to read the body.
func (h halfSent) isRead(t *testing.T) {
	t.Helper()
	line, err := h.reader.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := h.reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(h, `{"em`); err != nil {
		t.Fatal(err)
	}
}

// answer waits for the answer.
func (h halfSent) answer(t *testing.T) answer {
	t.Helper()
	resp, err := http.ReadResponse(h.reader, &http.Request{Method: http.MethodPost})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

func head(path, more string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n" + more + "\r\n"
}

func TestHalfSentBodiesTakeNothingDown(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true}) // with a clock that does not advance the node would not be ready
	key := n.issueKey()
	for _, path := range []string{"/api/verify", "/api/keys/free", "/mcp", "/sign-in"} {
		t.Run(path, func(t *testing.T) {
			request := head(path, "Expect: 100-continue\r\n")
			if path == "/sign-in" {
				request = strings.Replace(request, "application/json", "application/x-www-form-urlencoded", 1)
			}
			for range op.MaxInFlight + 36 {
				n.halfSend(request).isRead(t)
			}
			for _, path := range []string{"/api/health", "/healthz", "/readyz"} {
				n.wants(n.get(path), http.StatusOK)
			}
			n.wants(n.post("/api/agent-services/action-safety/quick", key, `{"command":"ls"}`), http.StatusOK)
		})
	}
}

// TestUnreadBodiesTakeNothingDown checks that unfinished bodies that no handler reads do not block
// the service. For such a body, net/http itself waits before it sends the answer.
func TestUnreadBodiesTakeNothingDown(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	key := n.issueKey()
	for range op.MaxInFlight + 36 {
		n.halfSend(head("/api/agent-services/action-safety/quick", "") + `{"com`)
	}
	n.wants(n.get("/api/health"), http.StatusOK)
	n.wants(n.post("/api/agent-services/action-safety/quick", key, `{"command":"ls"}`), http.StatusOK)
	n.wants(n.halfSend(head("/api/agent-services/action-safety/quick", "")+`{"com`).answer(t), http.StatusPaymentRequired)
}

func TestABodyHasToComeAtAMinimumRate(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	n.server.entry.Bodies.Limits.Grace = 20 * time.Millisecond
	slow := n.halfSend(head("/api/keys/free", ""))
	n.refused(slow.answer(t), http.StatusBadRequest, op.CodeInvalidBody, "")
	slow = n.halfSend(head("/mcp", ""))
	if a := slow.answer(t); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), "too slowly") {
		t.Error(a)
	}
}

// TestWhoWasCutOffWaits checks that a client whose body was cut off waits for its answer, so that
// it cannot open another body in the meantime. A client that sends its body at once does not wait.
func TestWhoWasCutOffWaits(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	over := make(chan struct{})
	waits := make(chan struct{}, 1)
	n.server.entry.Bodies = request.NewBodies(1, request.BodyLimits{Grace: time.Minute, PerSecond: 1, AtOnce: 100, PerAddress: 1, Held: op.MaxHeldBodies, Pause: func() { waits <- struct{}{}; <-over }})
	request := head("/api/keys/free", "Expect: 100-continue\r\n")
	var open []halfSent
	for i := range 3 {
		if i == 2 {
			<-waits // the first body was cut off by the second, and takes the only waiting slot
		}
		h := n.halfSend(request)
		h.isRead(t)
		open = append(open, h)
	}
	n.refused(open[1].answer(t), http.StatusServiceUnavailable, "temporarily_unavailable", "") // one answer waits already, so this one is sent at once
	n.issueKey()
	close(over)
	n.refused(open[0].answer(t), http.StatusServiceUnavailable, "temporarily_unavailable", "")
}

// TestTheOldestUnfinishedBodyOfAnAddressMakesRoom checks that the oldest unfinished body is cut
// off, so that a body that arrives at once always succeeds.
func TestTheOldestUnfinishedBodyOfAnAddressMakesRoom(t *testing.T) {
	t.Parallel()
	for _, most := range []request.BodyLimits{
		{Grace: time.Minute, PerSecond: 1, AtOnce: 100, PerAddress: 3, Held: op.MaxHeldBodies, Pause: func() {}},
		{Grace: time.Minute, PerSecond: 1, AtOnce: 3, PerAddress: 100, Held: op.MaxHeldBodies, Pause: func() {}},
	} {
		n := startNode(t, setup{})
		n.server.entry.Bodies.Limits = most
		request := head("/api/keys/free", "Expect: 100-continue\r\n")
		var open []halfSent
		for range 5 {
			h := n.halfSend(request)
			h.isRead(t)
			open = append(open, h)
		}
		for _, h := range open[:2] {
			a := h.answer(t)
			n.refused(a, http.StatusServiceUnavailable, "temporarily_unavailable", "")
			if a.header.Get("Retry-After") == "" {
				t.Errorf("nothing says when to come back: %v", a)
			}
		}
		n.issueKey() // the third body is cut off for this request
		n.refused(open[2].answer(t), http.StatusServiceUnavailable, "temporarily_unavailable", "")
		body := fmt.Sprintf(`{"email":"late@example.com"%s}`, strings.Repeat(" ", 2000-28))
		if _, err := io.WriteString(open[4], body[4:]); err != nil {
			t.Fatal(err)
		}
		if a := open[4].answer(t); a.status >= 500 {
			t.Errorf("a body that was finished in time: %v", a)
		}
	}
}

// TestBodiesShareTheirRoom checks the limit on the size of all bodies together. A request that
// does not fit is told to retry, and the oldest unfinished body is cut off. A finished request
// takes no room.
func TestBodiesShareTheirRoom(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.server.entry.Bodies.Limits.Held = 10_000
	n.server.entry.Bodies.Limits.Pause = func() {}
	slow := n.halfSend(head("/api/verify", "Expect: 100-continue\r\n"))
	slow.isRead(t)
	if _, err := io.WriteString(slow, strings.Repeat(" ", 1500)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/verify", "/mcp"} {
		a := n.post(path, key, `{"x":"`+strings.Repeat("a", 8000)+`"}`)
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "too many large bodies") {
			t.Errorf("%s: %v", path, a)
		}
	}
	n.refused(slow.answer(t), http.StatusServiceUnavailable, "temporarily_unavailable", "")
	n.wants(n.post(quickPath, key, `{"command":"`+strings.Repeat("a", 1500)+`"}`), http.StatusOK)
	if held := n.server.entry.Bodies.Held(); held != 0 {
		t.Errorf("%d octets are counted, and no request is left", held)
	}
}
