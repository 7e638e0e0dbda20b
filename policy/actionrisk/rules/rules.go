// Package rules holds what is known as data: the rules themselves (shell.json, git.json
// and their kind; package facts has the shape, type Rule), and the tables that say how
// programs are called, what they carry, read, prove and hold (programs.json), what names do
// in program texts (names.json) and how languages are written (code.json, windows.json …). A
// table's shape is the Go type that facts reads it into.
//
// After a change of a table run
//
//	go generate ./policy/actionrisk/...
//
// which writes the tables in their form (format_test.go) and the Go data that the engine
// runs on (package facts). To resolve a conflict in a table, merge its rows by hand, in any
// form, and run the same.
package rules

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/policy/canon"
)

//go:embed past
var past embed.FS

// Released are the rule sets of released versions.
func Released(file string) ([]byte, error) { return past.ReadFile("past/" + file) }

// Shelf gives the files of rule sets that were left behind, by their names:
// VERSION.json.gz is an object that holds each table of a rule set under its name.
type Shelf func(file string) ([]byte, error)

// Tables are the tables of a rule set by name.
func (s Shelf) Tables(version string) (map[string]json.RawMessage, error) {
	file, err := s(version + ".json.gz")
	if err != nil {
		return nil, fmt.Errorf("rule set %s is not in the tree", version)
	}
	var all map[string]json.RawMessage
	unpacked, err := gzip.NewReader(bytes.NewReader(file))
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&all)
	}
	if err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	return all, nil
}

// Reader reads the tables of a rule set.
func (s Shelf) Reader(version string) (TableReader, error) {
	all, err := s.Tables(version)
	if err != nil {
		return nil, err
	}
	return func(name string, into any) error {
		if all[name] == nil {
			return nil // a later rule set was the first to have it
		}
		return decode(name, all[name], into)
	}, nil
}

// DecodeTable decodes one table of this release. The engine does so for few of them:
// package facts holds the others as Go data, which its generator reads with this.
func DecodeTable(name string, into any) error { return decode(name, []byte(Tables()[name]), into) }

func decode(name string, text []byte, into any) error {
	if err := canon.Decode(text, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// TableReader decodes one table into a value; a table that is not there leaves it alone.
type TableReader = func(name string, into any) error
