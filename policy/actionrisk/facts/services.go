package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Payment services: what a request to their interfaces does is read from the
// method and the words of its path, as a tool's name is. Their test modes move
// nothing.

// serviceTable is the part of clients.json about payment services.
type serviceTable struct {
	Hosts  []string `json:"hosts"`  // where they answer, but for their sandboxes
	SDKs   []string `json:"sdks"`   // what program texts call their libraries
	Test   []string `json:"test"`   // words that say that nothing real is moved
	Drafts []string `json:"drafts"` // what is only prepared, with no money moved yet
	Moves  []string `json:"moves"`  // path words that move money wherever they are

	Sdk, Draft, Move Dict[bool] `json:"-"`
}

func (t *serviceTable) index() {
	t.Sdk, t.Draft, t.Move = setOf(t.SDKs), setOf(t.Drafts), setOf(t.Moves)
}

// IsTest: a key, a host or a setting of a service's test mode is in the text.
func (t *serviceTable) IsTest(text string) bool {
	text = strings.ToLower(text)
	return scan.HasAny(text, t.Test...)
}

// IsHost: the host is one of a payment service, and none of its sandboxes.
func (t *serviceTable) IsHost(host string) bool {
	for _, h := range t.Hosts {
		if host == h || strings.HasSuffix(host, h) && host[len(host)-len(h)-1] == '.' {
			return !strings.Contains(host, "sandbox") && !strings.Contains(host, "-test.") && !strings.HasPrefix(host, "test.") && !strings.Contains(host, "paper")
		}
	}
	return false
}

// ServiceClass is ToolClass with an eye for what is only prepared: the last word
// that names something decides.
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

// PreparedOnly: what a name says is made moves nothing yet: a link, a session, a
// draft. The last word that names something tells, unless the verb is one of money.
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

// draftNamed: "payment_links create", "checkout.sessions.create".
func draftNamed(words string) bool {
	list := ToolWords(words)
	if len(list) < 2 {
		return false
	}
	before := list[len(list)-2]
	return Tables().Clients.Services.Draft.Get(before) || before == "intent" || before == "intents"
}

// Confirms: an intent to pay is carried out.
func Confirms(rest, body string) bool {
	return strings.HasSuffix(rest, "/confirm") || strings.HasSuffix(rest, "/capture") || strings.Contains(body, "confirm=true") || strings.Contains(strings.ReplaceAll(body, " ", ""), `"confirm":true`)
}

// MovesByPath: the path names a move of money on an unknown host.
func MovesByPath(t *serviceTable, rest string) bool {
	return slices.ContainsFunc(ToolWords(rest), func(w string) bool { return t.Move.Get(w) })
}

// DevelopmentHost tells whether a host is named for development.
func DevelopmentHost(host string) bool {
	_, dev := Environments(host)
	return dev || strings.Contains(host, "staging") || strings.Contains(host, "sandbox")
}

// MutationField is the first field of a GraphQL mutation.
func MutationField(text string) string {
	if list := MutationFields(text); len(list) > 0 {
		return list[0]
	}
	return ""
}

// MutationFields are the fields of a GraphQL mutation, without their other names.
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

// QuoteJSON is a value of httpie as JSON: itself if it is some already.
func QuoteJSON(value string) string {
	if root, strict := tree.JSON(value); root != nil && strict {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}
