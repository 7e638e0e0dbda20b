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

// The kinds of tokens that are more than one sign.
const (
	String  = 's'
	Command = 'x' // text in backticks, which a shell runs
	Name    = 'i' // with its dots
)

// Token is a token of a program text in any of the scripting languages.
type Token struct {
	Kind     byte     // String, Command, Name, else the sign itself
	Text     string   // of a string its value, unknown parts as holes
	From, To int      // in the source; of a string the bytes between its quotes
	Exact    bool     // text is verbatim there
	List     bool     // text is the words of a list, joined by blanks
	Holes    []string // the expressions that are in the text's holes
	Computed bool     // a name that the text puts together
	Partner  int32    // of a bracket: how far off the one is that belongs to it, or unpaired; 0 if it was not looked for
}

// Unpaired says of a bracket that the text does not close or open it.
const Unpaired = 1 << 30

// Pair sets the Partner of every bracket, so that no reader has to search for it. Each
// kind of bracket is counted by itself. It returns how many of the tokens are nested no
// deeper than scan.MaxNesting.
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

// scanner is where the reading of a program text stands.
type scanner struct {
	e    *interp.Env
	text string
	lang string
	how  *facts.Language
	at   int
	out  []Token
}

// scanInline cuts a program text into tokens. It knows strings and comments and
// nothing else, which is enough to tell a call from a mention.
func scanInline(e *interp.Env, text, lang string) []Token {
	s := &scanner{e: e, text: text, lang: lang, how: e.Language(lang)}
	for s.at < len(text) && len(s.out) < 4096 && e.Budget.Spend(1) {
		if end := comment(s.how, text, s.at); end > 0 {
			s.at = end
			continue
		}
		_ = s.blank() || s.char() || s.dashed() || s.longString() || s.angles() || s.quoted() || s.name() ||
			s.wordList() || s.percentString() || s.command() || s.sign()
	}
	return s.out
}

// add adds a token and goes on after it.
func (s *scanner) add(t Token, next int) bool {
	s.out, s.at = append(s.out, t), min(next, len(s.text))
	return true
}

// starts tells whether the rest of the text begins so.
func (s *scanner) starts(with string) bool { return strings.HasPrefix(s.text[s.at:], with) }

func (s *scanner) blank() bool {
	switch s.text[s.at] {
	case ' ', '\t', '\n', '\r':
		s.at++
		return true
	}
	return false
}

// char is a character in single quotes, where these hold one.
func (s *scanner) char() bool {
	if s.text[s.at] != '\'' || !s.how.Chars {
		return false
	}
	i := s.at
	end := charEnd(s.text, i)
	if s.at = end + 1; end > i+1 {
		s.out = append(s.out, Token{Kind: String, Text: scan.Unescape(s.text[i+1 : end]), From: i + 1, To: end})
	}
	return true
}

// dashed is a method after a colon.
func (s *scanner) dashed() bool {
	i := s.at
	if s.text[i] != ':' || !s.how.Dashes || i+1 >= len(s.text) || !scan.IsNameByte(s.text[i+1]) {
		return false
	}
	j := i + 1
	for j < len(s.text) && scan.IsNameByte(s.text[j]) {
		j++
	}
	return s.add(Token{Kind: Name, Text: "." + s.text[i+1:j], From: i, To: j}, j)
}

// longString is Lua's [[text]].
func (s *scanner) longString() bool {
	if s.lang != "lua" || !s.starts("[[") {
		return false
	}
	n := strings.Index(s.text[s.at:], "]]")
	return n >= 0 && s.add(verbatim(s.text, s.at+2, s.at+n), s.at+n+2)
}

// angles is Raku's list of words, <rm -rf>.
func (s *scanner) angles() bool {
	i := s.at
	if s.lang != "raku" || s.text[i] != '<' || i == 0 || s.text[i-1] != ' ' && s.text[i-1] != '(' {
		return false
	}
	n := strings.IndexByte(s.text[i:], '>')
	if n < 0 {
		return false
	}
	t := verbatim(s.text, i+1, i+n)
	t.Text = strings.TrimSpace(t.Text)
	return s.add(t, i+n+1)
}

// verbatim is a string that is so in the text.
func verbatim(text string, from, to int) Token {
	return Token{Kind: String, Text: text[from:to], From: from, To: to, Exact: true}
}

// quoted is a string in quotes.
func (s *scanner) quoted() bool {
	c := s.text[s.at]
	if c != '"' && c != '\'' && c != '`' {
		return false
	}
	t := StringToken(s.e, s.text, s.at, s.lang)
	next := t.To + 1
	if s.lang == "python" && t.From > 2 && strings.HasPrefix(s.text[t.From-1:], strings.Repeat(string(c), 3)) {
		next = t.To + 3
	}
	return s.add(t, next)
}

// name is a name with its dots, or a string that a name begins: qx{ls}.
func (s *scanner) name() bool {
	i, text := s.at, s.text
	if c := text[i]; !scan.IsNameByte(c) && c != '$' && c != '@' && c != '.' {
		return false
	}
	j := i + 1
	for j < len(text) && s.inName(j) {
		j++
	}
	if t, ok := quotedWord(text, i, j, s.lang); ok {
		return s.add(t, t.To+1)
	}
	name := text[i:j]
	if s.lang == "node" && strings.HasPrefix(text[j:], `\u`) {
		name, j = escapedName(text, i, j)
	}
	return s.add(Token{Kind: Name, Text: name, From: i, To: j}, j)
}

// inName tells whether a name goes on with the byte at j.
func (s *scanner) inName(j int) bool {
	switch c := s.text[j]; c {
	case '.':
		return true
	case ':':
		return s.text[j-1] == ':' || strings.HasPrefix(s.text[j:], "::") || s.lang == "erlang" && j+1 < len(s.text) && scan.IsNameByte(s.text[j+1])
	case '!':
		return s.lang == "ruby" || s.lang == "elixir" || s.lang == "crystal"
	default:
		return scan.IsNameByte(c)
	}
}

// command is Ruby's %x(command).
func (s *scanner) command() bool {
	if s.lang != "ruby" || !s.starts("%x") || s.at+2 >= len(s.text) {
		return false
	}
	t, ok := quotedWord(s.text, s.at+1, s.at+2, "perl")
	t.Kind = Command
	return ok && s.add(t, t.To+1)
}

// sign is any other byte, or a sign of assignment.
func (s *scanner) sign() bool {
	i := s.at
	if n := assigns(s.text[i:], s.lang); n > 0 {
		return s.add(Token{Kind: '=', Text: "=", From: i, To: i + n}, i+n)
	}
	return s.add(Token{Kind: s.text[i], Text: s.text[i : i+1], From: i, To: i + 1}, i+1)
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

// bracketed gives where the text ends that the bracket at i opens, of any of four kinds, or
// -1; it looks for no bracket inside.
func bracketed(text string, i int) int {
	open := strings.IndexByte("([{<", text[i])
	if open < 0 {
		return -1
	}
	n := strings.IndexByte(text[i:], ")]}>"[open])
	if n < 0 {
		return -1
	}
	return i + n
}

// percentString is Ruby's %q(a), %Q{a} and %(a).
func (s *scanner) percentString() bool {
	if s.lang != "ruby" && s.lang != "crystal" || s.text[s.at] != '%' || s.at+2 >= len(s.text) {
		return false
	}
	j := s.at + 1
	if s.text[j] == 'q' || s.text[j] == 'Q' {
		j++
	}
	end := bracketed(s.text, j)
	return end >= 0 && s.add(verbatim(s.text, j+1, end), end+1)
}

// wordList is Ruby's %w[a b] as the tokens of ["a", "b"].
func (s *scanner) wordList() bool {
	i, text := s.at, s.text
	if s.lang != "ruby" || i+2 >= len(text) || !s.starts("%w") && !s.starts("%W") {
		return false
	}
	end := bracketed(text, i+2)
	if end < 0 {
		return false
	}
	s.add(Token{Kind: '[', Text: "[", From: i, To: i + 1}, i+3)
	for n := 0; s.at < end; n++ {
		word := strings.TrimLeft(text[s.at:end], " \t\n")
		at := end - len(word)
		if j := strings.IndexAny(word, " \t\n"); j >= 0 {
			word = word[:j]
		}
		if word == "" {
			break
		}
		if n > 0 {
			s.out = append(s.out, Token{Kind: ',', Text: ",", From: at, To: at})
		}
		s.add(verbatim(text, at, at+len(word)), at+len(word))
	}
	return s.add(Token{Kind: ']', Text: "]", From: end, To: end + 1}, end+1)
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
	if lang != "perl" || !quoteWords.Has(word) || j >= len(text) || scan.IsNameByte(text[j]) {
		return Token{}, false
	}
	end := bracketed(text, j)
	if n := strings.IndexByte(text[j+1:], text[j]); end < 0 && n >= 0 && strings.IndexByte("({[<", text[j]) < 0 {
		end = j + 1 + n
	}
	if end < 0 {
		return Token{}, false
	}
	t := verbatim(text, j+1, end)
	if word == "qx" || word == "x" {
		t.Kind = Command
	}
	return t, true
}

// quoteWords are before a string of perl.
var quoteWords = scan.SetOf("qx qq qw q x")

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

// StringToken reads one string that begins at text[i].
func StringToken(e *interp.Env, text string, i int, lang string) Token {
	quote := text[i]
	if three := strings.Repeat(text[i:i+1], 3); lang == "python" && strings.HasPrefix(text[i:], three) {
		if j := strings.Index(text[i+3:], three); j >= 0 {
			return verbatim(text, i+3, i+3+j)
		}
		return verbatim(text, i+3, len(text))
	}
	l := e.Language(lang)
	t := Token{Kind: String, From: i + 1, Exact: true}
	if quote == '`' && l.Ticks != "text" {
		t.Kind = Command
	}
	var b []byte
	j, holes := i+1, l.Holes
	if !isTemplate(text, i, lang) {
		holes = nil
	}
	for ; j < len(text) && text[j] != quote; j++ {
		if text[j] == '\\' && j+1 < len(text) {
			t.Exact = false
			char, used := escape(text[j:])
			b = append(b, char...)
			j += used - 1
		} else if from, end := hole(holes, text, j); end > 0 {
			t.Exact = false
			t.Holes = append(t.Holes, text[from:end])
			b = append(b, scan.Hole)
			j = end
		} else {
			b = append(b, text[j])
		}
	}
	t.Text, t.To = string(b), min(j, len(text))
	return t
}

// isTemplate: the string that begins at text[i] may hold expressions.
func isTemplate(text string, i int, lang string) bool {
	switch {
	case text[i] == '`':
		return true
	case lang == "python":
		return i > 0 && (text[i-1] == 'f' || text[i-1] == 'F')
	}
	return text[i] == '"' && lang != "node"
}

// hole is where the expression stands that one of the signs opens inside of a string, at
// text[j]; its end is 0 if there is none.
func hole(opens []string, text string, j int) (from, end int) {
	if !scan.HasAnyPrefix(text[j:], opens...) {
		return 0, 0
	}
	open := j + strings.IndexAny(text[j:], "({")
	if end = open + Balanced(text[open:]); end >= len(text) {
		return 0, 0
	}
	return open + 1, end
}

// escape is what the backslash that a text begins with stands for, and how long it is.
func escape(text string) (string, int) {
	if c := text[1]; c >= '0' && c <= '7' {
		n, used := scan.Digits(text[1:], 8, 3)
		return string([]byte{byte(n)}), 1 + used
	}
	if r, used := scan.UnicodeEscape(text[1:]); used > 0 {
		return string(r), 1 + used
	}
	if e := scan.Unescape(text[:min(4, len(text))]); text[1] == 'x' && len(e) > 0 {
		return e[:1], 4
	}
	return scan.Unescape(text[:2]), 2
}
