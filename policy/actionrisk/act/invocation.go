package act

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// Option is one option of a command line. A cluster of short options ("-rf") is split.
type Option struct {
	Name  string
	Value Word
	Given bool // the option has a value
}

// Invocation is the start of one program, with wrappers such as sudo removed.
type Invocation struct {
	Exe      string // base name of the executable
	Path     string // executable as written
	Argv     []Word // all words, the executable first
	Opts     []Option
	Operands []Word
	Data     int      // number of leading operands that are data, such as grep's pattern, not names
	After    int      // index in Operands of the first operand after "--", or -1
	Env      []Assign // assignments before the command
	Redirs   []Redir
	Stdin    Flow
	Cwd      string
	Host     string           // runs on that host (ssh) or in that container; "" means this machine
	Root     bool             // certainly runs as root
	Fds      map[string]Redir // files that the shell opened with exec, by descriptor
	Direct   bool             // started by a program, not a shell, so functions and aliases do not apply
	Remote   bool             // runs on another machine, so paths are not those of this one
	Dry      bool
	Scratch  bool // runs in a temporary container whose files are discarded
	Src      *Source
	From, To int
	Classes  []paths.Class // classes of the operands; set when a rule first needs them
	Method   string        // method of the HTTP request; set when a rule first needs it
}

// Assign is an assignment NAME=value before a command.
type Assign struct {
	Name  string
	Value Word
}

// Redir is one redirection to a file.
type Redir struct {
	Op   string // ">", ">>", "<"
	File Word
}

// Word returns argument i, or the zero Word if there is none. Argument 0 is the executable.
func (v *Invocation) Word(i int) Word {
	if i >= 0 && i < len(v.Argv) {
		return v.Argv[i]
	}
	return Word{}
}

// Has reports whether the invocation has an option or operand. A long option may be abbreviated if
// that is unambiguous. "--opt=value" requires that value.
func (v *Invocation) Has(name string) bool {
	if name == "" {
		return false
	}
	if name[0] != '-' {
		for i := v.Data; i < len(v.Operands); i++ {
			if v.Operands[i].Text == name {
				return true
			}
		}
		return false
	}
	o, ok := v.Option(name)
	return ok && !(o.off() && strings.IndexByte(name, '=') < 0)
}

// off reports whether the value turns a long option off, as in "--prod=false" or
// "-auto-approve=false".
func (o *Option) off() bool {
	return o.Given && o.Value.Text == "false" && len(o.Name) > 2
}

// Option returns the option that was given with this name ("-f", "--force"). A name may also have
// a value ("--dry-run=client"), which the option must then have.
func (v *Invocation) Option(name string) (*Option, bool) {
	for i := range v.Opts {
		o := &v.Opts[i]
		if !strings.HasPrefix(name, o.Name) {
			continue
		}
		want, value, valued := strings.Cut(name, "=")
		if o.Name != want && !abbreviates(o.Name, want) {
			continue
		}
		if !valued || strings.EqualFold(o.Value.Text, value) {
			return o, true
		}
	}
	return nil, false
}

// abbreviates reports whether the name "given" is an abbreviation of the name "want", as "--forc"
// is of "--force". "--force" does not abbreviate "--force-with-lease", which is another option.
func abbreviates(given, want string) bool {
	return len(given) > 3 && len(given) < len(want) && given[1] == '-' && want[len(given)] != '-' && want[:len(given)] == given
}

// Value returns the value of the first of the named options that has one.
func (v *Invocation) Value(names ...string) (Word, bool) {
	for _, n := range names {
		if o, ok := v.Option(n); ok && o.Given {
			return o.Value, true
		}
	}
	return Word{}, false
}

// Values returns the values of all occurrences of an option.
func (v *Invocation) Values(name string) (out []Word) {
	for i := range v.Opts {
		if v.Opts[i].Name == name {
			out = append(out, v.Opts[i].Value)
		}
	}
	return out
}

// UnderAny reports whether the operands begin with one of the subcommand paths ("s3 rb").
func (v *Invocation) UnderAny(paths []string) bool {
	for _, p := range paths {
		if v.under(p) {
			return true
		}
	}
	return false
}

func (v *Invocation) under(path string) bool {
	if path != "" && (len(v.Operands) == 0 || path[0] != '*' && !strings.HasPrefix(v.Operands[0].Text, path[:1])) {
		return false // fast path: most rules of a program have another subcommand
	}
	for i := 0; path != ""; i++ {
		word, rest, _ := strings.Cut(path, " ")
		if i == len(v.Operands) || !isWord(word, v.Operands[i].Text) {
			return false
		}
		path = rest
	}
	return true
}

// isWord reports whether the word "have" equals the word "want". A star at the start or end of
// "want" matches any text.
func isWord(want, have string) bool {
	if start, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(have, start)
	}
	if end, ok := strings.CutPrefix(want, "*"); ok {
		return strings.HasSuffix(have, end)
	}
	return have == want
}

// HasLike is like Has, but also takes patterns: "-o=*bind*" matches the value of an option, "~m"
// matches a letter in a cluster of short options.
func (v *Invocation) HasLike(name string) bool {
	if letter, ok := strings.CutPrefix(name, "~"); ok {
		return slices.ContainsFunc(v.Argv, func(w Word) bool {
			return len(w.Text) > 1 && len(w.Text) < 8 && w.Text[0] == '-' && strings.Contains(w.Text, letter) && strings.Trim(w.Text[1:], "abcdefghijklmnopqrstuvwxyz0123456789") == ""
		})
	}
	want, pattern, valued := strings.Cut(name, "=")
	if !valued || want[0] != '-' {
		return v.Has(name)
	}
	return slices.ContainsFunc(v.Opts, func(o Option) bool { return o.Name == want && MatchWord(pattern, o.Value.Text) })
}

// ArgvText returns the words of an invocation, joined by blanks.
func ArgvText(v *Invocation) string {
	parts := make([]string, 0, len(v.Argv))
	for _, w := range v.Argv {
		parts = append(parts, w.Text)
	}
	return strings.Join(parts, " ")
}

// Operand returns the text of operand i, or "" if there is none.
func (v *Invocation) Operand(i int) string {
	if i >= 0 && i < len(v.Operands) {
		return v.Operands[i].Text
	}
	return ""
}

// StoreLanguage reports whether a database runs texts in this language.
func StoreLanguage(lang string) bool {
	return lang == "sql" || lang == "mongo" || lang == "redis"
}

// DropsMark is appended to the name of a dump program in Flow.Via if the statements that it prints
// drop each object before they create it.
const DropsMark = " --clean"

// WordAfter returns the word after the first occurrence of an option.
func WordAfter(v *Invocation, option string) (Word, bool) {
	for i := 1; i+1 < len(v.Argv); i++ {
		if v.Argv[i].Text == option {
			return v.Argv[i+1], true
		}
	}
	return Word{}, false
}

// MatchWord reports whether s matches the pattern. A star at its start or end matches any text.
func MatchWord(pattern, s string) bool {
	n := len(pattern) - 1
	switch {
	case n > 0 && pattern[n] == '*' && pattern[0] == '*':
		return strings.Contains(s, pattern[1:n])
	case n >= 0 && pattern[n] == '*':
		return strings.HasPrefix(s, pattern[:n])
	case n > 0 && pattern[0] == '*':
		return strings.HasSuffix(s, pattern[1:])
	}
	return pattern == s
}
