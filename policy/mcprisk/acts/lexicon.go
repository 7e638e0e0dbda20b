package acts

import (
	_ "embed"
	"strings"
	"sync"
)

// concept is what nouns and their company mean to the rules about acts, deed what
// verbs do, as sets of bits.
type (
	concept uint64
	deed    uint64
)

// Things.
const (
	malware   concept = 1 << iota // software and channels of an attack
	attack                        // an attack itself
	attacker                      // who attacks, and who is attacked
	secret                        // what opens an account or a wallet
	rooted                        // of those, what is no argument of an ordinary tool: private keys, cookies, the environment
	talk                          // the conversation and the instructions of the model
	personal                      // what belongs to a person if an owner is named
	owner                         // words that name the owner, or all of it
	defence                       // what protects a machine or an account
	trace                         // what shows afterwards that something happened
	outside                       // where nobody of the company is
	funds                         // money and what stands for it
	holds                         // words that stand for what they hold: the contents of, a copy of
	this                          // the step, the call, the instruction itself
	people                        // the user and other persons
	tooling                       // tools and servers
	others                        // words that make them those of others
	reply                         // what the model answers
	orders                        // instructions, rules
	tainted                       // adjectives of an attack: malicious, stolen, phishing
	crypto                        // what is mined
	covert                        // words for acting unseen
	payee                         // where a payment goes
	weak                          // what an exploit needs
	whole                         // disks and the like
	blind                         // whatever it says
	instant                       // always, every, before anything
	bad                           // what is said of rivals
	chatter                       // one word for the conversation, meant only with an owner
	environ                       // environment variables, which ordinary tools name
	code                          // what can be run
	shells                        // where commands run
	files                         // files and folders
	stored                        // tables and what else a database holds
	info                          // words that tell about something: a guide, a status
	dues                          // what is paid
	tradable                      // what is bought and sold
	token                         // a coin or a key, as the verb says
	card                          // what is charged
	walletKey                     // what a wallet signs with
	presence                      // what hides
	step                          // what the model is doing
	backups
	hoarded  // what a program keeps for its user
	copies   // that nobody sees
	prize    // of those, what nobody takes honestly
	control  // what holds a program or a user back
	target   // what is attacked
	capacity // what is used up
	goals    // what the model is to do
	machine
	unseenness // what is not to be noticed
	stolen
	masked // adjectives of what nobody is to find
	fake
	pages       // where people log in
	guards      // words of defence, which hold attackers too
	gained      // what an intruder gains
	typed       // what a person types
	relay       // services that pass on what is posted
	chain       // where coins are kept
	transaction // what a wallet signs
)

// Acts.
const (
	stealing   deed = 1 << iota // taking that has no honest reading
	grabbing                    // taking that has none when it takes secrets
	taking                      // taking of any kind
	moving                      // out
	making                      // or bringing in, starting, using
	attacking                   // by its own name
	exploiting                  // of a weakness
	mining
	encrypting
	demanding
	disabling
	erasing
	telling  // a person
	uttering // something
	knowing
	hiding
	omitting
	lying
	handing // over to the tool
	opening // to hand over then
	using
	obeying
	replacing
	paying    // by its own name
	payingOut // by its own name
	tokenMoves
	trading
	charging
	spending // of funds
	buying
	signing  // of a transaction
	spoiling // of records, of caches
	routing
	watching
	selling
	tricking
	harvesting
	flooding
	spreading
	evading
	exhausting
	bending
	controlling
	seizing
	executing
	extracting
	permitting
	destroying
	guarding
	dropping // of what a database holds
	writing
	saving    // somewhere
	changing  // anything
	dreadful  // an attack or a fraud by its own name
	dismal    // one together with a grim word
	stating   // what is answered
	skipping  // a step that a person asked for
	voiding   // instructions
	causing   // something to happen
	resting   // being or staying in a state
	returning // money
	ordering
	submitting
	feigning // that something is otherwise
)

// The tables behind all rules about acts: lexicon says what nouns and names of several
// words mean, nouns in the singular, deeds what verbs do, tones what words sound like.
// words.txt holds their words under the names of the constants, in their order.
var (
	//go:embed words.txt
	wordList string

	lexicon = sync.OnceValue(func() map[string]concept { return tableOf[concept]("things", conceptNames) })
	deeds   = sync.OnceValue(func() map[string]deed { return tableOf[deed]("deeds", deedNames) })
	tones   = sync.OnceValue(func() map[string]tone { return tableOf[tone]("tones", toneNames) })

	conceptNames = strings.Fields("malware attack attacker secret rooted talk personal owner defence trace outside funds holds this people tooling others reply orders tainted crypto covert payee weak whole " +
		"blind instant bad chatter environ code shells files stored info dues tradable token card walletKey presence step backups hoarded copies prize control target capacity " +
		"goals machine unseenness stolen masked fake pages guards gained typed relay chain transaction")
	deedNames = strings.Fields("stealing grabbing taking moving making attacking exploiting mining encrypting demanding disabling erasing telling uttering knowing hiding omitting lying handing opening " +
		"using obeying replacing paying payingOut tokenMoves trading charging spending buying signing spoiling routing watching selling tricking harvesting flooding spreading " +
		"evading exhausting bending controlling seizing executing extracting permitting destroying guarding dropping writing saving changing dreadful dismal stating skipping " +
		"voiding causing resting returning ordering submitting feigning")
	toneNames = strings.Fields("dire grim tame sham papers regard sly ruin approval void worry predicate rank praise brand untrue boon intimate higher refusal mock personWord anything hush rule " +
		"rivalWord offstage masking tracks")
)

// tableOf reads one section of the list. The place of a meaning among the names is its bit.
func tableOf[T ~uint64](section string, names []string) map[string]T {
	bits := map[string]T{}
	for i, name := range names {
		bits[name] = 1 << i
	}
	words, meaning, inside := map[string]T{}, T(0), false
	for line := range strings.Lines(wordList) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			inside = strings.TrimSpace(title) == section
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if name, ok := strings.CutSuffix(word, ":"); ok && bits[name] != 0 && inside {
				meaning = bits[name]
			} else if inside {
				words[strings.ReplaceAll(word, "_", " ")] |= meaning
			}
		}
	}
	return words
}

// meant is what a verb means, its particle left off where the pair is unknown.
func meant(verb string) deed {
	if c, ok := deeds()[verb]; ok {
		return c
	}
	verb, _, _ = strings.Cut(verb, " ")
	return deeds()[verb]
}
