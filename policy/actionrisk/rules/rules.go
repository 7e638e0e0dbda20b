// Package rules holds what is known as data: the rules themselves (shell.json, git.json
// and their kind; package facts has the shape, type Rule), and the tables that say how
// programs are called, what they carry, read, prove and hold (programs.json), what names do
// in program texts (names.json) and how languages are written (code.json, windows.json …). A table's shape is the Go type that facts reads it into.
package rules

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// past are the tables of earlier rule sets: past/VERSION.json.gz is an object that
// holds each table under its name. A table that stands there by itself is what the program
// knew without one before it had it.
//
//go:embed past
var past embed.FS

// PastTables are the tables of an earlier rule set as they were, by name.
func PastTables(version string) (map[string]json.RawMessage, error) {
	packed, err := past.ReadFile("past/" + version + ".json.gz")
	if err != nil {
		return nil, fmt.Errorf("rule set %s is not in the tree", version)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	var all map[string]json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	return all, nil
}

// Past reads the tables of an earlier rule set.
func Past(version string) (TableReader, error) {
	all, err := PastTables(version)
	if err != nil {
		return nil, err
	}
	groups, err := pastGroups(version, all["groups"])
	if err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	all["groups"] = groups
	if all["programs"] == nil {
		if all["programs"], err = pastPrograms(all); err != nil {
			return nil, fmt.Errorf("rule set %s: %w", version, err)
		}
	}
	if all["names"] == nil { // past/names.json says what the other lists did
		var code map[string]json.RawMessage
		if err := json.Unmarshal(all["code"], &code); err != nil {
			return nil, fmt.Errorf("rule set %s: code: %w", version, err)
		}
		all["code"] = fmt.Appendf(nil, `{"languages":%s}`, code["languages"])
	}
	return func(name string, into any) error {
		if all[name] == nil {
			was, err := past.ReadFile("past/" + name + ".json")
			if err != nil {
				return nil // it came later
			}
			return decode(string(was), into) // what stood in the program then
		}
		return decode(string(all[name]), into)
	}, nil
}

// pastGroups are the groups of an earlier rule set and those whose names stood in the
// program then: past/moved.json has them by version.
func pastGroups(version string, own []byte) ([]byte, error) {
	text, err := past.ReadFile("past/moved.json")
	if err != nil {
		return nil, err
	}
	moved, groups := map[string]map[string][]string{}, map[string][]string{}
	if err := json.Unmarshal(text, &moved); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(own, &groups); err != nil {
		return nil, err
	}
	maps.Copy(groups, moved[version])
	return json.Marshal(groups)
}

// pastColumns are the tables of earlier rule sets that programs.json took the place of:
// a table each, its list, and the column that the list is now.
var pastColumns = [...]struct{ table, list, column string }{
	{"tools", "tools", "options"}, {"tools_sql", "tools", "options"},
	{"wrappers", "wrappers", "carries"}, {"wrappers_sql", "wrappers", "carries"}, {"wrappers_ops", "wrappers", "carries"},
	{"effects", "effects", "effects"}, {"reads", "reads", "reads"}, {"clients", "clients", "clients"},
	{"readonly", "proofs", "proves"}, {"dryrun", "proofs", "dry"},
}

// pastPrograms puts the rows of those tables into one, and takes them out of their own.
func pastPrograms(all map[string]json.RawMessage) (json.RawMessage, error) {
	var programs []map[string]any
	for _, c := range pastColumns {
		var table map[string]json.RawMessage
		if err := json.Unmarshal(all[c.table], &table); err != nil {
			return nil, fmt.Errorf("%s: %w", c.table, err)
		}
		var rows []map[string]json.RawMessage
		if err := json.Unmarshal(table[c.list], &rows); err != nil {
			return nil, fmt.Errorf("%s: %w", c.table, err)
		}
		for _, row := range rows {
			exe := row["exe"]
			delete(row, "exe")
			programs = append(programs, map[string]any{"exe": exe, c.column: []any{row}})
		}
		delete(table, c.list)
		rest, err := json.Marshal(table)
		if err != nil {
			return nil, err
		}
		all[c.table] = rest
	}
	return json.Marshal(map[string]any{"programs": programs})
}

// PastVersions are the earlier rule sets in the tree, oldest first.
func PastVersions() []string {
	files, _ := past.ReadDir("past") // embedded: it is there
	var out []string
	for _, f := range files {
		if version, packed := strings.CutSuffix(f.Name(), ".json.gz"); packed {
			out = append(out, version)
		}
	}
	return out
}

// DecodeTable decodes one table. The tables are ours: that they are strict JSON is
// checked once, by TestTablesStrict, and not at every start.
func DecodeTable(name string, into any) error {
	if err := decode(Tables()[name], into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// TableReader decodes one table into a value; a table that is not there leaves it alone.
type TableReader = func(name string, into any) error
