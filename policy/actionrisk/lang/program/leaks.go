package program

import (
	"cmp"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// This file finds requests that send an environment variable with the name of a secret in the
// address or the body. In a header it is normal authentication.

// requestNames lists the last parts of names of functions that send a request.
var requestNames = scan.SetOf("urlopen urlretrieve get post put patch request fetch axios open Request getprint getstore head send getJSON get_response post_form file_get_contents curl_init sendBeacon openStream GET POST LWP::Simple::get getText")

// sendingNames lists the last parts of names of methods that send data or resolve a host name.
var sendingNames = scan.SetOf("end write send lookup resolve resolve4 resolveTxt emit publish")

// leaks reports a request that sends a secret from the environment to a host that does not belong
// to the service of this secret.
func (r *inlineRun) leaks() {
	if !scan.HasAny(r.src.Text, "://", "Connection(", "host:", "hostname:", "onnect(", "lookup(", "resolve(") || !scan.HasAny(r.src.Text, "env", "ENV", "getenv") || !r.sh.Env.Budget.Spend(len(r.toks)/2) {
		return
	}
	held := r.heldSecrets()
	for i, t := range r.toks {
		if last := t.Text[strings.LastIndexAny(t.Text, ".:>")+1:]; t.Kind != tokens.Name || !requestNames.Has(last) && !(r.lang == "node" && sendingNames.Has(last) && !scan.HasAny(t.Text, "std", "fs.", "console")) {
			continue
		}
		var args []tokens.Token
		switch r.at(i, 1).Kind {
		case '(':
			args = r.toks[i+2 : max(closing(r.toks, i+1), i+2)]
		case tokens.String: // the call has no brackets
			args = r.toks[i+1 : max(r.statement(i), i+1)]
		}
		if name, to := r.carried(args, held); name != "" && !hosts.Named(name, to) {
			r.sh.Env.See(act.SendsSecret, r.src, t.From, t.To, act.Printable(name))
			return
		}
	}
}

// carried returns the name of the secret in the arguments of a request, outside the headers, and
// the host that receives the request. It returns "" for local hosts and chat services.
func (r *inlineRun) carried(args []tokens.Token, held map[string]string) (name, to string) {
	inHeaders, depth := false, 0
	for i, t := range args {
		switch t.Kind {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth <= 0 {
				inHeaders = false
			}
		case tokens.Name, tokens.String:
			inHeaders = headerPart(t.Text, inHeaders)
			if _, host, _, ok := hosts.Split(t.Text); ok && t.Kind == tokens.String {
				to = cmp.Or(to, host)
			}
		}
		if secret := r.secretAt(args, i, held); !inHeaders {
			name = cmp.Or(name, secret)
		}
	}
	if to == "" && (r.mentions("Connection") || r.lang == "node") {
		to = r.connectsTo()
	}
	if to == "" || hosts.LocalHost(to) || scan.HasAny(to, "telegram", "slack", "discord") {
		return "", ""
	}
	return name, to
}

// headerPart reports whether the arguments after this name belong to the headers of the request.
// before is the answer for the arguments before it.
func headerPart(name string, before bool) bool {
	switch low := strings.ToLower(strings.Trim(name, ".:'\"")); low {
	case "headers", "auth", "authorization":
		return true
	case "body", "data", "json", "params":
		return false
	default:
		return before || strings.HasPrefix(low, "x-")
	}
}

// connectsTo returns the first host among the strings of the program text, or "".
func (r *inlineRun) connectsTo() string {
	for _, t := range r.toks {
		if host, ok := hosts.LooksHost(strings.TrimLeft(t.Text, ".")); ok && t.Kind == tokens.String {
			return host
		}
		if _, host, _, ok := hosts.Split(t.Text); ok && t.Kind == tokens.String {
			return host
		}
	}
	return ""
}

// secretAt returns the name of the secret that token i reads from the environment or from a
// variable in held, or "".
func (r *inlineRun) secretAt(toks []tokens.Token, i int, held map[string]string) string {
	t := toks[i]
	switch {
	case t.Kind == tokens.Name && secretRead(t):
		return strings.TrimPrefix(t.Text, "process.env.")
	case t.Kind == tokens.Name && held[strings.TrimLeft(t.Text, "$@")] != "":
		return held[strings.TrimLeft(t.Text, "$@")]
	case t.Kind == tokens.String && i > 1 && hosts.SecretVariable(t.Text), t.Kind == tokens.Name && i > 1 && hosts.SecretVariable(t.Text):
		for j := i - 1; j >= max(0, i-4); j-- { // for example os.environ["X"], getenv("X"), ENV.fetch("X"), $ENV{X}
			if toks[j].Kind == tokens.Name && strings.Contains(strings.ToLower(toks[j].Text), "env") {
				return t.Text
			}
		}
	case t.Kind == tokens.String:
		return interpolated(t, held)
	}
	return ""
}

// interpolated returns the name of the secret that an expression inside a string reads, or "".
func interpolated(t tokens.Token, held map[string]string) string {
	for _, text := range append([]string{t.Text}, t.Holes...) {
		for _, begin := range [...]string{"environ[", "environ.get(", "getenv(", "process.env.", "ENV[", "ENV{", "ENV.fetch(", "env.get("} {
			_, rest, ok := strings.Cut(text, begin)
			if !ok {
				continue
			}
			rest = strings.TrimLeft(rest, `'"`)
			if name := rest[:nameEnd(rest)]; hosts.SecretVariable(name) {
				return name
			}
		}
		if name := held[strings.TrimLeft(text, "$@")]; name != "" {
			return name
		}
	}
	return ""
}

func nameEnd(text string) int {
	n := 0
	for n < len(text) && scan.IsNameByte(text[n]) {
		n++
	}
	return n
}

// heldSecrets maps the variables of the program text that contain a secret from the environment to
// the name of the secret.
func (r *inlineRun) heldSecrets() map[string]string {
	held := map[string]string{}
	for i := range r.toks {
		name, body := r.madeAt(i)
		for j := range body {
			if secret := r.secretAt(body, j, held); secret != "" && len(held) < scan.MaxFiles {
				held[name] = secret
			}
		}
	}
	return held
}
