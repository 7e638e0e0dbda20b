package emailcheck

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// place is the part of the grammar to which a character belongs.
type place int

const (
	inLocal place = iota
	inDomain
	inLiteral
	inComment
	inSpace // in folding white space
	inQuoted
	inPair // after a backslash
)

// address contains the parts of a parsed address and its worst diagnosis.
type address struct {
	worst   diagnosis
	local   string // with its quotes, without comments and white space around it
	domain  string // as written; a literal includes its brackets
	labels  []string
	literal bool
	quoted  bool
}

// parser parses an addr-spec of RFC 5322, including obsolete forms, one character at a time. It
// keeps the worst diagnosis, and stops at the first error. Its time is linear in the length of the
// text.
type parser struct {
	address
	text     []rune
	at       int
	now      place
	before   place   // the previous place
	stack    []place // the places around the current one, the innermost last
	element  int     // bytes so far of the current atom, label or quoted string
	count    int     // number of elements before the current one
	mustEnd  bool    // the element is complete: only "." or "@" may follow
	hyphen   bool    // the label so far ends with a hyphen
	lastWS   rune    // last character of the folding white space
	folds    int
	literalS strings.Builder
	localS   strings.Builder
	domainS  strings.Builder
	label    strings.Builder
}

func (p *parser) note(d diagnosis) { p.worst = max(p.worst, d) }

func (p *parser) enter(next place) {
	p.stack = append(p.stack, p.now)
	p.now = next
}

func (p *parser) leave() {
	p.before = p.now
	p.now = p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
}

// parse parses and diagnoses one address.
func parse(text string) address {
	p := parser{text: []rune(text)}
	if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
		p.note(errMalformedUnicode)
		return p.address
	}
	for p.at = 0; p.at < len(p.text) && p.worst < firstError; p.at++ {
		p.step(p.text[p.at])
	}
	if p.worst < firstError {
		p.finish()
	}
	p.local, p.domain = p.localS.String(), p.domainS.String()
	return p.address
}

func (p *parser) step(c rune) {
	switch p.now {
	case inLocal:
		p.localPart(c)
	case inDomain:
		p.domainPart(c)
	case inLiteral:
		p.domainLiteral(c)
	case inComment:
		p.comment(c)
	case inSpace:
		p.space(c)
	case inQuoted:
		p.quotedString(c)
	case inPair:
		p.quotedPair(c)
	}
}

// folded reads the line feed that must follow if c is a carriage return. It returns false, and
// notes an error, if there is none.
func (p *parser) folded(c rune) bool {
	if c != '\r' {
		return true
	}
	if p.at++; p.at >= len(p.text) || p.text[p.at] != '\n' {
		p.note(errCRNoLF)
		return false
	}
	return true
}

func (p *parser) startSpace(c rune) {
	p.enter(inSpace)
	p.lastWS = c
}

// first returns the diagnosis a for the first element, and the diagnosis b for later elements.
func (p *parser) first(a, b diagnosis) diagnosis {
	if p.count == 0 {
		return a
	}
	return b
}

func (p *parser) localPart(c rune) {
	switch c {
	case '(':
		if p.element == 0 {
			p.note(p.first(cfwsComment, deprecatedComment))
		} else {
			p.note(cfwsComment)
			p.mustEnd = true
		}
		p.enter(inComment)
	case '.':
		if p.element == 0 {
			p.note(p.first(errDotStart, errConsecutiveDots))
			return
		}
		if p.mustEnd {
			p.note(deprecatedLocalPart) // a quoted string or a comment was between the atoms
		}
		p.mustEnd, p.element = false, 0
		p.count++
		p.localS.WriteRune(c)
	case '"':
		if p.element > 0 {
			p.note(errExpectingATEXT)
			return
		}
		p.note(p.first(rfc5321QuotedString, deprecatedLocalPart))
		p.addLocal(string(c))
		p.mustEnd, p.quoted = true, true
		p.enter(inQuoted)
	case '\r', ' ', '\t':
		if !p.folded(c) {
			return
		}
		if p.element == 0 {
			p.note(p.first(cfwsFWS, deprecatedFWS))
		} else {
			p.mustEnd = true
		}
		p.startSpace(c)
	case '@':
		p.endLocal()
	default:
		if p.mustEnd {
			if p.before == inQuoted {
				p.note(errATEXTAfterQS)
			} else {
				p.note(errATEXTAfterCFWS)
			}
			return
		}
		if !isATEXT(c) {
			p.note(errExpectingATEXT)
		}
		p.before = inLocal
		p.addLocal(string(c))
	}
}

func (p *parser) addLocal(text string) {
	p.localS.WriteString(text)
	p.element += len(text)
}

func (p *parser) endLocal() {
	switch {
	case p.localS.Len() == 0:
		p.note(errNoLocalPart)
	case p.element == 0:
		p.note(errDotEnd)
	case p.localS.Len() > maxLocal:
		p.note(rfc5322LocalTooLong)
	case p.before == inComment || p.before == inSpace:
		p.note(deprecatedCFWSNearAt)
	}
	p.now, p.element, p.count, p.mustEnd = inDomain, 0, 0, false
}

func (p *parser) domainPart(c rune) {
	switch c {
	case '(':
		if p.element == 0 {
			p.note(p.first(deprecatedCFWSNearAt, deprecatedComment))
		} else {
			p.note(cfwsComment)
			p.mustEnd = true
		}
		p.enter(inComment)
	case '.':
		switch {
		case p.literal:
			p.note(errDotAfterDomainLiteral)
		case p.element == 0:
			p.note(p.first(errDotStart, errConsecutiveDots))
		case p.hyphen:
			p.note(errDomainHyphenEnd)
		}
		p.endLabel()
		p.mustEnd, p.element = false, 0
		p.count++
		p.domainS.WriteRune(c)
	case '[':
		if p.domainS.Len() > 0 {
			p.note(errExpectingATEXT)
			return
		}
		p.mustEnd, p.literal = true, true
		p.addDomain(c)
		p.enter(inLiteral)
	case '\r', ' ', '\t':
		if !p.folded(c) {
			return
		}
		if p.element == 0 {
			p.note(p.first(deprecatedCFWSNearAt, deprecatedFWS))
		} else {
			p.note(cfwsFWS)
			p.mustEnd = true
		}
		p.startSpace(c)
	default:
		p.domainText(c)
	}
}

func (p *parser) domainText(c rune) {
	if p.mustEnd {
		if p.before == inLiteral {
			p.note(errATEXTAfterDomainLiteral)
		} else {
			p.note(errATEXTAfterCFWS)
		}
	}
	p.hyphen = c == '-'
	switch {
	case !isATEXT(c):
		p.note(errExpectingATEXT)
	case c == '-' && p.element == 0:
		p.note(errDomainHyphenStart)
	case c != '-' && !isLabelText(c):
		p.note(rfc5322Domain)
	}
	p.label.WriteRune(c)
	p.addDomain(c)
}

// isLabelText reports whether a character is a letter, a digit, or may be a non-ASCII letter.
func isLabelText(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0xc0
}

func (p *parser) addDomain(c rune) {
	p.domainS.WriteRune(c)
	p.element += utf8.RuneLen(c)
}

func (p *parser) endLabel() {
	label := p.label.String()
	p.labels = append(p.labels, label)
	p.label.Reset()
	if asciiLength(label) > maxLabel {
		p.note(rfc5322LabelTooLong)
	}
}

// asciiLength returns the length of a label as an A-label, in bytes.
func asciiLength(label string) int {
	encoded, err := idna.Punycode.ToASCII(label)
	if err != nil {
		return len(label)
	}
	return len(encoded)
}

func (p *parser) domainLiteral(c rune) {
	switch c {
	case ']':
		p.endLiteral()
		p.addDomain(c)
		p.leave()
	case '\\':
		p.note(rfc5322DomainLiteralOBSText)
		p.enter(inPair)
	case '\r', ' ', '\t':
		if p.folded(c) {
			p.note(cfwsFWS)
			p.startSpace(c)
		}
	default:
		switch {
		case isC1(c) || c == 0 || c == '[':
			p.note(errExpectingDTEXT)
			return
		case c < ' ' || c == 0x7f:
			p.note(rfc5322DomainLiteralOBSText)
		}
		p.literalS.WriteRune(c)
		p.addDomain(c)
	}
}

// endLiteral judges the text between brackets: an IPv4 address, "IPv6:" with an IPv6 address (RFC
// 5321 4.1.3), or another text, which only RFC 5322 allows.
func (p *parser) endLiteral() {
	text := p.literalS.String()
	if p.worst >= firstDeprecated {
		p.note(rfc5322DomainLiteral)
		return
	}
	if isIPv4(text) {
		p.note(rfc5321AddressLiteral)
		return
	}
	const tag = "ipv6:"
	if len(text) < len(tag) || strings.ToLower(text[:len(tag)]) != tag {
		p.note(rfc5322DomainLiteral)
		return
	}
	p.ipv6(text[len(tag):])
}

func (p *parser) ipv6(text string) {
	// An IPv4 address at the end counts as two groups.
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		if isIPv4(text[colon+1:]) {
			text = text[:colon+1] + "0:0"
		}
	}
	groups, most := strings.Split(text, ":"), ipv6Groups
	elision := strings.Index(text, "::")
	switch {
	case elision < 0:
		if len(groups) != most {
			p.note(rfc5322IPv6GroupCount)
		}
	case elision != strings.LastIndex(text, "::"):
		p.note(rfc5322IPv6DoubleColons)
	default:
		if elision == 0 || elision == len(text)-2 {
			most++ // at an end, "::" adds an empty text that is not a group
		}
		if len(groups) > most {
			p.note(rfc5322IPv6MaxGroups)
		} else if len(groups) == most {
			p.note(deprecatedIPv6) // "::" replaces a single group
		}
	}
	switch {
	case strings.HasPrefix(text, ":") && !strings.HasPrefix(text, "::"):
		p.note(rfc5322IPv6ColonStart)
	case strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::"):
		p.note(rfc5322IPv6ColonEnd)
	case hexGroups(groups):
		p.note(rfc5321AddressLiteral)
	default:
		p.note(rfc5322IPv6BadCharacter)
	}
}

// isIPv4 reports whether a text consists of four numbers from 0 to 255, with dots between them. A
// number may have up to three digits and begin with zeros, as Snum of RFC 5321 allows.
func isIPv4(text string) bool {
	groups := strings.Split(text, ".")
	for _, g := range groups {
		if n, err := strconv.Atoi(g); err != nil || n > 255 || len(g) > 3 || strings.Trim(g, digits) != "" {
			return false
		}
	}
	return len(groups) == 4
}

const digits = "0123456789"

// hexGroups reports whether every group has at most four characters, all of them hexadecimal
// digits.
func hexGroups(groups []string) bool {
	for _, g := range groups {
		if len(g) > 4 || strings.Trim(g, "0123456789abcdefABCDEF") != "" {
			return false
		}
	}
	return true
}

func (p *parser) quotedString(c rune) {
	switch c {
	case '\\':
		p.enter(inPair)
	case '\r', '\t':
		// In a quoted string a space is ordinary text; tabs and folds are white space.
		if p.folded(c) {
			p.addLocal(" ")
			p.note(cfwsFWS)
			p.startSpace(c)
		}
	case '"':
		p.addLocal(string(c))
		p.leave()
	default:
		switch {
		case isC1(c) || c == 0 || c == '\n':
			p.note(errExpectingQTEXT)
		case c < ' ' || c == 0x7f:
			p.note(deprecatedQTEXT)
		}
		p.addLocal(string(c))
	}
}

func (p *parser) quotedPair(c rune) {
	switch {
	case isC1(c):
		p.note(errExpectingQPair)
	case c < ' ' && c != '\t' || c == 0x7f:
		p.note(deprecatedQP)
	}
	p.leave()
	switch p.now {
	case inQuoted:
		p.addLocal(`\` + string(c))
	case inLiteral:
		p.addDomain('\\')
		p.addDomain(c)
	}
}

func (p *parser) comment(c rune) {
	switch c {
	case '(':
		p.enter(inComment)
	case ')':
		p.leave()
	case '\\':
		p.enter(inPair)
	case '\r', ' ', '\t':
		if p.folded(c) {
			p.note(cfwsFWS)
			p.startSpace(c)
		}
	default:
		switch {
		case isC1(c) || c == 0 || c == '\n':
			p.note(errExpectingCTEXT)
		case c < ' ' || c == 0x7f:
			p.note(deprecatedCTEXT)
		}
	}
}

// space reads folding white space. A fold is CR LF and then a space or a tab. More than one fold
// is obsolete.
func (p *parser) space(c rune) {
	if p.lastWS == '\r' {
		if c == '\r' {
			p.note(errFWSCRLFx2)
			return
		}
		if p.folds++; p.folds > 1 {
			p.note(deprecatedFWS)
		}
	}
	switch c {
	case '\r':
		if !p.folded(c) {
			return
		}
	case ' ', '\t':
	default:
		if p.lastWS == '\r' {
			p.note(errFWSCRLFEnd)
			return
		}
		p.folds = 0
		p.leave()
		p.at-- // step reads the character again, in the surrounding place
	}
	p.lastWS = c
}

// finish judges where the text ended.
func (p *parser) finish() {
	switch p.now {
	case inSpace:
		if p.lastWS == '\r' {
			p.note(errFWSCRLFEnd)
			return
		}
		p.leave()
	case inQuoted:
		p.note(errUnclosedQuotedString)
		return
	case inPair:
		p.note(errBackslashEnd)
		return
	}
	switch {
	case p.now == inQuoted:
		p.note(errUnclosedQuotedString)
	case p.now == inComment:
		p.note(errUnclosedComment)
	case p.now == inLiteral:
		p.note(errUnclosedDomainLiteral)
	case p.now == inLocal || p.domainS.Len() == 0:
		p.note(errNoDomain)
	case p.element == 0:
		p.note(errDotEnd)
	case p.hyphen:
		p.note(errDomainHyphenEnd)
	default:
		p.lengths()
	}
}

// lengths checks the lengths of last label, domain and address, in bytes with the domain in
// A-labels.
func (p *parser) lengths() {
	if p.literal {
		if p.localS.Len()+1+p.domainS.Len() > maxTotal {
			p.note(rfc5322TooLong)
		}
		return
	}
	last := p.label.String()
	p.endLabel()
	domain := len(p.labels) - 1
	for _, label := range p.labels {
		domain += asciiLength(label)
	}
	if domain > maxDomain {
		p.note(rfc5322DomainTooLong)
	}
	if p.localS.Len()+1+domain > maxTotal {
		p.note(rfc5322TooLong)
	}
	switch {
	case last == "" || last[0] < '0' || last[0] > '9':
	case len(p.labels) > 1 && strings.Trim(last, digits) == "": // for example 127.0.0.1 without brackets
		p.note(rfc5322Domain)
	default:
		p.note(rfc5321TLDNumeric)
	}
}

// isATEXT reports whether a character is printable and not one of the specials of RFC 5322.
func isATEXT(c rune) bool {
	return c > ' ' && c != 0x7f && !isC1(c) && !strings.ContainsRune(`()<>[]:;@\,."`, c)
}

func isC1(c rune) bool { return c >= 0x80 && c <= 0x9f }
