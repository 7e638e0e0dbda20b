package payment

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// serviceRules adds the rule ids for a request of an HTTP client to a payment service. It also
// judges a wallet's JSON-RPC request in the body.
func serviceRules(e *interp.Env, v *act.Invocation, ids *amounts.RuleList) {
	method := hosts.Method(v)
	if method == "GET" || method == "HEAD" || method == "OPTIONS" {
		return
	}
	body := requestBody(e, v)
	for _, part := range body {
		if strings.Contains(part, "method") {
			e.Read("rpc", &act.Source{Text: part}, v)
		}
	}
	for i := 1; i < len(v.Argv); i++ {
		w := v.Argv[i].Text
		if _, host, _, ok := hosts.Split(w); !ok && !strings.HasPrefix(w, "api") || ok && hosts.LocalHost(host) {
			continue
		}
		ids.AddAll(e.ServiceCall(method, w, strings.Join(body, " "), act.ArgvText(v)))
	}
}

// requestBody returns the known parts of the body that an HTTP client sends: values of options,
// files and standard input.
func requestBody(e *interp.Env, v *act.Invocation) []string {
	var out []string
	for i := range v.Opts {
		o := &v.Opts[i]
		if !o.Given || !slices.Contains(hosts.BodyOptions, o.Name) {
			continue
		}
		if file, ok := strings.CutPrefix(o.Value.Text, "@"); ok {
			f := v.Stdin
			if file != "-" {
				f = e.Files[e.Key(v.Cwd, file)]
			}
			if f.Known {
				out = append(out, f.Word.Text)
			}
		}
		out = append(out, o.Value.Text)
	}
	if e.In("httpies", v.Exe) {
		out = append(out, fieldsBody(v)...)
	}
	return out
}

// fieldsBody returns the body that httpie builds from its NAME=VALUE operands, and its standard
// input.
func fieldsBody(v *act.Invocation) (out []string) {
	var fields []string
	for _, w := range v.Operands {
		if name, value, ok := strings.Cut(w.Text, "="); ok && !strings.Contains(name, "/") {
			fields = append(fields, `"`+strings.TrimSuffix(name, ":")+`":`+facts.QuoteJSON(value))
		}
	}
	if len(fields) > 0 {
		out = append(out, "{"+strings.Join(fields, ",")+"}")
	}
	if v.Stdin.Known && v.Stdin.Word.Text != "" {
		out = append(out, v.Stdin.Word.Text)
	}
	return out
}
