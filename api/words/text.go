package words

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Visible writes characters that do not show, or that change the order in which text is shown,
// by their code points: <U+202E>. Texts of people and agents are shown with it.
func Visible(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func hidden(r rune) bool {
	switch r {
	case '\n', '\t', ' ':
		return false
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Z, r) || unicode.Is(unicode.Variation_Selector, r)
}

// IndentJSON writes JSON for people to read.
func IndentJSON(text []byte) string {
	value := jsontext.Value(slices.Clone(text))
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(value)
}

// Member is a name and a value of an action.
type Member struct{ Name, Value string }

// Action lists the members of a normalized intent, sorted.
func Action(normalized jsontext.Value) ([]Member, error) {
	var members map[string]any
	if err := json.Unmarshal(normalized, &members); err != nil {
		return nil, err
	}
	list := []Member{}
	for name, value := range members {
		text, isText := value.(string)
		if !isText { // a flag, which is a member only if it is true
			text = "true"
		}
		list = append(list, Member{name, text})
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
