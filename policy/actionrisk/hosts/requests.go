package hosts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// An HTTP request can carry SQL in its body, form or URL, a GraphQL mutation, a tool call, or a
// deletion in a search engine's query language. Any other text in a body is only data.

// SecretVariable reports whether a variable with this name contains a credential.
func SecretVariable(name string) bool {
	return act.SyntaxName(name) && name == strings.ToUpper(name) && SecretName(name)
}
