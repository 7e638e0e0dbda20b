package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	attempts  = 4
	patience  = 30 * time.Second // total wait for one request; if the server asks for more, the call fails
	firstWait = 500 * time.Millisecond
	maxAnswer = 8 << 20 // largest answer in bytes
)

// request is an HTTP request. Each retry sends the same bytes.
type request struct {
	method, url string
	header      http.Header
	body        []byte
}

// answered is an answer with its complete body.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// transport sends requests, and retries while the server asks it to.
type transport struct {
	client http.Client
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
}

func newTransport(o Options) transport {
	t := transport{now: time.Now, sleep: sleep, client: http.Client{
		Timeout:       cmp.Or(o.Timeout, 10*time.Second),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if o.HTTP != nil {
		t.client.Transport, t.client.Jar = o.HTTP.Transport, o.HTTP.Jar
	}
	return t
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// unavailable returns the error of a request without a usable answer. Status is 0 if there was no
// answer.
func unavailable(r request, status int, message string, cause error) *Error {
	host := r.url
	if u, err := url.Parse(r.url); err == nil {
		host = u.Host
	}
	return &Error{Code: Unavailable, Message: host + " " + message, Status: status, Err: cause}
}

// once sends a request once. A missing or truncated answer is an error. Redirects are returned,
// not followed.
func (t transport) once(ctx context.Context, r request) (answered, error) {
	out, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return answered{}, &Error{Code: Misused, Message: "the address cannot be read", Err: err}
	}
	if r.header != nil {
		out.Header = r.header.Clone()
	}
	in, err := t.client.Do(out)
	if err != nil {
		return answered{}, unavailable(r, 0, "sent no complete answer", err)
	}
	defer in.Body.Close()
	body, err := io.ReadAll(io.LimitReader(in.Body, maxAnswer+1))
	if err != nil { // check: whole-answer
		return answered{}, unavailable(r, 0, "sent no complete answer", err)
	}
	if len(body) > maxAnswer { // check: answer-size
		return answered{}, unavailable(r, in.StatusCode, "sent an answer that is too large", nil)
	}
	return answered{in.StatusCode, in.Header, body}, nil
}

// patiently sends a request, and sends it again if no answer comes or if the function `later`
// returns true for the answer. It tries at most four times and waits at most 30 seconds in total.
// Each attempt sends the same idempotency key or payment.
func (t transport) patiently(ctx context.Context, r request, later func(answered) bool) (answered, error) {
	waited := time.Duration(0)
	for attempt := 1; ; attempt++ {
		wait := firstWait << (attempt - 1)
		got, err := t.once(ctx, r)
		if err == nil {
			if !later(got) {
				return got, nil
			}
			err = unavailable(r, got.status, "answered "+strconv.Itoa(got.status)+" with an unusable body", nil)
			if asked, ok := t.asked(got.header.Get("Retry-After")); ok {
				wait = asked
			}
			if waited+wait > patience { // check: patience
				return answered{}, unavailable(r, got.status, "asked for a wait of "+strconv.Itoa(int(wait.Seconds()))+" seconds, which is too long", nil)
			}
		} else if e := (*Error)(nil); errors.As(err, &e) && (e.Status != 0 || e.Code == Misused) {
			return answered{}, err
		}
		if attempt == attempts {
			return answered{}, err
		}
		waited += wait
		if t.sleep(ctx, wait) != nil {
			return answered{}, err
		}
	}
}

// asked returns the wait that a Retry-After header asks for. It returns false if the header is
// invalid.
func (t transport) asked(header string) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(header)
	return max(0, at.Sub(t.now())), err == nil
}

// receiptsPath is the path to which receipts are sent.
const receiptsPath = "/api/assurance/receipts"

// send sends a request to the service. It returns an error if the answer is not JSON, or if its
// status is not one of `good`.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body []byte, good ...int) (status int, text []byte, err error) {
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	got, err := c.http.patiently(ctx, request{method, c.options.URL + path, header, body}, func(a answered) bool {
		return a.status >= 500 || a.status == http.StatusTooManyRequests && saysOf(a).Code != "quota_exhausted" ||
			slices.Contains(good, a.status) && !jsontext.Value(a.body).IsValid()
	})
	if err != nil {
		return 0, nil, err
	}
	said := saysOf(got)
	says := cmp.Or(shown(said.Error), "status "+strconv.Itoa(got.status))
	if said.Code == "quota_exhausted" { // check: quota
		return 0, nil, &Error{Code: QuotaExhausted, Message: "the free calls of the month are used up: " + says, Status: got.status, UpgradeURL: shown(said.UpgradeURL)}
	}
	if got.status == http.StatusPaymentRequired { // check: payment-required
		return 0, nil, &Error{Code: PaymentRequired, Message: "the call needs a payment or an API key: " + says, Status: got.status}
	}
	if !slices.Contains(good, got.status) { // check: status
		nothing := ", and nothing was run"
		if path == receiptsPath { // receipts are sent after the function has run
			nothing = ""
		}
		return 0, nil, &Error{Code: Refused, Message: c.options.URL + " refused the request" + nothing + ": " + says, Status: got.status}
	}
	return got.status, got.body, nil
}

// saying has the members that an error of the service may have.
type saying struct {
	Error      string `json:"error"`
	Code       string `json:"code"`
	UpgradeURL string `json:"upgradeUrl"`
}

func saysOf(a answered) (s saying) {
	_ = json.Unmarshal(a.body, &s) // a body that is not JSON has none of these members
	return s
}

// shown makes a text from a server safe to show. It replaces characters that cannot be printed by
// spaces, and keeps at most 500 characters.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return string([]rune(text)[:min(500, len([]rune(text)))])
}
