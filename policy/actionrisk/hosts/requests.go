package hosts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// What an HTTP request carries: SQL in its body, its form or its address, a
// GraphQL mutation, a tool call, a deletion in a search engine's own language.
// Other text in a body is data, whatever it says.

// SecretVariable tells whether a variable of that name holds a credential.
func SecretVariable(name string) bool {
	return act.SyntaxName(name) && name == strings.ToUpper(name) && SecretName(name)
}
