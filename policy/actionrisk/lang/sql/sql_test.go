package sql

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// client applies the text functions of the fact tables and has no other properties.
var client = Client{Apply: func(lang, fn string, texts ...string) (string, bool) {
	f := facts.Tables().TextFunction(lang, fn)
	if f == nil {
		return "", false
	}
	return scan.Functions[f.Does].Of(texts)
}}

// summary formats a result like the expectations in testdata/effects.txt.
func summary(r Result) string {
	var words []string
	for _, f := range r.Facts {
		w := f.Effect
		if f.RolledBack {
			w += "~"
		}
		if f.Deferred {
			w += "?"
		}
		words = append(words, w)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	for _, f := range r.Files {
		words = append(words, map[act.Op]string{act.ReadFile: "reads:", act.Overwrite: "writes:"}[f.Op]+f.Path)
	}
	for _, c := range r.Shell {
		words = append(words, "sh:"+c.Text)
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, " ")
	case r.ReadOnly:
		return "read"
	}
	return "none"
}

func TestSQLEffects(t *testing.T) {
	data, err := os.ReadFile("testdata/effects.txt")
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(string(data), "\n") {
		want, text, ok := strings.Cut(line, " | ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		text = strings.ReplaceAll(text, `\n`, "\n")
		words := strings.Fields(want)
		if !strings.Contains(want, "sh:") {
			slices.Sort(words)
			want = strings.Join(slices.Compact(words), " ")
		}
		r := Classify(text, AnyReading, client)
		if diff := cmp.Diff(want, summary(r)); diff != "" {
			t.Errorf("line %d: %s\n(-want +got)\n%s", n+1, text, diff)
		}
		for _, f := range r.Facts {
			if f.Start < 0 || f.End > len(text) || f.Start >= f.End {
				t.Errorf("line %d: span %d..%d outside", n+1, f.Start, f.End)
			}
		}
	}
}

// FuzzSQLTokens checks that in every reading the tokens together are the whole text, and that
// Classify is deterministic.
func FuzzSQLTokens(f *testing.F) {
	data, err := os.ReadFile("testdata/effects.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f.Add(line)
	}
	for _, s := range []string{"$$", "$a$", "'", "E'\\", "[", "`", "/*", "/*!", "--", "\\", "\\!", "{{", "@", "@@", "?", "\xff", "U&'", "é'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []Reading{ANSI, MySQL, Slash} {
			at := 0
			for _, tok := range tokensOf(text, read) {
				if tok.Start != at || tok.End <= tok.Start {
					t.Fatalf("reading %d: token %d..%d after %d", read, tok.Start, tok.End, at)
				}
				at = tok.End
			}
			if at != len(text) {
				t.Fatalf("reading %d: %d of %d bytes", read, at, len(text))
			}
		}
		r := Classify(text, AnyReading, client)
		for _, f := range r.Facts {
			if f.Start < 0 || f.End > len(text) || f.Start >= f.End {
				t.Fatalf("span %d..%d outside", f.Start, f.End)
			}
		}
		if summary(r) != summary(Classify(text, AnyReading, client)) {
			t.Fatal("two answers")
		}
	})
}
