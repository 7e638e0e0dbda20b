package assurance

import "embed"

//go:embed starters/*.json
var starterFiles embed.FS

// Starter is a policy to begin with. It is changed before it is put in force: its
// hosts, servers and addresses are examples.
type Starter struct{ Name, About string }

// Starters lists the policies to begin with.
func Starters() []Starter {
	return []Starter{
		{"x402", "Purchases over x402: small sums on Base, to named hosts only."},
		{"mcp", "Tool calls over MCP: named servers, and a person for what is declared high or critical."},
		{"strict", "Nothing is allowed until it is named, for both protocols."},
	}
}

// Text is the starter's JSON; ok is false for a name that is none.
func (s Starter) Text() (text string, ok bool) {
	content, err := starterFiles.ReadFile("starters/" + s.Name + ".json")
	return string(content), err == nil
}
