package actionrisk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// show writes a tree in one line.
func (n *jsonNode) show() string {
	if n == nil {
		return "nil"
	}
	switch n.kind {
	case '{', '[':
		parts := make([]string, len(n.kids))
		for i, k := range n.kids {
			if parts[i] = k.show(); n.kind == '{' {
				parts[i] = n.keys[i] + "=" + parts[i]
			}
		}
		return string(n.kind) + strings.Join(parts, ",") + string(n.kind+2)
	case '"':
		return fmt.Sprintf("%q", n.text)
	}
	return n.text
}

// TestYAML: documents become the trees that JSON of the same meaning would give.
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
	} {
		b := budget{left: scan.MaxSteps}
		docs := yamlDocuments(text, &b)
		if len(docs) != 1 || docs[0].show() != want {
			for _, d := range docs {
				t.Errorf("%q\n got %s\nwant %s", text, d.show(), want)
			}
		}
	}
	b := budget{left: scan.MaxSteps}
	if docs := yamlDocuments("a: 1\n---\nb: 2\n---\n", &b); len(docs) != 2 {
		t.Errorf("%d documents of two", len(docs))
	}
}

// FuzzOperations: no text breaks the readers of what operations tools are given, and
// what the YAML reader gives lies inside the text.
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
		b := budget{left: scan.MaxSteps}
		var walk func(n *jsonNode)
		walk = func(n *jsonNode) {
			if n == nil {
				return
			}
			if n.start < 0 || n.start > len(text) || n.end > len(text)+1 || n.kind == '{' && len(n.keys) != len(n.kids) {
				t.Fatalf("%q: %d %d", text, n.start, n.end)
			}
			for _, k := range n.kids {
				walk(k)
			}
		}
		for _, n := range yamlDocuments(text, &b) {
			walk(n)
		}
		for _, lang := range []string{"manifest", "compose", "dockerfile", "kubeconfig", "playbook", "resource", "puppet", "chef", "jinja", "hcl", "commands", "console", "sls"} {
			e := &engine{compiled: ruleset(), front: fronts(), budget: budget{left: scan.MaxSteps}}
			src := source{text: text, at: 0, span: Span{0, len(text)}}
			e.action.Command = text
			v := &invocation{exe: "ansible", argv: []Word{{Text: "ansible"}}, src: &src, to: len(text)}
			e.read(lang, &src, v)
		}
	})
}
