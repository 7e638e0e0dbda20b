package stores

import "strings"

// JoinedStrings joins string literals ("a" + "b") and removes the parentheses around a string.
func JoinedStrings(text string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			out = append(out, text[i])
			continue
		}
		end := SkipQuoted(text, i)
		head := strings.TrimRight(string(out), " ")
		if before, ok := strings.CutSuffix(head, "+"); ok && strings.HasSuffix(strings.TrimRight(before, " "), `"`) {
			before = strings.TrimRight(before, " ")
			out = append([]byte(before[:len(before)-1]), text[i+1:end]...)
		} else {
			out = append(out, text[i:end]...)
		}
		i = end - 1
		for rest := strings.TrimLeft(text[i+1:], " "); strings.HasPrefix(rest, ")"); rest = strings.TrimLeft(text[i+1:], " ") {
			from := lastQuote(out)
			open := strings.TrimRight(string(out[:from]), " ")
			if !strings.HasSuffix(open, "(") {
				break
			}
			out = append([]byte(open[:len(open)-1]), out[from:]...)
			i = len(text) - len(rest)
		}
	}
	return string(out)
}

// lastQuote returns the offset of the quote that opens the string at the end of the text.
func lastQuote(text []byte) int {
	for i := len(text) - 2; i >= 0; i-- {
		if text[i] == '"' && (i == 0 || text[i-1] != '\\') {
			return i
		}
	}
	return 0
}
