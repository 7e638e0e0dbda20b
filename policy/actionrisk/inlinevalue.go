package actionrisk

import (
	"slices"
	"strconv"
	"strings"
)

// join is the string that tokens up to a comma make: literals, known variables,
// decoded and rebuilt texts, holes for the rest.
func (r *inlineRun) join(toks []inlineToken) inlineToken {
	out := inlineToken{kind: 's'}
	n := 0
	add := func(t inlineToken) {
		if n++; n == 1 {
			out = t
			return
		}
		out.text, out.exact, out.to = out.text+t.text, false, max(t.to, out.to)
	}
	for i := 0; i < len(toks) && len(out.text) <= maxValue && r.sh.e.budget.spend(1); i++ {
		if t, next, ok := r.value(toks, i); ok {
			add(t)
			i = next - 1
			continue
		}
		switch t := toks[i]; {
		case t.kind == 'i' && homeNames[t.text[strings.LastIndexAny(t.text, ".:")+1:]] && t.text != "home":
			add(inlineToken{kind: 's', text: "~", from: t.from, to: t.to})
			if i+2 < len(toks) && toks[i+1].kind == '(' && toks[i+2].kind == ')' {
				i += 2
			}
		case t.kind == 'i' && i+1 < len(toks) && toks[i+1].kind == 's' && (r.lang == "perl" || r.lang == "ruby"):
			// a call without brackets
		case t.kind == 'i' && t.text == "require" && i+1 < len(toks) && toks[i+1].kind == '(':
			i = closing(toks, i+1, '(', ')') // a module, no text
		case t.kind == 'i' && i+1 < len(toks) && toks[i+1].kind == '(':
			// a call such as expanduser("~"): its argument says enough
		case t.kind == ',' || t.kind == ';' || t.kind == ')' || t.kind == ']':
			return out
		case t.kind == 'i' && strings.Trim(t.text, ".") != "" && (len(t.text) > 1 || n > 0) && !isPrefix(t.text):
			if n == 0 {
				add(inlineToken{kind: 's', text: string(hole), from: t.from, to: t.to})
			} else {
				n++
				out.text, out.exact = out.text+string(hole), false
			}
		}
	}
	return out
}

// homeNames are what languages call the home directory.
var homeNames = setOf("homedir home HOME USERPROFILE")

// value is the text that begins at token i, with the methods called on it, and
// the index behind it.
func (r *inlineRun) value(toks []inlineToken, i int) (out inlineToken, next int, ok bool) {
	if i >= len(toks) { // the statement ends before its value
		return out, i, false
	}
	t := toks[i]
	switch {
	case t.kind == 's':
		out, next = t, i+1
	case t.kind == '[':
		end := closing(toks, i, '[', ']')
		if end+1 >= len(toks) || toks[end+1].text != ".join" {
			return out, i, false
		}
		list, sep := r.strings(toks[i+1:end]), " "
		if end+3 < len(toks) && toks[end+3].kind == 's' {
			sep = toks[end+3].text
		}
		return r.listed(list, sep, t), min(closing(toks, end+2, '(', ')')+1, len(toks)), len(list) > 0
	case t.kind == 'i' && i+1 < len(toks) && toks[i+1].kind == '(':
		end := closing(toks, i+1, '(', ')')
		text, known := r.callValue(t.text, toks[i+2:min(end, len(toks))])
		if !known || strings.IndexByte(text, hole) >= 0 {
			return out, i, false
		}
		out, next = inlineToken{kind: 's', text: text, from: t.from, to: toks[min(end, len(toks)-1)].to}, min(end+1, len(toks))
	case t.kind == 'i':
		name, rest, _ := strings.Cut(strings.TrimRight(strings.TrimLeft(t.text, "$@"), "."), ".")
		v, found := r.vars[name]
		if !found {
			return out, i, false
		}
		out, next = v, i+1
		if rest != "" { // a method of the variable
			toks = slices.Clone(toks)
			toks[i].text = "." + rest
			next = i
		}
	default:
		return out, i, false
	}
	for next < len(toks) {
		text, after, changed := r.method(out, toks, next)
		if !changed {
			break
		}
		if text != out.text {
			out.text, out.exact = text, false
		}
		next = after
	}
	return out, next, true
}

// closing is the index of the sign that closes the one at i, or len(toks).
func closing(toks []inlineToken, i int, open, shut byte) int {
	depth := 0
	for j := i; j < len(toks); j++ {
		switch toks[j].kind {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(toks)
}

func (r *inlineRun) listed(list []inlineToken, sep string, at inlineToken) inlineToken {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = t.text
	}
	return inlineToken{kind: 's', text: strings.Join(parts, sep), from: at.from, to: at.to}
}

// callValue is what a call gives whose arguments are known: decoders, characters
// by number, reversals.
func (r *inlineRun) callValue(name string, args []inlineToken) (string, bool) {
	last := name[strings.LastIndexAny(name, ".:")+1:]
	if folder := tempCalls[last]; folder != "" {
		return folder, true
	}
	if last == "" || len(args) == 0 || !knownCalls[last] && name != "Buffer.from" {
		return "", false
	}
	list := r.strings(args)
	if last == "join" && len(list) > 1 && r.joinsPath(name) {
		return joinedPath(list), true
	}
	arg := func(i int) string {
		if i < len(list) {
			return list[i].text
		}
		return ""
	}
	switch last {
	case "bytes", "bytearray":
		return numbered(args)
	case "chr", "fromCharCode", "fromCodePoint":
		var b strings.Builder
		for _, t := range args {
			if n, err := strconv.ParseInt(t.text, 0, 32); err == nil && t.kind == 'i' && n > 0 {
				b.WriteRune(rune(n))
			} else if t.kind != ',' {
				return "", false
			}
		}
		return b.String(), true
	case "from":
		if arg(1) == "hex" {
			return r.decoded(arg(0), decodeHex)
		}
		if arg(1) == "base64" {
			return r.decoded(arg(0), decode64)
		}
		return arg(0), len(list) > 0
	case "unhexlify", "fromhex", "hex2bin":
		return r.decoded(arg(0), decodeHex)
	case "strrev", "reversed", "reverse":
		return r.decoded(arg(0), reverse)
	case "str_rot13", "rot13":
		return r.decoded(arg(0), rot13)
	case "decode":
		switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(arg(1))) {
		case "rot13":
			return r.decoded(arg(0), rot13)
		case "hex":
			return r.decoded(arg(0), decodeHex)
		case "base64":
			return r.decoded(arg(0), decode64)
		}
		return "", false
	case "pack":
		if strings.HasPrefix(arg(0), "H") {
			return r.decoded(arg(1), decodeHex)
		}
		return "", false
	case "implode", "join":
		if len(list) < 2 {
			return "", false
		}
		return r.listed(list[1:], arg(0), list[0]).text, true
	}
	return r.decoded(arg(0), decode64)
}

var knownCalls = setOf("bytes bytearray chr fromCharCode fromCodePoint unhexlify fromhex hex2bin strrev reversed reverse str_rot13 rot13 decode pack implode join b64decode base64_decode decode64 decode_base64 atob strict_decode64 urlsafe_b64decode urlsafe_decode64 standard_b64decode decodebytes")

// decoded applies a decoder within the limits of the whole assessment.
func (r *inlineRun) decoded(text string, by func(string) (string, bool)) (string, bool) {
	e := r.sh.e
	if text == "" || len(text) > 2*maxDecoded || strings.IndexByte(text, hole) >= 0 {
		return "", false
	}
	out, ok := by(text)
	if !ok || len(out) > maxDecoded || e.decoded+len(out) > maxDecodedTotal {
		return "", false
	}
	e.decoded += len(out)
	return strings.ReplaceAll(out, string(hole), " "), true
}

func rot13(s string) (string, bool) {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, s), true
}

// method applies a method or a slice that stands at toks[i] to a text.
func (r *inlineRun) method(of inlineToken, toks []inlineToken, i int) (string, int, bool) {
	t, text := toks[i], of.text
	if t.kind == '[' {
		end := closing(toks, i, '[', ']')
		inner := ""
		for _, x := range toks[i+1 : min(end, len(toks))] {
			inner += x.text
		}
		if inner == "::-1" {
			text, _ = reverse(text)
			return text, min(end+1, len(toks)), true
		}
		return text, min(end+1, len(toks)), inner == "0"
	}
	if t.kind != 'i' || len(t.text) < 2 || t.text[0] != '.' {
		return text, i, false
	}
	var list, args []inlineToken
	next := i + 1
	if next < len(toks) && toks[next].kind == '(' {
		end := closing(toks, next, '(', ')')
		args = toks[next+1 : min(end, len(toks))]
		list = r.strings(args)
		next = min(end+1, len(toks))
	}
	for _, name := range strings.Split(t.text[1:], ".") {
		switch name {
		case "decode", "encode", "toString", "strip", "trim", "to_s", "first", "split", "splitlines":
			text = strings.TrimSpace(text)
		case "join":
			if of.list { // its words are joined already
			} else if chars, ok := numbered(args); ok {
				text = chars
			} else if len(list) > 1 {
				text = r.listed(list, text, t).text
			} else if len(list) == 1 {
				text = list[0].text
			}
		case "reverse":
			text, _ = reverse(text)
		case "lower", "toLowerCase", "downcase":
			text = strings.ToLower(text)
		case "upper", "toUpperCase", "upcase":
			text = strings.ToUpper(text)
		case "replace", "replaceAll", "gsub", "sub", "tr":
			if len(list) == 1 {
				text = strings.ReplaceAll(text, list[0].text, "")
			} else if len(list) > 1 && list[0].text != "" && len(text)*len(list[1].text) < maxValue {
				text = strings.ReplaceAll(text, list[0].text, list[1].text)
			}
		case "unpack1", "unpack":
			if out, ok := r.decoded(text, decode64); ok && len(list) > 0 && strings.HasPrefix(list[0].text, "m") {
				text = out
			}
		default:
			return text, i, false
		}
	}
	return text, next, true
}

// statement is the index behind the statement that token i stands in: at a
// semicolon or at a line end.
func (r *inlineRun) statement(i int) int {
	for j := i + 1; j < len(r.toks) && j < i+256; j++ {
		gap := r.src.text[min(r.toks[j-1].to, r.toks[j].from):r.toks[j].from]
		if r.toks[j].kind == ';' || strings.IndexByte(gap, '\n') >= 0 {
			return j
		}
	}
	return min(i+256, len(r.toks))
}

// numbered is the text of a list of character numbers.
func numbered(toks []inlineToken) (string, bool) {
	var b strings.Builder
	for _, t := range toks {
		if n, err := strconv.ParseInt(t.text, 0, 32); err == nil && t.kind == 'i' && n >= ' ' {
			b.WriteRune(rune(n))
		}
	}
	return b.String(), b.Len() > 2
}

// decodes tells whether a decoder stands among tokens.
func decodes(toks []inlineToken) bool {
	return slices.ContainsFunc(toks, func(t inlineToken) bool {
		return t.kind == 'i' && (strings.HasSuffix(t.text, "Buffer.from") || slices.ContainsFunc(decoderNames, func(d string) bool { return strings.Contains(t.text, d) }))
	})
}

// indexed: x["sys"+"tem"]("…") calls what its string names.
func (r *inlineRun) indexed(i int) {
	end := closing(r.toks, i, '[', ']')
	if i > 1 && end < len(r.toks) && (end+1 == len(r.toks) || r.toks[end+1].kind != '(') {
		r.alias(i-1, r.toks[i-1].text, r.join(r.toks[i+1:end]).text, r.toks[i-1])
	}
	if end+1 >= len(r.toks) || r.toks[end+1].kind != '(' || i == 0 {
		return
	}
	name := r.toks[i-1]
	text := r.join(r.toks[i+1 : end]).text
	if text == "" || !syntaxName(text) {
		r.unknownCall(name, r.arguments(end+1))
		return
	}
	name.text = strings.TrimSuffix(strings.TrimSuffix(name.text, ".__dict__"), ")") + "." + text
	name.computed = true
	r.call(name, r.arguments(end+1))
}
