package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// VerbTable is verbs.json: the words of tool names. A tool's name is free English: ToolWords
// splits it, and each word counts, in the singular or plural. The names in names.json, in
// contrast, are names in program code; they are not split, and are looked up by language and
// receiver.
type VerbTable struct {
	Classes   Dict[[]string]   `json:"classes"`   // verbs by the class of the tools whose names contain them
	Groups    Dict[[]string]   `json:"groups"`    // other groups of words; see Says
	Weak      Dict[[]string]   `json:"weak"`      // nouns that mean money only with these verbs
	Programs  Dict[string]     `json:"programs"`  // words that mean a program
	Languages Dict[string]     `json:"languages"` // words of tools that run texts in a language
	Class     Dict[string]     `json:"-"`         // the class of each verb
	Said      Dict[Dict[bool]] `json:"-"`         // Groups as sets
}

func (c *Set) readVerbs(read rules.TableReader) error {
	t := &c.Verbs
	if err := read("verbs", t); err != nil {
		return err
	}
	classes, said := map[string]string{}, map[string]Dict[bool]{}
	for _, class := range t.Classes.Entries {
		for _, w := range class.Is {
			classes[w] = class.Name
		}
	}
	for _, group := range t.Groups.Entries {
		said[group.Name] = setOf(group.Is)
	}
	t.Class, t.Said = dictOf(classes), dictOf(said)
	return nil
}

// Verbs returns verbs.json of this release. All rule sets use it.
func Verbs() *VerbTable { return &Tables().Verbs }

// Says reports whether one of the words of a tool's name, or its singular, is in a group of
// verbs.json.
func Says(words []string, group string) bool {
	said := Verbs().Said.Get(group)
	return HasWord(words, &said)
}

// ToolWords splits a tool's name at each character that is not a letter or digit, and before each
// capital letter that follows a character other than a capital letter. The part before "__" is the
// server's name and is dropped.
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

// ToolClass returns the class of a tool by its name. The first verb decides, but a destructive
// verb after a conjunction takes precedence.
func ToolClass(name string) string {
	t := Verbs()
	words := ToolWords(name)
	verb := slices.IndexFunc(words, func(w string) bool { return t.Class.Get(w) != "" })
	if verb < 0 {
		if t.namesMoney(words, -1) && Says(words, "shell-verbs") {
			return "money"
		}
		return "unknown"
	}
	class := t.Class.Get(words[verb])
	for i, w := range words {
		if t.Class.Get(w) == "destructive" && i > verb && (words[i-1] == "and" || words[i-1] == "or" || words[i-1] == "then") {
			class = "destructive"
		}
	}
	if class == "read" && verb == 0 {
		return class
	}
	return t.withNouns(class, words, verb)
}

// withNouns returns the class of a tool: that of its verb, changed by the other words of its name.
func (t *VerbTable) withNouns(class string, words []string, verb int) string {
	runs := Says(words, "shell-verbs")
	switch {
	case runs && Says(words, "shell-nouns"), class == "shell":
		return "shell"
	case class == "read" && words[verb] == "open" && t.namesMoney(words, verb):
		return "money" // opening a trading position
	case class == "read" && Says(words[verb:verb+1], "request-verbs") && Says(words, "paying-protocols"):
		return "money" // the server can ask for any amount
	case class == "sql", runs && slices.ContainsFunc(words, func(w string) bool { return w == "query" || w == "statement" || t.Class.Get(w) == "sql" }):
		return "sql"
	case class == "write" || class == "money":
		if class, known := t.withMoney(class, words, verb); known {
			return class
		}
	}
	switch {
	case Says(words[verb:verb+1], "stops") && Says(words, "guards"):
		return "destructive"
	case class == "destructive" && Says(words, "small"):
		return "write"
	}
	return class
}

// withMoney returns the class of a tool whose verb can mean money, by the other words of its name.
// known is false if they do not decide.
func (t *VerbTable) withMoney(class string, words []string, verb int) (is string, known bool) {
	plain := Says(slices.Concat(words[:verb], words[verb+1:]), "plain-nouns")
	switch {
	case (class == "money" || !plain) && t.namesMoney(words, verb):
		return "money", true
	case class == "write":
	case words[verb] == "transfer" && Says(words, "gifts"):
		return "destructive", true // the object is given to another person
	case t.Class.Get(words[len(words)-1]) == "read" && len(words) > verb+1:
		return "read", true // for example charge_status or redeem_check
	case plain && !Says(words[verb:verb+1], "sure-pays"):
		return "write", true
	}
	return "", false
}

// SaysSum reports whether the arguments of a tool confirm that it moves money. This matters if the
// verb in its name can also mean something else; for other tools SaysSum returns true.
func SaysSum(name string, args *tree.Node) bool {
	words := ToolWords(name)
	t := Verbs()
	verb := slices.IndexFunc(words, func(w string) bool { return t.Class.Get(w) != "" })
	if verb < 0 || t.Class.Get(words[verb]) != "money" || Says(words[verb:verb+1], "sure-pays") || t.namesMoney(words, verb) {
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

// HasWord reports whether one of the words, or its singular, is in the set.
func HasWord(words []string, set *Dict[bool]) bool {
	return slices.ContainsFunc(words, func(w string) bool { return set.Get(w) || set.Get(strings.TrimSuffix(w, "s")) })
}

// namesMoney reports whether a word other than the verb means money.
func (t *VerbTable) namesMoney(words []string, verb int) bool {
	for i, w := range words {
		if i == verb || !Says(words[i:i+1], "money-nouns") {
			continue
		}
		if only := t.Weak.Get(strings.TrimSuffix(w, "s")); only == nil || verb >= 0 && slices.Contains(only, words[verb]) {
			return true
		}
	}
	return false
}

// ShowsKeyByName reports whether a tool's name means that it shows the key of a wallet, other than
// a new one.
func ShowsKeyByName(name string) bool {
	words := ToolWords(name)
	has := func(w string) bool { return slices.Contains(words, w) }
	key := has("mnemonic") || has("seed") && has("phrase") || has("recovery") && has("phrase") || has("private") && (has("key") || has("keys")) || has("wallet") && has("export")
	return key && Says(words, "key-shows") && !Says(words, "key-talk")
}

// ShowsSecretByName reports whether a tool's name means that it shows the value of a secret, not
// only its name.
func ShowsSecretByName(name string) bool {
	words := ToolWords(name)
	return Says(words, "secrets") && Says(words, "secret-shows") && !Says(words, "secret-talk")
}

// MakesKeyByName reports whether a tool's name means that it creates an access key.
func MakesKeyByName(name string) bool {
	words := ToolWords(name)
	has := func(w string) bool { return slices.Contains(words, w) }
	return Says(words, "makes") && has("key") && (has("access") || has("account") || has("root"))
}

// Confirmed reports whether the arguments ask to carry out the prepared action at once.
func Confirmed(args *tree.Node) bool {
	c := args.Get("confirm", "confirmed", "placeOrder", "place_order", "submit", "execute", "autoConfirm", "auto_confirm", "capture")
	return c != nil && c.Kind == 't'
}
