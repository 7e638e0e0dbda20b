// Package tokens splits program texts of many languages into tokens. It recognizes strings,
// comments and brackets; the caller interprets the names.
package tokens

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Kinds of tokens. The kind of any other token is its single character.
const (
	String  = 's'
	Command = 'x' // text in backticks, which a shell runs
	Name    = 'i' // a name with its dots: os.remove
)

// Token is a token of a program text in any of the scripting languages.
type Token struct {
	Kind     byte     // String, Command, Name, or the character itself
	Text     string   // for a string, its value; each unknown part is one byte, scan.Hole
	From, To int      // offsets in the source; for a string, without its quotes
	Exact    bool     // the source has Text unchanged at From
	List     bool     // Text is the elements of a list, joined by blanks
	Holes    []string // the expressions whose values are unknown, one for each hole in Text
	Computed bool     // the name is computed by an expression of the program
	Partner  int32    // for a bracket: the distance in tokens to the matching one, or Unpaired; 0 before Pair is called
}

// Unpaired is the Partner of a bracket that has no matching bracket.
const Unpaired = 1 << 30

// Pair sets the Partner of every bracket, so that no reader must search for it. The three types of
// brackets are matched independently. It returns the number of tokens before the first one that is
// nested deeper than scan.MaxNesting.
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

// Tokens splits a program text into tokens and pairs its brackets. If the text is nested deeper
// than scan.MaxNesting, it returns the tokens before that and sets e.TooDeep.
func Tokens(e *interp.Env, text, lang string) []Token {
	toks := scanInline(e, text, lang)
	if n := Pair(toks); n < len(toks) {
		e.TooDeep = true
		toks = toks[:n]
	}
	return toks
}

// scanner is the state of splitting one program text.
type scanner struct {
	e    *interp.Env
	text string
	lang string
	how  *facts.Language
	at   int
	out  []Token
}

// scanInline splits a program text into tokens. It recognizes strings and comments and nothing
// else, which is enough to distinguish a call from a mention in a string.
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

// add appends a token and moves on to the offset "next". It always returns true.
func (s *scanner) add(t Token, next int) bool {
	s.out, s.at = append(s.out, t), min(next, len(s.text))
	return true
}

// starts reports whether the rest of the text begins with a prefix.
func (s *scanner) starts(with string) bool { return strings.HasPrefix(s.text[s.at:], with) }

func (s *scanner) blank() bool {
	switch s.text[s.at] {
	case ' ', '\t', '\n', '\r':
		s.at++
		return true
	}
	return false
}

// char reads a character in single quotes, in languages that write characters like this.
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

// dashed reads the name of a method after a colon, as in Lua.
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

// longString reads a string of Lua in double brackets: [[text]].
func (s *scanner) longString() bool {
	if s.lang != "lua" || !s.starts("[[") {
		return false
	}
	n := strings.Index(s.text[s.at:], "]]")
	return n >= 0 && s.add(verbatim(s.text, s.at+2, s.at+n), s.at+n+2)
}

// angles reads a list of words in Raku: <rm -rf>.
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

// verbatim returns the token of a string without escapes.
func verbatim(text string, from, to int) Token {
	return Token{Kind: String, Text: text[from:to], From: from, To: to, Exact: true}
}

// quoted reads a string in quotes or backticks.
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

// name reads a name with its dots, or a string that begins with a name: qx{ls}.
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

// inName reports whether the byte at j continues a name.
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

// command reads a command in Ruby: %x(command).
func (s *scanner) command() bool {
	if s.lang != "ruby" || !s.starts("%x") || s.at+2 >= len(s.text) {
		return false
	}
	t, ok := quotedWord(s.text, s.at+1, s.at+2, "perl")
	t.Kind = Command
	return ok && s.add(t, t.To+1)
}

// sign reads an assignment operator or a single character.
func (s *scanner) sign() bool {
	i := s.at
	if n := assigns(s.text[i:], s.lang); n > 0 {
		return s.add(Token{Kind: '=', Text: "=", From: i, To: i + n}, i+n)
	}
	return s.add(Token{Kind: s.text[i], Text: s.text[i : i+1], From: i, To: i + 1}, i+1)
}

// assigns returns the length of an assignment operator that is longer than "=", or 0.
func assigns(text, lang string) int {
	switch {
	case strings.HasPrefix(text, ":=") && lang != "make":
		return 2
	case strings.HasPrefix(text, "<-") && lang == "r":
		return 2
	}
	return 0
}

// bracketed returns the offset of the first closing bracket that matches the bracket at i, or -1.
// It does not count nested brackets.
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

// percentString reads a string in Ruby or Crystal: %q(a), %Q{a} or %(a).
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

// wordList reads %w[a b] in Ruby and adds the tokens of ["a", "b"].
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

// comment returns the end of the comment that begins at i, or 0 if none begins there.
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
			if i > 0 && text[i-1] == '$' { // in Perl, $# is the length of an array
				return 0
			}
		}
		return max(scan.LineEnd(text, i), i+1)
	}
	return 0
}

// charEnd returns the offset of the quote that closes the character opened at i. It returns i if
// this single quote opens none, as in a lifetime of Rust or a name of Haskell.
func charEnd(text string, i int) int {
	for _, n := range [...]int{2, 3, 5} {
		if i+n < len(text) && text[i+n] == '\'' && (n == 2 || text[i+1] == '\\') {
			return i + n
		}
	}
	return i
}

// quotedWord reads q(), qq{} and qx// in Perl, and what follows the "%" of %x() in Ruby.
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

// quoteWords are the names that begin a string in Perl.
var quoteWords = scan.SetOf("qx qq qw q x")

// escapedName reads the rest of a JavaScript name that contains escapes: e\u0078ec. It returns the
// name without escapes, and its end.
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

// StringToken reads the string that begins at text[i].
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

// isTemplate reports whether the string that begins at text[i] may contain expressions.
func isTemplate(text string, i int, lang string) bool {
	switch {
	case text[i] == '`':
		return true
	case lang == "python":
		return i > 0 && (text[i-1] == 'f' || text[i-1] == 'F')
	}
	return text[i] == '"' && lang != "node"
}

// hole returns the range of the expression that is embedded in a string at text[j], after one of
// the prefixes in opens. end is 0 if there is none.
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

// escape returns the character of the escape at the start of the text, and the length of the
// escape in bytes.
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
