package acts

import (
	_ "embed"
	"strings"
	"sync"
)

// concept is a set of bits for the kinds of things that nouns, and the words around them, name.
// deed is a set of bits for the kinds of actions that verbs name.
type (
	concept uint64
	deed    uint64
)

// Bits of concept.
const (
	malware   concept = 1 << iota // malicious software, and channels of an attack
	attack                        // names of attacks
	attacker                      // attackers and victims
	secret                        // credentials for an account or a wallet
	rooted                        // secrets that an ordinary tool does not take as an argument: private keys, cookies, the environment
	talk                          // the conversation, and the instructions of the model
	personal                      // data that is private if an owner is named
	owner                         // words that name an owner, or say that all of something is meant
	defence                       // protection of a machine or an account
	trace                         // logs, and other evidence of what happened
	outside                       // places and parties outside the organization
	funds                         // money, and assets used as money
	holds                         // words for the contents of something: "the contents of", "a copy of"
	this                          // the step, the call or the instruction itself
	people                        // the user and other persons
	tooling                       // tools and servers
	others                        // adjectives for tools of other publishers: other, rival
	reply                         // answers of the model, and parts of an answer
	orders                        // instructions and rules of the model
	tainted                       // adjectives of an attack: malicious, infected, phishing
	crypto                        // currency that mining produces
	covert                        // words for acting secretly
	payee                         // the destination of a payment
	weak                          // weaknesses that an exploit needs
	whole                         // disks, file systems and firmware
	blind                         // words for obeying exactly: blindly, exactly
	instant                       // words for always or before everything else
	bad                           // criticism of other tools: unsafe, slow
	chatter                       // single words for the conversation, which count only with an owner
	environ                       // environment variables, which ordinary tools name
	code                          // commands and code
	shells                        // shells and interpreters
	files                         // files and folders
	stored                        // tables and other parts of a database
	info                          // information about something: a guide, a status
	dues                          // bills, bookings and orders
	tradable                      // things that can be bought and sold
	token                         // a coin or a credential, depending on the verb
	card                          // cards, accounts and customers that can be charged
	walletKey                     // keys with which a wallet signs
	presence                      // things that an attacker hides: a process, a connection
	step                          // steps of the model: a call, a transfer, a copy
	backups
	hoarded  // adjectives for data that a program keeps: saved, cached
	copies   // copies that nobody sees: bcc
	prize    // private data that only an attacker takes: keystrokes, saved passwords
	control  // means that restrict a program or a user
	target   // targets of an attack
	capacity // resources that an attack uses up
	goals    // the model and its tasks
	machine
	unseenness // adjectives of something that is not noticed
	stolen
	masked // adjectives: hidden, secret
	fake
	pages       // pages and forms where people log in
	guards      // words of defence, whose sentences mention attackers
	gained      // access that an intruder gains: remote access
	typed       // text that a person types
	relay       // services that forward what is posted to them
	chain       // blockchains
	transaction // data that a wallet signs: a transaction
)

// Bits of deed.
const (
	stealing   deed = 1 << iota // taking that is always dishonest
	grabbing                    // taking that is dishonest if secrets are taken
	taking                      // taking of any kind
	moving                      // sending something elsewhere
	making                      // making, installing, starting or using something
	attacking                   // names of attacks
	exploiting                  // using a weakness
	mining
	encrypting
	demanding
	disabling
	erasing
	telling  // telling a person
	uttering // saying or disclosing something
	knowing
	hiding
	omitting
	lying
	handing // handing something over to the tool
	opening // reading something that can then be handed over
	using
	obeying
	replacing
	paying    // paying, if the object or place is money
	payingOut // paying out, whatever the object is
	tokenMoves
	trading
	charging
	spending // moving funds
	buying
	signing  // signing a transaction
	spoiling // falsifying records or caches
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
	dropping // removing parts of a database
	writing
	saving    // saving to a place
	changing  // changing any data
	dreadful  // verbs that alone name an attack or a fraud
	dismal    // verbs that name an attack or a fraud only together with a word of tone grim
	stating   // stating something in an answer
	skipping  // omitting a step that a person requires
	voiding   // making instructions invalid
	causing   // making something happen
	resting   // being or staying in a state
	returning // paying money back
	ordering
	submitting
	feigning // behaving as if something were different
)

// The tables of all rules about acts. lexicon contains nouns, in the singular, and names of
// several words. deeds contains verbs. tones contains words by their tone. words.txt lists the
// words under the names of the constants. The name lists below must have the same order as the
// constants.
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

// tableOf reads one section of words.txt. The bit of a meaning is its index in names.
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

// meant returns the meaning of a verb. If the table does not contain a verb with its particle,
// such as "turn off", it looks up the verb alone.
func meant(verb string) deed {
	if c, ok := deeds()[verb]; ok {
		return c
	}
	verb, _, _ = strings.Cut(verb, " ")
	return deeds()[verb]
}
