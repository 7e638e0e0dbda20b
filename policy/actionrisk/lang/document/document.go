// Package document is the front-end for texts that describe a desired state: Kubernetes manifests,
// compose files, Dockerfiles, Ansible playbooks, Salt states.
package document

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// The readers of this package turn a description of a desired state into resources that the rule
// tables match, or into the commands that would have the same effect.

// Read judges a text in one of the languages of readers. v is the call that gets the text. The
// result is always the empty flow.
func Read(outer *interp.Process, src *act.Source, lang string, v *act.Invocation) act.Flow {
	if sh := outer.Reading(src); sh.Describes(src) && readers[lang] != nil {
		readers[lang](sh, src, v)
	}
	return act.Flow{}
}

// readers maps the name of a language to the function that judges a text in it.
var readers = map[string]func(*interp.Process, *act.Source, *act.Invocation){
	"manifest": manifests, "compose": composeFile, "dockerfile": buildFile, "kubeconfig": clientConfig, "playbook": playbook, "resource": moduleWords,
	"jinja": lookups, "commands": commandList, "console": console, "sls": states, "apibody": apiBody,
	"awsconfig": func(sh *interp.Process, src *act.Source, v *act.Invocation) {
		settings(sh, act.Word{Text: ".aws/config"}, act.Word{Text: src.Text, At: -1, Span: src.Span, Taint: src.Taint}, v)
	},
}

// commandList runs the commands that a cloud passes to its machines: commands=["a","b"],
// {"commands":["a"]}, plain lines, or a cloud-config document.
func commandList(sh *interp.Process, src *act.Source, v *act.Invocation) {
	text := src.Text
	for _, key := range [...]string{"startup-script=", "commands=", "command=", "script="} {
		if _, behind, ok := strings.Cut(text, key); ok {
			text = behind
			break
		}
	}
	shift := len(src.Text) - len(text)
	if v.Exe == "gcloud" && shift == 0 {
		return // metadata without a start script
	}
	inner := *src
	inner.Text, inner.At = text, -1
	inner.Span, _ = src.Where(shift, len(src.Text))
	run := sh.Behalf(&inner, "commands")
	run.Remote, run.Cwd = true, ""
	at := &act.Invocation{Exe: v.Exe, Src: run.Src, To: len(text), Stdin: act.Flow{Known: true}}
	if f, ok := sh.Env.Files[sh.Env.Key(sh.Cwd, strings.TrimPrefix(strings.TrimPrefix(text, "file://"), "@"))]; ok && f.Known {
		text = f.Word.Text
	}
	interpret := func(text string) {
		run.Interpret("shell", act.Word{Text: text, At: -1, Span: inner.Span, Taint: src.Taint}, at, "commands", nil)
	}
	switch {
	case strings.HasPrefix(text, "#cloud-config"):
		cloudConfig(run, text, at)
	case scan.HasAnyPrefix(text, "[", "{"):
		for _, n := range tree.YAML(text, &sh.Env.Budget) {
			interpret(listedCommands(n))
		}
	default:
		interpret(text)
	}
}

// listedCommands returns the commands of a list, one per line. In an object it takes the first
// member with a name such as "commands" or "script".
func listedCommands(n *tree.Node) string {
	if list := search(n, []string{"commands", "scripts", "commandToExecute", "command", "script", "text"}, 0); list != nil {
		n = list
	}
	var lines []string
	for _, k := range n.Kids {
		lines = append(lines, k.Text)
	}
	if n.Text != "" {
		lines = append(lines, n.Text)
	}
	return strings.Join(lines, "\n")
}

// search returns the first member, at any depth, that has one of the names, or nil.
func search(n *tree.Node, names []string, depth int) *tree.Node {
	if n == nil || depth > scan.MaxJSONDepth {
		return nil
	}
	if found := n.Get(names...); found != nil {
		return found
	}
	for _, k := range n.Kids {
		if found := search(k, names, depth+1); found != nil {
			return found
		}
	}
	return nil
}

// settings runs the commands in a settings file of the AWS or Kubernetes client: the program that
// the client starts to get credentials, and the pager.
func settings(sh *interp.Process, file, text act.Word, v *act.Invocation) {
	switch {
	case scan.HasAnySuffix(file.Text, ".aws/config", ".aws/credentials"):
		for line := range strings.Lines(text.Text) {
			if name, value, ok := strings.Cut(line, "="); ok && (strings.TrimSpace(name) == "credential_process" || strings.TrimSpace(name) == "cli_pager") {
				one := text
				one.Text, one.At = strings.TrimSpace(value), -1
				sh.Interpret("shell", one, v, "credential_process", nil)
			}
		}
	case strings.HasSuffix(file.Text, ".kube/config"):
		sh.Interpret("kubeconfig", text, v, "kubeconfig", nil)
	}
}

// console judges the input of ansible-console. Each line is a module with its arguments, or a
// shell command.
func console(sh *interp.Process, src *act.Source, v *act.Invocation) {
	inner := sh.Behalf(src, v.Exe)
	inner.Remote = true
	for line := range strings.Lines(src.Text) {
		module, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if module == "" || module == "cd" || module == "exit" || !sh.Env.Budget.Spend(2) {
			continue
		}
		if len(sh.Env.Resources.Get(facts.KindOf(module))) == 0 {
			module, args = "shell", strings.TrimSpace(line)
		}
		r := &facts.Resource{Kind: module}
		assigned(r, act.Word{Text: strings.TrimPrefix(args, "!"), At: -1, Span: inner.Src.Span, Taint: src.Taint})
		inner.Describe(r, v)
	}
}

// apiBody judges the body of a request to the API of a Kubernetes cluster, a container daemon or a
// Jenkins server. The path of the request decides how the body is read.
func apiBody(sh *interp.Process, src *act.Source, v *act.Invocation) {
	for _, w := range v.Argv[1:] {
		_, _, path, _ := hosts.Split(w.Text)
		switch {
		case strings.Contains(path, "/apis/") || strings.Contains(path, "/api/v1/namespaces") || strings.Contains(path, "/api/v1/nodes"):
			manifests(sh, src, v)
		case strings.Contains(path, "/containers/") && strings.Contains(path, "create") || strings.HasSuffix(path, "/exec"):
			for _, n := range tree.YAML(src.Text, &sh.Env.Budget) {
				Container(sh, src, n, v)
			}
		case strings.HasSuffix(path, "/scriptText") || strings.HasSuffix(path, "/script"):
			sh.Read("strings", src, nil)
		}
	}
}

// cloudConfig runs the commands of a cloud-config document, which a new machine runs at its first
// boot.
func cloudConfig(sh *interp.Process, text string, v *act.Invocation) {
	for _, n := range tree.YAML(text, &sh.Env.Budget) {
		for _, key := range [...]string{"bootcmd", "runcmd"} {
			for _, k := range n.Get(key).KidsOrNone() {
				src := *sh.Src
				src.Text, src.At = text, -1
				sh.StartNode(&src, v, k)
			}
		}
	}
}

// Redirected judges text that a redirection writes into the settings file of a client.
func Redirected(sh *interp.Process, file act.Word, f act.Flow, v *act.Invocation) {
	if f.Known && f.Word.Text != "" {
		settings(sh, file, f.Word, v)
	}
}
