package api

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/store"
)

// longBase is a base URL of 60 characters.
const longBase = "https://gate.countersign-production-environment.example-corp"

// wireHead returns the number of bytes of an answer's status line and headers, including the empty
// line, and the headers.
func (n *node) wireHead(request string) (int, http.Header) {
	n.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		n.t.Fatal(err)
	}
	var sent bytes.Buffer
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			n.t.Fatal(err)
		}
		sent.Write(line)
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
	}
	_, fields, _ := bytes.Cut(sent.Bytes(), []byte("\n"))
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(fields))).ReadMIMEHeader()
	if err != nil {
		n.t.Fatal(err)
	}
	return sent.Len(), http.Header(header)
}

// TestTheHeadOfEvery402FitsIntoTheBufferOfAProxy checks that a reverse proxy with default settings
// forwards every 402. nginx stores the head of an answer in one buffer of 4,096 bytes, and answers
// 502 if the head is longer.
func TestTheHeadOfEvery402FitsIntoTheBufferOfAProxy(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.settler(t), base: longBase})
	refused := strings.Repeat("insufficient_", 6) + "fu" // 80 characters
	if len(longBase) != 60 || len(refused) != 80 {
		t.Fatalf("%d, %d characters", len(longBase), len(refused))
	}
	check := func(name string, size int, h http.Header) {
		t.Helper()
		if size > x402.MaxHead {
			t.Errorf("%s: the head has %d bytes", name, size)
		}
		if r, err := x402.ReadRequired(h.Get(x402.HeaderRequired)); err != nil || len(r.Accepts) != 1 || r.Extensions[x402.ExtensionIdentifier] == nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	post := func(path, payment, body string) (int, http.Header) {
		t.Helper()
		if payment != "" {
			payment = "PAYMENT-SIGNATURE: " + payment + "\r\n"
		}
		return n.wireHead(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, payment, len(body), body))
	}
	paths := map[string]string{} // maps paths to a valid body
	for _, o := range n.server.table {
		if o.Service != nil {
			paths[o.Path] = o.Example
		}
	}
	for _, p := range n.app.Products {
		if p.Kind == store.OneTime {
			paths["/api/purchase/"+p.Slug] = "{}"
		}
	}
	for path, body := range paths {
		size, h := post(path, "", "")
		check(path, size, h)
		if r, _ := x402.ReadRequired(h.Get(x402.HeaderRequired)); strings.Contains(path, "agent-services") && r.Extensions[x402.ExtensionBazaar] == nil {
			t.Errorf("%s: no index learns how the service is called", path)
		}
		payment := n.order(path, path).Header()
		f.facilitator.Next("settle", x402test.Fault{Kind: x402test.Refuse, Reason: refused})
		size, h = post(path, payment, body)
		check("refused "+path, size, h)
		if r, err := x402.ReadResponse(h.Get(x402.HeaderResponse)); err != nil || r.ErrorReason != refused {
			t.Errorf("%s: PAYMENT-RESPONSE %+v, %v", path, r, err)
		}
	}
}
