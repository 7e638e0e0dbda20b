package mcp

const (
	maxMessage = 524_288 // octets, as of a record to verify: half of what a component takes over REST
	ttl        = 300_000 // milliseconds that lists and public texts may be kept, as their twins over HTTP
	maxBatch   = 10      // messages of a batch: one after the other, they have the time of one request
	maxVersion = 32      // characters of a protocol version that are said back to its sender
)
