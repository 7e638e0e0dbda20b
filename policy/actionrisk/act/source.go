package act

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Span is a range of bytes in the submitted command.
type Span struct{ Start, End int }

// Source is a program text and its origin.
type Source struct {
	Text   string
	At     int      // offset of Text in the submitted command, or -1 if it is not there unchanged
	Span   Span     // range in the submitted command that contains the text in another form; used if At is -1
	Via    []string // what contains the text, outermost first: "sudo", "bash -c", "base64"
	Depth  int      // number of texts that it is nested in
	Layers int      // number of encodings that were removed
	Taint  Taint    // origin of the text
}

// Where returns the range of Text[from:to] in the submitted command. If the command has the text
// in another form, it also returns the text.
func (s *Source) Where(from, to int) (Span, string) {
	from = min(max(from, 0), len(s.Text))
	if to < from || to > len(s.Text) { // a node that the lenient parser added has no end
		to = len(s.Text)
	}
	if s.At >= 0 {
		return Span{s.At + from, s.At + to}, ""
	}
	return s.Span, s.Text[from:to]
}

// Word returns Text[from:to] as a word.
func (s *Source) Word(from, to int) Word {
	span, _ := s.Where(from, to)
	w := Word{Text: s.Text[from:to], Span: span, At: -1, Taint: s.Taint, Glob: strings.ContainsAny(s.Text[from:to], "*?")}
	if s.At >= 0 {
		w.At = span.Start
	}
	return w
}

// Inside returns the text of the word w as a source that is nested in this one. via names what
// contains it, such as "bash -c".
func (s *Source) Inside(w Word, via string) Source {
	out := Source{Text: w.Text, At: w.At, Span: w.Span, Via: s.Via, Depth: s.Depth + 1, Layers: s.Layers, Taint: w.Taint}
	if via != "" {
		out.Via = append(slices.Clip(s.Via), via)
	}
	return out
}

// Taint is a set of origins of a text.
type Taint uint16

const (
	FromNetwork Taint = 1 << iota // downloaded from the network
	FromSecret                    // read from a credential file or store
	FromEnviron                   // all environment variables
	FromDump                      // a database dump
	FromDecoder                   // decoded by the command itself
	FromStdin                     // unknown text from a pipe or terminal
	FromStore                     // written by others into a store or service
	FromBuilt                     // text of the command, changed by a filter that the engine cannot evaluate
)

// Flow is the input or output of a command: its text if known, and its origins.
type Flow struct {
	Word  Word // the text and its range in the command; valid if Known
	Known bool
	Taint Taint
	Line  bool   // a line end follows the text
	Via   string // name of the program that produced the text, or "file"
	Layer int
	Edit  string      // if the text is unknown: texts that filters such as sed insert into it
	Makes *Invocation // if the text was printed by a dry run, that command; the text describes what it would create
}

// The kinds of items that are invocations and redirections.
const (
	KindExe   = "exe"
	KindRedir = "redir"
)

// Item is one thing that the rules judge.
type Item struct {
	Kind     string   // KindExe, KindRedir, KindTool, KindMoney, "sql", "cmdlet" …
	Name     string   // name; the member exe of a rule matches it
	Tags     []string // for items without an invocation: tags that the members sub, any, all and none of a rule match
	Inv      *Invocation
	Src      *Source
	From, To int // range in Src.Text
	Target   string
	Words    string // for items without an invocation: names of the host or database that the item affects
	Undone   bool   // the effect is rolled back, or is in a routine that is not called, so the level is at most medium
	Fact     any    // further data from the front-end, which the predicates of its tables read
}

// Has reports whether the item has an option, a word or a tag.
func (it *Item) Has(name string) bool {
	if it.Inv == nil {
		return slices.Contains(it.Tags, name)
	}
	return it.Inv.Has(name)
}

// Subcommand returns the first operand of the invocation, or the first tag of other items.
func (it *Item) Subcommand() string {
	switch {
	case it.Inv != nil:
		return it.Inv.Operand(0)
	case len(it.Tags) > 0:
		return it.Tags[0]
	}
	return ""
}

// UnderAny reports whether the operands begin with one of the subcommand paths, or, for other
// items, whether the first tag is one of them.
func (it *Item) UnderAny(paths []string) bool {
	if it.Inv == nil {
		return len(it.Tags) > 0 && slices.Contains(paths, it.Tags[0])
	}
	return it.Inv.UnderAny(paths)
}

// Adjustment records that a member of the request changed a level. Class is the kind of its value
// ("production"), never the value.
type Adjustment struct {
	Field string `json:"field" jsonschema_description:"The member of the request that changed the severity."`
	Class string `json:"valueClass" jsonschema_description:"Kind of the member's value, such as production or protected."`
	Delta int    `json:"delta" jsonschema_description:"Number of levels by which the severity rose; negative if it fell."`
}

// Descriptor returns the file descriptor that a path refers to: "3" for /dev/fd/3.
func Descriptor(p string) (string, bool) {
	for _, prefix := range [...]string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", "/proc/" + string(scan.Hole) + "/fd/"} { // the last one is /proc/$$/fd/, in which scan.Hole replaces the unknown $$
		if fd, ok := strings.CutPrefix(p, prefix); ok {
			return fd, true
		}
	}
	return "", false
}

// RemotePath reports whether a text is a path on another host: host:path, host::module/path or
// rsync://host/path.
func RemotePath(t string) bool {
	i := strings.IndexByte(t, ':')
	return i > 1 && strings.IndexByte(t[:i], '/') < 0 && t[0] != '.' && t[0] != '~'
}

// KindMoney is the kind of an item that is an effect on money, keys or contracts. The item's name
// is the id of the rule for this effect.
const KindMoney = "money"
