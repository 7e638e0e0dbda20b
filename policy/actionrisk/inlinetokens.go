package actionrisk

import "strings"

// inlineToken is a token of a program text in any of the scripting languages.
type inlineToken struct {
	kind     byte   // 's' string, 'x' command text (backticks), 'i' name with its dots, else the sign itself
	text     string // of a string its value, unknown parts as holes
	from, to int    // in the source; of a string the bytes between its quotes
	exact    bool   // text stands verbatim there
	list     bool   // text is the words of a list, joined by blanks
	computed bool   // a name that the text puts together
}

// scanInline cuts a program text into tokens. It knows strings and comments and
// nothing else, which is enough to tell a call from a mention.
func scanInline(text, lang string, b *budget) []inlineToken {
	var out []inlineToken
	slashes := lang == "node" || lang == "php"
	for i := 0; i < len(text) && len(out) < 4096 && b.spend(1); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '#' && lang != "node" && (i == 0 || text[i-1] != '$'):
			i = lineEnd(text, i)
		case slashes && strings.HasPrefix(text[i:], "//"):
			i = lineEnd(text, i)
		case slashes && strings.HasPrefix(text[i:], "/*"):
			if j := strings.Index(text[i+2:], "*/"); j >= 0 {
				i += j + 4
			} else {
				i = len(text)
			}
		case c == '"' || c == '\'' || c == '`':
			t := stringToken(text, i, lang)
			out = append(out, t)
			i = t.to + 1
			if strings.HasPrefix(text[t.from-1:], strings.Repeat(string(c), 3)) && lang == "python" && t.from-1 >= 2 {
				i = t.to + 3
			}
			i = min(i, len(text))
		case isNameByte(c) || c == '$' || c == '@' || c == '.':
			j := i + 1
			for j < len(text) && (isNameByte(text[j]) || text[j] == '.' || strings.HasPrefix(text[j:], "::") || text[j] == ':' && text[j-1] == ':' || text[j] == '!' && lang == "ruby") {
				j++
			}
			if t, ok := quotedWord(text, i, j, lang); ok {
				out = append(out, t)
				i = min(t.to+1, len(text))
				continue
			}
			out = append(out, inlineToken{kind: 'i', text: text[i:j], from: i, to: j})
			i = j
		default:
			if list, end := wordList(text, i, lang); end > 0 {
				out = append(out, list...)
				i = end
				continue
			}
			if lang == "ruby" && strings.HasPrefix(text[i:], "%x") && i+2 < len(text) {
				if t, ok := quotedWord(text, i+1, i+2, "perl"); ok {
					t.kind = 'x'
					out = append(out, t)
					i = min(t.to+1, len(text))
					continue
				}
			}
			out = append(out, inlineToken{kind: c, text: text[i : i+1], from: i, to: i + 1})
			i++
		}
	}
	return out
}

// wordList is Ruby's %w[a b] as the tokens of ["a", "b"], and where it ends.
func wordList(text string, i int, lang string) ([]inlineToken, int) {
	if lang != "ruby" || i+2 >= len(text) || text[i] != '%' || text[i+1] != 'w' && text[i+1] != 'W' {
		return nil, 0
	}
	open := strings.IndexByte("([{<", text[i+2])
	if open < 0 {
		return nil, 0
	}
	end := strings.IndexByte(text[i:], ")]}>"[open])
	if end < 0 {
		return nil, 0
	}
	end += i
	out := []inlineToken{{kind: '[', text: "[", from: i, to: i + 1}}
	for at := i + 3; at < end; {
		word := strings.TrimLeft(text[at:end], " \t\n")
		at = end - len(word)
		if j := strings.IndexAny(word, " \t\n"); j >= 0 {
			word = word[:j]
		}
		if word == "" {
			break
		}
		if len(out) > 1 {
			out = append(out, inlineToken{kind: ',', text: ",", from: at, to: at})
		}
		out = append(out, inlineToken{kind: 's', text: word, from: at, to: at + len(word), exact: true})
		at += len(word)
	}
	return append(out, inlineToken{kind: ']', text: "]", from: end, to: end + 1}), end + 1
}

func lineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(text)
}

// quotedWord is perl's q(), qq{} and qx//, and ruby's %x().
func quotedWord(text string, i, j int, lang string) (inlineToken, bool) {
	word := text[i:j]
	if lang != "perl" || word != "qx" && word != "qq" && word != "qw" && word != "q" && word != "x" {
		return inlineToken{}, false
	}
	if j >= len(text) || isNameByte(text[j]) {
		return inlineToken{}, false
	}
	end := strings.IndexByte("({[<", text[j])
	closing := text[j]
	if end >= 0 {
		closing = ")}]>"[end]
	}
	k := strings.IndexByte(text[j+1:], closing)
	if k < 0 {
		return inlineToken{}, false
	}
	t := inlineToken{kind: 's', text: text[j+1 : j+1+k], from: j + 1, to: j + 1 + k, exact: true}
	if word == "qx" || word == "x" {
		t.kind = 'x'
	}
	return t, true
}

// stringToken reads one string that begins at text[i].
func stringToken(text string, i int, lang string) inlineToken {
	quote := text[i]
	start := i + 1
	if lang == "python" && strings.HasPrefix(text[i:], strings.Repeat(string(quote), 3)) {
		start = i + 3
		if j := strings.Index(text[start:], strings.Repeat(string(quote), 3)); j >= 0 {
			return inlineToken{kind: 's', text: text[start : start+j], from: start, to: start + j, exact: true}
		}
		return inlineToken{kind: 's', text: text[start:], from: start, to: len(text), exact: true}
	}
	template := quote == '`' && lang == "node" || quote == '"' && (lang == "ruby" || lang == "perl" || lang == "php") ||
		i > 0 && (text[i-1] == 'f' || text[i-1] == 'F') && lang == "python"
	t := inlineToken{kind: 's', from: start, exact: true}
	if quote == '`' && lang != "node" {
		t.kind = 'x'
	}
	var b []byte
	j := start
	for ; j < len(text) && text[j] != quote; j++ {
		switch {
		case text[j] == '\\' && j+1 < len(text):
			t.exact = false
			e := unescape(text[j:min(j+4, len(text))])
			if d := text[j+1]; d >= '0' && d <= '7' {
				n, used := digits(text[j+1:], 8, 3)
				b = append(b, byte(n))
				j += used
				continue
			}
			if text[j+1] == 'x' && len(e) > 0 {
				b = append(b, e[0])
				j += 3
				continue
			}
			b = append(b, unescape(text[j:j+2])...)
			j++
		case template && (strings.HasPrefix(text[j:], "${") || strings.HasPrefix(text[j:], "#{") || text[j] == '{' && lang == "python"):
			k := strings.IndexByte(text[j:], '}')
			if k < 0 {
				b = append(b, text[j])
				continue
			}
			t.exact = false
			b = append(b, hole)
			j += k
		default:
			b = append(b, text[j])
		}
	}
	t.text, t.to = string(b), min(j, len(text))
	return t
}
