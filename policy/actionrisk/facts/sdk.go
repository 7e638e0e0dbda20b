package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
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

func (c *Set) readSDKs(read rules.TableReader) error {
	var t sdkTable
	err := read("sdk", &t)
	c.SDKs = t.SDKs
	return err
}

// Snake writes deleteDBInstance as delete_db_instance.
func Snake(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if scan.Upper(c) {
			if i > 0 && (!scan.Upper(name[i-1]) || i+1 < len(name) && !scan.Upper(name[i+1]) && name[i+1] != '_') && name[i-1] != '_' {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}
