// Package acts finds what the sentences of a manifest say that a tool does: attack, send private
// data away, conceal something from the user, steer the choice of tools, ask for private data,
// pay, run commands.
//
// Package meaning splits a sentence into clauses, and one table says what nouns and verbs mean
// here (lexicon.go). A rule is a combination of verb, object and place (claims.go), never a
// phrase: "steals cookies", "will steal every cookie" and "cookies are stolen" match the same
// rule, "detects stolen cookies" matches none.
package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

// Act is a clause with the meaning of its words. A field of type concept or tone has the bits of
// all its words.
type Act struct {
	meaning.Clause
	verb   deed
	object concept // last nouns of the object: what is sent, installed or mentioned
	around concept // other words of the object
	place  concept // phrases after "to", "into", "from", "with", "in" and other prepositions
	where  concept // place without the phrases after "for"
	whom   concept // last nouns after "to", "from", "with", "behind"
	means  concept // last nouns after "by", "via", "through"
	about  concept // last nouns after "about", "against"
	before concept // words before the verb, including the subject
	other  bool    // the object has a last noun that is not in the lexicon: "the raw json"
	first  concept // last noun of the first phrase
	next   *Act    // following clause of the sentence; nil if there is none
	rest   concept // all words after the verb
	named  concept // words of the subject
	tone   tone    // all words of the clause
	topic  tone    // the object, and the phrases after "of", "for" and "in"
	points int     // how much the words suggest an attack, see sounds
}

// Sentence contains the clauses of one sentence. Read reuses its memory for the next sentence.
type Sentence struct {
	Acts   []Act
	words  concept // meaning of all words
	tone   tone    // tone of all words
	orders bool    // at least one clause is a command
	model  bool    // the model is the subject of at least one clause
}

// Read looks up the meaning of the words in the clauses of a sentence. A pronoun gets the meaning
// of the object before it: "reads keys and posts them".
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
		// take adds the meaning of one phrase. with is the preposition before the phrase, or "".
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
		// The subject of a passive verb is the thing that the action is done to.
		if c.Passive || slices.Contains(goings, c.Verb) {
			meaning.Phrases(c.Topic, take)
			last, placed, begun = phrase{}, false, false
		}
		meaning.Phrases(c.Rest, take)
		switch private := secret | rooted | talk | prize; { // meaning of a pronoun that follows: the object, or private data at the place, as in "searches a disk for keys and posts them"
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

// goings lists verbs whose subject is the thing that moves: "saved logins travel to a host of
// ours".
var goings = []string{"travel", "leave", "go", "land", "arrive", "flow", "leak", "end"}

// anyOf returns the meanings of the words, each looked up alone.
func anyOf(words []meaning.Word) (all concept) {
	for _, w := range words {
		all |= look(w).concept
	}
	return all
}

var pronouns = []string{"it", "them", "these", "those"}

// take adds a noun phrase after the verb. with is the preposition before the phrase, or "". The
// object of "the contents of a file" is the file.
func (a *Act) take(with string, p, last phrase, placed, begun bool) {
	switch {
	case with == "" || with == "of" && (last.head&holds != 0 || !begun):
		a.object |= p.head
		a.around |= p.around
		if p.head&(holds|personal) != 0 { // "the credentials file", "the browser profile"
			a.object |= p.around & (secret | rooted | talk | personal)
		}
		a.other = a.other || p.head == 0
	case with == "of" && !placed:
		a.around |= p.head | p.around
	case with == "about" || with == "against":
		a.about |= p.head
	default:
		a.place |= p.head | p.around
		if with != "for" { // "an alert for malware" does not contain malware
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

// phrase is the meaning of a noun phrase: of its last noun (head), and of the words before that
// noun.
type phrase struct{ head, around concept }

// meantBy looks up a noun phrase. Its head is the longest name of up to three words at the end
// that the lexicon contains.
func meantBy(words []meaning.Word) (p phrase) {
	end := len(words)
	head := 1
	for n := min(3, end); n > 0; n-- {
		if n > 1 && !look(words[end-n]).begins && (n == 3 || look(words[end-1]).concept != 0) {
			continue
		}
		c, ok := lexicon()[joined(words[end-n:], " ")]
		if !ok && n == 2 { // for example "pass words"
			c, ok = lexicon()[joined(words[end-n:], "")]
		}
		if n == 1 && !ok {
			c, ok = lexicon()[words[end-1].Text]
		}
		if n == 1 && !ok && strings.Contains(words[end-1].Text, "_") { // for example "github_token"
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

// joined returns words as the lexicon spells them: in the singular, with the text by between them.
// If there is only one word and the lexicon does not contain it, joined removes its hyphens.
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

// addressed returns outside for a URL or an e-mail address, except a URL of this machine.
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
