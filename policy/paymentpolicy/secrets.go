package paymentpolicy

import (
	"iter"
	"net/url"
	"strings"

	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/policy/secrets"
)

// scanned is a text that is sent with a payment: a text in the metadata, or, if member is set, the
// text at that JSON pointer.
type scanned struct {
	normal.Leaf
	member string
}

// place returns the JSON pointer of the text. It stops before the first name for which the
// function passes returns false.
func (s scanned) place(passes func(name string) bool) string {
	if s.member != "" {
		return s.member
	}
	return s.Pointer("/payment/metadata", passes)
}

// texts iterates over the texts that are sent with a payment: metadata, description and query.
func (c *call) texts() iter.Seq[scanned] {
	return func(yield func(scanned) bool) {
		for leaf := range normal.Leaves(c.Payment.Metadata) {
			if !yield(scanned{Leaf: leaf}) {
				return
			}
		}
		if !yield(scanned{normal.Leaf{Text: c.Payment.Description}, "/payment/description"}) {
			return
		}
		for pair := range strings.SplitSeq(c.url.Query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if !yield(scanned{normal.Leaf{Name: unescaped(name), Text: unescaped(value)}, "/payment/resourceUrl"}) {
				return
			}
		}
	}
}

// unescaped decodes percent escapes. If an escape is invalid, it returns the text unchanged.
func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// leaks contains the secrets and the personal data that would be sent with a payment. compared is
// true if there was a text to scan.
type leaks struct {
	secret, personal []fault
	compared         bool
}

// leaksOf scans all texts once. It reports each kind of secret or personal data once per pointer.
func (c *call) leaksOf() *leaks {
	if c.leaks != nil {
		return c.leaks
	}
	c.leaks = &leaks{}
	seen := map[[2]string]bool{}
	shown := map[string]bool{} // by member name: false if the name itself contains a secret or personal data
	passes := func(name string) bool {
		show, known := shown[name]
		if !known {
			show = secrets.Kind("", name) == "" && normal.PersonalDataKind(name) == ""
			shown[name] = show
		}
		return show
	}
	report := func(into *[]fault, s scanned, kind, expected, message string) {
		if path := s.place(passes); !seen[[2]string{path, kind}] {
			seen[[2]string{path, kind}] = true
			*into = append(*into, fault{path: path, expected: expected, actual: kind, message: message})
		}
	}
	for s := range c.texts() {
		if s.Text == "" {
			continue
		}
		c.leaks.compared = true
		if kind := secrets.Kind(s.Name, s.Text); kind != "" {
			report(&c.leaks.secret, s, kind, "no secret", "a secret would travel with the payment")
		}
		if kind := normal.PersonalDataKind(s.Text); kind != "" {
			report(&c.leaks.personal, s, kind, "no personal data", "personal data would travel with the payment")
		}
	}
	return c.leaks
}

func noSecrets(c *call) ([]fault, bool) { return c.leaksOf().secret, c.leaksOf().compared }

func noPersonalData(c *call) ([]fault, bool) { return c.leaksOf().personal, c.leaksOf().compared }
