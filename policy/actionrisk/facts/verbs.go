package facts

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// VerbTable is verbs.json: words of tool names by what they do.
type VerbTable struct {
	Read                              []string            `json:"read"`
	Write                             []string            `json:"write"`
	Destructive                       []string            `json:"destructive"`
	Money                             []string            `json:"money"`
	MoneyNouns                        []string            `json:"moneyNouns"`
	PlainNouns                        []string            `json:"plainNouns"` // what may be transferred or ordered without money
	Shell                             []string            `json:"shell"`
	ShellVerbs                        []string            `json:"shellVerbs"`
	ShellNouns                        []string            `json:"shellNouns"`
	SQL                               []string            `json:"sql"`
	Programs                          map[string]string   `json:"programs"` // words of a tool's name that mean a program
	Posts                             []string            `json:"posts"`    // words of tools that send to others what they are given
	Keeps                             []string            `json:"keeps"`    // words of tools that keep secrets
	Guards                            []string            `json:"guards"`   // what watches or protects; to stop it is to destroy it
	Stops                             []string            `json:"stops"`
	Small                             []string            `json:"small"` // what is made again in a moment
	Weak                              map[string][]string `json:"weak"`  // nouns that mean money only with these verbs
	Post, Keep, guard, stop, IsSmall  map[string]bool
	Class                             map[string]string
	Nouns, plain, ShellVerb, shellSay map[string]bool
}

// Verbs is verbs.json, read once.
var Verbs = sync.OnceValue(func() *VerbTable {
	t := &VerbTable{Class: map[string]string{}}
	if err := rules.DecodeTable("verbs", t); err != nil {
		panic("actionrisk: " + err.Error())
	}
	for _, c := range [...]struct {
		name string
		list []string
	}{{"read", t.Read}, {"write", t.Write}, {"destructive", t.Destructive}, {"money", t.Money}, {"shell", t.Shell}, {"sql", t.SQL}} {
		for _, w := range c.list {
			t.Class[w] = c.name
		}
	}
	t.guard, t.stop, t.IsSmall = scan.SetOf(strings.Join(t.Guards, " ")), scan.SetOf(strings.Join(t.Stops, " ")), scan.SetOf(strings.Join(t.Small, " "))
	t.Post, t.Keep = scan.SetOf(strings.Join(t.Posts, " ")), scan.SetOf(strings.Join(t.Keeps, " "))
	t.Nouns, t.plain = scan.SetOf(strings.Join(t.MoneyNouns, " ")), scan.SetOf(strings.Join(t.PlainNouns, " "))
	t.ShellVerb, t.shellSay = scan.SetOf(strings.Join(t.ShellVerbs, " ")), scan.SetOf(strings.Join(t.ShellNouns, " "))
	return t
})

// ToolWords splits a tool's name at everything that is no letter or digit and
// at changes of case. What stands before "__" names the server.
func ToolWords(name string) []string {
	if n := strings.LastIndex(name, "__"); n >= 0 && n+2 < len(name) {
		name = name[n+2:]
	}
	var words []string
	start := -1
	for i := 0; i <= len(name); i++ {
		boundary := i == len(name) || !scan.Alnum(name[i])
		if start >= 0 && (boundary || scan.Upper(name[i]) && !scan.Upper(name[i-1])) {
			words = append(words, strings.ToLower(name[start:i]))
			start = -1
		}
		if !boundary && start < 0 {
			start = i
		}
		if len(words) > 16 {
			break
		}
	}
	return words
}

// ToolClass says what a tool does by its name: the first verb decides, but a
// destructive verb anywhere behind a conjunction counts too.
func ToolClass(name string) string {
	t := Verbs()
	words := ToolWords(name)
	verb := slices.IndexFunc(words, func(w string) bool { return t.Class[w] != "" })
	if verb < 0 {
		if t.namesMoney(words, -1) && HasWord(words, t.ShellVerb) {
			return "money"
		}
		return "unknown"
	}
	class := t.Class[words[verb]]
	for i, w := range words {
		if t.Class[w] == "destructive" && i > verb && (words[i-1] == "and" || words[i-1] == "or" || words[i-1] == "then") {
			class = "destructive"
		}
	}
	if class == "read" && verb == 0 {
		return class
	}
	return t.withNouns(class, words, verb)
}

// withNouns is the class of a verb with what stands beside it.
func (t *VerbTable) withNouns(class string, words []string, verb int) string {
	runs := HasWord(words, t.ShellVerb)
	switch {
	case runs && HasWord(words, t.shellSay), class == "shell":
		return "shell"
	case class == "read" && words[verb] == "open" && t.namesMoney(words, verb):
		return "money" // a position
	case class == "sql", runs && slices.ContainsFunc(words, func(w string) bool { return w == "query" || w == "statement" || t.Class[w] == "sql" }):
		return "sql"
	case class == "write" || class == "money":
		if class, known := t.withMoney(class, words, verb); known {
			return class
		}
	}
	switch {
	case t.stop[words[verb]] && HasWord(words, t.guard):
		return "destructive"
	case class == "destructive" && HasWord(words, t.IsSmall):
		return "write"
	}
	return class
}

// withMoney tells a verb that may be about money from one that is.
func (t *VerbTable) withMoney(class string, words []string, verb int) (is string, known bool) {
	plain := HasWord(slices.Concat(words[:verb], words[verb+1:]), t.plain)
	switch {
	case (class == "money" || !plain) && t.namesMoney(words, verb):
		return "money", true
	case class == "write":
	case words[verb] == "transfer" && HasWord(words, gifts):
		return "destructive", true // it is given away
	case t.Class[words[len(words)-1]] == "read" && len(words) > verb+1:
		return "read", true // charge_status, redeem_check
	case plain && !surePays[words[verb]]:
		return "write", true
	}
	return "", false
}

// surePays are verbs of money whatever they are said of; others need a sum or a noun.
var surePays = scan.SetOf("pay refund buy purchase payout sell reimburse disburse remit donate invest topup wire payroll cashout")

// SaysSum: the arguments of a tool with a verb that may be one of money say that it is.
func SaysSum(name string, args *tree.Node) bool {
	words := ToolWords(name)
	t := Verbs()
	verb := slices.IndexFunc(words, func(w string) bool { return t.Class[w] != "" })
	if verb < 0 || t.Class[words[verb]] != "money" || surePays[words[verb]] || t.namesMoney(words, verb) {
		return true
	}
	if args == nil || args.Kind != '{' {
		return true
	}
	for i := range args.Kids {
		switch key := tree.PlainKey(args.KeysAt(i)); key {
		case "amount", "value", "quantity", "qty", "price", "total", "asset", "currency", "token", "symbol", "coin", "recipient", "payee", "amountusd", "usd", "side", "invoice", "charge", "paymentintent", "account", "wallet", "to", "destination", "shares", "notional", "items", "cart", "payment", "destinations", "recipients", "outputs", "transfers", "address":
			return true
		}
	}
	return len(args.Kids) == 0 || Confirmed(args)
}

// gifts are what somebody else owns once it is transferred.
var gifts = scan.SetOf("repository repo domain ownership owner organization org account workspace zone registrar")

// HasWord: one of the words, or its singular, is of the set.
func HasWord(words []string, set map[string]bool) bool {
	return slices.ContainsFunc(words, func(w string) bool { return set[w] || set[strings.TrimSuffix(w, "s")] })
}

// namesMoney: a noun beside the verb means money.
func (t *VerbTable) namesMoney(words []string, verb int) bool {
	for i, w := range words {
		if i == verb || !t.Nouns[w] && !t.Nouns[strings.TrimSuffix(w, "s")] {
			continue
		}
		if only := t.Weak[strings.TrimSuffix(w, "s")]; only == nil || verb >= 0 && slices.Contains(only, words[verb]) {
			return true
		}
	}
	return false
}

// ShowsKeyByName: a tool whose name says that it gives out the key of a wallet, and
// not a new one.
func ShowsKeyByName(name string) bool {
	words := ToolWords(name)
	has := func(w string) bool { return slices.Contains(words, w) }
	key := has("mnemonic") || has("seed") && has("phrase") || has("recovery") && has("phrase") || has("private") && (has("key") || has("keys")) || has("wallet") && has("export")
	if !key {
		return false
	}
	for _, w := range words {
		switch w {
		case "get", "export", "reveal", "show", "read", "dump", "backup", "fetch", "print", "display", "retrieve", "copy", "decrypt", "download":
			return !has("create") && !has("generate") && !has("list") && !has("check") && !has("verify") && !has("ssh")
		}
	}
	return false
}

// ShowsSecretByName: a tool whose name says that it shows the value of a secret, not
// its name alone.
func ShowsSecretByName(name string) bool {
	words := ToolWords(name)
	verb := false
	for _, w := range words {
		switch w {
		case "list", "names", "name", "metadata", "describe", "check", "exists", "has", "count", "search", "create", "set", "put", "update", "delete", "policy", "rotate", "scan", "scanning", "alerts", "detect", "find", "validate", "csrf", "docs", "reset":
			return false
		case "get", "read", "reveal", "fetch", "show", "access", "retrieve", "export", "download", "view", "dump", "decrypt", "print":
			verb = true
		}
	}
	return verb && HasWord(words, secretNouns)
}

var secretNouns = scan.SetOf("secret password credential passphrase keystore")

// MakesKeyByName: a tool whose name says that it makes a key that lets somebody in.
func MakesKeyByName(name string) bool {
	words := ToolWords(name)
	has := func(w string) bool { return slices.Contains(words, w) }
	return (has("create") || has("generate") || has("issue") || has("add")) && has("key") && (has("access") || has("account") || has("root"))
}

// Confirmed: the arguments say that what was prepared is carried out at once.
func Confirmed(args *tree.Node) bool {
	c := args.Get("confirm", "confirmed", "placeOrder", "place_order", "submit", "execute", "autoConfirm", "auto_confirm", "capture")
	return c != nil && c.Kind == 't'
}
