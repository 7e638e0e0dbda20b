package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Program texts that move money: calls of wallets and payment services, and keys
// that are shown. Contract functions are found by runCalls; here stands what has
// other names, and what a text computes before it calls it.

// codeTable is the part of clients.json about program texts.
type codeTable struct {
	Sends   []string `json:"sends"`   // functions that sign or send a transaction
	Keys    []string `json:"keys"`    // members that are a wallet's key
	Wallets []string `json:"wallets"` // names by which a text says that it is about wallets
	Fresh   []string `json:"fresh"`   // what makes a key that nothing belongs to yet
	Prints  []string `json:"prints"`  // functions that show or send their arguments
	Pays    []string `json:"pays"`    // clients that pay what a server asks for

	send, key, wallet, print, pay map[string]bool
}

func (t *codeTable) index() {
	set := func(list []string) map[string]bool { return scan.SetOf(strings.Join(list, " ")) }
	t.send, t.key, t.wallet, t.print, t.pay = set(t.Sends), set(t.Keys), set(t.Wallets), set(t.Prints), set(t.Pays)
}

// lastName is what stands behind the last dot or colon of a name.
func lastName(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

// money judges one call. Its name may be computed; then runCalls has not seen it.
func (r *inlineRun) money(name inlineToken, args []inlineToken, computed bool) {
	name, args = direct(name, args)
	e, last := r.sh.e, lastName(name.text)
	t := &e.clients.Code
	var ids ruleList
	switch {
	case t.send[last]:
		ids.add("wallet.contract-run")
		if strings.HasSuffix(last, "uthorization") {
			ids.add("wallet.ownership")
		}
	case t.pay[last]:
		r.paying(args, &ids)
	case computed && contractVerbs[last]:
		call := contractCall{receiver: name.text[:len(name.text)-len(last)], name: last, args: r.argTexts(args)}
		ids.addAll(call.rules(r.src.text))
	}
	if rule := r.walletMethod(last); rule != "" && len(ids) == 0 {
		ids.add(rule)
	}
	if t.print[last] && r.showsKey(args) {
		ids.add("wallet.key-export")
	}
	if len(ids) == 0 {
		r.service(name.text, name.from, last, args, &ids)
	}
	if len(ids) > 0 {
		e.money(r.src, name.from, name.to, last, ids...)
	}
}

// argTexts are the arguments as the text writes them.
func (r *inlineRun) argTexts(args []inlineToken) []string {
	if len(args) == 0 {
		return nil
	}
	from, to := args[0].from, args[len(args)-1].to
	if args[0].kind == 's' && from > 0 {
		from--
	}
	var out []string
	for rest := r.src.text[min(from, len(r.src.text)):min(to+1, len(r.src.text))]; strings.TrimSpace(rest) != "" && len(out) < 32; {
		var a string
		a, rest = splitArg(rest)
		out = append(out, strings.TrimSpace(a))
	}
	return out
}

// showsKey: a member that is a wallet's key stands among what is shown, and the
// key was not made a moment ago.
func (r *inlineRun) showsKey(args []inlineToken) bool {
	t := &r.sh.e.clients.Code
	key := false
	for i, a := range args {
		if a.kind == '[' && i > 0 { // by a name that is put together: wallet["private"+"Key"]
			key = key || t.key[r.join(args[i+1:min(closing(args, i, '[', ']'), len(args))]).text]
		}
		if a.kind != 'i' {
			continue
		}
		last := lastName(strings.TrimRight(a.text, ".!"))
		member := strings.Contains(a.text, ".") && slices.ContainsFunc(strings.Split(a.text, "."), func(part string) bool { return t.key[part] })
		key = key || member || strings.HasSuffix(a.text, ".key.hex") || strings.HasSuffix(a.text, ".key.to_0x_hex") || last == "decrypt" && strings.HasPrefix(a.text, "Account") || last == "extract_key_from_keyfile"
	}
	if !key {
		return false
	}
	low := strings.ToLower(r.src.text)
	if slices.ContainsFunc(t.Fresh, func(w string) bool { return strings.Contains(low, w) }) {
		return false
	}
	return slices.ContainsFunc(t.Wallets, func(w string) bool { return strings.Contains(low, w) })
}

// paying judges a client that pays by itself by the limit it is given; the
// library's own is ten cents.
func (r *inlineRun) paying(args []inlineToken, ids *ruleList) {
	a := amount{asset: assetOf("usdc"), value: ratOf("0.1")}
	for _, text := range r.argTexts(args) {
		low := strings.ToLower(text)
		if strings.Contains(low, "max_safe") || strings.Contains(low, "infinity") || strings.Contains(low, "maxsize") || strings.Contains(low, `"inf"`) || isUnlimitedWord(text) {
			ids.add("x402.no-limit")
			return
		}
		number := low
		if i := strings.LastIndexAny(low, "(=:"); i >= 0 {
			number = strings.Trim(low[i+1:], `() "'`)
		}
		if n := parseNumber(strings.TrimSpace(number)); n != nil {
			a.value = scaled(n, a.asset.Decimals)
		}
	}
	ids.add(a.payRule(false))
	if r.repeats() {
		ids.add("x402.loop")
	}
}

// repeats: the text does something many times.
func (r *inlineRun) repeats() bool {
	for i, t := range r.toks {
		if t.kind != 'i' {
			continue
		}
		switch lastName(t.text) {
		case "while", "setInterval", "loop", "repeat":
			return true
		case "range", "Array", "times", "xrange":
			for _, a := range r.toks[i+1 : min(i+6, len(r.toks))] {
				if n := parseNumber(a.text); a.kind == 'i' && n != nil && n.Cmp(ratOf("20")) >= 0 {
					return true
				}
			}
		}
	}
	return false
}

// service judges calls of a payment service's library, and requests to one.
func (r *inlineRun) service(name string, at int, last string, args []inlineToken, ids *ruleList) {
	e := r.sh.e
	if method := requestMethod(name, last, r.src.text); method != "" && len(args) > 0 {
		if list := r.strings(args); len(list) > 0 && strings.Contains(list[0].text, "://") {
			text := strings.Join(r.argTexts(args), " ")
			ids.addAll(e.serviceCall(method, list[0].text, text, r.src.text))
		}
		return
	}
	if r.lang == "php" {
		name = arrowName(r.src.text, at, name)
	}
	if !strings.ContainsAny(name, ".:>") || !r.usesService() {
		return
	}
	class := serviceClass(name)
	if strings.Contains(strings.ToLower(name), "intent") && strings.HasSuffix(name, "create") && slices.ContainsFunc(args, func(t inlineToken) bool { return t.text == "confirm" }) {
		class = "money"
	}
	switch class {
	case "money":
		ids.add("wallet.service-move")
	case "destructive":
		ids.add("cloud.service.delete")
	}
}

// arrowName is a name with what stands before it in "$a->b->c".
func arrowName(text string, at int, name string) string {
	i := min(at, len(text))
	for i > 1 && (scan.IsNameByte(text[i-1]) || text[i-1] == '$' || text[i-1] == '>' && text[i-2] == '-' || text[i-1] == '-' && i < len(text) && text[i] == '>') {
		i--
	}
	return text[i:min(at, len(text))] + name
}

// requestMethod is the HTTP method of a call that sends a request, else "".
func requestMethod(name, last, text string) string {
	switch last {
	case "post", "put", "patch", "post_form", "postForm":
		return strings.ToUpper(last[:min(5, len(last))])
	case "curl_init":
		if strings.Contains(text, "CURLOPT_POST") {
			return "POST"
		}
	case "fetch", "request", "urlopen", "Request", "axios", "got":
		if strings.Contains(text, "POST") || strings.Contains(text, "post") || strings.Contains(text, "data=") {
			return "POST"
		}
	}
	return ""
}

// usesService: the text names a payment service's library, and nothing of its
// test mode.
func (r *inlineRun) usesService() bool {
	t := &r.sh.e.clients.Services
	if r.billing == 0 {
		r.billing = 1
		for _, tok := range r.toks {
			if tok.kind != 'i' && tok.kind != 's' {
				continue
			}
			first, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(tok.text, "::", ".")), ".")
			if t.sdk[first] || tok.kind == 's' && (strings.HasPrefix(first, "@") || strings.Contains(first, "-")) && slices.ContainsFunc(toolWords(first), func(w string) bool { return t.sdk[w] }) {
				r.billing = 2
			}
		}
		joined := strings.NewReplacer(`'+'`, "", `"+"`, "", `' + '`, "", `" + "`, "").Replace(r.src.text)
		if len(joined) < len(r.src.text) && slices.ContainsFunc(t.SDKs, func(s string) bool {
			return strings.Contains(joined, "'"+s+"'") || strings.Contains(joined, `"`+s+`"`)
		}) {
			r.billing = 2 // a name that is put together
		}
		if t.isTest(r.src.text) {
			r.billing = 1
		}
	}
	return r.billing == 2
}

// wallets looks for requests to a wallet by the name of their method.
func (r *inlineRun) wallets() {
	e := r.sh.e
	var shown [][2]int
	looked := false
	for i, t := range r.toks {
		if t.kind == 's' && i+2 < len(r.toks) && r.toks[i+1].kind != ',' && r.toks[i+2].kind == 's' && len(t.text) <= 40 { // 'eth_send' + 'Transaction'
			t.text = r.join(r.toks[i:min(i+6, len(r.toks))]).text
		}
		if t.kind != 's' || len(t.text) > 40 || e.clients.method[t.text] == "" || strings.IndexByte(t.text, '_') < 1 && !r.namesMethod(i) {
			continue
		}
		if !looked {
			shown, looked = r.output(), true
		}
		if slices.ContainsFunc(shown, func(s [2]int) bool { return i > s[0] && i < s[1] }) {
			continue
		}
		switch rule := e.clients.method[t.text]; rule {
		case "transaction", "bitcoin":
			e.money(r.src, t.from, t.to, t.text, "wallet.transfer")
		case "typed":
			e.money(r.src, t.from, t.to, t.text, "wallet.blind-sign")
		default:
			e.money(r.src, t.from, t.to, t.text, rule)
		}
	}
}
