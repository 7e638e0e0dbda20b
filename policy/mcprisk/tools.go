package mcprisk

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/mcprisk/acts"
	"github.com/countersign/countersign/policy/meaning"
)

// tool applies the rules about the capabilities and the declaration of one tool.
func (s *scan) tool(t *tool) {
	if utf8.RuneCountInString(stringOf(t.raw["description"])) > maxDescription {
		s.report("oversized_description", "", t.name, t.path+"/description", "")
	}
	// The name is read as a clause: "refund_charge" means to refund a charge.
	s.reader.Sentences(strings.Join(t.nameParts, " "), func(clauses []meaning.Clause) {
		s.sentence.Read(clauses)
		for i := range s.sentence.Acts {
			if a := &s.sentence.Acts[i]; !a.Informs() {
				s.capableOf(t, a, true, false)
			}
		}
	})
	if acts.RunsByName(t.nameParts) {
		s.report("command_execution", "", t.name, t.path, t.name)
	}
	s.schema(t)
}

// hint reports whether an annotation is true.
func (t *tool) hint(name string) bool {
	return membersOf(t.raw["annotations"])[name].Kind() == 't'
}

// capableOf reports the capabilities that a clause states, each once per tool. A clause after "to"
// counts only if the clause before permits the action: "grants a spender permission to move
// tokens".
func (s *scan) capableOf(t *tool, a *acts.Act, first, permits bool) {
	if !a.Does() || a.Opening == "to" && !permits {
		return
	}
	for i, c := range acts.Capabilities {
		if bit := uint8(1) << i; t.found&bit == 0 && c.Is(a) {
			t.found |= bit
			if c.ID != "destructive_capability" || !t.hint("destructiveHint") {
				s.report(c.ID, "", t.name, t.path, a.Verb+" "+a.Shown())
			}
		}
	}
	// Clauses after "to" or "before" are about something else, and later sentences say how to call
	// the tool.
	if a.Opening == "" && first && a.Changes() && t.hint("readOnlyHint") {
		s.report("annotation_mismatch", "", t.name, t.path+"/annotations/readOnlyHint", a.Verb+" "+a.Shown())
	}
}

// Names, without separators, of parameters that ask for something that a tool does not need, and
// words in the description that explain such a parameter.
var (
	contextParameters = []string{"sidenote", "sidenotes", "conversationhistory", "chathistory", "messagehistory", "previousmessages", "systemprompt",
		"fullcontext", "fullconversation", "modelname", "reasoning", "chainofthought", "contextdump"}
	credentialParameters = []string{"apikey", "password", "privatekey", "seedphrase", "mnemonic", "secretkey"}
	authWords            = []string{"auth", "login", "signin", "authenticate", "authentication", "oauth", "register", "credential", "credentials", "unlock"}
	egressWords          = []string{"fetch", "fetches", "request", "requests", "post", "posts", "download", "downloads", "crawl", "crawls", "scrape", "scrapes", "http", "get", "browse", "visit", "navigate", "webhook", "call", "curl", "load", "loads", "retrieve", "retrieves"}
	urlParameters        = []string{"url", "uri", "endpoint", "targeturl", "webhookurl", "callbackurl", "urls"}
)

// schema applies the rules about the input schema.
func (s *scan) schema(t *tool) {
	if !isObject(t.raw["inputSchema"]) {
		s.report("missing_input_schema", "", t.name, t.path, "")
		return
	}
	path, schema := t.path+"/inputSchema", membersOf(t.raw["inputSchema"])
	has := isObject(schema["properties"])
	additional := schema["additionalProperties"].Kind()
	given := additional == 't' || additional == 'f'
	if additional == 't' || !has && !given && schema["$ref"] == nil && schema["allOf"] == nil && schema["oneOf"] == nil && schema["anyOf"] == nil {
		s.report("open_schema", "", t.name, path, "")
	}
	isAuth := t.speaksOf(authWords)
	s.parameters(t, nil, canon.NewReader(t.raw["inputSchema"]), false, isAuth)
	fetches := t.speaksOf(egressWords)
	if !fetches || !has {
		return
	}
	for in := enter(schema["properties"]); in.More(); {
		name, value := string(in.Name()), in.Raw()
		if isObject(value) && slices.Contains(urlParameters, foldName(name)) && isFree(membersOf(value)) {
			s.report("arbitrary_network_egress", "", t.name, path+"/properties/"+escaped(name), name)
		}
	}
}

// isFree reports whether the schema of a parameter does not restrict its value.
func isFree(property members) bool {
	return property["enum"] == nil && property["const"] == nil && property["pattern"] == nil
}

// parameters checks the names of all properties in the next value, including nested ones. named is
// true if the members of the value are properties. The pointer is built from path only for a
// finding, because a long name is part of the pointers of all values below it.
func (s *scan) parameters(t *tool, path []string, in *canon.Reader, named, isAuth bool) {
	switch in.Kind() {
	case '[':
		for in.Enter(); in.More(); {
			s.parameters(t, path, in, false, isAuth)
		}
	case '{':
		for in.Enter(); in.More(); {
			name := string(in.Name())
			below := append(path, name)
			if named {
				s.parameter(t, below, name, isAuth)
			}
			s.parameters(t, below, in, name == "properties", isAuth)
		}
	default:
		in.Skip()
	}
}

func (s *scan) parameter(t *tool, path []string, name string, isAuth bool) {
	severity := "high"
	switch folded := foldName(name); {
	case slices.Contains(contextParameters, folded):
	case !slices.Contains(credentialParameters, folded):
		if !acts.AsksByName(nameParts(name)) {
			return
		}
	case isAuth:
		severity = "medium"
	}
	octets := 0
	for _, part := range path {
		octets += len(part) + 1
	}
	if s.spend(octets, perPlaceOctet) {
		s.report("suspicious_parameter", severity, t.name, t.path+"/inputSchema"+pointerOf(path), name)
	}
}

// pointerOf returns the JSON pointer of a path.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteByte('/')
		b.WriteString(escaped(part))
	}
	return b.String()
}

// speaksOf reports whether the tool's name or description contains one of the words.
func (t *tool) speaksOf(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(t.nameParts, w) || t.says(w) })
}
