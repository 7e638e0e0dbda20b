package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// This file judges calls in program texts whose function name is computed or passed as a string.
// It also finds strings that are only displayed.

// tempCalls maps functions that return a temporary file or folder to a path for it.
var tempCalls = map[string]string{
	"mkdtemp": "/tmp/tmp.dir", "mkdtempSync": "/tmp/tmp.dir", "mktmpdir": "/tmp/tmp.dir", "TemporaryDirectory": "/tmp/tmp.dir", "mkstemp": "/tmp/tmp.file", "tempnam": "/tmp/tmp.file", "tempdir": "/tmp/tmp.dir", "NamedTemporaryFile": "/tmp/tmp.file",
	"gettempdir": "/tmp", "tmpdir": "/tmp", "sys_get_temp_dir": "/tmp", "temp_dir": "/tmp",
}

// joinsPath reports whether the function joins the parts of a path, like os.path.join and
// File.join.
func (r *inlineRun) joinsPath(name string) bool {
	if lastName(name) != "join" {
		return false
	}
	first, _, _ := strings.Cut(name, ".")
	return strings.Contains(strings.ToLower(name[:strings.LastIndexAny(name, ".:")+1]), "path") || first == "File" || name == "join" && (r.lang == "node" || r.lang == "python")
}

// direct returns the function and arguments of a call through call, apply or bind.
func direct(name tokens.Token, args []tokens.Token) (tokens.Token, []tokens.Token) {
	if name.Text == "Reflect.apply" && len(args) > 1 && args[0].Kind == tokens.Name {
		name.Text = args[0].Text
		return name, args[1:]
	}
	for _, way := range [...]string{".call", ".apply", ".bind"} {
		if f, ok := strings.CutSuffix(name.Text, way); ok && strings.Contains(f, ".") {
			name.Text = f
		}
	}
	return name, args
}

// alias records a variable, assigned before token i, that is another name for a member which a
// string names: f = getattr(stripe.Transfer, "cre"+"ate"), f = wallet["send"].
func (r *inlineRun) alias(i int, receiver, member string, at tokens.Token) {
	if i < 2 || r.toks[i-1].Kind != '=' || r.toks[i-2].Kind != tokens.Name || at.Kind != tokens.Name || member == "" || !act.SyntaxName(member) {
		return
	}
	if receiver == "" || strings.IndexByte(receiver, scan.Hole) >= 0 {
		receiver = at.Text
	}
	r.rename(r.toks[i-2].Text, strings.TrimRight(receiver, ".")+"."+member)
}

// constant judges Stripe.const_get("Pay"+"out").create, a call on the constant that a string
// names. Token i is const_get.
func (r *inlineRun) constant(i int) {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	if end+1 >= len(r.toks) || r.toks[end].Kind != tokens.Name && (r.toks[end].Kind != ')' || r.toks[end+1].Kind != tokens.Name) {
		return
	}
	if r.toks[end].Kind == ')' {
		end++
	}
	name := r.toks[end]
	if !strings.HasPrefix(name.Text, ".") || end+1 >= len(r.toks) || r.toks[end+1].Kind != '(' {
		return
	}
	name.Text = strings.TrimSuffix(r.toks[i].Text, ".const_get") + "." + r.join(args).Text + name.Text
	r.money(name, r.arguments(end+1), true)
}

// unknownCall judges a call of a function whose name cannot be evaluated. It reports the call if
// its arguments contain an amount or an address and the program text uses wallets or a payment
// service.
func (r *inlineRun) unknownCall(at tokens.Token, args []tokens.Token) {
	low := strings.ToLower(strings.Join(r.argTexts(args), " "))
	if low == "" || !r.sh.Env.Budget.Spend(len(low)/16) {
		return
	}
	moves := slices.ContainsFunc([]string{"amount", "destination", "payout", "recipient", "parseether", "parseunits", "lamports", "maxuint", "spender"}, func(s string) bool { return strings.Contains(low, s) })
	switch {
	case moves && r.usesService():
		r.sh.Env.Money(r.src, at.From, at.To, "", act.ServiceMoves)
	case (moves || addressIn(low)) && r.aboutWallets():
		r.sh.Env.Money(r.src, at.From, at.To, "", act.RunsContract)
	}
}

// addressIn reports whether the text contains "0x" with 40 hexadecimal digits.
func addressIn(text string) bool {
	i := strings.Index(text, "0x")
	return i >= 0 && len(text) >= i+42 && amounts.IsHexText(text[i+2:i+42])
}

// nodeWords lists words that show that a program text connects to a blockchain node or wallet.
var nodeWords = []string{"bitcoin", "rpc", "monero", "lightning", "lnd", "8332", "18083", "8545"}

// aboutWallets reports whether the program text uses wallets or blockchain nodes.
func (r *inlineRun) aboutWallets() bool {
	low := strings.ToLower(r.src.Text)
	says := func(w string) bool { return strings.Contains(low, w) }
	return slices.ContainsFunc(r.sh.Env.Clients.Code.Wallets, says) || slices.ContainsFunc(nodeWords, says)
}

// walletMethod returns the rule id for a call of a wallet method with this name. It returns "" if
// it is not such a method or the program text does not use wallets.
func (r *inlineRun) walletMethod(method string) string {
	rule := r.sh.Env.Clients.Method.Get(method)
	if rule == "" || !r.aboutWallets() {
		return ""
	}
	return methodRule(rule)
}

// methodRule returns the rule id for a wallet method. kind is the entry in the table: a kind of
// method, or the rule id itself.
func methodRule(kind string) string {
	switch kind {
	case "transaction", "bitcoin":
		return act.Transfers
	case "typed":
		return act.SignsBlindly
	}
	return kind
}

// methodCalls lists functions that send a request whose method is their first argument.
var methodCalls = scan.SetOf("call request rpc send callrpc call_rpc raw_request make_request makeRequest sendCommand command rpcCall rpc_call jsonrpc invoke batch execute_rpc cmd query sendRpc")

// namesMethod reports whether the string at token i is the method of a request: the first argument
// of methodCalls, or the value of a member named method.
func (r *inlineRun) namesMethod(i int) bool {
	if i < 2 {
		return false
	}
	switch before := r.toks[i-1]; before.Kind {
	case '(':
		return r.toks[i-2].Kind == tokens.Name && methodCalls.Has(lastName(r.toks[i-2].Text))
	case ':', '=':
		return strings.Trim(r.toks[i-2].Text, ".:'\"") == "method"
	}
	return false
}

// showCalls lists functions that only display their arguments.
var showCalls = scan.SetOf("log info warn error debug print println puts pp pprint echo printf var_dump inspect")

// readers lists programs that may send the text that a program prints.
var readers = []string{"curl", "wget", "http", "nc ", "ncat", "netcat", "socat", "websocat", "xargs", "cast", "grpcurl", "xh ", "openssl", "telnet", "/dev/tcp", "geth", "attach", "-cli"}

// output returns the token ranges of calls that only display their arguments. It returns nil if
// another program in the command may read and send the output.
func (r *inlineRun) output() [][2]int {
	if scan.HasAny(r.sh.Env.Action.Command, readers...) {
		return nil
	}
	var out [][2]int
	for i, t := range r.toks {
		if t.Kind == tokens.Name && i+1 < len(r.toks) && r.toks[i+1].Kind == '(' && showCalls.Has(lastName(t.Text)) && (r.lang != "node" || strings.HasPrefix(t.Text, "console.")) {
			if end := closing(r.toks, i+1); end < len(r.toks) {
				out = append(out, [2]int{i, end})
			}
		}
	}
	return out
}
