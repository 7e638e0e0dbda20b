package actionrisk

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/canon"
)

// RulesetText returns the rule set of a version: that of this program, or a released one whose
// tables are in the source tree. The text is canonical JSON, an object with each table under its
// name. Its SHA-256 is the hash in the verdicts. safer.json is not part of it, because its advice
// is not part of a verdict. This takes some milliseconds.
func RulesetText(version string) ([]byte, error) { return rulesetText(rules.Released, version) }

func rulesetText(shelf rules.Shelf, version string) ([]byte, error) {
	if version == facts.RulesetVersion {
		return canonicalTables(version, presentTables())
	}
	tables, err := shelf.Tables(version)
	if err != nil {
		return nil, err
	}
	return canonicalTables(version, tables)
}

// canonicalTables returns the text whose hash is that of the rule set.
func canonicalTables(version string, tables map[string]json.RawMessage) ([]byte, error) {
	delete(tables, "safer")
	text, err := json.Marshal(tables)
	if err == nil {
		text, err = canon.Canonical(text)
	}
	if err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	return text, nil
}

func presentTables() map[string]json.RawMessage {
	tables := map[string]json.RawMessage{}
	for name, text := range rules.Tables() {
		tables[name] = json.RawMessage(text)
	}
	return tables
}
