package mcp

const (
	maxMessage = 524_288 // bytes, the same as for a record to verify, and half of the largest body of a service over REST
	ttl        = 300_000 // milliseconds for which lists and public texts may be cached, as over HTTP
	maxBatch   = 10      // messages of a batch; they run in sequence within the time of one request
	maxVersion = 32      // characters of a protocol version that an answer repeats
)
