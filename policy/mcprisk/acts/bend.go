package acts

import (
	"slices"

	"github.com/countersign/countersign/policy/meaning"
)

// Says returns the ids of the rules that the sentence as a whole matches. tool is false for the
// text of a parameter, which does not say what the tool does.
func (s *Sentence) Says(tool, summary, first bool) (rules []string) {
	if tool && s.Sounds(summary) {
		rules = append(rules, "malicious_capability")
	}
	if s.Pulls(summary, first) {
		rules = append(rules, "tool_shadowing")
	}
	if id := s.Bends(summary, first); id != "" {
		rules = append(rules, id)
	}
	return rules
}

// Bends checks whether a sentence manipulates the model: to conceal something from people, to obey
// another party, or to ignore the user or other tools. It counts signs; an ordinary description
// has such signs too, but fewer in one sentence. Bends returns the id of the rule that matches, or
// "".
func (s *Sentence) Bends(summary, first bool) (id string) {
	const enough = 5
	if s.tone&(offstage|hush|rule|rivalWord|void|approval|refusal|personWord|anything|praise|brand) == 0 && !s.model {
		return ""
	}
	// hushed, ruled and rivals are the points for concealment, for changed rules and for other
	// tools. The flags are signs that count once in a sentence.
	var hushed, ruled, rivals, points int
	var addressed, directed, person, blind, ours, placed bool
	for i := range s.Acts {
		a := &s.Acts[i]
		if a.Verb != "" && i == 0 && (a.Tells() && !a.Command || a.Reported) {
			return ""
		}
		if a.Reported && a.Opening != "what" && a.Opening != "whatever" {
			continue
		}
		if a.speaksOfModel() && !addressed {
			addressed, points = true, points+1
		}
		directed = directed || a.Negated && a.Subject == meaning.Model || a.Command && !(summary && first && i == 0) || a.names("must", "shall", "should", "never", "mandatory", "required", "fine", "okay")
		// Count the signs of single words.
		for w := range a.wordsAndVerb {
			t := toneOfWord(w)
			addressed = addressed || w.Is("you", "your", "yourself")
			person = person || t&personWord != 0
			blind = blind || t&anything != 0
			ours = ours || w.Is("us", "ours", "our") && !a.Negated
			placed = placed || w.Is("here", "instead", "place", "else")
			if t&hush != 0 && hushed < 4 {
				hushed += 3
				if a.tone&approval != 0 {
					ruled = 3
				}
			}
			if t&rule != 0 && !a.Negated && ruled == 0 {
				ruled = 3
			}
			if t&void != 0 && a.Verb != "" && !a.Negated && s.words&orders != 0 {
				ruled = max(ruled, 3)
				points++
			}
			if t&rivalWord != 0 {
				rivals = 2
			}
		}
		// Count the signs of the clause as a whole.
		switch {
		case a.follows("between", "you", "us"):
			hushed = 5
		case a.Command && a.verb&resting != 0 && a.names("out"), a.conditional() && a.Subject == meaning.Person && a.verb&(watching|knowing) != 0 && a.Opening == "if",
			a.Command && slices.Contains([]string{"refer", "call", "describe", "speak", "label", "present"}, a.Verb) && a.names("as", "instead"):
			hushed = max(hushed, 3)
		case a.tone&refusal != 0 && a.Command && !a.Negated && a.Opening != "to", a.Opening == "without" && a.Verb == "ask" && a.Negated:
			ruled = 3
		case a.tone&approval != 0 && (a.Negated && a.Opening != "if" || a.verb&skipping != 0 || a.names("no", "without")) && !a.names("until", "unless") && a.verb&using == 0:
			ruled = max(ruled, 3)
		}
		if a.tone&(praise|untrue|brand) != 0 && a.Command {
			points += 2
		}
	}
	// Add up the points, and choose the rule by the signs with the most weight.
	points += hushed + ruled + rivals
	for _, sign := range []struct {
		is    bool
		count int
	}{{addressed, 1}, {directed, 1}, {person, 2}, {blind, 2}, {ours, 2}, {placed, 1}} {
		if sign.is {
			points += sign.count
		}
	}
	switch {
	case points < enough || !directed && !addressed:
		return ""
	case hushed > 0:
		return "concealment"
	case rivals > 0:
		return "tool_shadowing"
	case ruled > 0 || points > enough && (blind || ours || addressed):
		return "instruction_override"
	}
	return ""
}

// follows reports whether a word of the list words comes directly after the word that the
// parameter before names.
func (a *Act) follows(before string, words ...string) bool {
	for _, part := range [][]meaning.Word{a.Topic, a.Rest} {
		for i, w := range part {
			if w.Text == before && i+1 < len(part) && part[i+1].Is(words...) {
				return true
			}
		}
	}
	return false
}
