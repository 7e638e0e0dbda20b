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

// frontends is the list of front-ends, with the rules of a set of tables.
func frontends(set *facts.Set) (*interp.Frontends, error) {
	rules, err := judge.NewBench(set, interp.Predicates{Test: store.SqlPredicates}, interp.Predicates{Test: payment.MoneyPredicates}, interp.Predicates{Test: toolcall.ToolPredicates}, interp.Predicates{Test: windows.WindowsPredicates, Groups: true})
	if err != nil {
		return nil, err
	}
	f := &interp.Frontends{Match: rules.Match, Adjust: judge.Adjust, Money: payment.ClientRules, Shell: posix.InterpretShell, Run: posix.RunCall, Script: posix.RunScript, Languages: map[string][]interp.Reader{
		"sql": {store.RunSQL}, "mongo": {store.RunMongo, program.ReadOnly}, "redis": {store.RunRedis}, "body": {toolcall.ReadBody}, "wire": {store.ReadWire},
		"rpc": {toolcall.ReadRPC}, "orm": {store.ReadORM}, "calls": {payment.ReadCalls}, "strings": {minor.ReadStrings},
		"powershell": {windows.RunWindows}, "cmd": {windows.RunWindows},
		"any":     {routeAny},
		"node":    {program.ReadProgram, payment.ReadCalls, store.ReadORM},
		"python":  {program.ReadProgram, payment.ReadCalls, store.ReadORM},
		"other":   {minor.RunOddLanguage, store.ReadORM, store.ReadQuoted},
		"program": {program.ReadProgram, store.ReadORM},
		"only":    {program.ReadOnly},
		"whole":   {program.ReadWhole},
	}}
	f.Takes = []func(*interp.Process, *act.Invocation) (act.Flow, bool){windows.TakenCmdlet}
	f.Calls = []func(*interp.Process, *act.Invocation) bool{payment.ClientCall, windows.Program, toolcall.PatchFiles, store.Wire, store.Migrations, toolcall.RequestBodies, toolcall.OtherRequests}
	f.Starts = []func(*interp.Process, *facts.Wrapper, *act.Invocation){store.StartFiles}
	f.Carriers = map[string]func(*interp.Process, *act.Invocation, int){"function": document.FunctionWords, "edited": document.EditedBy}
	f.Unknown = map[string]func(*interp.Process, act.Flow, *act.Invocation){"manifest": document.AppliedManifest, "sql": store.Restored, "mongo": store.Restored, "redis": store.Restored}
	f.Written = []func(*interp.Process, act.Word, act.Flow){toolcall.WroteConfig, posix.Configures, store.WritesStartFile}
	f.Redirected = []func(*interp.Process, act.Word, act.Flow, *act.Invocation){store.WireFile, document.Redirected}
	f.Nodes = map[string]func(*interp.Process, *act.Source, *tree.Node, *act.Invocation){"manifest": document.ManifestObject, "container": document.ContainerObject}
	for _, lang := range [...]string{"manifest", "compose", "dockerfile", "kubeconfig", "playbook", "resource", "jinja", "commands", "console", "apibody", "sls", "awsconfig"} {
		f.Languages[lang] = []interp.Reader{document.RunOperations}
	}
	for _, lang := range [...]string{"puppet", "chef", "hcl"} {
		f.Languages[lang] = []interp.Reader{program.RunRecipe}
	}
	for _, lang := range oddLanguages {
		f.Languages[lang] = []interp.Reader{minor.RunOddLanguage, store.ReadORM}
	}
	return f, nil
}

// oddLanguages are those that run commands, and of which nothing else is read.
var oddLanguages = [...]string{"vim", "bang", "applescript", "elisp", "sed", "m4", "nft", "make", "just", "cmake", "settings", "lines", "scripts", "functions", "xml", "generate", "percent", "tex", "braces", "fzf", "socat", "zargs"}

// routeAny reads a text whose language nobody says.
func routeAny(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	route(sh.Env, src)
	return act.Flow{}
}
