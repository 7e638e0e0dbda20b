package acts

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/meaning"
)

// tone is a set of bits: what a word suggests at any position in a clause. concept and deed depend
// on who does what to what; tone depends only on whether the clause asserts something. A text
// about a tool that mentions forged passports or a botnet is an attack if the tool makes or uses
// them. It is not an attack if the tool reports about them or protects against them, because such
// clauses assert no attack.
type tone uint64

const (
	dire      tone = 1 << iota // a word that alone names an attack or a fraud
	grim                       // a word that names an attack or a fraud only together with another such word
	tame                       // a word of defence or teaching: its clause asserts no attack
	sham                       // invented or forged
	papers                     // something that people trust and that can be forged
	regard                     // without exceptions: whatever, regardless, even
	sly                        // secretly: silently, quietly
	ruin                       // failures of a sabotaged thing: fail, crash
	approval                   // approval that a person gives before something happens
	void                       // instructions that are no longer valid
	worry                      // words for what people are spared if something is concealed: alarm, worry, clutter
	predicate                  // not seen, or not known
	rank                       // above others: authority, priority
	praise                     // praise or recommendation
	brand                      // the publisher's own products: our, sponsor
	untrue                     // untrue results
	boon                       // words for a result that only seems normal because something is concealed: normal, nothing
	intimate                   // data that people keep to themselves
	higher                     // people and companies whose instructions the model must follow
	refusal
	mock       // simulated
	personWord // people
	anything   // anything, every time
	hush       // concealment from people
	rule       // authority over the model
	rivalWord  // competitors
	offstage   // out of sight: behind, back
	masking    // secrets that are masked
	tracks     // texts that show what was done
)

// known is the meaning of one word in the tables. begins is true if the word begins a name of
// several words.
type known struct {
	concept concept
	tone    tone
	begins  bool
}

// dictionary combines lexicon and tones, so that a word needs one lookup.
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

// look returns the meaning of a word, as it is written and in the singular.
func look(w meaning.Word) known {
	k := dictionary()[w.Base]
	if w.Base != w.Text {
		plural := dictionary()[w.Text]
		k = known{k.concept | plural.concept, k.tone | plural.tone, k.begins || plural.begins}
	}
	return k
}

// wordsOf calls yield with the words of the clause itself: its subject, the adverbs directly
// before its verb, and the words after the verb.
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
	if a.Verb == "" { // without a verb Rest is the same as Topic
		return
	}
	for _, w := range a.Rest {
		if !yield(w) {
			return
		}
	}
}

// wordsAndVerb calls yield with the verb and then with the words of wordsOf.
func (a *Act) wordsAndVerb(yield func(meaning.Word) bool) {
	verb, _, _ := strings.Cut(a.Verb, " ")
	if verb != "" && !yield(meaning.Word{Text: verb, Base: verb}) {
		return
	}
	a.wordsOf(yield)
}

// sounds sets the tone of the clause and its points: two for each dire word, one for each grim
// word. It recognizes compounds in any spelling: "key-logger", "back door".
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
		case t == 0 && len(last) > 2 && w.Noun(): // for example "back door"
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

// toneOfWord returns the tone of one word. If the word is unknown, it tries the word without
// hyphens.
func toneOfWord(w meaning.Word) tone {
	t := look(w).tone
	if t == 0 && strings.Contains(w.Base, "-") {
		t = tones()[strings.ReplaceAll(w.Base, "-", "")]
	}
	return t
}

// toneOf returns the tones of the words, each looked up alone.
func toneOf(words []meaning.Word) (all tone) {
	for _, w := range words {
		all |= toneOfWord(w)
	}
	return all
}

// weight returns the points of the clause as a sign of an attack: for its words, for its verb, and
// for what it does with private data.
func (a *Act) weight() (points int) {
	switch {
	case a.verb&dreadful != 0:
		points = 2
	case a.verb&dismal != 0:
		points = 1
	}
	// Words for what is deleted or watched do not describe the tool: "deletes phishing mails".
	if a.verb&erasing == 0 && !(a.verb&watching != 0 && a.verb&dismal == 0 && !a.coverts()) || a.tone&dire == 0 {
		points += a.points
	}
	if a.Opening == "to" && a.verb&taking != 0 && a.object&secret != 0 {
		points++ // for example "a page to collect passwords"
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
	if a.tone&sly != 0 || a.verb&^resting != 0 && a.coverts() { // "works without permission" does not count, because such a verb takes nothing
		points++
	}
	return points
}

// serves reports whether something is done for the publisher of the tool: "to a server we run",
// "runs our class".
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

// harmlessOurs contains nouns after "our" that are common in honest descriptions.
var harmlessOurs = strings.Fields("team support staff doc documentation website site page customer user product policy help blog shop store company organisation organization api sdk newsletter office phone guide price catalogue catalog knowledge forum community tracker roadmap schedule hotel restaurant service")
