package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Files that name commands which somebody else runs later: settings of coding
// agents and editors, and jobs of a build service. What is written into them is
// looked through, whoever writes it.

// wroteConfig judges what the command writes into such a file.
func wroteConfig(sh *shell, name Word, f flow) {
	e := sh.e
	if !f.known || f.word.Text == "" || len(f.word.Text) > scan.MaxDecoded || sh.src.depth >= scan.MaxDepth {
		return
	}
	file := strings.ToLower(name.Text)
	switch {
	case strings.HasPrefix(scan.Base(file), ".env"):
		e.variablesFile(sh, f.word)
	case file == "package.json" || strings.HasSuffix(file, "/package.json"):
		e.installScripts(sh, f.word)
	case strings.HasSuffix(file, ".json") && hasWord(toolWords(file), spendWords):
		e.paymentSettings(sh, file, f.word)
	case strings.HasSuffix(file, ".json") || strings.HasSuffix(file, ".toml"):
		if slices.ContainsFunc(e.groups["agent-settings"], func(s string) bool { return strings.HasSuffix(file, s) }) {
			e.agentSettings(sh, f.word)
		}
	case strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml"):
		if strings.Contains(file, ".github/workflows/") || strings.Contains(file, ".gitlab-ci") || strings.Contains(file, ".circleci/") || strings.Contains(file, "pipelines") {
			e.buildJob(sh, f.word)
		}
	}
}

// variablesFile: variables that programs read from a file of them.
func (e *engine) variablesFile(sh *shell, text Word) {
	src := sh.src.inside(text, ".env")
	e.eachLine(src.text, "\n", func(from, to int) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(src.text[from:to]), "export "), "=")
		if ok && opensPayments(name, strings.Trim(value, `"' `)) {
			e.raise("x402.policy-off", &src, from, to, printable(name))
		}
	})
}

// paymentSettings: a file that says what a wallet may spend.
func (e *engine) paymentSettings(sh *shell, file string, text Word) {
	src := sh.src.inside(text, "settings")
	if root, _ := parseJSON(strings.TrimSpace(src.text)); root != nil && e.budget.spend(len(src.text)/4) && opensPolicy(file, "write", root) {
		e.raise("x402.policy-off", &src, 0, len(src.text), printable(file))
	}
}

// agentSettings: servers and hooks run by themselves; some settings take away the
// questions that an agent asks first.
func (e *engine) agentSettings(sh *shell, text Word) {
	src := sh.src.inside(text, "settings")
	if !e.budget.spend(len(src.text) / 4) {
		return
	}
	for _, w := range e.groups["agent-unguarded"] {
		if strings.Contains(strings.ReplaceAll(src.text, " ", ""), w) {
			e.raise("priv.hardening-off", &src, 0, len(src.text), printable(w))
			break
		}
	}
	fragment := strings.HasPrefix(strings.TrimSpace(src.text), `"`)
	if src.text = strings.TrimSpace(src.text); fragment { // the part of an object that an edit puts in
		src.text, src.at = "{"+src.text+"}", -1
	}
	if root, _ := parseJSON(src.text); root != nil {
		w := jsonWalk{e: e, src: &src}
		w.node(root, "")
		if fragment {
			w.fragment(root)
		}
	}
}

// fragment judges members whose parent an edit leaves as it was: a server by its
// name alone.
func (w *jsonWalk) fragment(root *jsonNode) {
	for i, k := range root.kids {
		if k.kind == '{' && k.get("command") != nil && k.get("args") != nil {
			w.servers(&jsonNode{kind: '{', keys: root.keys[i : i+1], kids: []*jsonNode{k}, start: k.start, end: k.end})
		}
	}
}

// installHooks are the scripts that the package managers of Node run by themselves.
var installHooks = scan.SetOf("preinstall install postinstall prepare preprepare postprepare prepublish")

// installScripts: what a package runs by itself when it is installed.
func (e *engine) installScripts(sh *shell, text Word) {
	src := sh.src.inside(text, "package.json")
	root, _ := parseJSON(strings.TrimSpace(src.text))
	scripts := root.get("scripts")
	if scripts == nil {
		return
	}
	for i, k := range scripts.kids {
		if name := scripts.keysAt(i); installHooks[name] && k.kind == '"' && e.budget.spend(8) {
			e.carried(sh, &src, 0, len(src.text), k.text, name)
		}
	}
}

// buildJob: a job that sends all secrets of the build service away.
func (e *engine) buildJob(sh *shell, text Word) {
	src := sh.src.inside(text, "build job")
	e.eachLine(src.text, "\n", func(from, to int) {
		line := strings.ReplaceAll(src.text[from:to], " ", "")
		whole := strings.Contains(line, "toJSON(secrets)") || strings.Contains(line, "toJson(secrets)") || strings.Contains(line, "printenv|") || strings.Contains(line, "env|base64") || strings.Contains(line, "env|curl")
		if whole && slices.ContainsFunc(e.groups["netclients"], func(c string) bool { return strings.Contains(src.text[from:to], c+" ") }) {
			e.raise("secret.exfil-network", &src, from, to, "")
		}
	})
}
