package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// Requests that a program text sends: what the method says decides, as for the
// clients of the command line.

// httpLibraries are names by which a text is known to send requests.
var httpLibraries = []string{"requests", "httpx", "aiohttp", "urllib", "http.client", "axios", "got", "ky", "superagent", "undici", "fetch", "$http", "Net::HTTP", "HTTParty", "RestClient", "Faraday", "HTTP::Tiny", "LWP", "Guzzle", "Http::", "curl_", "http.request", "https.request", "HttpClient", "XMLHttpRequest"}

// requestCalls take the method as an argument.
var requestCalls = scan.SetOf("request Request fetch axios ajax open curl_setopt curl_setopt_array send_request urlopen do_request NewRequest requestAsync")

// bodyCalls send a body that is in their arguments.
var bodyCalls = scan.SetOf("post put patch request fetch axios send Post urlopen Request postForm post_form postJson")

// bodyKeys are members and named arguments that hold the body itself.
var bodyKeys = scan.SetOf("data body json content payload form")

// bodies judges the statements in what a call sends: a member called query, a body
// that is one.
func (r *inlineRun) bodies(args []tokens.Token) {
	key := ""
	for i, t := range args {
		text := t.Kind == tokens.String
		switch {
		case text && !r.isKey(args, i) && (stores.QueryKeys.Has(key) || bodyKeys.Has(key) || i > 0 && args[i-1].Text == "JSON.stringify"):
			r.readAs("body", t, nil)
			key = ""
		case text || t.Kind == tokens.Name || r.isKey(args, i):
			key = strings.ToLower(strings.Trim(t.Text, ".:"))
		case t.Kind == ',':
			key = ""
		}
	}
}

// isKey: the token at i is the name of a member: name: x, name => x.
func (r *inlineRun) isKey(args []tokens.Token, i int) bool {
	if i+1 == len(args) {
		return false
	}
	next := args[i+1]
	return next.Kind == ':' || next.Kind == '=' && next.To < len(r.src.Text) && r.src.Text[next.To] == '>'
}

// sends judges a call that sends a request with DELETE, and tells whether it was one.
func (r *inlineRun) sends(name tokens.Token, args []tokens.Token) bool {
	last := name.Text[strings.LastIndexAny(name.Text, ".:>")+1:]
	list := r.strings(args)
	if bodyCalls.Has(last) && r.usesHTTP() {
		r.bodies(args)
	}
	switch {
	case strings.Contains(name.Text, "HTTP::Delete") && len(list) > 0:
		r.sendDelete(list[0])
	case deleteCalls.Has(last):
		if len(list) == 0 || !addressLike(list[0].Text) || !r.usesHTTP() {
			return false
		}
		r.sendDelete(list[0])
	case requestCalls.Has(last) && r.saysDelete(args) && r.usesHTTP() && r.sh.Env.Budget.Spend(1+len(r.toks)/8):
		all := append(list, r.toks...)
		all = append(all, tokens.Token{Kind: tokens.String, Text: "https://" + string(scan.Hole), From: name.From, To: name.To})
		r.sendDelete(all[slices.IndexFunc(all, func(t tokens.Token) bool { return t.Kind == tokens.String && addressLike(t.Text) })])
	default:
		return false
	}
	return true
}

// deleteCalls send a request with DELETE to the address that they are given.
var deleteCalls = scan.SetOf("delete Delete deleteAsync DeleteAsync")

// addressLike: a URL, a path, or something not known.
func addressLike(t string) bool {
	return strings.HasPrefix(t, "http") || strings.HasPrefix(t, "/") || strings.HasPrefix(t, string(scan.Hole))
}

// saysDelete: the method DELETE is an argument of its own, or what a member called
// method is set to.
func (r *inlineRun) saysDelete(args []tokens.Token) bool {
	for i, t := range args {
		if t.Kind != tokens.String || !strings.EqualFold(t.Text, "delete") {
			continue
		}
		if t.Text == "DELETE" && (i == 0 || args[i-1].Kind == ',') {
			return true
		}
		for j := max(0, i-4); j < i; j++ {
			switch strings.ToLower(strings.Trim(args[j].Text, ".:'\"")) {
			case "method", "verb", "curlopt_customrequest", "http_method":
				return true
			case "type": // of jQuery; elsewhere it is what a record is about
				return t.Text == "DELETE"
			}
		}
	}
	return false
}

func (r *inlineRun) usesHTTP() bool {
	for _, n := range httpLibraries {
		if strings.Contains(r.src.Text, n) {
			return true
		}
	}
	return false
}

// sendDelete judges the request as curl's; a path alone is of the host that the
// text names elsewhere.
func (r *inlineRun) sendDelete(t tokens.Token) {
	address := t.Text
	if strings.HasPrefix(address, "/") {
		for _, other := range r.toks {
			if other.Kind == tokens.String && other.Text != "" {
				if host, ok := hosts.LooksHost(other.Text); ok {
					address = "https://" + host + t.Text
					break
				}
			}
		}
	}
	src := r.src.Inside(r.word(t), r.lang)
	if src.Depth <= scan.MaxDepth {
		r.sh.Env.RunRequest(&src, interp.Request{Method: "DELETE", Address: address})
	}
}
