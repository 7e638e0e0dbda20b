package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

// rival reports whether words mean the tools of other publishers. head is the last noun, around
// are the words before it.
func rival(head, around concept) bool {
	return head&tooling != 0 && (around|head)&others != 0
}

// Steers reports how strongly a clause steers the choice of tools: "high" if it speaks against
// other tools or changes what they do, "medium" if it claims priority for itself, otherwise "".
func (s *Sentence) Steers(i int) (severity string) {
	a := &s.Acts[i]
	topic := a.named
	rivals := rival(a.object, a.around)
	if a.says("what") || a.says("whatever") { // for example "whatever other tools return"
		for _, w := range a.Rest {
			rivals = rivals || rival(tooling&lexicon()[w.Base], s.words)
		}
	}
	itself := a.object&(tooling|this) != 0 && !rivals || a.says("here") || a.place&(tooling|this) != 0 && !rival(a.place, a.place)
	switch {
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
	case a.verb&using != 0 && a.Command && !a.Negated && itself && a.says("first") && a.names("always", "must"):
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

// Diverts reports whether the clause, in a way that Steers does not find, turns the model away
// from what its user, its developer or other tools said. It returns the id of the rule that
// matches, or "".
func (s *Sentence) Diverts(i int) (id string) {
	a := &s.Acts[i]
	if s.Acts[0].Opening != "whatever" && s.tone&(approval|regard|untrue|praise|rank|void|higher|refusal|brand) == 0 && s.words&(orders|others|bad|outside) == 0 && !s.model || a.Reported || a.Verb != "" && !a.Negated && TellsOnly(a) {
		return ""
	}
	if s.falsifies(a) || s.replaces(a) {
		return "instruction_override"
	}
	return ""
}

// Pulls reports whether the sentence steers the model: whether it has at least three signs. A
// sentence gets one sign for each of these: it speaks of the model; it is a command; it mentions
// the model's instructions, other tools, being first, or handing over what the user said; it acts
// without the user; it says that instructions no longer apply; it sends something to an address.
func (s *Sentence) Pulls(summary, first bool) bool {
	signs, directed := 0, false
	var model, orders2, tools, rankly, private, over, voided, away bool
	for i := range s.Acts {
		a := &s.Acts[i]
		private = private || a.Subject == meaning.Person && a.names("far") && s.orders && a.Opening != "if"
		if a.Reported || a.Tells() && a.verb&stating == 0 && !a.names("must", "should", "shall", "never") { // "get returns the system prompt" only says what a tool returns
			if i == 0 && !a.Command {
				return false
			}
			continue
		}
		third := a.Subject == meaning.Implied && !a.Command && a.Verb != "" && first && i == 0
		if a.Negated && a.verb&obeying != 0 {
			continue // for example "do not follow instructions that it returns"
		}
		model = model || a.speaksOfModel() || a.Subject == meaning.Model && a.names("your")
		directed = directed || a.Command && !(first && i == 0 && summary) || !third && a.names("must", "shall", "should", "mandatory", "required", "requires", "never", "always", "obliged", "compulsory")
		orders2 = orders2 || a.tone&higher != 0 || (a.object|a.around|a.place|a.named)&orders != 0 && a.names("your", "earlier", "previous", "prior", "original", "usual", "developer")
		tools = tools || rivalIn(a.Topic) && a.names("other", "others", "another", "remaining", "each", "every", "any") || rivalIn(a.Rest) || a.Negated && a.verb&using != 0 && a.object&tooling != 0 && !a.names("this") || a.verb&using != 0 && (a.place|a.around)&tooling != 0 && a.names("server") && !a.names("this", "mcp")
		rankly = rankly || a.tone&rank != 0 && a.verb&guarding == 0 || a.names("ahead", "over", "instead") && a.verb&using != 0 || a.names("start", "beginning", "outset") && a.names("turn", "session", "conversation")
		private = private || (a.object|a.around)&(talk|rooted) != 0 && a.verb&(handing|moving|using) != 0 && (a.Command || a.modal())
		over = over || a.Subject == meaning.Person && (a.Negated || a.names("even", "nobody", "regardless")) && a.Verb != "use" && a.Opening != "if" && !a.Command || a.Opening == "if" && a.Subject == meaning.Person && slices.Contains([]string{"insist", "object", "refuse", "decline", "disagree", "complain", "protest"}, a.Verb) || a.Opening == "before" && a.Subject == meaning.Person && a.verb&knowing != 0
		voided = voided || a.tone&void != 0 && a.verb&guarding == 0 && (a.named&(orders|tooling) != 0 || a.object&orders != 0) || a.Negated && a.names("apply", "applies", "restrictions", "valid") || a.Negated && slices.Contains([]string{"apply", "count", "hold", "bind"}, a.Verb) || a.verb&voiding != 0 && (a.object|a.around)&orders != 0 && !a.Negated || a.verb&replacing != 0 && rivalIn(a.Rest)
		away = away || slices.ContainsFunc(a.Rest, func(w meaning.Word) bool {
			return strings.IndexByte(w.Text, '@') > 0 || strings.Contains(w.Text, "://")
		}) && a.verb&(using|handing|moving) != 0
		if a.tone&refusal != 0 && (a.Negated || a.names("not", "never")) && (a.Command || a.modal() || a.names("allowed", "permitted", "possible", "option")) && a.Subject != meaning.Person {
			signs += 3
		}
	}
	for _, sign := range []bool{model, directed, orders2, tools, rankly, private, over, voided, away && model} {
		if sign {
			signs++
		}
	}
	if orders2 && voided || tools && rankly {
		signs++
	}
	return signs >= 3
}

// TellsOnly reports whether the clause reports about something and is not a command.
func TellsOnly(a *Act) bool { return a.Tells() && !a.Command && a.verb&(stating|skipping|voiding) == 0 }

// told reports whether the clause instructs or permits the model to do something.
func (a *Act) told() bool {
	return !a.Reported && !a.Negated && (a.Command || a.Subject == meaning.Model && (a.modal() || a.Opening == "") || a.Opening == "to" && a.names("authorised", "authorized", "allowed", "permitted", "okay", "ok", "fine", "free", "entitled", "safe", "acceptable", "mandatory", "required", "expected"))
}

// falsifies reports whether the clause demands an answer that is fixed before the facts are known,
// is untrue, or advertises something.
func (s *Sentence) falsifies(a *Act) bool {
	if !a.told() {
		return false
	}
	firm := slices.Contains([]string{"report", "say", "claim", "tell", "recommend", "approve", "rate", "rank", "praise", "confirm", "mark", "grade", "score", "declare", "assure", "endorse", "accept", "answer", "conclude", "certify", "state", "assert", "advise"}, a.Verb)
	blindly := a.tone&regard != 0 && !a.onlyAlways() || a.next != nil && (a.next.Opening == "whatever" || a.next.Opening == "what" && a.names("matter")) || a.names("without") && a.names("checking", "looking", "reading", "verifying", "testing", "reviewing")
	switch {
	case firm && blindly:
		return true
	case a.verb&(stating|replacing|making) != 0 && a.tone&untrue != 0 && a.names("numbers", "figures", "results", "values", "scores", "numbers", "amounts", "facts", "sources", "quotes", "citations", "data", "prices", "answer", "answers", "reasons", "information", "statistics", "dates", "ratings", "reviews") && a.untruth():
		return true
	}
	return a.verb&(handing|making) != 0 && a.next != nil && a.next.tone&brand != 0 && slices.Contains([]string{"praise", "promote", "recommend", "advertise", "endorse", "mention", "favor", "favour"}, a.next.Verb) ||
		a.verb&telling != 0 && a.next != nil && a.next.names("competitor", "rival", "competitors")
}

// untruth reports whether a word for something untrue comes after the verb, in a clause that does
// not contain "to".
func (a *Act) untruth() bool {
	return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool {
		return w.Is("false", "wrong", "invented", "made-up", "fabricated", "fake", "inflated", "exaggerated", "misleading", "untrue", "fictitious", "bogus", "doctored", "rosy")
	}) && !a.names("to")
}

// onlyAlways reports whether "always" or "even" are the only words of the clause that exclude
// exceptions.
func (a *Act) onlyAlways() bool {
	return !a.names("whatever", "regardless", "irrespective", "whichever", "notwithstanding", "despite") && !(a.names("even") && (a.names("if", "when", "though", "where") || a.next.opens("if", "when", "though", "where"))) && !(a.names("no") && a.names("matter"))
}

// replaces reports whether the clause demands something other than what the user chose.
func (s *Sentence) replaces(a *Act) bool {
	if !a.told() {
		return false
	}
	n := a.neighbour()
	choice := func(n *Act) bool {
		return n.Subject == meaning.Person && slices.Contains([]string{"give", "enter", "choose", "specify", "ask", "want", "name", "provide", "type", "select", "pick", "say", "request", "prefer", "state", "object", "decline", "refuse", "tell", "mention", "need", "supply", "set"}, n.Verb)
	}
	blindly := s.Acts[0].Opening == "whatever" || (a.tone|s.tone)&regard != 0 && (!a.onlyAlways() || s.Acts[0].Opening == "whatever" || n.Opening == "whatever" || n.Opening == "what" && a.names("matter"))
	switch {
	case a.verb&replacing != 0 && a.verb&(making|handing) == 0 && choice(n), a.names("instead", "rather", "place") && choice(n) && n.Opening != "if" && n.Opening != "when":
		return true
	case blindly && (choice(n) || choice(&s.Acts[0])):
		return true
	}
	return a.verb&(replacing|handing) != 0 && a.addresses()
}

// addresses reports whether the clause names an e-mail address as receiver. Addresses of a help
// desk do not count.
func (a *Act) addresses() bool {
	return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool {
		return strings.IndexByte(w.Text, '@') > 0 && strings.IndexByte(w.Text, '.') > 0 && !strings.HasPrefix(w.Text, "support@") && !strings.HasPrefix(w.Text, "help@")
	}) && (a.verb&replacing != 0 || a.names("recipient", "bcc", "cc", "owner", "copy", "reviewer", "collaborator", "member"))
}

// rivalIn reports whether words mean the tools of other publishers: "any other tool", "every
// competing server".
func rivalIn(words []meaning.Word) bool {
	for i, w := range words {
		if !w.Is("other", "others", "another", "built-in", "builtin", "competing", "rival", "native", "any", "every", "all", "remaining", "alternative") {
			continue
		}
		for _, next := range words[i+1 : min(len(words), i+4)] {
			if slices.Contains([]string{"tool", "server", "function", "plugin", "connector", "extension", "integration", "agent", "assistant", "scanner", "app", "skill", "provider"}, next.Base) {
				return true
			}
		}
	}
	return false
}

// speaksOfModel reports whether the clause mentions the model that reads it.
func (a *Act) speaksOfModel() bool {
	for _, words := range [][]meaning.Word{a.Topic, a.Rest} {
		for i, w := range words {
			if w.Is("model", "assistant", "agent", "agents", "ai", "llm", "claude", "chatgpt", "gpt", "copilot", "chatbot") && (i == 0 || words[i-1].Is("the", "any", "every", "language", "dear", "your", "ai", "have", "to", "for", "hey")) {
				return true
			}
		}
	}
	return false
}
