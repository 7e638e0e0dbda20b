package posix

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// filter returns the output of commands that cut, select or replace text, if the input and the
// program are known and simple. The output of any other filter gets the taint FromBuilt, because a
// shell that reads it runs hidden text.
func filter(e *interp.Env, sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	if out, ok := jqAlone(v); ok {
		return out, true
	}
	program, files, is := filterProgram(e, v)
	if !is {
		return act.Flow{}, false
	}
	in, interpreter := v.Stdin, e.In("interpreters", v.Exe)
	if len(files) > 0 && !interpreter {
		in = e.ReadFile(sh, files[len(files)-1])
	}
	if !in.Known {
		return unknownFiltered(e, v, program, in)
	}
	out := act.Flow{Taint: in.Taint | in.Word.Taint | act.FromBuilt, Via: v.Exe, Layer: in.Layer}
	switch size := len(in.Word.Text); {
	case size == 0 || size > scan.MaxDecoded:
		return act.Flow{}, false
	case interpreter || !e.Budget.Spend(1+size/64):
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

// filterProgram returns the program text of a filter, and the operands after it. It returns false
// if the call is not a filter.
func filterProgram(e *interp.Env, v *act.Invocation) (program act.Word, files []act.Word, is bool) {
	if !e.In("filters-by-program", v.Exe) {
		return act.Word{}, v.Operands, e.In("text-filters", v.Exe)
	}
	if w, ok := v.Value("-e", "--expression"); ok {
		return w, v.Operands, true
	}
	files = v.Operands[min(len(v.Operands), jqValues(v)):]
	if len(files) == 0 {
		return act.Word{}, nil, true
	}
	return files[0], files[1:], true
}

// jqAlone returns the output of jq without input (-n), which its program text alone determines.
func jqAlone(v *act.Invocation) (act.Flow, bool) {
	n := jqValues(v)
	if v.Exe != "jq" || !v.Has("-n") || n >= len(v.Operands) {
		return act.Flow{}, false
	}
	program := v.Operands[n]
	if w := jqFilled(v, program); literalObject(w.Text) {
		return act.Flow{Word: w, Known: true, Line: true, Taint: w.Taint}, true
	}
	return act.Flow{Taint: act.FromBuilt, Via: v.Exe}, strings.Contains(program.Text, `"`)
}

// unknownFiltered returns the output of a filter for unknown input. Its program text may make a
// command from each line.
func unknownFiltered(e *interp.Env, v *act.Invocation, program act.Word, in act.Flow) (act.Flow, bool) {
	switch v.Exe {
	case "jq", "yq":
		if w, ok := formed(e, v); ok {
			return act.Flow{Word: w, Taint: in.Taint, Via: v.Exe}, true
		}
	case "sed":
		if in.Via == "installer" && strings.HasSuffix(program.Text, "/d") { // the output is the installer without some of its lines
			return in, true
		}
		if text, ok := sedText(program.Text, "\x01"); ok && text != "\x01" {
			return act.Flow{Word: act.Word{Text: strings.ReplaceAll(text, "\x01", string(scan.Hole)), At: -1, Span: v.Argv[0].Span}, Taint: in.Taint, Via: v.Exe}, true
		}
	}
	return act.Flow{}, false
}

// prints reports whether the program text in the command produces the output.
func prints(e *interp.Env, exe string) bool { return e.In("awks", exe) || e.In("interpreters", exe) }

// computed adds the taint FromBuilt to the output of programs that compute it from their own
// program text, which is not evaluated.
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

// filtered returns the output of one filter for a text, and false if it cannot be evaluated.
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
		return text, true // selects or sorts lines: assume that all of them may run
	case "paste":
		return strings.ReplaceAll(text, "\n", " "), true
	case "cut":
		return cutText(v, text)
	}
	return "", false
}

// sedText evaluates s/x/y/ and y/x/y/ without patterns, and the selection of lines.
func sedText(program, text string) (string, bool) {
	for command := range strings.SplitSeq(program, ";") {
		command = strings.TrimLeft(command, " 0123456789$,")
		if command == "" || command == "p" || command == "d" || command == "q" {
			continue
		}
		parts := strings.Split(command, command[min(1, len(command)-1):min(2, len(command))])
		if len(parts) != 4 || scan.IsNameByte(command[1]) || strings.Trim(parts[3], "gpIim0123456789") != "" {
			return "", false
		}
		switch parts[0] {
		case "s":
			text = sedReplace(text, parts[1], parts[2], strings.ContainsRune(parts[3], 'g'))
		case "y":
			text = scan.Translate(text, parts[1], parts[2])
		default:
			return "", false
		}
	}
	return text, strings.IndexByte(text, scan.Hole) < 0
}

// sedReplace evaluates s/from/to/ on each line. The result is an unknown part if from is a
// pattern.
func sedReplace(text, from, to string, all bool) string {
	plain := strings.Trim(from, "^$")
	if strings.ContainsAny(plain, `.*[]\+?|(){}`) || strings.Contains(to, `\`) {
		return string(scan.Hole)
	}
	to = strings.ReplaceAll(to, "&", plain)
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		end := line[len(body):]
		switch {
		case strings.HasPrefix(from, "^"):
			if rest, ok := strings.CutPrefix(body, plain); ok {
				body = to + rest
			}
		case strings.HasSuffix(from, "$"):
			if rest, ok := strings.CutSuffix(body, plain); ok {
				body = rest + to
			}
		case from != "":
			body = replace(body, from, to, all)
		}
		out.WriteString(body + end)
	}
	return out.String()
}

// awkText evaluates awk programs such as '{print $2}'.
func awkText(v *act.Invocation, program, text string) (string, bool) {
	body, ok := strings.CutPrefix(strings.TrimSpace(program), "{print")
	body, ends := strings.CutSuffix(body, "}")
	if !ok || !ends {
		return "", false
	}
	places := strings.FieldsFunc(body, func(r rune) bool { return r == ',' || r == ' ' })
	if len(places) == 0 {
		places = []string{"$0"}
	}
	sep, _ := v.Value("-F")
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		cols := append([]string{line}, strings.Fields(line)...)
		if strings.TrimSpace(sep.Text) != "" {
			cols = append(cols[:1], strings.Split(line, sep.Text)...)
		}
		var words []string
		for _, place := range places {
			n, err := strconv.Atoi(strings.TrimPrefix(place, "$"))
			if err != nil || place[0] != '$' || n < 0 {
				return "", false
			}
			words = append(words, cols[min(n, len(cols)):min(n+1, len(cols))]...)
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, "\n"), true
}

// cutText evaluates cut -d -f and cut -c.
func cutText(v *act.Invocation, text string) (string, bool) {
	list, sep := act.Word{}, "\t"
	if w, ok := v.Value("-c", "--characters", "-b", "--bytes"); ok {
		list, sep = w, ""
	} else if list, ok = v.Value("-f", "--fields"); !ok {
		return "", false
	}
	if w, ok := v.Value("-d", "--delimiter"); ok {
		sep = w.Text
	}
	var out []string
	for line := range strings.Lines(text) {
		cols := strings.Split(strings.TrimRight(line, "\n"), sep)
		if len(cols) == 1 && sep != "" { // cut prints lines without the separator unchanged
			out = append(out, cols[0])
			continue
		}
		var words []string
		for item := range strings.SplitSeq(list.Text, ",") {
			from, to, ok := cutRange(item, len(cols))
			if !ok {
				return "", false
			}
			words = append(words, cols[from:to]...)
		}
		out = append(out, strings.Join(words, sep))
	}
	return strings.Join(out, "\n"), true
}

// cutRange parses 3, 2-4, 2- or -4, which count from 1, as a range of n parts.
func cutRange(item string, n int) (from, to int, ok bool) {
	a, b, ranged := strings.Cut(item, "-")
	first, err := strconv.Atoi(cmp.Or(a, "1"))
	if !ranged {
		b = a
	}
	last, err2 := strconv.Atoi(cmp.Or(b, strconv.Itoa(n)))
	from = min(max(first-1, 0), n)
	return from, max(min(last, n), from), first > 0 && err == nil && err2 == nil
}

// literalObject reports whether a jq program is an object or a list without computed parts.
func literalObject(program string) bool {
	program = strings.TrimSpace(program)
	return program != "" && (program[0] == '{' || program[0] == '[') && !strings.ContainsAny(program, "$|()"+string(scan.Hole)) && !strings.Contains(program, "input")
}

// jqFilled returns a jq program with its --arg values inserted and its literal strings joined: {m:
// ($a + "b")} becomes {m: "ab"}.
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

// jqValues returns the number of values of --arg NAME VALUE and similar options of jq before its
// program. The option parser counts them as operands.
func jqValues(v *act.Invocation) int {
	n := 0
	for i := 1; i+2 < len(v.Argv) && v.Exe == "jq"; i++ {
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

// jqVariable replaces $name in a jq program by a value.
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
