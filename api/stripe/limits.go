package stripe

import "time"

// Bounds of what the provider may take, and of what it may send.
const (
	signatureTolerance = 5 * time.Minute  // of a notice: longer, and an old one could be sent again
	maxSignatureHeader = 4096             // some signatures while secrets rotate
	requestTimeout     = 10 * time.Second // of a request to the provider
	maxRequests        = 16               // to the provider at once; further ones fail at once
	maxAnswer          = 1 << 20          // octets; a checkout is a tenth of it
	maxSlug            = 64               // characters of a product's slug, and of the provider's words
)
