package posix

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// filter gives the output of the commands that cut, choose or replace text, where
// input and program are known and simple. Text that goes through a filter nobody
// can follow is marked as built: a shell that reads it runs something hidden.
func filter(e *interp.Env, sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	interpreter := e.In("interpreters", v.Exe)
	var program act.Word
	rest := v.Operands
	switch {
	case e.In("filters-by-program", v.Exe):
		if v.Exe == "jq" {
			rest = rest[min(len(rest), jqValues(v)):]
			if out, ok := jqAlone(v, rest); ok {
				return out, true
			}
		}
		program, rest = filterProgram(v, rest)
	case !e.In("text-filters", v.Exe):
		return act.Flow{}, false
	}
	in := v.Stdin
	if len(rest) > 0 && !interpreter {
		in = e.ReadFile(sh, rest[len(rest)-1])
	}
	if !in.Known {
		return unknownFiltered(e, v, program, in)
	}
	if in.Word.Text == "" || len(in.Word.Text) > scan.MaxDecoded {
		return act.Flow{}, false
	}
	out := act.Flow{Taint: in.Taint | in.Word.Taint | act.FromBuilt, Via: v.Exe, Layer: in.Layer}
	if interpreter || !e.Budget.Spend(1+len(in.Word.Text)/64) {
		return out, true
	}
	if text, ok := filtered(v, program.Text, in.Word.Text); ok && len(text) <= scan.MaxValue {
		out.Known, out.Taint, out.Word = true, in.Taint, in.Word
		if text != in.Word.Text {
			out.Word.Text, out.Word.At = text, -1
		}
	}
	return out, true
}

// filterProgram is the program of a filter, and the operands behind it.
func filterProgram(v *act.Invocation, rest []act.Word) (act.Word, []act.Word) {
	if w, ok := v.Value("-e", "--expression"); ok {
		return w, v.Operands
	}
	if len(rest) == 0 {
		return act.Word{}, nil
	}
	return rest[0], rest[1:]
}

// jqAlone is what jq prints without any input: its program's own strings.
func jqAlone(v *act.Invocation, rest []act.Word) (act.Flow, bool) {
	if !v.Has("-n") || len(rest) == 0 {
		return act.Flow{}, false
	}
	if w := jqFilled(v, rest[0]); literalObject(w.Text) {
		return act.Flow{Word: w, Known: true, Line: true, Taint: w.Taint}, true
	}
	return act.Flow{Taint: act.FromBuilt, Via: v.Exe}, strings.Contains(rest[0].Text, `"`)
}

// unknownFiltered is what a filter makes of input that nobody knows: a program of its
// own may make a command of each line.
func unknownFiltered(e *interp.Env, v *act.Invocation, program act.Word, in act.Flow) (act.Flow, bool) {
	switch v.Exe {
	case "jq", "yq":
		if w, ok := spoken(e, v); ok {
			return act.Flow{Word: w, Taint: in.Taint, Via: v.Exe}, true
		}
	case "sed":
		if text, ok := sedText(program.Text, "\x01"); ok && text != "\x01" {
			return act.Flow{Word: act.Word{Text: strings.ReplaceAll(text, "\x01", string(scan.Hole)), At: -1, Span: v.Argv[0].Span}, Taint: in.Taint, Via: v.Exe}, true
		}
	}
	return act.Flow{}, false
}

// prints: its program text, which stands in the command, makes its output.
func prints(e *interp.Env, exe string) bool {
	return exe == "awk" || exe == "gawk" || exe == "mawk" || exe == "lua" || slices.Contains(e.Groups["interpreters"], exe)
}

// computed marks what a program prints that it makes of its own program text, which
// is not followed.
func computed(v *act.Invocation, out act.Flow) act.Flow {
	made := false
	switch v.Exe {
	case "jq", "yq", "gojq", "jaq":
		made = v.Has("-n") || v.Has("--null-input")
	case "dc":
		made = v.Has("-e") || v.Stdin.Known
	case "m4":
		made = v.Stdin.Known
	}
	if made && !out.Known {
		out.Taint |= act.FromBuilt
	}
	return out
}

// filtered is what one filter makes of a text.
func filtered(v *act.Invocation, program, text string) (string, bool) {
	switch v.Exe {
	case "sed":
		return sedText(program, text)
	case "awk", "gawk", "mawk":
		return awkText(v, program, text)
	case "head":
		if w, ok := v.Value("-c", "--bytes"); ok {
			n, err := strconv.Atoi(w.Text)
			return text[:min(max(n, 0), len(text))], err == nil
		}
		return text, true
	case "grep", "egrep", "fgrep", "rg", "sort", "uniq", "shuf", "tail", "fmt", "column", "iconv", "expand", "dos2unix":
		return text, true // a choice or an order of the lines: all of them may run
	case "fold", "paste":
		return strings.ReplaceAll(text, "\n", " "), v.Exe == "paste"
	case "cut":
		return cutText(v, text)
	}
	return "", false
}

// sedText applies s/x/y/ and y/x/y/ without patterns, and the selection of lines.
func sedText(program, text string) (string, bool) {
	for _, command := range strings.Split(program, ";") {
		command = strings.TrimLeft(command, " 0123456789$,")
		switch {
		case command == "" || command == "p" || command == "d" || command == "q":
		case len(command) > 4 && (command[0] == 's' || command[0] == 'y') && !scan.IsNameByte(command[1]):
			parts := strings.Split(command, command[1:2])
			if len(parts) != 4 {
				return "", false
			}
			from, to, flags := parts[1], parts[2], parts[3]
			if command[0] == 'y' {
				text = scan.Translate(text, from, to)
				continue
			}
			if strings.Trim(flags, "gpIim0123456789") != "" {
				return "", false
			}
			text = sedReplace(text, from, to, strings.ContainsRune(flags, 'g'))
			if strings.IndexByte(text, scan.Hole) >= 0 {
				return "", false
			}
		default:
			return "", false
		}
	}
	return text, true
}

func sedReplace(text, from, to string, all bool) string {
	if i := strings.IndexByte(text, '\n'); i >= 0 && i+1 < len(text) { // line by line
		var out strings.Builder
		for line := range strings.Lines(text) {
			out.WriteString(sedReplace(line, from, to, all))
		}
		return out.String()
	}
	plain := strings.Trim(from, "^$")
	if strings.ContainsAny(plain, `.*[]\+?|(){}`) || strings.ContainsAny(to, `\`) {
		return string(scan.Hole)
	}
	to = strings.ReplaceAll(to, "&", plain)
	switch {
	case from == "^" || strings.HasPrefix(from, "^") && strings.HasPrefix(text, plain):
		return to + strings.TrimPrefix(text, plain)
	case strings.HasSuffix(from, "$"):
		body := strings.TrimSuffix(text, "\n")
		if strings.HasSuffix(body, plain) {
			return strings.TrimSuffix(body, plain) + to
		}
		return text
	case from == plain && from != "":
		return replace(text, from, to, all)
	}
	return text
}

// awkText is awk '{print $2}' and its kind.
func awkText(v *act.Invocation, program, text string) (string, bool) {
	body, ok := strings.CutPrefix(strings.TrimSpace(program), "{print")
	if !ok || !strings.HasSuffix(body, "}") {
		return "", false
	}
	sep := " "
	if w, ok := v.Value("-F"); ok {
		sep = w.Text
	}
	var out []string
	for line := range strings.Lines(text) {
		cols := strings.Fields(line)
		if sep != " " && sep != "" {
			cols = strings.Split(strings.TrimRight(line, "\n"), sep)
		}
		var words []string
		for _, f := range strings.FieldsFunc(strings.TrimSuffix(body, "}"), func(r rune) bool { return r == ',' || r == ' ' }) {
			n, err := strconv.Atoi(strings.TrimPrefix(f, "$"))
			switch {
			case err != nil || !strings.HasPrefix(f, "$"):
				return "", false
			case n == 0:
				words = append(words, strings.TrimRight(line, "\n"))
			case n <= len(cols):
				words = append(words, cols[n-1])
			}
		}
		if len(words) == 0 {
			words = append(words, strings.TrimRight(line, "\n"))
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, "\n"), true
}

// cutText is cut -d -f and cut -c.
func cutText(v *act.Invocation, text string) (string, bool) {
	list, ok := v.Value("-f", "--fields", "-c", "--characters", "-b", "--bytes")
	if !ok {
		return "", false
	}
	sep := "\t"
	if w, ok := v.Value("-d", "--delimiter"); ok {
		sep = w.Text
	}
	if v.Has("-c") || v.Has("-b") || v.Has("--characters") || v.Has("--bytes") {
		sep = ""
	}
	var out []string
	for line := range strings.Lines(text) {
		cols := strings.Split(strings.TrimRight(line, "\n"), sep)
		if len(cols) == 1 && sep != "" { // lines without the separator pass
			out = append(out, cols[0])
			continue
		}
		var words []string
		for _, item := range strings.Split(list.Text, ",") {
			from, to, ranged := strings.Cut(item, "-")
			a, b := 1, len(cols)
			if n, err := strconv.Atoi(from); err == nil {
				a = n
			}
			if n, err := strconv.Atoi(to); err == nil {
				b = n
			} else if !ranged {
				b = a
			}
			if a < 1 {
				return "", false
			}
			words = append(words, cols[min(a-1, len(cols)):max(min(b, len(cols)), min(a-1, len(cols)))]...)
		}
		out = append(out, strings.Join(words, sep))
	}
	return strings.Join(out, "\n"), true
}

// literalObject: a program of jq that is an object or a list without anything to
// compute.
func literalObject(program string) bool {
	program = strings.TrimSpace(program)
	return program != "" && (program[0] == '{' || program[0] == '[') && !strings.ContainsAny(program, "$|()"+string(scan.Hole)) && !strings.Contains(program, "input")
}

// jqFilled is a program of jq with its --arg values put in and its literal strings
// joined: {m: ($a + "b")} is {m: "ab"}.
func jqFilled(v *act.Invocation, program act.Word) act.Word {
	text := program.Text
	for i := 0; i+2 < len(v.Argv) && strings.IndexByte(text, '$') >= 0; i++ {
		switch v.Argv[i].Text {
		case "--arg":
			text = jqVariable(text, v.Argv[i+1].Text, facts.QuoteJSON(v.Argv[i+2].Text))
		case "--argjson":
			text = jqVariable(text, v.Argv[i+1].Text, v.Argv[i+2].Text)
		}
	}
	if text == program.Text && strings.IndexByte(text, '+') < 0 || len(text) > scan.MaxValue {
		return program
	}
	program.Text, program.At = stores.JoinedStrings(text), -1
	return program
}

// jqValues counts the values of jq's --arg NAME VALUE before its program, which are
// read as operands.
func jqValues(v *act.Invocation) int {
	n := 0
	for i := 1; i+2 < len(v.Argv); i++ {
		switch v.Argv[i].Text {
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
			if program := v.Operands[min(n, len(v.Operands)-1):]; len(program) > 0 && program[0].Span == v.Argv[i+2].Span && program[0].Text == v.Argv[i+2].Text {
				n++
			}
			i += 2
		}
	}
	return n
}

// jqVariable puts a value in place of $name and $ARGS.named.name.
func jqVariable(text, name, value string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if rest, ok := strings.CutPrefix(text[i:], "$"+name); ok && (rest == "" || !scan.IsNameByte(rest[0])) && b.Len() < scan.MaxValue {
			b.WriteString(value)
			i += len(name)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
