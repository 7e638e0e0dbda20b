package actionrisk

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/countersign/countersign/policy/actionrisk/lang/document"
	"github.com/countersign/countersign/policy/actionrisk/lang/minor"
	"github.com/countersign/countersign/policy/actionrisk/lang/payment"
	"github.com/countersign/countersign/policy/actionrisk/lang/posix"
	"github.com/countersign/countersign/policy/actionrisk/lang/program"
	"github.com/countersign/countersign/policy/actionrisk/lang/store"
	"github.com/countersign/countersign/policy/actionrisk/lang/toolcall"
	"github.com/countersign/countersign/policy/actionrisk/lang/windows"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// frontends returns the list of front-ends, and the rules of a rule set. Front-ends call each
// other only through this list: a new language is a package with a Reader and a line here.
func frontends(set *facts.Set) (*interp.Frontends, *judge.Bench) {
	rules := judge.NewBench(set, interp.Predicates{Test: payment.Predicates},
		interp.Predicates{Test: toolcall.Predicates}, interp.Predicates{Test: windows.Predicates, Groups: true})
	return &interp.Frontends{
		Match: rules.Match, Adjust: judge.Adjust,
		Languages: languages(), Run: posix.Call, Shell: posix.Interpret, Script: posix.Script, Money: payment.Rules,
		Takes: []func(*interp.Process, *act.Invocation) (act.Flow, bool){windows.Takes},
		Calls: []func(*interp.Process, *act.Invocation) bool{payment.Call, windows.Program, toolcall.PatchFiles, store.Wire,
			store.Migrations, toolcall.RequestBodies, toolcall.OtherRequests},
		Starts:     []func(*interp.Process, *facts.Wrapper, *act.Invocation){store.StartFiles},
		Carriers:   map[string]func(*interp.Process, *act.Invocation, int){"function": document.FunctionWords, "edited": document.EditedBy},
		Unknown:    map[string]func(*interp.Process, act.Flow, *act.Invocation){"manifest": document.Applied, "sql": store.Restored, "mongo": store.Restored, "redis": store.Restored},
		Written:    []func(*interp.Process, act.Word, act.Flow){toolcall.WroteConfig, posix.Configures, store.WritesStartFile},
		Redirected: []func(*interp.Process, act.Word, act.Flow, *act.Invocation){store.WireFile, document.Redirected},
		Nodes:      map[string]func(*interp.Process, *act.Source, *tree.Node, *act.Invocation){"manifest": document.Manifest, "container": document.Container},
	}, rules
}

// languages returns the readers of each language. If a language has several, all of them add
// findings. A language without an entry is read as a program text.
func languages() map[string][]interp.Reader {
	out := map[string][]interp.Reader{
		"sql": {store.ReadSQL}, "mongo": {store.ReadMongo, program.ReadOnly}, "redis": {store.ReadRedis}, "wire": {store.ReadWire}, "orm": {store.ReadORM},
		"body": {toolcall.ReadBody}, "rpc": {toolcall.ReadRPC}, "calls": {payment.ReadCalls},
		"powershell": {windows.Read}, "cmd": {windows.Read},
		"node": {program.Read, payment.ReadCalls, store.ReadORM}, "python": {program.Read, payment.ReadCalls, store.ReadORM}, "program": {program.Read, store.ReadORM},
		"only": {program.ReadOnly}, "whole": {program.ReadWhole},
		"other": {minor.Read, store.ReadORM, store.ReadQuoted}, "strings": {minor.ReadStrings},
		"any": {routeAny},
	}
	for _, lang := range [...]string{"manifest", "compose", "dockerfile", "kubeconfig", "playbook", "resource", "jinja", "commands", "console", "apibody", "sls", "awsconfig"} {
		out[lang] = []interp.Reader{document.Read}
	}
	for _, lang := range [...]string{"puppet", "chef", "hcl"} {
		out[lang] = []interp.Reader{program.ReadRecipe}
	}
	for _, lang := range oddLanguages {
		out[lang] = []interp.Reader{minor.Read, store.ReadORM}
	}
	return out
}

// oddLanguages are languages in which the engine reads only the commands that a text runs.
var oddLanguages = [...]string{"vim", "bang", "applescript", "elisp", "sed", "m4", "nft", "make", "just", "cmake", "settings", "lines", "scripts", "functions", "xml", "generate", "percent", "tex", "braces", "fzf", "socat", "zargs"}

// routeAny reads a text whose language is not stated.
func routeAny(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	route(sh.Env, src)
	return act.Flow{}
}
