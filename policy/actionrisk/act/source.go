package act

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Span is a range of bytes of the submitted command.
type Span struct{ Start, End int }

// Source is a piece of program text and where it came from.
type Source struct {
	Text   string
	At     int      // offset of text in the submitted command if it is there verbatim, else -1
	Span   Span     // its carrier in the submitted command, used when at < 0
	Via    []string // what carries it, outermost first: "sudo", "bash -c", "base64"
	Depth  int      // how many texts it is inside of
	Layers int      // how many encodings were peeled off
	Taint  Taint    // where it came from
}

// Where is the span of Text[from:to] in the submitted command, and the text itself if
// it is there in another form.
func (s *Source) Where(from, to int) (Span, string) {
	from = min(max(from, 0), len(s.Text))
	if to < from || to > len(s.Text) { // a node that the lenient parser made up has no end
		to = len(s.Text)
	}
	if s.At >= 0 {
		return Span{s.At + from, s.At + to}, ""
	}
	return s.Span, s.Text[from:to]
}

// Word is Text[from:to] as a word.
func (s *Source) Word(from, to int) Word {
	span, _ := s.Where(from, to)
	w := Word{Text: s.Text[from:to], Span: span, At: -1, Taint: s.Taint, Glob: strings.ContainsAny(s.Text[from:to], "*?")}
	if s.At >= 0 {
		w.At = span.Start
	}
	return w
}

// Inside is a text found in this one: carried by the word w, by way of via.
func (s *Source) Inside(w Word, via string) Source {
	out := Source{Text: w.Text, At: w.At, Span: w.Span, Via: s.Via, Depth: s.Depth + 1, Layers: s.Layers, Taint: w.Taint}
	if via != "" {
		out.Via = append(slices.Clip(s.Via), via)
	}
	return out
}

// Taint says where a text came from; several may hold.
type Taint uint16

const (
	FromNetwork Taint = 1 << iota // downloaded
	FromSecret                    // a credential file or store
	FromEnviron                   // the environment as a whole
	FromDump                      // a database dump
	FromDecoder                   // decoded by the command itself
	FromStdin                     // unknown text of a pipe or terminal
	FromStore                     // what others wrote into a store or a service
	FromBuilt                     // text of the command itself, changed by a filter that cannot be followed
)

// Flow is what a command writes or reads: text if it is known, and its taint.
type Flow struct {
	Word  Word // the text and where it stands; meaningful if known
	Known bool
	Taint Taint
	Line  bool   // a line end follows the text
	Via   string // decoder that made it
	Layer int
	Edit  string      // what filters on its way wrote into a text that is not known
	Makes *Invocation // a dry run that printed what it would have made
}

// The kinds of items that are invocations and redirections.
const (
	KindExe   = "exe"
	KindRedir = "redir"
)

// Item is one thing the tables judge.
type Item struct {
	Kind     string   // KindExe, KindRedir, "sql", "call", "pay", KindTool …
	Name     string   // what a matcher's exe lists
	Tags     []string // facts for sub, any, all and none of kinds without an invocation
	Inv      *Invocation
	Src      *Source
	From, To int // where it is in Src.Text
	Target   string
	Words    string // names that say where it acts (host, database), for kinds without an invocation
	Undone   bool   // rolled back, or only stored: medium at most
	Fact     any    // what the classifier of a domain knows; read by its predicates
}

// Has tells whether an option, word or tag is in the item.
func (it *Item) Has(name string) bool {
	if it.Inv == nil {
		return slices.Contains(it.Tags, name)
	}
	return it.Inv.Has(name)
}

// Subcommand is the first word of what the item is about.
func (it *Item) Subcommand() string {
	switch {
	case it.Inv != nil:
		return it.Inv.Operand(0)
	case len(it.Tags) > 0:
		return it.Tags[0]
	}
	return ""
}

// UnderAny tells whether one of the subcommand paths begins what the item is about.
func (it *Item) UnderAny(paths []string) bool {
	if it.Inv == nil {
		return len(it.Tags) > 0 && slices.Contains(paths, it.Tags[0])
	}
	return it.Inv.UnderAny(paths)
}

// Adjustment is how a member of the request moved a level. Class is the kind of
// value ("production"), never the value.
type Adjustment struct {
	Field string `json:"field" jsonschema_description:"The member of the request that changed the severity."`
	Class string `json:"valueClass" jsonschema_description:"What kind of value it had."`
	Delta int    `json:"delta" jsonschema_description:"By how many levels."`
}

// Descriptor is the number in /dev/fd/3 and its kind.
func Descriptor(p string) (string, bool) {
	for _, prefix := range [...]string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", "/proc/" + string(scan.Hole) + "/fd/"} { // the last is $$
		if fd, ok := strings.CutPrefix(p, prefix); ok {
			return fd, true
		}
	}
	return "", false
}

// RemotePath: host:path, host::module/path, rsync://host/path.
func RemotePath(t string) bool {
	i := strings.IndexByte(t, ':')
	return i > 1 && strings.IndexByte(t[:i], '/') < 0 && t[0] != '.' && t[0] != '~'
}

// KindMoney items are effects on money, keys and contracts; their name is the id
// of the rule that the effect has.
const KindMoney = "money"
