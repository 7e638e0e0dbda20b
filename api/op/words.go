package op

import (
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Name and ShortDescription introduce the service in every document and card. The card of an MCP
// server allows a description of 100 characters.
const (
	Name             = "Countersign"
	ShortDescription = "Deterministic verdicts on what AI agents are about to do, signed and kept in a verifiable ledger."
)

// Paths that documents of several packages refer to.
const (
	AuthPath   = "/auth.md"
	HealthPath = "/api/health"
	IconPath   = "/icon.svg"
	JWKSPath   = "/.well-known/jwks.json"
	LLMSPath   = "/llms.txt"

	MCPPath          = "/mcp" // offers every tool; the other two paths offer the tools of one purpose
	MCPSafetyPath    = "/mcp/safety"
	MCPAssurancePath = "/mcp/assurance"
)

// MCPPaths lists the paths of the MCP endpoints.
var MCPPaths = []string{MCPPath, MCPSafetyPath, MCPAssurancePath}

// ServicePath returns the path of a service.
func ServicePath(s policy.Service) string { return "/api/agent-services/" + s.Name }

// ExampleAnswer returns a service's answer to its example, without a signature.
func (o *Operation) ExampleAnswer() (jsontext.Value, error) {
	answer, err := o.Service.Evaluate([]byte(o.Example))
	if err != nil {
		return nil, fmt.Errorf("example of %s: %w", o.ID, err)
	}
	return jsontext.Value(answer.Body), nil
}

// Ended is the answer of an operation that revokes or removes something.
type Ended struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// HostOf returns the host of a base URL, without its port.
func HostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "localhost"
	}
	return u.Hostname()
}

// USD formats an amount in cents as US dollars.
func USD(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// Enum returns words as the enum of a JSON Schema.
func Enum(words []string) (list []any) {
	for _, word := range words {
		list = append(list, word)
	}
	return list
}
