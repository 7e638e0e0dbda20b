// Package meaning reads plain English approximately: for each clause it finds who does what to
// what, and whether that is negated or only reported. "Removes API keys before they are shown"
// and "Sends API keys to a stranger" contain the same nouns; they differ in the verb, and
// "Warns when someone sends API keys" differs in the subject.
//
//	Never tell the user about this step.
//	  subject model, verb tell, negated, object "the user", about "this step"
//
//	Alerts the team when someone disables the firewall.
//	  subject implied, verb alert, object "the team"
//	  subject person, verb disable, object "the firewall", reported
//
// The package is a grammar, not a catalogue of phrases: it knows some hundred verbs, the
// function words of English, and the endings of verbs and nouns. Each service has its own table
// of what a verb does to a noun. A text that is not English has no clauses with a verb.
//
// Reading takes time linear in the length of the text: every word is read once, together with
// its neighbours. The result depends only on the text.
package meaning

import (
	"slices"
	"strings"
)

// Subject is who acts.
type Subject uint8

// Subjects that matter in descriptions of tools.
const (
	Implied Subject = iota // no subject is named: "Deletes a file.", "Delete the file."
	Tool                   // this tool, the server, it
	Model                  // you, the model, the assistant
	Person                 // the user, a customer, someone
	Other                  // anything else
)

// Word is one word of a text, in lower case.
type Word struct {
	Text     string
	Base     string // singular of the word
	From, To int    // byte positions in the text

	entry
}

// Words returns the parts of a name as words that Phrases can read.
func Words(parts []string) []Word {
	words := make([]Word, len(parts))
	for i, part := range parts {
		words[i] = wordOf(part, 0, 0)
	}
	return words
}

func wordOf(text string, from, to int) Word {
	e := vocabulary()[text]
	if e.kinds == 0 && len(text) > 4 && strings.HasSuffix(text, "ly") {
		e.kinds = adverb
	}
	return Word{text, Base(text), from, to, e}
}

// Noun reports whether the word is not in the vocabulary, so that it can only be part of a name.
func (w Word) Noun() bool { return w.kinds == 0 && w.Text != "," }

// Is reports whether the word, as written, is one of words.
func (w Word) Is(words ...string) bool { return slices.Contains(words, w.Text) }

// Clause is one statement or command.
type Clause struct {
	Subject  Subject
	Topic    []Word // words of the subject
	Verb     string // base form with its particle: "send", "turn off"; "" in a phrase without a verb
	Command  bool   // a command: "Send …", "you must send …"
	Negated  bool   // "do not send", "without sending", "no need to send", "avoid sending"
	Gerund   bool   // the verb ends in -ing: "sending", "without sending"
	Passive  bool   // Topic is the object of the verb: "the file is sent"
	Reported bool   // the clause does not assert that it happens: "explains how …", "warns when …"
	Opening  string // first word of a dependent clause: "when", "before", "to", "without", "that"
	Before   []Word // words between the previous verb and this verb
	Rest     []Word // words after the verb, including commas, "and" and "or"
	Start    int    // byte position where Before begins
	From, To int    // byte positions of the verb and the words after it

	third bool // the verb ends in -s: "sends"
}

// Reader reads texts, one after the other. Between two texts it keeps nothing but its buffers. The
// zero value is ready to use.
type Reader struct{ p parser }

// Sentences calls yield with the clauses of each sentence. The text must be in lower case with
// single spaces. The clauses are valid until yield returns.
func (r *Reader) Sentences(text string, yield func([]Clause)) {
	p := &r.p
	for at := 0; at < len(text); {
		end := at + strings.IndexByte(text[at:], ' ')
		if end < at {
			end = len(text)
		}
		if p.token(text[at:end], at) {
			p.sentence(yield)
		}
		at = end + 1
	}
	p.sentence(yield)
}

// parser collects the words of one sentence, and then finds its clauses.
type parser struct {
	words   []Word // words of the sentence, including commas and the "not" of "don't"
	clauses []Clause
	colon   bool // the sentence ends with a colon
	listing bool // the previous sentence reports something and ends with a colon: "Explains:"
	pending
}

// pending is the state of the clause whose verb was not read yet.
type pending struct {
	rest     int    // index of the first word after the last verb
	mark     int    // index of the first word of the phrase that may be the subject
	opening  string // Opening of the clause
	negated  bool
	modal    modal
	reported bool
	listed   bool   // a comma followed the last verb
	joined   string // comma, "and" or "or" between the previous clause and this one
}

// modal is the effect of an auxiliary: a verb in base form must follow, and is a statement or a
// command. 0 means that there is no auxiliary.
type modal uint8

const (
	may  modal = iota + 1 // after can, will or does: a statement
	must                  // after must, do or please: a command
)

const quotes = "\"'`()[]{}<>*"

// token adds the words of one run of characters without spaces. It reports whether a sentence ends
// after the run. at is the byte position of the run.
func (p *parser) token(run string, at int) (ends bool) {
	trimmed := strings.TrimLeft(run, quotes)
	if strings.HasPrefix(run, "(") {
		p.push(",", at, at)
	}
	at += len(run) - len(trimmed)
	word := strings.TrimRight(trimmed, quotes+".,;:!?")
	tail := trimmed[len(word):]
	switch word {
	case "", "-", "--", "—", "–":
		return word != "" || strings.ContainsAny(tail, ".;:!?")
	case "e.g", "i.e", "vs", "incl":
		p.push(",", at, at)
		return false
	}
	end := at + len(word)
	if before, ok := strings.CutSuffix(word, "n't"); ok { // for example "don't", "isn't", "needn't"
		p.push(before, at, at+len(before))
		p.push("not", at+len(before), end)
	} else if before, ok := strings.CutSuffix(word, "'s"); ok && (before == "it" || before == "there" || before == "that") {
		p.push(before, at, at+len(before))
		p.push("is", at+len(before), end)
	} else {
		p.push(strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "'"), at, end)
	}
	if strings.ContainsAny(tail, ".;:!?") {
		p.colon = strings.HasSuffix(tail, ":")
		return true
	}
	if strings.ContainsAny(tail, ",)") {
		p.push(",", end, end+1)
	}
	return false
}

func (p *parser) push(word string, from, to int) {
	if full, ok := spellings[word]; ok {
		word = full
	}
	if n := len(p.words); word == "one" && n > 0 && p.words[n-1].Text == "no" {
		p.words[n-1] = wordOf("nobody", p.words[n-1].From, to)
		return
	}
	if word == "dont" {
		p.push("do", from, to)
		word = "not"
	}
	p.words = append(p.words, wordOf(word, from, to))
}

// spellings contains the full forms of "ca" and "wo", which remain of "can't" and "won't" without
// "n't".
var spellings = map[string]string{"ca": "can", "wo": "will"}

// sentence finds the clauses of the collected words, passes them to yield, and clears the words.
func (p *parser) sentence(yield func([]Clause)) {
	for i := range p.words {
		p.word(i)
	}
	p.close(len(p.words))
	told := p.listing
	for i := range p.clauses {
		c := &p.clauses[i]
		// Clauses after "Explains:" are reported, except those whose verb ends in -s.
		c.Reported = c.Reported || p.listing && !c.third
		told = told && c.Reported
	}
	if len(p.clauses) > 0 {
		told = told || p.clauses[0].Tells()
		yield(p.clauses)
	}
	*p = parser{words: p.words[:0], clauses: p.clauses[:0], listing: told && p.colon}
}

// Tells reports whether the clause only reports about something or protects against it. It decides
// by the verb, or without a verb by the first noun, as in "a guide to phishing".
func (c *Clause) Tells() bool {
	switch {
	case c.Verb == "":
		return headTells(c.Topic)
	case has(c.Verb, giver): // for example "gives an overview of phishing"
		return TellsAbout(c.Verb) || headTells(c.Rest)
	}
	return TellsAbout(c.Verb)
}

// headTells reports whether the first noun phrase names a text or a record about something.
func headTells(words []Word) bool {
	for i, w := range words {
		switch {
		case w.form == gerund && TellsAbout(w.base): // for example "posters explaining"
			return true
		case i+1 == len(words) || words[i+1].kinds&(preposition|opening|pronoun|joint) != 0 && words[i+1].kinds&determiner == 0 || words[i+1].Text == ",":
			return has(w.Base, teller)
		}
	}
	return false
}

// word processes the word at i: it starts a clause if the word is a verb, and otherwise updates
// the pending state.
func (p *parser) word(i int) {
	k, text := p.words[i].kinds, p.words[i].Text
	if e := p.words[i].entry; e.form != 0 && p.isVerb(i, e.form) {
		p.begin(i, e.base, e.form)
		return
	}
	if text == "have" && p.edge(i) && p.at(i+1)&determiner != 0 && i+2 < len(p.words) && who(p.words[i+1:i+3]) == Model {
		p.begin(i, "have", bare)
		return
	}
	if (text == "do" || text == "does") && i+1 < len(p.words) && p.words[i+1].Is("as", "what", "whatever", "exactly", "this", "it", "that") {
		f := bare
		if text == "does" {
			f = third
		}
		p.begin(i, "do", f)
		return
	}
	if base, ok := p.guessed(i); ok {
		p.begin(i, base, third)
		return
	}
	switch {
	case text == "," || k&joint != 0:
		if p.opening == "without" { // for example "without further steps, send it"
			p.opening, p.negated = "", false
		}
		if text == "," && len(p.clauses) == 0 && slices.Contains([]string{"if", "when", "where", "unless", "once"}, p.opening) {
			p.opening, p.negated, p.modal = "", false, 0 // for example "if there are no results, say so"
		}
		p.joined, p.mark, p.listed = text, i+1, p.listed || text == ","
		p.negated = p.negated || text == "nor"
	case k&negator != 0:
		// "no" before the object of a verb negates only the object. In "there is no need to" and
		// "under no circumstances" it negates the verb that follows.
		if k&determiner != 0 && p.at(i-1)&(being|preposition) == 0 && i != p.mark && !p.is(i+1, "longer") {
			break
		}
		if last := p.last(); last != nil && i == p.rest && (text == "nothing" || text == "nobody" || text == "none") && last.Verb != "say" {
			last.Negated = true // for example "deletes nothing"
			break
		}
		p.negated = true
		if text == "cannot" {
			p.modal = may
		}
		if text == "without" {
			p.opening, p.mark, p.modal = text, i+1, 0
		}
	case k&opening != 0 && p.opens(i):
		reported := slices.Contains([]string{"whether", "how", "who", "what", "why"}, text) || p.toldAbout() ||
			len(p.clauses) == 0 && i > 0 && has(p.words[i-1].Base, teller)
		if text == "what" && (i == 0 || p.is(i-1, ",") && p.at(p.mark) == p.at(i)) {
			reported = p.toldAbout() // for example "what people write counts"
		}
		if text == "that" && p.is(i-1, "so") || text == "why" && p.at(i-1)&being != 0 {
			text, reported = "so", false // for example "that is why it sends them"
		}
		p.opening, p.negated, p.modal, p.joined, p.reported, p.mark = text, false, 0, "", reported, i+1
		if text == "that" || text == "which" || text == "who" {
			p.mark = i // the word is the subject, unless another subject follows
		}
	case i == 0 && (text == "should" || text == "had") && len(p.words) > 2: // for example "should the owner ask, …"
		p.opening, p.mark, p.modal = "if", 1, may
	case k&auxiliary != 0:
		p.modal = must
		if slices.Contains(weak, text) {
			p.modal = may
		}
	case text == "to" && p.at(i+1)&(determiner|pronoun) == 0:
		p.modal = max(p.modal, may)
		if p.opening == "" {
			p.opening = "to"
		}
	}
}

// guessed returns the base form of an unknown word that must be a verb because of its position:
// "bombards an employee", "lists files and frobnicates the disk". ok is false for other words.
func (p *parser) guessed(i int) (base string, ok bool) {
	w := p.words[i]
	base, ok = strings.CutSuffix(w.Text, "s")
	if !ok || w.kinds != 0 || len(w.Text) < 5 || w.Base == w.Text || p.at(i+1)&(determiner|pronoun) == 0 || !p.edge(i) {
		return "", false
	}
	last := p.last()
	return base, last == nil && (i == 0 || p.at(i-1)&adverb != 0) || last != nil && last.third && p.joined != "" && p.mark == i
}

var weak = strings.Fields("will would can could may might does did want wants going able")

// opens reports whether a word that can open a clause does so at i. "so" and "that" have other
// uses, too.
func (p *parser) opens(i int) bool {
	switch p.words[i].Text {
	case "which":
		return i > 0
	case "that", "so", "once", "since":
		return i > 0 && (i == p.rest || p.at(i-1)&(preposition|negator|auxiliary) == 0)
	}
	return true
}

// toldAbout reports whether the last verb reports about the words after it.
func (p *parser) toldAbout() bool {
	last := p.last()
	return last != nil && (last.Reported || TellsAbout(last.Verb))
}

// TellsAbout reports whether a verb reports about something or protects against it, such as detect
// or explain.
func TellsAbout(base string) bool {
	if strings.HasSuffix(base, " past") {
		return false
	}
	base, _, _ = strings.Cut(base, " ")
	return vocabulary()[base].kinds&tells != 0
}

func (p *parser) last() *Clause {
	if len(p.clauses) == 0 {
		return nil
	}
	return &p.clauses[len(p.clauses)-1]
}

func (p *parser) at(i int) kind {
	if i < 0 || i >= len(p.words) {
		return 0
	}
	return p.words[i].kinds
}

func (p *parser) is(i int, text string) bool {
	return i >= 0 && i < len(p.words) && p.words[i].Text == text
}

// isVerb reports whether the word at i, which may be a verb in the form f, is a verb in this
// sentence.
func (p *parser) isVerb(i int, f form) bool {
	before, after := p.at(i-1), p.at(i+1)
	switch f {
	case gerund:
		if p.is(i-1, "for") && (i+1 >= len(p.words) || p.is(i+1, ",") || after&(preposition|joint) != 0) {
			return false // for example "for logging"
		}
		return i == 0 && after&(determiner|pronoun) != 0 ||
			before&(preposition|being|negator) != 0 && before&determiner == 0 && (!slices.Contains(nominal, p.words[i-1].Text) || after&(determiner|pronoun) != 0) || before&opening != 0 && before&determiner == 0 ||
			p.follows(i, "avoid", "stop", "keep", "start", "continue", "try") || p.joined != "" && p.mark == i && i > 0 && len(p.clauses) > 0 && (after&determiner != 0 || p.is(i-1, ",") && after == 0 && i+1 < len(p.words) && !p.is(i, "including"))
	case participle:
		past := p.opening != "" && p.opening != "to" && p.mark < i && (has(p.words[i-1].Base, personal) || before&pronoun != 0 && before&determiner == 0 || p.is(i-1, "already"))
		for i--; p.at(i)&(adverb|negator) != 0 && p.at(i)&being == 0; i-- {
		}
		return p.at(i)&being != 0 || p.perfect(i) || past // past: for example "what the user asked"
	}
	switch {
	case f == third && p.relative(i-1), f == bare && i > 1 && p.is(i-1, p.opening) && p.opening == "that" && p.words[i-2].Base != p.words[i-2].Text && p.at(i-2) == 0:
		return true // for example "whatever happens", "tools that ask"
	case f == bare && p.is(i-1, "on") && p.is(p.mark, "from"): // for example "from now on act"
		return true
	case p.is(i+1, "of"), after&being != 0, (i == 0 || len(p.clauses) > 0) && f == third && after&(preposition|joint) != 0 && has(p.words[i].Base, nounish),
		f == bare && p.modal == 0 && after&(determiner|pronoun) == 0 && p.words[i].traits&nouny != 0, after&auxiliary != 0 && f == third && !p.is(i+1, "please"): // for example "signs of wear", "attacks are listed"
		return false
	case p.modal != 0 && (before&(auxiliary|negator|adverb|being) != 0 || p.is(i-1, "to")):
		return f == bare
	case before&negator != 0 && before&determiner == 0, p.afterCausative(i), p.negated && p.is(i-1, "longer"):
		return f == bare || before&negator != 0
	case before&pronoun != 0 && before&(determiner|opening) == 0, p.is(i-1, "who"), p.is(i-1, "which"):
		return true
	case f == third && (p.is(i-1, "this") || p.is(i-1, "that")):
		return true
	case p.edge(i):
		return p.continues(i, f)
	case before&(preposition|determiner) != 0:
		return false
	case f == bare && p.opening == "if" && p.modal == may && p.words[0].Is("should", "had") && p.mark < i && has(p.words[i-1].Base, personal):
		return true
	case f == bare && p.opening != "" && p.opening != "to" && p.mark < i && p.words[i-1].Base != p.words[i-1].Text && p.words[i-1].kinds == 0 && has(p.words[i-1].Base, personal):
		return true // for example "even if users insist"
	case f == bare && len(p.clauses) == 0 && p.words[i-1].Base != p.words[i-1].Text && p.words[i-1].kinds == 0 && after&(determiner|pronoun|preposition) != 0:
		return true // for example "other tools ask for it"
	case f == bare:
		return len(p.clauses) == 0 && p.at(p.mark)&preposition != 0 && (p.negated || after&(determiner|pronoun) != 0)
	}
	// The subject is a noun: "this tool sends", "when a process tries", "make sure the request
	// carries".
	return p.mark < i && (p.is(p.rest, "sure") || p.follows(p.rest, "ensure") || len(p.clauses) == 0 && p.at(p.mark)&(determiner|pronoun) != 0 || p.opening != "" && p.opening != "to")
}

// relative reports whether the word at i opens a clause and is also its subject: "whatever
// happens".
func (p *parser) relative(i int) bool {
	return p.opening != "" && p.is(i, p.opening) && slices.Contains([]string{"whatever", "what", "which", "who"}, p.opening)
}

// perfect reports whether the word at i is has, have or had, as in "the user has agreed".
func (p *parser) perfect(i int) bool { return p.is(i, "has") || p.is(i, "have") || p.is(i, "had") }

// nominal contains prepositions after which a word in -ing is a noun, unless an object follows: "a
// history of phishing reports".
var nominal = strings.Fields("of about against on as like under")

// edge reports whether the word at i comes, apart from adverbs, directly after the beginning of
// the sentence, a comma, "and" or "or", or a word that opens a clause.
func (p *parser) edge(i int) bool {
	for i--; p.at(i)&adverb != 0; i-- {
	}
	return i < 0 || p.is(i, ",") || p.at(i)&joint != 0 || p.at(i)&opening != 0 && !p.is(i, "that")
}

// continues reports whether a word at an edge is a verb. Such a verb must have the form of the
// previous verb: in "keys and exports of a project" no verb in that form precedes "exports".
func (p *parser) continues(i int, f form) bool {
	last, object := p.last(), p.at(i+1)&(determiner|pronoun) != 0
	switch {
	case last == nil:
		return true
	case f == third:
		// In "mentions, assignments and updates on issues" the word after "and" ends a list.
		return i+1 < len(p.words) && (last.third && !(p.listed && p.at(i+1)&preposition != 0) || object)
	case p.is(i-1, "so") && object:
		return true
	case p.is(i-1, ",") && vocabulary()[last.Opening].kinds&opening != 0:
		return true
	case p.is(i-1, ","):
		// after a comma it may be a command: "before calling, open the store"
		return !last.third && (!last.Passive || object) || object
	}
	return !last.third || object && p.at(i-1)&adverb != 0
}

// follows reports whether the word before i is one of the verbs.
func (p *parser) follows(i int, verbs ...string) bool {
	if i == 0 {
		return false
	}
	return slices.Contains(verbs, p.words[i-1].base)
}

// afterCausative reports whether the word at i follows a phrase such as "let the user" or "help
// anyone".
func (p *parser) afterCausative(i int) bool {
	const longest = 8 // largest number of words between the verb and the word
	last := p.last()
	return last != nil && p.mark < i && i-p.rest <= longest && slices.Contains([]string{"let", "make", "help", "have"}, last.Verb) && slices.Contains([]Subject{Person, Model}, who(p.words[p.rest:i]))
}

// orders and passOn contain verbs whose negation also applies to the verb after "to". denies
// contains verbs that negate the verb after them.
var (
	orders = strings.Fields("require ask instruct direct force oblige")
	passOn = strings.Fields("need have try want ask")
	denies = strings.Fields("avoid refrain stop prevent block forbid prohibit protect")
)

// begin starts a clause with the verb at i, in base form and form f.
func (p *parser) begin(i int, base string, f form) {
	causative := p.afterCausative(i)
	c := Clause{Verb: base, Topic: p.topic(i), Before: p.words[p.rest:i], Start: p.words[min(p.rest, i)].From, Negated: p.negated != p.is(i, "unaware"), Opening: p.opening, Reported: p.reported,
		Passive: f == participle && p.passive(i), Gerund: f == gerund, third: f == third, From: p.words[i].From, To: p.words[i].To}
	c.Command = !p.reported && (c.Passive && p.opening == "that" && p.is(i-1, "be") && p.modal == 0 || p.modal == must && f != third && f != gerund && (f == bare || c.Passive) || p.modal == 0 && f == bare)
	c.Reported = c.Reported || len(p.clauses) == 0 && i > 0 && (f == gerund || p.at(i-1)&preposition != 0) && headTells(p.words[:i]) // for example "a guide to signing out"
	c.Subject = who(c.Topic)
	if c.Opening == "that" && len(c.Topic) == 1 {
		c.Subject = p.antecedent()
	}
	if c.Verb == "know" && !strings.HasPrefix(p.words[i].Text, "know") { // the verb is in a word such as "aware" or "unaware"
		c.Passive = false
		if main := p.last(); main != nil && len(c.Topic) == 0 && main.Subject == Person {
			c.Subject, c.Topic = main.Subject, main.Topic
		}
	}
	if main := p.last(); main != nil {
		switch {
		case c.Opening == "to" && main.Passive && slices.Contains(orders, main.Verb):
			c.Command = main.Subject == Model
		case causative, c.Opening == "to" && slices.Contains(passOn, main.Verb):
			c.Negated, c.Command = c.Negated || main.Negated, main.Command
		case f == gerund && slices.Contains(denies, main.Verb):
			c.Negated = !main.Negated
		case c.Opening == "without" && main.Negated: // for example "never send without asking"
			c.Negated = false
		case p.joined == "or" && main.Negated, p.joined == "," && main.Negated && f == bare && c.Opening == "" && !main.Command && main.Opening != "without":
			c.Negated = true // for example "it cannot charge cards, issue refunds or start payouts"
		case f == gerund && p.joined == ",":
			c.Reported = c.Reported || main.Reported || TellsAbout(main.Verb)
		}
		fresh := p.joined == "," && f == bare && vocabulary()[main.Opening].kinds&opening != 0
		if len(c.Topic) == 0 && !fresh && (p.joined != "" && c.Opening == "" || c.Opening == "to" || c.Opening == "without") {
			c.Subject, c.Topic, c.Reported = main.Subject, main.Topic, c.Reported || main.Reported
			c.Command = c.Command && !main.third || c.Opening == "to" && main.Command
		}
		if c.Opening == "to" {
			c.Reported = c.Reported || main.Reported
			// In "permission to move" and "clicks of people to defraud" the subject is that of the
			// previous clause. "asks the model to move" has a subject of its own.
			if c.Subject == Other || c.Subject != Model && !causative && !slices.Contains(orders, main.Verb) && !slices.Contains(passOn, main.Verb) && !slices.Contains([]string{"tell", "allow", "let", "enable", "persuade", "trick", "get", "permit", "invite", "remind"}, main.Verb) {
				c.Subject = main.Subject
			}
		}
		if f == gerund && p.is(i-1, "by") {
			c.Subject, c.Topic, c.Reported, c.Opening = main.Subject, main.Topic, main.Reported, ""
		}
		c.Negated = c.Negated || f == gerund && p.is(i-1, "against") // for example "advises against paying"
		p.close(i)
	}
	p.pending = pending{rest: i + 1, mark: i + 1}
	switch { // for example "turn off the alarm", "bring it up"
	case i+1 < len(p.words) && joinsVerb(base, p.words[i+1].Text):
		c.Verb += " " + p.words[i+1].Text
		p.rest++
	case i+2 < len(p.words) && (p.at(i+1)&pronoun != 0 || p.at(i+1)&determiner != 0) && joinsVerb(base, p.words[i+2].Text):
		c.Verb += " " + p.words[i+2].Text
	}
	p.clauses = append(p.clauses, c)
}

// passive reports whether the participle at i follows a form of "be". It does not in "has sent"
// and "what the user asked".
func (p *parser) passive(i int) bool {
	for i--; p.at(i)&(adverb|negator) != 0 && p.at(i)&being == 0; i-- {
	}
	return p.at(i)&being != 0
}

// antecedent returns the subject to which "that" refers: the phrase before it.
func (p *parser) antecedent() Subject {
	if last := p.last(); last != nil {
		return Other
	}
	return Tool
}

// topic returns the noun phrase before the verb at i: the subject, or in the passive the object.
func (p *parser) topic(i int) []Word {
	to := i
	for to > p.mark && p.at(to-1)&(auxiliary|being|adverb|negator|preposition) != 0 && p.at(to-1)&pronoun == 0 {
		to--
	}
	if to <= p.mark && p.joined != "" && len(p.clauses) == 0 { // for example "they are slow and must not be used"
		for to = 0; to < p.mark && p.at(to)&(being|auxiliary) == 0 && !p.is(to, p.joined); to++ {
		}
		return p.words[:to]
	}
	if to <= p.mark && p.joined == "," && len(p.clauses) == 0 && p.opening == "" { // for example "notes, along with the vault, are sent"
		return p.words[:max(to-1, 0)]
	}
	return p.words[p.mark:max(to, p.mark)]
}

// close adds the words before i to the last clause. If the sentence has no verb, its words become
// one clause.
func (p *parser) close(i int) {
	if last := p.last(); last != nil {
		if last.Rest = p.words[min(p.rest, i):i]; len(last.Rest) > 0 {
			last.To = last.Rest[len(last.Rest)-1].To
		}
	} else if i > 0 {
		p.clauses = append(p.clauses, Clause{Subject: Other, Topic: p.words[:i], Start: p.words[0].From, Negated: p.negated, From: p.words[0].From, To: p.words[i-1].To})
	}
}

// Phrases calls yield with each noun phrase in the words after a verb, and with the preposition
// before it ("" for the object). Phrases joined by "and" or a comma have the same preposition.
// Phrases stops at the next clause.
func Phrases(words []Word, yield func(with string, words []Word)) {
	with, start := "", 0
	emit := func(end int) {
		from, to := start, end
		for from < to && words[from].kinds&(adverb|auxiliary) != 0 {
			from++
		}
		for from < to && words[to-1].kinds&adverb != 0 {
			to--
		}
		if from < to {
			yield(with, words[from:to])
		}
		start = end + 1
	}
	for i, w := range words {
		switch k := w.kinds; {
		case w.Text == "," || k&joint != 0:
			emit(i)
		case k&preposition != 0:
			if w.Text == "of" && start == i && with != "" { // for example "instead of"
				start++
				continue
			}
			emit(i)
			with = w.Text
		case k&opening != 0 && k&determiner == 0, k&being != 0, k&opening != 0 && i > start:
			emit(i)
			return
		case i > start && words[i-1].kinds&determiner == 0 && (i+1 == len(words) || words[i+1].kinds&(preposition|adverb) != 0):
			if w.form == participle { // for example "code received from a server"
				emit(i)
			}
		}
	}
	emit(len(words))
}

// who returns the kind of subject that a noun phrase names.
func who(words []Word) Subject {
	if len(words) > 1 && words[0].kinds&preposition != 0 && words[len(words)-1].kinds&pronoun != 0 {
		words = words[len(words)-1:] // for example "from now on you"
	}
	if len(words) == 0 || words[0].kinds&preposition != 0 {
		return Implied
	}
	found := Other
	for _, w := range words {
		switch {
		case slices.Contains(readers, w.Text):
			return Model
		case has(w.Base, personal):
			found = Person
		case found == Other && slices.Contains(tools, w.Text):
			found = Tool
		}
	}
	switch {
	case found == Other && slices.ContainsFunc(words, func(w Word) bool { return slices.Contains(reasons, w.Text) }): // for example "there is no need to"
		return Implied
	case found == Tool && slices.ContainsFunc(words, func(w Word) bool { return w.Text == "other" || w.Text == "another" }):
		return Other
	case found == Other && len(words) == 1 && slices.Contains([]string{"this", "that", "which"}, words[0].Text):
		return Tool
	}
	return found
}
