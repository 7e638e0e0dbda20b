package meaning

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

// kind is a set of bits: the functions that a word can have in the grammar.
type kind uint16

const (
	verb        kind = 1 << iota // a verb in the vocabulary
	tells                        // a verb that reports about something or protects against it: detect, explain
	auxiliary                    // will, must, does: a verb follows
	being                        // is, are, be: a participle may follow
	negator                      // not, never, no, nobody
	joint                        // and, or: the next word has the form of the previous one
	opening                      // when, if, that, whether: a clause of its own follows
	preposition                  // to, from, about
	determiner                   // the, a, your: a noun follows
	pronoun                      // you, it: a subject on its own
	adverb                       // also, first: can be between subject and verb
)

// entry contains the properties of a word in the vocabulary.
type entry struct {
	kinds  kind
	base   string // base form, if the word is a form of a verb
	form   form
	traits trait
}

// trait is a set of bits: properties of a word that are not part of the grammar.
type trait uint8

const (
	teller   trait = 1 << iota // a noun for a text or a record about something
	giver                      // a verb for making or passing on a text about something
	nounish                    // a verb whose form in -s is as often a plural noun
	nouny                      // a verb that is more often a noun, also in the singular
	personal                   // a person
)

// verbList contains verbs that only name an action, in their base form.
//
//go:embed verbs.txt
var verbList string

// The vocabulary is built at its first use, because most programs that link this package never
// read a sentence.
var vocabulary = sync.OnceValue(func() map[string]entry {
	words := map[string]entry{}
	for _, list := range []struct {
		kind  kind
		words string
	}{
		{auxiliary, "will would can could may might must shall should do does did have has had ought required supposed going want wants able please"},
		{being, "is are was were be been being am get gets got stay stays remain remains"},
		{negator, "not never no cannot nobody none nothing neither nor without hardly"},
		{joint, "and or then but nor plus"},
		{opening, "when whenever if whether how who whom which what whatever that because so unless until before after although though while where why since once"},
		{preposition, "to from of in on at for with without by via via through over into onto about against under between among as than like per towards to across behind during except instead"},
		{determiner, "the a an your my our their his her its every each all any some this that these those another other no both such which"},
		{pronoun, "you it they i we he she this that who which everyone anyone someone somebody anybody nobody there"},
		{adverb, "also always first just only then immediately again even ever simply still now too automatically permanently next best once later instead directly here there far verbatim together along away out up down back off longer prior alive afterwards afterward later anywhere either whatsoever nonetheless nevertheless thereby hereby meanwhile likewise too well kindly"},
		{verb | tells, "detect explain list show check report alert warn classify search scan find describe return analyze analyse inspect verify validate audit " +
			"prevent block protect guard stop avoid refrain forbid prohibit reject redact mask sanitize quarantine remove test simulate study summarize summarise compare " +
			"count display view lookup predict estimate calculate compute tell inform notify notice know learn see fetch get look identify flag monitor measure rate ensure " +
			"document recommend suggest answer draft preview limit restrict"},
		{verb, verbList},
	} {
		for word := range strings.FieldsSeq(list.words) {
			e := words[word]
			e.kinds |= list.kind
			if list.kind&verb != 0 {
				e.base, e.form = word, bare
			}
			words[word] = e
		}
	}
	for _, list := range []struct {
		trait trait
		words []string
	}{{teller, tellers}, {giver, givers}, {nounish, nounishVerbs}, {nounish | nouny, nounyVerbs}, {personal, persons}} {
		for _, word := range list.words {
			e := words[word]
			e.traits |= list.trait
			words[word] = e
		}
	}
	add := func(word, base string, f form) {
		if e := words[word]; e.form == 0 {
			e.base, e.form = base, f
			words[word] = e
		}
	}
	words["including"] = entry{kinds: preposition}
	for word, base := range irregular {
		switch {
		case words[base].kinds&verb == 0:
		case strings.HasSuffix(word, "ing"):
			add(word, base, gerund)
		case strings.HasSuffix(word, "s"):
			add(word, base, third)
		default:
			add(word, base, participle)
		}
	}
	for _, base := range slices.Sorted(maps.Keys(words)) {
		if words[base].kinds&verb != 0 {
			for _, word := range regular(base) {
				add(word.text, base, word.form)
			}
		}
	}
	return words
})

// inflected is a verb in one of its forms.
type inflected struct {
	text string
	form form
}

// regular returns the forms that a regular verb can have: "stores", "storing", "stored",
// "stopping". Some of them do not exist.
func regular(verb string) []inflected {
	stem, twice := strings.TrimSuffix(verb, "e"), verb+verb[len(verb)-1:]
	forms := []inflected{{verb + "s", third}, {stem + "ing", gerund}, {stem + "ed", participle}, {verb + "es", third}, {twice + "ing", gerund}, {twice + "ed", participle}}
	if y, ok := strings.CutSuffix(verb, "y"); ok {
		forms = append(forms, inflected{y + "ies", third}, inflected{y + "ied", participle})
	}
	return forms
}

// Forms returns the base form and all other forms of a verb.
func Forms(verb string) []string {
	forms := []string{verb}
	for _, f := range regular(verb) {
		forms = append(forms, f.text)
	}
	for form, base := range irregular {
		if base == verb {
			forms = append(forms, form)
		}
	}
	return forms
}

// irregular maps forms that do not follow the rules for endings to their base forms.
var irregular = map[string]string{
	"sent": "send", "stolen": "steal", "told": "tell", "taken": "take", "written": "write", "hidden": "hide", "kept": "keep", "paid": "pay", "pays": "pay",
	"known": "know", "gave": "give", "wrote": "write", "chose": "choose", "took": "take", "saw": "see", "knew": "know", "went": "go", "got": "get", "meant": "mean", "thought": "think", "overheard": "overhear", "withheld": "withhold", "overridden": "override", "overrode": "override", "undone": "undo", "shut": "shut", "cut": "cut", "hit": "hit", "let": "let", "built": "build", "lent": "lend", "borne": "bear", "begun": "begin", "become": "become", "drew": "draw", "stole": "steal", "caught": "catch", "taught": "teach", "understood": "understand", "fed": "feed", "led": "lead", "met": "meet", "won": "win", "lost": "lose", "swept": "sweep", "slipped": "slip", "driven": "drive", "proven": "prove", "worn": "wear", "torn": "tear", "woken": "wake", "frozen": "freeze", "forbidden": "forbid", "undercut": "undercut",
	"given": "give", "made": "make", "done": "do", "seen": "see", "run": "run", "running": "run", "read": "read", "sold": "sell", "bought": "buy",
	"found": "find", "shown": "show", "put": "put", "set": "set", "dies": "die", "lying": "lie", "spent": "spend", "withdrawn": "withdraw", "overwritten": "overwrite", "left": "leave",
	"passes": "pass", "uses": "use", "forgotten": "forget", "broken": "break", "chosen": "choose", "drawn": "draw", "spread": "spread", "said": "say", "aware": "know", "unaware": "know", "held": "hold", "brought": "bring",
}

// form is the inflection of a verb; 0 means that a word is not a verb.
type form uint8

const (
	bare       form = iota + 1 // for example "send"
	third                      // for example "sends"
	gerund                     // for example "sending"
	participle                 // for example "sent"
)

// Base returns the singular of a noun: "keys" and "key", "histories" and "history".
func Base(word string) string {
	switch {
	case len(word) < 4 || word[len(word)-1] != 's' || strings.HasSuffix(word, "ss") || strings.HasSuffix(word, "us") || strings.HasSuffix(word, "is"):
		return word
	case word == "cookies" || word == "movies":
		return word[:len(word)-1]
	case strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	}
	for _, ending := range []string{"sses", "ches", "shes", "xes"} {
		if strings.HasSuffix(word, ending) {
			return word[:len(word)-2]
		}
	}
	return word[:len(word)-1]
}

// phrasal contains verbs with a particle.
var phrasal = strings.Split("turn off,turn on,find out,pay out,pay off,cash out,top up,carry out,fill in,fill out,bring up,leave out,cut off,give away,take over,let on,listen in,phone home,call home,log in,sign in,sign up,log out,set aside,put aside,lay aside,pick up,clean out,point out,set up,switch off,switch on,shut down,wipe out,break into,pass on,pass along,hand over,send off,siphon off,give back,pay back,spin up,slip past,own up,opt out,take on,add up,look up,top off,get past,get around", ",")

func joinsVerb(base, next string) bool { return slices.Contains(phrasal, base+" "+next) }

// tellers contains nouns for texts and records about something: "a guide to phishing".
var tellers = strings.Fields("guide documentation document doc explanation description explainer introduction tutorial course lesson training lecture statistic glossary list catalogue catalog directory report checklist playbook runbook plan " +
	"example sample quiz test news dashboard overview summary history timeline record search database feed reference cheatsheet cheat-sheet fact tip advice advisory figure article definition dictionary encyclopedia " +
	"information info notes simulation simulator exercise detection prevention protection scanner detector checker filter monitoring awareness alert status count number help glossary map index lookup finder " +
	"rule signature indicator probability likelihood chance risk story headline poster text template question phrase quote term abbreviation acronym research paper study survey comparison trend ranking reputation disclosure bulletin changelog test policy plan news standard law")

// givers contains verbs for making or passing on a text about something.
var givers = strings.Fields("build create write draft prepare compile generate produce give provide offer contain include help publish convert translate return make draw plot curate")

// Words that determine which kind of subject a noun phrase names.
var (
	readers = strings.Fields("you model assistant agent llm ai claude chatgpt gpt copilot")
	tools   = strings.Fields("it tool function server helper service extension plugin action command we i method endpoint")
	reasons = strings.Fields("need reason necessary necessity")
	persons = strings.Fields("user human person people customer operator client anyone someone somebody anybody nobody everyone admin administrator owner reader they who listener viewer reviewer auditor supervisor approver requester recipient visitor guest patient student employee child parent victim buyer individual colleague attacker member team")
)

// IsVerb reports whether base is the base form of a verb in the vocabulary.
func IsVerb(base string) bool {
	return vocabulary()[base].kinds&verb != 0 && vocabulary()[base].form == bare
}

// has reports whether a word has a trait.
func has(word string, t trait) bool { return vocabulary()[word].traits&t != 0 }

// nounyVerbs are used as nouns more often, as in "attack surface". The form in -s of nounishVerbs
// is as often a plural noun, as in "updates per day".
var (
	nounyVerbs   = strings.Fields("request direct top attack exploit hack breach compromise attribute bait blind brief cause cc cite command conduct craft credit ddos doctor eval fax fib film flow grade hand highlight label lead lift live mail name neglect note pack point prefix present quote rank round score secure spot state tag text type void worry zero query")
	nounishVerbs = strings.Fields("crash flood trade transfer report update change")
)
