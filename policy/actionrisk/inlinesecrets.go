package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// What program texts show of credentials: a variable by its name that is printed as it
// is, a file whose path is put together with an operator.

// showsSecrets looks for both.
func (r *inlineRun) showsSecrets() {
	for i, t := range r.toks {
		if !r.sh.e.budget.spend(1) {
			return
		}
		if t.kind == 'i' && inlinePrints[t.text] {
			r.printsVariable(i)
		}
		if t.kind == 's' && i > 1 && r.toks[i-1].kind == '/' {
			r.joinedPath(i)
		}
	}
	if v := r.sh.carrier; v != nil && r.lang == "node" && len(r.toks) == 1 && (v.has("-p") || v.has("--print")) && secretRead(r.toks[0]) {
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
		environ := j > i+1 && r.toks[j-1].kind != ',' && slices.ContainsFunc(r.toks[i+1:j], func(t inlineToken) bool {
			return t.kind == 'i' && strings.Contains(strings.ToLower(t.text), "env")
		})
		switch {
		case secretRead(t) && r.plainEnd(j+1), (t.kind == 's' || t.kind == 'i') && environ && secretVariable(t.text) && r.plainEnd(j+1):
			r.shown(t)
			return
		case t.kind == 'i' && (inlinePasses[t.text] || strings.HasPrefix(t.text, "require") || t.text == "os"):
		case t.kind == 's', strings.IndexByte("([{,.+:$%@", t.kind) >= 0 && t.kind != 0:
		default:
			return
		}
	}
}

// secretRead: process.env.NAME.
func secretRead(t inlineToken) bool {
	name, ok := strings.CutPrefix(t.text, "process.env.")
	return ok && t.kind == 'i' && secretVariable(name)
}

func secretVariable(name string) bool {
	return syntaxName(name) && name == strings.ToUpper(name) && secretName(name)
}

// plainEnd: what follows does not ask whether there is something.
func (r *inlineRun) plainEnd(j int) bool {
	for ; j < len(r.toks); j++ {
		switch t := r.toks[j]; {
		case t.kind == ';' || t.kind == '}' && r.lang != "perl":
			return true
		case strings.IndexByte("?=!<>&|", t.kind) >= 0 && t.kind != 0:
			return false
		case t.kind == 'i' && (t.text == "in" || t.text == "if" || t.text == "is" || t.text == ".length" || t.text == ".size" || t.text == ".nil?" || t.text == ".empty?" || t.text == ".present?"):
			return false
		}
	}
	return true
}

// shown reports a credential that is printed.
func (r *inlineRun) shown(t inlineToken) {
	r.sh.e.raise("secret.print-named", r.src, t.from, t.to, printable(t.text))
}

// joinedPath reads the file of a path that is written as home / "x" / "y".
func (r *inlineRun) joinedPath(i int) {
	if i+1 < len(r.toks) && r.toks[i+1].kind == '/' {
		return // the last part does it
	}
	path, j := r.toks[i].text, i
	for ; j > 2 && r.toks[j-1].kind == '/' && r.toks[j-2].kind == 's'; j -= 2 {
		path = r.toks[j-2].text + "/" + path
	}
	reads := slices.ContainsFunc(r.toks, func(t inlineToken) bool {
		return t.kind == 'i' && (strings.HasSuffix(t.text, "read_text") || strings.HasSuffix(t.text, "read_bytes") || t.text == "open" || strings.HasSuffix(t.text, ".open"))
	})
	home := slices.ContainsFunc(r.toks[:j], func(t inlineToken) bool { return t.kind == 'i' && strings.Contains(strings.ToLower(t.text), "home") })
	if home {
		path = "~/" + path
	}
	if reads {
		t := r.toks[i]
		t.text, t.exact = path, false
		r.read(inlineToken{kind: 'i', text: "open", from: t.from, to: t.to}, []inlineToken{t})
	}
}
