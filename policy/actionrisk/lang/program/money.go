package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// money judges the effect of a call on money, keys and contracts. computed means that the name of
// the function was computed, so that payment.Calls, which reads the plain text, could not find the
// call.
func (r *inlineRun) money(name tokens.Token, args []tokens.Token, computed bool) {
	name, args = direct(name, args)
	e, last := r.sh.Env, lastName(name.Text)
	t := &e.Clients.Code
	var ids amounts.RuleList
	switch {
	case t.Send.Get(last):
		ids.Add(act.RunsContract)
		if strings.HasSuffix(last, "uthorization") {
			ids.Add(act.ChangesOwner)
		}
	case t.Pay.Get(last):
		r.paying(args, &ids)
	case computed && e.Calls.IsContractVerb(last):
		call := amounts.ContractCall{Receiver: name.Text[:len(name.Text)-len(last)], Name: last, Args: r.argTexts(args)}
		ids.AddAll(call.Rules(r.src.Text))
	}
	if rule := r.walletMethod(last); rule != "" && len(ids) == 0 {
		ids.Add(rule)
	}
	if t.Print.Get(last) && r.showsKey(args) {
		ids.Add(act.ExportsKey)
	}
	if len(ids) == 0 {
		r.service(name.Text, name.From, last, args, &ids)
	}
	if len(ids) > 0 {
		e.Money(r.src, name.From, name.To, last, ids...)
	}
}

// argTexts returns the source texts of the arguments, at most 32.
func (r *inlineRun) argTexts(args []tokens.Token) []string {
	if len(args) == 0 {
		return nil
	}
	from, to := args[0].From, args[len(args)-1].To
	if args[0].Kind == tokens.String && from > 0 {
		from--
	}
	var out []string
	for rest := r.src.Text[min(from, len(r.src.Text)):min(to+1, len(r.src.Text))]; strings.TrimSpace(rest) != "" && len(out) < 32; {
		var a string
		a, rest = stores.SplitArg(rest)
		out = append(out, strings.TrimSpace(a))
	}
	return out
}

// showsKey reports whether a printed argument is the key of a wallet, and the program text did not
// create the key itself.
func (r *inlineRun) showsKey(args []tokens.Token) bool {
	t, low := &r.sh.Env.Clients.Code, strings.ToLower(r.src.Text)
	for i, a := range args {
		named := a.Kind == tokens.Name && r.namesKey(a.Text)
		if a.Kind == '[' && i > 0 { // a name that is built from strings: wallet["private"+"Key"]
			named = t.Key.Get(r.join(args[i+1 : closing(args, i)]).Text)
		}
		if named {
			return !scan.HasAny(low, t.Fresh...) && scan.HasAny(low, t.Wallets...)
		}
	}
	return false
}

// namesKey reports whether the name contains a member that is the key of a wallet, or is a
// function that returns one.
func (r *inlineRun) namesKey(name string) bool {
	last := lastName(strings.TrimRight(name, ".!"))
	member := strings.Contains(name, ".") && slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return r.sh.Env.Clients.Code.Key.Get(part) })
	return member || strings.HasSuffix(name, ".key.hex") || strings.HasSuffix(name, ".key.to_0x_hex") || last == "decrypt" && strings.HasPrefix(name, "Account") || last == "extract_key_from_keyfile"
}

// paying adds the rules for a client that pays automatically, by the limit in its arguments.
// Without an argument the limit is the default of the library, 0.10 USDC.
func (r *inlineRun) paying(args []tokens.Token, ids *amounts.RuleList) {
	a := amounts.Amount{Asset: amounts.AssetOf("usdc"), Value: amounts.RatOf("0.1")}
	for _, text := range r.argTexts(args) {
		low := strings.ToLower(text)
		if strings.Contains(low, "max_safe") || strings.Contains(low, "infinity") || strings.Contains(low, "maxsize") || strings.Contains(low, `"inf"`) || amounts.IsUnlimitedWord(text) {
			ids.Add(act.PaysAny)
			return
		}
		number := low
		if i := strings.LastIndexAny(low, "(=:"); i >= 0 {
			number = strings.Trim(low[i+1:], `() "'`)
		}
		if n := amounts.ParseNumber(strings.TrimSpace(number)); n != nil {
			a.Value = amounts.Scaled(n, a.Asset.Decimals)
		}
	}
	ids.Add(a.PayRule(false))
	if r.repeats() {
		ids.Add(act.PaysAgain)
	}
}

// repeats reports whether the program text contains an unbounded loop, or a loop of 20 or more
// rounds.
func (r *inlineRun) repeats() bool {
	for i, t := range r.toks {
		if t.Kind != tokens.Name {
			continue
		}
		switch lastName(t.Text) {
		case "while", "setInterval", "loop", "repeat":
			return true
		case "range", "Array", "times", "xrange":
			for _, a := range r.toks[i+1 : min(i+6, len(r.toks))] {
				if n := amounts.ParseNumber(a.Text); a.Kind == tokens.Name && n != nil && n.Cmp(amounts.RatOf("20")) >= 0 {
					return true
				}
			}
		}
	}
	return false
}

// service adds the rules for a call of a payment service's library, or for a request to such a
// service.
func (r *inlineRun) service(name string, at int, last string, args []tokens.Token, ids *amounts.RuleList) {
	e := r.sh.Env
	if method := requestMethod(last, r.src.Text); method != "" && len(args) > 0 {
		if list := r.strings(args); len(list) > 0 && strings.Contains(list[0].Text, "://") {
			text := strings.Join(r.argTexts(args), " ")
			ids.AddAll(e.ServiceCall(method, list[0].Text, text, r.src.Text))
		}
		return
	}
	if r.lang == "php" {
		name = arrowName(r.src.Text, at, name)
	}
	if !strings.ContainsAny(name, ".:>") || !r.usesService() {
		return
	}
	switch class := facts.ServiceClass(name); {
	case class == "money" || confirms(name, args):
		ids.Add(act.ServiceMoves)
	case class == "destructive":
		ids.Add(act.DeletesAtService)
	}
}

// confirms reports whether a call creates a payment intent and confirms it at once.
func confirms(name string, args []tokens.Token) bool {
	return strings.Contains(strings.ToLower(name), "intent") && strings.HasSuffix(name, "create") && slices.ContainsFunc(args, func(t tokens.Token) bool { return t.Text == "confirm" })
}

// usesService reports whether the program text uses the library of a payment service, and not in
// its test mode.
func (r *inlineRun) usesService() bool {
	if r.billing == 0 {
		r.billing = 1
		t := &r.sh.Env.Clients.Services
		if (slices.ContainsFunc(r.toks, r.namesService) || r.buildsService()) && !t.IsTest(r.src.Text) {
			r.billing = 2
		}
	}
	return r.billing == 2
}

// namesService reports whether the token is the name of a payment service's library.
func (r *inlineRun) namesService(tok tokens.Token) bool {
	if tok.Kind != tokens.Name && tok.Kind != tokens.String {
		return false
	}
	t := &r.sh.Env.Clients.Services
	first, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(tok.Text, "::", ".")), ".")
	packaged := tok.Kind == tokens.String && (strings.HasPrefix(first, "@") || strings.Contains(first, "-"))
	return t.Sdk.Get(first) || packaged && slices.ContainsFunc(facts.ToolWords(first), func(w string) bool { return t.Sdk.Get(w) })
}

// buildsService reports whether the name of a payment service's library is built from several
// strings.
func (r *inlineRun) buildsService() bool {
	joined := strings.NewReplacer(`'+'`, "", `"+"`, "", `' + '`, "", `" + "`, "").Replace(r.src.Text)
	return len(joined) < len(r.src.Text) && slices.ContainsFunc(r.sh.Env.Clients.Services.SDKs, func(s string) bool {
		return scan.HasAny(joined, "'"+s+"'", `"`+s+`"`)
	})
}

// wallets judges requests to a wallet, by the names of wallet methods among the strings.
func (r *inlineRun) wallets() {
	e := r.sh.Env
	var shown [][2]int
	looked := false
	for i, t := range r.toks {
		if t.Kind != tokens.String || len(t.Text) > 40 {
			continue
		}
		if next := r.at(i, 1).Kind; next != ',' && r.at(i, 2).Kind == tokens.String { // for example 'eth_send' + 'Transaction'
			t.Text = r.join(r.toks[i:min(i+6, len(r.toks))]).Text
		}
		if len(t.Text) > 40 || e.Clients.Method.Get(t.Text) == "" || strings.IndexByte(t.Text, '_') < 1 && !r.namesMethod(i) {
			continue
		}
		if !looked {
			shown, looked = r.output(), true
		}
		if !slices.ContainsFunc(shown, func(s [2]int) bool { return i > s[0] && i < s[1] }) {
			e.Money(r.src, t.From, t.To, t.Text, methodRule(e.Clients.Method.Get(t.Text)))
		}
	}
}

// lastName returns the part of a name after the last "." or ":".
func lastName(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

// arrowName returns a PHP name together with the chain before it: "$a->b->c" for c. The name
// begins at the offset at of the text.
func arrowName(text string, at int, name string) string {
	i := min(at, len(text))
	for i > 1 && (scan.IsNameByte(text[i-1]) || text[i-1] == '$' || text[i-1] == '>' && text[i-2] == '-' || text[i-1] == '-' && i < len(text) && text[i] == '>') {
		i--
	}
	return text[i:min(at, len(text))] + name
}

// requestMethod returns the HTTP method of a call that changes something, or "".
func requestMethod(last, text string) string {
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
