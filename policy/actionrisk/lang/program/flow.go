package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// origin is a set of the ways in which the text of a name was created.
type origin uint8

const (
	builtText   origin = 1 << iota // the text was decoded, or joined from characters
	fetchedText                    // the text was downloaded from the network
)

// given collects the functions that the program text defines, the variables that it changes in
// place, and the variables that awk gets with -v name=value.
func (r *inlineRun) given() {
	for i := range r.toks {
		r.defines(i)
	}
	if strings.Contains(r.src.Text, "=~") || strings.IndexByte(r.src.Text, '^') >= 0 {
		for i := range r.toks {
			r.changes(i)
		}
	}
	if r.lang != "awk" || r.sh.Carrier == nil {
		return
	}
	for _, o := range r.sh.Carrier.Opts {
		if name, value, ok := strings.Cut(o.Value.Text, "="); ok && (o.Name == "-v" || o.Name == "--assign") {
			r.vars[name] = tokens.Token{Kind: tokens.String, Text: value, To: len(r.src.Text)}
		}
	}
}

// defines records a function that passes its parameters to a function which starts, deletes or
// evaluates something: def run(c): os.system(c). Calls of it are judged as calls of that function.
func (r *inlineRun) defines(i int) {
	name := r.definedAt(i)
	if name == "" {
		return
	}
	params := map[string]bool{"_": true, "args": true, "1": true}
	j := i + 2
	for ; j < min(i+18, len(r.toks)); j++ {
		if k := r.toks[j].Kind; k == tokens.Name {
			params[strings.TrimLeft(r.toks[j].Text, "$@")] = true
		} else if k == ')' || k == ':' || k == '>' || k == '{' {
			break
		}
	}
	for end := min(j+60, len(r.toks)); j+2 < end && !definers.Has(r.toks[j+1].Text); j++ {
		if does := r.handedTo(j, params); does != "" {
			r.rename(name, does)
			return
		}
	}
}

// definedAt returns the name of the function whose definition begins at token i, or "".
func (r *inlineRun) definedAt(i int) string {
	t := r.toks[i]
	if t.Kind != tokens.Name || i+3 >= len(r.toks) {
		return ""
	}
	switch one, two := r.toks[i+1], r.toks[i+2]; {
	case definers.Has(t.Text) && one.Kind == tokens.Name:
		return one.Text
	case one.Kind == '(' && i > 0 && r.toks[i-1].Kind == tokens.Name && r.opensBody(i+1),
		one.Kind == '=' && (two.Text == "lambda" || two.Text == "function" || r.arrow(i+2)):
		return t.Text
	}
	return ""
}

// handedTo returns the name of the function that is called at token i with one of the parameters,
// if the call starts, deletes or evaluates something, and otherwise "".
func (r *inlineRun) handedTo(i int, params map[string]bool) string {
	t := r.toks[i]
	if first, _, dotted := strings.Cut(t.Text, "."); dotted && params[first] {
		if n := r.sh.Env.Named(facts.AsReceiver, t.Text, r.lang); n != nil && n.Does.Deletes() {
			return "remove_tree"
		}
	}
	if t.Kind != tokens.Name || r.toks[i+1].Kind != '(' {
		return ""
	}
	if kind := r.sinkOf(t.Text); !kind.Deletes() && kind != facts.RunsWords && !r.runs(t) {
		return ""
	}
	given := r.toks[i+2 : min(i+6, closing(r.toks, i+1), len(r.toks))]
	if slices.ContainsFunc(given, func(a tokens.Token) bool { return a.Kind == tokens.Name && params[strings.TrimLeft(a.Text, "$@")] }) {
		return t.Text
	}
	return ""
}

// opensBody reports whether a "{" follows the brackets at token i, as in the definition of a
// function.
func (r *inlineRun) opensBody(i int) bool {
	switch r.lang {
	case "c", "java", "csharp", "dart", "groovy":
		end := closing(r.toks, i)
		return end+1 < len(r.toks) && end < i+16 && r.toks[end+1].Kind == '{'
	}
	return false
}

// arrow reports whether an arrow function begins at token i.
func (r *inlineRun) arrow(i int) bool {
	for j := i; j+1 < min(i+10, len(r.toks)); j++ {
		if r.toks[j].Kind == '=' && r.toks[j+1].Kind == '>' {
			return true
		}
		if k := r.toks[j].Kind; k == ';' || k == tokens.String {
			return false
		}
	}
	return false
}

// changes records a variable that is changed in place at token i: s[i] ^= 1, $c =~ tr/…/…/.
func (r *inlineRun) changes(i int) {
	name := ""
	switch t := r.toks[i]; {
	case r.at(i, 1).Kind == '=' && r.at(i, 2).Kind == '~' && (r.at(i, 3).Text == "tr" || r.at(i, 3).Text == "y"):
		if name = t.Text; t.Kind == ')' { // for example ($c = "…") =~ tr
			name = r.toks[min(opening(r.toks, i)+1, i)].Text
		}
	case t.Kind == tokens.Name && r.at(i, 1).Kind == '[' && r.isXored(closing(r.toks, i+1)):
		name = t.Text
	}
	if name == "" {
		return
	}
	if r.changed == nil {
		r.changed = map[string]bool{}
	}
	r.changed[strings.TrimLeft(name, "$@")] = true
}

// isXored reports whether "^" changes the element whose index ends at token i.
func (r *inlineRun) isXored(i int) bool {
	next := r.at(i, 1).Kind
	return next == '^' || next == '=' && slices.ContainsFunc(r.toks[i+2:min(i+12, len(r.toks))], func(t tokens.Token) bool { return t.Kind == '^' })
}

// origins returns the origin of the text of each name. It reads the assignments and functions
// twice, because a function may be defined after its call.
func (r *inlineRun) origins() map[string]origin {
	if r.from != nil {
		return r.from
	}
	r.from = map[string]origin{}
	for range 2 {
		for i := range r.toks {
			if name, body := r.madeAt(i); len(body) > 0 && r.sh.Env.Budget.Spend(1+len(body)/2) {
				o := r.origin(body)
				if i+1 < len(r.toks) && r.toks[i+1].Kind == '+' && slices.ContainsFunc(body, func(t tokens.Token) bool { return t.Kind == tokens.Name }) {
					o |= r.origin(r.toks) & fetchedText // the text is downloaded part by part
				}
				if o != 0 && len(r.from) < scan.MaxLoop {
					r.from[name] |= o
				}
			}
		}
	}
	return r.from
}

// madeAt returns the name that is assigned or defined at token i, and the tokens of its value or
// body.
func (r *inlineRun) madeAt(i int) (string, []tokens.Token) {
	t := r.toks[i]
	if t.Kind != tokens.Name || i+2 >= len(r.toks) {
		return "", nil
	}
	next, name := r.toks[i+1], strings.TrimLeft(t.Text, "$@")
	assigns := r.toks[i+2].Kind == '='
	switch next.Kind {
	case tokens.Name:
		if definers.Has(t.Text) {
			return next.Text, r.toks[i+2 : min(i+80, len(r.toks))]
		}
		if t.Text == "as" {
			return next.Text, r.toks[max(i-24, 0):i]
		}
		return "", nil
	case '=':
		assigns = !assigns // two "=" are a comparison
	case '+':
	case ',':
		if r.toks[i+2].Kind == tokens.Name && r.at(i, 3).Kind == '=' && !r.argument(i) {
			return name, r.toks[i+4 : max(r.statement(i+3), i+4)]
		}
		return "", nil
	default:
		return "", nil
	}
	if !assigns {
		return "", nil
	}
	return name, r.toks[i+2 : max(r.statement(i), i+2)]
}

// definers lists keywords that precede the name of a defined function.
var definers = scan.SetOf("def function fn func fun sub proc defp")

// origin returns the origins of all values among the tokens.
func (r *inlineRun) origin(toks []tokens.Token) (o origin) {
	if !r.sh.Env.Budget.Spend(1 + len(toks)/2) {
		return 0
	}
	for i, t := range toks {
		switch {
		case t.Kind == '[' && backwards(toks[i+1:]), t.Kind == '^' && !r.sh.Env.In("languages-with-powers", r.lang):
			o |= builtText
		case t.Kind == tokens.String && fetchedAt(toks, i):
			o |= fetchedText
		case t.Kind == tokens.Name:
			o |= r.originOf(toks, i)
		}
	}
	return o
}

// backwards reports whether the tokens begin with "::-", as in the slice [::-1].
func backwards(toks []tokens.Token) bool {
	return len(toks) > 3 && toks[0].Kind == ':' && toks[1].Kind == ':' && toks[2].Kind == '-'
}

// fetchedAt reports whether the string at token i is used for a download: a command line, a URL
// that is read, or the name of a client module.
func fetchedAt(toks []tokens.Token, i int) bool {
	t := toks[i]
	switch {
	case strings.HasPrefix(t.Text, "curl ") || strings.HasPrefix(t.Text, "wget "):
		return true
	case i > 1 && clientModules.Has(t.Text) && i+2 < len(toks) && (toks[i-2].Text == "require" || toks[i-2].Text == "import") && strings.HasPrefix(toks[i+2].Text, "."):
		return true
	}
	return i > 0 && strings.Contains(t.Text, "://") && strings.HasSuffix(toks[max(i-2, 0)].Text, "file_get_contents")
}

// originOf returns the origin of the name at token i, or of the result of its call.
func (r *inlineRun) originOf(toks []tokens.Token, i int) (o origin) {
	c, name := r.sh.Env, strings.TrimSuffix(toks[i].Text, "!")
	if first, rest, ok := strings.Cut(name, "."); ok && r.names[first] != "" {
		name = r.names[first] + "." + rest
	}
	if strings.HasSuffix(name, "code") && i+2 < len(toks) && toks[i+2].Kind == tokens.String && codecNames.Has(strings.ToLower(toks[i+2].Text)) {
		o |= builtText // for example decode("rot13")
	}
	if c.Named(facts.AsBuilder, name, r.lang) != nil || strings.HasSuffix(name, "Buffer.from") {
		o |= builtText
	}
	if c.Named(facts.AsFetcher, name, r.lang) != nil || scan.HasAnyPrefix(name, "urllib", "Net::HTTP", "LWP") {
		o |= fetchedText
	}
	first, _, _ := strings.Cut(strings.TrimLeft(name, "$@"), ".")
	if o |= r.from[first]; r.changed[first] {
		o |= builtText
	}
	return o
}

// codecNames lists codecs that can hide a text.
var codecNames = scan.SetOf("rot13 rot_13 rot-13 hex hex_codec base64 base64_codec zlib bz2 uu latin-1-hex utf-7 utf_7 punycode")

// clientModules lists JavaScript modules that download.
var clientModules = scan.SetOf("http https node:http node:https axios got node-fetch undici needle superagent request bent ky")

// unknown reports that an unknown text runs, if the text was decoded, joined from characters or
// downloaded. It returns whether it reported that.
func (r *inlineRun) unknown(name tokens.Token, args []tokens.Token) bool {
	r.origins()
	o := r.origin(args)
	switch {
	case o&fetchedText != 0:
		r.sh.Env.See(act.ProgramRuns, r.src, name.From, name.To, "")
	case o&builtText != 0:
		r.sh.Env.See(act.RunsUnknownText, r.src, name.From, name.To, "")
	}
	return o != 0
}

// fetchesAtAll reports that an unknown text is evaluated, if the program text downloads anything.
// It returns whether it reported that.
func (r *inlineRun) fetchesAtAll(name tokens.Token) bool {
	if r.all == nil {
		o := r.origin(r.toks)
		r.all = &o
	}
	if *r.all&fetchedText == 0 {
		return false
	}
	r.sh.Env.See(act.ProgramRuns, r.src, name.From, name.To, "")
	return true
}

// sinkOf returns the kind of a call of the dotted name. It assumes that the arguments ask to delete
// folders with their content.
func (r *inlineRun) sinkOf(name string) facts.Doing {
	return r.kindIf(name, func() bool { return true })
}

// kindOf returns the kind of a call with these arguments.
func (r *inlineRun) kindOf(name tokens.Token, args []tokens.Token) facts.Doing {
	kind := r.kindIf(name.Text, func() bool {
		return slices.ContainsFunc(args, func(t tokens.Token) bool {
			return strings.Contains(strings.ToLower(t.Text), "recursive") || t.Kind == tokens.String && (t.Text == "s" || t.Text == "rf") || t.Text == "true"
		})
	})
	if kind == facts.DeletesTreeIfTold {
		return facts.DeletesTree
	}
	return kind
}

// kindIf returns the kind of a call of the dotted name. told reports whether the arguments ask to
// delete folders with their content.
func (r *inlineRun) kindIf(name string, told func() bool) facts.Doing {
	for n := range r.sh.Env.AllNamed(facts.AsCall, strings.TrimSuffix(name, "!"), r.lang) {
		if n.Does != facts.DeletesTreeIfTold || told() {
			return n.Does
		}
	}
	return facts.Nothing
}
