package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/mail"
)

// mailServer accepts one e-mail like an SMTP server, and returns the lines that it received.
func mailServer(t *testing.T) (address string, told <-chan []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	lines := make(chan []string, 1)
	go func() { // stops with the connection
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var heard []string
		in, inData := bufio.NewScanner(conn), false
		fmt.Fprint(conn, "220 stub\r\n")
		for in.Scan() {
			line := in.Text()
			heard = append(heard, line)
			switch {
			case inData && line == ".":
				inData = false
				fmt.Fprint(conn, "250 taken\r\n")
			case inData:
			case line == "DATA":
				inData = true
				fmt.Fprint(conn, "354 go on\r\n")
			case line == "QUIT":
				fmt.Fprint(conn, "221 bye\r\n")
				lines <- heard
				return
			default:
				fmt.Fprint(conn, "250 ok\r\n")
			}
		}
	}()
	return l.Addr().String(), lines
}

func TestEmailBySMTP(t *testing.T) {
	t.Parallel()
	address, told := mailServer(t)
	m, err := mail.NewSMTP("smtp://" + address + "?from=sender@example.com")
	if err != nil {
		t.Fatal(err)
	}
	message := mail.Message{To: "ada@example.com", Subject: "Sign in", Text: "Open\n\n.\nthe link", At: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)}
	if err := m.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(<-told, "\n")
	for _, part := range []string{"MAIL FROM:<sender@example.com>", "RCPT TO:<ada@example.com>", "To: <ada@example.com>", "Subject: Sign in", "Date: Fri, 20 Nov 2026 15:00:00", "\n..\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the server was not told %q:\n%s", part, text)
		}
	}
	if n := strings.Count(text, "RCPT TO"); n != 1 {
		t.Errorf("%d recipients", n)
	}
	if err := m.Send(context.Background(), mail.Message{To: "ada@example.com\r\nRCPT TO:<eve@example.com>", Subject: "x"}); err == nil {
		t.Error("an e-mail to more than one line was sent")
	}
}

func TestMailServerAway(t *testing.T) {
	t.Parallel()
	m, err := mail.NewSMTP("smtp://127.0.0.1:1?from=sender@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Send(t.Context(), mail.Message{To: "ada@example.com", Subject: "x", At: time.Now()}); err == nil {
		t.Error("an e-mail was sent to nobody")
	}
}
