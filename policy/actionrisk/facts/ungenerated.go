//go:build ungenerated

package facts

import "github.com/countersign/countersign/policy/actionrisk/rules"

// RulesetHash is unknown until the tables are read.
const RulesetHash = ""

// present compiles the tables. With this build tag the generator compiles even if the types no
// longer fit the generated file.
func present() *Set {
	c, err := Compile(rules.DecodeTable)
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	return c
}
