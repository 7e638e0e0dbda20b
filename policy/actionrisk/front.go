package actionrisk

import "sync"

// reader reads a text of one of its languages that a process sh hands on; v is the
// call that hands it over, or nil. What it gives is what the text prints.
type reader func(sh *shell, src *source, lang string, v *invocation) flow

// frontends are the ways into everything that reads a language. They know each other
// by this list only.
type frontends struct {
	languages  map[string][]reader // by name; "program" reads what nobody else does
	shell      func(sh *shell, src *source, v *invocation, via string, params []Word) flow
	script     func(sh *shell, src *source, in flow) flow
	takes      []func(sh *shell, v *invocation) (flow, bool)                       // the call is another language's
	calls      []func(sh *shell, v *invocation) bool                               // what a call means beside the rows; true if a rule holds
	starts     []func(sh *shell, w *wrapper, v *invocation)                        // what a program runs when it starts
	carriers   map[string]func(sh *shell, v *invocation, skip int)                 // what is no text but the words from skip on
	unknown    map[string]func(sh *shell, in flow, v *invocation)                  // a text of the language that is not known
	written    []func(sh *shell, file Word, f flow)                                // a file is written
	redirected []func(sh *shell, file Word, f flow, v *invocation)                 // by a redirection
	nodes      map[string]func(sh *shell, src *source, n *jsonNode, v *invocation) // an object that stands for something
	money      func(e *engine, v *invocation) []string                             // rules of a call of a wallet or payment client
	run        func(sh *shell, v *invocation) flow                                 // one call of a program
	match      func(e *engine, it *item) bool                                      // reports the rules that hold
	adjust     func(e *engine, r *Rule, it *item) (Level, []Adjustment)
}

// fronts is the list of front-ends.
var fronts = sync.OnceValue(func() *frontends {
	rules, err := newBench(ruleset(), predicates{test: sqlPredicates}, predicates{test: moneyPredicates}, predicates{test: toolPredicates}, predicates{test: windowsPredicates, groups: true})
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	f := &frontends{match: rules.match, adjust: adjust, money: clientRules, shell: interpretShell, run: runCall, script: runScript, languages: map[string][]reader{
		"sql": {runSQL}, "mongo": {runMongo, readOnly}, "redis": {runRedis}, "body": {readBody}, "wire": {readWire},
		"rpc": {readRPC}, "orm": {readORM}, "calls": {readCalls}, "strings": {readStrings},
		"powershell": {runWindows}, "cmd": {runWindows},
		"any":     {routeAny},
		"node":    {readProgram, readCalls, readORM},
		"python":  {readProgram, readCalls, readORM},
		"other":   {runOddLanguage, readORM, readQuoted},
		"program": {readProgram, readORM},
		"only":    {readOnly},
		"whole":   {readWhole},
	}}
	f.takes = []func(*shell, *invocation) (flow, bool){takenCmdlet}
	f.calls = []func(*shell, *invocation) bool{clientCall, program, patchFiles, wire, migrations, requestBodies, otherRequests}
	f.starts = []func(*shell, *wrapper, *invocation){startFiles}
	f.carriers = map[string]func(*shell, *invocation, int){"function": functionWords, "edited": editedBy}
	f.unknown = map[string]func(*shell, flow, *invocation){"manifest": appliedManifest, "sql": restored, "mongo": restored, "redis": restored}
	f.written = []func(*shell, Word, flow){wroteConfig, configures, writesStartFile}
	f.redirected = []func(*shell, Word, flow, *invocation){wireFile, redirected}
	f.nodes = map[string]func(*shell, *source, *jsonNode, *invocation){"manifest": manifestObject, "container": containerObject}
	for _, lang := range [...]string{"manifest", "compose", "dockerfile", "kubeconfig", "playbook", "resource", "jinja", "commands", "console", "apibody", "sls", "awsconfig"} {
		f.languages[lang] = []reader{runOperations}
	}
	for _, lang := range [...]string{"puppet", "chef", "hcl"} {
		f.languages[lang] = []reader{runRecipe}
	}
	for _, lang := range oddLanguages {
		f.languages[lang] = []reader{runOddLanguage, readORM}
	}
	return f
})

// oddLanguages are those that run commands, and of which nothing else is read.
var oddLanguages = [...]string{"vim", "bang", "applescript", "elisp", "sed", "m4", "nft", "make", "just", "cmake", "settings", "lines", "scripts", "functions", "xml", "generate", "percent", "tex", "braces", "fzf", "socat", "zargs"}

// routeAny reads a text whose language nobody says.
func routeAny(sh *shell, src *source, _ string, _ *invocation) flow {
	sh.e.route(src)
	return flow{}
}
