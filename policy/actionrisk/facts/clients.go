package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Client describes an effect of a program that holds keys or money. All given conditions must
// hold. The first row of a program that matches is used.
type Client struct {
	Sub   []string `json:"sub,omitempty"`   // the operands begin with one of these subcommand paths
	Any   []string `json:"any,omitempty"`   // one of these options or words is given
	None  []string `json:"none,omitempty"`  // none of these options or words is given
	Text  []string `json:"text,omitempty"`  // the words contain one of these texts
	Live  []string `json:"live,omitempty"`  // one of these options is given, and its value is not a local network
	Class []string `json:"class,omitempty"` // ToolClass of the words is one of these
	// Rule is the id of the rule for the effect. For "transfer" and "approve" the amount selects
	// the rule. Amount and To are the operand ("#2") or the option with the value.
	Rule   string `json:"rule"`
	To     string `json:"to,omitempty"`
	Amount string `json:"amount,omitempty"`
	Asset  string `json:"asset,omitempty"` // the symbol of the asset, or the operand or option that has it
	Scale  int    `json:"scale,omitempty"` // number of decimals, if the amount is in base units
}

// ClientTable is clients.json.
type ClientTable struct {
	Local []string `json:"local"` // networks that run on this machine
	// Aliases maps the words before a subcommand to the short forms of the subcommand.
	Aliases Dict[Dict[string]] `json:"aliases"`
	// PublicKeys are the private keys of test nodes, which are published.
	PublicKeys []string `json:"publicKeys"`
	RPC        []struct {
		Methods []string `json:"methods"`
		Rule    string   `json:"rule"`
	} `json:"rpc"`
	Services serviceTable `json:"services"`
	Code     codeTable    `json:"code"`

	IsLocal Dict[bool]   `json:"-"`
	Method  Dict[string] `json:"-"` // maps a JSON-RPC method to its rule
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

// Program texts can move money: they call wallets and payment services, or show keys. codeTable
// lists the names that show this. Calls of contract functions are found by package lang/payment.

// codeTable is the part of clients.json about program texts.
type codeTable struct {
	Sends   []string `json:"sends"`   // functions that sign or send a transaction
	Keys    []string `json:"keys"`    // members that are the private key of a wallet
	Wallets []string `json:"wallets"` // names that only texts about wallets contain
	Fresh   []string `json:"fresh"`   // functions that create a new key, which controls nothing yet
	Prints  []string `json:"prints"`  // functions that print or send their arguments
	Pays    []string `json:"pays"`    // clients that pay any amount that a server asks for

	Send, Key, Wallet, Print, Pay Dict[bool] `json:"-"`
}

func (t *codeTable) index() {
	t.Send, t.Key, t.Wallet, t.Print, t.Pay = setOf(t.Sends), setOf(t.Keys), setOf(t.Wallets), setOf(t.Prints), setOf(t.Pays)
}

// LiteralKey reports whether an argument is a private key, which every process can read.
func (c *Set) LiteralKey(v *act.Invocation) bool {
	for _, n := range [...]string{"--private-key", "--mnemonic", "--seed-phrase", "--secret-key", "--privateKey", "--private-keys", "--seed"} {
		if w, ok := v.Value(n); ok && len(w.Text) >= 16 && w.Known() && !c.PublicKey(w.Text) {
			return true
		}
	}
	return false
}

// PublicKey reports whether a text is the key or seed phrase of a test node, which are published.
func (c *Set) PublicKey(text string) bool {
	text = strings.TrimPrefix(strings.ToLower(text), "0x")
	return strings.HasPrefix(text, "test test test test ") || slices.Contains(c.Clients.PublicKeys, text)
}
