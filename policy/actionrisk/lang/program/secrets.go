package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// What program texts show of credentials: a variable by its name that is printed as it
// is, a file whose path is put together with an operator.

// showsSecrets looks for both.
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

// prints: the whole text is one word, whose value node -p prints.
func (r *inlineRun) prints() bool {
	v := r.sh.Carrier
	return v != nil && r.lang == "node" && len(r.toks) == 1 && (v.Has("-p") || v.Has("--print"))
}

// inlinePrints are the functions that print; inlinePasses are those that only change
// how a value is written.
var (
	inlinePrints = scan.SetOf("print puts p pp echo printf say console.log console.error console.info process.stdout.write sys.stdout.write sys.stderr.write STDOUT.puts $stdout.puts $stdout.print $stderr.puts io.write write print_r var_dump var_export warn die")
	inlinePasses = scan.SetOf("JSON.dump JSON.generate JSON.pretty_generate json.dumps JSON.stringify json_encode str String repr dict ENV ENV.to_h.slice ENV.slice ENV.fetch ENV.values_at ENV.to_h os.environ os.environ.get os.getenv getenv environ.get environ env $ENV $_ENV $_SERVER ENVIRON os.env process.env base64.b64encode Base64.encode64 btoa base64_encode Buffer.from bin2hex .encode .decode .dump")
)

// printsVariable: what a print is given is a credential of the environment and nothing
// that hides it, as its length or whether it is there.
func (r *inlineRun) printsVariable(i int) {
	environ := false // something of it is before
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

// passesOn: what stands here gives what it is given, or begins so.
func passesOn(t tokens.Token) bool {
	if t.Kind == tokens.Name {
		return inlinePasses.Has(t.Text) || strings.HasPrefix(t.Text, "require") || t.Text == "os"
	}
	return strings.IndexByte("s([{,.+:$%@", t.Kind) >= 0
}

// secretRead: process.env.NAME.
func secretRead(t tokens.Token) bool {
	name, ok := strings.CutPrefix(t.Text, "process.env.")
	return ok && t.Kind == tokens.Name && hosts.SecretVariable(name)
}

// plainEnd: what follows does not ask whether there is something.
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

// askingNames ask whether there is something, or how much of it.
var askingNames = scan.SetOf("in if is .length .size .nil? .empty? .present?")

// shown reports a credential that is printed.
func (r *inlineRun) shown(t tokens.Token) {
	r.sh.Env.See(act.ShowsSecret, r.src, t.From, t.To, act.Printable(t.Text))
}
