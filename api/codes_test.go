package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/contract"
)

// ofOAuth lists codes of RFC 6749, 7591 and 8707, which only OAuth errors contain.
var ofOAuth = map[string]bool{"invalid_scope": true, "invalid_target": true, "invalid_client_metadata": true, "unsupported_grant_type": true, "unsupported_response_type": true}

// TestEveryCodeInTheSourceHasAPage checks that every error code has a page at the address in
// docUrl. It reads the codes from the source.
func TestEveryCodeInTheSourceHasAPage(t *testing.T) {
	t.Parallel()
	found := codesOf(t, "../policy", "../commands", ".")
	for code, at := range found {
		if !contract.HasPage(code) && !ofOAuth[code] {
			t.Errorf("%s refuses with %s, which has no page: add a row to problems in api/contract/problems.go", at, code)
		}
	}
	if len(found) < 60 {
		t.Errorf("only %d codes were found", len(found))
	}
}

// codesOf returns the error codes in the source files of some folders, each with one place of use.
func codesOf(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	named := map[string][]string{} // values of constants, by name
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			files = append(files, file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					if text, is := literal(spec.Values[i]); is {
						named[name.Name] = append(named[name.Name], text)
					}
				}
			}
			return true
		})
	}
	found := map[string]string{}
	add := func(e ast.Expr) {
		at := set.Position(e.Pos()).String()
		if text, is := literal(e); is {
			found[text] = at
			return
		}
		name := identifier(e)
		if !strings.HasPrefix(strings.ToLower(name), "code") && !strings.HasPrefix(name, "Status") || name == "Status" {
			return // the code is an argument, not a constant
		}
		for _, text := range named[name] {
			found[text] = at
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if strings.EqualFold(identifier(n.Fun), "Refuse") && len(n.Args) > 1 {
					add(n.Args[0])
				}
			case *ast.CompositeLit:
				switch name := identifier(n.Type); {
				case name == "Error" && len(n.Elts) > 1 && !keyed(n.Elts[0]):
					add(n.Elts[0])
				case name == "Error" || name == "problem":
					for _, element := range n.Elts {
						if member, is := element.(*ast.KeyValueExpr); is && identifier(member.Key) == "Code" {
							add(member.Value)
						}
					}
				}
			}
			return true
		})
	}
	return found
}

func keyed(e ast.Expr) bool {
	_, is := e.(*ast.KeyValueExpr)
	return is
}

func literal(e ast.Expr) (text string, is bool) {
	l, is := e.(*ast.BasicLit)
	if !is || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// TestAnAnswerLeadsToThePageOfItsCode checks that an error links to the page of its code, even if
// the body is not strict JSON.
func TestAnAnswerLeadsToThePageOfItsCode(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	key := n.issueKey()
	for code, a := range map[string]answer{
		"duplicate_field": n.post(quickPath, key, `{"command":"ls","command":"rm"}`),
		"invalid_json":    n.post(quickPath, key, `{"command":"ls"}}`),
		"unknown_field":   n.post(quickPath, key, `{"command":"ls","Command":"rm"}`),
	} {
		n.refused(a, http.StatusBadRequest, code, "-")
		if at, _ := a.members(t)["docUrl"].(string); at != n.url+"/errors/"+code || n.get("/errors/"+code).status != http.StatusOK {
			t.Errorf("%s leads to %q", code, at)
		}
	}
	if text := string(n.get("/errors/invalid_json.md").body); strings.Contains(text, "twice") {
		t.Errorf("the page of invalid_json tells of what has another code: %s", text)
	}
}

// TestBareErrorsAreWhereThePageSaysSo checks that error bodies have only the member "error" under
// /api/assurance/ and for the workflow status, as the page about errors says, and nowhere else.
func TestBareErrorsAreWhereThePageSaysSo(t *testing.T) {
	t.Parallel()
	for _, o := range operations() {
		said := strings.HasPrefix(o.Path, "/api/assurance/") || o.ID == "get_action_safety_workflow_status"
		if o.BareErrors != said {
			t.Errorf("%s %s answers bare errors: %v", o.Method, o.Path, o.BareErrors)
		}
	}
}

// TestRefusalsOfValidBodiesAreNamed checks that a body with the published shape is refused only
// for a reason that its operation lists, even if a member is any object or a number of any size.
func TestRefusalsOfValidBodiesAreNamed(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	for _, body := range []string{`{"manifest":{"tools":5}}`, `{"manifest":{"tools":["x"]}}`, `{"manifest":{"tools":[{"name":5}]}}`,
		`{"manifest":{"tools":[` + strings.Repeat(`{"name":"a"},`, 2000) + `{"name":"a"}]}}`} {
		o := n.server.table.Find("mcp_risk_score")
		a := n.post(o.Path, key, body)
		if code, _ := a.members(t)["code"].(string); a.status != http.StatusBadRequest || !slices.Contains(o.Refuses, code) {
			t.Errorf("%.60s: %v, named are %v", body, a, o.Refuses)
		}
	}
	a := n.post("/api/agent-services/payment-policy/decide", key, `{"payment":{"resourceUrl":"https://a.example/","method":"GET","maxTimeoutSeconds":1e300}}`)
	n.refused(a, http.StatusBadRequest, "out_of_range", "-")
	if a.members(t)["path"] != "/payment/maxTimeoutSeconds" {
		t.Errorf("%v", a)
	}
}
