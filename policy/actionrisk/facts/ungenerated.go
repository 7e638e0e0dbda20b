//go:build ungenerated

package facts

import "github.com/countersign/countersign/policy/actionrisk/rules"

// RulesetHash is unknown until the tables are read.
const RulesetHash = ""

// present compiles the tables. The generator is built with the tag ungenerated, which replaces
// tables_generated.go with this file, because that may not fit changed types.
func present() *Set {
	c, err := Compile(rules.DecodeTable)
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	return c
}
