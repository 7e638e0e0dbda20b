// Package rules holds what is known as data: the rules themselves (shell.json, git.json
// and their kind; package facts has the shape, type Rule), and the tables that say how
// programs are called, what they carry, read, prove and hold (tools.json, wrappers.json,
// effects.json …). A table's shape is the Go type that facts reads it into.
package rules

import (
	"embed"
	"fmt"

	"github.com/countersign/countersign/policy/canon"
)

// Tables are the files of this folder.
//
//go:embed *.json
var Tables embed.FS

// DecodeTable decodes one table. The tables are ours: that they are strict JSON is
// checked once, by TestTablesStrict, and not at every start.
func DecodeTable(name string, into any) error {
	text, err := Tables.ReadFile(name + ".json")
	if err == nil {
		err = canon.DecodeChecked(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// TableReader decodes one table into a value; a table that is not there leaves it alone.
type TableReader = func(name string, into any) error
