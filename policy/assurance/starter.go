package assurance

import "embed"

//go:embed starters/*.json
var starterFiles embed.FS

// Starter is a policy to start from. Its hosts, servers and addresses are examples that the author
// replaces before activation.
type Starter struct{ Name, About string }

// Starters lists the starter policies.
func Starters() []Starter {
	return []Starter{
		{"x402", "Purchases over x402: small sums on Base, to named hosts only."},
		{"mcp", "Tool calls over MCP: named servers, and a review of calls declared high or critical."},
		{"strict", "Nothing is allowed unless it is named, for both protocols."},
	}
}

// Text returns the JSON of the starter policy. ok is false if there is none with this name.
func (s Starter) Text() (text string, ok bool) {
	content, err := starterFiles.ReadFile("starters/" + s.Name + ".json")
	return string(content), err == nil
}
