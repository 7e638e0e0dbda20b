package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/discovery"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/evidence"
	"github.com/countersign/countersign/policy/mcprisk"
)

// TestEveryFindingHasAPage checks that each finding id has one page, as HTML and Markdown, with an
// example and the finding in its answer, and that the sitemap and the search contain it.
func TestEveryFindingHasAPage(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	findings, err := discovery.Findings()
	if err != nil {
		t.Fatal(err)
	}
	sitemap := string(n.get("/sitemap.xml").body)
	index := string(n.get("/docs/findings.md").body)
	for _, f := range findings {
		path := "/rules/" + f.ID
		if a := n.get(path); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
		page := string(n.get(path + ".md").body)
		for _, of := range f.Of {
			if of.Catches == "" || of.Why == "" || of.Instead == "" || of.Of == "" {
				t.Errorf("%s: a part is missing: %+v", f.ID, of)
			}
			if of.Unseen == "" && (!strings.Contains(of.Finding, `"`+f.ID+`"`) || !strings.Contains(page, of.Finding)) {
				t.Errorf("%s: the page shows no finding of it", f.ID)
			}
			if !strings.Contains(page, of.Catches[1:]) || !strings.Contains(page, of.Instead[1:]) {
				t.Errorf("%s: the page does not say what it catches and what to do", f.ID)
			}
		}
		if !strings.Contains(sitemap, path+"<") || !strings.Contains(index, "]("+path+")") {
			t.Errorf("%s is not in the sitemap, or not in the list of findings", path)
		}
	}
	if a := n.get("/search?q=replayed+nonce"); !strings.Contains(string(a.body), `href="/rules/replayed_nonce"`) {
		t.Error("the search does not find /rules/replayed_nonce")
	}
	for _, r := range actionrisk.Summaries() {
		if slices.ContainsFunc(findings, func(f site.Finding) bool { return f.ID == r.ID }) {
			t.Errorf("%s is a rule of the gate, and of another service", r.ID)
		}
	}
}

// TestNoFindingIsUndeclared searches the source of the services for finding ids. A service in the
// same folder must declare each of them.
func TestNoFindingIsUndeclared(t *testing.T) {
	t.Parallel()
	findings, err := discovery.Findings()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, f := range findings {
		declared[f.ID] = true
	}
	ids := findingIDs(t)
	ids = append(ids, mcprisk.RuleIDs()...)
	ids = append(ids, evidence.RuleIDs()...)
	if len(ids) < 150 {
		t.Fatalf("only %d ids found: the search is blind", len(ids))
	}
	for _, id := range ids {
		if !declared[id] {
			t.Errorf("a service makes findings with the id %s, which no policy.Rule declares", id)
		}
	}
}

// noFindings lists texts that look like finding ids but are not.
var noFindings = []string{
	// signals of walletscreen
	"structuring", "fan_in", "exposure", "counterparty", "fund_source", "sanctions_fuzzy", "sanctions_exact",
	// rows of evidence in investmentevidence
	"irr_unique", "risk_level_not_high", "history_sufficient", "payback_reached", "fail", "warn", "observations", "https", "sanctions", "simple", "dated",
	// parts of an evidence bundle
	"challenge", "settlement", "response",
}

// findingIDs returns the ids in the source: the first arguments of functions that create findings,
// the members ID of findings, and the ids in the tables of rules.
func findingIDs(t *testing.T) (ids []string) {
	effects := []string{"info", "deny", "needs_review"} // arguments that may precede an id
	idForm := regexp.MustCompile(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)
	take := func(e ast.Expr) bool {
		lit, is := e.(*ast.BasicLit)
		if !is || lit.Kind != token.STRING {
			return false
		}
		id, err := strconv.Unquote(lit.Value)
		if err != nil || !idForm.MatchString(id) || slices.Contains(noFindings, id) || slices.Contains(effects, id) {
			return false
		}
		ids = append(ids, id)
		return true
	}
	err := filepath.WalkDir("../policy", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "findings.go") ||
			strings.HasSuffix(path, "documented.go") || strings.Contains(path, "actionrisk/") && !strings.HasSuffix(path, "score.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch x := node.(type) {
			case *ast.CompositeLit:
				makesFinding(x, path, take)
			case *ast.CallExpr:
				if slices.Contains([]string{"add", "say", "find", "report", "warn"}, identifier(x.Fun)) {
					for _, arg := range x.Args {
						if take(arg) {
							break
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// makesFinding calls take with the id in a composite literal of a finding, or of a row in a table
// of rules.
func makesFinding(lit *ast.CompositeLit, path string, take func(ast.Expr) bool) {
	if strings.HasSuffix(identifier(lit.Type), "Finding") {
		for _, element := range lit.Elts {
			if member, is := element.(*ast.KeyValueExpr); is && strings.HasSuffix(identifier(member.Key), "ID") {
				take(member.Value)
			}
		}
	}
	// A row of a table of rules: in emailcheck the id is the second element, elsewhere the first.
	if lit.Type == nil && (strings.HasSuffix(path, "paymentpolicy/catalogue.go") || strings.HasSuffix(path, "v1/catalogue.go") || strings.HasSuffix(path, "emailcheck/emailcheck.go")) {
		for _, element := range lit.Elts[:min(2, len(lit.Elts))] {
			if take(element) {
				return
			}
		}
	}
}

func identifier(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
