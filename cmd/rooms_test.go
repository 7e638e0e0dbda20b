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

// orders are the reading orders of layers that have rooms: a package uses names only of
// packages that come before it. most is how many names may be used against the order; Go
// itself refuses a cycle, but not an arrow that points back.
var orders = map[string]struct {
	most     int
	packages []string
}{
	"ledger": {5, []string{
		"ledger/internal/wait", "ledger/internal/preimage", "ledger/packing", "ledger/tree", "ledger/checkpoint", "ledger/seal", "ledger/events", "ledger/stored",
		"ledger/internal/sealing", "ledger/internal/kept", "ledger", // event, append, read, feed, partition, keyring
		"ledger/vault", "ledger/keeper", "ledger/archive", "ledger/audit",
		"ledger/bundle", "ledger/backup", "ledger/localpg", "ledger/ledgertest", "ledger/internal/fixture",
	}},
	"commands": {0, []string{
		"commands/cache", "commands/ground", "commands/ground/groundtest", "commands/accounts", "commands/organizations", "commands/payments", "commands/store",
		"commands/services", "commands/decisions", "commands/evidence", "commands/webhooks", "commands",
	}},
	"cmd/countersign": {0, []string{
		"cmd/countersign/files", "cmd/countersign/screen", "cmd/countersign/logs", "cmd/countersign/guard/launch", "cmd/countersign/guard", "cmd/countersign/gate",
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
				continue // a test may use every name
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

// namesOf lists the names that a file uses of some packages of ours, as package.Name.
func namesOf(f file, of []string) map[string]bool {
	imported := map[string]string{} // package by its name in the file
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

// A package with more than this is hard to hold in one's head. The gate's engine is the
// exception: it is large because languages are, and has rooms of its own.
const (
	mostFiles = 25
	mostLines = 4000
	engine    = "policy/actionrisk"
)

// tooLarge are packages that are larger, and how large they may be until they get rooms (lines
// rounded up to hundreds). The numbers only go down.
var tooLarge = map[string]struct{ files, lines int }{
	"api":                   {52, 8_800},
	"cmd/bench":             {25, 4_500},
	"cmd/countersign/guard": {32, 5_400},
}

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
		most, listed := tooLarge[folder]
		fits := size.files <= mostFiles && size.lines <= mostLines
		switch {
		case listed && fits:
			t.Errorf("%s has %d files and %d lines now: take it out of tooLarge", folder, size.files, size.lines)
		case listed && (size.files > most.files || size.lines > most.lines):
			t.Errorf("%s has %d files and %d lines: it was too large with %d and %d, and may only shrink", folder, size.files, size.lines, most.files, most.lines)
		case !listed && !fits:
			t.Errorf("%s has %d files and %d lines: at most %d and %d, so give it rooms", folder, size.files, size.lines, mostFiles, mostLines)
		}
	}
	for folder := range tooLarge {
		if sizes[folder].files == 0 {
			t.Errorf("%s is gone: take it out of tooLarge", folder)
		}
	}
}
