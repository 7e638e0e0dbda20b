package actionrisk

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// windowsTable is rules/windows.json: what PowerShell, .NET and cmd call things,
// and which command of a POSIX shell does the same, so that one table decides how
// bad it is. It judges nothing itself.
type windowsTable struct {
	Aliases  map[string]string `json:"aliases"`
	Env      map[string]string `json:"env"`      // variables that are the same everywhere
	Switches []string          `json:"switches"` // parameters without a value, of whatever command
	Options  []string          `json:"options"`  // parameters with a value, of whatever command
	Cmdlets  []cmdlet          `json:"cmdlets"`
	Members  []winMember       `json:"members"`
	Internal []cmdlet          `json:"internal"` // commands that are part of cmd
	Paths    map[string]string `json:"paths"`    // "get-x.property": the path that it gives
	Verbs    []string          `json:"verbs"`    // with which the names of commands begin
	Programs []string          `json:"programs"` // by which text is known to be meant for Windows
	// Elsewhere are names that mean something on other systems as well, and what tells
	// that Windows is meant; Marks stand only in PowerShell.
	Elsewhere map[string][]string `json:"elsewhere"`
	Marks     []string            `json:"marks"`
	Locators  []string            `json:"locators"` // programs that print where others are
	Loaders   []string            `json:"loaders"`  // programs that run or install the files they are given
	Carriers  []winCarrier        `json:"carriers"` // programs that start others
}

// cmdlet says how a command reads its parameters and what does the same elsewhere.
type cmdlet struct {
	Name   []string `json:"name"`
	Pos    []string `json:"pos,omitempty"`    // parameters that may go without their name
	Params []string `json:"params,omitempty"` // others with a value
	// Run is the command that does the same: words, "{p}" for the values of a
	// parameter, "{p:-o}" for "-o" and its value if it is given, "{p?-o}" for "-o" if
	// it is given.
	Run []string `json:"run,omitempty"`
	// Write: ">" or ">>", Text goes to the file that Pos begins with.
	Write string   `json:"write,omitempty"`
	Text  string   `json:"text,omitempty"`
	Gives string   `json:"gives,omitempty"` // its output: "input", "args", "path", or a taint "network", "secret", "environ"
	Off   []string `json:"off,omitempty"`   // with one of these it does nothing
}

// winMember is a member of a .NET or COM type that does what a command does.
type winMember struct {
	On    []string `json:"on"`
	Name  []string `json:"name"`
	Run   []string `json:"run,omitempty"`  // "{0}" is the first argument
	Line  []string `json:"line,omitempty"` // these together are a command line
	Text  string   `json:"text,omitempty"` // this is program text in that language
	Write string   `json:"write,omitempty"`
	Gives string   `json:"gives,omitempty"`
}

// windowsNames is the table by name.
type windowsNames struct {
	windowsTable
	cmdlets  map[string]*cmdlet
	internal map[string]*cmdlet
	members  map[string][]*winMember
	verbs    map[string]bool
	programs map[string]bool
	carriers map[string][]*winCarrier
	switches map[string]bool
}

func (c *compiled) readWindows(read func(string, any) error) error {
	t := &windowsNames{cmdlets: map[string]*cmdlet{}, internal: map[string]*cmdlet{}, members: map[string][]*winMember{}, verbs: map[string]bool{}, programs: map[string]bool{}, carriers: map[string][]*winCarrier{}, switches: map[string]bool{}}
	if err := read("windows", &t.windowsTable); err != nil {
		return err
	}
	for i := range t.Cmdlets {
		for _, n := range t.Cmdlets[i].Name {
			t.cmdlets[n] = &t.Cmdlets[i]
		}
	}
	for i := range t.Internal {
		for _, n := range t.Internal[i].Name {
			t.internal[n] = &t.Internal[i]
		}
	}
	for i := range t.Members {
		for _, n := range t.Members[i].Name {
			t.members[n] = append(t.members[n], &t.Members[i])
		}
	}
	for i := range t.Carriers {
		for _, n := range t.Carriers[i].Exe {
			t.carriers[n] = append(t.carriers[n], &t.Carriers[i])
		}
	}
	for _, v := range t.Verbs {
		t.verbs[v] = true
	}
	for _, p := range t.Programs {
		t.programs[p] = true
	}
	for _, s := range t.Switches {
		t.switches[s] = true
	}
	c.windows = t
	return nil
}

// windowsPredicates test commands of PowerShell (kind "cmdlet", named by their
// verb), members of .NET types (kind "member") and programs (kind "program").
var windowsPredicates = map[string]predicate{
	"noun":  nounIs,   // the noun of the command, or the type of the object; "*" stands for anything
	"param": paramIs,  // a parameter is given, or "name=value" with that value
	"arg":   argIs,    // a value, of a parameter or without one, is so
	"from":  fromIs,   // what is piped in is the output of that command
	"bulk":  bulk,     // it is about all or many things: piped, a list, a pattern
	"whole": whole,    // all that a listing gives is piped in
	"line":  lineIs,   // words that follow each other, in any case
	"given": givenAny, // at least that many values are given
}

func callOf(it *item) *psCall {
	c, _ := it.fact.(*psCall)
	return c
}

func nounIs(_ *engine, it *item, args []string) (Word, bool) {
	c := callOf(it)
	if c == nil {
		return Word{}, false
	}
	for _, a := range args {
		if a == c.noun || strings.IndexByte(a, '*') >= 0 && paths.GlobMatch(a, c.noun) {
			return c.about(), true
		}
	}
	return Word{}, false
}

func paramIs(_ *engine, it *item, args []string) (Word, bool) {
	c := callOf(it)
	if c == nil {
		return Word{}, false
	}
	for _, a := range args {
		name, value, valued := strings.Cut(a, "=")
		for i := range c.params {
			p := &c.params[i]
			if p.name != name && (len(p.name) < 2 || !strings.HasPrefix(name, p.name)) {
				continue
			}
			if !valued && (p.value.kind != psText || !strings.EqualFold(p.value.text, "false")) || valued && p.is(value) {
				return c.about(), true
			}
		}
	}
	return Word{}, false
}

func argIs(_ *engine, it *item, args []string) (Word, bool) {
	c := callOf(it)
	if c == nil {
		p, _ := it.fact.(*programFact)
		if p == nil {
			return Word{}, false
		}
		return textLike(p.whole, args)
	}
	for _, v := range append(c.values(), c.input.items...) { // what is piped in was named before
		if w, ok := textLike(v.deepTexts(), args); ok {
			return w, true
		}
	}
	return Word{}, false
}

// textLike is a text that one of the patterns fits, in any case.
func textLike(texts, patterns []string) (Word, bool) {
	for _, t := range texts {
		low := strings.ToLower(strings.ReplaceAll(t, `\`, "/"))
		for _, p := range patterns {
			if low == p || p == `\*` && low == "*" || strings.IndexByte(p, '*') >= 0 && paths.GlobMatch(p, low) {
				return Word{Text: t}, true
			}
		}
	}
	return Word{}, false
}

func fromIs(_ *engine, it *item, args []string) (Word, bool) {
	c := callOf(it)
	if c == nil {
		return Word{}, false
	}
	for _, v := range append([]psValue{c.input}, c.values()...) {
		if v.kind == psObject && slices.ContainsFunc(args, func(a string) bool { return paths.GlobMatch(a, v.text) }) {
			return Word{}, true
		}
	}
	return Word{}, false
}

func bulk(_ *engine, it *item, _ []string) (Word, bool) {
	c := callOf(it)
	if c == nil {
		return Word{}, false
	}
	if c.piped {
		return Word{}, true
	}
	for _, v := range c.values() {
		if v.kind == psList && len(v.items) > 1 || strings.Contains(v.str(), "*") || v.output {
			return Word{}, true
		}
	}
	return Word{}, false
}

func whole(_ *engine, it *item, _ []string) (Word, bool) {
	c := callOf(it)
	return Word{}, c != nil && c.piped && c.input.kind == psObject && len(c.input.keys) == 0
}

func givenAny(_ *engine, it *item, _ []string) (Word, bool) {
	c := callOf(it)
	return Word{}, c != nil && (len(c.args) > 0 || len(c.params) > 0 || c.piped)
}

// lineIs: the words follow each other somewhere in the command. A word of the
// table may hold "*", which is any text, or be \*, which is a "*"; backslashes are
// written "/".
func lineIs(_ *engine, it *item, args []string) (Word, bool) {
	p, _ := it.fact.(*programFact)
	if p == nil {
		return Word{}, false
	}
	words := p.words
	for _, a := range args {
		want := strings.Fields(a)
		for i := range words {
			if i+len(want) > len(words) {
				break
			}
			n := 0
			for n < len(want) && (want[n] == words[i+n] || want[n] == `\*` && words[i+n] == "*" || strings.IndexByte(want[n], '*') >= 0 && paths.GlobMatch(want[n], words[i+n])) {
				n++
			}
			if n == len(want) {
				return Word{Text: words[i+n-1]}, true
			}
		}
	}
	return Word{}, false
}

// programFact is what the tables ask about a program: its words, blanks part them
// inside quotes too, and its arguments as they are.
type programFact struct{ words, whole []string }

// program judges a program of Windows by its words, in whatever shell it is
// started: names and options are the same in any case there.
func program(sh *shell, v *invocation) bool {
	e, name := sh.e, strings.ToLower(v.exe)
	carries, judged := e.windows.carriers[name], e.other["program "+name]
	if len(e.files) > 0 && slices.Contains(e.windows.Loaders, name) {
		sh.load(v)
	}
	if len(carries) == 0 && !judged {
		return false
	}
	f := &programFact{}
	for _, w := range v.argv[1:] {
		low := strings.ToLower(strings.ReplaceAll(w.Text, `\`, "/"))
		f.whole, f.words = append(f.whole, low), append(f.words, strings.Fields(low)...)
	}
	if slices.Contains(f.words, "/?") || !e.budget.spend(4*len(f.words)) {
		return false
	}
	for _, c := range carries {
		sh.carry(c, v)
	}
	return judged && e.match(&item{kind: "program", name: name, src: v.src, from: v.from, to: v.to, fact: f, words: strings.Join(f.words, " ")})
}

// load: a program that runs or installs the files it is given; one of them was
// written or fetched by the command itself.
func (sh *shell) load(v *invocation) {
	for _, w := range v.argv[1:] {
		name, _, _ := strings.Cut(strings.ReplaceAll(w.Text, `\`, "/"), ",")
		f, ok := sh.e.files[paths.FileKey(sh.cwd, name)]
		switch {
		case !ok:
		case f.taint&(fromNetwork|fromDecoder) != 0:
			sh.e.raise("rce.download-exec", v.src, v.from, v.to, printable(name))
		case f.known && scriptSuffixes[strings.ToLower(path.Ext(name))] != "":
			src := sh.src.inside(f.word, v.exe)
			src.at = -1
			sh.e.runLanguage(sh, &src, scriptSuffixes[strings.ToLower(path.Ext(name))])
		}
	}
}

// winCarrier is a program of Windows that starts another, or fetches a file.
type winCarrier struct {
	Exe     []string `json:"exe"`
	Options []string `json:"options,omitempty"` // what follows one of these is a command line
	After   []string `json:"after,omitempty"`   // all that follows one of these is
	Rest    bool     `json:"rest,omitempty"`    // all from the first word that is no option on is
	Lang    string   `json:"lang,omitempty"`    // cmd, if nothing else
	Fetch   bool     `json:"fetch,omitempty"`   // what follows the URL is the file that it is saved to
	Decode  []string `json:"decode,omitempty"`  // with one of these, the last word is a file made of another
	Encode  []string `json:"encode,omitempty"`  // so it is with one of these, and nothing is hidden by it
	Named   string   `json:"named,omitempty"`   // what follows this within a word is a command line
}

// carry runs what a program of Windows is told to start, and remembers what it fetches.
func (sh *shell) carry(c *winCarrier, v *invocation) {
	for i := 1; i < len(v.argv); i++ {
		low := strings.ToLower(v.argv[i].Text)
		if low == "" {
			continue
		}
		name, value, joined := strings.Cut(low, ":")
		switch {
		case slices.Contains(c.Options, low) && i+1 < len(v.argv):
			sh.runCarried(c, v.argv[i+1:i+2], v)
		case joined && slices.Contains(c.Options, name) && value != "":
			sh.runCarried(c, []Word{v.argv[i].tail(len(name) + 1)}, v)
		case slices.Contains(c.After, low):
			sh.runCarried(c, v.argv[i+1:], v)
			return
		case c.Rest && strings.IndexByte(`/-@\`, low[0]) < 0:
			sh.runCarried(c, v.argv[i:], v)
			return
		case c.Fetch && strings.Contains(low, "://"):
			to := Word{Text: low[strings.LastIndexByte(low, '/')+1:]}
			for _, next := range v.argv[i+1:] {
				if t := next.Text; t != "" && t[0] != '/' && t[0] != '-' {
					to = next
				}
			}
			to.Text = strings.ReplaceAll(to.Text, `\`, "/")
			sh.e.remember(sh, to, flow{taint: fromNetwork, via: v.exe}, false)
			return
		case slices.Contains(c.Decode, low), slices.Contains(c.Encode, low):
			sh.remade(v, i, slices.Contains(c.Decode, low))
			return
		case c.Named != "" && strings.Contains(low, c.Named):
			w := v.argv[i].tail(strings.Index(low, c.Named) + len(c.Named))
			w.Text, w.At = strings.Trim(w.Text, `"'};`), -1
			sh.runCarried(c, []Word{w}, v)
		}
	}
}

// remade: the last word is a file made of the one behind the option at i.
func (sh *shell) remade(v *invocation, i int, hidden bool) {
	if i+1 >= len(v.argv) {
		return
	}
	from, to := v.argv[i+1], v.argv[len(v.argv)-1]
	from.Text, to.Text = strings.ReplaceAll(from.Text, `\`, "/"), strings.ReplaceAll(to.Text, `\`, "/")
	f := flow{taint: sh.e.readFile(sh, from).taint &^ fromStdin, via: v.exe}
	if hidden {
		f.taint |= fromDecoder
	}
	sh.e.remember(sh, to, f, false)
}

// runCarried runs words that are a command line.
func (sh *shell) runCarried(c *winCarrier, line []Word, v *invocation) {
	if len(line) == 0 || sh.suspects >= scan.MaxSuspects {
		return
	}
	lang := c.Lang
	if lang == "" {
		lang = "cmd"
	}
	w := line[0]
	if len(line) > 1 {
		parts := make([]string, len(line))
		for i, one := range line {
			if parts[i] = one.Text; strings.Contains(one.Text, " ") {
				parts[i] = `"` + one.Text + `"`
			}
			w.Taint |= one.Taint
		}
		w.Text, w.At = strings.Join(parts, " "), -1
	}
	inner := *sh
	inner.suspects++
	inner.interpret(lang, w, v, v.exe, nil)
}
