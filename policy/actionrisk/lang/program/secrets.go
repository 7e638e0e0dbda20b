package program

import (
	"slices"
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
		if t.Kind == tokens.Name && inlinePrints[t.Text] {
			r.printsVariable(i)
		}
		if t.Kind == tokens.String && i > 1 && r.toks[i-1].Kind == '/' {
			r.joinedPath(i)
		}
	}
	if v := r.sh.Carrier; v != nil && r.lang == "node" && len(r.toks) == 1 && (v.Has("-p") || v.Has("--print")) && secretRead(r.toks[0]) {
		r.shown(r.toks[0])
	}
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
	for j := i + 1; j < min(i+16, len(r.toks)); j++ {
		t := r.toks[j]
		environ := j > i+1 && r.toks[j-1].Kind != ',' && slices.ContainsFunc(r.toks[i+1:j], func(t tokens.Token) bool {
			return t.Kind == tokens.Name && strings.Contains(strings.ToLower(t.Text), "env")
		})
		switch {
		case secretRead(t) && r.plainEnd(j+1), (t.Kind == tokens.String || t.Kind == tokens.Name) && environ && hosts.SecretVariable(t.Text) && r.plainEnd(j+1):
			r.shown(t)
			return
		case t.Kind == tokens.Name && (inlinePasses[t.Text] || strings.HasPrefix(t.Text, "require") || t.Text == "os"):
		case t.Kind == tokens.String, strings.IndexByte("([{,.+:$%@", t.Kind) >= 0 && t.Kind != 0:
		default:
			return
		}
	}
}

// secretRead: process.env.NAME.
func secretRead(t tokens.Token) bool {
	name, ok := strings.CutPrefix(t.Text, "process.env.")
	return ok && t.Kind == tokens.Name && hosts.SecretVariable(name)
}

// plainEnd: what follows does not ask whether there is something.
func (r *inlineRun) plainEnd(j int) bool {
	for ; j < len(r.toks); j++ {
		switch t := r.toks[j]; {
		case t.Kind == ';' || t.Kind == '}' && r.lang != "perl":
			return true
		case strings.IndexByte("?=!<>&|", t.Kind) >= 0 && t.Kind != 0:
			return false
		case t.Kind == tokens.Name && (t.Text == "in" || t.Text == "if" || t.Text == "is" || t.Text == ".length" || t.Text == ".size" || t.Text == ".nil?" || t.Text == ".empty?" || t.Text == ".present?"):
			return false
		}
	}
	return true
}

// shown reports a credential that is printed.
func (r *inlineRun) shown(t tokens.Token) {
	r.sh.Env.See(act.ShowsSecret, r.src, t.From, t.To, act.Printable(t.Text))
}

// joinedPath reads the file of a path that is written as home / "x" / "y".
func (r *inlineRun) joinedPath(i int) {
	if i+1 < len(r.toks) && r.toks[i+1].Kind == '/' {
		return // the last part does it
	}
	path, j := r.toks[i].Text, i
	for ; j > 2 && r.toks[j-1].Kind == '/' && r.toks[j-2].Kind == tokens.String; j -= 2 {
		path = r.toks[j-2].Text + "/" + path
	}
	reads := slices.ContainsFunc(r.toks, func(t tokens.Token) bool {
		return t.Kind == tokens.Name && (strings.HasSuffix(t.Text, "read_text") || strings.HasSuffix(t.Text, "read_bytes") || t.Text == "open" || strings.HasSuffix(t.Text, ".open"))
	})
	home := slices.ContainsFunc(r.toks[:j], func(t tokens.Token) bool {
		return t.Kind == tokens.Name && strings.Contains(strings.ToLower(t.Text), "home")
	})
	if home {
		path = "~/" + path
	}
	if reads {
		t := r.toks[i]
		t.Text, t.Exact = path, false
		r.read(tokens.Token{Kind: tokens.Name, Text: "open", From: t.From, To: t.To}, []tokens.Token{t})
	}
}
