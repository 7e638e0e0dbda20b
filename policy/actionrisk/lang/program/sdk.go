package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// libraries judges calls to the cloud and service libraries that the program text loads.
func (r *inlineRun) libraries() {
	e := r.sh.Env
	loaded := e.Libraries(r.src.Text)
	if len(loaded) == 0 || !e.Budget.Spend(len(r.toks)) {
		return
	}
	for i, t := range r.toks {
		if t.Kind != tokens.Name || i+1 >= len(r.toks) || r.toks[i+1].Kind != '(' {
			continue
		}
		on := strings.LastIndexByte(t.Text, '.') + 1
		name := snake(strings.TrimSuffix(t.Text[on:], "Command"))
		for s := range e.AllNamed(facts.AsLibrary, strings.ToLower(t.Text[:on])+name, r.lang) {
			if loaded[s] && e.Budget.Spend(4) && given(s, r.arguments(i+1)) {
				r.standsFor(s, t, name, r.arguments(i+1))
				break
			}
		}
	}
}

// starred returns the part of the name that the "*" in a name of the table row matches.
func starred(s *facts.Name, name string) string {
	for _, n := range s.Names {
		if before, star := strings.CutSuffix(n, "*"); star && strings.HasPrefix(name, before) {
			return name[len(before):]
		}
	}
	return ""
}

// given reports whether the call has one of the arguments that the table row requires.
func given(s *facts.Name, args []tokens.Token) bool {
	return len(s.With) == 0 || slices.ContainsFunc(args, func(t tokens.Token) bool { return slices.Contains(s.With, t.Text) })
}

// standsFor judges the command that has the same effect as the call. The table row describes the
// words of the command.
func (r *inlineRun) standsFor(s *facts.Name, at tokens.Token, name string, args []tokens.Token) {
	list := r.strings(args)
	if s.Does == facts.RunsText {
		if len(list) > 0 && list[0].Text != string(scan.Hole) {
			r.shellText(list[0])
		}
		return
	}
	var words []tokens.Token
	for _, part := range s.Run {
		w := tokens.Token{Kind: tokens.String, Text: part, From: at.From, To: at.To}
		switch {
		case part == "{*}":
			w.Text = strings.ReplaceAll(starred(s, name), "_", "")
		case part == "{kebab}":
			w.Text = strings.ReplaceAll(name, "_", "-")
		case part == "{service}":
			w.Text = r.client()
		case len(part) == 3 && part[0] == '{':
			n := int(part[1] - '0')
			switch w.Text = string(scan.Hole); {
			case n < len(list):
				w = list[n]
			case n > 0:
				continue
			}
		case part[0] == '{':
			w = member(args, part[1:len(part)-1], w)
		}
		words = append(words, w)
	}
	r.run(words)
}

// member returns the string value of a named argument, or an unknown string if there is none. If
// the argument is given several times, the last one counts.
func member(args []tokens.Token, name string, w tokens.Token) tokens.Token {
	w.Text = string(scan.Hole)
	for i, t := range args {
		if t.Kind == tokens.Name && t.Text == name && i+2 < len(args) && args[i+2].Kind == tokens.String {
			w = args[i+2]
		}
	}
	return w
}

// client returns the service for which the program text creates a client: boto3.client('s3'), new
// AWS.S3(), @aws-sdk/client-s3. It returns "x" if it finds none.
func (r *inlineRun) client() string {
	for i, t := range r.toks {
		switch {
		case t.Kind == tokens.Name && (strings.HasSuffix(t.Text, ".client") || strings.HasSuffix(t.Text, ".resource")) && i+2 < len(r.toks) && r.toks[i+2].Kind == tokens.String:
			return r.toks[i+2].Text
		case t.Kind == tokens.String && strings.HasPrefix(t.Text, "@aws-sdk/client-"):
			return strings.TrimPrefix(t.Text, "@aws-sdk/client-")
		case t.Kind == tokens.Name && strings.HasPrefix(t.Text, "AWS.") && t.Text != "AWS.config":
			return strings.ToLower(t.Text[len("AWS."):])
		}
	}
	return "x"
}

// snake converts a name to snake case: deleteDBInstance to delete_db_instance.
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
