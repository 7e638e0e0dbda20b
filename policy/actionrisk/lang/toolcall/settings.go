package toolcall

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// This file judges the commands that are written into files which another program reads later:
// settings of coding agents and editors, package.json, and jobs of a build service. It does not
// matter which tool writes them.

// WroteConfig judges text that the command writes into a file which another program reads later.
func WroteConfig(sh *interp.Process, name act.Word, f act.Flow) {
	if !f.Known || f.Word.Text == "" || len(f.Word.Text) > scan.MaxDecoded || sh.Src.Depth >= scan.MaxDepth {
		return
	}
	e, file := sh.Env, strings.ToLower(name.Text)
	switch base := scan.Base(file); {
	case strings.HasPrefix(base, ".env"):
		variablesFile(e, sh, f.Word)
	case base == "package.json":
		installScripts(e, sh, f.Word)
	case strings.HasSuffix(file, ".json") && facts.Says(facts.ToolWords(file), "spending"):
		paymentSettings(e, sh, file, f.Word)
	case scan.HasAnySuffix(file, e.Groups.Get("agent-settings")...):
		agentSettings(e, sh, f.Word)
	case isBuildJob(file):
		buildJob(e, sh, f.Word)
	}
}

// isBuildJob reports whether the file contains jobs of a build service.
func isBuildJob(file string) bool {
	return (strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml")) &&
		scan.HasAny(file, ".github/workflows/", ".gitlab-ci", ".circleci/", "pipelines")
}

// variablesFile reports variables in a .env file that remove payment limits.
func variablesFile(e *interp.Env, sh *interp.Process, text act.Word) {
	src := sh.Src.Inside(text, ".env")
	e.EachLine(src.Text, "\n", func(from, to int) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(src.Text[from:to]), "export "), "=")
		if ok && amounts.OpensPayments(name, strings.Trim(value, `"' `)) {
			e.See(act.DropsLimits, &src, from, to, act.Printable(name))
		}
	})
}

// paymentSettings reports a settings file that removes the spending limit of a wallet.
func paymentSettings(e *interp.Env, sh *interp.Process, file string, text act.Word) {
	src := sh.Src.Inside(text, "settings")
	if root, _ := tree.JSON(strings.TrimSpace(src.Text)); root != nil && e.Budget.Spend(len(src.Text)/4) && opensPolicy(file, "write", root) {
		e.See(act.DropsLimits, &src, 0, len(src.Text), act.Printable(file))
	}
}

// agentSettings judges the settings of a coding agent: the MCP servers and hooks that it starts
// automatically, and settings that switch off its requests for approval.
func agentSettings(e *interp.Env, sh *interp.Process, text act.Word) {
	src := sh.Src.Inside(text, "settings")
	if !e.Budget.Spend(len(src.Text) / 4) {
		return
	}
	for _, w := range e.Groups.Get("agent-unguarded") {
		if strings.Contains(strings.ReplaceAll(src.Text, " ", ""), w) {
			e.See(act.DropsProtection, &src, 0, len(src.Text), act.Printable(w))
			break
		}
	}
	fragment := strings.HasPrefix(strings.TrimSpace(src.Text), `"`)
	if src.Text = strings.TrimSpace(src.Text); fragment { // an edit inserts only some members of an object
		src.Text, src.At = "{"+src.Text+"}", -1
	}
	if root, _ := tree.JSON(src.Text); root != nil {
		w := jsonWalk{e: e, src: &src}
		w.node(root, "")
		if fragment {
			w.fragment(root)
		}
	}
}

// fragment judges members without their parent, which an edit leaves unchanged: an MCP server by
// its name alone.
func (w *jsonWalk) fragment(root *tree.Node) {
	for i, k := range root.Kids {
		if k.Kind == '{' && k.Get("command") != nil && k.Get("args") != nil {
			w.servers(&tree.Node{Kind: '{', Keys: root.Keys[i : i+1], Kids: []*tree.Node{k}, Start: k.Start, End: k.End})
		}
	}
}

// installHooks lists the scripts that Node package managers run automatically.
var installHooks = scan.SetOf("preinstall install postinstall prepare preprepare postprepare prepublish")

// installScripts judges the scripts that a package runs when it is installed.
func installScripts(e *interp.Env, sh *interp.Process, text act.Word) {
	src := sh.Src.Inside(text, "package.json")
	root, _ := tree.JSON(strings.TrimSpace(src.Text))
	scripts := root.Get("scripts")
	if scripts == nil {
		return
	}
	for i, k := range scripts.Kids {
		if name := scripts.KeysAt(i); installHooks.Has(name) && k.Kind == '"' && e.Budget.Spend(8) {
			sh.Reading(&src).Carried(0, len(src.Text), k.Text, name)
		}
	}
}

// buildJob reports a job that sends all secrets of the build service to another machine.
func buildJob(e *interp.Env, sh *interp.Process, text act.Word) {
	src := sh.Src.Inside(text, "build job")
	e.EachLine(src.Text, "\n", func(from, to int) {
		line := strings.ReplaceAll(src.Text[from:to], " ", "")
		whole := scan.HasAny(line, "toJSON(secrets)", "toJson(secrets)", "printenv|", "env|base64", "env|curl")
		if whole && slices.ContainsFunc(e.Groups.Get("netclients"), func(c string) bool { return strings.Contains(src.Text[from:to], c+" ") }) {
			e.See(act.SendsSecret, &src, from, to, "")
		}
	})
}
