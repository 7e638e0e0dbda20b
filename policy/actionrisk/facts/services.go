package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Payment services: the effect of an API request is derived from its method and the words of its
// path, as it is from a tool's name. Requests in test mode move no money.

// serviceTable is the part of clients.json about payment services.
type serviceTable struct {
	Hosts  []string `json:"hosts"`  // API hosts, without the sandboxes
	SDKs   []string `json:"sdks"`   // names of their libraries in program texts
	Test   []string `json:"test"`   // words that only occur in test mode
	Drafts []string `json:"drafts"` // objects that are only prepared, so that no money moves yet
	Moves  []string `json:"moves"`  // words of a path that mean a move of money on any host

	Sdk, Draft, Move Dict[bool] `json:"-"`
}

func (t *serviceTable) index() {
	t.Sdk, t.Draft, t.Move = setOf(t.SDKs), setOf(t.Drafts), setOf(t.Moves)
}

// IsTest reports whether a text contains a key, host or setting of a test mode.
func (t *serviceTable) IsTest(text string) bool {
	text = strings.ToLower(text)
	return scan.HasAny(text, t.Test...)
}

// IsHost reports whether a host belongs to a payment service and is not a sandbox.
func (t *serviceTable) IsHost(host string) bool {
	for _, h := range t.Hosts {
		if host == h || strings.HasSuffix(host, h) && host[len(host)-len(h)-1] == '.' {
			return !strings.Contains(host, "sandbox") && !strings.Contains(host, "-test.") && !strings.HasPrefix(host, "test.") && !strings.Contains(host, "paper")
		}
	}
	return false
}

// ServiceClass is like ToolClass for requests to a payment service: any later word can mean money,
// but if the last word means reading, or an object that is only prepared, no money moves.
func ServiceClass(words string) string {
	t, class, last := Verbs(), ToolClass(words), ""
	for i, w := range ToolWords(words) {
		if strings.Trim(w, "0123456789") == w && len(w) > 2 {
			last = w
		}
		if i > 0 && class == "write" && t.Class.Get(w) == "money" {
			class = "money"
		}
	}
	switch {
	case class == "money" && t.Class.Get(last) == "read":
		return "read"
	case class == "money" && PreparedOnly(words):
		return "write"
	}
	return class
}

// PreparedOnly reports whether a name means that an object is created and no money moves yet, such
// as a link, a session or a draft. The last word decides, unless the verb means money or completes
// a payment.
func PreparedOnly(words string) bool {
	t, last, first := Verbs(), "", ""
	for _, w := range ToolWords(words) {
		if strings.Trim(w, "0123456789") == w && len(w) > 2 {
			last = w
		}
		if first == "" && t.Class.Get(w) != "" {
			first = w
		}
	}
	return Tables().Clients.Services.Draft.Get(last) && !Says([]string{first}, "finishes") && t.Class.Get(first) != "money" || last == "create" && draftNamed(words)
}

// draftNamed reports whether the last but one word names an object that is only prepared:
// "payment_links create", "checkout.sessions.create".
func draftNamed(words string) bool {
	list := ToolWords(words)
	if len(list) < 2 {
		return false
	}
	before := list[len(list)-2]
	return Tables().Clients.Services.Draft.Get(before) || before == "intent" || before == "intents"
}

// Confirms reports whether a request carries out a prepared payment.
func Confirms(rest, body string) bool {
	return strings.HasSuffix(rest, "/confirm") || strings.HasSuffix(rest, "/capture") || strings.Contains(body, "confirm=true") || strings.Contains(strings.ReplaceAll(body, " ", ""), `"confirm":true`)
}

// MovesByPath reports whether the words of a path mean a move of money on any host.
func MovesByPath(t *serviceTable, rest string) bool {
	return slices.ContainsFunc(ToolWords(rest), func(w string) bool { return t.Move.Get(w) })
}

// DevelopmentHost reports whether the name of a host is that of a development system.
func DevelopmentHost(host string) bool {
	_, dev := Environments(host)
	return dev || strings.Contains(host, "staging") || strings.Contains(host, "sandbox")
}

// MutationField returns the first field of a GraphQL mutation.
func MutationField(text string) string {
	if list := MutationFields(text); len(list) > 0 {
		return list[0]
	}
	return ""
}

// MutationFields returns the names of the fields of a GraphQL mutation, without aliases.
func MutationFields(text string) (out []string) {
	_, rest, _ := strings.Cut(text, "mutation")
	_, rest, _ = strings.Cut(rest, "{")
	rest = strings.NewReplacer(`\n`, "  ", `\r`, "  ", `\t`, "  ").Replace(rest)
	depth := 0
	for i := 0; i < len(rest) && len(out) < 32 && depth >= 0; i++ {
		switch c := rest[i]; {
		case strings.IndexByte("({[", c) >= 0:
			depth++
		case strings.IndexByte(")}]", c) >= 0:
			depth--
		case depth == 0 && scan.IsNameByte(c):
			from := i
			for i+1 < len(rest) && scan.IsNameByte(rest[i+1]) {
				i++
			}
			if !strings.HasPrefix(strings.TrimLeft(rest[i+1:], " \n\t"), ":") {
				out = append(out, rest[from:i+1])
			}
		}
	}
	return out
}

// QuoteJSON returns a value of httpie as JSON. A value that is valid JSON is not changed.
func QuoteJSON(value string) string {
	if root, strict := tree.JSON(value); root != nil && strict {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}
