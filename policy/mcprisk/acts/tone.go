package acts

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/meaning"
)

// tone is what a word says at any position in a clause, as a set of bits. Where concept
// and deed need a grammar of who does what to what, tone needs only a clause that is
// asserted: text that says what a tool does speaks of forged passports or of a botnet
// only if it makes or uses them. What tells about them or guards against them is not
// asserted.
type tone uint64

const (
	dire      tone = 1 << iota // names an attack or a fraud by itself
	grim                       // names one together with another such word
	tame                       // words of defence and of teaching: a clause with one asserts no attack
	sham                       // what is invented
	papers                     // what people trust, and what is forged
	regard                     // whatever, regardless, even
	sly                        // silently
	ruin                       // what happens to a thing that is sabotaged
	approval                   // what a person gives before something happens
	void                       // what is said of rules that no longer count
	worry                      // what a person is said to be spared
	predicate                  // not to be seen
	rank                       // above others
	praise                     // speaks well of something
	brand                      // the publisher's own wares
	untrue                     // of results
	boon                       // what a result looks like when it hides something
	intimate                   // what people show nobody
	higher                     // whose instructions the model follows
	refusal
	mock       // what is only played
	personWord // people who use it
	anything   // whatever, every time
	hush       // of what is kept from people
	rule       // of who may command
	rivalWord  // of others
	offstage   // behind the scenes
	masking    // of secrets that are not shown
	tracks     // where one sees what was done
)

// known is what the tables say of one word, and whether it begins a name of several words.
type known struct {
	concept concept
	tone    tone
	begins  bool
}

// dictionary joins lexicon and tones, so that a word is looked up once.
var dictionary = sync.OnceValue(func() map[string]known {
	words := map[string]known{}
	add := func(word string, k known) {
		is := words[word]
		words[word] = known{is.concept | k.concept, is.tone | k.tone, is.begins || k.begins}
		if first, _, ok := strings.Cut(word, " "); ok {
			is := words[first]
			is.begins = true
			words[first] = is
		}
	}
	for word, c := range lexicon() {
		add(word, known{concept: c})
	}
	for word, t := range tones() {
		add(word, known{tone: t})
	}
	return words
})

// look is what the tables say of a word as it is written and in the singular.
func look(w meaning.Word) known {
	k := dictionary()[w.Base]
	if w.Base != w.Text {
		plural := dictionary()[w.Text]
		k = known{k.concept | plural.concept, k.tone | plural.tone, k.begins || plural.begins}
	}
	return k
}

// wordsOf calls yield with the words that belong to the clause alone: its subject, the
// adverbs before its verb and what stands behind it.
func (a *Act) wordsOf(yield func(meaning.Word) bool) {
	for _, w := range a.Topic {
		if !yield(w) {
			return
		}
	}
	before := a.Before
	for i := len(before) - 1; i >= 0 && i >= len(before)-3 && len(a.Topic) == 0; i-- {
		if !strings.HasSuffix(before[i].Text, "ly") {
			break
		}
		if !yield(before[i]) {
			return
		}
	}
	if a.Verb == "" { // Rest is Topic
		return
	}
	for _, w := range a.Rest {
		if !yield(w) {
			return
		}
	}
}

// wordsAndVerb are the words of the clause and its verb.
func (a *Act) wordsAndVerb(yield func(meaning.Word) bool) {
	verb, _, _ := strings.Cut(a.Verb, " ")
	if verb != "" && !yield(meaning.Word{Text: verb, Base: verb}) {
		return
	}
	a.wordsOf(yield)
}

// sounds is the tone of all words of the clause, and points what they count: two for a
// dire word, one for each grim one. Compounds are read in any spelling: "key-logger",
// "back door".
func (a *Act) sounds() {
	var seen, last string
	begins := false
	verb, _, _ := strings.Cut(a.Verb, " ")
	a.tone = tones()[verb] & (worry | rank | void | praise | regard | refusal)
	for w := range a.wordsOf {
		k, t := look(w), toneOfWord(w)
		switch {
		case begins:
			t |= tones()[last+" "+w.Base]
		case t == 0 && len(last) > 2 && w.Noun(): // back door
			t = tones()[last+w.Base]
		}
		last, begins = w.Base, k.begins
		a.tone |= t
		switch {
		case t&dire != 0:
			a.points += 2
		case t&grim != 0 && seen != w.Base:
			a.points++
			seen = w.Base
		}
	}
}

// toneOfWord is the tone of one word, its hyphens left out where it is unknown.
func toneOfWord(w meaning.Word) tone {
	t := look(w).tone
	if t == 0 && strings.Contains(w.Base, "-") {
		t = tones()[strings.ReplaceAll(w.Base, "-", "")]
	}
	return t
}

// toneOf is the tone of some words, each for itself.
func toneOf(words []meaning.Word) (all tone) {
	for _, w := range words {
		all |= toneOfWord(w)
	}
	return all
}

// weight is what the clause counts towards an attack: its words, its verb, and what it
// does with what is private.
func (a *Act) weight() (points int) {
	switch {
	case a.verb&dreadful != 0:
		points = 2
	case a.verb&dismal != 0:
		points = 1
	}
	// What is deleted or watched is not what the tool is: "deletes phishing mails".
	if a.verb&erasing == 0 && !(a.verb&watching != 0 && a.verb&dismal == 0 && !a.coverts()) || a.tone&dire == 0 {
		points += a.points
	}
	if a.Opening == "to" && a.verb&taking != 0 && a.object&secret != 0 {
		points++ // a page to collect passwords
	}
	things := a.object | a.around
	takes := a.verb&(taking|moving|grabbing|extracting|stealing|handing) != 0
	switch {
	case takes && a.object&(rooted|talk|secret|environ) != 0 && a.object&info == 0, takes && a.object&personal != 0 && a.around&owner != 0, takes && a.tone&intimate != 0, a.verb&opening != 0 && a.object&(rooted|secret) != 0 && a.around&owner != 0, a.verb&(erasing|destroying) != 0 && things&owner != 0 && things&(personal|files) != 0:
		points++
	}
	if a.serves() && a.names("control", "controlled", "operate", "purposes", "disposal", "hands") {
		points += 2
	} else if takes && (a.where|a.whom)&outside != 0 || a.serves() {
		points++
	}
	if a.tone&sly != 0 || a.verb&^resting != 0 && a.coverts() { // what works without permission takes nothing
		points++
	}
	return points
}

// serves reports whether what is done is done for the people behind the tool: "to a server
// we run", "runs our class".
func (a *Act) serves() bool {
	if a.verb&(taking|moving|making|replacing|executing|handing|using|changing|extracting) == 0 {
		return false
	}
	for i, w := range a.Rest {
		switch w.Text {
		case "us", "ours", "authors", "publishers", "makers":
			return true
		case "we":
			return i > 1 && (a.next != nil && a.next.verb != 0 || a.names("control", "operate", "own", "run"))
		case "our":
			if i+1 < len(a.Rest) && !slices.Contains(harmlessOurs, a.Rest[i+1].Base) && !slices.Contains(harmlessOurs, a.Rest[len(a.Rest)-1].Base) {
				return true
			}
		}
	}
	return false
}

// harmlessOurs are things of a publisher that a tool may well be about.
var harmlessOurs = strings.Fields("team support staff doc documentation website site page customer user product policy help blog shop store company organisation organization api sdk newsletter office phone guide price catalogue catalog knowledge forum community tracker roadmap schedule hotel restaurant service")
