// Package webhook sends signed messages to addresses that customers choose. It stores nothing: the
// caller decides what to send, when to retry, and when to give up.
//
// A message is signed by Standard Webhooks (https://www.standardwebhooks.com):
//
//	webhook-id         the same for every attempt at a message
//	webhook-timestamp  time of this attempt, seconds since 1970
//	webhook-signature  "v1," and base64 of HMAC-SHA-256 over "id.timestamp.body", one per secret, separated by a space
//
// The message is also signed with the key that signs records, so that a receiver can verify it
// with the published keys, without a shared secret: RFC 9421, with the digest of the body by RFC
// 9530 (signature.go).
//
// A secret is 24 to 64 bytes, shown as "whsec_" and their base64. With the secret
// whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, id msg_p5jXN8AQM9LWM0D4loKWxJek, timestamp 1614265330
// and body {"test": 2432232314} the signature is v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
//
// A webhook must not reach addresses that only the service can reach. So a connection is made only
// to a public internet address, checked after the name was resolved, or to a network that the
// operator allows. Redirects are not followed, and proxies from environment variables are not
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
	timeout      = 15 * time.Second // limit for one attempt; receivers should answer first and process afterwards
	dialTimeout  = 5 * time.Second
	readAtMost   = 4096 // bytes that are read of an answer, so that the connection can be reused
	idleAtMost   = 64   // idle connections in total, at most 2 per receiver
	maxRetryHint = time.Hour
)

// Sender sends messages. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	clock  func() time.Time
}

// NewSender returns a sender that may connect to the public internet and to these private
// networks.
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
var ErrPrivate = errors.New("the address is in a private network: the operator can allow networks with WEBHOOK_NETWORKS")

// never lists networks that look public but contain no receiver.
var never = []netip.Prefix{
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments, RFC 6890
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks, RFC 2544
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, including broadcast
	netip.MustParsePrefix("2001::/32"),     // Teredo, which embeds IPv4 addresses
	netip.MustParsePrefix("fec0::/10"),     // site-local, deprecated
}

// allowed returns ErrPrivate unless the sender may connect to the address.
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
	Status int           // HTTP status; 2xx accepts the message, 410 asks for no further messages
	Wait   time.Duration // pause before the next attempt that the receiver requests; 0 if it requests none
}

// Message is a message with the keys that sign it.
type Message struct {
	ID, Media string
	Body      []byte
	Secrets   [][]byte
	Signer    *seal.Signer // nil means that only the secrets sign the message
}

// Send sends a message once. Its error may be shown to the customer: it reveals neither the
// address nor the network behind it.
func (s *Sender) Send(ctx context.Context, url string, m Message) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{}, errors.New("the address must be a URL")
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

// reason explains why there was no answer, without text from the network or the address.
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
		return errors.New("the TLS connection or certificate of the receiver is not valid")
	}
	return errors.New("the connection failed")
}
