package actionrisk

import (
	"maps"
	"slices"
	"strconv"
	"strings"
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
				if o != 0 && len(r.from) < maxLoop {
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
var definers = setOf("def function fn func fun sub proc defp")

// origin is how what stands in tokens came about.
func (r *inlineRun) origin(toks []inlineToken) (o origin) {
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
var powers = setOf("r lua julia octave haskell ocaml scala")

// codecNames are codecs that hide a text.
var codecNames = setOf("rot13 rot_13 rot-13 hex hex_codec base64 base64_codec zlib bz2 uu latin-1-hex utf-7 utf_7 punycode")

// clientModules are modules of JavaScript that fetch.
var clientModules = setOf("http https node:http node:https axios got node-fetch undici needle superagent request bent ky")

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
	if r.origin(r.toks)&fetchedText == 0 {
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

// starts judges a call that starts a program: by a text for a shell, or by words.
func (r *inlineRun) starts(kind byte, name inlineToken, args, list []inlineToken) {
	e := r.sh.e
	first := list[0].text
	if r.origin(args)&builtText != 0 && (len(list) == 1 || kind == 's') && first != string(hole) && decodesAny(args) {
		e.raise("obf.decode-exec", r.src, name.from, name.to, "")
	}
	if slices.Contains(e.groups["shells"], base(first)) {
		if r.feeds = true; r.unknown(name, args) {
			return
		}
		for i, t := range args {
			if i+2 < len(args) && inputArguments[t.text] && (args[i+1].kind == '=' || args[i+1].kind == ':') {
				if text := r.join(args[i+2:]); text.to > 0 && strings.IndexByte(text.text, hole) < 0 {
					r.shellText(text)
				}
			}
		}
	}
	if r.lang == "csharp" || r.lang == "swift" || r.lang == "rust" {
		list = r.chained(name, list)
	}
	if strings.Trim(first, string(hole)) == "" && !slices.ContainsFunc(list, forces) { // which program it is, the text's caller says
		if !r.unknown(name, args) && (r.lang == "awk" || r.fromInput()) {
			e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
		}
		e.doubt("a program text runs a command that is not known")
		return
	}
	if strings.IndexByte(first, ' ') < 0 && len(list) > 1 && (args[0].kind != 's' || kind != 's' || r.lang == "perl" || r.lang == "ruby") || kind == 'v' && len(list) > 1 && r.lang == "csharp" {
		r.run(list)
		return
	}
	r.shellText(list[0])
}

// forces: the word is an option that deletes trees or overrides a refusal.
func forces(t inlineToken) bool {
	switch t.text {
	case "-rf", "-fr", "-Rf", "--force", "-f", "--hard", "-R", "-r", "--no-preserve-root", "--recursive":
		return true
	}
	return false
}

// inputArguments name what a program that is started reads.
var inputArguments = setOf("input stdin_data stdin")

// decodesAny: a decoder stands among tokens, not only what makes single characters.
func decodesAny(toks []inlineToken) bool {
	return slices.ContainsFunc(toks, func(t inlineToken) bool {
		return t.kind == 'i' && (strings.HasSuffix(t.text, "Buffer.from") || slices.ContainsFunc(decoderNames, func(d string) bool { return strings.Contains(t.text, d) }))
	})
}

// chained adds the words that calls and settings elsewhere give to a program that is
// started: Command::new("rm").arg("-rf"), psi.Arguments = "-rf /".
func (r *inlineRun) chained(name inlineToken, list []inlineToken) []inlineToken {
	if len(list) > 1 && r.lang != "csharp" {
		return list
	}
	if r.lang == "csharp" && len(list) == 2 { // its arguments are one text
		var words []inlineToken
		for _, word := range optionWords(list[1].text) {
			words = append(words, inlineToken{kind: 's', text: word, from: list[1].from, to: list[1].to})
		}
		return append(list[:1:1], words...)
	}
	if !r.sh.e.budget.spend(1 + len(r.toks)/4) {
		return list
	}
	for i, t := range r.toks {
		if t.from < name.from || t.kind != 'i' || i+1 >= len(r.toks) {
			continue
		}
		last := t.text[strings.LastIndexByte(t.text, '.')+1:]
		if (last == "arg" || last == "args") && r.toks[i+1].kind == '(' {
			inner := r.arguments(i + 1)
			if len(inner) > 0 && inner[0].kind == '&' {
				inner = inner[1:]
			}
			list = append(list, r.strings(inner)...)
		}
	}
	return list
}

// startedBy runs the program that a text names by settings: p.launchPath = "/bin/rm",
// p.arguments = ["-rf", "/"].
func (r *inlineRun) startedBy(i int) {
	var list []inlineToken
	for j, t := range r.toks {
		last := strings.ToLower(t.text[strings.LastIndexByte(t.text, '.')+1:])
		if j < i || t.kind != 'i' || last != "arguments" || j+1 >= len(r.toks) || r.toks[j+1].kind != '=' {
			continue
		}
		for _, w := range r.strings(r.toks[j+2 : r.statement(j)]) {
			if r.lang == "csharp" {
				for _, word := range optionWords(w.text) {
					list = append(list, inlineToken{kind: 's', text: word, from: w.from, to: w.to})
				}
			} else {
				list = append(list, w)
			}
		}
	}
	if exe := r.join(r.toks[i+2 : r.statement(i)]); exe.to > 0 {
		r.run(append([]inlineToken{exe}, list...))
	}
}

// alternatives are the two arguments of one that depends on something: A if C else B,
// C ? A : B.
func alternatives(args []inlineToken) (one, other []inlineToken, ok bool) {
	depth, mark := 0, -1
	for i, t := range args {
		switch {
		case t.kind == '(' || t.kind == '[' || t.kind == '{':
			depth++
		case t.kind == ')' || t.kind == ']' || t.kind == '}':
			depth--
		case depth > 0:
		case t.kind == ',':
			return nil, nil, false
		case mark < 0 && i > 0 && (t.kind == 'i' && t.text == "if" || t.kind == '?'):
			mark = i
		case mark > 0 && t.kind == 'i' && t.text == "else" && i+1 < len(args) && args[mark].kind == 'i':
			return args[:mark], args[i+1:], true
		case mark > 0 && t.kind == ':' && i+1 < len(args) && i > mark+1 && args[mark].kind == '?':
			return args[mark+1 : i], args[i+1:], true
		}
	}
	return nil, nil, false
}

// index is where a token stands, or -1.
func (r *inlineRun) index(t inlineToken) int {
	i, ok := slices.BinarySearchFunc(r.toks, t.from, func(t inlineToken, from int) int { return t.from - from })
	if !ok {
		return -1
	}
	return i
}

// onReceiver judges a method that does something to the path or command it is called
// on: Path("/srv").rmtree(), "rm -rf /srv".execute().
func (r *inlineRun) onReceiver(name inlineToken, args []inlineToken) bool {
	does, ok := named(ruleset().code.receivers, strings.TrimSuffix(name.text, "!"), r.lang)
	if !ok {
		return false
	}
	kind := does.does
	if kind == 's' && len(args) > 0 || kind != 'w' && slices.ContainsFunc(args, func(t inlineToken) bool { return t.kind == 's' }) {
		return false // the path is its argument
	}
	of, ok := r.receiver(name)
	if !ok || strings.Trim(of.text, string(hole)) == "" {
		if strings.Contains(name.text, ".") && (kind == 'd' || kind == 'u' || kind == 'D') {
			r.sweep()
		}
		return false
	}
	if kind == 'D' {
		kind = 'u'
		if slices.ContainsFunc(args, func(t inlineToken) bool { return strings.Contains(t.text, "recursive") || t.text == "true" }) {
			kind = 'd'
		}
	}
	switch kind {
	case 'd':
		r.run([]inlineToken{{text: "rm"}, {text: "-rf"}, of})
	case 'u':
		r.run([]inlineToken{{text: "rm"}, of})
	case 's':
		r.shellText(of)
	case 'r':
		r.read(name, []inlineToken{of})
	case 'w':
		r.read(name, []inlineToken{of, {kind: 's', text: "w"}})
		r.keeps(of, args, r.strings(args))
	}
	return true
}

// receiver is the text that a method is called on, if it is a literal, a variable or
// the one argument of a constructor.
func (r *inlineRun) receiver(name inlineToken) (inlineToken, bool) {
	if first, _, dotted := strings.Cut(strings.TrimLeft(name.text, "$@"), "."); dotted && first != "" {
		v, ok := r.vars[first]
		return v, ok
	} else if !dotted {
		return inlineToken{}, false
	}
	for i := r.index(name) - 1; i >= 0; {
		switch t := r.toks[i]; t.kind {
		case 's':
			return r.filled(t), true
		case ']':
			list := r.strings(r.toks[opening(r.toks, i, '[', ']')+1 : i])
			return r.listed(list, " ", t), len(list) > 0
		case ')':
			open := opening(r.toks, i, '(', ')')
			if open+1 == i && open > 0 {
				if text, _, known := r.standsFor(r.toks, open-1); known {
					return inlineToken{kind: 's', text: text, from: r.toks[open-1].from, to: t.to}, true
				}
			}
			if open+1 == i { // resolve(): what that is called on
				if i = open - 2; open < 2 || r.toks[open-1].kind != 'i' || !strings.HasPrefix(r.toks[open-1].text, ".") {
					return inlineToken{}, false
				}
				continue
			}
			v := r.join(r.toks[open+1 : i])
			return v, v.to > 0
		default:
			return inlineToken{}, false
		}
	}
	return inlineToken{}, false
}

// opening is the index of the sign that the one at i closes, or 0.
func opening(toks []inlineToken, i int, open, shut byte) int {
	depth := 0
	for ; i > 0; i-- {
		switch toks[i].kind {
		case shut:
			depth++
		case open:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

// lists: the token names what gives the files of a folder.
func (r *inlineRun) lists(t inlineToken) bool {
	if t.kind != 'i' {
		return false
	}
	_, ok := named(ruleset().code.listers, t.text, r.lang)
	return ok
}

// loads judges a call that runs a file or an address.
func (r *inlineRun) loads(name inlineToken, args []inlineToken, what inlineToken) {
	e := r.sh.e
	if scheme, host, _, ok := urlOf(what.text); ok {
		if strings.HasPrefix(scheme, "http") || scheme == "ftp" {
			if !localHost(host) && !moduleHost(host) {
				e.raise("rce.inline-exec", r.src, name.from, name.to, printable(what.text))
			}
		}
		return
	}
	if strings.IndexByte(what.text, hole) >= 0 {
		r.unknown(name, args)
		return
	}
	r.module(name, what.text)
}

// loadsEach judges each of the texts that a call which loads is given.
func (r *inlineRun) loadsEach(name inlineToken, args, list []inlineToken) {
	for _, what := range list {
		r.loads(name, args, what)
	}
}

// module runs a file that the command wrote and the text now loads by this name.
func (r *inlineRun) module(at inlineToken, name string) {
	e := r.sh.e
	f, ok := e.writtenFile(r.sh, name)
	switch {
	case !ok:
	case f.known && r.src.depth < maxDepth && f.word.Text != r.src.text:
		src := r.src.inside(f.word, r.lang)
		e.runInline(r.sh, &src, r.lang)
	case f.taint&fromNetwork != 0:
		e.raise("rce.download-exec", r.src, at.from, at.to, printable(name))
	}
}

// writtenFile is the file that the command wrote under a name, or under the name of
// the module that it holds.
func (e *engine) writtenFile(sh *shell, name string) (flow, bool) {
	if len(e.files) == 0 {
		return flow{}, false
	}
	for _, suffix := range [...]string{"", ".py", "/__main__.py", "/__init__.py", ".js", ".mjs", ".cjs", ".ts", "/index.js", ".rb", ".pm", ".pl", ".lua", ".jl"} {
		if f, ok := e.files[fileKey(sh.cwd, name+suffix)]; ok {
			return f, true
		}
	}
	return flow{}, false
}

// moduleHost: programs of its language import modules from there as from a registry.
func moduleHost(host string) bool {
	switch host {
	case "deno.land", "jsr.io", "esm.sh", "cdn.skypack.dev", "unpkg.com", "cdn.jsdelivr.net", "esm.run", "ga.jspm.io":
		return true
	}
	return false
}

// saves notes the file that an address is saved to.
func (r *inlineRun) saves(list []inlineToken) {
	if len(list) < 2 || !strings.Contains(list[0].text, "://") && strings.IndexByte(list[0].text, hole) < 0 {
		return
	}
	r.sh.e.remember(r.sh, r.word(list[1]), flow{taint: fromNetwork, via: r.lang}, false)
}

// keeps notes what a call writes to a file, which may be run later.
func (r *inlineRun) keeps(file inlineToken, args, content []inlineToken) {
	f := flow{via: r.lang}
	r.origins()
	switch o := r.origin(args); {
	case len(content) > 0 && strings.IndexByte(content[0].text, hole) < 0 && o == 0:
		f.word, f.known = r.word(content[0]), true
	case o&fetchedText != 0, len(content) == 0 && r.origin(r.toks)&fetchedText != 0:
		f.taint = fromNetwork
	case o&builtText != 0:
		f.taint = fromDecoder
	}
	if f.known || f.taint != 0 {
		r.sh.e.remember(r.sh, r.word(file), f, false)
	}
}

// keepsWritten notes what open(file, "w").write(…) writes.
func (r *inlineRun) keepsWritten(name, file inlineToken) {
	i := r.index(name)
	if i < 0 || i+1 >= len(r.toks) || r.toks[i+1].kind != '(' {
		return
	}
	end := closing(r.toks, i+1, '(', ')')
	for j := end + 1; j+1 < min(end+24, len(r.toks)); j++ { // at once, or by the name that it is given
		if t := r.toks[j]; t.kind == 'i' && strings.HasSuffix(t.text, ".write") && r.toks[j+1].kind == '(' {
			args := r.arguments(j + 1)
			r.keeps(file, args, r.strings(args))
			return
		}
	}
}

// awkPipe judges awk's two pipes: what stands before "| getline" is a command, and so
// is what stands behind any other, which, if it is a shell, runs what is printed.
func (r *inlineRun) awkPipe(i int) {
	if i+1 >= len(r.toks) || r.toks[i+1].kind == '|' || i > 0 && r.toks[i-1].kind == '|' {
		return
	}
	right := i + 1
	if r.toks[right].kind == '&' && right+1 < len(r.toks) {
		right++
	}
	left := r.awkPrinted(i)
	if r.toks[right].text == "getline" {
		if left.to > 0 && left.text != string(hole) {
			r.shellText(left)
		}
		return
	}
	end := right
	for end < min(len(r.toks), right+64) && strings.IndexByte(";{})", r.toks[end].kind) < 0 && (end == right || !strings.Contains(r.src.text[r.toks[end-1].to:r.toks[end].from], "\n")) {
		end++
	}
	if !r.sh.e.budget.spend(1 + (end-right)/2) {
		return
	}
	command := r.join(r.toks[right:end])
	if command.to == 0 {
		return
	}
	if words := strings.Fields(command.text); len(words) > 0 && slices.Contains(r.sh.e.groups["shells"], base(words[0])) {
		if left.to > 0 && strings.Trim(left.text, string(hole)+" ") != "" {
			r.shellText(left)
		} else {
			r.sh.e.raise("obf.dynamic-structure", r.src, r.toks[i].from, r.toks[i].to, "")
		}
	}
	if command.text != string(hole) {
		r.shellText(command)
	}
}

// awkPrinted is the text that stands before a pipe or a file: what awk prints there.
func (r *inlineRun) awkPrinted(i int) inlineToken {
	from := i
	for from > max(0, i-64) && strings.IndexByte(";{}(", r.toks[from-1].kind) < 0 && !awkWords[r.toks[from-1].text] && !strings.Contains(r.src.text[r.toks[from-1].to:r.toks[from].from], "\n") {
		from--
	}
	if !r.sh.e.budget.spend(1 + (i-from)/2) {
		return inlineToken{}
	}
	left := r.join(r.toks[from:i])
	if from > 0 && r.toks[from-1].text == "printf" {
		if text, ok := r.sprintf(r.toks[from:i]); ok {
			left.text, left.exact = text, false
		}
	}
	return left
}

// awkWords stand before what awk prints.
var awkWords = setOf("print printf while if else do return")

// filled is a string with what stands in its holes put in, as far as it is known.
func (r *inlineRun) filled(t inlineToken) inlineToken {
	if len(t.holes) > 0 && r.sh.e.budget.spend(len(t.holes)) {
		var b strings.Builder
		n := 0
		for i := 0; i < len(t.text); i++ {
			if t.text[i] != hole || n >= len(t.holes) {
				b.WriteByte(t.text[i])
				continue
			}
			inner := r.join(scanInline(t.holes[n], r.lang, &r.sh.e.budget))
			if inner.to == 0 {
				inner.text = string(hole)
			}
			b.WriteString(inner.text)
			n++
		}
		t.text, t.exact, t.holes = b.String(), false, nil
	}
	if strings.IndexByte(t.text, '$') >= 0 && len(r.vars) > 0 && dollars[r.lang] {
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(r.vars))) { // the longer of two names first
			v := r.vars[name]
			if strings.Contains(t.text, "$"+name) && strings.IndexByte(v.text, hole) < 0 && len(t.text)+len(v.text) < maxValue {
				t.text, t.exact = replaceName(t.text, name, v.text), false
			}
		}
	}
	return t
}

// dollars are the languages in which "$name" stands for a variable inside of a string.
var dollars = setOf("perl php julia groovy kotlin dart scala raku tcl")

// replaceName puts a value in the place of "$name", where the name ends there.
func replaceName(text, name, value string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "$"+name)
		if i < 0 {
			return b.String() + text
		}
		end := i + 1 + len(name)
		b.WriteString(text[:i])
		if end < len(text) && isNameByte(text[end]) {
			b.WriteString(text[i:end])
		} else {
			b.WriteString(value)
		}
		text = text[end:]
	}
}

// standsFor is the text that a name, or a call of it, is known to stand for: the home
// folder, a temporary one, the interpreter itself.
func (r *inlineRun) standsFor(toks []inlineToken, i int) (string, int, bool) {
	t := toks[i]
	if t.kind != 'i' || len(t.text) < 3 {
		return "", i, false
	}
	next := i + 1
	call := next < len(toks) && toks[next].kind == '('
	if call {
		next = min(closing(toks, next, '(', ')')+1, len(toks))
	}
	first, _, _ := strings.Cut(strings.TrimLeft(t.text, "$@"), ".")
	if _, own := r.vars[first]; own {
		return "", i, false
	}
	if n, ok := named(ruleset().code.values, t.text, r.lang); ok {
		return n.text, next, true
	}
	if !call && (next >= len(toks) || toks[next].kind != '[') {
		return "", i, false
	}
	if last := strings.ToLower(t.text[strings.LastIndexAny(t.text, ".:$")+1:]); environCalls[last] && i+2 < len(toks) && toks[i+2].kind == 's' {
		switch toks[i+2].text {
		case "HOME", "USERPROFILE", "user.home":
			if !call {
				next = min(closing(toks, next, '[', ']')+1, len(toks))
			}
			return "~", next, true
		}
	}
	return "", i, false
}

// environCalls give a variable of the environment or a property by its name.
var environCalls = setOf("getenv environ get env lookupenv var var_os getproperty system_getenv sys.getenv fetch environment get_env _env _server getenvironmentvariable")

// makesChars: the token names what makes a character of a number.
func makesChars(t inlineToken) bool {
	if t.kind != 'i' {
		return false
	}
	switch strings.ToLower(strings.TrimLeft(t.text[strings.LastIndexAny(t.text, ".:")+1:], "&:")) {
	case "chr", "char", "fromcharcode", "fromcodepoint", "unichr", "tochar", "tochars", "rawtochar", "inttoutf8", "from_u32":
		return true
	}
	return false
}

// fromNumbers is the text of a list of character numbers that what follows makes
// characters of: [114, 109].map(c => String.fromCharCode(c)).join("").
func (r *inlineRun) fromNumbers(toks []inlineToken, i, end int) (string, int, bool) {
	if end >= len(toks) || end < i+4 {
		return "", i, false
	}
	for _, t := range toks[i+1 : end] {
		if _, err := strconv.ParseInt(t.text, 0, 32); t.kind != ',' && (t.kind != 'i' || err != nil) {
			return "", i, false
		}
	}
	after, made := end+1, r.lang == "c" || r.lang == "java" || r.lang == "go" || r.lang == "csharp" // an array of char, or bytes
	for depth := 0; after < len(toks) && after < end+32; after++ {
		t := toks[after]
		switch t.kind {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case '-', '+', '^', '*', '%':
			return "", i, false // computed
		}
		if depth < 0 || depth == 0 && (t.kind == ';' || t.kind == ',') {
			break
		}
		made = made || makesChars(t)
	}
	text, ok := numbered(toks[i+1 : end])
	return text, min(after, len(toks)), ok && made
}

// packed is Ruby's [hex].pack("H*") and its kin.
func (r *inlineRun) packed(toks []inlineToken, i, end int) (out inlineToken, next int, ok bool) {
	args := []inlineToken(nil)
	if next = end + 2; next < len(toks) && toks[next].kind == '(' {
		args = toks[next+1 : min(closing(toks, next, '(', ')'), len(toks))]
		next = min(closing(toks, next, '(', ')')+1, len(toks))
	}
	how, text := r.join(args).text, ""
	list := r.strings(toks[i+1 : end])
	switch {
	case strings.HasPrefix(how, "H") && len(list) > 0:
		text, ok = r.decoded(list[0].text, decodeHex)
	case how != "" && strings.Contains("CcU", how[:1]):
		text, ok = numbered(toks[i+1 : end])
	}
	return inlineToken{kind: 's', text: text, from: toks[i].from, to: toks[end].to}, next, ok
}

// sprintf is the text that a format and its arguments give.
func (r *inlineRun) sprintf(args []inlineToken) (string, bool) {
	parts := splitArguments(args)
	if len(parts) == 0 || len(parts[0]) != 1 || parts[0][0].kind != 's' {
		return "", false
	}
	format := parts[0][0].text
	parts = parts[1:]
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		for i+1 < len(format) && strings.IndexByte("0123456789.-+ #l", format[i]) >= 0 {
			i++
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(parts) == 0 || len(parts[0]) == 0 {
			return "", false
		}
		n, err := strconv.ParseInt(parts[0][0].text, 0, 32)
		switch text := r.join(parts[0]).text; {
		case len(parts[0]) == 1 && parts[0][0].kind == 'i' && err == nil && format[i] == 'c':
			b.WriteRune(rune(n))
		case len(parts[0]) == 1 && parts[0][0].kind == 'i' && err == nil:
			b.WriteString(parts[0][0].text)
		default:
			b.WriteString(text)
		}
		parts = parts[1:]
	}
	return b.String(), true
}

// splitArguments cuts arguments at the commas between them.
func splitArguments(args []inlineToken) (out [][]inlineToken) {
	depth, start := 0, 0
	for i, t := range args {
		switch t.kind {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				out, start = append(out, args[start:i]), i+1
			}
		}
	}
	if start < len(args) {
		out = append(out, args[start:])
	}
	return out
}
