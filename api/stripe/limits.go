package stripe

import "time"

// Limits of requests to the provider, and of its answers.
const (
	signatureTolerance = 5 * time.Minute  // largest age of a notice; an older one could be a replay
	maxSignatureHeader = 4096             // bytes; enough for several signatures during the rotation of secrets
	requestTimeout     = 10 * time.Second // time for a request to the provider
	maxRequests        = 16               // requests to the provider at once; further ones fail immediately
	maxAnswer          = 1 << 20          // bytes; ten times the size of a checkout
	maxSlug            = 64               // characters of a product's slug, or of a word of the provider
)
