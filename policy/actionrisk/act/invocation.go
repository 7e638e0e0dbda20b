package act

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// Option is one option as given, a cluster of short ones split up.
type Option struct {
	Name  string
	Value Word
	Given bool // a value was given
}

// Invocation is one effective call: what really runs.
type Invocation struct {
	Exe      string // base name
	Path     string // as given
	Argv     []Word // all words, the executable first
	Opts     []Option
	Operands []Word
	Data     int      // leading operands that are data
	After    int      // index in operands of the first one after "--", or -1
	Env      []Assign // assignments in front of it
	Redirs   []Redir
	Stdin    Flow
	Cwd      string
	Host     string           // runs on that host (ssh), in that container
	Root     bool             // runs as root for sure
	Fds      map[string]Redir // open when it starts
	Direct   bool             // started by a program, which knows no functions and aliases
	Remote   bool             // elsewhere: paths are not those of this machine
	Dry      bool
	Scratch  bool // in a container made for it, whose files are temporary
	Src      *Source
	From, To int
	Classes  []paths.Class // of the operands, once a rule asks for them
	Method   string        // of the HTTP request, once a rule asks for it
}

// Assign is a NAME=value in front of a command.
type Assign struct {
	Name  string
	Value Word
}

// Redir is one redirection to a file.
type Redir struct {
	Op   string // ">", ">>", "<"
	File Word
}

// Word is argument i (0 is the executable), or the zero Word.
func (v *Invocation) Word(i int) Word {
	if i >= 0 && i < len(v.Argv) {
		return v.Argv[i]
	}
	return Word{}
}

// Has tells whether an option (by name, by unambiguous abbreviation of a long
// one, or "--opt=value") or an operand is in the invocation.
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

// off: "--prod=false" and "-auto-approve=false" say that the option is not given.
func (o *Option) off() bool {
	return o.Given && o.Value.Text == "false" && len(o.Name) > 2
}

// Option finds an option by name ("-f", "--force", "--dry-run=client").
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

// abbreviates: "--forc" stands for "--force". "--force" does not stand for
// "--force-with-lease", which is another option.
func abbreviates(given, want string) bool {
	return len(given) > 3 && len(given) < len(want) && given[1] == '-' && want[len(given)] != '-' && want[:len(given)] == given
}

// Value of the first of the options that is given with one.
func (v *Invocation) Value(names ...string) (Word, bool) {
	for _, n := range names {
		if o, ok := v.Option(n); ok && o.Given {
			return o.Value, true
		}
	}
	return Word{}, false
}

// Values of an option that is given several times.
func (v *Invocation) Values(name string) (out []Word) {
	for i := range v.Opts {
		if v.Opts[i].Name == name {
			out = append(out, v.Opts[i].Value)
		}
	}
	return out
}

// UnderAny tells whether one of the subcommand paths ("s3 rb") begins the operands.
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
		return false // as most paths of a program's rules are
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

// isWord tells whether a word is the wanted one, which may begin or end in a star.
func isWord(want, have string) bool {
	if start, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(have, start)
	}
	if end, ok := strings.CutPrefix(want, "*"); ok {
		return strings.HasSuffix(have, end)
	}
	return have == want
}

// HasLike is has with patterns: "-o=*bind*" for a value, "~m" for a letter in a
// cluster of short options.
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

// ArgvText is the words of an invocation as one text.
func ArgvText(v *Invocation) string {
	parts := make([]string, 0, len(v.Argv))
	for _, w := range v.Argv {
		parts = append(parts, w.Text)
	}
	return strings.Join(parts, " ")
}

// Operand is the text of operand i, or "" if there is none.
func (v *Invocation) Operand(i int) string {
	if i >= 0 && i < len(v.Operands) {
		return v.Operands[i].Text
	}
	return ""
}

// StoreLanguage tells whether a text in a language is a database's to run.
func StoreLanguage(lang string) bool {
	return lang == "sql" || lang == "mongo" || lang == "redis"
}

// DropsMark is put after the name of a program that prints statements which drop
// what is there before they create it again.
const DropsMark = " --clean"

// WordAfter is the word after an option, wherever the option is.
func WordAfter(v *Invocation, option string) (Word, bool) {
	for i := 1; i+1 < len(v.Argv); i++ {
		if v.Argv[i].Text == option {
			return v.Argv[i+1], true
		}
	}
	return Word{}, false
}

// MatchWord: equal, or the pattern ends or begins with *.
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
