package sql

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestWordsAreKeywords checks that the parser compares tokens only with words in keywordList. The
// lexer marks no other word as a keyword, so such a comparison would always be false.
func TestWordsAreKeywords(t *testing.T) {
	for _, verb := range Verbs.Words() {
		if sqlKeyword(verb) == "" {
			t.Errorf("the verb %q is no keyword", verb)
		}
	}
	asks := []string{"is", "isAny", "has", "find", "firstOf", "clauseEnd"}
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fn, ok := call.Fun.(*ast.SelectorExpr); !ok || !slices.Contains(asks, fn.Sel.Name) {
				return true
			}
			for _, arg := range call.Args {
				if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if word, _ := strconv.Unquote(lit.Value); sqlKeyword(word) == "" {
						t.Errorf("%s asks for %q, which is no keyword", name, word)
					}
				}
			}
			return true
		})
	}
}

// TestLateWords checks the effects of clauses whose keywords were once missing from keywordList.
func TestLateWords(t *testing.T) {
	for text, want := range map[string]string{
		`DELETE FROM users WHERE name LIKE '%' ESCAPE '!'`:                                "delete.tautology",
		`ALTER TABLE t DROP SUBPARTITION p1`:                                              "drop.table",
		`ALTER SYSTEM DISCONNECT SESSION '13,8' IMMEDIATE`:                                "server.kill-session",
		`ALTER USER app PASSWORD EXPIRE`:                                                  "privilege.grant",
		`ALTER TABLE t ADD CONSTRAINT c EXCLUDE USING gist (a WITH &&)`:                   "ddl.lock",
		`ALTER TABLE t ADD COLUMN full_name text GENERATED ALWAYS AS (a) STORED NOT NULL`: "ddl.additive",
		`ALTER TABLE t SET LOGGED`:                                                        "ddl.rewrite",
		`DELETE FROM t WHERE 1=1 SETTINGS mutations_sync=1`:                               "delete.tautology",
	} {
		if got := summary(Classify(text, AnyReading, client)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
