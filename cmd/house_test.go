// Package cmd_test checks the structure of the project: which folders exist, which packages each
// folder may import, and that all exported names have a comment. The tests parse the files. They
// do not run "go list", because the test cache would return an outdated answer.
package cmd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/countersign/countersign/"

// rooms lists the folders and the packages of this project that each may import, by prefix. For a
// folder, the entry with the longest prefix applies. TestRoomsFollowTheirOrder checks the order of
// the packages inside a layer.
var rooms = map[string][]string{
	"policy":            {"policy"},
	"migrations":        {},
	"ledger":            {"ledger", "policy/canon", "migrations"},
	"ledger/localpg":    {"migrations"},
	"ledger/ledgertest": {"ledger/localpg", "migrations"},
	"projections":       {"projections", "ledger", "policy", "migrations"},
	"commands":          {"commands", "ledger", "policy"},
	"api":               {"api", "commands", "projections", "ledger", "policy", "migrations"},
	// The packages of the API, in order: each may import those above it.
	"api/schema": {"policy"},
	"api/op":     {"api/schema", "api/credential", "commands/ground", "policy"},
	"api/words":  {"ledger/events", "policy"},
	"api/query":  {"api/words", "commands", "projections", "ledger", "policy"},
	"api/pack":   {"api/words", "commands", "projections", "ledger", "policy"},
	"api/mail":   {"api/words", "commands", "projections", "ledger", "policy"},
	"api/web":    {"api/web", "api/words", "api/query", "api/pack", "api/mail", "api/credential", "api/plot", "api/site", "commands", "projections", "ledger", "policy"},
	// Other programs import these packages, so they must not import the service.
	"api/client": {"policy", "ledger/seal"},
	"cmd":        {"cmd", "api", "commands", "projections", "ledger", "policy", "migrations"},
	// The guard runs on users' computers at every tool call of an agent, so it must not contain
	// the service.
	"cmd/countersign-guard":         {"cmd/countersign/gate", "cmd/countersign/guard", "cmd/countersign/screen", "policy"},
	"cmd/countersign/gate":          {"cmd/countersign/guard", "cmd/countersign/screen", "cmd/countersign/files", "policy"},
	"cmd/countersign/guard":         {"cmd/countersign/guard", "cmd/countersign/files", "policy"},
	"cmd/countersign/guard/agents":  {"cmd/countersign/guard/launch", "cmd/countersign/guard/pattern", "cmd/countersign/files", "policy"},
	"cmd/countersign/guard/launch":  {"cmd/countersign/guard/pattern", "policy"},
	"cmd/countersign/guard/pattern": {},
	"cmd/countersign/screen":        {"policy/canon"},
	"cmd/countersign/files":         {},
	"cmd/countersign/logs":          {"cmd/countersign/screen"},
	// Only the program fanout contains the clients of message brokers, so that the service does
	// not.
	"cmd/countersign": {"cmd/countersign", "api", "commands", "projections", "ledger", "policy", "migrations"},
}

// file is a parsed Go file of the project.
type file struct {
	path, folder string
	test         bool
	fset         *token.FileSet
	syntax       *ast.File
}

func files(t *testing.T) []file {
	t.Helper()
	var found []file
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		relative := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		folder, _, _ := strings.Cut(relative+"/", "/"+name+"/")
		found = append(found, file{relative, folder, strings.HasSuffix(name, "_test.go"), fset, syntax})
		return nil
	})
	if err != nil || len(found) < 50 {
		t.Fatalf("%d files, %v", len(found), err)
	}
	return found
}

func TestNoOtherTopLevelFolder(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, known := rooms[e.Name()]; e.IsDir() && !known && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" {
			t.Errorf("%s is a top-level folder that rooms does not list", e.Name())
		}
	}
}

func TestArrowsPointOneWay(t *testing.T) {
	prefixes := slices.SortedFunc(maps.Keys(rooms), func(a, b string) int { return len(b) - len(a) })
	for _, f := range files(t) {
		if f.test {
			continue // tests may import every package
		}
		i := slices.IndexFunc(prefixes, func(p string) bool { return f.folder == p || strings.HasPrefix(f.folder, p+"/") })
		if i < 0 {
			t.Errorf("%s is in no room", f.path)
			continue
		}
		for _, spec := range f.syntax.Imports {
			path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours {
				continue
			}
			allowed := slices.ContainsFunc(rooms[prefixes[i]], func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
			if !allowed {
				t.Errorf("%s imports %s: %s may import %v", f.path, path, prefixes[i], rooms[prefixes[i]])
			}
		}
	}
}

// forbidden lists packages that give access to input other than the arguments. A rule that used
// one would not be deterministic.
var forbidden = []string{"os", "net", "net/http", "time", "math/rand", "math/rand/v2", "crypto/rand", "context", "io/fs", "log", "log/slog", "syscall", "unsafe"}

func TestPolicyIsPure(t *testing.T) {
	for _, f := range files(t) {
		if f.test || !strings.HasPrefix(f.folder, "policy") {
			continue
		}
		for _, spec := range f.syntax.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if path == "time" && calendarOnly(f.syntax) {
				continue
			}
			if slices.Contains(forbidden, path) {
				t.Errorf("%s imports %s", f.path, path)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", f.path)
			case *ast.FuncDecl:
				if n.Name.Name == "init" {
					t.Errorf("%s has an init: a list one can read is better", f.path)
				}
			}
			return true
		})
	}
}

// calendarOnly reports whether a file uses package time only for dates and durations, and not for
// a clock or a timer.
func calendarOnly(f *ast.File) bool {
	pure := true
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
			pure = pure && !slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation"}, s.Sel.Name)
		}
		return true
	})
	return pure
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	said := map[string]bool{}
	for _, f := range files(t) {
		if f.folder == "cmd" || f.test && !said[f.folder] {
			continue
		}
		text := ""
		if f.syntax.Doc != nil {
			text = f.syntax.Doc.Text()
		}
		said[f.folder] = said[f.folder] || strings.HasPrefix(text, "Package "+f.syntax.Name.Name+" ") || strings.HasPrefix(text, "Command ")
	}
	for folder, ok := range said {
		if !ok {
			t.Errorf("package %s has no comment that begins with its name", folder)
		}
	}
}

func TestEverythingExportedHasAComment(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", f.path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					undocumented(t, f.path, d, spec)
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	name := d.Recv.List[0].Type
	if star, ok := name.(*ast.StarExpr); ok {
		name = star.X
	}
	if index, ok := name.(*ast.IndexExpr); ok {
		name = index.X
	}
	ident, ok := name.(*ast.Ident)
	return ok && ident.IsExported()
}

func undocumented(t *testing.T, path string, d *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			t.Errorf("%s: type %s has no comment", path, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				t.Errorf("%s: %s has no comment", path, name.Name)
			}
		}
	}
}

// decoders lists the files that may decode a payload without package events, with the reason.
var decoders = map[string]string{
	"ledger/vault/vault.go":        "it seals and opens personal members of every type",
	"ledger/audit/datakeys.go":     "likewise, with keys that it unwraps itself",
	"commands/payments/payment.go": "the payload of a payment, not of an event",
	"api/x402/payment.go":          "likewise",
	"api/x402/facilitator.go":      "likewise",
}

// Payloads of events are decoded only in ledger/events, so that an event can get a second schema
// version.
func TestEventsAreReadInOnePlace(t *testing.T) {
	for _, f := range files(t) {
		if f.test || f.folder == "ledger/events" || strings.HasPrefix(f.folder, "policy") || decoders[f.path] != "" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Decode", "DecodeChecked", "Members", "Find", "Unmarshal"}, function.Sel.Name) {
				return true
			}
			if of, ok := call.Args[0].(*ast.SelectorExpr); ok && of.Sel.Name == "Payload" {
				t.Errorf("%s decodes a payload itself: use ledger.Event.Read or Signed", f.path)
			}
			return true
		})
	}
}

// guardRooms lists the packages of this project that the guard's program may import, directly or
// indirectly.
var guardRooms = []string{"cmd/countersign-guard", "cmd/countersign/gate", "cmd/countersign/guard", "cmd/countersign/guard/agents", "cmd/countersign/guard/launch", "cmd/countersign/guard/pattern", "cmd/countersign/screen", "cmd/countersign/files",
	"policy", "policy/actionrisk", "policy/canon", "policy/guardlog", "policy/secrets"}

func TestTheGuardHasNoServiceInIt(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range files(t) {
		for _, spec := range f.syntax.Imports {
			if path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours && !f.test {
				imports[f.folder] = append(imports[f.folder], path)
			}
		}
	}
	seen, next := map[string]bool{}, []string{"cmd/countersign-guard"}
	for len(next) > 0 {
		folder := next[0]
		if next = next[1:]; seen[folder] {
			continue
		}
		seen[folder] = true
		if !slices.ContainsFunc(guardRooms, func(room string) bool {
			return folder == room || room == "policy/actionrisk" && strings.HasPrefix(folder, room+"/")
		}) {
			t.Errorf("the guard imports %s, which guardRooms does not list", folder)
		}
		next = append(next, imports[folder]...)
	}
	if len(seen) < 8 {
		t.Errorf("only %d rooms were found", len(seen))
	}
}
