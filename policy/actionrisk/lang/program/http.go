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

// This file judges the HTTP requests that a program text sends. The method decides, as for
// command-line clients.

// httpLibraries lists names that show that a program text sends HTTP requests.
var httpLibraries = []string{"requests", "httpx", "aiohttp", "urllib", "http.client", "axios", "got", "ky", "superagent", "undici", "fetch", "$http", "Net::HTTP", "HTTParty", "RestClient", "Faraday", "HTTP::Tiny", "LWP", "Guzzle", "Http::", "curl_", "http.request", "https.request", "HttpClient", "XMLHttpRequest"}

// requestCalls lists functions that take the HTTP method as an argument.
var requestCalls = scan.SetOf("request Request fetch axios ajax open curl_setopt curl_setopt_array send_request urlopen do_request NewRequest requestAsync")

// bodyCalls lists functions that take the request body as an argument.
var bodyCalls = scan.SetOf("post put patch request fetch axios send Post urlopen Request postForm post_form postJson")

// bodyKeys lists names of members and named arguments that contain the request body.
var bodyKeys = scan.SetOf("data body json content payload form")

// bodies judges the request bodies among the arguments, and the statements in members with a name
// such as "query".
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

// isKey reports whether token i is the name of a member: name: x, name => x.
func (r *inlineRun) isKey(args []tokens.Token, i int) bool {
	if i+1 == len(args) {
		return false
	}
	next := args[i+1]
	return next.Kind == ':' || next.Kind == '=' && next.To < len(r.src.Text) && r.src.Text[next.To] == '>'
}

// sends judges a call that sends a DELETE request, and reports whether the call is one. It also
// judges the request body of other calls.
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

// deleteCalls lists functions that send a DELETE request to their first argument.
var deleteCalls = scan.SetOf("delete Delete deleteAsync DeleteAsync")

// addressLike reports whether the text is a URL or a path, or begins with an unknown part.
func addressLike(t string) bool {
	return strings.HasPrefix(t, "http") || strings.HasPrefix(t, "/") || strings.HasPrefix(t, string(scan.Hole))
}

// saysDelete reports whether the method DELETE is an argument, or the value of a member with a
// name such as "method".
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
			case "type": // in jQuery this is the method; in other libraries it is the type of a record
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

// sendDelete judges a DELETE request like a call of curl. If the address is only a path, the host
// is the first one in the program text.
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
