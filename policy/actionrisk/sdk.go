package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// A program text that loads the library of a service calls what its command line
// tool does: boto3's delete_bucket is "aws s3 delete-bucket". rules/sdk.json says for
// each library which command has the effect of a call.

// sdkEntry is a line of sdk.json.
type sdkEntry struct {
	// Import: one of these stands in the text, as the name of what it loads.
	Import []string `json:"import"`
	// Call are methods, in small letters with "_" between their words; "*" stands for
	// the rest of a name, "a.b" for a method of a.
	Call []string `json:"call"`
	// With: one of these stands among what it is given.
	With []string `json:"with,omitempty"`
	// Run is the command of the same effect: {0} is the first text it is given, {name}
	// the value of a named one, {*} what the star stands for, {kebab} the call with
	// dashes, {service} the name of the service that the client was made for.
	Run string `json:"run,omitempty"`
	// Text: its first text is run by a shell.
	Text bool `json:"text,omitempty"`
}

type sdkTable struct {
	SDKs []sdkEntry `json:"sdks"`
}

func (c *compiled) readSDKs(read tableReader) error {
	var t sdkTable
	err := read("sdk", &t)
	c.sdks = t.SDKs
	return err
}

// libraries judges the calls of a program text to the libraries that it loads.
func (r *inlineRun) libraries() {
	e := r.sh.e
	var loaded []*sdkEntry
	for i := range e.sdks {
		for _, name := range e.sdks[i].Import {
			if strings.Contains(r.src.text, name) {
				loaded = append(loaded, &e.sdks[i])
				break
			}
		}
	}
	if len(loaded) == 0 || !e.budget.spend(len(r.toks)) {
		return
	}
	for i, t := range r.toks {
		if t.kind != 'i' || i+1 >= len(r.toks) || r.toks[i+1].kind != '(' {
			continue
		}
		name := snake(strings.TrimSuffix(t.text[strings.LastIndexByte(t.text, '.')+1:], "Command"))
		for _, s := range loaded {
			if rest, ok := s.calls(name, t.text); ok && e.budget.spend(4) && s.given(r.arguments(i+1)) {
				r.standsFor(s, t, name, rest, r.arguments(i+1))
				break
			}
		}
	}
}

// calls tells whether the entry is about a method, and what its star stands for.
func (s *sdkEntry) calls(name, dotted string) (string, bool) {
	for _, c := range s.Call {
		switch prefix, star := strings.CutSuffix(c, "*"); {
		case strings.Contains(c, "."):
			if strings.HasSuffix(strings.ToLower(dotted), c) {
				return "", true
			}
		case star:
			if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
				return rest, true
			}
		case strings.Contains(c, "*"):
			if paths.GlobMatch(c, name) {
				return "", true
			}
		case c == name:
			return "", true
		}
	}
	return "", false
}

// given tells whether the call has the arguments that the entry asks for.
func (s *sdkEntry) given(args []inlineToken) bool {
	return len(s.With) == 0 || slices.ContainsFunc(args, func(t inlineToken) bool { return slices.Contains(s.With, t.text) })
}

// standsFor runs the command that has the effect of one call.
func (r *inlineRun) standsFor(s *sdkEntry, at inlineToken, name, rest string, args []inlineToken) {
	list := r.strings(args)
	if s.Text {
		if len(list) > 0 && list[0].text != string(scan.Hole) {
			r.shellText(list[0])
		}
		return
	}
	var words []inlineToken
	for _, part := range strings.Fields(s.Run) {
		w := inlineToken{kind: 's', text: part, from: at.from, to: at.to}
		switch {
		case part == "{*}":
			w.text = strings.ReplaceAll(rest, "_", "")
		case part == "{kebab}":
			w.text = strings.ReplaceAll(name, "_", "-")
		case part == "{service}":
			w.text = r.client()
		case len(part) == 3 && part[0] == '{':
			if n := int(part[1] - '0'); n < len(list) {
				w = list[n]
			} else if n > 0 {
				continue
			} else {
				w.text = string(scan.Hole)
			}
		case part[0] == '{':
			w.text = string(scan.Hole)
			for i, t := range args {
				if t.kind == 'i' && t.text == part[1:len(part)-1] && i+2 < len(args) && args[i+2].kind == 's' {
					w = args[i+2]
				}
			}
		}
		words = append(words, w)
	}
	r.run(words)
}

// client is the service that the text makes a client for: boto3.client('s3'), new
// AWS.S3(), @aws-sdk/client-s3.
func (r *inlineRun) client() string {
	for i, t := range r.toks {
		switch {
		case t.kind == 'i' && (strings.HasSuffix(t.text, ".client") || strings.HasSuffix(t.text, ".resource")) && i+2 < len(r.toks) && r.toks[i+2].kind == 's':
			return r.toks[i+2].text
		case t.kind == 's' && strings.HasPrefix(t.text, "@aws-sdk/client-"):
			return strings.TrimPrefix(t.text, "@aws-sdk/client-")
		case t.kind == 'i' && strings.HasPrefix(t.text, "AWS.") && t.text != "AWS.config":
			return strings.ToLower(t.text[len("AWS."):])
		}
	}
	return "x"
}

// snake writes deleteDBInstance as delete_db_instance.
func snake(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if scan.Upper(c) {
			if i > 0 && (!scan.Upper(name[i-1]) || i+1 < len(name) && !scan.Upper(name[i+1]) && name[i+1] != '_') && name[i-1] != '_' {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}
