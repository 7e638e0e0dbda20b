package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// manifest judges a Kubernetes object passed inline.
func (w *jsonWalk) manifest(n *jsonNode) bool {
	w.e.front.nodes["manifest"](&shell{e: w.e, src: w.src}, w.src, n, &invocation{exe: "json", src: w.src})
	return true
}

// iamPolicy judges a policy document passed inline.
func (w *jsonWalk) iamPolicy(n *jsonNode) bool {
	list := n.get("Statement")
	statements := list.kids
	if list.kind == '{' {
		statements = []*jsonNode{list}
	}
	for _, s := range statements {
		if !strings.EqualFold(s.str("Effect"), "Allow") {
			continue
		}
		action, resource, principal := wildcards(s.get("Action")), wildcards(s.get("Resource")), s.get("Principal")
		switch {
		case action == "*" && (resource == "*" || resource == ""):
			w.e.raise("cloud.aws.iam-admin", w.src, s.start, s.end, "*")
		case principal != nil && (principal.text == "*" || wildcards(principal.get("AWS")) == "*"):
			w.e.raise("cloud.aws.public-acl", w.src, s.start, s.end, "*")
		case strings.HasPrefix(action, "iam:"):
			w.e.raise("cloud.aws.iam-change", w.src, s.start, s.end, action)
		}
	}
	return true
}

// wildcards is the broadest of a string or a list of strings.
func wildcards(n *jsonNode) string {
	if n == nil {
		return ""
	}
	if n.kind == '"' {
		return n.text
	}
	broadest := ""
	for _, k := range n.kids {
		if k.text == "*" || k.text == "*:*" {
			return "*"
		}
		if broadest == "" || strings.HasSuffix(k.text, ":*") {
			broadest = k.text
		}
	}
	return broadest
}

// servers judges an MCP configuration: every server is code that will run.
func (w *jsonWalk) servers(n *jsonNode) bool {
	for _, s := range n.kids {
		words := s.str("command")
		for _, a := range s.get("args").kidsOrNone() {
			words += " " + a.text
		}
		name := "server-add"
		if pinnedWords(strings.Fields(words)) {
			name = "server-add-pinned"
		}
		w.e.match(&item{kind: kindTool, name: name, src: w.src, from: s.start, to: s.end, target: printable(words)})
		if words != "" && w.src.depth < scan.MaxDepth {
			src := source{text: words, at: -1, via: append(append([]string(nil), w.src.via...), "mcp-server"), depth: w.src.depth + 1}
			src.span, _ = w.src.where(s.start, s.end)
			w.e.routed(&src)
		}
	}
	return true
}

// pinnedWords reports whether a package among the words has an exact version.
func pinnedWords(words []string) bool {
	for _, s := range words {
		at := strings.LastIndexByte(s, '@')
		if eq := strings.Index(s, "=="); eq > 0 {
			at = eq + 1
		}
		if at <= 0 || at+1 >= len(s) {
			continue
		}
		version := s[at+1:]
		if version[0] >= '0' && version[0] <= '9' && strings.Contains(version, ".") || strings.HasPrefix(version, "sha256:") {
			return true
		}
	}
	return false
}

// addsAServer: "mcp add", "mcp add-json" or "mcp install" of any program.
func addsAServer(_ *engine, it *item, _ []string) (Word, bool) {
	if it.inv == nil {
		return Word{}, false
	}
	for i, w := range it.inv.operands {
		if i+1 < len(it.inv.operands) && w.Text == "mcp" {
			switch it.inv.operands[i+1].Text {
			case "add", "add-json", "install":
				return w, true
			}
		}
		if i >= 1 {
			break
		}
	}
	return it.inv.value("--add-mcp")
}

func pinnedMCP(_ *engine, it *item, _ []string) (Word, bool) {
	if it.inv == nil {
		return Word{}, false
	}
	words := make([]string, 0, len(it.inv.argv))
	for _, w := range it.inv.argv {
		words = append(words, strings.Fields(w.Text)...)
	}
	return Word{}, pinnedWords(words)
}

// toolPredicates are the predicates of the mcp table.
var toolPredicates = map[string]predicate{
	"pinned-mcp": pinnedMCP,   // the server that is added has an exact version
	"mcp-server": addsAServer, // an argument tells which server is added
}
