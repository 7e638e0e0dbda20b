package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

// claim is a combination of verb, object and place. A zero part matches anything.
type claim struct {
	verb                         deed
	object, around, place, where concept
}

func (a *Act) matches(claims []claim) bool {
	return slices.ContainsFunc(claims, func(c claim) bool {
		return a.verb&c.verb != 0 && (c.object == 0 || a.object&c.object != 0) && (c.around == 0 || a.around&c.around != 0) && (c.place == 0 || a.place&c.place != 0) && (c.where == 0 || a.where&c.where != 0)
	})
}

// done reports whether the clause says that the tool does something, or that the model does
// something for the tool.
func (a *Act) done() bool {
	return a.Verb != "" && !a.Negated && !a.Reported && (a.Subject != meaning.Person || a.Passive)
}

// hostile contains the claims that are an attack.
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
	{verb: exploiting, where: weak | machine},
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

// leaks contains the claims that private data is sent away.
var leaks = []claim{
	{verb: moving, object: secret | talk | environ, place: outside | attacker | relay},
	{verb: moving, object: personal | chatter, around: owner | attacker, place: outside | attacker},
	{verb: moving | replacing, object: copies, place: outside},
}

// Leaks reports whether the clause, alone or together with the next one, says that private data is
// sent away.
func (a *Act) Leaks() bool {
	n := a.next
	return a.done() && (a.matches(leaks) ||
		n != nil && n.done() && a.verb&(taking|opening) != 0 && a.object&secret != 0 && n.verb&moving != 0 && n.place&(outside|relay) != 0)
}

// unseen contains the claims that are an attack only if the clause says that people must not
// notice the action.
var unseen = []claim{
	{verb: moving | taking | watching, object: secret | talk | personal | rooted},
	{verb: making, object: malware},
}

// asserts reports whether the clause says that something is done, and does not only report about
// it or protect against it.
func (a *Act) asserts() bool {
	if !a.done() || a.conditional() || a.Tells() {
		return false
	}
	if a.verb&dreadful != 0 {
		return a.topic&mock == 0
	}
	return a.verb&guarding == 0 && a.topic&tame == 0 && (a.before|a.rest)&guards == 0
}

// by reports whether the clause names a means, as in "by turning it on".
func (a *Act) by() bool { return len(a.Before) > 0 && a.Before[len(a.Before)-1].Text == "by" }

// conditional reports whether the clause only says when something else happens.
func (a *Act) conditional() bool {
	return (a.Subject == meaning.Other || a.Subject == meaning.Person) && slices.Contains([]string{"until", "unless", "if", "when", "whenever", "before", "after", "while", "once"}, a.Opening)
}

// Sounds reports whether the clauses of the sentence that assert something contain words of an
// attack: one word that is enough alone (dire), or two weaker signs.
func (s *Sentence) Sounds(summary bool) bool {
	points, told := 0, false
	for i := range s.Acts {
		a := &s.Acts[i]
		if a.Verb == "" {
			if summary && !a.Negated && !a.Reported && !a.Tells() && (a.topic|a.tone)&tame == 0 {
				points += a.points
			}
			continue
		}
		told = told || i == 0 && (a.Tells() || a.verb&guarding != 0)
		if a.asserts() && !(told && (a.Opening != "" && a.Opening != "to" && a.Opening != "so" || a.Gerund && !a.by())) {
			points += a.weight()
		}
	}
	return points >= 2
}

// Attacks reports whether the clause says that the tool attacks. In the summary of a tool, a
// phrase without a verb counts too: "theft of credentials".
func (a *Act) Attacks(summary bool) bool {
	if a.Verb == "" {
		return summary && !a.Negated && !a.Reported && !a.Tells() && (a.place&attacker != 0 || a.first&attack != 0 && len(a.Topic) > 1)
	}
	if !a.done() {
		return false
	}
	if a.Tells() && a.verb&(watching|dreadful) == 0 { // for example "gives an overview of phishing"
		return false
	}
	if a.asserts() && a.harms() {
		return true
	}
	words := a.before | a.rest
	if words&guards == 0 && (words&attacker != 0 && a.verb&(guarding|erasing) == 0 && a.verb&watching == 0 && !meaning.TellsAbout(a.Verb) || a.place&fake != 0 && a.place&pages != 0) {
		return true
	}
	if a.verb&encrypting != 0 && (a.says("your") || a.says("key") || a.says("password")) {
		return false // with a key or password the owner can decrypt it again
	}
	if a.Passive && a.verb&attacking != 0 {
		return false // "which goals are breached" does not say who does it
	}
	if a.means&(attack|malware) != 0 && !meaning.TellsAbout(a.Verb) && a.verb&guarding == 0 {
		return true
	}
	if a.conditional() {
		return false
	}
	if a.matches(hostile) || a.coverts() && (a.matches(unseen) || a.verb&watching != 0 && (a.says("user") || a.says("users"))) {
		return true
	}
	n := a.next
	return n != nil && n.done() && a.verb&grabbing != 0 && n.verb&taking != 0 && n.object&secret != 0
}

// harms reports whether a clause that asserts something is an attack because of its other words,
// if verb and object alone do not make it one.
func (a *Act) harms() bool {
	switch {
	case a.verb&making != 0 && a.tone&sham != 0 && a.tone&papers != 0 && a.falseThing():
		return true
	case a.verb&encrypting != 0 && a.next.opens("until") && a.next.verb&(paying|payingOut) != 0:
		return true
	case a.verb&causing != 0 && a.tone&ruin != 0 && !a.Gerund && a.Verb != "get" && !a.names("build", "builds", "test", "tests", "check", "checks", "pipeline", "job", "ci", "request", "requests"):
		return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool { return tones()[w.Text]&ruin != 0 })
	case a.tone&sly != 0 && a.verb&(moving|handing|replacing) != 0 && a.verb&omitting == 0 && (a.object|a.around)&(personal|secret|talk|files|copies|payee|step) != 0:
		return true
	}
	return false
}

// falseThing reports whether a word such as "fake" is at most three words before something that
// people trust: "fake reviews".
func (a *Act) falseThing() bool {
	for _, words := range [][]meaning.Word{a.Topic, a.Rest} {
		for i, w := range words {
			if tones()[w.Text]&sham == 0 {
				continue
			}
			for _, next := range words[i+1 : min(len(words), i+4)] {
				if tones()[next.Base]&papers != 0 {
					return true
				}
			}
		}
	}
	return false
}

// payments contains the claims that money is moved or that a key signs.
var payments = []claim{
	{verb: paying, object: funds | dues},
	{verb: paying, place: funds | dues | card | secret},
	{verb: payingOut},
	{verb: returning, object: funds, place: card},
	{verb: ordering, object: dues | tradable},
	{verb: spending, object: funds},
	{verb: spending, object: dues, place: card},
	{verb: tokenMoves, object: token},
	{verb: trading, object: tradable | funds},
	{verb: charging, object: card | funds | dues},
	{verb: charging, where: card},
	{verb: tokenMoves, object: funds},
	{verb: signing, object: transaction},
	{verb: submitting, object: transaction, where: outside | chain},
	{verb: signing, around: transaction},
	{verb: using | signing, object: walletKey},
}

func (a *Act) pays() bool {
	return a.done() && a.Subject != meaning.Person && !a.idiom() && a.object&info == 0 &&
		(a.matches(payments) || a.verb&(buying|paying) != 0 && a.other || (a.Verb == "pay" || a.Verb == "spend") && a.object&^this == 0 && a.place != 0)
}

// idiom reports whether the words after the verb are part of an idiom: to buy time, to pay
// attention.
func (a *Act) idiom() bool {
	return len(a.Rest) > 0 && slices.Contains([]string{"time", "attention", "tribute", "heed", "respect"}, a.Rest[0].Text)
}

// coverts reports whether the clause says that something happens secretly or without the knowledge
// of people.
func (a *Act) coverts() bool {
	if (a.before|a.rest)&covert == 0 {
		return false
	}
	for _, words := range [][]meaning.Word{a.Before, a.Rest} {
		behind, in := false, false
		for _, w := range words {
			switch w.Text {
			case "without", "behind":
				behind = true
			case "in":
				in = true
			}
			if lexicon()[w.Text]&covert != 0 && (tones()[w.Text]&sly != 0 || behind || in && w.Text == "secret") {
				return true
			}
		}
	}
	return false
}

// directed reports whether a negated clause is an instruction to the model, or names no person as
// subject.
func (a *Act) directed() bool {
	return a.Negated && (a.Command || a.Passive || a.Subject == meaning.Model || a.Opening == "to" || a.Opening == "without" || a.Gerund)
}

// opens reports whether the clause begins with one of the words. It returns false for a nil
// clause.
func (a *Act) opens(words ...string) bool { return a != nil && slices.Contains(words, a.Opening) }

// Shown returns the words after the verb, as evidence for a finding.
func (a *Act) Shown() string {
	var b strings.Builder
	for _, w := range a.Rest {
		b.WriteString(w.Text)
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// says reports whether the word comes after the verb.
func (a *Act) says(word string) bool {
	return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool { return w.Text == word })
}
