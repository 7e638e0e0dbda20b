package actionrisk

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sqlSummary writes a result the way testdata/sql_effects.txt does.
func sqlSummary(r sqlResult) string {
	var words []string
	for _, f := range r.facts {
		w := f.effect
		if f.rolledBack {
			w += "~"
		}
		if f.deferred {
			w += "?"
		}
		words = append(words, w)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	for _, c := range r.shell {
		words = append(words, "sh:"+c.text)
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, " ")
	case r.readOnly:
		return "read"
	}
	return "none"
}

func TestSQLEffects(t *testing.T) {
	data, err := os.ReadFile("testdata/sql_effects.txt")
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
		r := classifySQL(text, sqlAnyReading, sqlClient{})
		if diff := cmp.Diff(want, sqlSummary(r)); diff != "" {
			t.Errorf("line %d: %s\n(-want +got)\n%s", n+1, text, diff)
		}
		for _, f := range r.facts {
			if f.start < 0 || f.end > len(text) || f.start >= f.end {
				t.Errorf("line %d: span %d..%d outside", n+1, f.start, f.end)
			}
		}
	}
}

// FuzzSQLTokens: the tokens joined are the text, in every reading.
func FuzzSQLTokens(f *testing.F) {
	data, err := os.ReadFile("testdata/sql_effects.txt")
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
		for _, read := range []sqlReading{sqlANSI, sqlMySQL, sqlSlash} {
			at := 0
			for _, tok := range sqlTokens(text, read) {
				if tok.start != at || tok.end <= tok.start {
					t.Fatalf("reading %d: token %d..%d after %d", read, tok.start, tok.end, at)
				}
				at = tok.end
			}
			if at != len(text) {
				t.Fatalf("reading %d: %d of %d bytes", read, at, len(text))
			}
		}
		r := classifySQL(text, sqlAnyReading, sqlClient{})
		for _, f := range r.facts {
			if f.start < 0 || f.end > len(text) || f.start >= f.end {
				t.Fatalf("span %d..%d outside", f.start, f.end)
			}
		}
		if sqlSummary(r) != sqlSummary(classifySQL(text, sqlAnyReading, sqlClient{})) {
			t.Fatal("two answers")
		}
	})
}
