package cmd_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// words lists expressions that readers had to read twice, with replacements. TestWords checks
// comments, Go strings of more than one word, pages and documents.
var words = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{word(`whoever|whomever`), "the caller, the member, the operator: name the role"},
	{word(`somebody|nobody's`), "a person, another customer, an attacker: name the role"},
	{word(`anew`), "again, or rebuilt"},
	{word(`mend|mends|mended`), "fix"},
	{word(`put away|puts away`), "drop"},
	{word(`of before`), "earlier, previous"},
	{word(`(of|at most|by|takes?|has|have|had|be|exactly|after|or|with|are) so many`), "a count with a name: n events, count rows"},
	{word(`in force|into force`), "active"},
	{regexp.MustCompile(`(?i)\boctets?\b([^-]|$)`), "byte"},
	{word(`stands? in|lies? in|lie in`), "is in, is stored in"},
	{word(`stands? for itself`), "is taken literally"},
	{word(`mail letters?|letters? (is|are|was|were) (sent|mailed)|sends? (a|the) letter`), "e-mail"},
	{regexp.MustCompile(`(?i)\bbeside\b([^"]|$)`), "with, next to, in addition to"},
	{word(`dear`), "expensive"},
	{word(`not so`), "not, mismatch"},
}

func word(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + alternatives + `)\b`)
}

// exempt lists the beginnings of paths whose texts may contain these words, with the reason.
var exempt = map[string]string{
	"cmd/voice_test.go":       "the list itself",
	"policy/meaning/words.go": "the vocabulary of English",
}

// TestWords fails if a text contains one of words.
func TestWords(t *testing.T) {
	found := map[string]int{}
	check := func(path string, line int, text string) {
		if slices.ContainsFunc(slices.Collect(maps.Keys(exempt)), func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			return
		}
		for _, w := range words {
			for _, at := range w.pattern.FindAllStringIndex(text, -1) {
				where := line + strings.Count(text[:at[0]], "\n")
				found[path+":"+strconv.Itoa(where)+": "+strconv.Quote(text[at[0]:at[1]])+": write "+w.instead]++
			}
		}
	}
	for _, f := range files(t) {
		start := f.fset.File(f.syntax.Pos())
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				check(f.path, start.Line(c.Pos()), c.Text)
			}
		}
		if f.test || strings.HasSuffix(f.path, "_gen.go") {
			continue // strings in tests are test data
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
				check(f.path, start.Line(lit.Pos()), lit.Value)
			}
			return true
		})
	}
	for path, text := range documents(t) {
		check(path, 1, text)
	}
	if len(found) > 0 {
		t.Errorf("%d words that readers had to read twice (CONTRIBUTING.md, \"Plain English\"):\n%s", len(found), strings.Join(slices.SortedFunc(maps.Keys(found), byPlace), "\n"))
	}
}

// byPlace compares two findings "path:line: text" by path and line.
func byPlace(a, b string) int {
	pathA, restA, _ := strings.Cut(a, ":")
	pathB, restB, _ := strings.Cut(b, ":")
	lineA, _, _ := strings.Cut(restA, ":")
	lineB, _, _ := strings.Cut(restB, ":")
	numberA, _ := strconv.Atoi(lineA)
	numberB, _ := strconv.Atoi(lineB)
	return cmp.Or(strings.Compare(pathA, pathB), cmp.Compare(numberA, numberB), strings.Compare(a, b))
}

// documents returns the contents of all documents, pages, templates, schema and rule files, by
// path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") && name != ".github" && name != ".deploy" || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !slices.Contains([]string{".md", ".html", ".sql", ".json", ".yaml"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(path)
		texts[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = string(text)
		return err
	})
	if err != nil || len(texts) < 50 {
		t.Fatalf("%d documents, %v", len(texts), err)
	}
	return texts
}
