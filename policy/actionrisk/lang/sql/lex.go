package sql

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// The lexer cuts a text into tokens that together are the same text again. Where two SQL dialects
// would cut differently, a Reading decides. The classifier tries every reading that could give a
// different result.

// Reading is a set of bits, one for each way of cutting a text into tokens. The ways contradict
// each other, as in the meaning of a backslash.
type Reading uint8

const (
	// ANSI is for PostgreSQL, SQLite, SQL Server and Oracle: "--" is a comment, a backslash is a
	// normal character except in E'…', /* */ nests, and $tag$…$tag$ is a string.
	ANSI Reading = 1 << iota
	// MySQL: "#" is a comment, "--" needs white space after it, a backslash escapes, /* */ does
	// not nest, and /*! */ is code.
	MySQL
	// Slash is for Cassandra and Snowflake: "//" is a comment, and a backslash escapes.
	Slash

	// AnyReading is the set of all readings, for an unknown server.
	AnyReading = ANSI | MySQL | Slash
)

// sqlKind is the kind of a token.
type sqlKind uint8

const (
	sqlSpace   sqlKind = iota
	sqlComment         // a comment, or a mark of a comment that MySQL executes
	sqlWord            // unquoted name or keyword
	sqlName            // quoted name: "…" `…` […]
	sqlString          // string: '…' and its forms with a prefix, $tag$…$tag$
	sqlNumber
	sqlParam // parameter: ? :name @name $1 {{name}}
	sqlOp    // operator or punctuation
	sqlEnd   // end of a statement: ;, the delimiter of a client, GO, \g and similar
	sqlMeta  // client command of one line: \! …, .shell …
)

// sqlToken is a token of the text at bytes [Start,End). depth is the number of parentheses around
// it.
type sqlToken struct {
	kind       sqlKind
	depth      int16
	Start, End int
	word       string // the keyword in lower case, or "" for another token
}

// keywordList contains every word that the classifier compares.
const keywordList = `
abort access account add admin advisor after alias all allow alter analyse analyze and anonymous any append array as asc assembly asymmetric attach
attribute authorization backup before begin between binary bucket bulk by bypassrls cache call cascade case cast catalog certificate change channel
character check checkpoint chunk class close cluster collation collection column columns comment commit concurrently connection connector constraint
container conversion copy create createrole credential cross cursor data database databases dba dbcc deallocate declare default deferrable
definer delete delimiter deny desc describe detach dictionary dimension directory disable discard disconnect disk distinct do domain drop dump
dumpfile dynamic each edge elasticsearch else elseif elsif enable encryption end endpoint engine escape event except exchange exclude exclusive exec
execute exists exit expire explain export expression extension external failed false family fetch file filegroup files filter first flashback flush for force
foreign format from full fulltext function functions garbage generated generator global go grant grants graph group handler having header help hint
history host identified if ignore ilike immediate import in index indexes infile inner inpath input insert install instance instead integration
intersect into is isolation job join key keys keyspace kill language large last lateral left level library like limit link listener load local
location lock locks log logged login logs loop mapping master match matched materialized member merge migration mode model modify move name names
nested network next no nocheck node not nothing null of off offline offset on online only open operator optimize option or order out outfile outline
output over overwrite owned owner package parameter partition partitions password permanent permanently persist pipe plan plperlu plpython2u
plpython3u plpythonu plsh pltclu pluggable plugin policies policy pragma prepare primary print privileges proc procedure process processlist profile
program projection property proxy public publication purge query quick quota raise raiserror read reassign rebuild reconfigure recover recovery
recreate recycle references refresh regexp reindex relay release reload remote remove rename repair replace replica replication reset resource restart
restore restrict resume return returning revoke right rlike role roles rollback routine row rows rule rules runscript savepoint schema schemas score
search sec secret security select sequence sequences server service session set settings share show shutdown similar sink skip slave some soname
source sql stage start starts statistics status stdin stdout stop storage stream streams strict structure subpartition subscription superuser suspend
symmetric synonym system table tables tablespace tag task temp template temporary text then to top topic tran transaction transform trigger true
truncate trust type undo undrop union unique unload unlock unlogged unset unused update upsert use user users using vacuum valid validate value values
version view views volume warehouse when where while window with within without work workload xmin xml xor xp_cmdshell zone
`

var keywords = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(keywordList) {
		m[w] = w
	}
	return m
})

// lexer is the state of the lexer for one text in one reading.
type lexer struct {
	text      string
	read      Reading
	pos       int
	depth     int16
	code      int  // number of open executable comments
	fresh     bool // at the start of a statement, where client commands are recognized
	lineStart bool // only white space so far on this line
	delimiter string
	last      sqlToken // the last token that is not white space or a comment
}

// tokensOf returns the tokens of a text in one reading, including white space and comments.
func tokensOf(text string, read Reading) []sqlToken {
	lx := lexer{text: text, read: read, fresh: true, lineStart: true}
	tokens := make([]sqlToken, 0, len(text)/4+4)
	for lx.pos < len(text) {
		tokens = append(tokens, lx.next())
	}
	return tokens
}

// next returns the token at pos and advances pos.
func (lx *lexer) next() sqlToken {
	start := lx.pos
	kind := lx.scan()
	t := sqlToken{kind: kind, depth: lx.depth, Start: start, End: lx.pos}
	switch kind {
	case sqlSpace:
		lx.lineStart = lx.lineStart || strings.ContainsAny(lx.text[start:lx.pos], "\n\r")
		return t
	case sqlComment:
		return t
	case sqlWord:
		lx.word(&t)
	case sqlOp:
		lx.nest(&t)
	}
	if t.kind == sqlEnd {
		lx.depth, t.depth = 0, 0
	}
	lx.fresh = t.kind == sqlEnd || t.kind == sqlMeta
	lx.lineStart = t.kind == sqlMeta
	lx.last = t
	return t
}

// word sets the keyword of a word token. GO and DELIMITER are client commands, and change the kind
// of the token.
func (lx *lexer) word(t *sqlToken) {
	t.word = sqlKeyword(lx.text[t.Start:t.End])
	switch {
	case t.word == "go" && lx.lineStart && lx.lineEnds():
		t.kind = sqlEnd
	case t.word == "delimiter" && lx.fresh:
		lx.setDelimiter()
		t.kind, t.End = sqlMeta, lx.pos
	}
}

// nest updates the depth of parentheses.
func (lx *lexer) nest(t *sqlToken) {
	switch lx.text[t.Start] {
	case '(':
		lx.depth++
	case ')':
		lx.depth = max(0, lx.depth-1)
		t.depth = lx.depth
	}
}

// scan moves pos after the next token and returns its kind.
func (lx *lexer) scan() sqlKind {
	if n := lx.endMark(); n > 0 {
		lx.pos += n
		return sqlEnd
	}
	if kind, ok := lx.comment(); ok {
		return kind
	}
	c, next := lx.at(0), lx.at(1)
	if kind, ok := lx.quotation(c); ok {
		return kind
	}
	switch {
	case c <= ' ' || c >= utf8.RuneSelf:
		return lx.scanSpace()
	case c == '\\':
		return lx.backslash()
	case lx.startsMeta(c, next):
		lx.line()
		return sqlMeta
	case isDigit(c), c == '.' && isDigit(next):
		return lx.number()
	case IsLetter(c):
		return lx.wordOrPrefixed()
	}
	return lx.sign(c, next)
}

// at returns the byte n after pos, or 0 after the end of the text.
func (lx *lexer) at(n int) byte {
	if lx.pos+n >= len(lx.text) {
		return 0
	}
	return lx.text[lx.pos+n]
}

// past returns the distance from pos to the first byte, from pos+n on, for which the test returns
// false.
func (lx *lexer) past(n int, so func(byte) bool) int {
	for lx.pos+n < len(lx.text) && so(lx.text[lx.pos+n]) {
		n++
	}
	return n
}

// take moves pos n bytes forward and returns the kind.
func (lx *lexer) take(n int, kind sqlKind) sqlKind {
	lx.pos = min(lx.pos+n, len(lx.text))
	return kind
}

// endMark returns the length of the statement delimiter at pos, or 0.
func (lx *lexer) endMark() int {
	if lx.delimiter != "" && strings.HasPrefix(lx.text[lx.pos:], lx.delimiter) {
		return len(lx.delimiter)
	}
	if lx.at(0) == ';' {
		return 1
	}
	return 0
}

// startsMeta reports whether the sign c starts a client command of one line.
func (lx *lexer) startsMeta(c, next byte) bool {
	return lx.fresh && lx.lineStart && (c == '!' || c == '.' && IsLetter(next))
}

// sign reads a parameter, a {{template}} parameter or an operator.
func (lx *lexer) sign(c, next byte) sqlKind {
	switch {
	case c == '?', c == '@', c == ':' && IsLetter(next) && (lx.pos == 0 || lx.text[lx.pos-1] != ':'):
		return lx.param()
	case c == '{' && next == '{':
		if n := strings.Index(lx.text[lx.pos:], "}}"); n >= 0 {
			return lx.take(n+2, sqlParam)
		}
	}
	return lx.operator()
}

// comment reads a comment in this reading, or the end mark of an executable comment. It returns
// false if there is none at pos.
func (lx *lexer) comment() (sqlKind, bool) {
	switch mark := lx.text[lx.pos:min(lx.pos+2, len(lx.text))]; {
	case mark == "--" && (lx.read != MySQL || lx.at(2) <= ' '), mark == "//" && lx.read == Slash, mark[0] == '#' && lx.read == MySQL:
		return lx.line(), true
	case mark == "/*":
		lx.blockComment()
		return sqlComment, true
	case mark == "*/" && lx.code > 0:
		lx.code--
		return lx.take(2, sqlComment), true
	}
	return 0, false
}

// quotation reads a string or name in quotes. It returns false if c is not a quote.
func (lx *lexer) quotation(c byte) (sqlKind, bool) {
	switch c {
	case '\'':
		return lx.quoted(lx.pos, c, lx.read != ANSI, sqlString), true
	case '"':
		return lx.quoted(lx.pos, c, lx.read == MySQL, sqlName), true
	case '`':
		return lx.quoted(lx.pos, c, false, sqlName), true
	case '[':
		return lx.bracket(), true
	case '$':
		return lx.dollar(), true
	}
	return 0, false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsLetter reports whether a byte can begin a word of SQL.
func IsLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// IsWordByte reports whether a byte can be part of a word of SQL.
func IsWordByte(c byte) bool {
	return IsLetter(c) || isDigit(c) || c == '$' || c >= utf8.RuneSelf
}

// isBlank reports whether a character is white space, including Unicode's, or invisible.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' }

// sqlKeyword returns the keyword in lower case, or "" for another word. The result shares memory
// with the keyword list.
func sqlKeyword(w string) string {
	var buf [16]byte
	if len(w) > len(buf) {
		return ""
	}
	for i := 0; i < len(w); i++ {
		c := w[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return keywords()[string(buf[:len(w)])]
}

// scanSpace reads white space, including Unicode's. If there is none, the non-ASCII character at
// pos starts a word, and scanSpace reads that.
func (lx *lexer) scanSpace() sqlKind {
	start := lx.pos
	for lx.pos < len(lx.text) {
		c := lx.text[lx.pos]
		if c <= ' ' {
			lx.pos++
			continue
		}
		r, n := utf8.DecodeRuneInString(lx.text[lx.pos:])
		if c < utf8.RuneSelf || !isBlank(r) {
			break
		}
		lx.pos += n
	}
	if lx.pos > start {
		return sqlSpace
	}
	return lx.take(lx.past(0, IsWordByte), sqlWord)
}

// line reads the rest of the line, without the line end.
func (lx *lexer) line() sqlKind {
	if n := strings.IndexAny(lx.text[lx.pos:], "\n\r"); n >= 0 {
		lx.pos += n
	} else {
		lx.pos = len(lx.text)
	}
	return sqlComment
}

// lineEnds reports whether only white space or a count, as in "GO 5", follows on the line.
func (lx *lexer) lineEnds() bool {
	rest := lx.text[lx.pos:]
	if n := strings.IndexAny(rest, "\n\r"); n >= 0 {
		rest = rest[:n]
	}
	return strings.Trim(rest, " \t0123456789") == ""
}

// blockComment reads /* … */. If the comment is executable, it reads only the opening mark.
func (lx *lexer) blockComment() {
	s := lx.text
	lx.pos += 2
	if lx.read == MySQL && lx.executable() {
		return
	}
	nested := 1
	for lx.pos < len(s) {
		switch {
		case strings.HasPrefix(s[lx.pos:], "*/"):
			lx.pos += 2
			if nested--; nested == 0 {
				return
			}
		case lx.read == ANSI && strings.HasPrefix(s[lx.pos:], "/*"):
			lx.pos += 2
			nested++
		default:
			lx.pos++
		}
	}
}

// executable reads the opening mark, with an optional version number, of a comment that MySQL or
// MariaDB executes. It returns false for other comments.
func (lx *lexer) executable() bool {
	switch rest := lx.text[lx.pos:]; {
	case strings.HasPrefix(rest, "!"):
		lx.pos++
	case strings.HasPrefix(rest, "M!"), strings.HasPrefix(rest, "m!"):
		lx.pos += 2
	default:
		return false
	}
	lx.pos += min(6, lx.past(0, isDigit))
	lx.code++
	return true
}

// quoted reads a quoted token. The parameter "open" is the index of the opening quote; a doubled
// quote does not end the token.
func (lx *lexer) quoted(open int, quote byte, escapes bool, kind sqlKind) sqlKind {
	s := lx.text
	i := open + 1
	for i < len(s) {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] == quote:
			if i+1 >= len(s) || s[i+1] != quote {
				lx.pos = i + 1
				return kind
			}
			i++
		}
		i++
	}
	lx.pos = len(s)
	return kind
}

// bracket reads a [quoted name], or only the "[" if it starts an index.
func (lx *lexer) bracket() sqlKind {
	s, i := lx.text, lx.pos
	touches := i > 0 && lx.last.End == i &&
		(lx.last.kind == sqlWord || lx.last.kind == sqlName || s[i-1] == ')' || s[i-1] == ']')
	if touches {
		lx.pos++
		return sqlOp
	}
	for i < len(s) {
		if s[i] == ']' && (i+1 >= len(s) || s[i+1] != ']') {
			lx.pos = i + 1
			return sqlName
		} else if s[i] == ']' {
			i++
		}
		i++
	}
	lx.pos++
	return sqlOp
}

// dollar reads $tag$…$tag$, a numbered parameter, ${name} of a shell or template, or only the
// "$".
func (lx *lexer) dollar() sqlKind {
	if n := lx.past(1, isDigit); n > 1 {
		return lx.take(n, sqlParam)
	}
	n := lx.past(1, func(c byte) bool { return IsLetter(c) || isDigit(c) })
	rest := lx.text[lx.pos:]
	switch {
	case lx.read == ANSI && lx.at(n) == '$':
		tag := rest[:n+1]
		if end := strings.Index(rest[n+1:], tag); end >= 0 {
			return lx.take(end+2*len(tag), sqlString)
		}
		return lx.take(len(rest), sqlString)
	case lx.at(n) == '{':
		if end := strings.IndexByte(rest[n:], '}'); end >= 0 {
			return lx.take(n+end+1, sqlParam)
		}
	}
	kind := sqlOp
	if IsLetter(rest[n-1]) {
		kind = sqlParam
	}
	return lx.take(n, kind)
}

// runsBefore lists commands of psql and mysql that end and run the statement before them.
var runsBefore = scan.SetOf("g G gx gexec gset gdesc watch crosstabview")

// backslash reads a client command up to the end of the line. Commands of runsBefore end a
// statement.
func (lx *lexer) backslash() sqlKind {
	n := lx.past(1, IsLetter)
	switch name := lx.text[lx.pos+1 : lx.pos+n]; {
	case runsBefore.Has(name):
		lx.line()
		return sqlEnd
	case name != "", strings.IndexByte("!.?", lx.at(1)) >= 0:
		lx.line()
		return sqlMeta
	}
	return lx.take(1, sqlOp)
}

// setDelimiter reads the rest of a DELIMITER line.
func (lx *lexer) setDelimiter() {
	from := lx.pos
	lx.line()
	lx.delimiter = strings.TrimSpace(lx.text[from:lx.pos])
	if lx.delimiter == ";" || len(lx.delimiter) > 8 {
		lx.delimiter = ""
	}
}

// number reads a numeral, including hexadecimal digits, fraction and exponent.
func (lx *lexer) number() sqlKind {
	hex, last := strings.HasPrefix(lx.text[lx.pos:], "0x"), byte(0)
	return lx.take(lx.past(0, func(c byte) bool {
		signs := !hex && (c == '+' || c == '-') && last|0x20 == 'e' // the sign belongs to an exponent
		last = c
		return signs || isDigit(c) || c == '.' || IsLetter(c)
	}), sqlNumber)
}

// wordOrPrefixed reads a word, or a string with a prefix such as E'…'.
func (lx *lexer) wordOrPrefixed() sqlKind {
	n := lx.wordLength()
	if n == 1 {
		switch c := lx.at(0) | 0x20; {
		case lx.at(1) == '\'' && strings.IndexByte("enxbrq", c) >= 0:
			return lx.quoted(lx.pos+1, '\'', c == 'e' || lx.read != ANSI, sqlString)
		case lx.at(1) == '&' && lx.at(2) == '\'' && c == 'u':
			return lx.quoted(lx.pos+2, '\'', false, sqlString)
		}
	}
	return lx.take(n, sqlWord)
}

// wordLength returns the length in bytes of the word at pos.
func (lx *lexer) wordLength() int {
	s, i := lx.text, lx.pos
	for i < len(s) && IsWordByte(s[i]) {
		if s[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if isBlank(r) {
				break
			}
			i += n - 1
		}
		i++
	}
	return i - lx.pos
}

// param reads ?, :name, @name or @@name.
func (lx *lexer) param() sqlKind {
	n := 1
	if lx.at(1) == '@' {
		n = 2
	}
	if lx.at(0) != '?' {
		n = lx.past(n, IsWordByte)
	}
	if lx.pos+n < len(lx.text) && lx.at(n-1) == '@' {
		return lx.take(n, sqlOp)
	}
	return lx.take(n, sqlParam)
}

// operator reads one operator. Operators of several characters are read as one token, because
// their parts have other meanings.
func (lx *lexer) operator() sqlKind {
	for _, op := range [...]string{"<=>", "->>", "!~*", "<>", "!=", "<=", ">=", "==", "::", ":=", "||", "&&", "->", "~*", "!~"} {
		if strings.HasPrefix(lx.text[lx.pos:], op) {
			return lx.take(len(op), sqlOp)
		}
	}
	return lx.take(1, sqlOp)
}
