package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Texts that the tools of operations act on: manifests, compose files, build files,
// client settings, playbooks, recipes, configurations. What they describe is turned
// into facts for the tables, or into the commands that would have the same effect.

// operations judges a text of such a language, which v is given.
func runOperations(outer *shell, src *source, lang string, v *invocation) flow {
	inner := *outer
	inner.src = src
	sh := &inner
	if !sh.describes(src) {
		return flow{}
	}
	switch lang {
	case "manifest":
		sh.manifests(src, v)
	case "compose":
		sh.composeFile(src, v)
	case "dockerfile":
		sh.buildFile(src, v)
	case "kubeconfig":
		sh.clientConfig(src, v)
	case "playbook":
		sh.playbook(src, v)
	case "resource":
		sh.moduleWords(src, v)
	case "jinja":
		sh.lookups(src, v)
	case "commands":
		sh.commandList(src, v)
	case "console":
		sh.console(src, v)
	case "sls":
		sh.states(src, v)
	case "awsconfig":
		sh.settings(Word{Text: ".aws/config"}, Word{Text: src.text, At: -1, Span: src.span, Taint: src.taint}, v)
	case "apibody":
		sh.apiBody(src, v)
	}
	return flow{}
}

// piece is a Word of a part of a text.
func piece(src *source, n *jsonNode) Word {
	span, _ := src.where(n.start, n.end)
	w := Word{Text: n.text, Span: span, At: -1, Taint: src.taint}
	w.Glob = strings.ContainsAny(n.text, "*?[")
	return w
}

// behalf is the shell in which a text of src runs on behalf of another program.
func (sh *shell) behalf(src *source, via string) *shell {
	inner := *sh
	s := *src
	s.via = append(slices.Clip(src.via), via)
	s.depth++
	inner.src = &s
	return &inner
}

// start runs words as a command at the place of v.
func (sh *shell) start(words []Word, v *invocation) flow {
	if len(words) == 0 || sh.src.depth > scan.MaxDepth {
		return flow{}
	}
	return sh.run(&invocation{src: sh.src, direct: true, argv: words, stdin: flow{known: true}, from: v.from, to: v.to})
}

// startNode runs what a member "command" or "args" of a description holds: a list of
// words, or a text.
func (sh *shell) startNode(src *source, v *invocation, nodes ...*jsonNode) {
	var words []Word
	for _, n := range nodes {
		switch {
		case n == nil:
		case n.kind == '[':
			for _, k := range n.kids {
				words = append(words, piece(src, k))
			}
		case n.text != "":
			words = append(words, piece(src, n))
		}
	}
	at := &invocation{exe: v.exe, src: sh.src, to: len(sh.src.text), stdin: flow{known: true}}
	switch {
	case len(words) == 1 && strings.Contains(words[0].Text, " "):
		sh.interpret("shell", words[0], at, "command", nil)
	case len(words) > 1 && words[0].Text == "-c": // to a shell that is not named
		sh.interpret("shell", words[1], at, "command", nil)
	case len(words) > 0:
		sh.start(words, at)
	}
}

// commandList runs the commands of a list that a cloud hands to its machines:
// commands=["a","b"], {"commands":["a"]}, or lines.
func (sh *shell) commandList(src *source, v *invocation) {
	text := src.text
	shift := 0
	for _, key := range [...]string{"startup-script=", "commands=", "command=", "script="} {
		if i := strings.Index(text, key); i >= 0 {
			text, shift = text[i+len(key):], i+len(key)
			break
		}
	}
	if v.exe == "gcloud" && shift == 0 {
		return // other metadata
	}
	inner := *src
	inner.text, inner.at = text, -1
	inner.span, _ = src.where(shift, len(src.text))
	run := sh.behalf(&inner, "commands")
	run.remote, run.cwd = true, ""
	at := &invocation{exe: v.exe, src: run.src, to: len(text), stdin: flow{known: true}}
	if f, ok := sh.e.files[paths.FileKey(sh.cwd, strings.TrimPrefix(strings.TrimPrefix(text, "file://"), "@"))]; ok && f.known {
		text = f.word.Text
	}
	if strings.HasPrefix(text, "#cloud-config") {
		run.cloudConfig(text, at)
		return
	}
	if text == "" || text[0] != '[' && text[0] != '{' {
		run.interpret("shell", Word{Text: text, At: -1, Span: inner.span, Taint: src.taint}, at, "commands", nil)
		return
	}
	for _, n := range yamlDocuments(text, &sh.e.budget) {
		if list := n.search([]string{"commands", "scripts", "commandToExecute", "command", "script", "text"}, 0); list != nil {
			n = list
		}
		lines := []string{}
		for _, k := range n.kids {
			lines = append(lines, k.text)
		}
		if n.text != "" {
			lines = append(lines, n.text)
		}
		run.interpret("shell", Word{Text: strings.Join(lines, "\n"), At: -1, Span: inner.span, Taint: src.taint}, at, "commands", nil)
	}
}

// search is the first member of one of these names at any depth.
func (n *jsonNode) search(names []string, depth int) *jsonNode {
	if n == nil || depth > scan.MaxJSONDepth {
		return nil
	}
	if found := n.get(names...); found != nil {
		return found
	}
	for _, k := range n.kids {
		if found := k.search(names, depth+1); found != nil {
			return found
		}
	}
	return nil
}

// settings runs the commands that the settings of a client hold: a program that gives
// it credentials each time it is used.
func (sh *shell) settings(file, text Word, v *invocation) {
	switch {
	case strings.HasSuffix(file.Text, ".aws/config") || strings.HasSuffix(file.Text, ".aws/credentials"):
		for line := range strings.Lines(text.Text) {
			if name, value, ok := strings.Cut(line, "="); ok && (strings.TrimSpace(name) == "credential_process" || strings.TrimSpace(name) == "cli_pager") {
				one := text
				one.Text, one.At = strings.TrimSpace(value), -1
				sh.interpret("shell", one, v, "credential_process", nil)
			}
		}
	case strings.HasSuffix(file.Text, ".kube/config"):
		sh.interpret("kubeconfig", text, v, "kubeconfig", nil)
	}
}

// console runs the lines of ansible-console: a module and its arguments each.
func (sh *shell) console(src *source, v *invocation) {
	inner := sh.behalf(src, v.exe)
	inner.remote = true
	for line := range strings.Lines(src.text) {
		module, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if module == "" || module == "cd" || module == "exit" || !sh.e.budget.spend(2) {
			continue
		}
		if len(sh.e.resources[kindOf(module)]) == 0 {
			module, args = "shell", strings.TrimSpace(line)
		}
		r := &resource{kind: module}
		assigned(r, Word{Text: strings.TrimPrefix(args, "!"), At: -1, Span: inner.src.span, Taint: src.taint})
		inner.describe(r, v)
	}
}

// apiBody judges what is sent to the interface of a cluster, of a container daemon or
// of a build server, which makes or runs it.
func (sh *shell) apiBody(src *source, v *invocation) {
	for _, w := range v.argv[1:] {
		_, _, path, _ := urlOf(w.Text)
		switch {
		case strings.Contains(path, "/apis/") || strings.Contains(path, "/api/v1/namespaces") || strings.Contains(path, "/api/v1/nodes"):
			sh.manifests(src, v)
		case strings.Contains(path, "/containers/") && strings.Contains(path, "create") || strings.HasSuffix(path, "/exec"):
			for _, n := range yamlDocuments(src.text, &sh.e.budget) {
				sh.container(src, n, v)
			}
		case strings.HasSuffix(path, "/scriptText") || strings.HasSuffix(path, "/script"):
			sh.read("strings", src, nil)
		}
	}
}

// cloudConfig runs what a machine that is made runs when it starts first.
func (sh *shell) cloudConfig(text string, v *invocation) {
	for _, n := range yamlDocuments(text, &sh.e.budget) {
		for _, key := range [...]string{"bootcmd", "runcmd"} {
			for _, k := range n.get(key).kidsOrNone() {
				src := *sh.src
				src.text, src.at = text, -1
				sh.startNode(&src, v, k)
			}
		}
	}
}

// operationMarks are what a text of such a language holds for sure; a member of a tool
// call that is only named like one holds something else.
var operationMarks = map[string][]string{"manifest": {"kind:", `"kind"`, "spec:", `"spec"`, "metadata:", `"metadata"`, `"op"`, "roleRef"}, "playbook": {"hosts:", "tasks:", "- name:"}, "compose": {"services:", `"services"`}, "dockerfile": {"FROM ", "from "}}

// redirected judges the settings that are written by a redirection.
func redirected(sh *shell, file Word, f flow, v *invocation) {
	if f.known && f.word.Text != "" {
		sh.settings(file, f.word, v)
	}
}
