package program

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// joining is a text that join builds from several expressions. n counts the expressions. path
// means that a "/" precedes the next one and joins paths: Path("a") / "b".
type joining struct {
	out  tokens.Token
	n    int
	path bool
}

func (j *joining) add(t tokens.Token) {
	if j.n++; j.n == 1 {
		j.out = t
		return
	}
	before := j.out.Text
	switch {
	case !j.path:
	case strings.HasPrefix(t.Text, "/"): // an absolute path replaces the path before it
		before = ""
	case !strings.HasSuffix(before, "/"):
		before += "/"
	}
	j.out.Text, j.out.Exact, j.out.To, j.path = before+t.Text, false, max(t.To, j.out.To), false
}

// join returns the text of the expressions up to a comma: strings, known variables, decoded texts
// and results of known functions. Everything else becomes an unknown part.
func (r *inlineRun) join(toks []tokens.Token) tokens.Token {
	j := joining{out: tokens.Token{Kind: tokens.String}}
	for i := 0; i < len(toks) && len(j.out.Text) <= scan.MaxValue && r.sh.Env.Budget.Spend(1); i++ {
		if t, next, ok := r.value(toks, i); ok {
			j.add(t)
			i = next - 1
			continue
		}
		switch t := toks[i]; t.Kind {
		case ',', ';', ')', ']':
			return j.out
		case tokens.Name:
			i = r.joinName(&j, toks, i)
		case '/':
			j.path = j.n > 0 && r.lang == "python"
		}
	}
	return j.out
}

// joinName adds a name or call at token i whose text is not known. It returns the index of its
// last token.
func (r *inlineRun) joinName(j *joining, toks []tokens.Token, i int) int {
	t, next := toks[i], tokens.Token{}
	if i+1 < len(toks) {
		next = toks[i+1]
	}
	switch {
	case next.Kind == tokens.String && (r.lang == "perl" || r.lang == "ruby"):
		// a call without brackets; the next token is its argument
	case next.Kind == '(':
		end := closing(toks, i+1)
		if t.Text == "require" { // require returns a module, not a text
			return end
		}
		end = min(end, len(toks))
		if text, ok := r.passed(t, toks[i+2:end], j.n > 0); ok {
			j.add(tokens.Token{Kind: tokens.String, Text: text, From: t.From, To: t.To})
		}
		return end
	case valueWords.Has(t.Text), strings.Trim(t.Text, ".") == "", len(t.Text) == 1 && j.n == 0, isPrefix(t.Text):
	default:
		to := t.To
		if j.n > 0 {
			to = j.out.To
		}
		j.add(tokens.Token{Kind: tokens.String, Text: string(scan.Hole), From: t.From, To: to})
	}
	return i
}

// valueWords lists keywords that precede a value and do not change it.
var valueWords = scan.SetOf("new await try return yield ref mut const let var unsafe move not")

// passed returns the text of a call of an unknown function: the text of the first argument, as for
// expanduser("~"), or an unknown part if the function decodes or has no arguments. after means
// that a text precedes the call; then an unknown method adds nothing to it.
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

// makes reports whether a call returns a text that differs from its arguments: it decodes, or it
// is a function of the program text that builds a text.
func (r *inlineRun) makes(t tokens.Token) bool {
	if r.sh.Env.Named(facts.AsBuilder, t.Text, r.lang) != nil {
		return true
	}
	return act.SyntaxName(t.Text) && r.origins()[t.Text] != 0
}

// statementStart returns the index of the first token of the statement with token i.
func (r *inlineRun) statementStart(i int) int {
	for j := i; j > 0 && j > i-256; j-- {
		if k := r.toks[j-1].Kind; k == ';' || k == '{' || k == '}' {
			return j
		}
	}
	return max(i-256, 0)
}

// value returns the text of the expression at token i, after all methods called on it, and the
// index after the expression. ok is false if the text is not known.
func (r *inlineRun) value(toks []tokens.Token, i int) (out tokens.Token, next int, ok bool) {
	if i >= len(toks) || !r.sh.Env.Budget.Spend(1) { // the statement has no value
		return out, i, false
	}
	t := toks[i]
	if text, after, known := r.knownName(toks, i); known {
		out = tokens.Token{Kind: tokens.String, Text: text, From: t.From, To: toks[after-1].To}
		return r.methods(out, t, toks, i, after)
	}
	switch t.Kind {
	case '[', '{':
		return r.listValue(toks, i)
	case tokens.String:
		out, next, ok = r.filled(t), i+1, true
	case '(':
		out, next, ok = r.groupValue(toks, i)
	case tokens.Name:
		return r.nameValue(toks, i)
	}
	if !ok {
		return tokens.Token{}, i, false
	}
	return r.methods(out, t, toks, i, next)
}

// nameValue is value for an expression that begins with a name or a call.
func (r *inlineRun) nameValue(toks []tokens.Token, i int) (out tokens.Token, next int, ok bool) {
	t := toks[i]
	call := i+1 < len(toks) && toks[i+1].Kind == '('
	switch {
	case call && (t.Text == "require" || t.Text == "__import__"): // the call returns a module
		if end := closing(toks, i+1); isMethod(toks, end+1) {
			return r.value(toks, end+1)
		}
	case call && !r.methodOfVariable(t):
		out, next, ok = r.calledValue(toks, i)
	default:
		name, rest, _ := strings.Cut(strings.TrimRight(strings.TrimLeft(t.Text, "$@"), "."), ".")
		out, ok = r.vars[name]
		ok = ok && !r.changed[name]
		if next = i + 1; rest != "" { // the name ends with a method of the variable
			t.Text, next = "."+rest, i
		}
	}
	if !ok {
		return tokens.Token{}, i, false
	}
	return r.methods(out, t, toks, i, next)
}

// isMethod reports whether token i is a method that is called on the expression before it.
func isMethod(toks []tokens.Token, i int) bool {
	return i < len(toks) && toks[i].Kind == tokens.Name && toks[i].Text[0] == '.'
}

// groupValue is value for an expression in brackets on which a method is called.
func (r *inlineRun) groupValue(toks []tokens.Token, i int) (out tokens.Token, next int, ok bool) {
	end := closing(toks, i)
	if !isMethod(toks, end+1) {
		return out, i, false
	}
	out = r.join(toks[i+1 : end])
	return out, end + 1, out.To > 0 && strings.IndexByte(out.Text, scan.Hole) < 0
}

// listValue is value for an expression that begins with a list and converts it to a text.
func (r *inlineRun) listValue(toks []tokens.Token, i int) (out tokens.Token, next int, ok bool) {
	t := toks[i]
	end := closing(toks, i)
	if text, after, known := r.fromNumbers(toks, i, end); known {
		return tokens.Token{Kind: tokens.String, Text: text, From: t.From, To: toks[after-1].To}, after, true
	}
	if end+1 < len(toks) && toks[end+1].Text == ".pack" {
		return r.packed(toks, i, end)
	}
	if end+1 >= len(toks) || toks[end+1].Text != ".join" {
		return out, i, false
	}
	list, sep := r.strings(toks[i+1:end]), " "
	if end+3 < len(toks) && toks[end+3].Kind == tokens.String {
		sep = toks[end+3].Text
	}
	return r.listed(list, sep, t), min(closing(toks, end+2)+1, len(toks)), len(list) > 0
}

// calledValue returns the text of the result of the call at token i.
func (r *inlineRun) calledValue(toks []tokens.Token, i int) (out tokens.Token, next int, ok bool) {
	end := closing(toks, i+1)
	text, ok := r.callValue(toks[i].Text, toks[i+2:min(end, len(toks))])
	out = tokens.Token{Kind: tokens.String, Text: text, From: toks[i].From, To: toks[min(end, len(toks)-1)].To}
	return out, min(end+1, len(toks)), ok && strings.IndexByte(text, scan.Hole) < 0
}

// methods applies the methods that begin at toks[next] to the text in out. If next is i, one name
// contains both the variable and the first method; then t is that method.
func (r *inlineRun) methods(out, t tokens.Token, toks []tokens.Token, i, next int) (tokens.Token, int, bool) {
	for next < len(toks) {
		called := toks[next]
		if next == i {
			called = t
		}
		text, after, changed := r.method(out, called, toks, next)
		if !changed {
			if isMethod([]tokens.Token{called}, 0) && len(called.Text) > 1 {
				return r.unknownMethod(out, called, toks, i, next)
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

// unknownMethod handles a method or member that is not known. It keeps the text, unless the method
// creates another text.
func (r *inlineRun) unknownMethod(out, called tokens.Token, toks []tokens.Token, i, next int) (tokens.Token, int, bool) {
	if r.makes(called) {
		return out, i, false
	}
	if next == i {
		if next++; next < len(toks) && toks[next].Kind == '(' {
			next = min(closing(toks, next)+1, len(toks))
		}
	}
	return out, next, true
}

// methodOfVariable reports whether the dotted name begins with a variable whose text is known.
func (r *inlineRun) methodOfVariable(t tokens.Token) bool {
	first, _, dotted := strings.Cut(strings.TrimLeft(t.Text, "$@"), ".")
	_, ok := r.vars[first]
	return dotted && ok
}

// shuts maps each opening bracket to the closing one.
var shuts = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// closing returns the index of the bracket that closes the one at token i, or len(toks).
func closing(toks []tokens.Token, i int) int {
	if i >= len(toks) || toks[i].Partner <= 0 {
		return len(toks)
	}
	return min(i+int(toks[i].Partner), len(toks))
}

func (r *inlineRun) listed(list []tokens.Token, sep string, at tokens.Token) tokens.Token {
	return tokens.Token{Kind: tokens.String, Text: strings.Join(texts(list), sep), From: at.From, To: at.To}
}

func texts(list []tokens.Token) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.Text
	}
	return out
}

// callValue returns the result of a call with known arguments: decoding, characters by their
// codes, formats, joined paths, other text functions. It returns false if the result is not known.
func (r *inlineRun) callValue(name string, args []tokens.Token) (string, bool) {
	last := lastName(name)
	if folder := tempCalls[last]; folder != "" {
		return folder, true
	}
	join := r.sh.Env.Named(facts.AsJoin, name, r.lang)
	if len(args) == 0 || join == nil && !r.makesText(name, last) || !r.sh.Env.Budget.Spend(1+len(args)/8) {
		return "", false
	}
	if text, ok, final := charsText(last, args); final {
		return text, ok
	}
	switch {
	case formatCalls.Has(last) && name[0] != '.':
		return r.sprintf(args)
	case join != nil:
		return r.joined(args, join.Text)
	}
	list := r.strings(args)
	if len(list) > 1 && r.joinsPath(name) {
		return r.sh.Env.Make("joinpath", texts(list)...)
	}
	return r.functionValue(last, args, list)
}

// charsText returns the text of arguments that are character codes. final means that the caller
// need not try other functions, because the text is known or its characters are computed.
func charsText(last string, args []tokens.Token) (text string, ok, final bool) {
	made := slices.ContainsFunc(args, makesChars)
	if made || charCalls.Has(last) {
		if text, ok = numbered(args); ok {
			return text, true, true
		}
	}
	return "", false, made && last != "chr" && last != "fromCharCode"
}

// makesText reports whether the result of the function can be evaluated.
func (r *inlineRun) makesText(name, last string) bool {
	return last != "" && (listCalls.Has(last) || r.sh.Env.TextFunction("", last) != nil || name == "Buffer.from")
}

// functionValue returns the text that a function returns. list contains the strings among the
// arguments.
func (r *inlineRun) functionValue(name string, args, list []tokens.Token) (string, bool) {
	arg := func(i int) string {
		if i < len(list) {
			return list[i].Text
		}
		return ""
	}
	switch name {
	case "bytes", "bytearray":
		return numbered(args)
	case "chr", "fromCharCode", "fromCodePoint":
		return characters(args)
	case "from":
		if text, ok := r.sh.Env.Make("codec", arg(0), arg(1)); ok {
			return text, true
		}
		return arg(0), len(list) > 0
	case "pack":
		if strings.HasPrefix(arg(0), "H") {
			return r.sh.Env.Make("hex", arg(1))
		}
		return "", false
	}
	text, ok := r.sh.Env.Apply("", name, texts(list)...)
	return text, ok && text != ""
}

// characters returns the text of character codes that are written as numbers.
func characters(args []tokens.Token) (string, bool) {
	var b strings.Builder
	for _, t := range args {
		if n, ok := number(t); ok && n > 0 {
			b.WriteRune(rune(n))
		} else if t.Kind != ',' {
			return "", false
		}
	}
	return b.String(), true
}

// listCalls lists functions that return a text for numbers, lists or a format.
var listCalls = scan.SetOf("bytes bytearray chr fromCharCode fromCodePoint pack char rawToChar intToUtf8 sprintf Sprintf format")

// charCalls lists functions that convert character codes to a text, and formatCalls those that
// apply a format.
var charCalls, formatCalls = scan.SetOf("bytes bytearray chr fromCharCode fromCodePoint char rawToChar intToUtf8 pack"), scan.SetOf("sprintf Sprintf format")

// joined returns the arguments joined to one text: paste("a", "b", sep=""), path.join.
func (r *inlineRun) joined(args []tokens.Token, sep string) (string, bool) {
	var parts []string
	for _, part := range splitArguments(args) {
		if how := separator(part); how != "" {
			if how == "sep" || len(parts) == 1 {
				sep = part[2].Text
			}
			continue
		}
		t := r.join(part)
		if t.To == 0 || strings.IndexByte(t.Text, scan.Hole) >= 0 {
			return "", false
		}
		if sep == "/" && strings.HasPrefix(t.Text, "/") && !r.joinsAbsolute() {
			parts = nil // an absolute path replaces the path before it
		}
		parts = append(parts, t.Text)
	}
	return strings.Join(parts, sep), len(parts) > 0
}

// joinsAbsolute reports whether, in this language, joining a path with an absolute path keeps
// both.
func (r *inlineRun) joinsAbsolute() bool {
	return r.lang == "go" || r.lang == "ruby" || r.lang == "r"
}

// separator returns the name of an argument that sets the separator, "sep" or "collapse", and ""
// for other arguments.
func separator(part []tokens.Token) string {
	if len(part) == 3 && part[1].Kind == '=' && (part[0].Text == "sep" || part[0].Text == "collapse") {
		return part[0].Text
	}
	return ""
}

// method applies t, a method or a slice at toks[i], to a text. It returns the new text and the
// index after the call, and false if the method is not known.
func (r *inlineRun) method(of, t tokens.Token, toks []tokens.Token, i int) (string, int, bool) {
	text := of.Text
	if t.Kind == '[' {
		return sliced(text, toks, i)
	}
	if t.Kind != tokens.Name || len(t.Text) < 2 || t.Text[0] != '.' {
		return text, i, false
	}
	var list, args []tokens.Token
	next := i + 1
	if end := closing(toks, next); next < len(toks) && (toks[next].Kind == '(' || toks[next].Kind == '[' && r.indexes(t)) {
		args = toks[next+1 : min(end, len(toks))]
		if list = r.strings(args); toks[next].Kind == '[' {
			list = []tokens.Token{{Kind: tokens.String, Text: joinedTexts(args)}}
		}
		next = min(end+1, len(toks))
	}
	for _, name := range strings.Split(t.Text[1:], ".") {
		var known bool
		if text, known = r.methodText(name, of, text, args, list); !known {
			return text, i, false
		}
		if text == string(scan.Hole) {
			break
		}
	}
	return text, next, true
}

// methodText returns the result of one method of a text, and false if it is not known. list
// contains the strings among the arguments.
func (r *inlineRun) methodText(name string, of tokens.Token, text string, args, list []tokens.Token) (string, bool) {
	if out, ok := r.sh.Env.Apply("", "."+name, append([]string{text}, texts(list)...)...); ok {
		return out, true
	}
	switch {
	case name == "split":
		if len(list) != 1 || list[0].Text != "" { // split("") returns the characters unchanged
			text = strings.TrimSpace(text)
		}
	case name == "join":
		text = r.joinMethod(of, text, args, list)
	case name == "unpack1" || name == "unpack":
		if out, ok := r.sh.Env.Make("base64", text); ok && len(list) > 0 && strings.HasPrefix(list[0].Text, "m") {
			text = out
		}
	default:
		return text, false
	}
	return text, true
}

// indexes reports whether the name is a member with an index in square brackets, as in parents[1].
func (r *inlineRun) indexes(name tokens.Token) bool {
	f := r.sh.Env.TextFunction("", "."+lastName(name.Text))
	return f != nil && scan.Functions[f.Does].Index
}

func joinedTexts(toks []tokens.Token) string { return strings.Join(texts(toks), "") }

// sliced returns the reversed text for [::-1], and the text itself for [0]. It returns false for
// other slices.
func sliced(text string, toks []tokens.Token, i int) (string, int, bool) {
	end := closing(toks, i)
	inner := joinedTexts(toks[i+1 : min(end, len(toks))])
	if inner == "::-1" {
		text, _ = scan.Reverse(text)
	}
	return text, min(end+1, len(toks)), inner == "::-1" || inner == "0"
}

// joinMethod returns the result of join, which is called on the separator or on the list. If the
// characters are computed, the result is unknown.
func (r *inlineRun) joinMethod(of tokens.Token, text string, args, list []tokens.Token) string {
	if slices.ContainsFunc(args, makesChars) {
		if chars, known := numbered(args); known {
			return chars
		}
		return string(scan.Hole)
	}
	if of.List || r.lang != "python" && len(list) <= 1 { // its words are already joined
		return text
	}
	if chars, ok := numbered(args); ok {
		return chars
	}
	if len(list) == 0 {
		return text
	}
	return r.listed(list, text, list[0]).Text
}

// statement returns the index after the statement with token i. A semicolon or a line end ends a
// statement. It reads at most 256 tokens.
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

// number returns the value of a token that is an integer.
func number(t tokens.Token) (int64, bool) {
	if t.Kind != tokens.Name || t.Text[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(t.Text, 0, 32)
	return n, err == nil
}

// numbered returns the text of a list of character codes. It returns false if the characters are
// computed, or if the text has fewer than 3 bytes.
func numbered(toks []tokens.Token) (string, bool) {
	var b strings.Builder
	for _, t := range toks {
		if n, ok := number(t); ok && n >= ' ' {
			b.WriteRune(rune(n))
		} else if strings.IndexByte("-+^*/&%", t.Kind) >= 0 && t.Text != "&" {
			return "", false // the characters are computed
		}
	}
	return b.String(), b.Len() > 2
}

// indexed judges x["sys"+"tem"]("…"), a call of the method that a string names. Token i is the
// "[".
func (r *inlineRun) indexed(i int) {
	end := closing(r.toks, i)
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
