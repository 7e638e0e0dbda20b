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

// client calls one external server. It follows no redirects, because the configured address was
// checked, but the new one was not.
type client struct {
	http      *http.Client
	url       string
	authorize authorizer // nil means that requests have no token
}

// authorizer returns the bearer token of one request.
type authorizer func(method, path string) (string, error)

// bearer returns an authorizer with the same token for all requests, or nil if the token is empty.
func bearer(token string) authorizer {
	return func(string, string) (string, error) { return token, nil }
}

// newClient returns a client for an address. The server's answers are trusted, so the address must
// use https or be on this machine.
func newClient(address string) (client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return client{}, errors.New("must be a URL")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return client{}, errors.New("must use https, or http on this machine")
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

// answer is the answer of an external server.
type answer struct {
	status int
	header http.Header
	text   jsontext.Value // JSON, checked leniently, because most members are not used
}

// ok reports whether the status is 2xx.
func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// refuses reports whether an answer with this status may be a refusal. Some servers refuse with
// 200.
func (a answer) refuses() bool { return a.ok() || a.status >= 400 && a.status < 500 }

// lenient allows invalid JSON in members that are not used: large integers, duplicate members, and
// invalid UTF-8.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// members returns the members of the answer's object that have these names. It returns an error if
// one of them is duplicate, because its value is ambiguous.
func (a answer) members(names ...string) (map[string]jsontext.Value, error) {
	errForm := fmt.Errorf("the answer with status %d could not be read", a.status)
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

// textOf returns the text of a member, or "" if it is not a text.
func textOf(value jsontext.Value) (text string) {
	if value == nil || json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// flagOf returns the boolean of a member. known is false if it is not a boolean.
func flagOf(value jsontext.Value) (flag, known bool) {
	return value.Kind() == 't', value.Kind() == 't' || value.Kind() == 'f'
}

// call sends a request, a GET if there is no body, and returns the answer, which must be JSON. Its
// errors do not contain the address, which may contain a key.
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
		return answer{}, fmt.Errorf("the answer with status %d is not JSON", response.StatusCode)
	}
	return answer{response.StatusCode, response.Header, text}, nil
}
