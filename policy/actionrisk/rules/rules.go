// Package rules holds the engine's knowledge as data. shell.json, git.json and similar files are
// the rules (type Rule of package facts). The other files are tables: how programs are called,
// which other commands and files they run, and which options change nothing (programs.json); the
// effects of names in program texts (names.json); and the syntax of languages (code.json,
// windows.json …). The Go types in package facts define the format of each table.
//
// After a change of a table run
//
//	go generate ./policy/actionrisk/...
//
// It writes the tables in the standard layout (format_test.go) and generates the Go data that the
// engine uses (package facts). To resolve a conflict in a table, merge its rows by hand, in any
// layout, and run the same command.
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

// Released returns a file of the rule sets of earlier releases.
func Released(file string) ([]byte, error) { return past.ReadFile("past/" + file) }

// Shelf opens a file of an earlier rule set by name. The file VERSION.json.gz is an object with
// each table of this rule set under its name.
type Shelf func(file string) ([]byte, error)

// Tables returns the tables of a rule set by name.
func (s Shelf) Tables(version string) (map[string]json.RawMessage, error) {
	file, err := s(version + ".json.gz")
	if err != nil {
		return nil, fmt.Errorf("this program does not contain rule set %s", version)
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

// Reader returns a reader for the tables of a rule set.
func (s Shelf) Reader(version string) (TableReader, error) {
	all, err := s.Tables(version)
	if err != nil {
		return nil, err
	}
	return func(name string, into any) error {
		if all[name] == nil {
			return nil // the table was added after this rule set
		}
		return decode(name, all[name], into)
	}, nil
}

// DecodeTable decodes one table of this release. The engine itself decodes few tables: package
// facts has the others as Go data, whose generator uses this function.
func DecodeTable(name string, into any) error { return decode(name, []byte(Tables()[name]), into) }

func decode(name string, text []byte, into any) error {
	if err := canon.Decode(text, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// TableReader decodes the named table into a value. If the rule set has no such table, the value
// does not change.
type TableReader = func(name string, into any) error
