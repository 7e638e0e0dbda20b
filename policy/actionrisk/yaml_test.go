package actionrisk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// shownNode returns a tree as text on one line.
func shownNode(n *tree.Node) string {
	if n == nil {
		return "nil"
	}
	switch n.Kind {
	case '{', '[':
		parts := make([]string, len(n.Kids))
		for i, k := range n.Kids {
			if parts[i] = shownNode(k); n.Kind == '{' {
				parts[i] = n.Keys[i] + "=" + parts[i]
			}
		}
		return string(n.Kind) + strings.Join(parts, ",") + string(n.Kind+2)
	case '"':
		return fmt.Sprintf("%q", n.Text)
	}
	return n.Text
}

// TestYAML checks that a document gives the same tree as JSON with the same meaning.
func TestYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: x y # no\nc: true":                               `{a=1,b="x y",c=true}`,
		"kind: Pod\nmetadata: {name: x, labels: {a: b}}":           `{kind="Pod",metadata={name="x",labels={a="b"}}}`,
		"a:\n- b: 1\n  c: 2\n- d\n-\n  e: f":                       `{a=[{b=1,c=2},"d",{e="f"}]}`,
		"a:\n  - - x\n    - y\nb: [1, two, \"three, 3\", 'it''s']": `{a=[["x","y"]],b=[1,"two","three, 3","it's"]}`,
		"run: |\n  rm -rf /\n    x\nb: >\n  one\n  two":            `{run="rm -rf /\n  x",b="one two"}`,
		"a: &x !tag v\nimage: alpine:3.20\nurl: http://h:80/p":     `{a="v",image="alpine:3.20",url="http://h:80/p"}`,
		"args: [\"-c\",\n  \"a\"]\nb: 2":                           `{args=["-c","a"],b=2}`,
		`{"a": [1, {"b": "\n"}], "c": null}`:                       `{a=[1,{b="\n"}],c=null}`,
		"\"a b\": 1\n'c': 2":                                       `{a b=1,c=2}`,
		"- hosts: all\n  tasks:\n    - x.y: {name: n}\n":           `[{hosts="all",tasks=[{x.y={name="n"}}]}]`,
		"{spec:{replicas:0,image:a:1},\"x\":[{a:b}]}":              `{spec={replicas=0,image="a:1"},x=[{a="b"}]}`,
		"just text": `"just text"`,
		"a: &x rm -rf /\nb: *x\nc: \"*x\"\nd: *y":              `{a="rm -rf /",b="rm -rf /",c="*x",d="*y"}`,
		"x: &x\n  a: 1\n  b: 2\ny:\n  <<: *x\n  b: 3":          `{x={a=1,b=2},y={b=3,a=1}}`,
		"- &x [a, b]\n- *x\n- &y\n  k: v\n- {<<: *y, l: [*x]}": `[["a","b"],["a","b"],{k="v"},{l=[["a","b"]],k="v"}]`,
		"- !t &x\n  k: v\n- <<: [*x, *z]\n  m: *x":             `[{k="v"},{m={k="v"},k="v"}]`,
	} {
		b := act.Budget{Left: scan.MaxSteps}
		docs := tree.YAML(text, &b)
		if len(docs) != 1 || shownNode(docs[0]) != want {
			for _, d := range docs {
				t.Errorf("%q\n got %s\nwant %s", text, shownNode(d), want)
			}
		}
	}
	b := act.Budget{Left: scan.MaxSteps}
	if docs := tree.YAML("a: 1\n---\nb: 2\n---\n", &b); len(docs) != 2 {
		t.Errorf("%d documents of two", len(docs))
	}
}

// FuzzOperations checks that the parsers of files for operations tools accept any text, and that
// the nodes of the YAML parser are inside the text.
func FuzzOperations(f *testing.F) {
	for _, s := range operationBombs {
		f.Add(s)
	}
	for _, s := range []string{"a: 1\nb:\n- c\n", "{a: [b, {c: d}]}", "x: |\n  y\n z", "- - - a", "'a': \"b\nc", "{a:{b:0}}", "[}", "a: &x !t\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 {
			return
		}
		b := act.Budget{Left: scan.MaxSteps}
		var walk func(n *tree.Node)
		walk = func(n *tree.Node) {
			if n == nil {
				return
			}
			if n.Start < 0 || n.Start > len(text) || n.End > len(text)+1 || n.Kind == '{' && len(n.Keys) != len(n.Kids) {
				t.Fatalf("%q: %d %d", text, n.Start, n.End)
			}
			for _, k := range n.Kids {
				walk(k)
			}
		}
		for _, n := range tree.YAML(text, &b) {
			walk(n)
		}
		for _, lang := range []string{"manifest", "compose", "dockerfile", "kubeconfig", "playbook", "resource", "puppet", "chef", "jinja", "hcl", "commands", "console", "sls"} {
			e := &interp.Env{Set: facts.Tables(), Front: current().front, Budget: act.Budget{Left: scan.MaxSteps}}
			src := act.Source{Text: text, At: 0, Span: act.Span{Start: 0, End: len(text)}}
			e.Action.Command = text
			v := &act.Invocation{Exe: "ansible", Argv: []act.Word{{Text: "ansible"}}, Src: &src, To: len(text)}
			e.Read(lang, &src, v)
		}
	})
}

// TestAliasesRun checks that an alias is replaced with the node of its anchor, and that nested
// aliases exhaust the budget.
func TestAliasesRun(t *testing.T) {
	const play = "ansible-playbook /dev/stdin <<'Y'\n"
	for text, want := range map[string]Level{
		play + "- hosts: localhost\n  vars:\n    c: &a rm -rf /srv/data\n  tasks:\n    - shell: *a\nY":                                             High,
		play + "- hosts: localhost\n  vars:\n    t: &a\n      shell: rm -rf /srv/data\n  tasks:\n    - <<: *a\nY":                                  High,
		play + "- hosts: localhost\n  vars:\n    c: &a ls /srv/data\n  tasks:\n    - shell: *a\nY":                                                 Medium,
		"docker compose -f - up <<'Y'\nx-all: &a\n  privileged: true\n  volumes: ['/:/host']\nservices:\n  web:\n    <<: *a\n    image: alpine\nY": High,
	} {
		if got := Assess(Action{Command: text}); got.Risk < want || want < High && got.Risk >= High {
			t.Errorf("%v %v: %s", got.Risk, got.RuleIDs(), text)
		}
	}
	bomb := "a0: &a0 [x, x, x, x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i)
	}
	b := act.Budget{Left: scan.MaxSteps}
	tree.YAML(bomb, &b)
	if !b.Spent {
		t.Error("aliases of aliases cost nothing")
	}
}
