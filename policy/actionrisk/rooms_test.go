package actionrisk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the packages in the subfolders, each with the other ones that it may import. The
// package actionrisk itself may import all of them.
var rooms = map[string][]string{
	"scan": {}, "paths": {"scan"}, "rules": {},
	"act":      {"paths", "scan"},
	"tree":     {"act", "scan"},
	"hosts":    {"act", "scan"},
	"lang/sql": {"act", "paths", "scan"},
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

// frontEnd lists the packages that a front-end may import.
var frontEnd = []string{"act", "amounts", "facts", "hosts", "interp", "lang/sql", "paths", "scan", "stores", "tokens", "tree"}

// TestRooms checks the imports between the packages by parsing the files.
func TestRooms(t *testing.T) {
	const below = "github.com/countersign/countersign/policy/actionrisk"
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		room := filepath.ToSlash(filepath.Dir(path))
		if err != nil || room == "." || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		may, known := rooms[room]
		if !known {
			t.Errorf("%s has no row in rooms of rooms_test.go, which names the packages that it may import", room)
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

// mostLines is the largest number of lines of a package, without tests.
const mostLines = 6000

// TestRoomsAreSmall checks that no package has more than mostLines lines.
func TestRoomsAreSmall(t *testing.T) {
	lines := map[string]int{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if !strings.HasPrefix(string(text), "// Code generated") {
			lines[filepath.Dir(path)] += strings.Count(string(text), "\n")
		}
		return err
	})
	if err != nil || len(lines) < len(rooms) {
		t.Fatalf("%d rooms: %v", len(lines), err)
	}
	for room, n := range lines {
		if n > mostLines {
			t.Errorf("%s has %d lines", room, n)
		}
	}
}

// mostBranches is the largest number of branches of a function. Readers must be able to keep all
// of them in mind.
const mostBranches = 25

// TestFunctionsAreSmall checks that no function has more than mostBranches branches, counted as
// McCabe does.
func TestFunctionsAreSmall(t *testing.T) {
	engineFiles(t, func(path string, _ *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := branches(f); n > mostBranches {
					t.Errorf("%s: %s has %d branches", path, f.Name.Name, n)
				}
			}
		}
	})
}

func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
