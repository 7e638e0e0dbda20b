package actionrisk

import "sync"

// reader reads a text of one of its languages that a process sh hands on; v is the
// call that hands it over, or nil. What it gives is what the text prints.
type reader func(sh *shell, src *source, lang string, v *invocation) flow

// frontends are the ways into everything that reads a language. They know each other
// by this list only.
type frontends struct {
	languages map[string][]reader // by name; "program" reads what nobody else does
	shell     func(sh *shell, src *source, v *invocation, via string, params []Word) flow
	script    func(sh *shell, src *source, in flow) flow
	match     func(e *engine, it *item) bool // reports the rules that hold
	adjust    func(e *engine, r *Rule, it *item) (Level, []Adjustment)
}

// fronts is the list of front-ends.
var fronts = sync.OnceValue(func() *frontends {
	rules, err := newBench(ruleset(), predicates{test: sqlPredicates}, predicates{test: moneyPredicates}, predicates{test: windowsPredicates, groups: true})
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	f := &frontends{match: rules.match, adjust: (*engine).adjust, shell: interpretShell, script: (*shell).script, languages: map[string][]reader{
		"sql": {runSQL}, "mongo": {runMongo, readOnly}, "redis": {runRedis}, "body": {readBody}, "wire": {readWire},
		"orm": {readORM}, "calls": {readCalls}, "strings": {readStrings},
		"powershell": {runWindows}, "cmd": {runWindows},
		"any":     {routeAny},
		"node":    {readProgram, readCalls, readORM},
		"python":  {readProgram, readCalls, readORM},
		"other":   {runOddLanguage, readORM, readQuoted},
		"program": {readProgram, readORM},
		"only":    {readOnly},
		"whole":   {readWhole},
	}}
	for _, lang := range [...]string{"manifest", "compose", "dockerfile", "kubeconfig", "playbook", "resource", "puppet", "chef", "jinja", "hcl", "commands", "console", "apibody", "sls", "awsconfig"} {
		f.languages[lang] = []reader{runOperations}
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
