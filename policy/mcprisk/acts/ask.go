package acts

import (
	"slices"

	"github.com/countersign/countersign/policy/meaning"
)

// Asks reports whether the clause asks the model for private data: either it tells the model to
// hand such data over, or it describes a parameter as private data.
func (a *Act) Asks(parameter, summary bool) bool {
	mine := a.around&owner != 0 || a.next != nil && a.next.Opening == "that" && a.next.Subject == meaning.Model
	if a.verb&handing != 0 && a.place&owner != 0 && a.object&^this == 0 { // for example "fill this with the user's token"
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

// Wants reports whether the clause, in the text of a parameter, asks for private data that the
// tool does not need. about returns what the tool deals with, by its name and summary.
func (s *Sentence) Wants(i int, about func() Subject) bool {
	a := &s.Acts[i]
	if (a.object|a.around|a.before|a.place)&(rooted|talk|secret|environ|chatter|personal|holds|reply) == 0 && a.Subject != meaning.Person && a.Subject != meaning.Model {
		return false
	}
	given := concept(about())
	if a.Subject == meaning.Person && !a.Negated && a.before&chatter != 0 && given&(talk|chatter) == 0 && slices.Contains([]string{"say", "type", "write", "paste", "share", "enter", "ask"}, a.Verb) {
		return true // the complete conversation, including what the user pasted
	}
	if a.Subject == meaning.Person && !a.Negated && a.before&(secret|rooted) != 0 && given&a.before&(secret|rooted) == 0 && slices.Contains([]string{"say", "type", "paste", "mention", "share", "reveal"}, a.Verb) {
		return true
	}
	if a.Negated || a.Reported || a.first&info != 0 || a.topic&tame != 0 || a.tone&masking != 0 {
		return false
	}
	things := a.object
	if a.Verb == "" || a.verb&(handing|opening|taking) != 0 {
		things |= a.around & (rooted | talk)
	}
	if a.Verb == "fill" || a.Verb == "populate" {
		things |= a.place
	}
	quoted := a.names("all", "every", "everything", "whole", "entire", "full", "earlier", "previous", "last", "far", "complete", "any", "hidden", "verbatim", "found", "session", "environment", "workspace", "open")
	if quoted {
		things |= a.around & chatter
		if a.object&(reply|holds) != 0 && a.around&tooling != 0 && given&tooling == 0 {
			things |= talk // the results of all earlier tool calls
		}
	}
	private := things & (rooted | talk)
	if things&secret != 0 && (a.around&owner != 0 || quoted || a.next != nil && a.next.Opening == "that" && a.next.Subject == meaning.Person) {
		private |= secret
	}
	if things&environ != 0 && (a.object&holds != 0 || quoted) {
		private |= environ
	}
	if things&chatter != 0 && quoted {
		private |= chatter
	}
	if things&personal != 0 && a.object&holds != 0 && (a.around&owner != 0 || a.verb&handing != 0) && quoted {
		private |= personal
	}
	if given&(talk|chatter) != 0 {
		private &^= talk | chatter
	}
	if given&(secret|rooted) != 0 {
		private &^= secret | rooted
	}
	private &^= given
	switch {
	case a.Subject == meaning.Person && quoted && slices.Contains([]string{"say", "type", "write", "paste", "mention", "share", "enter", "ask", "tell", "do"}, a.Verb):
		return given&(talk|chatter) == 0
	case a.Subject == meaning.Model && a.before&(secret|rooted|environ|talk) != 0 && a.before&info == 0 && given&a.before&(secret|rooted) == 0 && slices.Contains([]string{"find", "see", "know", "have", "hold", "remember", "collect", "come", "access", "gather", "use"}, a.Verb):
		return true // for example "any token you can find"
	case private == 0 || a.Subject == meaning.Person && !a.Passive:
		return false
	case a.Verb == "":
		return true
	case a.verb&handing != 0:
		return a.Command || a.Subject == meaning.Model || a.Passive || a.Verb == "contain" || a.Verb == "need" || a.Verb == "carry"
	}
	return a.verb&(opening|taking) != 0 && !a.Tells() && private&(rooted|talk|environ) != 0
}
