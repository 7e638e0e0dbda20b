//go:build unix

package faults

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// Building a release takes a minute and is done by hand. This test only checks that each change of
// a release can still be applied to the current source of the project and of the standard library.
func TestEveryReleaseFindsWhatItChanges(t *testing.T) {
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for row, of := range releases {
		if !slices.Contains(names(), row) {
			t.Errorf("no row is called %s", row)
		}
		for _, r := range of {
			texts, err := r.texts(t.Context(), source)
			if err != nil {
				t.Errorf("the %s release of %s: %v", r.name, row, err)
			}
			for file, text := range texts {
				if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
					t.Errorf("the %s release of %s is no program: %v", r.name, row, err)
				}
			}
		}
	}
}
