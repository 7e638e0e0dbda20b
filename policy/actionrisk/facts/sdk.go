package facts

import (
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// A program text that loads the library of a service calls what its command line
// tool does: boto3's delete_bucket is "aws s3 delete-bucket". rules/sdk.json says for
// each library which command has the effect of a call.

// SDK is a line of sdk.json.
type SDK struct {
	// Import: one of these stands in the text, as the name of what it loads.
	Import []string `json:"import"`
	// Call are methods, in small letters with "_" between their words; "*" stands for
	// the rest of a name, "a.b" for a method of a.
	Call []string `json:"call"`
	// With: one of these stands among what it is given.
	With []string `json:"with,omitempty"`
	// Run is the command of the same effect: {0} is the first text it is given, {name}
	// the value of a named one, {*} what the star stands for, {kebab} the call with
	// dashes, {service} the name of the service that the client was made for.
	Run string `json:"run,omitempty"`
	// Text: its first text is run by a shell.
	Text bool `json:"text,omitempty"`
}

type sdkTable struct {
	SDKs []SDK `json:"sdks"`
}

func readSDKs(read rules.TableReader) ([]SDK, error) {
	var t sdkTable
	err := read("sdk", &t)
	return t.SDKs, err
}
