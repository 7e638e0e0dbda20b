package actionrisk

import (
	"fmt"
	"strings"
	"testing"
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
		"just text": `"just text"`,
	} {
		b := budget{left: maxSteps}
		docs := yamlDocuments(text, &b)
		if len(docs) != 1 || docs[0].show() != want {
			for _, d := range docs {
				t.Errorf("%q\n got %s\nwant %s", text, d.show(), want)
			}
		}
	}
	b := budget{left: maxSteps}
	if docs := yamlDocuments("a: 1\n---\nb: 2\n---\n", &b); len(docs) != 2 {
		t.Errorf("%d documents of two", len(docs))
	}
}
