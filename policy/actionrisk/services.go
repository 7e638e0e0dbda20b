package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Payment services: what a request to their interfaces does is read from the
// method and the words of its path, as a tool's name is. Their test modes move
// nothing.

// serviceTable is the part of clients.json about payment services.
type serviceTable struct {
	Hosts  []string `json:"hosts"`  // where they answer, but for their sandboxes
	SDKs   []string `json:"sdks"`   // what program texts call their libraries
	Test   []string `json:"test"`   // words that say that nothing real is moved
	Drafts []string `json:"drafts"` // what is only prepared, with no money moved yet
	Moves  []string `json:"moves"`  // path words that move money wherever they stand

	sdk, draft, move map[string]bool
}

func (t *serviceTable) index() {
	t.sdk, t.draft, t.move = scan.SetOf(strings.Join(t.SDKs, " ")), scan.SetOf(strings.Join(t.Drafts, " ")), scan.SetOf(strings.Join(t.Moves, " "))
}

// isTest: a key, a host or a setting of a service's test mode stands in the text.
func (t *serviceTable) isTest(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(t.Test, func(w string) bool { return strings.Contains(text, w) })
}

// isHost: the host is one of a payment service, and none of its sandboxes.
func (t *serviceTable) isHost(host string) bool {
	for _, h := range t.Hosts {
		if host == h || strings.HasSuffix(host, h) && host[len(host)-len(h)-1] == '.' {
			return !strings.Contains(host, "sandbox") && !strings.Contains(host, "-test.") && !strings.HasPrefix(host, "test.") && !strings.Contains(host, "paper")
		}
	}
	return false
}

// serviceClass is toolClass with an eye for what is only prepared: the last word
// that names something decides.
func serviceClass(words string) string {
	t, class, last := verbs(), toolClass(words), ""
	for i, w := range toolWords(words) {
		if strings.Trim(w, "0123456789") == w && len(w) > 2 {
			last = w
		}
		if i > 0 && class == "write" && t.class[w] == "money" {
			class = "money"
		}
	}
	switch {
	case class == "money" && t.class[last] == "read":
		return "read"
	case class == "money" && preparedOnly(words):
		return "write"
	}
	return class
}

// preparedOnly: what a name says is made moves nothing yet: a link, a session, a
// draft. The last word that names something tells, unless the verb is one of money.
func preparedOnly(words string) bool {
	t, last, first := verbs(), "", ""
	for _, w := range toolWords(words) {
		if strings.Trim(w, "0123456789") == w && len(w) > 2 {
			last = w
		}
		if first == "" && t.class[w] != "" {
			first = w
		}
	}
	return ruleset().clients.Services.draft[last] && !carriesOut[first] && t.class[first] != "money" || last == "create" && draftNamed(words)
}

// carriesOut are verbs that finish what was prepared.
var carriesOut = scan.SetOf("finalize confirm capture submit approve execute release complete process")

// draftNamed: "payment_links create", "checkout.sessions.create".
func draftNamed(words string) bool {
	list := toolWords(words)
	if len(list) < 2 {
		return false
	}
	before := list[len(list)-2]
	return ruleset().clients.Services.draft[before] || before == "intent" || before == "intents"
}

// serviceRules judges a request of an HTTP client: a wallet's JSON-RPC in its
// body, or a call of a payment service.
func (e *engine) serviceRules(v *invocation, ids *ruleList) {
	method := httpMethod(v)
	if method == "GET" || method == "HEAD" || method == "OPTIONS" {
		return
	}
	body := e.requestBody(v)
	for _, part := range body {
		if strings.Contains(part, "method") {
			e.read("rpc", &source{text: part}, v)
		}
	}
	for i := 1; i < len(v.argv); i++ {
		w := v.argv[i].Text
		if _, host, _, ok := urlOf(w); !ok && !strings.HasPrefix(w, "api") || ok && localHost(host) {
			continue
		}
		ids.addAll(e.serviceCall(method, w, strings.Join(body, " "), argvText(v)))
	}
}

// serviceCall are the rule ids of one request; all is every word about it.
func (e *engine) serviceCall(method, url, body, all string) []string {
	t := &e.clients.Services
	_, host, rest, ok := urlOf(url)
	if !ok {
		_, host, rest, _ = urlOf("https://" + url)
	}
	if method == "DELETE" || !e.budget.spend(len(url)/8+len(all)/64) || t.isTest(all) {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "?")
	known := t.isHost(host)
	class := serviceClass(strings.ToLower(method) + " " + rest)
	if known && strings.HasSuffix(strings.TrimRight(rest, "/"), "graphql") {
		class = toolClass(mutationField(body))
	}
	switch {
	case known && class == "destructive":
		return []string{"cloud.service.delete"}
	case known && (class == "money" || strings.Contains(rest, "intents") && confirms(rest, body)):
		return []string{"wallet.service-move"}
	case !known && class == "money" && strings.Contains(strings.ToLower(body), "amount") && movesByPath(t, rest) && !developmentHost(host):
		return []string{"wallet.service-move"}
	}
	return nil
}

// confirms: an intent to pay is carried out.
func confirms(rest, body string) bool {
	return strings.HasSuffix(rest, "/confirm") || strings.HasSuffix(rest, "/capture") || strings.Contains(body, "confirm=true") || strings.Contains(strings.ReplaceAll(body, " ", ""), `"confirm":true`)
}

// movesByPath: the path names a move of money on a host that nobody knows.
func movesByPath(t *serviceTable, rest string) bool {
	return slices.ContainsFunc(toolWords(rest), func(w string) bool { return t.move[w] })
}

func developmentHost(host string) bool {
	_, dev := environments(host)
	return dev || strings.Contains(host, "staging") || strings.Contains(host, "sandbox")
}

// mutationField is the first field of a GraphQL mutation.
func mutationField(text string) string {
	if list := mutationFields(text); len(list) > 0 {
		return list[0]
	}
	return ""
}

// mutationFields are the fields of a GraphQL mutation, without their other names.
func mutationFields(text string) []string {
	_, rest, ok := strings.Cut(text, "mutation")
	if !ok {
		return nil
	}
	open := strings.IndexByte(rest, '{')
	if open < 0 {
		return nil
	}
	rest = strings.NewReplacer(`\n`, "  ", `\r`, "  ", `\t`, "  ").Replace(rest[open+1:])
	var out []string
	depth := 0
	for i := 0; i < len(rest) && len(out) < 32; i++ {
		switch c := rest[i]; {
		case c == '(' || c == '{' || c == '[':
			depth++
		case c == ')' || c == '}' || c == ']':
			if depth--; depth < 0 {
				return out
			}
		case depth == 0 && scan.IsNameByte(c):
			j := i
			for j < len(rest) && scan.IsNameByte(rest[j]) {
				j++
			}
			if next := strings.TrimLeft(rest[j:], " \n\t"); !strings.HasPrefix(next, ":") {
				out = append(out, rest[i:j])
			}
			i = j - 1
		}
	}
	return out
}

// requestBody is what an HTTP client sends, as far as it is known.
func (e *engine) requestBody(v *invocation) []string {
	var out []string
	for i := range v.opts {
		if o := &v.opts[i]; o.given && slices.Contains(bodyOptions, o.name) {
			if file, ok := strings.CutPrefix(o.value.Text, "@"); ok {
				f := v.stdin
				if file != "-" {
					f = e.files[paths.FileKey(v.cwd, file)]
				}
				if f.known {
					out = append(out, f.word.Text)
				}
			}
			out = append(out, o.value.Text)
		}
	}
	switch v.exe {
	case "http", "https", "xh", "xhs", "httpie":
		var fields []string
		for _, w := range v.operands {
			name, value, ok := strings.Cut(w.Text, "=")
			if ok && !strings.Contains(name, "/") {
				fields = append(fields, `"`+strings.TrimSuffix(name, ":")+`":`+quoteJSON(value))
			}
		}
		if len(fields) > 0 {
			out = append(out, "{"+strings.Join(fields, ",")+"}")
		}
		if v.stdin.known && v.stdin.word.Text != "" {
			out = append(out, v.stdin.word.Text)
		}
	}
	return out
}

// quoteJSON is a value of httpie as JSON: itself if it is some already.
func quoteJSON(value string) string {
	if root, strict := parseJSON(value); root != nil && strict {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}
