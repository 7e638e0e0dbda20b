package actionrisk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// engineFiles calls the function "do" with every Go file of the engine, except tests and generated
// files.
func engineFiles(t *testing.T, do func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err == nil && !ast.IsGenerated(file) {
			do(filepath.ToSlash(path), set, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// literals calls the function "do" with every string literal in the engine's files, with its file
// and line.
func literals(t *testing.T, do func(path string, at token.Position, text string)) {
	t.Helper()
	engineFiles(t, func(path string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value)
				do(path, set.Position(l.Pos()), text)
			}
			return true
		})
	})
}

// TestRulesAreNamedInTables checks that front-ends do not name rules: they report observations,
// and a table maps these to rules. Only the judge, and the list of effects in act/effectnames.go,
// contain rule ids.
func TestRulesAreNamedInTables(t *testing.T) {
	named := facts.Tables().Rule
	literals(t, func(path string, at token.Position, text string) {
		if named(text) != nil && !strings.HasPrefix(path, "judge/") && path != "act/effectnames.go" {
			t.Errorf("%s: %s is the id of a rule", at, text)
		}
	})
}

// TestEverySightHasARule checks that seen.json has exactly the observations that package act
// lists.
func TestEverySightHasARule(t *testing.T) {
	seen := &facts.Tables().Seen
	file, err := parser.ParseFile(token.NewFileSet(), "act/seen.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok {
			what, _ := strconv.Unquote(l.Value)
			if listed++; seen.Get(what) == nil {
				t.Errorf("seen.json has no rule for %s", what)
			}
		}
		return true
	})
	if listed != len(seen.Entries) {
		t.Errorf("%d sights, %d in the table", listed, len(seen.Entries))
	}
}

// TestProgramsAreNamedInTables checks that lists of similar programs are in groups.json, not in
// Go. A list of words in Go counts as one of programs if the tables know most of them.
func TestProgramsAreNamedInTables(t *testing.T) {
	tables := facts.Tables()
	engineFiles(t, func(path string, _ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 || !strings.HasSuffix(dotted(call.Fun), "SetOf") {
				return true
			}
			list, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			text, _ := strconv.Unquote(list.Value)
			words, known := strings.Fields(text), 0
			for _, w := range words {
				if p := tables.Program(w); p.Known() || p.Options != nil && !p.Options.Made {
					known++
				}
			}
			if known > 2 && known*2 > len(words) {
				t.Errorf("%s: this list of programs belongs in groups.json: %s", path, text)
			}
			return true
		})
	})
}

// dotted returns a name in Go code together with its package or receiver, such as scan.SetOf.
func dotted(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return dotted(x.X) + "." + x.Sel.Name
	}
	return ""
}

// TestAProgramIsDescribedOnce checks that programs.json does not give a program the same value
// twice.
func TestAProgramIsDescribedOnce(t *testing.T) {
	var table struct {
		Programs []map[string]jsontext.Value `json:"programs"`
	}
	if err := json.Unmarshal([]byte(rules.Tables()["programs"]), &table); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, row := range table.Programs {
		var names []string
		if err := json.Unmarshal(row["exe"], &names); err != nil {
			t.Fatal(err)
		}
		delete(row, "exe")
		for column, value := range row {
			var facts []jsontext.Value
			if err := json.Unmarshal(value, &facts); err != nil {
				t.Fatal(err)
			}
			for _, fact := range facts {
				if err := fact.Canonicalize(); err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					key := name + " " + column + " " + string(fact)
					if said[key] {
						t.Errorf("programs.json has a value twice: %s", key)
					}
					said[key] = true
				}
			}
		}
	}
}

// TestGroupsAreDifferent checks that no two groups have the same members.
func TestGroupsAreDifferent(t *testing.T) {
	named := map[string]string{}
	for _, group := range facts.Tables().Groups.Entries {
		members := slices.Sorted(slices.Values(group.Is))
		key := strings.Join(slices.Compact(members), " ")
		if named[key] != "" {
			t.Errorf("the groups %s and %s are the same", named[key], group.Name)
		}
		named[key] = group.Name
	}
}

// ownMeaning are the programs that the shared packages and the judge know by name. The text is
// what is special about the program, so that no table can describe it.
var ownMeaning = map[string]map[string]string{
	"facts":  {"env": "it sets variables for what it carries"},
	"interp": {"ln": "the paths behind a link are those of its target"},
	"hosts":  {"curl": "what it sends makes its request a POST, where others say the method"},
	"judge": {
		"dscl": "it shows an account where no verb says otherwise", "git": "it shows a file by REVISION:PATH",
		"gpg":    "it shows no file, however it is asked",
		"passwd": "without a name it is about whoever runs it",
		"pax":    "-r reads an archive, where others write to it", "script": "its first operand is a file, not what it runs",
		"sort": "with -o nothing is shown", "sshpass": "any value of -p is a password, however short",
	},
}

// TestSharedRoomsKnowNoPrograms checks that the shared packages compare the name of a program only
// if it is in ownMeaning. All other names of programs are in tables or front-ends.
func TestSharedRoomsKnowNoPrograms(t *testing.T) {
	used := map[string]bool{}
	engineFiles(t, func(path string, _ *token.FileSet, file *ast.File) {
		if strings.HasPrefix(path, "lang/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			compared, ok := n.(*ast.BinaryExpr)
			if !ok || compared.Op != token.EQL && compared.Op != token.NEQ || !strings.HasSuffix(dotted(compared.X), ".Exe") {
				return true
			}
			if l, ok := compared.Y.(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(l.Value)
				if used[filepath.Dir(path)+" "+name] = true; ownMeaning[filepath.Dir(path)][name] == "" {
					t.Errorf("%s compares the name of the program %s, which is not in ownMeaning", path, name)
				}
			}
			return true
		})
	})
	for room, names := range ownMeaning {
		for name := range names {
			if !used[room+" "+name] {
				t.Errorf("%s no longer compares the name %s: remove it from ownMeaning", room, name)
			}
		}
	}
}

// TestEveryGroupOfWordsIsAskedFor checks that the engine uses every group of verbs.json, and that
// each word is in one class.
func TestEveryGroupOfWordsIsAskedFor(t *testing.T) {
	named := map[string]bool{}
	literals(t, func(_ string, _ token.Position, text string) { named[text] = true })
	table := facts.Verbs()
	for _, group := range table.Groups.Entries {
		if !named[group.Name] {
			t.Errorf("the engine does not use the group %s", group.Name)
		}
	}
	words := 0
	for _, class := range table.Classes.Entries {
		words += len(class.Is)
	}
	if words != len(table.Class.Entries) {
		t.Errorf("%d words in classes, %d different ones", words, len(table.Class.Entries))
	}
}

// TestEveryGroupAskedForIsThere checks that verbs.json has every group that the engine uses.
func TestEveryGroupAskedForIsThere(t *testing.T) {
	engineFiles(t, func(path string, _ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || dotted(call.Fun) != "facts.Says" && dotted(call.Fun) != "Says" {
				return true
			}
			if group, ok := call.Args[1].(*ast.BasicLit); ok {
				if name, _ := strconv.Unquote(group.Value); facts.Verbs().Groups.Get(name) == nil {
					t.Errorf("%s: %s is no group of verbs.json", path, name)
				}
			}
			return true
		})
	})
}
