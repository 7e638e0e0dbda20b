// Package acts says what the sentences of a manifest say that a tool does: attack, leak,
// keep something from the user, steer the choice of tools, ask for what is private, pay,
// run commands. It joins the clauses that policy/meaning reads with one table of what
// nouns and verbs mean here (lexicon.go). A rule is a combination of verb, object and
// place (claims.go), never a phrase: "steals cookies", "will steal every cookie" and
// "cookies are stolen" are one act, "detects stolen cookies" is none.
package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

// Act is one clause with what its words mean.
type Act struct {
	meaning.Clause
	verb   deed
	object concept // heads of the object: what is sent, installed, mentioned
	around concept // the other words of the object
	place  concept // what stands behind to, into, from, with, in …
	where  concept // place without what stands behind for
	whom   concept // heads behind to, from, with, behind
	means  concept // heads behind by, via, through
	about  concept // heads behind about
	before concept // what stands before the verb, the subject included
	other  bool    // the object has a head that no rule knows: "the raw json"
	first  concept // the head of the first phrase
	next   *Act    // the clause behind it in the sentence
	rest   concept // of all words behind the verb
	named  concept // of the words of its subject
	tone   tone    // of all its words
	topic  tone    // of what it is about: its object, what it is for
	points int     // how much its words sound like an attack
}

// Sentence has the clauses of one sentence. Its memory is reused for the next one.
type Sentence struct {
	Acts   []Act
	words  concept // of all its words
	tone   tone    // of all its words
	orders bool    // a clause is an order
	model  bool    // the model does something
}

// Read gives the clauses of a sentence their meaning. A pronoun stands for the object
// before it: "reads keys and posts them".
func (s *Sentence) Read(clauses []meaning.Clause) {
	s.Acts = slices.Grow(s.Acts[:0], len(clauses))[:len(clauses)]
	*s = Sentence{Acts: s.Acts}
	earlier := concept(0)
	for i, c := range clauses {
		if c.Verb == "" {
			c.Rest = c.Topic
		}
		a := Act{Clause: c, verb: meant(c.Verb), before: anyOf(c.Before), rest: anyOf(c.Rest), named: anyOf(c.Topic)}
		if i+1 < len(clauses) {
			a.next = &s.Acts[i+1]
		}
		last, placed, begun := phrase{}, false, false
		take := func(with string, words []meaning.Word) {
			p := meantBy(words)
			if !begun {
				a.first = p.head
			}
			placed = placed || with != "" && with != "of"
			if with == "" || with == "of" && !placed || with == "for" || with == "in" {
				a.topic |= toneOf(words)
			}
			a.take(with, p, last, placed, begun)
			if with == "" && (slices.Contains(pronouns, words[0].Text) || p.head&holds != 0 && words[0].Text == "each") {
				a.object |= earlier
			}
			last, begun = p, true
		}
		if c.Passive || slices.Contains(goings, c.Verb) {
			meaning.Phrases(c.Topic, take)
			last, placed, begun = phrase{}, false, false
		}
		meaning.Phrases(c.Rest, take)
		switch private := secret | rooted | talk | prize; { // searches a disk for keys and posts them
		case a.object&private == 0 && a.place&private != 0:
			earlier = a.place & private
		case a.object&^(this|owner|holds) != 0:
			earlier = a.object
		}
		a.sounds()
		s.words |= a.before | a.rest
		s.tone |= a.tone
		s.orders = s.orders || a.Command
		s.model = s.model || a.Subject == meaning.Model
		s.Acts[i] = a
	}
}

// goings are verbs whose subject is what moves: "saved logins travel to a host of ours".
var goings = []string{"travel", "leave", "go", "land", "arrive", "flow", "leak", "end"}

// anyOf is what some words mean, each for itself.
func anyOf(words []meaning.Word) (all concept) {
	for _, w := range words {
		all |= look(w).concept
	}
	return all
}

var pronouns = []string{"it", "them", "these", "those"}

// take adds one noun phrase behind the verb. "The contents of a file" is the file.
func (a *Act) take(with string, p, last phrase, placed, begun bool) {
	switch {
	case with == "" || with == "of" && (last.head&holds != 0 || !begun):
		a.object |= p.head
		a.around |= p.around
		if p.head&(holds|personal) != 0 { // the credentials file, the browser profile
			a.object |= p.around & (secret | rooted | talk | personal)
		}
		a.other = a.other || p.head == 0
	case with == "of" && !placed:
		a.around |= p.head | p.around
	case with == "about" || with == "against":
		a.about |= p.head
	default:
		a.place |= p.head | p.around
		if with != "for" { // an alert for malware holds none
			a.where |= p.head | p.around
		}
		if with == "by" || with == "via" || with == "through" {
			a.means |= p.head
		}
		if slices.Contains([]string{"to", "from", "with", "behind"}, with) {
			a.whom |= p.head
		}
	}
}

// phrase is what a noun phrase means: its head, and the words before the head.
type phrase struct{ head, around concept }

// meantBy reads a noun phrase. The longest name at its end is the head.
func meantBy(words []meaning.Word) (p phrase) {
	end := len(words)
	head := 1
	for n := min(3, end); n > 0; n-- {
		if n > 1 && !look(words[end-n]).begins && (n == 3 || look(words[end-1]).concept != 0) {
			continue
		}
		c, ok := lexicon()[joined(words[end-n:], " ")]
		if !ok && n == 2 { // pass words
			c, ok = lexicon()[joined(words[end-n:], "")]
		}
		if n == 1 && !ok {
			c, ok = lexicon()[words[end-1].Text]
		}
		if n == 1 && !ok && strings.Contains(words[end-1].Text, "_") { // github_token
			c, ok = lexicon()[strings.ReplaceAll(words[end-1].Text, "_", " ")]
		}
		if ok {
			p.head, head = c, n
			break
		}
	}
	for i := range end - head {
		k := look(words[i])
		p.around |= k.concept
		if i+1 < end-head && k.begins {
			p.around |= lexicon()[words[i].Base+" "+words[i+1].Base]
		}
	}
	if p.head == 0 && strings.ContainsAny(words[end-1].Text, "@/") {
		p.head = addressed(words[end-1].Text)
	}
	return p
}

// joined is what the lexicon calls some words: all but the last as they are written.
func joined(words []meaning.Word, by string) string {
	if len(words) == 1 {
		if by := words[0].Base; strings.Contains(by, "-") && lexicon()[by] == 0 {
			return strings.ReplaceAll(by, "-", "")
		}
		return words[0].Base
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(by)
		}
		b.WriteString(w.Base)
	}
	return b.String()
}

// addressed says what an address or a path names.
func addressed(word string) concept {
	switch {
	case strings.HasPrefix(word, "http://localhost"), strings.HasPrefix(word, "http://127."):
		return 0
	case strings.HasPrefix(word, "http://"), strings.HasPrefix(word, "https://"):
		return outside
	case strings.IndexByte(word, '@') > 0 && strings.IndexByte(word[strings.IndexByte(word, '@'):], '.') > 0:
		return outside
	}
	return 0
}
