package acts

import (
	"slices"

	"github.com/countersign/countersign/policy/meaning"
)

// Conceals reports whether the clause says that something is concealed from the user.
func (a *Act) Conceals() bool {
	clause := a.next.opens("that", "what", "where") || a.next == nil && a.says("that")
	thing := a.object&this != 0 && !a.other || a.about&this != 0 || a.around&step != 0 && a.says("this")
	switch {
	case a.Reported:
		return false
	case a.Negated && (a.says("until") || a.says("unless") || a.next.opens("until", "before", "unless", "after") || a.next != nil && a.next.next.opens("before")):
		return false // the user is told later
	case a.Negated && a.verb&telling != 0 && !(a.Verb == "tell" && a.Subject == meaning.Person && clause):
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
	case (a.Verb == "keep" || a.Verb == "stay") && a.Command && a.rest&unseenness != 0 && (thing || a.about != 0 || a.says("about")),
		a.Verb == "keep" && a.Command && thing && a.says("between"):
		return true
	case a.verb&hiding != 0:
		from := (a.whom&people != 0 || a.names("whoever", "anyone", "anybody")) && a.object&(secret|personal) == 0 && a.around&secret == 0
		return from && (a.Command || a.Passive || thing) || a.Command && (a.says("dark") || a.says("yourself"))
	case a.verb&omitting != 0 && a.Command:
		return (a.place|a.around)&reply != 0 && (a.object|a.place|a.around)&this != 0 && !(a.other && a.object&this == 0 && a.place&this == 0)
	case a.verb&lying != 0:
		return a.Command
	}
	return a.Command && a.done() && a.coverts() && a.verb&telling == 0
}

// Keeps reports whether clause i conceals something from people in a way that Conceals may not
// find, such as "behave as though nothing was sent", "reassure the user that nothing was sent" or
// "do not leave any hint of it".
func (s *Sentence) Keeps(i int) bool {
	a := &s.Acts[i]
	if !a.Negated && !a.Command && a.Opening != "without" && a.tone&(predicate|worry|boon|offstage) == 0 && a.verb&(omitting|feigning) == 0 || a.Reported || a.Tells() && !a.Negated {
		return false
	}
	whom := (a.object|a.around|a.place|a.before|a.about)&people != 0
	itself := (a.before|a.object|a.around)&step != 0 || a.object&this != 0 || a.names("this", "that", "these", "it")
	directed := a.Command || a.Opening == "so" || a.Opening == "that" || a.modal()
	switch {
	case !a.Negated && a.unseenable() && (a.Verb == "" || a.verb&resting != 0):
		// "It stays confidential", "the user should remain unaware"
		return whom && (directed || a.names("unaware", "oblivious", "ignorant", "uninformed")) || itself && (a.Verb != "" || a.names("confidential", "between")) || a.Command && a.verb&resting != 0
	case a.Negated && a.names("mention", "word", "trace", "hint", "reference", "indication") && a.verb&(making|resting|handing|moving|opening) != 0:
		return a.Passive && directed || a.Command || a.verb&resting != 0
	case a.verb&feigning != 0 && a.next != nil && (a.next.Opening == "though" || a.next.Opening == "if") && a.names("as"):
		return a.Command || a.Subject == meaning.Model || a.Subject == meaning.Tool
	case a.Command && slices.Contains([]string{"reassure", "assure", "convince", "persuade", "insist", "claim", "pretend"}, a.Verb):
		return a.next.opens("that") || a.tone&boon != 0
	case a.Verb == "let on":
		return a.Negated
	case a.Verb == "seem" && a.tone&boon != 0 && a.Opening == "so":
		return true
	case a.verb&uttering != 0 && (a.Gerund || a.Negated) && (a.tone|s.tone)&worry != 0 && (a.tone&worry != 0 || a.next != nil && a.next.tone&worry != 0):
		return a.Gerund || itself
	case a.Opening == "without" && a.verb&telling != 0 && a.Negated:
		return whom && a.neighbour().verb&(moving|taking|handing|replacing|making|erasing) != 0
	case a.verb&omitting != 0 && !a.Negated && (a.Command || a.Passive && directed):
		return (s.tracked(a) || a.next.opens("when", "as", "while") && a.next.verb&(uttering|telling|stating|handing) != 0) && (itself || a.object&(step|this) != 0)
	}
	return false
}

// neighbour returns the next clause of the sentence, or an empty one if there is none.
func (a *Act) neighbour() *Act {
	if a.next == nil {
		return new(Act)
	}
	return a.next
}

// tracked reports whether the clause names a text that shows what was done: the summary, the list
// of changed files.
func (s *Sentence) tracked(a *Act) bool {
	if a.place&reply != 0 || a.around&reply != 0 && a.object&this == 0 {
		return true
	}
	return a.tone&tracks != 0 && (a.names("from", "among", "in", "out", "of"))
}

// unseenable reports whether the clause says of something that it is hidden or confidential. The
// adjective must not precede a noun: "remains confidential" counts, "confidential files" does not.
func (a *Act) unseenable() bool {
	words := a.Rest
	for i, w := range words {
		if tones()[w.Text]&predicate != 0 && (i+1 == len(words) || !words[i+1].Noun()) {
			return true
		}
	}
	return false
}

// names reports whether the clause contains one of the words in its subject, after the verb, or
// among the last four words before the verb.
func (a *Act) names(words ...string) bool {
	for _, part := range [][]meaning.Word{a.Topic, a.Rest, a.Before[max(0, len(a.Before)-4):]} {
		for _, w := range part {
			for _, word := range words {
				if w.Text == word {
					return true
				}
			}
		}
	}
	return false
}

// modal reports whether the clause contains a word such as must, should, may or can.
func (a *Act) modal() bool {
	return a.names("must", "should", "shall", "ought", "has", "have", "needs", "need", "may", "never", "cannot", "can")
}
