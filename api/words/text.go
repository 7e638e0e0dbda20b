package words

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/mcprisk"
)

// Visible replaces characters by their code points, as in <U+202E>, if they are invisible, change
// the order of text, or look like Latin letters. Texts of people and agents must be shown with it.
func Visible(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || hidden(r) }) {
		return text
	}
	var b strings.Builder
	for text != "" {
		word := text[:wordEnd(text)]
		text = text[len(word):]
		alike := mcprisk.LookAlikes(word)
		for _, r := range word {
			if hidden(r) || slices.Contains(alike, r) {
				fmt.Fprintf(&b, "<U+%04X>", r)
				continue
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wordEnd returns the end of the first word of a text: the index of the first character that is
// not a letter, but at least the length of one character.
func wordEnd(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	switch end {
	case -1:
		return len(text)
	case 0:
		_, end = utf8.DecodeRuneInString(text)
	}
	return end
}

func hidden(r rune) bool {
	switch r {
	case '\n', '\t', ' ':
		return false
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Z, r) || unicode.Is(unicode.Variation_Selector, r)
}

// IndentJSON formats JSON with indentation.
func IndentJSON(text []byte) string {
	value := jsontext.Value(slices.Clone(text))
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(value)
}

// Member is the name and the value of a member of an action.
type Member struct{ Name, Value string }

// Action lists the members of a normalized intent, sorted by name.
func Action(normalized jsontext.Value) ([]Member, error) {
	var members map[string]any
	if err := json.Unmarshal(normalized, &members); err != nil {
		return nil, err
	}
	list := []Member{}
	for name, value := range members {
		text, isText := value.(string)
		if !isText { // a flag, which is present only if it is true
			text = "true"
		}
		list = append(list, Member{name, text})
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
