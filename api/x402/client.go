package x402

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// client talks to one foreign server. It follows no redirect: what holds for the
// address of the settings does not hold for another.
type client struct {
	http      *http.Client
	url       string
	authorize authorizer // nil: requests carry no token
}

// authorizer is the token of one request, which goes into Authorization: Bearer.
type authorizer func(method, path string) (string, error)

// bearer is one token for all requests; empty: none.
func bearer(token string) authorizer {
	return func(string, string) (string, error) { return token, nil }
}

// newClient checks an address: what is said there is believed, so it must be
// authenticated, or not leave this machine.
func newClient(address string) (client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return client{}, errors.New("want a URL")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return client{}, errors.New("want https, or http on this machine")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = 2*maxInFlight, maxInFlight
	return client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url: address,
	}, nil
}

// answer is what a foreign server said.
type answer struct {
	status int
	header http.Header
	text   jsontext.Value // JSON of any form: what is in members that we do not read does not matter
}

// ok says whether the status is one of success.
func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// refuses says whether a status may carry a refusal. Some servers send it with 200.
func (a answer) refuses() bool { return a.ok() || a.status >= 400 && a.status < 500 }

// lenient accepts what servers send in members that we never read: integers of any
// size, members given twice, broken text.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// members returns the members of the answer's object that have one of these names. A
// member that is there twice has no clear value, which is an error.
func (a answer) members(names ...string) (map[string]jsontext.Value, error) {
	errForm := fmt.Errorf("status %d without an answer that can be read", a.status)
	d := jsontext.NewDecoder(bytes.NewReader(a.text), lenient)
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != '{' {
		return nil, errForm
	}
	read := map[string]jsontext.Value{}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, errForm
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, errForm
		}
		if !slices.Contains(names, name) {
			continue
		}
		if read[name] != nil {
			return nil, errForm
		}
		read[name] = value.Clone()
	}
	return read, nil
}

// textOf is a member's text, empty if it has none.
func textOf(value jsontext.Value) (text string) {
	if value == nil || json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// flagOf is a member's boolean; known is false if it has none.
func flagOf(value jsontext.Value) (flag, known bool) {
	return value.Kind() == 't', value.Kind() == 't' || value.Kind() == 'f'
}

// call sends a request, GET without a body, and returns the answer, which is JSON.
// Its errors do not show the address, which may hold a key.
func (c client) call(ctx context.Context, path string, body []byte) (answer, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, errors.New("make the request")
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.authorize != nil {
		token, err := c.authorize(method, r.URL.Path)
		if err != nil {
			return answer{}, errors.New("make the token of the request")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	response, err := c.http.Do(r)
	if err != nil {
		var withAddress *url.Error
		if errors.As(err, &withAddress) {
			err = withAddress.Err
		}
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("read the answer: %w", err)
	case len(text) > maxAnswer:
		return answer{}, errors.New("the answer is larger than 1 MiB")
	case !jsontext.Value(text).IsValid(lenient):
		return answer{}, fmt.Errorf("status %d without JSON", response.StatusCode)
	}
	return answer{response.StatusCode, response.Header, text}, nil
}
