package cmd_test

import (
	"bytes"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// orders lists the packages of each layer in order: a package should use only names of packages
// before it. most is the number of names that may be used against the order. Go refuses an import
// cycle, but not an import against the order.
var orders = map[string]struct {
	most     int
	packages []string
}{
	"ledger": {5, []string{
		"ledger/internal/wait", "ledger/pace", "ledger/internal/pooler", "ledger/internal/preimage", "ledger/packing", "ledger/tree", "ledger/checkpoint", "ledger/timestamp", "ledger/seal", "ledger/events", "ledger/stored",
		"ledger/internal/sealing", "ledger/internal/kept", "ledger", // package ledger: events, appends, reads, feeds, partitions and the keyring
		"ledger/vault", "ledger/keeper", "ledger/archive", "ledger/audit",
		"ledger/bundle", "ledger/forms", "ledger/views", "ledger/backup", "ledger/localpg", "ledger/ledgertest", "ledger/timestamp/timestamptest", "ledger/internal/fixture",
	}},
	"commands": {0, []string{
		"commands/cache", "commands/ground", "commands/ground/groundtest", "commands/accounts", "commands/organizations", "commands/payments", "commands/store",
		"commands/services", "commands/decisions", "commands/evidence", "commands/webhooks", "commands",
	}},
	"api": {0, []string{
		"api/client", "api/clients/conformance", "api/clients/conformance/play", "api/clients/engine", "api/clients/recompute", "api/clients/verifier", "api/clients/verifier/make", // for programs that call the service
		"api/largebody", "api/schema", "api/credential", "api/op", // types with which endpoints are declared
		"api/x402", "api/x402/x402test", "api/checkout", "api/stripe", "api/webhook", "api/catalog", "api/traces", "api/plot", "api/mcp", "api/site", // protocols of other parties
		"api/words", "api/query", "api/pack", "api/mail", "api/web", "api/web/public", "api/web/account", "api/web/org", "api/web/review", // pages and mails
		"api/contract", "api/payments", "api/request", // the path of every call
		"api/store", "api/services", "api/accounts", "api/organizations", "api/decisions", "api/evidence", "api/webhooks",
		"api/tools", "api/discovery", "api",
	}},
	"cmd/bench": {0, []string{
		"cmd/bench/rig", "cmd/bench/faults", "cmd/bench/rate", "cmd/bench/scale", "cmd/bench/compute", "cmd/bench/strain", "cmd/bench", "cmd/bench/peers",
	}},
	"cmd/countersign": {0, []string{
		"cmd/countersign/files", "cmd/countersign/screen", "cmd/countersign/logs", "cmd/countersign/guard/pattern", "cmd/countersign/guard/launch", "cmd/countersign/guard/agents", "cmd/countersign/guard", "cmd/countersign/gate",
		"cmd/countersign/setting", "cmd/countersign/node", "cmd/countersign/proof", "cmd/countersign/manage", "cmd/countersign/operate",
		"cmd/countersign/serve/settling", "cmd/countersign/serve", "cmd/countersign",
	}},
}

func TestRoomsFollowTheirOrder(t *testing.T) {
	for layer, order := range orders {
		against := map[string]bool{}
		for _, f := range files(t) {
			at := slices.Index(order.packages, f.folder)
			switch {
			case f.folder != layer && !strings.HasPrefix(f.folder, layer+"/"):
				continue
			case at < 0:
				t.Errorf("%s is in no room of %s: give its package a place in the order", f.path, layer)
				continue
			case f.test:
				continue // tests may use all names
			}
			for name := range namesOf(f, order.packages[at+1:]) {
				against[f.folder+" uses "+name] = true
			}
		}
		if len(against) > order.most {
			t.Errorf("%s: %d names are used against the order of its rooms, at most %d may be:\n%s", layer, len(against), order.most,
				strings.Join(slices.Sorted(maps.Keys(against)), "\n"))
		}
	}
}

// namesOf returns the names from certain packages that a file uses, in the form package.Name.
func namesOf(f file, of []string) map[string]bool {
	imported := map[string]string{} // package path, by the name that the file uses for it
	for _, spec := range f.syntax.Imports {
		path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		if !ours || !slices.Contains(of, path) {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = path
	}
	names := map[string]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imported[x.Name] != "" {
				names[imported[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

// Limits of the size of a package, so that it stays easy to understand. The gate's engine is an
// exception: it covers many languages and is divided into packages of its own.
const (
	mostFiles = 25
	mostLines = 4000
	engine    = "policy/actionrisk"
)

func TestPackagesAreSmall(t *testing.T) {
	sizes := map[string]struct{ files, lines int }{}
	for _, f := range files(t) {
		if f.test || f.folder == engine || strings.HasPrefix(f.folder, engine+"/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		size := sizes[f.folder]
		size.files++
		size.lines += bytes.Count(text, []byte("\n"))
		sizes[f.folder] = size
	}
	for folder, size := range sizes {
		if size.files > mostFiles || size.lines > mostLines {
			t.Errorf("%s has %d files and %d lines: at most %d and %d, so give it rooms", folder, size.files, size.lines, mostFiles, mostLines)
		}
	}
}

// mostDependencies is the number of dependencies that one struct of the API may have. A struct
// with more cannot be understood by itself.
const mostDependencies = 6

// TestRoomsOfTheAPIHoldFewThings counts the dependencies of each struct in the API: fields whose
// type is from another package of this project, loggers and functions. Fields with a tag are
// members of a request or an answer and are not counted. Only package api itself may use
// commands.App.
func TestRoomsOfTheAPIHoldFewThings(t *testing.T) {
	for _, f := range files(t) {
		if f.test || !strings.HasPrefix(f.folder, "api/") {
			continue
		}
		if namesOf(f, []string{"commands"})["commands.App"] {
			t.Errorf("%s names commands.App: take the commands of the room's subject instead", f.path)
		}
		ours := map[string]bool{} // whether a package name in this file counts as a dependency
		for _, spec := range f.syntax.Imports {
			path, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			name := path[strings.LastIndexByte(path, '/')+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			ours[name] = is && !strings.HasPrefix(path, "policy") || name == "slog"
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			held := 0
			for _, field := range s.Fields.List {
				if field.Tag == nil && isDependency(field.Type, ours) {
					held += max(len(field.Names), 1)
				}
			}
			if held > mostDependencies {
				t.Errorf("%s: %s holds %d things from outside, at most %d may be", f.path, spec.Name.Name, held, mostDependencies)
			}
			return true
		})
	}
}

// isDependency reports whether a field type is a function, or a type of one of packages or a
// pointer to one.
func isDependency(of ast.Expr, packages map[string]bool) bool {
	switch of := of.(type) {
	case *ast.FuncType:
		return true
	case *ast.StarExpr:
		return isDependency(of.X, packages)
	case *ast.SelectorExpr:
		x, is := of.X.(*ast.Ident)
		return is && packages[x.Name]
	}
	return false
}
