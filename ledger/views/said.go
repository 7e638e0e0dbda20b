package views

import (
	"fmt"
	"strings"
	"unicode"
)

// unverified says what quotation marks on a page mean.
const unverified = "<p>Text in “quotation marks” comes from an agent or a member. Nobody has verified it.</p>"

// said puts quotation marks around a text that an agent or a member sent, so that it cannot be
// read as a sentence of the page. Some characters are written as code points, such as <U+202E>:
// those that are invisible or change the order of the text, quotation marks that could be mistaken
// for the end, and letters of other scripts in a word with Latin letters.
func said(text string) string {
	var b strings.Builder
	b.WriteString("“")
	for word := range words(text) {
		latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
		for _, r := range word {
			switch {
			case r == '\n' || r == '\t':
				b.WriteByte(' ')
			case strings.ContainsRune("“”„‟", r), r != ' ' && (!unicode.IsGraphic(r) || unicode.In(r, unicode.Cf, unicode.Z, unicode.Variation_Selector)),
				latin && unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r):
				fmt.Fprintf(&b, "<U+%04X>", r)
			default:
				b.WriteRune(r)
			}
		}
	}
	return b.String() + "”"
}

// words yields the words of a text and what is between them.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }
		for text != "" {
			end := strings.IndexFunc(text, func(r rune) bool { return !isWord(r) })
			if end == 0 {
				end = strings.IndexFunc(text, isWord)
			}
			if end < 0 {
				end = len(text)
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}
