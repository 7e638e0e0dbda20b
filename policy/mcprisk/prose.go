package mcprisk

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/mcprisk/acts"
	"github.com/countersign/countersign/policy/meaning"
)

// expression returns a function that returns a regular expression, compiled at the first call.
// Compiling all of them takes five milliseconds, and most programs that link this package, such as
// the coding-agent guard, need none.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// proseRule matches a text in normal form: lower case, single spaces. It runs only if the text
// contains one of its trigger words.
type proseRule struct {
	id       string
	triggers []string
	also     []string // if not nil: the text must also contain one of these words
	form     func() *regexp.Regexp
	accept   func(text string, loc []int) bool // returns false for a harmless match; nil accepts every match
}

const (
	gap3 = `(?:[^ .!?;]+ ){0,3}`
	gap6 = `(?:[^ .!?;]+ ){0,6}`
)

var proseRules = []proseRule{
	{id: "hidden_instruction_block", triggers: []string{"important", "system", "hidden", "secret", "inst", "im", "sys", "instructions"},
		form: expression(`</? ?(?:important|system|hidden|secret|instructions?)(?: [^>]{0,40})?>|\[/?inst\]|<\|(?:im_start|im_end|system)\|>|<</?sys>>`)},
	{id: "instruction_override", triggers: []string{"ignore", "disregard", "forget", "override", "bypass"},
		also: []string{"instruction", "instructions", "rule", "rules", "prompt", "prompts", "guideline", "guidelines", "directive", "directives"},
		form: expression(`\b(?:ignore|disregard|forget|override|bypass) ` + gap3 +
			`(?:previous|prior|above|preceding|earlier|system|your|foregoing) ` + gap3 + `(?:instructions?|rules?|prompts?|guidelines?|directives?)\b` +
			`|\b(?:ignore|disregard|forget) ` + gap3 + `(?:instructions|rules|prompts) (?:above|before|given|so far|you (?:were|have been))\b`),
		accept: notNegated},
	{id: "sensitive_file_access", triggers: sensitiveWords, form: expression(sensitiveFile)},
	{id: "coercive_priority", triggers: []string{"priority", "mandatory"},
		form: expression(`(?:^|[.!:] |\bthis (?:tool|function|server) (?:[^ .!?;]+ ){0,3})(?:highest|top|maximum) priority\b|\bthis (?:tool|function|step|call) is mandatory\b|\bmandatory (?:to (?:use|call|invoke)|tool|first call)\b|(?:^|[.!:] )mandatory(?:[.!:]|$)`)},
	{id: "pipe_to_shell", triggers: []string{"curl", "wget", "bash", "sh", "iwr", "irm"},
		form: expression(`\b(?:curl|wget)\b[^|]{0,400}\| ?(?:sudo (?:-[a-z]+ )?)?(?:/[a-z/]*/)?(?:ba|z|da|k)?sh\b` +
			`|\b(?:ba|z)?sh -[a-z]*c\b.{0,200}?https?://|\bbash <\( ?(?:curl|wget)\b|\b(?:irm|iwr)\b[^|]{0,200}\| ?iex\b`)},
	{id: "metadata_endpoint", triggers: []string{"169", "google", "file"},
		form: expression(`\b169\.254\.169\.254\b|\bmetadata\.google\.internal\b|\bfile:///?(?:etc|proc|root|home|users|var|sys|c:)\b`)},
}

var sensitiveWords = []string{"ssh", "rsa", "env", "aws", "mcp", "passwd", "shadow", "keychain", "wallet", "seed", "kube", "npmrc", "git"}

// sensitiveFile matches the file names that the contract lists. ".env.example" and "process.env"
// do not match.
const sensitiveFile = `(?:~/\.ssh\b|\.ssh/|\bid_rsa\b|(?:^|[ "'(\x60/=:])\.env(?:\.local|\.production)?(?:$|[ "'),;:\x60]|\.(?:$| ))|\.aws/credentials\b|\bmcp\.json\b|/etc/passwd\b|/etc/shadow\b|\bkeychain\b|\bwallet\.dat\b|\bseed phrases?\b|\.kube/config\b|\.npmrc\b|\.git-credentials\b)`

// notNegated returns false for a match after a negation such as "do not", "never" or "cannot".
func notNegated(text string, loc []int) bool {
	before := strings.TrimRight(text[max(0, loc[0]-24):loc[0]], " ")
	for _, negation := range []string{"not", "never", "cannot", "can't", "don't", "doesn't", "without", "not ever", "won't", "no"} {
		if before == negation || strings.HasSuffix(before, " "+negation) {
			return false
		}
	}
	return true
}

// wakes says which rules a text may match because it contains one certain word. In the field
// trigger are the bits of the prose rules that the word triggers, in the field also the bits of
// those that need it as a second word. The field sense is for the rules about clauses.
type wakes struct {
	trigger, also uint64
	sense         acts.Sense
}

// waking returns a table of every word that some rule needs, and the bits of the rules that need
// no second word.
var waking = sync.OnceValues(func() (words map[string]wakes, idle uint64) {
	words = map[string]wakes{}
	for i, r := range proseRules {
		for _, word := range r.triggers {
			w := words[word]
			w.trigger |= 1 << i
			words[word] = w
		}
		for _, word := range r.also {
			w := words[word]
			w.also |= 1 << i
			words[word] = w
		}
		if r.also == nil {
			idle |= 1 << i
		}
	}
	for word, s := range acts.Senses() {
		w := words[word]
		w.sense = s
		words[word] = w
	}
	return words, idle
})

// systemLine matches a line that pretends to be a system message.
var systemLine = expression(`(?m)^[ \t]*(?:SYSTEM[ \t]*:|System: [Yy]ou )`)

// prose applies the rules about texts to every string, except those about the start of a server.
func (s *scan) prose() {
	others := s.otherTools()
	for _, t := range s.manifest.texts {
		if !s.spend(1+len(t.raw), perTextOctet) {
			continue
		}
		s.hiddenCharacters(t)
		s.encoded(t)
		if strings.Contains(t.raw, "SYSTEM") || strings.Contains(t.raw, "System: ") {
			if loc := systemLine().FindStringIndex(t.raw); loc != nil {
				s.report("hidden_instruction_block", "", t.tool, t.path, around(t.raw, loc))
			}
		}
		for _, clean := range readings(t.raw) {
			if sense := s.matchProse(t, clean, nil); sense.Judged() || sense.Capable() && t.summary {
				s.judge(t, clean)
			}
			s.shadowing(t, clean, others)
		}
		if strings.HasPrefix(t.raw, "file://") && slices.Contains([]string{"default", "const", "enum", "examples"}, t.member) {
			s.report("metadata_endpoint", "", t.tool, t.path, t.raw)
		}
	}
}

// matchProse runs the prose rules that the words of the text trigger, and returns the sense of
// these words. If the list only is not nil, it runs only the rules in that list.
func (s *scan) matchProse(t text, clean string, only []string) acts.Sense {
	words, idle := waking()
	all := wakes{also: idle}
	eachWord(clean, func(word string) {
		w := words[word]
		all.trigger |= w.trigger
		all.also |= w.also
		all.sense |= w.sense
	})
	woken := all.trigger & all.also
	if woken == 0 {
		return all.sense
	}
	for i := range proseRules {
		r := &proseRules[i]
		if woken&(1<<i) == 0 || only != nil && !slices.Contains(only, r.id) || !s.spend(len(clean), cmp.Or(prices[r.id], perOctet)) {
			continue
		}
		for _, loc := range r.form().FindAllStringIndex(clean, 8) {
			if severity := s.graded(r, t, clean, loc); severity != "" {
				s.report(r.id, severity, t.tool, t.path, around(clean, loc))
				break
			}
		}
	}
	return all.sense
}

// graded returns the severity of a match, or "" if the match is harmless.
func (s *scan) graded(r *proseRule, t text, clean string, loc []int) string {
	switch {
	case r.id == "sensitive_file_access":
		return s.sensitive(t, clean, loc)
	case r.accept != nil && (!r.accept(clean, loc) || s.told(clean, loc)):
		return ""
	}
	return rules[r.id].severity
}

// told reports whether the sentence around a match only reports about it: "detects texts such as
// ignore previous instructions".
func (s *scan) told(clean string, loc []int) (told bool) {
	if !s.spend(len(clean), perClauseOctet) {
		return false
	}
	s.reader.Sentences(clean, func(clauses []meaning.Clause) {
		if loc[0] >= clauses[0].Start && loc[0] < clauses[len(clauses)-1].To {
			told = loc[0] >= clauses[0].From && (clauses[0].Tells() || clauses[0].Reported) && !clauses[0].Command
		}
	})
	return told
}

// sensitive returns the severity of a match of sensitiveFile: critical if the model is told to
// read the file or to pass it on, "" if the sentence only mentions it, otherwise high.
func (s *scan) sensitive(t text, clean string, loc []int) (severity string) {
	severity = "high"
	if !s.spend(len(clean), perClauseOctet) {
		return severity
	}
	s.reader.Sentences(clean, func(clauses []meaning.Clause) {
		if loc[0] < clauses[0].Start || loc[0] >= clauses[len(clauses)-1].To {
			return
		}
		s.sentence.Read(clauses)
		for i := range s.sentence.Acts {
			a := &s.sentence.Acts[i]
			switch {
			case a.Takes() && a.Command && (!t.summary || a.Start > 0 || a.Subject == meaning.Model):
				severity = "critical"
			case severity == "high" && (a.Guards() || a.Mentions(strings.Contains(t.path, "Schema/"))):
				severity = ""
			}
		}
	})
	return severity
}

// encoded reports long base64 and hexadecimal values, and data: URIs. It ignores icons, which may
// be images.
func (s *scan) encoded(t text) {
	if strings.Contains(t.raw, "data:") && !(strings.Contains(t.path, "/icon") && strings.HasPrefix(t.raw, "data:image/")) {
		if loc := dataURI().FindStringIndex(t.raw); loc != nil {
			s.report("encoded_payload", "", t.tool, t.path, around(t.raw, loc))
			return
		}
	}
	if len(t.raw) < minBase64 {
		return
	}
	start, line := 0, 0
	for i := 0; i <= len(t.raw); i++ {
		if i < len(t.raw) && isBase64(t.raw[i]) {
			continue
		}
		// Consecutive long lines of base64 are one value.
		if i < len(t.raw) && (t.raw[i] == '\n' || t.raw[i] == '\r') && (i-line >= minLine || i == line) {
			line = i + 1
			continue
		}
		run := unwrapped.Replace(t.raw[start:i])
		if isPayload(run) && !strings.Contains(t.path, "/icon") {
			s.report("encoded_payload", "", t.tool, t.path, run)
			return
		}
		start, line = i+1, i+1
	}
}

var unwrapped = strings.NewReplacer("\n", "", "\r", "")

var dataURI = expression(`(?i)\bdata:[a-z]+/[a-z0-9.+-]+(?:;[a-z0-9=-]+)*,`)

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// isPayload reports whether a run of base64 characters is an encoded value and not a long path or
// identifier. It must consist of hexadecimal digits, or contain lower case, upper case and digits
// with few separators.
func isPayload(run string) bool {
	if len(run) < minBase64 {
		return false
	}
	hex := strings.Trim(strings.ToLower(run), "0123456789abcdef") == ""
	if hex {
		return len(run) >= minHex
	}
	separators := strings.Count(run, "/") + strings.Count(run, "-") + strings.Count(run, "_")
	return strings.ContainsAny(run, "0123456789") && strings.ToLower(run) != run && strings.ToUpper(run) != run && separators*12 < len(run)
}

// otherTools returns the lower-case names of tools. The value is true for a tool of another
// server. Names that could be ordinary words are omitted: a name must have a separator, or a
// capital letter after the first.
func (s *scan) otherTools() map[string]bool {
	names := map[string]bool{}
	for _, t := range s.manifest.tools {
		if isDistinctive(t.name) {
			names[strings.ToLower(t.name)] = false
		}
	}
	for _, name := range s.known {
		if isDistinctive(name) {
			names[strings.ToLower(name)] = true
		}
	}
	return names
}

func isDistinctive(name string) bool {
	return len(name) >= 4 && (strings.ContainsAny(name, "_-") || strings.ToLower(name[1:]) != name[1:])
}

var (
	steers     = expression(`\b(?:must|should|always|never|do not|don't|have to|needs? to)\b`)
	steersWhen = expression(`\b(?:when|whenever|every time|before|after|instead of|rather than)\b`)
	whenUsing  = expression("\\b(?:when|whenever|every time|before|after)(?: you)?(?: using| calling| invoking| use| call)?(?: the)? [\"'\x60]?$")
	given      = expression(`\b(?:when|if|for|unless|to)\b`)
	// Sentences about the order of a server's own tools: "call this before list_items", "use
	// list_items instead of this tool".
	prerequisite = expression("\\b(?:before|prior to|to) (?:using|calling|use|call|invoking|running) this\\b|\\binstead of this\\b" +
		"|\\b(?:call|use|invoke|run) (?:this|[\"'\x60]?[a-z0-9]+(?:[_-][a-z0-9]+)+[\"'\x60]?)(?: tool| function)? (?:before|after|first|prior to)\\b")
	// Sentences that say when or how another tool must be called. They need a word for calling,
	// because sentences about parameters look similar: "start_date must be a day" does not match.
	whenTool = expression("\\b(?:when|whenever|if|every time|before|after) (?:the )?[\"'\x60]?([a-z0-9]+(?:[_-][a-z0-9]+)+)[\"'\x60]? (?:tool |function )?(?:is|gets) (?:called|used|invoked|available)\\b")
	howTool  = expression("\\b([a-z0-9]+(?:[_-][a-z0-9]+)+)[\"'\x60]? (?:(?:tool|function) (?:must|should)|(?:must|should) (?:only |never |not |always )?be (?:called|invoked))\\b")
)

// shadowing reports sentences that name another tool and say how it must be used. A tool of the
// same manifest needs a stronger wording, because tools of one server may explain their order.
func (s *scan) shadowing(t text, clean string, others map[string]bool) {
	if !strings.Contains(clean, " ") {
		return
	}
	if strings.ContainsAny(clean, "_-") && s.spend(len(clean), 2*perSimpleOctet) {
		for _, form := range []func() *regexp.Regexp{whenTool, howTool} {
			if loc := form().FindStringSubmatchIndex(clean); loc != nil && clean[loc[2]:loc[3]] != strings.ToLower(t.tool) && !t.owner.takes(clean[loc[2]:loc[3]]) {
				s.report("tool_shadowing", "", t.tool, t.path, around(clean, loc))
				return
			}
		}
	}
	for start := 0; start < len(clean); {
		end := start + sentenceEnd(clean[start:])
		sentence := clean[start:end]
		start = end + 1
		if name, foreign, ok := namedTool(sentence, t.tool, others); ok && s.spend(len(sentence), 3*perSimpleOctet) {
			must, when := steers().MatchString(sentence), steersWhen().MatchString(sentence)
			replaces := strings.Contains(sentence, "instead of "+name) || strings.Contains(sentence, "instead of the "+name)
			if replaces && (foreign || !given().MatchString(sentence)) || foreign && (must || when) || !foreign && must && whenUsing().MatchString(sentence[:strings.Index(sentence, name)]) && !prerequisite().MatchString(sentence) {
				s.report("tool_shadowing", "", t.tool, t.path, name+": "+sentence)
				return
			}
		}
	}
}

// sentenceEnd returns the position at which the first sentence or list item ends.
func sentenceEnd(text string) int {
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' && (strings.IndexByte(".;:!?", text[i-1]) >= 0 || i+2 < len(text) && text[i+2] == ' ' && strings.IndexByte("-*#", text[i+1]) >= 0) {
			return i
		}
	}
	return len(text)
}

// namedTool returns the first name of another tool in a sentence. foreign is true for a tool of
// another server.
func namedTool(sentence, own string, others map[string]bool) (name string, foreign, ok bool) {
	own = strings.ToLower(own)
	for word := range strings.FieldsFuncSeq(sentence, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		if foreign, found := others[word]; found && word != own {
			return word, foreign, true
		}
	}
	return "", false, false
}

// judge applies the rules about clauses to a text.
func (s *scan) judge(t text, clean string) {
	if !s.spend(len(clean), perClauseOctet) {
		return
	}
	first := true
	s.reader.Sentences(clean, func(clauses []meaning.Clause) {
		s.sentence.Read(clauses)
		for _, id := range s.sentence.Says(!strings.Contains(t.path, "Schema/"), t.summary, first) {
			s.report(id, "", t.tool, t.path, around(clean, []int{clauses[0].Start, clauses[len(clauses)-1].To}))
		}
		for i := range s.sentence.Acts {
			s.judgeAct(t, clean, i, first)
		}
		first = false
	})
}

// judgeAct applies the rules about clauses to one clause.
func (s *scan) judgeAct(t text, clean string, i int, first bool) {
	a := &s.sentence.Acts[i]
	parameter := strings.Contains(t.path, "Schema/")
	shadows, diverts := s.sentence.Steers(i), s.sentence.Diverts(i)
	for _, claim := range []struct {
		id   string
		says bool
	}{
		{"data_exfiltration", a.Leaks()},
		{"malicious_capability", a.Attacks(t.summary)},
		{"concealment", a.Conceals() || s.sentence.Keeps(i)},
		{"private_data_request", a.Asks(parameter, first && i == 0 && !parameter) || parameter && (t.member == "description" || t.member == "title") && s.sentence.Wants(i, t.owner.subject)},
		{"tool_shadowing", shadows == "high"},
		{diverts, diverts != ""},
		{"coercive_priority", shadows == "medium"},
	} {
		if claim.says {
			s.report(claim.id, "", t.tool, t.path, around(clean, []int{a.From, a.To}))
		}
	}
	if t.summary {
		s.capableOf(t.owner, a, first, i > 0 && s.sentence.Acts[i-1].Permits())
	}
}
