package actionrisk

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// inlineToken is a token of a program text in any of the scripting languages.
type inlineToken struct {
	kind     byte     // 's' string, 'x' command text (backticks), 'i' name with its dots, else the sign itself
	text     string   // of a string its value, unknown parts as holes
	from, to int      // in the source; of a string the bytes between its quotes
	exact    bool     // text stands verbatim there
	list     bool     // text is the words of a list, joined by blanks
	holes    []string // the expressions that stand in the text's holes
	computed bool     // a name that the text puts together
	partner  int32    // of a bracket: how far off the one is that belongs to it, or unpaired; 0 if nobody looked
}

// unpaired says of a bracket that the text does not close or open it.
const unpaired = 1 << 30

// pair notes of every bracket which one belongs to it, so that nobody has to look for
// it again. Each kind is counted by itself. It gives how many of the tokens stand in no
// more than maxNesting brackets.
func pair(toks []inlineToken) int {
	var open [3][]int
	depth := 0
	for i := range toks {
		t := &toks[i]
		switch k := strings.IndexByte("([{", t.kind); {
		case k >= 0:
			t.partner = unpaired
			open[k] = append(open[k], i)
			if depth++; depth > scan.MaxNesting {
				return i
			}
			continue
		}
		k := strings.IndexByte(")]}", t.kind)
		if k < 0 {
			continue
		}
		t.partner = unpaired
		if n := len(open[k]); n > 0 {
			at := open[k][n-1]
			open[k], depth = open[k][:n-1], depth-1
			toks[at].partner, t.partner = int32(i-at), int32(at-i)
		}
	}
	return len(toks)
}

// tokens cuts a program text into tokens with their brackets paired. Of a text that
// is nested deeper than any that people write only the beginning is looked at.
func (e *engine) tokens(text, lang string) []inlineToken {
	toks := scanInline(text, lang, &e.budget)
	if n := pair(toks); n < len(toks) {
		e.tooDeep = true
		toks = toks[:n]
	}
	return toks
}

// scanInline cuts a program text into tokens. It knows strings and comments and
// nothing else, which is enough to tell a call from a mention.
func scanInline(text, lang string, b *budget) []inlineToken {
	var out []inlineToken
	l := ruleset().code.language(lang)
	for i := 0; i < len(text) && len(out) < 4096 && b.spend(1); {
		c := text[i]
		if end := l.comment(text, i); end > 0 {
			i = end
			continue
		}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '\'' && l.Chars:
			end := charEnd(text, i)
			if end > i+1 {
				t := inlineToken{kind: 's', text: string(scan.Unescape(text[i+1 : end])), from: i + 1, to: end}
				out = append(out, t)
			}
			i = end + 1
		case c == ':' && l.Dashes && i+1 < len(text) && scan.IsNameByte(text[i+1]):
			j := i + 1
			for j < len(text) && scan.IsNameByte(text[j]) {
				j++
			}
			out = append(out, inlineToken{kind: 'i', text: "." + text[i+1:j], from: i, to: j})
			i = j
		case strings.HasPrefix(text[i:], "[[") && lang == "lua" && strings.Contains(text[i:], "]]"):
			end := i + strings.Index(text[i:], "]]")
			out = append(out, inlineToken{kind: 's', text: text[i+2 : end], from: i + 2, to: end, exact: true})
			i = end + 2
		case c == '<' && lang == "raku" && i > 0 && (text[i-1] == ' ' || text[i-1] == '(') && strings.IndexByte(text[i:], '>') > 0: // a list of words
			end := i + strings.IndexByte(text[i:], '>')
			out = append(out, inlineToken{kind: 's', text: strings.TrimSpace(text[i+1 : end]), from: i + 1, to: end, exact: true})
			i = end + 1
		case c == '"' || c == '\'' || c == '`':
			t := stringToken(text, i, lang)
			out = append(out, t)
			i = t.to + 1
			if strings.HasPrefix(text[t.from-1:], strings.Repeat(string(c), 3)) && lang == "python" && t.from-1 >= 2 {
				i = t.to + 3
			}
			i = min(i, len(text))
		case scan.IsNameByte(c) || c == '$' || c == '@' || c == '.':
			j := i + 1
			for j < len(text) && (scan.IsNameByte(text[j]) || text[j] == '.' || strings.HasPrefix(text[j:], "::") || text[j] == ':' && text[j-1] == ':' || text[j] == ':' && lang == "erlang" && j+1 < len(text) && scan.IsNameByte(text[j+1]) || text[j] == '!' && (lang == "ruby" || lang == "elixir" || lang == "crystal")) {
				j++
			}
			if t, ok := quotedWord(text, i, j, lang); ok {
				out = append(out, t)
				i = min(t.to+1, len(text))
				continue
			}
			name := text[i:j]
			if lang == "node" && strings.HasPrefix(text[j:], `\u`) {
				name, j = escapedName(text, i, j)
			}
			out = append(out, inlineToken{kind: 'i', text: name, from: i, to: j})
			i = j
		default:
			if list, end := wordList(text, i, lang); end > 0 {
				out = append(out, list...)
				i = end
				continue
			}
			if t, ok := percentString(text, i, lang); ok {
				out = append(out, t)
				i = min(t.to+1, len(text))
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
			if n := assigns(text[i:], lang); n > 0 {
				out = append(out, inlineToken{kind: '=', text: "=", from: i, to: i + n})
				i += n
				continue
			}
			out = append(out, inlineToken{kind: c, text: text[i : i+1], from: i, to: i + 1})
			i++
		}
	}
	return out
}

// assigns is how long a sign of assignment is that is not "=" alone.
func assigns(text, lang string) int {
	switch {
	case strings.HasPrefix(text, ":=") && lang != "make":
		return 2
	case strings.HasPrefix(text, "<-") && lang == "r":
		return 2
	}
	return 0
}

// percentString is Ruby's %q(a), %Q{a} and %(a).
func percentString(text string, i int, lang string) (inlineToken, bool) {
	if lang != "ruby" && lang != "crystal" || text[i] != '%' || i+2 >= len(text) {
		return inlineToken{}, false
	}
	j := i + 1
	if text[j] == 'q' || text[j] == 'Q' {
		j++
	}
	if strings.IndexByte("([{<", text[j]) < 0 {
		return inlineToken{}, false
	}
	end := strings.IndexByte(text[j:], ")]}>"[strings.IndexByte("([{<", text[j])])
	if end < 0 {
		return inlineToken{}, false
	}
	return inlineToken{kind: 's', text: text[j+1 : j+end], from: j + 1, to: j + end, exact: true}, true
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

// comment is where a comment that begins at i ends, or 0.
func (l *language) comment(text string, i int) int {
	for _, mark := range l.Comments {
		if !strings.HasPrefix(text[i:], mark) {
			continue
		}
		switch mark {
		case "/*", "(*":
			shut := map[string]string{"/*": "*/", "(*": "*)"}[mark]
			if j := strings.Index(text[i+2:], shut); j >= 0 {
				return i + j + 4
			}
			return len(text)
		case "#":
			if i > 0 && text[i-1] == '$' { // the length of an array in Perl
				return 0
			}
		}
		return max(scan.LineEnd(text, i), i+1)
	}
	return 0
}

// charEnd is where the character ends that a single quote begins, or i itself: a
// lifetime of Rust, a name of Haskell.
func charEnd(text string, i int) int {
	for _, n := range [...]int{2, 3, 5} {
		if i+n < len(text) && text[i+n] == '\'' && (n == 2 || text[i+1] == '\\') {
			return i + n
		}
	}
	return i
}

// quotedWord is perl's q(), qq{} and qx//, and ruby's %x().
func quotedWord(text string, i, j int, lang string) (inlineToken, bool) {
	word := text[i:j]
	if lang != "perl" || word != "qx" && word != "qq" && word != "qw" && word != "q" && word != "x" {
		return inlineToken{}, false
	}
	if j >= len(text) || scan.IsNameByte(text[j]) {
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

// escapedName goes on reading a name of JavaScript, which may hold escapes: e\u0078ec.
func escapedName(text string, i, j int) (string, int) {
	name := []byte(text[i:j])
	for j < len(text) {
		switch {
		case scan.IsNameByte(text[j]) || text[j] == '.':
			name = append(name, text[j])
			j++
		case strings.HasPrefix(text[j:], `\u`):
			r, n := scan.UnicodeEscape(text[j+1:])
			if n == 0 {
				return string(name), j
			}
			name = utf8.AppendRune(name, r)
			j += 1 + n
		default:
			return string(name), j
		}
	}
	return string(name), j
}

// opensHole: an expression inside of a string begins the text.
func (l *language) opensHole(text string) bool {
	for _, h := range l.Holes {
		if strings.HasPrefix(text, h) {
			return true
		}
	}
	return false
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
	l := ruleset().code.language(lang)
	template := quote == '`' || quote == '"' && lang != "node" && lang != "python" ||
		i > 0 && (text[i-1] == 'f' || text[i-1] == 'F') && lang == "python"
	t := inlineToken{kind: 's', from: start, exact: true}
	if quote == '`' && l.Ticks != "text" {
		t.kind = 'x'
	}
	var b []byte
	j := start
	for ; j < len(text) && text[j] != quote; j++ {
		switch {
		case text[j] == '\\' && j+1 < len(text):
			t.exact = false
			e := scan.Unescape(text[j:min(j+4, len(text))])
			if d := text[j+1]; d >= '0' && d <= '7' {
				n, used := scan.Digits(text[j+1:], 8, 3)
				b = append(b, byte(n))
				j += used
				continue
			}
			if r, used := scan.UnicodeEscape(text[j+1:]); used > 0 {
				b = append(b, string(r)...)
				j += used
				continue
			}
			if text[j+1] == 'x' && len(e) > 0 {
				b = append(b, e[0])
				j += 3
				continue
			}
			b = append(b, scan.Unescape(text[j:j+2])...)
			j++
		case template && l.opensHole(text[j:]):
			k := balanced(text[j+strings.IndexAny(text[j:], "({"):])
			end := j + strings.IndexAny(text[j:], "({") + k
			if end >= len(text) {
				b = append(b, text[j])
				continue
			}
			t.exact = false
			t.holes = append(t.holes, text[j+strings.IndexAny(text[j:], "({")+1:end])
			b = append(b, scan.Hole)
			j = end
		default:
			b = append(b, text[j])
		}
	}
	t.text, t.to = string(b), min(j, len(text))
	return t
}
