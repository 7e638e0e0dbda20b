package actionrisk

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the packages below this one and which of their neighbours each may import:
// arrows go down only. This package, the face, may import them all.
var rooms = map[string][]string{
	"scan": {}, "paths": {"scan"}, "rules": {},
	"act":      {"paths", "scan"},
	"tree":     {"act", "scan"},
	"hosts":    {"act", "scan"},
	"lang/sql": {"paths", "scan"},
	"stores":   {"act", "facts", "lang/sql", "scan", "tree"},
	"facts":    {"act", "hosts", "paths", "rules", "scan", "tree"},
	"amounts":  {"act", "facts", "hosts", "rules", "scan", "stores", "tree"},
	"interp":   {"act", "facts", "hosts", "lang/sql", "paths", "scan", "stores", "tree"},
	"tokens":   {"act", "facts", "interp", "scan"},
	"judge":    {"act", "amounts", "facts", "hosts", "interp", "paths", "scan"},
	// The front-ends never import each other.
	"lang/document": frontEnd, "lang/minor": frontEnd, "lang/payment": frontEnd, "lang/posix": frontEnd,
	"lang/program": frontEnd, "lang/store": frontEnd, "lang/toolcall": frontEnd, "lang/windows": frontEnd,
}

// frontEnd is what a front-end may import.
var frontEnd = []string{"act", "amounts", "facts", "hosts", "interp", "lang/sql", "paths", "scan", "stores", "tokens", "tree"}

// TestRooms holds the arrows between the rooms, by parsing the files.
func TestRooms(t *testing.T) {
	const below = "github.com/countersign/countersign/policy/actionrisk"
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		room := filepath.ToSlash(filepath.Dir(path))
		if err != nil || room == "." || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		may, known := rooms[room]
		if !known {
			t.Errorf("%s is a room nobody wrote down", room)
			return filepath.SkipDir
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if other, ok := strings.CutPrefix(name, below); ok && !slices.Contains(may, strings.TrimPrefix(other, "/")) {
				t.Errorf("%s imports %q, which %s may not", path, other, room)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
