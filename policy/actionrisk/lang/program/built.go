package program

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// filled returns a string token with the expressions and variables inside it replaced by their
// text, as far as it is known.
func (r *inlineRun) filled(t tokens.Token) tokens.Token {
	if len(t.Holes) > 0 && r.sh.Env.Budget.Spend(len(t.Holes)) {
		var b strings.Builder
		n := 0
		for i := 0; i < len(t.Text); i++ {
			if t.Text[i] != scan.Hole || n >= len(t.Holes) {
				b.WriteByte(t.Text[i])
				continue
			}
			inner := r.join(tokens.Tokens(r.sh.Env, t.Holes[n], r.lang))
			if inner.To == 0 {
				inner.Text = string(scan.Hole)
			}
			b.WriteString(inner.Text)
			n++
		}
		t.Text, t.Exact, t.Holes = b.String(), false, nil
	}
	if strings.IndexByte(t.Text, '$') >= 0 && len(r.vars) > 0 && r.sh.Env.In("languages-with-dollars", r.lang) {
		return r.dollars(t)
	}
	return t
}

// dollars returns a string token with the known variables written as $NAME replaced by their text.
func (r *inlineRun) dollars(t tokens.Token) tokens.Token {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(r.vars))) { // longer names first, since one name may begin with another
		v := r.vars[name]
		if strings.Contains(t.Text, "$"+name) && strings.IndexByte(v.Text, scan.Hole) < 0 && len(t.Text)+len(v.Text) < scan.MaxValue {
			t.Text, t.Exact = replaceName(t.Text, name, v.Text), false
		}
	}
	return t
}

// replaceName replaces "$name" by a value, except where it is the beginning of a longer name.
func replaceName(text, name, value string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "$"+name)
		if i < 0 {
			return b.String() + text
		}
		end := i + 1 + len(name)
		b.WriteString(text[:i])
		if end < len(text) && scan.IsNameByte(text[end]) {
			b.WriteString(text[i:end])
		} else {
			b.WriteString(value)
		}
		text = text[end:]
	}
}

// knownName returns the text of a name or call whose value is the same in every program, such as
// the home folder, a temporary folder or the interpreter. It also returns the index of the next
// token.
func (r *inlineRun) knownName(toks []tokens.Token, i int) (string, int, bool) {
	t := toks[i]
	if t.Kind != tokens.Name || len(t.Text) < 3 {
		return "", i, false
	}
	next := i + 1
	call := next < len(toks) && toks[next].Kind == '('
	if call {
		next = min(closing(toks, next)+1, len(toks))
	}
	first, _, _ := strings.Cut(strings.TrimLeft(t.Text, "$@"), ".")
	if _, own := r.vars[first]; own {
		return "", i, false
	}
	if n := r.sh.Env.Named(facts.AsValue, t.Text, r.lang); n != nil {
		return n.Text, next, true
	}
	if i+2 >= len(toks) || !call && toks[next].Kind != '[' || !asksHome(t.Text, toks[i+2]) {
		return "", i, false
	}
	if !call {
		next = min(closing(toks, next)+1, len(toks))
	}
	return "~", next, true
}

// asksHome reports whether a call or an index returns the home folder: the function or object must
// return environment variables, and the argument must be HOME or a similar name.
func asksHome(name string, of tokens.Token) bool {
	if of.Kind != tokens.String || of.Text != "HOME" && of.Text != "USERPROFILE" && of.Text != "user.home" {
		return false
	}
	return environCalls.Has(strings.ToLower(name[strings.LastIndexAny(name, ".:$")+1:]))
}

// environCalls lists functions and objects that return an environment variable or a property by
// its name.
var environCalls = scan.SetOf("getenv environ get env lookupenv var var_os getproperty system_getenv sys.getenv fetch environment get_env _env _server getenvironmentvariable")

// makesChars reports whether the token is the name of a function that converts a number to a
// character.
func makesChars(t tokens.Token) bool {
	return t.Kind == tokens.Name && charMakers.Has(strings.ToLower(strings.TrimLeft(t.Text[strings.LastIndexAny(t.Text, ".:")+1:], "&:")))
}

var charMakers = scan.SetOf("chr char fromcharcode fromcodepoint unichr tochar tochars rawtochar inttoutf8 from_u32")

// fromNumbers returns the text of a list of character codes, if the code after the list converts
// them to characters: [114, 109].map(c => String.fromCharCode(c)).join("").
func (r *inlineRun) fromNumbers(toks []tokens.Token, i, end int) (string, int, bool) {
	if end >= len(toks) || end < i+4 || slices.ContainsFunc(toks[i+1:end], func(t tokens.Token) bool {
		_, ok := number(t)
		return t.Kind != ',' && !ok
	}) {
		return "", i, false
	}
	after, made := end+1, r.sh.Env.In("languages-with-char-lists", r.lang)
	for depth := 0; after < min(len(toks), end+32); after++ {
		switch t := toks[after]; t.Kind {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case '-', '+', '^', '*', '%':
			return "", i, false // the code computes the characters
		case ';', ',':
			if depth == 0 {
				depth = -1 // end of the statement or argument
			}
		default:
			made = made || makesChars(t)
		}
		if depth < 0 {
			break
		}
	}
	text, ok := numbered(toks[i+1 : end])
	return text, min(after, len(toks)), ok && made
}

// packed returns the text of pack in Ruby, such as [hex].pack("H*") or [114, 109].pack("C*").
func (r *inlineRun) packed(toks []tokens.Token, i, end int) (out tokens.Token, next int, ok bool) {
	args := []tokens.Token(nil)
	if next = end + 2; next < len(toks) && toks[next].Kind == '(' {
		args = toks[next+1 : closing(toks, next)]
		next = min(closing(toks, next)+1, len(toks))
	}
	how, text := r.join(args).Text, ""
	list := r.strings(toks[i+1 : end])
	switch {
	case strings.HasPrefix(how, "H") && len(list) > 0:
		text, ok = r.sh.Env.Make("hex", list[0].Text)
	case how != "" && strings.Contains("CcU", how[:1]):
		text, ok = numbered(toks[i+1 : end])
	}
	return tokens.Token{Kind: tokens.String, Text: text, From: toks[i].From, To: toks[end].To}, next, ok
}

// sprintf returns the text that a format and its arguments produce, with unknown parts for unknown
// arguments.
func (r *inlineRun) sprintf(args []tokens.Token) (string, bool) {
	parts := splitArguments(args)
	if len(parts) == 0 || len(parts[0]) != 1 || parts[0][0].Kind != tokens.String {
		return "", false
	}
	texts := make([]string, len(parts)-1)
	for i, part := range parts[1:] {
		if texts[i] = r.join(part).Text; len(part) == 1 && part[0].Kind == tokens.Name {
			if _, ok := number(part[0]); ok {
				texts[i] = part[0].Text
			}
		}
	}
	text, _ := scan.Format(parts[0][0].Text, texts, string(scan.Hole), false)
	return text, true
}

// firstArgument returns the tokens before the first comma outside brackets.
func firstArgument(args []tokens.Token) []tokens.Token {
	if parts := splitArguments(args); len(parts) > 0 {
		return parts[0]
	}
	return args
}

// splitArguments cuts a list of arguments at the commas outside brackets.
func splitArguments(args []tokens.Token) (out [][]tokens.Token) {
	start := 0
	for i, t := range outside(args) {
		if t.Kind == ',' {
			out, start = append(out, args[start:i]), i+1
		}
	}
	if start < len(args) {
		out = append(out, args[start:])
	}
	return out
}

// outside iterates over the tokens that are not inside brackets, without the brackets themselves.
func outside(toks []tokens.Token) iter.Seq2[int, tokens.Token] {
	return func(yield func(int, tokens.Token) bool) {
		depth := 0
		for i, t := range toks {
			switch t.Kind {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			default:
				if depth <= 0 && !yield(i, t) {
					return
				}
			}
		}
	}
}
