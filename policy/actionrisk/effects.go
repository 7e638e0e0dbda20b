package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Many programs delete, write over, read or send files by an option that nobody
// thinks of: tar --remove-files, sort -o, install -m 4755, exiftool '-Comment<=key'.
// effects.json says so in the words of a plain command, which the rules judge; one
// line of it takes the place of a rule for each such program.

// effect is a line of effects.json.
type effect struct {
	Exe []string `json:"exe"`
	Sub []string `json:"sub,omitempty"` // only under these subcommands
	// All, Any and None are options or words that must or must not stand there:
	// "--move", "-o=*bind*" with a pattern for the value, "~m" for the letter m in a
	// cluster of short options.
	All  []string `json:"all,omitempty"`
	Any  []string `json:"any,omitempty"`
	None []string `json:"none,omitempty"`
	// Take are the words that the plain command is about: the values of options, or
	// "operands", "first", "second" and "last" of what stands behind Sub and Skip.
	Take []string `json:"take"`
	Skip int      `json:"skip,omitempty"`
	But  []string `json:"but,omitempty"` // not those in which one of these stands
	In   []string `json:"in,omitempty"`  // options that name the folder they lie in
	// As is the plain command: words in front of those taken, ">" or ">>" for a
	// redirection to each, or one that begins with @ (see act).
	As []string `json:"as"`

	sub [][]string
}

type effectTable struct {
	Effects []effect `json:"effects"`
}

func (c *compiled) readEffects(read tableReader) error {
	var t effectTable
	if err := read("effects", &t); err != nil {
		return err
	}
	c.effects = map[string][]*effect{}
	for i := range t.Effects {
		f := &t.Effects[i]
		for _, s := range f.Sub {
			f.sub = append(f.sub, strings.Fields(s))
		}
		names, err := c.names(f.Exe)
		if err != nil {
			return err
		}
		for _, n := range names {
			c.effects[n] = append(c.effects[n], f)
			c.takesValues(n, f)
		}
	}
	return nil
}

// takesValues: an option whose value is taken has one, whether the tool's own entry
// says so or not.
func (c *compiled) takesValues(exe string, f *effect) {
	spec := c.tools[exe]
	if spec == nil {
		spec = &tool{made: true}
		c.tools[exe] = spec
	}
	if len(f.sub) > 0 {
		word := f.sub[0][0]
		if spec.subs == nil {
			spec.subs = map[string]*tool{}
		}
		sub := tool{}
		if old := spec.subs[word]; old != nil {
			sub = *old
		}
		spec.subs[word] = &sub
		spec = &sub
	}
	for _, o := range slices.Concat(f.Take, f.In, f.All, f.Any, f.None) {
		name, _, valued := strings.Cut(o, "=")
		if o = name; !valued && !slices.Contains(f.Take, o) && !slices.Contains(f.In, o) || o == "" || strings.HasPrefix(o, "--") && valued {
			continue
		}
		if o[0] == '-' && !slices.Contains(spec.Values, o) {
			spec.Values = append(slices.Clip(spec.Values), o)
		}
	}
}

// holds tells whether the effect takes place in the invocation.
func (f *effect) holds(v *invocation) bool {
	if len(f.sub) > 0 && !v.underAny(f.sub) || slices.ContainsFunc(f.None, v.hasLike) {
		return false
	}
	for _, o := range f.All {
		if !v.hasLike(o) {
			return false
		}
	}
	return len(f.Any) == 0 || slices.ContainsFunc(f.Any, v.hasLike)
}

// hasLike is has with patterns: "-o=*bind*" for a value, "~m" for a letter in a
// cluster of short options.
func (v *invocation) hasLike(name string) bool {
	if letter, ok := strings.CutPrefix(name, "~"); ok {
		return slices.ContainsFunc(v.argv, func(w Word) bool {
			return len(w.Text) > 1 && len(w.Text) < 8 && w.Text[0] == '-' && strings.Contains(w.Text, letter) && strings.Trim(w.Text[1:], "abcdefghijklmnopqrstuvwxyz0123456789") == ""
		})
	}
	want, pattern, valued := strings.Cut(name, "=")
	if !valued || want[0] != '-' {
		return v.has(name)
	}
	return slices.ContainsFunc(v.opts, func(o option) bool { return o.name == want && matchWord(pattern, o.value.Text) })
}

// words are the words that the effect is about.
func (f *effect) words(v *invocation) []Word {
	skip := f.Skip
	if len(f.sub) > 0 {
		skip += len(f.sub[0])
	}
	rest := v.operands[min(max(skip, v.data), len(v.operands)):]
	var out []Word
	for _, take := range f.Take {
		switch {
		case take == "operands":
			out = append(out, rest...)
		case take == "first" && len(rest) > 0:
			out = append(out, rest[0])
		case take == "second" && len(rest) == 2:
			out = append(out, rest[1])
		case take == "last" && len(rest) > 0:
			out = append(out, rest[len(rest)-1])
		case take[0] == '-':
			for i := range v.opts {
				if o := &v.opts[i]; o.given && o.name == take {
					out = append(out, o.value)
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(w Word) bool {
		return slices.ContainsFunc(f.But, func(part string) bool { return strings.Contains(w.Text, part) })
	})
}

// effects judges what the invocation does to its words besides what its own rules
// say. It proves nothing about the rest of the invocation.
func (sh *shell) effects(v *invocation) {
	for _, f := range sh.e.effects[v.exe] {
		if v.dry || !f.holds(v) {
			continue
		}
		words := f.words(v)
		if len(words) == 0 && f.As[0] != "@assign" || !sh.e.budget.spend(4+len(words)) {
			continue
		}
		inner := *sh
		if folder, ok := v.value(f.In...); ok {
			inner.chdir(&invocation{operands: []Word{folder}})
		}
		inner.act(f.As, words, v)
	}
}

// fromStore: the program prints what others wrote into a store, a queue or a service.
func (e *engine) fromStore(v *invocation) bool {
	for _, f := range e.effects[v.exe] {
		if f.As[0] == "@store" && f.holds(v) {
			return true
		}
	}
	return false
}

// act does to the words what an effect says.
func (sh *shell) act(as []string, words []Word, v *invocation) {
	switch as[0] {
	case "@bind":
		sh.binds(words)
	case "@mount":
		sh.mounts(words)
	case "@mix":
		sh.mixes(v, words)
	case "@send":
		sh.sends(v, words)
	case "@sendat":
		for _, w := range words {
			if i := strings.LastIndexByte(w.Text, '@'); i >= 0 {
				sh.sends(v, []Word{w.tail(i + 1)})
			}
		}
	case "@puts":
		for _, w := range words {
			sh.puts(v, w)
		}
	case "@putsfile":
		for _, w := range words {
			sh.puts(v, sh.e.readFile(sh, w).word)
		}
	case "@assign":
		sh.assigned(v, words)
	case "@load":
		for _, w := range words {
			sh.loads(v, w)
		}
	case "@split":
		for _, w := range words {
			sh.plain(as[1:], splitWords(w), v)
		}
	case "@address":
		for _, w := range words {
			sh.interpret("socat", w, v, v.exe, nil)
		}
	case "@options":
		sh.options(v, words)
	case "@listed":
		sh.listed(as[1:], words, v)
	case "@fetched":
		for _, w := range words {
			sh.e.remember(sh, w, flow{taint: fromNetwork, via: v.exe}, false)
		}
	case "@option":
		for _, w := range words {
			sh.plain([]string{v.exe}, settingsAsOptions(w), v)
		}
	case "@config":
		for _, w := range words {
			sh.e.configured(sh, as[1], sh.e.readFile(sh, w))
		}
	case ">", ">>":
		for _, w := range words {
			sh.writesTo(as[0], w, v)
		}
	default:
		sh.plain(as, words, v)
	}
}

// plain runs a plain command with the words.
func (sh *shell) plain(command []string, words []Word, v *invocation) {
	src := *v.src
	src.via = append(slices.Clip(src.via), v.exe)
	src.depth++
	inner := *sh
	inner.src = &src
	argv := make([]Word, 0, len(command)+len(words))
	for _, name := range command {
		argv = append(argv, Word{Text: name, At: -1, Span: v.argv[0].Span})
	}
	inner.run(&invocation{src: &src, direct: true, argv: append(argv, words...), stdin: flow{known: true}, from: v.from, to: v.to})
}

// writesTo is a redirection to a file that the program itself opens.
func (sh *shell) writesTo(op string, w Word, v *invocation) {
	if w.Text == "" || w.Text == "-" {
		return
	}
	r := &invocation{exe: op, operands: []Word{w}, argv: []Word{{Text: op}, w}, after: -1, cwd: sh.cwd, remote: sh.remote,
		root: v.root, stdin: flow{taint: fromStdin}, src: v.src, from: v.from, to: v.to}
	sh.e.match(&item{kind: kindRedir, name: op, inv: r, src: v.src, from: v.from, to: v.to})
}

// binds: a folder is seen at another place as well; who deletes it there deletes it.
func (sh *shell) binds(words []Word) {
	if len(words) >= 2 {
		sh.e.seenAt(sh, words[len(words)-1], words[0].Text)
	}
}

// mounts: a file system of its own is seen at a place, which by its name may look
// like something that a build makes again.
func (sh *shell) mounts(words []Word) {
	if len(words) >= 2 {
		sh.e.seenAt(sh, words[len(words)-1], "/media/volume")
	}
}

// mixes: what the program reads goes into the files that it writes. It may name them
// behind "<=", "=" or "@".
func (sh *shell) mixes(v *invocation, words []Word) {
	var t taint
	for _, w := range v.argv[1:] {
		if i := max(strings.LastIndexByte(w.Text, '='), strings.LastIndexByte(w.Text, '@')); i >= 0 && i+1 < len(w.Text) {
			w = w.tail(i + 1)
		}
		t |= sh.e.readFile(sh, w).taint & (fromSecret | fromDump | fromEnviron)
	}
	for _, w := range words {
		if t != 0 {
			sh.e.remember(sh, w, flow{taint: t, via: v.exe}, true)
		}
	}
}

// assigned: make takes NAME=text as a variable, whose text it may run.
func (sh *shell) assigned(v *invocation, words []Word) {
	all := slices.Clone(v.env)
	for _, w := range words {
		if name, _, ok := strings.Cut(w.Text, "="); ok && syntaxName(name) {
			value := w.tail(len(name) + 1)
			all = append(all, assign{name, value})
			sh.variableActs(v, name, value)
		}
	}
	for _, a := range all {
		if strings.Contains(a.value.Text, "$(shell ") {
			sh.interpret("make", a.value, v, v.exe, nil)
		}
	}
}

// loads: the program starts what the word names, or runs it as text.
func (sh *shell) loads(v *invocation, w Word) {
	if worldWritable(w.Text) {
		sh.e.raise("rce.library-preload", v.src, v.from, v.to, printable(w.Text))
	}
	sh.interpret("shell", w, v, v.exe, nil)
}

// splitWords are the words of a text.
func splitWords(w Word) []Word {
	var out []Word
	for _, t := range scan.OptionWords(w.Text) {
		out = append(out, Word{Text: t, At: -1, Span: w.Span, Taint: w.Taint, Var: w.Var})
	}
	return out
}

// puts: the commands of a file transfer program, "put file".
func (sh *shell) puts(v *invocation, w Word) {
	for command := range strings.FieldsFuncSeq(w.Text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if words := strings.Fields(command); len(words) > 1 && (words[0] == "put" || words[0] == "mput" || words[0] == "reput") {
			sh.sends(v, []Word{{Text: words[1], At: -1, Span: w.Span}})
		}
	}
}

// sends: the files go to another machine, whatever the program calls it.
func (sh *shell) sends(v *invocation, words []Word) {
	for _, w := range words {
		if w.Text != "-" {
			sh.plain([]string{"curl", "https://elsewhere.invalid/", "-T"}, []Word{w}, v)
		}
	}
}
