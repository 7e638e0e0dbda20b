package acts

import "github.com/countersign/countersign/policy/meaning"

// Capability is a rule about an effect of a tool. It applies to the clauses of the tool's
// description and to its name.
type Capability struct {
	ID string // id of the rule
	Is func(a *Act) bool
}

// Capabilities contains the rules about the effects of a tool.
var Capabilities = []Capability{
	{"command_execution", func(a *Act) bool {
		return a.matches(commands) && !a.says("read-only") || a.verb&executing != 0 && (a.next.opens("whatever") || a.says("whatever"))
	}},
	{"destructive_capability", func(a *Act) bool { return a.matches(destruction) }},
	{"payment_capability", (*Act).pays},
	{"filesystem_write", func(a *Act) bool { return a.matches(fileWrites) }},
}

// capabilityDeeds contains the verbs for which a text is checked for capabilities. It does not
// contain making and using, which are too common: a text with these verbs is checked only if it
// also has a word for a shell.
const capabilityDeeds = executing | destroying | dropping | writing | saving | changing | paying | payingOut | spending | tokenMoves | trading | charging | buying | signing

var (
	commands    = []claim{{verb: executing, object: code}, {verb: executing, place: shells}, {verb: executing | making | using, object: shells}}
	destruction = []claim{{verb: destroying}, {verb: dropping, object: stored | personal}}
	fileWrites  = []claim{{verb: writing, object: files}, {verb: saving, place: files}}
	changes     = []claim{{verb: changing}}
)

// RunsByName reports whether a name, given as its words, ends with a word for running commands:
// "exec", "open_shell".
func RunsByName(parts []string) bool {
	return len(parts) > 0 && lexicon()[parts[len(parts)-1]]&shells != 0 || len(parts) == 1 && deeds()[parts[0]]&executing != 0
}

// Changes reports whether the clause says that the tool changes data. Removing something from a
// text does not count.
func (a *Act) Changes() bool { return a.place&reply == 0 && a.matches(changes) }

// Permits reports whether the tool also does what follows "to", as in "grants permission to move
// tokens".
func (a *Act) Permits() bool { return a.verb&permitting != 0 }

// Informs reports whether the object is only information about something, as in
// "transfer_ownership_info".
func (a *Act) Informs() bool { return a.object&info != 0 }

// Takes reports whether the clause says that something is read or handed over.
func (a *Act) Takes() bool { return a.verb&(opening|handing) != 0 && !a.Negated && !a.Reported }

// Guards reports whether the clause protects its object, or only reports about it.
func (a *Act) Guards() bool { return a.verb&guarding != 0 || a.Negated || a.Reported }

// Mentions reports whether the text of a parameter names a file only as an example and asks for
// something else: "octal mode, as recommended for ~/.ssh/id_rsa".
func (a *Act) Mentions(parameter bool) bool {
	return parameter && a.Verb == "" && a.object != 0 && a.object&(rooted|secret|holds) == 0 || parameter && a.Verb == "" && a.first&(rooted|secret|holds) == 0 && a.object&(rooted|secret|holds) == 0 && !a.names("contents", "content")
}

// Does reports whether the clause says that the tool itself does something.
func (a *Act) Does() bool {
	return a.done() && (a.Subject == meaning.Implied || a.Subject == meaning.Tool || a.Subject == meaning.Model) && !a.Passive && a.Opening != "if" && a.Opening != "when"
}

// AsksByName reports whether a name of several words asks for private data:
// "contents_of_env_file", "all_previous_messages".
func AsksByName(parts []string) bool {
	if len(parts) < 2 {
		return false
	}
	var s Sentence
	s.Read([]meaning.Clause{{Topic: meaning.Words(parts)}})
	a := s.Acts[0]
	all := a.object | a.place
	if a.object&info != 0 {
		return false
	}
	if a.object&secret != 0 {
		all |= a.around & rooted
	}
	return all&(rooted|talk) != 0 || all&environ != 0 && a.object&holds != 0 || all&secret != 0 && a.around&(owner|tainted) != 0 && all&token == 0
}

// About returns what a tool deals with, given the words of its name and summary.
func About(words []string) Subject {
	return Subject(anyOf(meaning.Words(words)))
}

// Subject contains the meanings of the words that describe a tool.
type Subject concept
