// Package tokens cuts program texts of many languages into tokens. It knows strings,
// comments and brackets; what a name means is for the front-end that asks.
package tokens

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Token is a token of a program text in any of the scripting languages.
type Token struct {
	Kind     byte     // 's' string, 'x' command text (backticks), 'i' name with its dots, else the sign itself
	Text     string   // of a string its value, unknown parts as holes
	From, To int      // in the source; of a string the bytes between its quotes
	Exact    bool     // text stands verbatim there
	List     bool     // text is the words of a list, joined by blanks
	Holes    []string // the expressions that stand in the text's holes
	Computed bool     // a name that the text puts together
	Partner  int32    // of a bracket: how far off the one is that belongs to it, or unpaired; 0 if nobody looked
}

// Unpaired says of a bracket that the text does not close or open it.
const Unpaired = 1 << 30

// Pair notes of every bracket which one belongs to it, so that nobody has to look for
// it again. Each kind is counted by itself. It gives how many of the tokens stand in no
// more than scan.MaxNesting brackets.
func Pair(toks []Token) int {
	var open [3][]int
	depth := 0
	for i := range toks {
		t := &toks[i]
		switch k := strings.IndexByte("([{", t.Kind); {
		case k >= 0:
			t.Partner = Unpaired
			open[k] = append(open[k], i)
			if depth++; depth > scan.MaxNesting {
				return i
			}
			continue
		}
		k := strings.IndexByte(")]}", t.Kind)
		if k < 0 {
			continue
		}
		t.Partner = Unpaired
		if n := len(open[k]); n > 0 {
			at := open[k][n-1]
			open[k], depth = open[k][:n-1], depth-1
			toks[at].Partner, t.Partner = int32(i-at), int32(at-i)
		}
	}
	return len(toks)
}

// Tokens cuts a program text into tokens with their brackets paired. Of a text that
// is nested deeper than any that people write only the beginning is looked at.
func Tokens(e *interp.Env, text, lang string) []Token {
	toks := scanInline(e, text, lang)
	if n := Pair(toks); n < len(toks) {
		e.TooDeep = true
		toks = toks[:n]
	}
	return toks
}

// scanInline cuts a program text into tokens. It knows strings and comments and
// nothing else, which is enough to tell a call from a mention.
func scanInline(e *interp.Env, text, lang string) []Token {
	b := &e.Budget
	var out []Token
	l := e.Code.Language(lang)
	for i := 0; i < len(text) && len(out) < 4096 && b.Spend(1); {
		c := text[i]
		if end := comment(l, text, i); end > 0 {
			i = end
			continue
		}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '\'' && l.Chars:
			end := charEnd(text, i)
			if end > i+1 {
				t := Token{Kind: 's', Text: string(scan.Unescape(text[i+1 : end])), From: i + 1, To: end}
				out = append(out, t)
			}
			i = end + 1
		case c == ':' && l.Dashes && i+1 < len(text) && scan.IsNameByte(text[i+1]):
			j := i + 1
			for j < len(text) && scan.IsNameByte(text[j]) {
				j++
			}
			out = append(out, Token{Kind: 'i', Text: "." + text[i+1:j], From: i, To: j})
			i = j
		case strings.HasPrefix(text[i:], "[[") && lang == "lua" && strings.Contains(text[i:], "]]"):
			end := i + strings.Index(text[i:], "]]")
			out = append(out, Token{Kind: 's', Text: text[i+2 : end], From: i + 2, To: end, Exact: true})
			i = end + 2
		case c == '<' && lang == "raku" && i > 0 && (text[i-1] == ' ' || text[i-1] == '(') && strings.IndexByte(text[i:], '>') > 0: // a list of words
			end := i + strings.IndexByte(text[i:], '>')
			out = append(out, Token{Kind: 's', Text: strings.TrimSpace(text[i+1 : end]), From: i + 1, To: end, Exact: true})
			i = end + 1
		case c == '"' || c == '\'' || c == '`':
			t := StringToken(e, text, i, lang)
			out = append(out, t)
			i = t.To + 1
			if strings.HasPrefix(text[t.From-1:], strings.Repeat(string(c), 3)) && lang == "python" && t.From-1 >= 2 {
				i = t.To + 3
			}
			i = min(i, len(text))
		case scan.IsNameByte(c) || c == '$' || c == '@' || c == '.':
			j := i + 1
			for j < len(text) && (scan.IsNameByte(text[j]) || text[j] == '.' || strings.HasPrefix(text[j:], "::") || text[j] == ':' && text[j-1] == ':' || text[j] == ':' && lang == "erlang" && j+1 < len(text) && scan.IsNameByte(text[j+1]) || text[j] == '!' && (lang == "ruby" || lang == "elixir" || lang == "crystal")) {
				j++
			}
			if t, ok := quotedWord(text, i, j, lang); ok {
				out = append(out, t)
				i = min(t.To+1, len(text))
				continue
			}
			name := text[i:j]
			if lang == "node" && strings.HasPrefix(text[j:], `\u`) {
				name, j = escapedName(text, i, j)
			}
			out = append(out, Token{Kind: 'i', Text: name, From: i, To: j})
			i = j
		default:
			if list, end := wordList(text, i, lang); end > 0 {
				out = append(out, list...)
				i = end
				continue
			}
			if t, ok := percentString(text, i, lang); ok {
				out = append(out, t)
				i = min(t.To+1, len(text))
				continue
			}
			if lang == "ruby" && strings.HasPrefix(text[i:], "%x") && i+2 < len(text) {
				if t, ok := quotedWord(text, i+1, i+2, "perl"); ok {
					t.Kind = 'x'
					out = append(out, t)
					i = min(t.To+1, len(text))
					continue
				}
			}
			if n := assigns(text[i:], lang); n > 0 {
				out = append(out, Token{Kind: '=', Text: "=", From: i, To: i + n})
				i += n
				continue
			}
			out = append(out, Token{Kind: c, Text: text[i : i+1], From: i, To: i + 1})
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
func percentString(text string, i int, lang string) (Token, bool) {
	if lang != "ruby" && lang != "crystal" || text[i] != '%' || i+2 >= len(text) {
		return Token{}, false
	}
	j := i + 1
	if text[j] == 'q' || text[j] == 'Q' {
		j++
	}
	if strings.IndexByte("([{<", text[j]) < 0 {
		return Token{}, false
	}
	end := strings.IndexByte(text[j:], ")]}>"[strings.IndexByte("([{<", text[j])])
	if end < 0 {
		return Token{}, false
	}
	return Token{Kind: 's', Text: text[j+1 : j+end], From: j + 1, To: j + end, Exact: true}, true
}

// wordList is Ruby's %w[a b] as the tokens of ["a", "b"], and where it ends.
func wordList(text string, i int, lang string) ([]Token, int) {
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
	out := []Token{{Kind: '[', Text: "[", From: i, To: i + 1}}
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
			out = append(out, Token{Kind: ',', Text: ",", From: at, To: at})
		}
		out = append(out, Token{Kind: 's', Text: word, From: at, To: at + len(word), Exact: true})
		at += len(word)
	}
	return append(out, Token{Kind: ']', Text: "]", From: end, To: end + 1}), end + 1
}

// comment is where a comment that begins at i ends, or 0.
func comment(l *facts.Language, text string, i int) int {
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
func quotedWord(text string, i, j int, lang string) (Token, bool) {
	word := text[i:j]
	if lang != "perl" || word != "qx" && word != "qq" && word != "qw" && word != "q" && word != "x" {
		return Token{}, false
	}
	if j >= len(text) || scan.IsNameByte(text[j]) {
		return Token{}, false
	}
	end := strings.IndexByte("({[<", text[j])
	closing := text[j]
	if end >= 0 {
		closing = ")}]>"[end]
	}
	k := strings.IndexByte(text[j+1:], closing)
	if k < 0 {
		return Token{}, false
	}
	t := Token{Kind: 's', Text: text[j+1 : j+1+k], From: j + 1, To: j + 1 + k, Exact: true}
	if word == "qx" || word == "x" {
		t.Kind = 'x'
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
func opensHole(l *facts.Language, text string) bool {
	for _, h := range l.Holes {
		if strings.HasPrefix(text, h) {
			return true
		}
	}
	return false
}

// StringToken reads one string that begins at text[i].
func StringToken(e *interp.Env, text string, i int, lang string) Token {
	quote := text[i]
	start := i + 1
	if lang == "python" && strings.HasPrefix(text[i:], strings.Repeat(string(quote), 3)) {
		start = i + 3
		if j := strings.Index(text[start:], strings.Repeat(string(quote), 3)); j >= 0 {
			return Token{Kind: 's', Text: text[start : start+j], From: start, To: start + j, Exact: true}
		}
		return Token{Kind: 's', Text: text[start:], From: start, To: len(text), Exact: true}
	}
	l := e.Code.Language(lang)
	template := quote == '`' || quote == '"' && lang != "node" && lang != "python" ||
		i > 0 && (text[i-1] == 'f' || text[i-1] == 'F') && lang == "python"
	t := Token{Kind: 's', From: start, Exact: true}
	if quote == '`' && l.Ticks != "text" {
		t.Kind = 'x'
	}
	var b []byte
	j := start
	for ; j < len(text) && text[j] != quote; j++ {
		switch {
		case text[j] == '\\' && j+1 < len(text):
			t.Exact = false
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
		case template && opensHole(l, text[j:]):
			k := Balanced(text[j+strings.IndexAny(text[j:], "({"):])
			end := j + strings.IndexAny(text[j:], "({") + k
			if end >= len(text) {
				b = append(b, text[j])
				continue
			}
			t.Exact = false
			t.Holes = append(t.Holes, text[j+strings.IndexAny(text[j:], "({")+1:end])
			b = append(b, scan.Hole)
			j = end
		default:
			b = append(b, text[j])
		}
	}
	t.Text, t.To = string(b), min(j, len(text))
	return t
}
