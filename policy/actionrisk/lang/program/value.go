package program

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// join is the string that tokens up to a comma make: literals, known variables,
// decoded and rebuilt texts, holes for the rest.
func (r *inlineRun) join(toks []tokens.Token) tokens.Token {
	out := tokens.Token{Kind: 's'}
	n := 0
	add := func(t tokens.Token) {
		if n++; n == 1 {
			out = t
			return
		}
		out.Text, out.Exact, out.To = out.Text+t.Text, false, max(t.To, out.To)
	}
	for i := 0; i < len(toks) && len(out.Text) <= scan.MaxValue && r.sh.Env.Budget.Spend(1); i++ {
		if t, next, ok := r.value(toks, i); ok {
			add(t)
			i = next - 1
			continue
		}
		switch t := toks[i]; {
		case t.Kind == 'i' && i+1 < len(toks) && toks[i+1].Kind == 's' && (r.lang == "perl" || r.lang == "ruby"):
			// a call without brackets
		case t.Kind == 'i' && t.Text == "require" && i+1 < len(toks) && toks[i+1].Kind == '(':
			i = closing(toks, i+1, '(', ')') // a module, no text
		case t.Kind == 'i' && i+1 < len(toks) && toks[i+1].Kind == '(':
			end := min(closing(toks, i+1, '(', ')'), len(toks))
			if text, ok := r.passed(t, toks[i+2:end], n > 0); ok {
				add(tokens.Token{Kind: 's', Text: text, From: t.From, To: t.To})
			}
			i = end
		case t.Kind == '/' && n > 0 && r.lang == "python" && !strings.HasSuffix(out.Text, "/"): // Path("a") / "b"
			out.Text, out.Exact = out.Text+"/", false
		case t.Kind == ',' || t.Kind == ';' || t.Kind == ')' || t.Kind == ']':
			return out
		case t.Kind == 'i' && valueWords[t.Text]:
		case t.Kind == 'i' && strings.Trim(t.Text, ".") != "" && (len(t.Text) > 1 || n > 0) && !isPrefix(t.Text):
			if n == 0 {
				add(tokens.Token{Kind: 's', Text: string(scan.Hole), From: t.From, To: t.To})
			} else {
				n++
				out.Text, out.Exact = out.Text+string(scan.Hole), false
			}
		}
	}
	return out
}

// valueWords stand before a value and say nothing about it.
var valueWords = scan.SetOf("new await try return yield ref mut const let var unsafe move not")

// passed is the text that a call gives which is not known itself: expanduser("~"), where
// the first argument says enough; of a method, only what a decoder makes is not known.
func (r *inlineRun) passed(t tokens.Token, args []tokens.Token, after bool) (string, bool) {
	if r.makes(t) || len(args) > 0 && r.origin(args)&builtText != 0 {
		return string(scan.Hole), true
	}
	if t.Text[0] == '.' && after {
		return "", false
	}
	if len(args) > 0 {
		first := r.join(firstArgument(args))
		return first.Text, first.To > 0
	}
	return string(scan.Hole), t.Text[0] != '.'
}

// makes: the call gives another text than its arguments: a decoder, or a function of
// the text itself that builds one.
func (r *inlineRun) makes(t tokens.Token) bool {
	if _, ok := facts.Named(r.sh.Env.Code.Builders, t.Text, r.lang); ok {
		return true
	}
	return act.SyntaxName(t.Text) && r.origins()[t.Text] != 0
}

// statementStart is the index of the first token of the statement that token i stands in.
func (r *inlineRun) statementStart(i int) int {
	for j := i; j > 0 && j > i-256; j-- {
		if k := r.toks[j-1].Kind; k == ';' || k == '{' || k == '}' {
			return j
		}
	}
	return max(i-256, 0)
}

// value is the text that begins at token i, with the methods called on it, and
// the index behind it.
func (r *inlineRun) value(toks []tokens.Token, i int) (out tokens.Token, next int, ok bool) {
	if i >= len(toks) || !r.sh.Env.Budget.Spend(1) { // the statement ends before its value
		return out, i, false
	}
	t := toks[i]
	if text, after, known := r.knownName(toks, i); known {
		return tokens.Token{Kind: 's', Text: text, From: t.From, To: toks[after-1].To}, after, true
	}
	switch {
	case t.Kind == 'i' && (t.Text == "require" || t.Text == "__import__") && i+1 < len(toks) && toks[i+1].Kind == '(': // of a module
		if end := closing(toks, i+1, '(', ')'); end+1 < len(toks) && toks[end+1].Kind == 'i' && toks[end+1].Text[0] == '.' {
			return r.value(toks, end+1)
		}
		return out, i, false
	case t.Kind == 's':
		out, next = r.filled(t), i+1
	case t.Kind == '(':
		end := closing(toks, i, '(', ')')
		if end+1 >= len(toks) || toks[end+1].Kind != 'i' || toks[end+1].Text[0] != '.' {
			return out, i, false
		}
		if out = r.join(toks[i+1 : end]); out.To == 0 || strings.IndexByte(out.Text, scan.Hole) >= 0 {
			return out, i, false
		}
		next = end + 1
	case t.Kind == '[' || t.Kind == '{':
		shut := map[byte]byte{'[': ']', '{': '}'}[t.Kind]
		end := closing(toks, i, t.Kind, shut)
		if text, after, known := r.fromNumbers(toks, i, end); known {
			return tokens.Token{Kind: 's', Text: text, From: t.From, To: toks[after-1].To}, after, true
		}
		if end+1 < len(toks) && toks[end+1].Text == ".pack" {
			return r.packed(toks, i, end)
		}
		if end+1 >= len(toks) || toks[end+1].Text != ".join" {
			return out, i, false
		}
		list, sep := r.strings(toks[i+1:end]), " "
		if end+3 < len(toks) && toks[end+3].Kind == 's' {
			sep = toks[end+3].Text
		}
		return r.listed(list, sep, t), min(closing(toks, end+2, '(', ')')+1, len(toks)), len(list) > 0
	case t.Kind == 'i' && i+1 < len(toks) && toks[i+1].Kind == '(' && !r.methodOfVariable(t):
		end := closing(toks, i+1, '(', ')')
		text, known := r.callValue(t.Text, toks[i+2:min(end, len(toks))])
		if !known || strings.IndexByte(text, scan.Hole) >= 0 {
			return out, i, false
		}
		out, next = tokens.Token{Kind: 's', Text: text, From: t.From, To: toks[min(end, len(toks)-1)].To}, min(end+1, len(toks))
	case t.Kind == 'i':
		name, rest, _ := strings.Cut(strings.TrimRight(strings.TrimLeft(t.Text, "$@"), "."), ".")
		v, found := r.vars[name]
		if !found || r.changed[name] {
			return out, i, false
		}
		out, next = v, i+1
		if rest != "" { // a method of the variable
			t.Text = "." + rest
			next = i
		}
	default:
		return out, i, false
	}
	for next < len(toks) {
		called := toks[next]
		if next == i {
			called = t
		}
		text, after, changed := r.method(out, called, toks, next)
		if !changed {
			if called.Kind == 'i' && len(called.Text) > 1 && called.Text[0] == '.' {
				if r.makes(called) {
					return out, i, false
				}
				if next == i { // a method or member that is not known leaves the text
					if next++; next < len(toks) && toks[next].Kind == '(' {
						next = min(closing(toks, next, '(', ')')+1, len(toks))
					}
				}
			}
			break
		}
		if text != out.Text {
			out.Text, out.Exact = text, false
		}
		next = after
	}
	return out, next, true
}

// methodOfVariable: the dotted name begins with a variable whose text is known.
func (r *inlineRun) methodOfVariable(t tokens.Token) bool {
	first, _, dotted := strings.Cut(strings.TrimLeft(t.Text, "$@"), ".")
	_, ok := r.vars[first]
	return dotted && ok
}

// closing is the index of the sign that closes the one at i, or len(toks).
func closing(toks []tokens.Token, i int, open, shut byte) int {
	if i < len(toks) && toks[i].Kind == open && toks[i].Partner != 0 {
		return min(i+int(toks[i].Partner), len(toks))
	}
	depth := 0
	for j := i; j < len(toks); j++ {
		switch toks[j].Kind {
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

func (r *inlineRun) listed(list []tokens.Token, sep string, at tokens.Token) tokens.Token {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = t.Text
	}
	return tokens.Token{Kind: 's', Text: strings.Join(parts, sep), From: at.From, To: at.To}
}

// callValue is what a call gives whose arguments are known: decoders, characters
// by number, reversals.
func (r *inlineRun) callValue(name string, args []tokens.Token) (string, bool) {
	last := name[strings.LastIndexAny(name, ".:")+1:]
	if folder := tempCalls[last]; folder != "" {
		return folder, true
	}
	if last == "" || len(args) == 0 || !knownCalls[last] && r.sh.Env.Code.Joins[last] == nil && name != "Buffer.from" {
		return "", false
	}
	if !r.sh.Env.Budget.Spend(1 + len(args)/8) {
		return "", false
	}
	if text, ok := numbered(args); ok && (charCalls[last] || slices.ContainsFunc(args, makesChars)) {
		return text, true
	}
	if slices.ContainsFunc(args, makesChars) && last != "chr" && last != "fromCharCode" {
		return "", false // characters that are computed
	}
	if formatCalls[last] && name[0] != '.' {
		return r.sprintf(args)
	}
	if n, ok := facts.Named(r.sh.Env.Code.Joins, name, r.lang); ok {
		return r.joined(args, n.Text)
	}
	list := r.strings(args)
	if last == "join" && len(list) > 1 && r.joinsPath(name) {
		return joinedPath(list), true
	}
	arg := func(i int) string {
		if i < len(list) {
			return list[i].Text
		}
		return ""
	}
	switch last {
	case "bytes", "bytearray":
		return numbered(args)
	case "chr", "fromCharCode", "fromCodePoint":
		var b strings.Builder
		for _, t := range args {
			if n, err := strconv.ParseInt(t.Text, 0, 32); err == nil && t.Kind == 'i' && n > 0 {
				b.WriteRune(rune(n))
			} else if t.Kind != ',' {
				return "", false
			}
		}
		return b.String(), true
	case "from":
		if arg(1) == "hex" {
			return r.decoded(arg(0), scan.DecodeHex)
		}
		if arg(1) == "base64" {
			return r.decoded(arg(0), scan.Decode64)
		}
		return arg(0), len(list) > 0
	case "unhexlify", "fromhex", "hex2bin", "a2b_hex", "FromHexString", "decode16", "fromHex", "hexToBytes":
		return r.decoded(arg(0), scan.DecodeHex)
	case "decodeURIComponent", "decodeURI", "unescape", "unquote", "urldecode", "rawurldecode":
		return r.decoded(arg(0), scan.PercentDecoded)
	case "strrev", "reversed", "reverse":
		return r.decoded(arg(0), scan.Reverse)
	case "str_rot13", "rot13":
		return r.decoded(arg(0), scan.Rot13)
	case "decode":
		switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(arg(1))) {
		case "rot13":
			return r.decoded(arg(0), scan.Rot13)
		case "hex":
			return r.decoded(arg(0), scan.DecodeHex)
		case "base64":
			return r.decoded(arg(0), scan.Decode64)
		}
		return "", false
	case "pack":
		if strings.HasPrefix(arg(0), "H") {
			return r.decoded(arg(1), scan.DecodeHex)
		}
		return "", false
	case "implode", "join":
		if len(list) < 2 {
			return "", false
		}
		return r.listed(list[1:], arg(0), list[0]).Text, true
	}
	return r.decoded(arg(0), scan.Decode64)
}

var knownCalls = scan.SetOf("bytes bytearray chr fromCharCode fromCodePoint unhexlify fromhex hex2bin strrev reversed reverse str_rot13 rot13 decode pack implode join b64decode base64_decode decode64 decode_base64 atob strict_decode64 urlsafe_b64decode urlsafe_decode64 standard_b64decode decodebytes base64decode base64dec DecodeString FromBase64String decodeBase64 a2b_base64 a2b_hex FromHexString decode16 fromHex hexToBytes char rawToChar intToUtf8 decodeURIComponent decodeURI unescape unquote urldecode rawurldecode sprintf Sprintf format")

// charCalls make a text of the numbers of its characters, formatCalls of a format.
var charCalls, formatCalls = scan.SetOf("bytes bytearray chr fromCharCode fromCodePoint char rawToChar intToUtf8 pack"), scan.SetOf("sprintf Sprintf format")

// decoded applies a decoder within the limits of the whole assessment.
func (r *inlineRun) decoded(text string, by func(string) (string, bool)) (string, bool) {
	e := r.sh.Env
	if text == "" || len(text) > 2*scan.MaxDecoded || strings.IndexByte(text, scan.Hole) >= 0 {
		return "", false
	}
	out, ok := by(text)
	if !ok || len(out) > scan.MaxDecoded || e.Decoded+len(out) > scan.MaxDecodedTotal {
		return "", false
	}
	e.Decoded += len(out)
	return strings.ReplaceAll(out, string(scan.Hole), " "), true
}

// joined is the text of arguments put together: paste("a", "b", sep=""), path.join.
func (r *inlineRun) joined(args []tokens.Token, sep string) (string, bool) {
	var parts []string
	for _, part := range splitArguments(args) {
		if len(part) == 3 && part[1].Kind == '=' && (part[0].Text == "sep" || part[0].Text == "collapse") {
			if part[0].Text == "sep" || len(parts) == 1 {
				sep = part[2].Text
			}
			continue
		}
		t := r.join(part)
		if t.To == 0 || strings.IndexByte(t.Text, scan.Hole) >= 0 {
			return "", false
		}
		if sep == "/" && strings.HasPrefix(t.Text, "/") && r.lang != "go" && r.lang != "ruby" && r.lang != "r" {
			parts = nil // an absolute path stands for itself
		}
		parts = append(parts, t.Text)
	}
	if len(parts) == 0 {
		return "", false
	}
	return strings.Join(parts, sep), true
}

// method applies the method or slice t, which stands at toks[i], to a text.
func (r *inlineRun) method(of, t tokens.Token, toks []tokens.Token, i int) (string, int, bool) {
	text := of.Text
	if t.Kind == '[' {
		end := closing(toks, i, '[', ']')
		inner := ""
		for _, x := range toks[i+1 : min(end, len(toks))] {
			inner += x.Text
		}
		if inner == "::-1" {
			text, _ = scan.Reverse(text)
			return text, min(end+1, len(toks)), true
		}
		return text, min(end+1, len(toks)), inner == "0"
	}
	if t.Kind != 'i' || len(t.Text) < 2 || t.Text[0] != '.' {
		return text, i, false
	}
	var list, args []tokens.Token
	next := i + 1
	if next < len(toks) && toks[next].Kind == '(' {
		end := closing(toks, next, '(', ')')
		args = toks[next+1 : min(end, len(toks))]
		list = r.strings(args)
		next = min(end+1, len(toks))
	}
	for _, name := range strings.Split(t.Text[1:], ".") {
		switch name {
		case "split", "chars":
			if len(list) == 1 && list[0].Text == "" || name == "chars" {
				break // its characters
			}
			text = strings.TrimSpace(text)
		case "decode", "encode", "toString", "strip", "trim", "to_s", "first", "splitlines":
			text = strings.TrimSpace(text)
		case "join":
			if slices.ContainsFunc(args, makesChars) {
				chars, known := numbered(args)
				if !known {
					return string(scan.Hole), next, true
				}
				text = chars
			} else if r.lang != "python" && len(list) <= 1 { // what it is called on is the list
			} else if of.List { // its words are joined already
			} else if chars, ok := numbered(args); ok {
				text = chars
			} else if len(list) > 1 {
				text = r.listed(list, text, t).Text
			} else if len(list) == 1 {
				text = list[0].Text
			}
		case "joinpath", "resolveSibling", "appendingPathComponent", "with_name":
			for _, part := range list {
				text = path.Join(text, part.Text)
			}
		case "parent", "parentFile", "dirname":
			switch {
			case text == ".", strings.HasSuffix(text, ".."):
				text = path.Join(text, "..")
			default:
				text = path.Dir(text)
			}
		case "reverse":
			text, _ = scan.Reverse(text)
		case "lower", "toLowerCase", "downcase":
			text = strings.ToLower(text)
		case "upper", "toUpperCase", "upcase":
			text = strings.ToUpper(text)
		case "replace", "replaceAll", "gsub", "sub", "tr":
			if len(list) == 1 {
				text = strings.ReplaceAll(text, list[0].Text, "")
			} else if len(list) > 1 && list[0].Text != "" && len(text)*len(list[1].Text) < scan.MaxValue {
				text = strings.ReplaceAll(text, list[0].Text, list[1].Text)
			}
		case "unpack1", "unpack":
			if out, ok := r.decoded(text, scan.Decode64); ok && len(list) > 0 && strings.HasPrefix(list[0].Text, "m") {
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
	r.sh.Env.Budget.Spend(2)
	for j := i + 1; j < len(r.toks) && j < i+256; j++ {
		gap := r.src.Text[min(r.toks[j-1].To, r.toks[j].From):r.toks[j].From]
		if r.toks[j].Kind == ';' || strings.IndexByte(gap, '\n') >= 0 {
			return j
		}
	}
	return min(i+256, len(r.toks))
}

// number is the value of a token that is a number.
func number(t tokens.Token) (int64, bool) {
	if t.Kind != 'i' || t.Text[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(t.Text, 0, 32)
	return n, err == nil
}

// numbered is the text of a list of character numbers.
func numbered(toks []tokens.Token) (string, bool) {
	var b strings.Builder
	for _, t := range toks {
		if n, ok := number(t); ok && n >= ' ' {
			b.WriteRune(rune(n))
		} else if strings.IndexByte("-+^*/&%", t.Kind) >= 0 && t.Text != "&" {
			return "", false // computed
		}
	}
	return b.String(), b.Len() > 2
}

// indexed: x["sys"+"tem"]("…") calls what its string names.
func (r *inlineRun) indexed(i int) {
	end := closing(r.toks, i, '[', ']')
	if i > 1 && end < len(r.toks) && (end+1 == len(r.toks) || r.toks[end+1].Kind != '(') {
		r.alias(i-1, r.toks[i-1].Text, r.join(r.toks[i+1:end]).Text, r.toks[i-1])
	}
	if end+1 >= len(r.toks) || r.toks[end+1].Kind != '(' || i == 0 {
		return
	}
	name := r.toks[i-1]
	text := r.join(r.toks[i+1 : end]).Text
	if text == "" || !act.SyntaxName(text) {
		r.unknownCall(name, r.arguments(end+1))
		return
	}
	name.Text = strings.TrimSuffix(strings.TrimSuffix(name.Text, ".__dict__"), ")") + "." + text
	name.Computed = true
	r.call(name, r.arguments(end+1))
}
