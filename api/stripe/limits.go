package stripe

import "time"

// Bounds of requests to the provider, and of what it may send.
const (
	signatureTolerance = 5 * time.Minute  // of a notice; an older one could be a replay
	maxSignatureHeader = 4096             // enough for several signatures while secrets rotate
	requestTimeout     = 10 * time.Second // of a request to the provider
	maxRequests        = 16               // to the provider at once; further ones fail immediately
	maxAnswer          = 1 << 20          // bytes; a checkout has about a tenth of it
	maxSlug            = 64               // characters of a product's slug, and of the provider's words
)
