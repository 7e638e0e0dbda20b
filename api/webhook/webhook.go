// Package webhook sends signed messages to addresses that customers choose. It stores nothing: its
// caller decides what is sent, when it is sent again, and when to stop.
//
// A message is signed as Standard Webhooks says (https://www.standardwebhooks.com):
//
//	webhook-id         the same for every attempt at a message
//	webhook-timestamp  of this attempt, seconds since 1970
//	webhook-signature  "v1," and base64 of HMAC-SHA-256 over "id.timestamp.body", one per secret, a space between
//
// The signing key of records also signs it, so that a receiver can check a message with the
// published keys and shares no secret with the service: RFC 9421, with the digest of the body
// from RFC 9530 (signature.go).
//
// A secret is 24 to 64 bytes, shown as "whsec_" and their base64. With the secret
// whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, id msg_p5jXN8AQM9LWM0D4loKWxJek, timestamp
// 1614265330 and body {"test": 2432232314} the signature is
// v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
//
// A webhook must not reach what only the service can reach. So a connection is made only to an
// address of the public internet, which is checked after the name was resolved, or to a network
// that the operator allows. Redirects are not followed, and proxies of the environment are not
// used.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/normal"
)

const (
	timeout      = 15 * time.Second // of an attempt; receivers should answer first and process afterwards
	dialTimeout  = 5 * time.Second
	readAtMost   = 4096 // bytes of an answer, so that the connection can be reused
	idleAtMost   = 64   // idle connections, 2 for each receiver
	maxRetryHint = time.Hour
)

// Sender posts messages. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	clock  func() time.Time
}

// NewSender returns a sender that may reach the public internet and the given private networks.
func NewSender(private []netip.Prefix, clock func() time.Time) *Sender {
	dialer := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		return allowed(private, address)
	}}
	return &Sender{clock: clock, client: &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
			MaxIdleConns: idleAtMost, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ErrPrivate is the error for an address that is neither public nor in an allowed network.
var ErrPrivate = errors.New("the address is private: operators allow networks with WEBHOOK_NETWORKS")

// never are addresses that look public but belong to no receiver.
var never = []netip.Prefix{
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments, RFC 6890
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks, RFC 2544
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, broadcast among them
	netip.MustParsePrefix("2001::/32"),     // Teredo, which embeds addresses
	netip.MustParsePrefix("fec0::/10"),     // site-local, deprecated
}

// allowed checks the address that a connection is about to be made to.
func allowed(private []netip.Prefix, address string) error {
	peer, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrPrivate
	}
	ip := peer.Addr().Unmap().WithZone("")
	for _, network := range private {
		if network.Contains(ip) {
			return nil
		}
	}
	if ip.IsMulticast() || normal.IsPrivate(ip.String()) {
		return ErrPrivate
	}
	for _, network := range never {
		if network.Contains(ip) {
			return ErrPrivate
		}
	}
	return nil
}

// Sign returns the header webhook-signature of a message.
func Sign(secrets [][]byte, id string, at time.Time, body []byte) string {
	var signatures []string
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}

// Answer is the answer of a receiver.
type Answer struct {
	Status int           // of HTTP; 2xx accepts the message, 410 asks for no further ones
	Wait   time.Duration // the requested pause before the next attempt; 0 if there is none
}

// Message is a message and the keys that sign it.
type Message struct {
	ID, Media string
	Body      []byte
	Secrets   [][]byte
	Signer    *seal.Signer // nil: the message is signed with the secrets alone
}

// Send posts a message once. A customer may see its error: it does not reveal the address, nor what
// is behind it.
func (s *Sender) Send(ctx context.Context, url string, m Message) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{}, errors.New("the address is no URL")
	}
	now := s.clock()
	request.Header = http.Header{
		"Content-Type": {m.Media}, "User-Agent": {"countersign-webhook"},
		"Webhook-Id": {m.ID}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)}, "Webhook-Signature": {Sign(m.Secrets, m.ID, now, m.Body)},
	}
	if m.Signer != nil {
		if err := signRequest(request, m.Body, now, m.Signer); err != nil {
			return Answer{}, errors.New("the message could not be signed")
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return Answer{}, reason(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, readAtMost)
	answer := Answer{Status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		answer.Wait = min(time.Duration(seconds)*time.Second, maxRetryHint)
	}
	if answer.Status < 200 || answer.Status > 299 {
		return answer, fmt.Errorf("the receiver answered %d", answer.Status)
	}
	return answer, nil
}

// reason says why there was no answer, in words of ours.
func reason(err error) error {
	var dns *net.DNSError
	var timedOut interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrPrivate):
		return ErrPrivate
	case errors.As(err, &dns):
		return errors.New("the host has no address")
	case errors.As(err, &timedOut) && timedOut.Timeout():
		return errors.New("no answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the connection was refused")
	case strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:"):
		return errors.New("the certificate or TLS of the receiver is not good")
	}
	return errors.New("the connection failed")
}
