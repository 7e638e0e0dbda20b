package x402

import (
	"net/http"
	"time"
)

// AskChainAfter makes a settle call ask the chain in parallel after d, and then every d.
func (f *Facilitator) AskChainAfter(d time.Duration) { f.chainAfter, f.chainEvery = d, d }

// Through sends the requests to the facilitator through another transport.
func (f *Facilitator) Through(t http.RoundTripper) { f.client.http.Transport = t }

// MaxInFlight is how many calls to the facilitator there may be at once.
const MaxInFlight = maxInFlight

// Address returns the address of the facilitator.
func (f *Facilitator) Address() string { return f.client.url }
