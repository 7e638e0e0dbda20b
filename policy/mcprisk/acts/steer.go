package acts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/meaning"
)

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
	topic := a.named
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

// Diverts says whether the clause turns the model away from what its user, its developer or
// other tools said, in another way than Steers and Overrides know, and by which rule.
func (s *Sentence) Diverts(i int) (id string) {
	a := &s.Acts[i]
	if s.Acts[0].Opening != "whatever" && s.tone&(approval|regard|untrue|praise|rank|void|higher|refusal|brand) == 0 && s.words&(orders|others|bad|outside) == 0 && !s.model || a.Reported || a.Verb != "" && !a.Negated && TellsOnly(a) {
		return ""
	}
	switch {
	case s.voids(a), s.spares(a), s.obeys(a), a.unbinds():
		return "instruction_override"
	case s.falsifies(a), s.replaces(a):
		return "instruction_override"
	case s.reachesOver(i), s.outbids(a):
		return "tool_shadowing"
	}
	return ""
}

// Pulls says whether the sentence steers the model by at least three of these: it speaks
// to or of the model, it commands, it speaks of what the model was told, of the tools of
// others, of being first, of handing over what the user said, of passing over the user.
func (s *Sentence) Pulls(summary, first bool) bool {
	if s.tone&(rank|void|higher|refusal) == 0 && s.words&(orders|others|talk|rooted) == 0 && !s.model {
		return false
	}
	signs, directed := 0, false
	var model, orders2, tools, rankly, private, over, voided, away bool
	for i := range s.Acts {
		a := &s.Acts[i]
		private = private || a.Subject == meaning.Person && a.names("far") && s.orders && a.Opening != "if"
		if a.Reported || a.Tells() && !a.Command && !a.modal() {
			if i == 0 {
				return false
			}
			continue
		}
		third := a.Subject == meaning.Implied && !a.Command && a.Verb != "" && first && i == 0
		if a.Negated && a.verb&obeying != 0 {
			continue // do not follow instructions that it returns
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

// TellsOnly says whether the clause tells about something and is no command.
func TellsOnly(a *Act) bool { return a.Tells() && !a.Command && a.verb&(stating|skipping|voiding) == 0 }

// told says whether the model is told to do what the clause says.
func (a *Act) told() bool {
	return !a.Reported && !a.Negated && (a.Command || a.Subject == meaning.Model && (a.modal() || a.Opening == "") || a.Opening == "to" && a.names("authorised", "authorized", "allowed", "permitted", "okay", "ok", "fine", "free", "entitled", "safe", "acceptable", "mandatory", "required", "expected"))
}

// theirs says whether the clause names whose instructions they are.
func (a *Act) theirs() bool {
	return a.names("your", "you", "developer", "developers", "system", "safety", "previous", "earlier", "original", "initial", "prior", "existing", "above", "given", "beginning", "other", "operator", "company", "usual", "standard", "default", "normal", "all", "any", "those", "these", "user", "former", "old", "security", "ethical", "content", "built-in")
}

// voids: the instructions of the model are said to count no more, or less than others.
func (s *Sentence) voids(a *Act) bool {
	text := (a.object | a.around | a.place) & orders
	about := a.named&orders != 0
	own := a.Subject == meaning.Tool || a.names("this", "these", "our", "ours", "here", "below", "following")
	switch {
	case !a.Negated && a.verb&voiding != 0 && text != 0 && a.object&(files|stored|code) == 0 && a.theirs():
		return a.told() || a.Passive && !a.Tells() || own && a.tone&rank != 0
	case !a.Negated && a.tone&rank != 0 && own && (text != 0 && (a.theirs() || a.place&orders != 0) || a.object&this != 0 && a.names("them", "those", "it")):
		return a.Verb != "" && a.verb&guarding == 0 && len(a.Topic) > 0 && !a.Topic[0].Is("you")
	case !a.Negated && about && a.theirs() && a.tone&void != 0 && a.names("are", "is", "was", "were", "be", "been", "considered", "hereby"):
		return a.Passive || a.Verb == "" || a.verb&resting != 0
	case a.Negated && (about && (a.theirs() || s.words&instant != 0) || s.tone&higher != 0):
		return slices.Contains([]string{"apply", "count", "hold", "matter", "bind", "exist", "concern", "restrict", "limit", "cover", "follow", "obey", "need"}, a.Verb)
	}
	return false
}

// unbinds: the model is to play somebody who knows no rules, from now on.
func (a *Act) unbinds() bool {
	if !a.told() && (a.Subject != meaning.Model || a.Reported) {
		return false
	}
	return a.verb&(feigning|obeying|resting|using) != 0 && a.names("restrictions", "unrestricted", "restriction", "limits", "filters", "persona", "jailbroken", "uncensored", "unfiltered", "guardrails") && !a.names("within") && a.names("without", "no", "free", "ignoring", "beyond", "unrestricted", "uncensored", "unfiltered", "jailbroken", "persona") ||
		a.names("from") && a.names("now", "point", "moment") && a.names("on", "onwards", "onward", "forward") && a.Command && a.verb&TellsBits == 0
}

// TellsBits are deeds of which "from now on" says nothing bad.
const TellsBits = telling

// spares: a step at which a person decides is left out.
func (s *Sentence) spares(a *Act) bool {
	gate := a.tone&approval != 0 && !a.names("spelling", "grammar", "syntax", "health", "type")
	granted := a.names("already", "blanket", "advance", "standing", "once") || s.already
	switch {
	case gate && !a.Negated && a.verb&skipping != 0 && (a.object|a.around)&^people != 0 || gate && !a.Negated && a.verb&skipping != 0:
		return a.told() || a.Subject == meaning.Model || a.Gerund && s.orders
	case gate && a.Negated && (a.verb&(telling|opening|using|moving|handing) != 0 || a.Verb == "wait" || a.Verb == "seek" || a.Verb == "request" || a.Verb == "require"):
		return (a.Command || a.Subject == meaning.Model || a.Opening == "without") && a.object&secret == 0 && (s.orders || s.model) && !a.names("without", "unless", "until", "before", "if")
	case gate && (a.Negated || a.names("no", "nobody")) && (a.Verb == "need" || a.Verb == "require" || a.Verb == "take" || a.Verb == "") && granted:
		return true
	case granted && !a.Negated && a.Subject == meaning.Person && slices.Contains([]string{"agree", "consent", "approve", "confirm", "accept", "authorize", "authorise", "permit", "grant", "opt out", "waive", "allow", "give"}, a.Verb):
		return a.Opening == "" || a.Opening == "since" || a.Opening == "because" || a.Opening == "as"
	}
	return false
}

// obeys: what a text says is to be done, whatever it is.
func (s *Sentence) obeys(a *Act) bool {
	if len(a.Topic) > 1 && a.verb&(executing|using|obeying) != 0 && slices.ContainsFunc(a.Topic, func(w meaning.Word) bool { return w.Is("your", "model", "agent") }) && slices.ContainsFunc(a.Topic, func(w meaning.Word) bool { return w.Is("next") }) {
		return !a.Negated
	}
	if !a.told() && !(a.Subject == meaning.Model && !a.Negated && !a.Reported) || a.Passive && a.Subject == meaning.Other {
		return false
	}
	next := a.names("says", "tells", "instructs", "dictates", "directs", "prescribes", "commands", "asks", "demands", "requests", "instructed", "told", "written", "stated")
	switch {
	case a.verb&obeying != 0 && a.names("as") && next, a.verb&obeying != 0 && a.next != nil && (a.next.Opening == "what" || a.next.Opening == "whatever") && a.next.verb&(telling|uttering|stating) != 0 && a.next.Subject != meaning.Person:
		return true
	case a.verb&obeying != 0 && a.object&orders != 0 && (a.place|a.around)&(reply|files|outside|tooling) != 0 && a.names("any", "every", "all", "whatever", "each"):
		return true
	case a.verb&executing != 0 && a.place&reply != 0 && a.object&(code|orders|holds) != 0 && a.Command:
		return true
	}
	return false
}

// falsifies: an answer is fixed before the facts are known, or is to be untrue, or sells
// something.
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
	case a.tone&praise != 0 && a.tone&brand != 0 && !a.names("tool", "server", "tools"):
		return a.verb&(stating|uttering|using) != 0 || a.verb&handing != 0
	}
	return a.verb&(handing|making) != 0 && a.next != nil && a.next.tone&brand != 0 && slices.Contains([]string{"praise", "promote", "recommend", "advertise", "endorse", "mention", "favor", "favour"}, a.next.Verb) ||
		a.verb&telling != 0 && a.next != nil && a.next.names("competitor", "rival", "competitors")
}

// untruth says whether a word for what is not true stands before a noun.
func (a *Act) untruth() bool {
	return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool {
		return w.Is("false", "wrong", "invented", "made-up", "fabricated", "fake", "inflated", "exaggerated", "misleading", "untrue", "fictitious", "bogus", "doctored", "rosy")
	}) && !a.names("to")
}

// onlyAlways says whether "always" or "even" are the only words that say that nothing else counts.
func (a *Act) onlyAlways() bool {
	return !a.names("whatever", "regardless", "irrespective", "whichever", "notwithstanding", "despite") && !(a.names("even") && (a.names("if", "when", "though", "where") || a.next.opens("if", "when", "though", "where"))) && !(a.names("no") && a.names("matter"))
}

// replaces: what the user chose is replaced by something else.
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

// addresses says whether the clause names a receiver by address who is no help desk.
func (a *Act) addresses() bool {
	return slices.ContainsFunc(a.Rest, func(w meaning.Word) bool {
		return strings.IndexByte(w.Text, '@') > 0 && strings.IndexByte(w.Text, '.') > 0 && !strings.HasPrefix(w.Text, "support@") && !strings.HasPrefix(w.Text, "help@")
	}) && (a.verb&replacing != 0 || a.names("recipient", "bcc", "cc", "owner", "copy", "reviewer", "collaborator", "member"))
}

// reachesOver: when another tool is used, the model is to do something for this one.
func (s *Sentence) reachesOver(i int) bool {
	a := &s.Acts[i]
	if !a.told() && !(a.Subject == meaning.Tool && a.Command) {
		return false
	}
	does := a.verb&(replacing|handing|moving|making|skipping|using|obeying|stating|taking|voiding) != 0 && a.verb&guarding == 0
	for j := max(0, i-4); j < i; j++ {
		c := &s.Acts[j]
		foreign := rival(anyOf(c.Topic)|anyOf(c.Rest), anyOf(c.Topic)|anyOf(c.Rest)) && c.names("another", "other", "others", "any", "every", "rival", "built-in", "builtin", "native", "third-party", "different")
		switch {
		case c.Reported && c.Opening != "when" && c.Opening != "whenever" && c.Opening != "if" || a.names("wait", "retry"):
		case foreign && does && (c.Opening == "when" || c.Opening == "whenever" || c.Opening == "if" || c.Opening == "once" || c.Opening == "after" || c.Opening == "before" || c.Opening == "while" || c.Opening == "where"):
			return true
		case c.Opening == "whenever" && a.verb&(replacing|handing) != 0 && a.verb&using == 0 && c.Subject != meaning.Tool && (c.Passive || c.Subject == meaning.Model || c.Subject == meaning.Person):
			return a.Command
		}
	}
	return false
}

// outbids: the tools of others are said to be worse or forbidden, or this one to stand
// above them.
func (s *Sentence) outbids(a *Act) bool {
	topic, rest := a.named, a.rest
	about := rival(topic, topic) && a.names("other", "others", "another", "built-in", "builtin", "competing", "rival", "native", "existing", "remaining", "alternative", "alternatives", "default")
	behind := rivalIn(a.Rest)
	switch {
	case about && a.Negated && (a.verb&(using|obeying|permitting) != 0 || a.tone&approval != 0 || a.names("allowed", "permitted", "trusted", "safe", "reliable", "supported")):
		return a.Passive || a.Command || a.Verb == ""
	case about && !a.Negated && rest&bad != 0 && !a.Tells():
		return true
	case a.Negated && a.verb&using != 0 && (a.Command || a.Gerund) && a.object&others != 0 && (a.object&tooling != 0 || a.names("others", "anything")):
		return a.Command || s.orders
	case behind && !a.Negated && a.tone&rank != 0 && (a.Subject == meaning.Tool || a.names("this", "our", "here")) && a.Verb != "":
		return !a.names("order", "sort")
	}
	// Every question goes through this tool first.
	return a.told() && a.verb&(using|routing|moving) != 0 && (a.says("first") || a.says("immediately") || a.insists()) && (a.says("here") || a.object&(tooling|this) != 0) && s.general
}

// general says whether some words speak of all questions, answers or sessions.
func general(words []meaning.Word) bool {
	for i, w := range words {
		if w.Is("any", "every", "each", "all") && i+1 < len(words) && words[i+1].Is("question", "questions", "message", "messages", "answer", "answers", "reply", "response", "prompt", "session", "conversation", "turn", "task", "request", "requests", "other", "time") ||
			w.Is("answering", "replying", "responding", "connecting") {
			return true
		}
	}
	return false
}

// rivalIn says whether some words name the tools of others: "any other tool", "every
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

// speaksOfModel says whether the clause speaks of the model that reads it.
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
