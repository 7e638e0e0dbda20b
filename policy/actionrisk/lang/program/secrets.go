package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// This file finds program texts that print a credential from the environment.

// showsSecrets reports credentials from the environment that the program text prints.
func (r *inlineRun) showsSecrets() {
	for i, t := range r.toks {
		if !r.sh.Env.Budget.Spend(1) {
			return
		}
		if t.Kind == tokens.Name && inlinePrints.Has(t.Text) {
			r.printsVariable(i)
		}
	}
	if r.prints() && secretRead(r.toks[0]) {
		r.shown(r.toks[0])
	}
}

// prints reports whether the program text is a single expression whose value node -p prints.
func (r *inlineRun) prints() bool {
	v := r.sh.Carrier
	return v != nil && r.lang == "node" && len(r.toks) == 1 && (v.Has("-p") || v.Has("--print"))
}

// inlinePrints lists functions that print. inlinePasses lists functions and objects that return a
// value unchanged or in another encoding.
var (
	inlinePrints = scan.SetOf("print puts p pp echo printf say console.log console.error console.info process.stdout.write sys.stdout.write sys.stderr.write STDOUT.puts $stdout.puts $stdout.print $stderr.puts io.write write print_r var_dump var_export warn die")
	inlinePasses = scan.SetOf("JSON.dump JSON.generate JSON.pretty_generate json.dumps JSON.stringify json_encode str String repr dict ENV ENV.to_h.slice ENV.slice ENV.fetch ENV.values_at ENV.to_h os.environ os.environ.get os.getenv getenv environ.get environ env $ENV $_ENV $_SERVER ENVIRON os.env process.env base64.b64encode Base64.encode64 btoa base64_encode Buffer.from bin2hex .encode .decode .dump")
)

// printsVariable reports a printed credential from the environment. It does not report a value
// that hides the credential, such as its length or whether it exists. Token i is the function that
// prints.
func (r *inlineRun) printsVariable(i int) {
	environ := false // a name with "env" was seen
	for j := i + 1; j < min(i+16, len(r.toks)); j++ {
		t := r.toks[j]
		named := environ && r.toks[j-1].Kind != ',' && (t.Kind == tokens.String || t.Kind == tokens.Name) && hosts.SecretVariable(t.Text)
		if (named || secretRead(t)) && r.plainEnd(j+1) {
			r.shown(t)
			return
		}
		if !passesOn(t) {
			return
		}
		environ = environ || t.Kind == tokens.Name && strings.Contains(strings.ToLower(t.Text), "env")
	}
}

// passesOn reports whether the token can be between the function that prints and the credential
// without hiding the credential.
func passesOn(t tokens.Token) bool {
	if t.Kind == tokens.Name {
		return inlinePasses.Has(t.Text) || strings.HasPrefix(t.Text, "require") || t.Text == "os"
	}
	return strings.IndexByte("s([{,.+:$%@", t.Kind) >= 0
}

// secretRead reports whether the token is process.env.NAME with the name of a secret.
func secretRead(t tokens.Token) bool {
	name, ok := strings.CutPrefix(t.Text, "process.env.")
	return ok && t.Kind == tokens.Name && hosts.SecretVariable(name)
}

// plainEnd reports whether the rest of the statement contains no test or comparison, so that the
// value itself is printed.
func (r *inlineRun) plainEnd(j int) bool {
	for _, t := range r.toks[min(j, len(r.toks)):] {
		switch {
		case t.Kind == ';' || t.Kind == '}' && r.lang != "perl":
			return true
		case strings.IndexByte("?=!<>&|", t.Kind) >= 0, t.Kind == tokens.Name && askingNames.Has(t.Text):
			return false
		}
	}
	return true
}

// askingNames lists names that test whether a value exists, or return its length.
var askingNames = scan.SetOf("in if is .length .size .nil? .empty? .present?")

// shown reports a printed credential.
func (r *inlineRun) shown(t tokens.Token) {
	r.sh.Env.See(act.ShowsSecret, r.src, t.From, t.To, act.Printable(t.Text))
}
