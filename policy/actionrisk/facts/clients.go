package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Client says what a call of a program that holds keys or money does. Everything given
// must hold; of the lines about a program the first that holds counts.
type Client struct {
	Sub   []string `json:"sub,omitempty"`   // one of these paths begins the operands
	Any   []string `json:"any,omitempty"`   // one of these options or words is given
	None  []string `json:"none,omitempty"`  // none of them
	Text  []string `json:"text,omitempty"`  // one of these is anywhere in the words
	Live  []string `json:"live,omitempty"`  // one of these options is given, and names no network of this machine
	Class []string `json:"class,omitempty"` // what the words say that it does, as of a tool's name
	// Rule is the id of the effect; "transfer" and "approve" are judged by the
	// amount, which is at operand "#2" or in the option named here.
	Rule   string `json:"rule"`
	To     string `json:"to,omitempty"`
	Amount string `json:"amount,omitempty"`
	Asset  string `json:"asset,omitempty"` // a symbol, or the operand that is one
	Scale  int    `json:"scale,omitempty"` // decimals, if the amount is in base units
}

// ClientTable is clients.json.
type ClientTable struct {
	Local []string `json:"local"` // networks that live on this machine
	// Aliases are short forms of subcommands, by what is before them.
	Aliases Dict[Dict[string]] `json:"aliases"`
	// PublicKeys are the keys of test nodes, which everybody has.
	PublicKeys []string `json:"publicKeys"`
	RPC        []struct {
		Methods []string `json:"methods"`
		Rule    string   `json:"rule"`
	} `json:"rpc"`
	Services serviceTable `json:"services"`
	Code     codeTable    `json:"code"`

	IsLocal Dict[bool]   `json:"-"`
	Method  Dict[string] `json:"-"` // JSON-RPC method to rule
}

func (c *Set) readClients(read rules.TableReader) error {
	t := &c.Clients
	if err := read("clients", t); err != nil {
		return err
	}
	methods := map[string]string{}
	for _, r := range t.RPC {
		for _, m := range r.Methods {
			methods[m] = r.Rule
		}
	}
	t.Method, t.IsLocal = dictOf(methods), setOf(t.Local)
	t.RPC, t.Local = nil, nil
	t.Services.index()
	t.Code.index()
	return nil
}

// Program texts that move money: calls of wallets and payment services, and keys
// that are shown. Contract functions are found by payment.Calls; here stands what has
// other names, and what a text computes before it calls it.

// codeTable is the part of clients.json about program texts.
type codeTable struct {
	Sends   []string `json:"sends"`   // functions that sign or send a transaction
	Keys    []string `json:"keys"`    // members that are a wallet's key
	Wallets []string `json:"wallets"` // names by which a text says that it is about wallets
	Fresh   []string `json:"fresh"`   // what makes a key that nothing belongs to yet
	Prints  []string `json:"prints"`  // functions that show or send their arguments
	Pays    []string `json:"pays"`    // clients that pay what a server asks for

	Send, Key, Wallet, Print, Pay Dict[bool] `json:"-"`
}

func (t *codeTable) index() {
	t.Send, t.Key, t.Wallet, t.Print, t.Pay = setOf(t.Sends), setOf(t.Keys), setOf(t.Wallets), setOf(t.Prints), setOf(t.Pays)
}

// LiteralKey: a secret key is among the arguments, where every process list
// shows it.
func (c *Set) LiteralKey(v *act.Invocation) bool {
	for _, n := range [...]string{"--private-key", "--mnemonic", "--seed-phrase", "--secret-key", "--privateKey", "--private-keys", "--seed"} {
		if w, ok := v.Value(n); ok && len(w.Text) >= 16 && w.Known() && !c.PublicKey(w.Text) {
			return true
		}
	}
	return false
}

// PublicKey: the key or the words of a test node, which everybody has.
func (c *Set) PublicKey(text string) bool {
	text = strings.TrimPrefix(strings.ToLower(text), "0x")
	return strings.HasPrefix(text, "test test test test ") || slices.Contains(c.Clients.PublicKeys, text)
}
