package x402

import (
	"net/http"
	"time"
)

// AskChainAfter makes a settle call also ask the chain: after d, and then every d.
func (f *Facilitator) AskChainAfter(d time.Duration) { f.chainAfter, f.chainEvery = d, d }

// Through replaces the transport of requests to the facilitator.
func (f *Facilitator) Through(t http.RoundTripper) { f.client.http.Transport = t }

// MaxInFlight is the largest number of calls to the facilitator at once.
const MaxInFlight = maxInFlight

// Address returns the address of the facilitator.
func (f *Facilitator) Address() string { return f.client.url }
