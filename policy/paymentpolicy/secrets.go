package paymentpolicy

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Leaf is one text inside a free-form value, with its pointer and the name of the
// member it stands under.
type Leaf struct{ Path, Name, Text string }

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// Leaves lists every text in a JSON value, in the order of member names, numbers
// that are whole included as their digits, and member names under their own path.
func Leaves(path, name string, value any) []Leaf {
	switch v := value.(type) {
	case string:
		return []Leaf{{path, name, v}}
	case float64:
		return []Leaf{{path, name, strconv.FormatFloat(v, 'f', -1, 64)}}
	case []any:
		var all []Leaf
		for i, item := range v {
			all = append(all, Leaves(path+"/"+strconv.Itoa(i), name, item)...)
		}
		return all
	case map[string]any:
		var all []Leaf
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := path + "/" + pointer.Replace(key)
			all = append(all, Leaf{at, "", key})
			all = append(all, Leaves(at, key, v[key])...)
		}
		return all
	}
	return nil
}

// scanned lists the texts that travel with a payment.
func (c *call) scanned() []Leaf {
	leaves := Leaves("/payment/metadata", "", c.Payment.Metadata)
	leaves = append(leaves, Leaf{"/payment/description", "", c.Payment.Description})
	for pair := range strings.SplitSeq(c.url.Query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		leaves = append(leaves, Leaf{"/payment/resourceUrl", unescaped(name), unescaped(value)})
	}
	return leaves
}

// unescaped decodes percent escapes; a text with a broken one stays as it is.
func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// shownPath is the longest part of a pointer whose member names may be shown.
func shownPath(path string) string {
	path = canon.SafePointer(path)
	for end := range len(path) {
		if end > 0 && path[end] == '/' && hides(path[:end]) {
			return path[:strings.LastIndexByte(path[:end], '/')]
		}
	}
	if hides(path) {
		return path[:strings.LastIndexByte(path, '/')]
	}
	return path
}

// hides says whether the last member name of a pointer is itself a secret.
func hides(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return normal.SecretKind("", name) != "" || normal.PersonalDataKind(name) != ""
}

// scan reports each kind once per place.
func (c *call) scan(kindOf func(Leaf) string, expected, message string) (faults []fault, compared bool) {
	seen := map[[2]string]bool{}
	for _, leaf := range c.scanned() {
		if leaf.Text == "" {
			continue
		}
		compared = true
		kind := kindOf(leaf)
		if kind == "" {
			continue
		}
		if path := shownPath(leaf.Path); !seen[[2]string{path, kind}] {
			seen[[2]string{path, kind}] = true
			faults = append(faults, fault{path: path, expected: expected, actual: kind, message: message})
		}
	}
	return faults, compared
}

func noSecrets(c *call) ([]fault, bool) {
	return c.scan(func(l Leaf) string { return normal.SecretKind(l.Name, l.Text) }, "no secret", "a secret would travel with the payment")
}

func noPersonalData(c *call) ([]fault, bool) {
	return c.scan(func(l Leaf) string { return normal.PersonalDataKind(l.Text) }, "no personal data", "personal data would travel with the payment")
}
