package sql

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The SQL lexer knows no dialect. It cuts a text into tokens that join to the
// same text again, and where two dialects would cut differently it takes a
// reading; the classifier runs every reading that could differ.

// Reading is a set of lexical conventions that contradict each other.
type Reading uint8

const (
	// ANSI: "--" is a comment, a backslash is a letter except in E'…', /* */
	// nests, $tag$…$tag$ quotes (PostgreSQL, SQLite, SQL Server, Oracle).
	ANSI Reading = 1 << iota
	// MySQL: "#" is a comment, "--" needs white space after it, a backslash
	// escapes, /* */ does not nest, /*! */ is code.
	MySQL
	// Slash: "//" is a comment (CQL, Snowflake); a backslash escapes.
	Slash

	// AnyReading is all of them: nobody knows which server it is.
	AnyReading = ANSI | MySQL | Slash
)

// Kind is what a token is.
type sqlKind uint8

const (
	sqlSpace   sqlKind = iota
	sqlComment         // also the open and close marks of an executable comment
	sqlWord            // unquoted name or keyword
	sqlName            // "…" `…` […]
	sqlString          // '…' and its prefixed forms, $tag$…$tag$
	sqlNumber
	sqlParam // ? :name @name $1 {{name}}
	sqlOp    // operator or punctuation
	sqlEnd   // ; or a client's delimiter, GO, \g and its like
	sqlMeta  // a client command of one line: \! …, .shell …
)

// Token is a part of the text. Depth counts the parentheses around it.
type sqlToken struct {
	kind       sqlKind
	depth      int16
	Start, End int
	word       string // lower-case keyword if it is one of keywords, else ""
}

// keywordList holds every word the classifier looks at.
const keywordList = `
abort access account add admin advisor after alias all allow alter analyse analyze and any anonymous append array as
asc assembly asymmetric attach attribute authorization backup before begin between binary bulk bypassrls by bucket cache call
cascade case cast catalog certificate change channel character check checkpoint chunk class close cluster collation collection column columns
comment commit concurrently connection connector constraint container conversion copy create createrole credential cross cursor
data database databases dba dbcc deallocate declare default deferrable definer delete delimiter deny desc describe detach
dictionary dimension directory disable discard disk distinct do domain drop dump dumpfile dynamic each edge elasticsearch
else elseif elsif enable encryption end endpoint engine event except exchange exclusive exec execute exists exit explain
expression external extension failed false family fetch file filegroup files filter first flashback flush for force foreign format
from full fulltext function functions garbage generator global go grant graph group grants handler having header help hint history host
identified if ignore ilike immediate import in index indexes infile inner inpath input insert install instance
instead integration intersect into is isolation job join key keyspace keys kill language large last left level library like
limit link lateral listener load local location lock locks log login logs loop mapping master match matched materialized member
merge migration mode model modify move name names nested network next no nocheck node not nothing null of off offline offset on
online only open operator optimize option or order out outfile outline output over overwrite owned owner package
parameter partition partitions password permanent permanently persist pipe plan plugin pluggable plperlu plpython2u plpython3u
plpythonu plsh pltclu policies policy pragma prepare primary print privileges procedure proc process processlist profile
program projection property proxy public publication purge query quick quota raise raiserror read reassign rebuild
reconfigure recover recovery recreate recycle references refresh regexp reindex relay release reload remote remove rename repair
replace replica replication reset resource restart restore restrict resume return returning revoke right rlike role
rollback roles routine row rows rule rules runscript savepoint schema schemas score sec secret security select sequence sequences server service session set
share show shutdown similar sink skip slave soname some source sql stage start starts statistics status stdin stdout stop
storage stream streams strict structure subscription superuser suspend symmetric synonym system table tables tablespace
tag task temp template temporary text then to top topic tran transaction transform trigger true truncate trust type
undo undrop union unique unload unlock unlogged unset unused update upsert use user users using vacuum valid validate value values version
view view views volume warehouse where when while window with within without work workload xml xor xp_cmdshell xmin zone
`

var keywords = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(keywordList) {
		m[w] = w
	}
	return m
})

// Lexer holds the state of one reading of one text.
type lexer struct {
	text      string
	read      Reading
	pos       int
	depth     int16
	code      int  // open executable comments
	fresh     bool // at the start of a statement: client commands are known here
	lineStart bool // nothing but white space on this line so far
	delimiter string
	last      sqlToken // the last significant token
}

// tokensOf cuts the text in one reading, white space and comments included.
func tokensOf(text string, read Reading) []sqlToken {
	lx := lexer{text: text, read: read, fresh: true, lineStart: true}
	tokens := make([]sqlToken, 0, len(text)/4+4)
	for lx.pos < len(text) {
		tokens = append(tokens, lx.next())
	}
	return tokens
}

// next returns the token at pos and moves behind it.
func (lx *lexer) next() sqlToken {
	start := lx.pos
	kind := lx.scan()
	if lx.pos <= start { // cannot happen; keeps the loop finite if it did
		lx.pos = start + 1
	}
	t := sqlToken{kind: kind, depth: lx.depth, Start: start, End: lx.pos}
	switch kind {
	case sqlSpace:
		if strings.ContainsAny(lx.text[start:lx.pos], "\n\r") {
			lx.lineStart = true
		}
		return t
	case sqlComment:
		return t
	case sqlWord:
		t.word = sqlKeyword(lx.text[start:lx.pos])
		if t.word == "go" && lx.lineStart && lx.lineEnds() {
			t.kind = sqlEnd
		}
		if t.word == "delimiter" && lx.fresh {
			lx.setDelimiter()
			t.kind, t.End = sqlMeta, lx.pos
		}
	case sqlOp:
		switch lx.text[start] {
		case '(':
			lx.depth++
		case ')':
			if lx.depth > 0 {
				lx.depth--
			}
			t.depth = lx.depth
		}
	}
	if t.kind == sqlEnd {
		lx.depth, t.depth = 0, 0
	}
	lx.fresh = t.kind == sqlEnd || t.kind == sqlMeta
	lx.lineStart = t.kind == sqlMeta
	lx.last = t
	return t
}

// scan moves pos behind the token and says what it is.
func (lx *lexer) scan() sqlKind {
	if lx.delimiter != "" && strings.HasPrefix(lx.text[lx.pos:], lx.delimiter) {
		lx.pos += len(lx.delimiter)
		return sqlEnd
	}
	rest := lx.text[lx.pos:]
	c, next := rest[0], byte(0)
	if len(rest) > 1 {
		next = rest[1]
	}
	if kind, ok := lx.comment(c, next); ok {
		return kind
	}
	if kind, ok := lx.quotation(c); ok {
		return kind
	}
	switch {
	case c <= ' ' || c >= utf8.RuneSelf:
		return lx.scanSpace()
	case c == '\\':
		return lx.backslash()
	case lx.fresh && lx.lineStart && (c == '!' || c == '.' && IsLetter(next)):
		lx.line()
		return sqlMeta
	case isDigit(c), c == '.' && isDigit(next):
		return lx.number()
	case IsLetter(c):
		return lx.wordOrPrefixed()
	case c == ';':
		lx.pos++
		return sqlEnd
	case c == '?', c == '@', c == ':' && IsLetter(next) && (lx.pos == 0 || lx.text[lx.pos-1] != ':'):
		return lx.param()
	case c == '{' && next == '{':
		return lx.template()
	}
	return lx.operator()
}

// comment takes a comment of the dialect that is read, or the end of one that MySQL
// runs.
func (lx *lexer) comment(c, next byte) (sqlKind, bool) {
	switch {
	case c == '-' && next == '-':
		if third := lx.pos + 2; lx.read != MySQL || third >= len(lx.text) || lx.text[third] <= ' ' {
			return lx.line(), true
		}
	case c == '#' && lx.read == MySQL, c == '/' && next == '/' && lx.read == Slash:
		return lx.line(), true
	case c == '/' && next == '*':
		return lx.blockComment(), true
	case c == '*' && next == '/' && lx.code > 0:
		lx.code--
		lx.pos += 2
		return sqlComment, true
	}
	return 0, false
}

// quotation takes what stands in quotes of any kind.
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

// IsLetter tells whether a byte may begin a word of SQL.
func IsLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// IsWordByte tells whether a byte may stand in a word of SQL.
func IsWordByte(c byte) bool {
	return IsLetter(c) || c >= '0' && c <= '9' || c == '$' || c >= utf8.RuneSelf
}

// Keyword returns the interned lower-case keyword, or "" for another word.
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

// scanSpace takes white space (Unicode's too) or one other character beyond
// ASCII, which starts a name.
func (lx *lexer) scanSpace() sqlKind {
	start := lx.pos
	for lx.pos < len(lx.text) {
		c := lx.text[lx.pos]
		if c <= ' ' {
			lx.pos++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, n := utf8.DecodeRuneInString(lx.text[lx.pos:])
		if !unicode.IsSpace(r) && r != '\ufeff' && r != '\u200b' {
			break
		}
		lx.pos += n
	}
	if lx.pos > start {
		return sqlSpace
	}
	for lx.pos < len(lx.text) && IsWordByte(lx.text[lx.pos]) {
		lx.pos++
	}
	return sqlWord
}

// line takes the rest of the line, without its end.
func (lx *lexer) line() sqlKind {
	if n := strings.IndexAny(lx.text[lx.pos:], "\n\r"); n >= 0 {
		lx.pos += n
	} else {
		lx.pos = len(lx.text)
	}
	return sqlComment
}

// lineEnds reports whether only white space or a count (GO 5) follows.
func (lx *lexer) lineEnds() bool {
	rest := lx.text[lx.pos:]
	if n := strings.IndexAny(rest, "\n\r"); n >= 0 {
		rest = rest[:n]
	}
	return strings.Trim(rest, " \t0123456789") == ""
}

// blockComment takes /* … */, or only its mark where its text is code.
func (lx *lexer) blockComment() sqlKind {
	s := lx.text
	lx.pos += 2
	if lx.read == MySQL {
		rest := s[lx.pos:]
		mark := 0
		if strings.HasPrefix(rest, "!") {
			mark = 1
		} else if len(rest) > 1 && (rest[0] == 'M' || rest[0] == 'm') && rest[1] == '!' {
			mark = 2
		}
		if mark > 0 {
			lx.pos += mark
			for n := 0; n < 6 && lx.pos < len(s) && s[lx.pos] >= '0' && s[lx.pos] <= '9'; n++ {
				lx.pos++
			}
			lx.code++
			return sqlComment
		}
	}
	nested := 1
	for lx.pos < len(s) {
		switch {
		case strings.HasPrefix(s[lx.pos:], "*/"):
			lx.pos += 2
			if nested--; nested == 0 {
				return sqlComment
			}
		case lx.read == ANSI && strings.HasPrefix(s[lx.pos:], "/*"):
			lx.pos += 2
			nested++
		default:
			lx.pos++
		}
	}
	return sqlComment
}

// quoted takes a quoted token whose quote stands at open; a doubled quote
// stays inside.
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

// bracket takes a [quoted name], or the mark alone where it subscripts.
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

// dollar takes $tag$…$tag$, a numbered parameter, or the sign alone.
func (lx *lexer) dollar() sqlKind {
	s, i := lx.text, lx.pos+1
	if i < len(s) && s[i] >= '0' && s[i] <= '9' {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		lx.pos = i
		return sqlParam
	}
	for i < len(s) && (IsLetter(s[i]) || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if lx.read == ANSI && i < len(s) && s[i] == '$' {
		tag := s[lx.pos : i+1]
		if n := strings.Index(s[i+1:], tag); n >= 0 {
			lx.pos = i + 1 + n + len(tag)
		} else {
			lx.pos = len(s)
		}
		return sqlString
	}
	if i < len(s) && s[i] == '{' { // ${name}, as a shell or a template left it
		if n := strings.IndexByte(s[i:], '}'); n >= 0 {
			lx.pos = i + n + 1
			return sqlParam
		}
	}
	lx.pos = max(i, lx.pos+1)
	if i > lx.pos-1 && i-1 > 0 && IsLetter(s[i-1]) {
		return sqlParam
	}
	return sqlOp
}

// backslash takes a client command: those that end a statement, or one line.
func (lx *lexer) backslash() sqlKind {
	s, i := lx.text, lx.pos+1
	for i < len(s) && IsLetter(s[i]) {
		i++
	}
	switch name := s[lx.pos+1 : i]; {
	case name == "g" || name == "G" || name == "gx" || name == "gexec" || name == "gset" || name == "gdesc" || name == "watch" || name == "crosstabview":
		lx.line()
		return sqlEnd
	case name != "" || i < len(s) && (s[i] == '!' || s[i] == '.' || s[i] == '?'):
		lx.line()
		return sqlMeta
	}
	lx.pos++
	return sqlOp
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

// number takes digits with everything that a numeral may hold.
func (lx *lexer) number() sqlKind {
	s, i := lx.text, lx.pos
	for i < len(s) {
		c := s[i]
		if c >= '0' && c <= '9' || c == '.' || IsLetter(c) {
			i++
			continue
		}
		if (c == '+' || c == '-') && (s[i-1] == 'e' || s[i-1] == 'E') && !strings.HasPrefix(s[lx.pos:], "0x") {
			i++
			continue
		}
		break
	}
	lx.pos = i
	return sqlNumber
}

// wordOrPrefixed takes a name, or a string with a prefix such as E'…'.
func (lx *lexer) wordOrPrefixed() sqlKind {
	s, i := lx.text, lx.pos
	for i < len(s) && IsWordByte(s[i]) {
		if s[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' {
				break
			}
			i += n - 1
		}
		i++
	}
	w := s[lx.pos:i]
	if i < len(s) && s[i] == '\'' && len(w) == 1 && strings.Contains("eEnNxXbBrRqQ", w) {
		return lx.quoted(i, '\'', w == "e" || w == "E" || lx.read != ANSI, sqlString)
	}
	if len(w) == 1 && (w == "u" || w == "U") && strings.HasPrefix(s[i:], "&'") {
		return lx.quoted(i+1, '\'', false, sqlString)
	}
	lx.pos = i
	return sqlWord
}

// param takes ?, :name, @name and @@name.
func (lx *lexer) param() sqlKind {
	s, i := lx.text, lx.pos+1
	for i < len(s) && s[i] == '@' && i < lx.pos+2 {
		i++
	}
	if s[lx.pos] != '?' {
		for i < len(s) && IsWordByte(s[i]) {
			i++
		}
	}
	lx.pos = i
	if i == len(s) || s[lx.pos-1] != '@' {
		return sqlParam
	}
	return sqlOp
}

// template takes {{ name }}.
func (lx *lexer) template() sqlKind {
	if n := strings.Index(lx.text[lx.pos:], "}}"); n >= 0 {
		lx.pos += n + 2
		return sqlParam
	}
	lx.pos++
	return sqlOp
}

// operator takes one operator; those of two or three characters stay together
// where their parts mean something else.
func (lx *lexer) operator() sqlKind {
	rest := lx.text[lx.pos:]
	for _, op := range [...]string{"<=>", "->>", "!~*", "<>", "!=", "<=", ">=", "==", "::", ":=", "||", "&&", "->", "~*", "!~"} {
		if strings.HasPrefix(rest, op) {
			lx.pos += len(op)
			return sqlOp
		}
	}
	lx.pos++
	return sqlOp
}
