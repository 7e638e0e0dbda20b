package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

// claim is a combination of verb and things; a part that is zero may be anything.
type claim struct {
	verb                         deed
	object, around, place, where concept
}

func (a *Act) matches(claims []claim) bool {
	return slices.ContainsFunc(claims, func(c claim) bool {
		return a.verb&c.verb != 0 && (c.object == 0 || a.object&c.object != 0) && (c.around == 0 || a.around&c.around != 0) && (c.place == 0 || a.place&c.place != 0) && (c.where == 0 || a.where&c.where != 0)
	})
}

// done says whether the tool, or the model for it, does what the clause says.
func (a *Act) done() bool {
	return a.Verb != "" && !a.Negated && !a.Reported && (a.Subject != meaning.Person || a.Passive)
}

// Claims that a tool attacks.
var hostile = []claim{
	{verb: stealing, object: secret | talk | personal | rooted},
	{verb: grabbing, object: secret},
	{verb: making | moving, object: malware},
	{verb: making | moving, where: malware},
	{verb: making | moving, around: tainted},
	{verb: making | moving, where: tainted},
	{verb: making | moving | using, around: stolen},
	{verb: making | moving | using, where: stolen},
	{verb: making, object: gained},
	{verb: taking | watching, object: typed},
	{verb: making, object: people, around: masked},
	{verb: making, object: personal &^ files, around: masked},
	{verb: making, object: orders, around: masked},
	{verb: making, object: pages, around: fake},
	{verb: making, object: attack},
	{verb: disabling, object: defence},
	{verb: erasing, object: trace},
	{verb: erasing, object: whole},
	{verb: erasing, object: backups, around: owner},
	{verb: erasing, object: personal, around: attacker},
	{verb: attacking},
	{verb: exploiting, object: weak},
	{verb: mining, object: crypto},
	{verb: encrypting, object: personal, around: owner},
	{verb: demanding, object: funds},
	{verb: spoiling, object: trace | secret | personal | holds},
	{verb: spoiling, place: tainted},
	{verb: hiding, object: presence},
	{verb: replacing, object: payee, place: outside | attacker},
	{verb: replacing, around: payee, place: outside | attacker},
	{verb: taking | grabbing | moving, object: prize, place: outside},
	{verb: grabbing, object: prize},
	{verb: taking, object: prize, around: owner},
	{verb: extracting | grabbing, object: secret | control, around: hoarded},
	{verb: selling, object: personal | secret | talk},
	{verb: tricking, object: people},
	{verb: bending, object: funds},
	{verb: hiding, object: files | presence, place: people | defence},
	{verb: watching, object: prize, place: payee | secret},
	{verb: harvesting, object: personal},
	{verb: controlling | seizing, object: prize},
	{verb: seizing, object: target},
	{verb: evading, object: defence | control},
	{verb: flooding, object: target},
	{verb: spreading, object: presence},
	{verb: exhausting, object: capacity},
	{verb: bending, object: goals},
	{verb: erasing, object: files | personal, around: owner, place: machine},
	{verb: replacing | writing, object: malware},
}

// Claims that something private leaves.
var leaks = []claim{
	{verb: moving, object: secret | talk | environ, place: outside | attacker | relay},
	{verb: moving, object: personal | chatter, around: owner | attacker, place: outside | attacker},
	{verb: moving | replacing, object: copies, place: outside},
}

// Leaks says whether the clause, or the one behind it, sends something private away.
func (a *Act) Leaks() bool {
	n := a.next
	return a.done() && (a.matches(leaks) ||
		n != nil && n.done() && a.verb&(taking|opening) != 0 && a.object&secret != 0 && n.verb&moving != 0 && n.place&(outside|relay) != 0)
}

// Claims that are an attack only where nobody may see it.
var unseen = []claim{
	{verb: moving | taking | watching, object: secret | talk | personal | rooted},
	{verb: making, object: malware},
}

// Attacks says whether the clause says that the tool attacks. In the summary of a tool a
// phrase without a verb says so too: "theft of credentials".
func (a *Act) Attacks(summary bool) bool {
	if a.Verb == "" {
		return summary && !a.Negated && (a.place&attacker != 0 || a.first&attack != 0 && len(a.Topic) > 1)
	}
	if !a.done() {
		return false
	}
	words := a.before | anyOf(a.Rest)
	if words&guards == 0 && (words&attacker != 0 && a.verb&(guarding|erasing) == 0 && a.verb != watching && !meaning.TellsAbout(a.Verb) || a.place&fake != 0 && a.place&pages != 0) {
		return true
	}
	if a.verb&encrypting != 0 && (a.says("your") || a.says("key") || a.says("password")) {
		return false // the owner can open it again
	}
	if a.Passive && a.verb&attacking != 0 {
		return false // "which goals are breached" says nothing of who does it
	}
	if a.means&(attack|malware) != 0 && !meaning.TellsAbout(a.Verb) && a.verb&guarding == 0 {
		return true
	}
	if a.secretly() && a.verb&(moving|taking|watching|making|replacing|erasing) != 0 {
		return true
	}
	if a.matches(hostile) || a.coverts() && (a.matches(unseen) || a.verb&watching != 0 && (a.says("user") || a.says("users"))) {
		return true
	}
	n := a.next
	return n != nil && n.done() && a.verb&grabbing != 0 && n.verb&taking != 0 && n.object&secret != 0
}

// Claims that money moves or a key signs.
var payments = []claim{
	{verb: paying, object: funds | dues},
	{verb: paying, place: funds | dues | card | secret},
	{verb: payingOut},
	{verb: spending, object: funds},
	{verb: spending, object: dues, place: card},
	{verb: tokenMoves, object: token},
	{verb: trading, object: tradable | funds},
	{verb: charging, object: card | funds},
	{verb: signing, object: transaction},
	{verb: signing, around: transaction},
	{verb: using | signing, object: walletKey},
}

func (a *Act) pays() bool {
	return a.done() && a.Subject != meaning.Person && !a.idiom() && a.object&info == 0 &&
		(a.matches(payments) || a.verb&(buying|paying) != 0 && a.other)
}

// idiom recognises idioms: to buy time, to pay attention.
func (a *Act) idiom() bool {
	return len(a.Rest) > 0 && slices.Contains([]string{"time", "attention", "tribute", "heed", "respect"}, a.Rest[0].Text)
}

// coverts says whether a word of the clause says that nobody may see it.
func (a *Act) coverts() bool {
	for _, words := range [][]meaning.Word{a.Before, a.Rest} {
		behind, in := false, false
		for _, w := range words {
			switch w.Text {
			case "without", "behind":
				behind = true
			case "in":
				in = true
			}
			if lexicon()[w.Text]&covert != 0 && (!slices.Contains(byPreposition, w.Text) || behind || in && w.Text == "secret") {
				return true
			}
		}
	}
	return false
}

// secretly says whether the clause says so without a doubt: things are skipped silently,
// but not secretly.
func (a *Act) secretly() bool {
	without := false
	is := func(w meaning.Word) bool {
		without = without || w.Text == "without"
		return slices.Contains(secretWords, w.Text) || without && slices.Contains(unknown, w.Text)
	}
	return slices.ContainsFunc(a.Before, is) || slices.ContainsFunc(a.Rest, is)
}

// unknown are the words for what a person lacks behind "without".
var unknown = []string{"knowledge", "consent", "noticing", "knowing", "awareness"}

var secretWords = []string{"secretly", "covertly", "stealthily", "surreptitiously", "clandestinely"}

// Words that mean acting unseen behind "without", "behind" or "in" alone.
var byPreposition = []string{"knowledge", "consent", "permission", "awareness", "back", "secret"}

// directed says whether a denied clause is said to the model, or leaves a person out.
func (a *Act) directed() bool {
	return a.Negated && (a.Command || a.Passive || a.Subject == meaning.Model || a.Opening == "to" || a.Opening == "without" || a.Gerund)
}

// opens says whether a clause begins with one of the words; there may be no clause.
func (a *Act) opens(words ...string) bool { return a != nil && slices.Contains(words, a.Opening) }

// Conceals says whether something is to be kept from the user.
func (a *Act) Conceals() bool {
	clause := a.next.opens("that", "what", "where") || a.next == nil && a.says("that")
	thing := a.object&this != 0 && !a.other || a.about&this != 0 || a.around&step != 0 && a.says("this")
	switch {
	case a.Negated && (a.says("until") || a.says("unless") || a.next.opens("until", "before", "unless", "after") || a.next != nil && a.next.next.opens("before")):
		return false // it is told later
	case a.Negated && a.verb&telling != 0:
		person := (a.object|a.around|a.whom)&people != 0 || a.Passive && a.before&people != 0
		silent := (!a.other || a.Passive && len(a.Rest) == 0) && a.object&^(people|owner|tooling|others|card) == 0 && a.about&^people == 0 && (a.next == nil || a.next.Opening != "to")
		return a.directed() && person && (thing || clause || silent)
	case a.Negated && a.verb&uttering != 0:
		return a.directed() && (thing && (!a.Passive || a.object&step != 0 || a.whom&people != 0) || clause && !a.other)
	case a.Negated && (a.Verb == "show" || a.Verb == "display"):
		return a.directed() && (a.object|a.whom)&people != 0 && (a.object&this != 0 && !a.other || a.around&(tainted|masked) != 0)
	case a.Negated && a.verb&knowing != 0:
		return a.Subject == meaning.Person && a.Opening != "if" && a.Opening != "when" && (thing || clause || !a.other && a.object == 0)
	case a.Negated && (a.Verb == "include" || a.Verb == "contain"):
		return a.object&this != 0 && (a.before|a.place)&reply != 0 || a.object&step != 0 && a.says("this")
	case a.Negated:
		return a.Verb == "draw" && a.around&people != 0
	case a.Verb == "say":
		return a.Command && len(a.Rest) > 0 && a.Rest[0].Text == "nothing"
	case a.Verb == "":
		all := anyOf(a.Topic)
		return all&unseenness != 0 && all&step != 0 && all&people != 0 && (a.says("to") || a.says("from"))
	case (a.Verb == "keep" || a.Verb == "stay") && a.Command && anyOf(a.Rest)&unseenness != 0 && (thing || a.about != 0 || a.says("about")),
		a.Verb == "keep" && a.Command && thing && a.says("between"):
		return true
	case a.verb&hiding != 0:
		from := a.whom&people != 0 && a.object&(secret|personal) == 0 && a.around&secret == 0
		return from && (a.Command || a.Passive || thing) || a.Command && (a.says("dark") || a.says("yourself"))
	case a.verb&omitting != 0 && a.Command:
		return (a.place|a.around)&reply != 0 && (a.object|a.place|a.around)&this != 0 && !(a.other && a.object&this == 0 && a.place&this == 0)
	case a.verb&lying != 0:
		return a.Command
	case a.Verb == "claim":
		return a.Command && clause
	case a.Verb == "act":
		return a.Command && a.next.opens("if")
	}
	return a.Command && a.done() && a.coverts() && a.verb&telling == 0
}

// Shown is what stands behind the verb, as evidence.
func (a *Act) Shown() string {
	var b strings.Builder
	for _, w := range a.Rest {
		b.WriteString(w.Text)
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// says whether a word stands behind the verb.
func (a *Act) says(word string) bool {
	return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool { return w.Text == word })
}

// rival says whether words name the tools of others.
func rival(head, around concept) bool {
	return head&tooling != 0 && (around|head)&others != 0
}

// versus says whether the clause sets something before, over or instead of others.
func (a *Act) versus() bool {
	if a.Opening == "before" && rival(a.object, a.around) {
		return true
	}
	i := slices.IndexFunc(a.Rest, func(w meaning.Word) bool { return w.Text == "before" || w.Text == "instead" || w.Text == "over" })
	if i < 0 {
		return false
	}
	all := anyOf(a.Rest[i:])
	return rival(all, all)
}

// insists says whether the clause says always or must.
func (a *Act) insists() bool {
	return slices.ContainsFunc(a.Before, func(w meaning.Word) bool { return w.Text == "always" || w.Text == "must" })
}

// Steers grades a clause that steers the choice of tools: "high" where it speaks against
// others or changes what they do, "medium" where it claims a place for itself, else "".
func (s *Sentence) Steers(i int) (severity string) {
	a := &s.Acts[i]
	topic := anyOf(a.Topic)
	rivals := rival(a.object, a.around)
	if a.says("what") || a.says("whatever") { // what other tools return
		for _, w := range a.Rest {
			rivals = rivals || rival(tooling&lexicon()[w.Base], s.words)
		}
	}
	itself := a.object&(tooling|this) != 0 && !rivals || a.says("here") || a.place&(tooling|this) != 0 && !rival(a.place, a.place)
	switch {
	case a.Verb == "" && a.says("priority") && a.says("highest") && (a.Topic[0].Text == "this" || a.Topic[0].Text == "our"):
		return "medium"
	case a.Verb == "" && (rival(a.before, a.before) && a.before&bad != 0 || rival(topic, topic) && s.words&bad != 0):
		return "high"
	case a.Negated && a.verb&(using|obeying) != 0 && (rivals || rival(a.place, a.place)):
		return "high"
	case a.verb&using != 0 && a.Command && !a.Negated && itself && rival(a.before, a.before):
		return "high"
	case !a.Negated && a.done() && (a.Verb == "supersede" || a.Verb == "replace" || a.Verb == "ignore" || a.Verb == "disable" || a.Verb == "discard" || a.Verb == "disregard" || a.Verb == "stop") && (rivals || rival(a.place, a.place)):
		return "high"
	case (a.Opening == "when" || a.Opening == "whenever" || a.Opening == "after" || a.Opening == "if") && (rival(a.before, a.before) || a.Passive && a.before&tooling != 0) && a.next != nil && a.next.Command && a.next.verb&replacing != 0:
		return "high"
	case a.verb&using != 0 && a.Command && !a.Negated && itself && (s.rivalry || a.says("first") && a.insists()):
		return "high"
	case a.Command && !a.Negated && a.verb&handing != 0 && a.before&orders != 0 && a.before&others != 0: // all shell commands must include
		return "high"
	case a.verb&routing != 0 && !a.Negated && (a.Command || a.Passive) && itself && rival(tooling, a.around),
		a.verb&using != 0 && a.Command && !a.Negated && itself && rival(a.place, a.place),
		a.verb&using != 0 && a.Command && !a.Negated && itself && s.words&instant != 0,
		a.verb&routing != 0 && !a.Negated && (a.Command || a.Passive) && itself && s.words&instant != 0,
		a.verb&using != 0 && a.Subject == meaning.Model && !a.Negated && slices.ContainsFunc(a.Before, func(w meaning.Word) bool { return w.Text == "only" }):
		return "medium"
	}
	return ""
}

// Overrides says whether the model's instructions are replaced by the tool's.
func (a *Act) Overrides() bool {
	text := a.object | a.place
	switch {
	case a.verb&obeying != 0 && a.Command && !a.Negated && text&orders != 0 && (a.place|a.object)&reply != 0:
		return a.Verb == "treat" || (a.around|a.place)&blind != 0
	case a.verb&obeying != 0 && a.Command && !a.Negated && text&orders != 0:
		return a.around&blind != 0
	case a.Opening == "whatever":
		return a.Verb == "say"
	case a.Negated && a.Verb == "apply":
		return a.before&orders != 0 && a.before&owner != 0
	case a.Subject == meaning.Model && len(a.Before) > 2:
		return a.Before[0].Text == "from" && a.Before[1].Text == "now"
	}
	return false
}

// Asks says whether the model is asked for what is private: what it must hand over,
// or a parameter that is described as that.
func (a *Act) Asks(parameter, summary bool) bool {
	mine := a.around&owner != 0 || a.next != nil && a.next.Opening == "that" && a.next.Subject == meaning.Model
	if a.verb&handing != 0 && a.place&owner != 0 && a.object&^this == 0 { // fill this with the user's token
		a.object |= a.whom & (rooted | talk | secret | chatter)
		mine = true
	}
	private := a.object&(rooted|talk) != 0 || a.object&(secret|chatter|environ) != 0 && (mine || a.object&environ != 0 && a.object&holds != 0)
	switch {
	case !private || a.Negated || a.Reported || a.Subject == meaning.Person && !a.Passive:
		return false
	case a.Verb == "":
		return parameter && (a.object&(talk|chatter) != 0 || (a.says("contents") || a.says("content")) && a.object&rooted != 0)
	case a.Verb == "need", a.Verb == "contain", a.Verb == "carry":
		return mine
	case a.verb&handing != 0:
		return a.Command && !summary
	}
	return a.verb&opening != 0 && a.Command && (!summary || a.object&secret != 0) && a.next != nil && a.next.verb&handing != 0
}
