package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// origin is how the text that a name stands for came about.
type origin uint8

const (
	builtText   origin = 1 << iota // decoded, or put together from characters
	fetchedText                    // from the network
)

// given takes what the command line hands to the text, awk's -v name=value, and notes
// the variables whose text is changed in place.
func (r *inlineRun) given() {
	for i := range r.toks {
		r.defines(i)
	}
	if strings.Contains(r.src.text, "=~") || strings.IndexByte(r.src.text, '^') >= 0 {
		for i := range r.toks {
			r.changes(i)
		}
	}
	if r.lang != "awk" || r.sh.carrier == nil {
		return
	}
	for _, o := range r.sh.carrier.opts {
		if name, value, ok := strings.Cut(o.value.Text, "="); ok && (o.name == "-v" || o.name == "--assign") {
			r.vars[name] = inlineToken{kind: 's', text: value, to: len(r.src.text)}
		}
	}
}

// defines notes a function that hands its arguments on to what starts, deletes or
// evaluates: def run(c): os.system(c).
func (r *inlineRun) defines(i int) {
	t := r.toks[i]
	name, from := "", i+2
	switch {
	case t.kind != 'i' || i+3 >= len(r.toks):
		return
	case definers[t.text] && r.toks[i+1].kind == 'i':
		name = r.toks[i+1].text
	case r.toks[i+1].kind == '(' && i > 0 && r.toks[i-1].kind == 'i' && r.opensBody(i+1):
		name = t.text
	case r.toks[i+1].kind == '=' && (r.toks[i+2].text == "lambda" || r.toks[i+2].text == "function" || r.arrow(i+2)):
		name = t.text
	default:
		return
	}
	params := map[string]bool{"_": true, "args": true, "1": true}
	j := from
	for ; j < min(from+16, len(r.toks)); j++ {
		if k := r.toks[j].kind; k == 'i' {
			params[strings.TrimLeft(r.toks[j].text, "$@")] = true
		} else if k == ')' || k == ':' || k == '>' || k == '{' {
			break
		}
	}
	for end := min(j+60, len(r.toks)); j+2 < end && !definers[r.toks[j+1].text]; j++ {
		s := r.toks[j]
		first, _, dotted := strings.Cut(s.text, ".")
		if n, ok := named(ruleset().code.receivers, s.text, r.lang); ok && dotted && params[first] && strings.IndexByte("duD", n.does) >= 0 {
			r.rename(name, "remove_tree")
			return
		}
		if s.kind != 'i' || r.toks[j+1].kind != '(' || strings.IndexByte("svdDue", commonOrNamed(s.text, r.lang)) < 0 {
			continue
		}
		for _, a := range r.toks[j+2 : min(j+6, len(r.toks))] {
			if a.kind == 'i' && params[strings.TrimLeft(a.text, "$@")] {
				r.rename(name, s.text)
				return
			}
			if a.kind == ')' {
				break
			}
		}
	}
}

// opensBody: the bracket at i is followed by a brace, as that of a function is.
func (r *inlineRun) opensBody(i int) bool {
	switch r.lang {
	case "c", "java", "csharp", "dart", "groovy":
		end := closing(r.toks, i, '(', ')')
		return end+1 < len(r.toks) && end < i+16 && r.toks[end+1].kind == '{'
	}
	return false
}

// arrow: a function begins at i, written with an arrow.
func (r *inlineRun) arrow(i int) bool {
	for j := i; j+1 < min(i+10, len(r.toks)); j++ {
		if r.toks[j].kind == '=' && r.toks[j+1].kind == '>' {
			return true
		}
		if k := r.toks[j].kind; k == ';' || k == 's' {
			return false
		}
	}
	return false
}

// changes notes a variable that is changed in place at token i: s[i] ^= 1, $c =~ tr/…/…/.
func (r *inlineRun) changes(i int) {
	name := ""
	switch t := r.toks[i]; {
	case i+3 < len(r.toks) && r.toks[i+1].kind == '=' && r.toks[i+2].kind == '~' && (r.toks[i+3].text == "tr" || r.toks[i+3].text == "y"):
		if name = t.text; t.kind == ')' { // ($c = "…") =~ tr
			name = r.toks[min(opening(r.toks, i, '(', ')')+1, i)].text
		}
	case t.kind == 'i' && i+1 < len(r.toks) && r.toks[i+1].kind == '[':
		if end := closing(r.toks, i+1, '[', ']'); end+1 < len(r.toks) && (r.toks[end+1].kind == '^' || r.toks[end+1].kind == '=' && slices.ContainsFunc(r.toks[end+2:min(end+12, len(r.toks))], func(t inlineToken) bool { return t.kind == '^' })) {
			name = t.text
		}
	}
	if name == "" {
		return
	}
	if r.changed == nil {
		r.changed = map[string]bool{}
	}
	r.changed[strings.TrimLeft(name, "$@")] = true
}

// origins looks through assignments and functions, twice, since a function may stand
// behind its call.
func (r *inlineRun) origins() map[string]origin {
	if r.from != nil {
		return r.from
	}
	r.from = map[string]origin{}
	for range 2 {
		for i := range r.toks {
			if name, body := r.madeAt(i); len(body) > 0 && r.sh.e.budget.spend(1+len(body)/2) {
				o := r.origin(body)
				if i+1 < len(r.toks) && r.toks[i+1].kind == '+' && slices.ContainsFunc(body, func(t inlineToken) bool { return t.kind == 'i' }) {
					o |= r.origin(r.toks) & fetchedText // gathered piece by piece
				}
				if o != 0 && len(r.from) < scan.MaxLoop {
					r.from[name] |= o
				}
			}
		}
	}
	return r.from
}

// madeAt is the name that gets a text at token i, and the tokens that make it.
func (r *inlineRun) madeAt(i int) (string, []inlineToken) {
	t := r.toks[i]
	if t.kind != 'i' || i+2 >= len(r.toks) {
		return "", nil
	}
	next := r.toks[i+1]
	name := strings.TrimLeft(t.text, "$@")
	switch {
	case definers[t.text] && next.kind == 'i':
		return next.text, r.toks[i+2 : min(i+80, len(r.toks))]
	case t.text == "as" && next.kind == 'i':
		return next.text, r.toks[max(i-24, 0):i]
	case next.kind == '=' && r.toks[i+2].kind != '=', (next.kind == '+' || next.kind == '.') && r.toks[i+2].kind == '=':
		return name, r.toks[i+2 : max(r.statement(i), i+2)]
	case next.kind == ',' && i+3 < len(r.toks) && r.toks[i+2].kind == 'i' && r.toks[i+3].kind == '=' && !r.argument(i):
		return name, r.toks[i+4 : max(r.statement(i+3), i+4)]
	}
	return "", nil
}

// definers are the words before the name of a function.
var definers = scan.SetOf("def function fn func fun sub proc defp")

// origin is how what stands in tokens came about.
func (r *inlineRun) origin(toks []inlineToken) (o origin) {
	if !r.sh.e.budget.spend(1 + len(toks)/2) {
		return 0
	}
	c := ruleset().code
	for i, t := range toks {
		switch {
		case t.kind == '[' && i+4 < len(toks) && toks[i+1].kind == ':' && toks[i+2].kind == ':' && toks[i+3].kind == '-':
			o |= builtText // backwards
		case t.kind == '^' && !powers[r.lang]:
			o |= builtText
		case t.kind == 's' && (strings.HasPrefix(t.text, "curl ") || strings.HasPrefix(t.text, "wget ")):
			o |= fetchedText
		case t.kind == 's' && i > 1 && clientModules[t.text] && i+2 < len(toks) && (toks[i-2].text == "require" || toks[i-2].text == "import") && strings.HasPrefix(toks[i+2].text, "."):
			o |= fetchedText
		case t.kind == 's' && i > 0 && strings.Contains(t.text, "://") && strings.HasSuffix(toks[max(i-2, 0)].text, "file_get_contents"):
			o |= fetchedText
		}
		if t.kind != 'i' {
			continue
		}
		name := strings.TrimSuffix(t.text, "!")
		if first, rest, ok := strings.Cut(name, "."); ok && r.names[first] != "" {
			name = r.names[first] + "." + rest
		}
		if strings.HasSuffix(name, "code") && i+2 < len(toks) && toks[i+2].kind == 's' && codecNames[strings.ToLower(toks[i+2].text)] {
			o |= builtText // decode("rot13")
		}
		if _, ok := named(c.builders, name, r.lang); ok || strings.HasSuffix(name, "Buffer.from") {
			o |= builtText
		}
		if _, ok := named(c.fetchers, name, r.lang); ok || strings.HasPrefix(name, "urllib") || strings.HasPrefix(name, "Net::HTTP") || strings.HasPrefix(name, "LWP") {
			o |= fetchedText
		}
		if first, _, _ := strings.Cut(strings.TrimLeft(name, "$@"), "."); first != "" {
			if o |= r.from[first]; r.changed[first] {
				o |= builtText
			}
		}
	}
	return o
}

// powers are the languages in which "^" is no exclusive or.
var powers = scan.SetOf("r lua julia octave haskell ocaml scala")

// codecNames are codecs that hide a text.
var codecNames = scan.SetOf("rot13 rot_13 rot-13 hex hex_codec base64 base64_codec zlib bz2 uu latin-1-hex utf-7 utf_7 punycode")

// clientModules are modules of JavaScript that fetch.
var clientModules = scan.SetOf("http https node:http node:https axios got node-fetch undici needle superagent request bent ky")

// unknown reports that a text is run that is not known, if what makes it shows that
// it was built or fetched to be run.
func (r *inlineRun) unknown(name inlineToken, args []inlineToken) bool {
	r.origins()
	o := r.origin(args)
	switch {
	case o&fetchedText != 0:
		r.sh.e.raise("rce.inline-exec", r.src, name.from, name.to, "")
	case o&builtText != 0:
		r.sh.e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
	}
	return o != 0
}

// fetchesAtAll: a text that is not known is evaluated where something is fetched.
func (r *inlineRun) fetchesAtAll(name inlineToken) bool {
	if r.all == nil {
		o := r.origin(r.toks)
		r.all = &o
	}
	if *r.all&fetchedText == 0 {
		return false
	}
	r.sh.e.raise("rce.inline-exec", r.src, name.from, name.to, "")
	return true
}

// kindOf is what a call does, with these arguments.
func (r *inlineRun) kindOf(name inlineToken, args []inlineToken) byte {
	kind := sinkOf(name.text, r.lang)
	if kind != 'D' {
		return kind
	}
	if slices.ContainsFunc(args, func(t inlineToken) bool {
		return strings.Contains(strings.ToLower(t.text), "recursive") || t.kind == 's' && (t.text == "s" || t.text == "rf") || t.text == "true"
	}) {
		return 'd'
	}
	return commonSink(name.text, r.lang)
}
