package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// starts judges a call that starts a program: by a text for a shell, or by words.
func (r *inlineRun) starts(kind byte, name inlineToken, args, list []inlineToken) {
	e := r.sh.e
	first := list[0].text
	if r.origin(args)&builtText != 0 && (len(list) == 1 || kind == 's') && first != string(scan.Hole) && decodesAny(args) {
		e.raise("obf.decode-exec", r.src, name.from, name.to, "")
	}
	if slices.Contains(e.groups["shells"], scan.Base(first)) {
		if r.feeds = true; r.unknown(name, args) {
			return
		}
		for i, t := range args {
			if i+2 < len(args) && inputArguments[t.text] && (args[i+1].kind == '=' || args[i+1].kind == ':') {
				if text := r.join(args[i+2:]); text.to > 0 && strings.IndexByte(text.text, scan.Hole) < 0 {
					r.shellText(text)
				}
			}
		}
	}
	if r.lang == "csharp" || r.lang == "swift" || r.lang == "rust" {
		list = r.chained(name, list)
	}
	if strings.Trim(first, string(scan.Hole)) == "" && !slices.ContainsFunc(list, forces) { // which program it is, the text's caller says
		last := args[len(args)-1]
		if raw := r.src.text[min(max(args[0].from, 0), len(r.src.text)):min(max(last.to, 0), len(r.src.text))]; len(args) > 1 && e.actsText(raw) { // words without their quotes
			r.shellText(inlineToken{kind: 's', text: raw, from: args[0].from, to: last.to})
			return
		}
		if !r.unknown(name, args) && (r.lang == "awk" || r.fromInput()) {
			e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
		}
		e.doubt("a program text runs a command that is not known")
		return
	}
	if strings.IndexByte(first, ' ') < 0 && len(list) > 1 && (args[0].kind != 's' || kind != 's' || r.lang == "perl" || r.lang == "ruby") || kind == 'v' && len(list) > 1 && r.lang == "csharp" {
		r.run(list)
		return
	}
	r.shellText(list[0])
}

// forces: the word is an option that deletes trees or overrides a refusal.
func forces(t inlineToken) bool {
	switch t.text {
	case "-rf", "-fr", "-Rf", "--force", "-f", "--hard", "-R", "-r", "--no-preserve-root", "--recursive":
		return true
	}
	return false
}

// inputArguments name what a program that is started reads.
var inputArguments = scan.SetOf("input stdin_data stdin")

// decodesAny: a decoder stands among tokens, not only what makes single characters.
func decodesAny(toks []inlineToken) bool {
	return slices.ContainsFunc(toks, func(t inlineToken) bool {
		return t.kind == 'i' && (strings.HasSuffix(t.text, "Buffer.from") || slices.ContainsFunc(decoderNames, func(d string) bool { return strings.Contains(t.text, d) }))
	})
}

// chained adds the words that calls and settings elsewhere give to a program that is
// started: Command::new("rm").arg("-rf"), psi.Arguments = "-rf /".
func (r *inlineRun) chained(name inlineToken, list []inlineToken) []inlineToken {
	if len(list) > 1 && r.lang != "csharp" {
		return list
	}
	if r.lang == "csharp" && len(list) == 2 { // its arguments are one text
		var words []inlineToken
		for _, word := range scan.OptionWords(list[1].text) {
			words = append(words, inlineToken{kind: 's', text: word, from: list[1].from, to: list[1].to})
		}
		return append(list[:1:1], words...)
	}
	if !r.sh.e.budget.spend(1 + len(r.toks)/4) {
		return list
	}
	for i, t := range r.toks {
		if t.from < name.from || t.kind != 'i' || i+1 >= len(r.toks) {
			continue
		}
		last := t.text[strings.LastIndexByte(t.text, '.')+1:]
		if (last == "arg" || last == "args") && r.toks[i+1].kind == '(' {
			inner := r.arguments(i + 1)
			if len(inner) > 0 && inner[0].kind == '&' {
				inner = inner[1:]
			}
			list = append(list, r.strings(inner)...)
		}
	}
	return list
}

// startedBy runs the program that a text names by settings: p.launchPath = "/bin/rm",
// p.arguments = ["-rf", "/"].
func (r *inlineRun) startedBy(i int) {
	var list []inlineToken
	for j, t := range r.toks {
		last := strings.ToLower(t.text[strings.LastIndexByte(t.text, '.')+1:])
		if j < i || t.kind != 'i' || last != "arguments" || j+1 >= len(r.toks) || r.toks[j+1].kind != '=' {
			continue
		}
		for _, w := range r.strings(r.toks[j+2 : r.statement(j)]) {
			if r.lang == "csharp" {
				for _, word := range scan.OptionWords(w.text) {
					list = append(list, inlineToken{kind: 's', text: word, from: w.from, to: w.to})
				}
			} else {
				list = append(list, w)
			}
		}
	}
	if exe := r.join(r.toks[i+2 : r.statement(i)]); exe.to > 0 {
		r.run(append([]inlineToken{exe}, list...))
	}
}

// alternatives are the two arguments of one that depends on something: A if C else B,
// C ? A : B.
func alternatives(args []inlineToken) (one, other []inlineToken, ok bool) {
	depth, mark := 0, -1
	for i, t := range args {
		switch {
		case t.kind == '(' || t.kind == '[' || t.kind == '{':
			depth++
		case t.kind == ')' || t.kind == ']' || t.kind == '}':
			depth--
		case depth > 0:
		case t.kind == ',':
			return nil, nil, false
		case mark < 0 && i > 0 && (t.kind == 'i' && t.text == "if" || t.kind == '?'):
			mark = i
		case mark > 0 && t.kind == 'i' && t.text == "else" && i+1 < len(args) && args[mark].kind == 'i':
			return args[:mark], args[i+1:], true
		case mark > 0 && t.kind == ':' && i+1 < len(args) && i > mark+1 && args[mark].kind == '?':
			return args[mark+1 : i], args[i+1:], true
		}
	}
	return nil, nil, false
}
