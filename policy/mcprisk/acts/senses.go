package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

// Sense says for which kinds of rules a word is relevant. A text is split into clauses only if its
// words are relevant for some rule.
type Sense uint8

const (
	sinister Sense = 1 << iota // a word for an attack, a secret or the conversation
	denial                     // negation or concealment: not, without, hide
	choice                     // a word for a tool
	claimed                    // a claim of priority: always, every, other
	capable                    // a capability of a tool
)

// Judged reports whether a text with these words must be checked for attacks, concealment and
// steering.
func (s Sense) Judged() bool { return s&(sinister|denial) != 0 || s&choice != 0 && s&claimed != 0 }

// Capable reports whether a text with these words must be checked for capabilities.
func (s Sense) Capable() bool { return s&capable != 0 }

// Senses returns the relevant words with their senses.
func Senses() map[string]Sense {
	words := map[string]Sense{}
	add := func(word string, s Sense) {
		if s == 0 {
			return
		}
		parts := strings.FieldsFunc(word, func(r rune) bool { return r > 0x7f || !isWordByte(byte(r)) })
		if len(parts) == 0 {
			return
		}
		word = parts[len(parts)-1] // use the last word of a name of several words, or the first if the last is common
		if len(parts) > 1 && slices.Contains(common, word) {
			word = parts[0]
		}
		for _, form := range []string{word, word + "s", strings.TrimSuffix(word, "y") + "ies"} {
			words[form] |= s
		}
	}
	// Nouns and the words around them.
	for word, c := range lexicon() {
		var s Sense
		if c&(malware|attack|attacker|secret|rooted|talk|chatter|environ|defence|trace|tainted|payee|whole|presence|weak|orders|covert|bad|outside|copies) != 0 {
			s |= sinister
		}
		if c&(shells|walletKey) != 0 {
			s |= capable
		}
		if c&tooling != 0 {
			s |= choice
		}
		if c&unseenness != 0 {
			s |= denial
		}
		if c&(instant|others) != 0 {
			s |= claimed
		}
		add(word, s)
	}
	// Words that suggest an attack at any position.
	for word, t := range tones() {
		if t&(dire|grim|ruin) != 0 {
			add(word, sinister)
		}
	}
	// Verbs, in all their forms.
	for word, d := range deeds() {
		var s Sense
		if d&(stealing|attacking|exploiting|mining|encrypting|demanding|spoiling|evading|flooding|spreading|exhausting|bending|selling|tricking|harvesting|seizing|dreadful|dismal) != 0 {
			s |= sinister
		}
		if d&(hiding|omitting|lying) != 0 {
			s |= denial
		}
		if d&capabilityDeeds != 0 {
			s |= capable
		}
		verb, _, _ := strings.Cut(word, " ")
		for _, form := range meaning.Forms(verb) {
			add(form, s)
		}
	}
	for word := range strings.FieldsSeq("not never no don t dont nobody without refrain nothing unaware claim act from whatever") {
		add(word, denial)
	}
	return words
}

// common contains words that nearly every manifest contains.
var common = strings.Fields("list item items state id string data file name number code value history message log table output result address path line page account call text record project user service use get first answer id search query " +
	"type view title date time field order request response content list level limit version key group host server system email url app case check member note open run set start test tool update")

func isWordByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
