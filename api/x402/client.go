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

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// client talks to one foreign server. It follows no redirect: what holds for the
// address of the settings does not hold for another.
type client struct {
	http   *http.Client
	url    string
	bearer string
}

// newClient checks an address: what is said there is believed, so it must be
// authenticated, or not leave this machine.
func newClient(address, bearer string) (client, error) {
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
		url: address, bearer: bearer,
	}, nil
}

// call sends a request, GET without a body, and returns the JSON of the answer.
// Its errors do not show the address, which may hold a key.
func (c client) call(ctx context.Context, path string, body []byte) (status int, answer jsontext.Value, err error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("make the request")
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	response, err := c.http.Do(r)
	if err != nil {
		var withAddress *url.Error
		if errors.As(err, &withAddress) {
			err = withAddress.Err
		}
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	case len(text) > maxAnswer:
		return 0, nil, errors.New("the answer is larger than 1 MiB")
	}
	if err := canon.Check(text); err != nil {
		return response.StatusCode, nil, fmt.Errorf("status %d without JSON", response.StatusCode)
	}
	return response.StatusCode, text, nil
}
