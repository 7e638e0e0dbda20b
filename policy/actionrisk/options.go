package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// tool says how one executable reads its arguments.
type tool struct {
	Exe []string `json:"exe"`
	// Sub, if given, is the subcommand the entry is about ("commit"); an entry
	// without it holds for the whole tool.
	Sub []string `json:"sub,omitempty"`
	// Values are the options that take the next word: "-m", "--author".
	Values []string `json:"values,omitempty"`
	// Long: a single dash begins a long option, short ones are never joined.
	Long bool `json:"long,omitempty"`
	// First: options end at the first operand.
	First bool `json:"first,omitempty"`
	// Inner words begin a command of their own, which ends at ";" or "+".
	Inner []string `json:"inner,omitempty"`
	// Greedy: every long option takes the next word, if that is no option, but
	// for those of Flags.
	Greedy bool     `json:"greedy,omitempty"`
	Flags  []string `json:"flags,omitempty"`
	// Data is how many leading operands are data, not names of things (the
	// pattern of grep); none if one of DataUnless is given.
	Data       int      `json:"data,omitempty"`
	DataUnless []string `json:"dataUnless,omitempty"`
	// Vars are variables from which it takes options: "NAME" holds options, "NAME=-x"
	// the value of one, "NAME?=-x" switches one on, "NAME_*" holds those of the
	// subcommand that stands for the star.
	Vars []string `json:"vars,omitempty"`
	// Tracks are first words that change nothing in what the rest means: gcloud beta.
	Tracks []string `json:"tracks,omitempty"`

	subs map[string]*tool
	made bool // by another table: says nothing about the program as a whole
}

type toolTable struct {
	Tools []tool `json:"tools"`
}

func (c *compiled) readTools(read tableReader) error {
	var t toolTable
	for _, file := range [...]string{"tools", "tools_sql"} {
		var part toolTable
		if err := read(file, &part); err != nil {
			return err
		}
		t.Tools = append(t.Tools, part.Tools...)
	}
	c.tools = map[string]*tool{}
	entry := func(exe string) *tool {
		if c.tools[exe] == nil {
			c.tools[exe] = &tool{subs: map[string]*tool{}}
		}
		return c.tools[exe]
	}
	for i := range t.Tools {
		spec := &t.Tools[i]
		names, err := c.names(spec.Exe)
		if err != nil {
			return err
		}
		for _, exe := range names {
			whole := entry(exe)
			if len(spec.Sub) == 0 {
				subs := whole.subs
				*whole = *spec
				whole.subs = subs
				continue
			}
			for _, s := range spec.Sub {
				whole.subs[s] = spec
			}
		}
	}
	return nil
}

var noTool = &tool{}

// carrierTool is how a wrapper without an entry of its own reads its arguments.
var carrierTool = &tool{First: true}

// option is one option as given, a cluster of short ones split up.
type option struct {
	name  string
	value Word
	given bool // a value was given
}

// invocation is one effective call: what really runs.
type invocation struct {
	exe      string // base name
	path     string // as given
	argv     []Word // all words, the executable first
	opts     []option
	operands []Word
	data     int      // leading operands that are data
	after    int      // index in operands of the first one after "--", or -1
	env      []assign // assignments in front of it
	redirs   []redir
	stdin    flow
	cwd      string
	host     string           // runs on that host (ssh), in that container
	root     bool             // runs as root for sure
	fds      map[string]redir // open when it starts
	direct   bool             // started by a program, which knows no functions and aliases
	remote   bool             // elsewhere: paths are not those of this machine
	dry      bool
	scratch  bool // in a container made for it, whose files nobody misses
	src      *source
	from, to int
	classes  []paths.Class // of the operands, once somebody asks
}

type assign struct {
	name  string
	value Word
}

// redir is one redirection to a file.
type redir struct {
	op   string // ">", ">>", "<"
	file Word
}

// word is argument i (0 is the executable), or the zero Word.
func (v *invocation) word(i int) Word {
	if i < len(v.argv) {
		return v.argv[i]
	}
	return Word{}
}

// parseArgs fills opts and operands by the tool's way of reading.
func (c *compiled) parseArgs(v *invocation) {
	spec := c.tools[v.exe]
	if spec == nil {
		spec = noTool
		if slices.ContainsFunc(c.wrappers[v.exe], func(w *wrapper) bool { return w.Argv && len(w.sub) == 0 }) {
			spec = carrierTool
		}
	}
	sub := noTool
	v.after = -1
	v.opts, v.operands = make([]option, 0, len(v.argv)), make([]Word, 0, len(v.argv))
	greedy := func(name string, next int) bool {
		return spec.Greedy && next < len(v.argv) && !strings.HasPrefix(v.argv[next].Text, "-") && !slices.Contains(spec.Flags, name) && !strings.HasPrefix(name, "--no-")
	}
	takes := func(name string) bool { return slices.Contains(spec.Values, name) || slices.Contains(sub.Values, name) }
	for i := 1; i < len(v.argv); i++ {
		w := v.argv[i]
		t := w.Text
		if len(spec.Inner) > 0 && slices.Contains(spec.Inner, t) {
			v.opts = append(v.opts, option{name: t})
			for i++; i < len(v.argv) && v.argv[i].Text != ";" && v.argv[i].Text != "+"; i++ {
			}
			continue
		}
		switch {
		case len(t) > 1 && t[0] == '+' && strings.Trim(t[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && len(v.operands) == 0 && v.after < 0 && slices.Contains(c.groups["shells"], v.exe):
			if t == "+o" || t == "+O" { // turns an option of the shell off
				i++
			}
		case len(v.operands) == 0 && v.after < 0 && slices.Contains(spec.Tracks, t):
		case v.after >= 0 || len(t) < 2 || t[0] != '-' || isNegative(t):
			v.operands = append(v.operands, w)
			if len(v.operands) == 1 && spec.subs != nil {
				if s := spec.subs[t]; s != nil {
					sub = s
				}
			}
			if len(v.operands) == 2 && spec.subs != nil {
				if s := spec.subs[v.operands[0].Text+" "+t]; s != nil {
					sub = s
					continue
				}
			}
			if v.after < 0 && (spec.First || sub.First && len(v.operands) > 1) {
				v.after = len(v.operands)
			}
		case t == "--":
			v.after = len(v.operands)
		case t[1] == '-' || spec.Long || sub.Long:
			name, value, given := strings.Cut(t, "=")
			o := option{name: name, given: given}
			if given {
				o.value = w.tail(len(name) + 1)
				o.value.Text = value
			} else if takes(name) && i+1 < len(v.argv) || greedy(name, i+1) {
				i++
				o.value, o.given = v.argv[i], true
			}
			v.opts = append(v.opts, o)
		default:
			for j := 1; j < len(t); j++ {
				o := option{name: shortName(t[j])}
				if takes(o.name) {
					if o.given = true; j+1 < len(t) {
						o.value = w.tail(j + 1)
					} else if i+1 < len(v.argv) {
						i++
						o.value = v.argv[i]
					}
					v.opts = append(v.opts, o)
					break
				}
				v.opts = append(v.opts, o)
				if j == 1 && len(t) > 2 && (t[2] == '=' || t[2] == scan.Hole) {
					v.opts[len(v.opts)-1].value, v.opts[len(v.opts)-1].given = w.tail(3), true
					break
				}
			}
			if len(t) > 2 {
				v.opts = append(v.opts, option{name: t})
			}
		}
	}
	v.data = 0
	for _, s := range [...]*tool{spec, sub} {
		if s.Data > 0 && !slices.ContainsFunc(s.DataUnless, v.has) {
			v.data = min(s.Data, len(v.operands))
		}
	}
}

var shortNames = func() (names [128]string) {
	for i := range names {
		names[i] = "-" + string(rune(i))
	}
	return names
}()

func shortName(c byte) string {
	if c < 128 {
		return shortNames[c]
	}
	return "-?"
}

// isNegative: -1 and -0.5 are numbers, not options, unless a single digit such
// as kill -9 or head -5, which no table asks for.
func isNegative(t string) bool {
	return t[1] == '.' || t[1] >= '0' && t[1] <= '9' && strings.ContainsRune(t, '.')
}

// has tells whether an option (by name, by unambiguous abbreviation of a long
// one, or "--opt=value") or an operand stands in the invocation.
func (v *invocation) has(name string) bool {
	if name == "" {
		return false
	}
	if name[0] != '-' {
		for i := v.data; i < len(v.operands); i++ {
			if v.operands[i].Text == name {
				return true
			}
		}
		return false
	}
	_, ok := v.option(name)
	return ok
}

// option finds an option by name ("-f", "--force", "--dry-run=client").
func (v *invocation) option(name string) (*option, bool) {
	want, value, valued := strings.Cut(name, "=")
	for i := range v.opts {
		o := &v.opts[i]
		if o.name != want && !abbreviates(o.name, want) {
			continue
		}
		if !valued || strings.EqualFold(o.value.Text, value) {
			return o, true
		}
	}
	return nil, false
}

// abbreviates: "--forc" stands for "--force". "--force" does not stand for
// "--force-with-lease", which is another option.
func abbreviates(given, want string) bool {
	return len(given) > 3 && len(given) < len(want) && given[1] == '-' && want[len(given)] != '-' && want[:len(given)] == given
}

// value of the first of the options that is given with one.
func (v *invocation) value(names ...string) (Word, bool) {
	for _, n := range names {
		if o, ok := v.option(n); ok && o.given {
			return o.value, true
		}
	}
	return Word{}, false
}

// underAny tells whether one of the subcommand paths begins the operands.
func (v *invocation) underAny(paths [][]string) bool {
	for _, p := range paths {
		if v.under(p) {
			return true
		}
	}
	return false
}

func (v *invocation) under(path []string) bool {
	if len(v.operands) < len(path) {
		return false
	}
	for i, p := range path {
		have := v.operands[i].Text
		if n := len(p) - 1; n >= 0 && p[n] == '*' {
			if !strings.HasPrefix(have, p[:n]) {
				return false
			}
		} else if n > 0 && p[0] == '*' {
			if !strings.HasSuffix(have, p[1:]) {
				return false
			}
		} else if have != p {
			return false
		}
	}
	return true
}
