package actionrisk

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/canon"
)

// RulesetText is a rule set whole, by its version: that of this release, or an earlier
// one whose tables are still in the tree. It is canonical JSON, an object with each
// table under its name, and its SHA-256 is the hash that verdicts name. What
// safer.json advises beside a verdict is none of it. It takes some milliseconds.
func RulesetText(version string) ([]byte, error) {
	read := rules.PastTables
	if version == facts.RulesetVersion {
		read = presentTables
	}
	tables, err := read(version)
	if err != nil {
		return nil, err
	}
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

func presentTables(string) (map[string]json.RawMessage, error) {
	tables := map[string]json.RawMessage{}
	for name, text := range rules.Tables() {
		tables[name] = json.RawMessage(text)
	}
	return tables, nil
}
