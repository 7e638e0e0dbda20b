package toolcall

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// manifest judges a Kubernetes object in JSON.
func (w *jsonWalk) manifest(n *tree.Node) bool {
	w.e.Front.Nodes["manifest"](&interp.Process{Env: w.e, Src: w.src}, w.src, n, &act.Invocation{Exe: "json", Src: w.src})
	return true
}

// iamPolicy judges an IAM policy document in JSON.
func (w *jsonWalk) iamPolicy(n *tree.Node) bool {
	list := n.Get("Statement")
	statements := list.Kids
	if list.Kind == '{' {
		statements = []*tree.Node{list}
	}
	for _, s := range statements {
		if !strings.EqualFold(s.Str("Effect"), "Allow") {
			continue
		}
		action, resource, principal := wildcards(s.Get("Action")), wildcards(s.Get("Resource")), s.Get("Principal")
		switch {
		case action == "*" && (resource == "*" || resource == ""):
			w.e.See(act.GrantsEverything, w.src, s.Start, s.End, "*")
		case principal != nil && (principal.Text == "*" || wildcards(principal.Get("AWS")) == "*"):
			w.e.See(act.GrantsEverybody, w.src, s.Start, s.End, "*")
		case strings.HasPrefix(action, "iam:"):
			w.e.See(act.GrantsRight, w.src, s.Start, s.End, action)
		}
	}
	return true
}

// wildcards returns the string n, or the broadest string of the list n.
func wildcards(n *tree.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind == '"' {
		return n.Text
	}
	broadest := ""
	for _, k := range n.Kids {
		if k.Text == "*" || k.Text == "*:*" {
			return "*"
		}
		if broadest == "" || strings.HasSuffix(k.Text, ":*") {
			broadest = k.Text
		}
	}
	return broadest
}

// servers judges the servers of an MCP configuration. Each server is a program that will run.
func (w *jsonWalk) servers(n *tree.Node) bool {
	for _, s := range n.Kids {
		command, words := s.Get("command"), append([]string{s.Str("command")}, strs(s.Get("args"))...)
		name := "server-add"
		if pinnedWords(words) {
			name = "server-add-pinned"
		}
		w.e.Match(&act.Item{Kind: act.KindTool, Name: name, Src: w.src, From: s.Start, To: s.End, Target: act.Printable(strings.Join(words, " "))})
		if command != nil && command.Kind == '"' {
			w.carry(s, command, "any", "mcp-server")
		}
	}
	return true
}

// pinnedWords reports whether a word names a package with an exact version or digest.
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

// addsAServer reports whether a call adds an MCP server: "mcp add", "mcp add-json" or "mcp
// install" of any program, or --add-mcp.
func addsAServer(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if it.Inv == nil {
		return act.Word{}, false
	}
	for i, w := range it.Inv.Operands {
		if i+1 < len(it.Inv.Operands) && w.Text == "mcp" {
			switch it.Inv.Operands[i+1].Text {
			case "add", "add-json", "install":
				return w, true
			}
		}
		if i >= 1 {
			break
		}
	}
	return it.Inv.Value("--add-mcp")
}

func pinnedMCP(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if it.Inv == nil {
		return act.Word{}, false
	}
	words := make([]string, 0, len(it.Inv.Argv))
	for _, w := range it.Inv.Argv {
		words = append(words, strings.Fields(w.Text)...)
	}
	return act.Word{}, pinnedWords(words)
}

// Predicates holds the predicates that the mcp table uses.
var Predicates = map[string]interp.Predicate{
	"pinned-mcp": pinnedMCP,   // the call adds a server with an exact version
	"mcp-server": addsAServer, // the call adds a server
}
