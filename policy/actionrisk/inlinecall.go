package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// call judges one call.
func (r *inlineRun) call(name inlineToken, args []inlineToken) {
	if !r.sh.e.budget.spend(1 + len(args)/16) {
		return
	}
	name = r.callee(name)
	if r.callsEach(name, args) {
		return
	}
	if other, rest, ok := r.reflected(name, args); ok {
		name, args = other, rest
	}
	if r.lang == "perl" && name.text == "open" {
		r.pipeOpen(args)
	}
	r.money(name, args, name.computed)
	if r.lang == "lua" && (name.text == "redis.call" || name.text == "redis.pcall" || name.text == "server.call") {
		list := slices.DeleteFunc(r.strings(args), func(t inlineToken) bool { // KEYS[1] is one key, not a pattern
			return strings.Trim(t.text, string(scan.Hole)) == ""
		})
		if len(list) > 0 {
			r.run(append([]inlineToken{{text: "redis-cli"}}, list...))
		}
		return
	}
	if r.database(name, args) || r.onReceiver(name, args) {
		return
	}
	kind := r.kindOf(name, args)
	if kind == 0 {
		r.handsOn(name, args)
		return
	}
	if one, other, ok := alternatives(args); ok && r.sh.e.budget.spend(1+len(args)/2) {
		r.call(name, one)
		r.call(name, other)
		return
	}
	list := r.strings(args)
	switch {
	case len(list) > 0:
	case len(args) > 0:
		list = []inlineToken{{kind: 's', text: string(scan.Hole), from: args[0].from, to: args[0].to}}
	case kind == 'u' || kind == 'd':
		r.sweep()
		return
	case kind != 'n':
		return
	}
	r.act(kind, name, args, list)
}

// callee is the function that a name calls here: its own, or one that it was given.
func (r *inlineRun) callee(name inlineToken) inlineToken {
	if other, ok := r.names[name.text]; ok {
		name.text = other
	} else if first, rest, ok := strings.Cut(name.text, "."); ok && r.names[first] != "" {
		name.text = r.names[first] + "." + rest
	}
	if v, ok := r.vars[strings.TrimLeft(name.text, "$")]; ok && strings.HasPrefix(name.text, "$") {
		name.text = v.text // PHP calls what a variable names
	}
	return name
}

// callsEach judges the call once for each text that its first argument goes through.
func (r *inlineRun) callsEach(name inlineToken, args []inlineToken) bool {
	if len(args) == 0 || args[0].kind != 'i' || len(args) > 1 && args[1].kind != ',' && args[1].kind != '[' || sinkOf(name.text, r.lang) == 0 {
		return false
	}
	variable := strings.TrimLeft(args[0].text, "$@")
	list := r.each[variable]
	if list == nil {
		return false
	}
	delete(r.each, variable)
	rest := args[1:]
	if len(rest) > 0 && rest[0].kind == '[' {
		rest = nil
	}
	for _, t := range list {
		r.call(name, append([]inlineToken{t}, rest...))
	}
	return true
}

// act judges what a call of a kind does with its arguments, list the texts among them.
func (r *inlineRun) act(kind byte, name inlineToken, args, list []inlineToken) {
	switch kind {
	case 's', 'v':
		if text, ok := formatted(args); ok && kind == 's' {
			list = []inlineToken{text}
		}
		if kind == 'v' && len(list) > 1 && list[0].text == string(scan.Hole) && strings.Contains(name.text, "spawn") {
			list = list[1:] // the mode
		}
		r.starts(kind, name, args, list)
	case 'e':
		r.evaluate(name, args, list)
	case 'l':
		r.loadsEach(name, args, list)
	case 'a':
		r.saves(list)
	case 'p':
		r.unknown(name, args)
	case 'n':
		r.sh.e.raise("nosql.index-delete", r.src, name.from, name.to, "")
	case 'q':
		if looksSQL(list[0].text) {
			src := r.src.inside(r.word(list[0]), r.lang)
			r.sh.read("sql", &src, nil)
		}
	case 'k':
		for j, t := range args {
			if t.kind == '-' && j+1 < len(args) && args[j+1].text == "1" {
				r.run([]inlineToken{{text: "kill"}, {text: "-9"}, {text: "-1", from: t.from, to: t.to}})
			}
		}
	default:
		r.actOnFile(kind, name, args, list)
	}
}

// actOnFile judges what a call does to a file or a folder.
func (r *inlineRun) actOnFile(kind byte, name inlineToken, args, list []inlineToken) {
	switch kind {
	case 'd':
		for len(list) > 1 && strings.HasPrefix(list[0].text, "-") { // its options
			list = list[1:]
		}
		if slices.ContainsFunc(args, r.lists) { // the files of a folder, one by one
			r.sweep()
		}
		r.run([]inlineToken{{text: "rm"}, {text: "-rf"}, list[0]})
	case 'u':
		if strings.IndexByte(list[0].text, scan.Hole) >= 0 || slices.ContainsFunc(args, r.lists) {
			r.sweep()
		}
		r.run([]inlineToken{{text: "rm"}, list[0]})
	case 'w':
		if list[0].text != string(scan.Hole) {
			r.read(name, []inlineToken{list[0], {kind: 's', text: "w"}})
			r.keeps(list[0], args, list[1:])
		}
	case 'r':
		r.read(name, list)
	case 'm':
		if len(list) > 1 {
			r.run(append([]inlineToken{{text: "mv"}}, list[:2]...))
		}
	case 'c':
		if mode := octal(args); mode != "" {
			r.run([]inlineToken{{text: "chmod"}, {text: mode}, list[len(list)-1]})
			r.run([]inlineToken{{text: "chmod"}, {text: mode}, list[0]})
		}
	}
}

// strings are the string arguments, those of lists one by one, up to 64.
func (r *inlineRun) strings(args []inlineToken) []inlineToken {
	var out []inlineToken
	if !r.sh.e.budget.spend(1 + len(args)/16) {
		return nil
	}
	depth, start := 0, 0
	for i := 0; i <= len(args) && len(out) < 64; i++ {
		if i < len(args) {
			switch args[i].kind {
			case '(', '[':
				depth++
			case ')', ']':
				depth--
			}
		}
		if i < len(args) && (args[i].kind != ',' || depth > 0) {
			continue
		}
		part := args[start:i]
		if len(part) > 1 && part[0].kind == '*' { // a list as arguments
			part = part[1:]
		}
		if len(part) > 2 && part[0].kind == 'i' && (part[1].kind == ':' && part[2].kind != ':' || part[1].kind == '=' && part[2].kind != '=') { // atPath: "x", shell=True
			if part[1].kind == '=' && !textArguments[part[0].text] {
				start = i + 1
				continue
			}
			part = part[2:]
		}
		if inner := listInside(part); inner != nil && len(inner) < len(args) {
			out = append(out, r.strings(inner)...)
			start = i + 1
			continue
		}
		if len(part) > 3 && part[0].kind == '{' && part[1].text == "args" && part[3].kind == '[' { // {args: ["-rf"]}
			part = part[3:]
		}
		if len(part) > 0 {
			if t, _, ok := r.value(part, 0); !ok && part[0].kind == '[' && len(part) < len(args)+1 {
				out = append(out, r.strings(part[1:min(closing(part, 0, '[', ']'), len(part))])...)
			} else if !ok || t.kind != 0 {
				if t = r.join(part); t.to == 0 && len(part) == 1 && part[0].kind == 'i' && syntaxName(part[0].text) && part[0].text[0] > '9' { // a name of one letter
					t = inlineToken{kind: 's', text: string(scan.Hole), from: part[0].from, to: part[0].to}
				}
				if t.to > 0 {
					out = append(out, t)
				}
			}
		}
		start = i + 1
	}
	return out
}

// handsOn judges a call that does nothing by itself: what it writes to a shell that
// was started, and what it does to each of the files of a folder.
func (r *inlineRun) handsOn(name inlineToken, args []inlineToken) {
	last := name.text[strings.LastIndexAny(name.text, ".:")+1:]
	if list := r.strings(args); r.lang == "ruby" && last == "open" && len(list) > 0 && strings.HasPrefix(list[0].text, "|") {
		list[0].text, list[0].exact = list[0].text[1:], false
		r.shellText(list[0])
	}
	if r.feeds && feedCalls[last] {
		for _, t := range r.strings(args) {
			if r.sh.e.actsText(t.text) {
				r.shellText(t)
			}
		}
	}
	if applyCalls[last] && slices.ContainsFunc(args, func(t inlineToken) bool {
		return t.kind == 'i' && strings.IndexByte("se", commonOrNamed(t.text, r.lang)) >= 0
	}) {
		for _, t := range r.strings(args) {
			if r.sh.e.actsText(t.text) {
				r.shellText(t)
			}
		}
	}
	for _, part := range splitArguments(args) {
		if len(part) == 1 && part[0].kind == 'i' && strings.IndexByte("udD", commonOrNamed(part[0].text, r.lang)) >= 0 { // lapply(files, unlink)
			r.sweep()
		}
	}
	if r.lists(name) {
		for _, t := range r.strings(args) {
			if c := r.sh.e.classOf(r.word(t), r.sh.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
				r.secret = true
				r.run([]inlineToken{{text: "cat"}, t})
			}
		}
	}
}

// applyCalls call a function with their other arguments.
var applyCalls = scan.SetOf("preg_replace_callback array_map array_walk array_filter iterator_apply register_shutdown_function forward_static_call do.call Map lapply sapply vapply Reduce")

// feedCalls write to a program that was started.
var feedCalls = scan.SetOf("communicate write end puts sendline send sendLine print println write_all writelines")

// commonOrNamed is what a name does, or a byte that is no kind.
func commonOrNamed(name, lang string) byte {
	if k := sinkOf(name, lang); k != 0 {
		return k
	}
	return '-'
}

// textArguments are names of arguments whose value is what a call is about.
var textArguments = scan.SetOf("args command cmd popenargs path target src source text file name filename dir directory x code expr cmdline executable prog argv url")

// listInside gives what stands in a list that is written as a call or with a type:
// List.of("rm"), []string{"rm"}, vec!["rm"], &["rm"]; nil if it is none.
func listInside(part []inlineToken) []inlineToken {
	for i, t := range part[:min(len(part), 6)] {
		switch t.kind {
		case '[':
			if i > 0 && part[i-1].kind == 'i' { // an index
				return nil
			}
		}
		switch t.kind {
		case 'i':
			if !listNames[t.text[strings.LastIndexAny(t.text, ".:")+1:]] {
				return nil
			}
		case '&', '!', ']':
		case '(', '{', '[':
			shut := map[byte]byte{'(': ')', '{': '}', '[': ']'}[t.kind]
			end := closing(part, i, t.kind, shut)
			if end == i+1 { // []string
				continue
			}
			if i == 0 || end+1 != len(part) {
				return nil
			}
			return part[i+1 : end]
		default:
			return nil
		}
	}
	return nil
}

// listNames make or name the type of a list.
var listNames = scan.SetOf("of asList listOf arrayOf mutableListOf List Seq Array Vector c list vec tuple array string String str new OsString object arrayListOf Vec from")

// reflected: send(:system, "…") and call_user_func("system", "…") call what their
// first argument names; array_map("unlink", …) calls it for each of the rest.
func (r *inlineRun) reflected(name inlineToken, args []inlineToken) (inlineToken, []inlineToken, bool) {
	switch last := name.text[strings.LastIndexAny(name.text, ".:>")+1:]; last {
	case "apply":
		if parts := splitArguments(args); r.lang == "elixir" && len(parts) > 2 && len(parts[2]) > 2 { // apply(File, :rm_rf!, [x])
			name.text = strings.TrimPrefix(r.join(parts[0]).text, ".") + "." + strings.TrimLeft(parts[1][len(parts[1])-1].text, ":.")
			return name, parts[2][1 : len(parts[2])-1], true
		}
		fallthrough
	case "call": // execSync.call(null, "…"), Reflect.apply(execSync, null, ["…"])
		of := strings.TrimSuffix(name.text, "."+last)
		parts := splitArguments(args)
		if of == "Reflect" && len(parts) > 2 {
			of = parts[0][len(parts[0])-1].text
			args, parts = args[len(parts[0])+1:], parts[1:]
		}
		if k := sinkOf(of, r.lang); r.lang != "node" || k == 0 || len(parts) < 2 || len(parts[0])+1 > len(args) {
			return name, args, false
		}
		name.text = of
		return name, args[len(parts[0])+1:], true
	case "send", "public_send", "__send__", "call_user_func", "call_user_func_array", "array_map", "array_walk":
	default:
		return name, args, false
	}
	parts := splitArguments(args)
	if len(parts) == 0 || len(parts[0]) == 0 {
		return name, args, false
	}
	first := parts[0]
	called := strings.TrimPrefix(r.join(first).text, ":")
	r.built(name, first, called)
	if last := first[len(first)-1]; last.kind == 'i' && (called == "" || len(parts) > 1) { // :delete_all
		called = last.text
	}
	if len(parts) == 1 {
		if strings.HasSuffix(name.text, "send") { // User.send("delete_all")
			r.named(name.text[:strings.LastIndexAny(name.text, ".:")+1], called)
		}
		return name, args, false
	}
	name.text = name.text[:strings.LastIndexByte(name.text, '.')+1] + called
	return name, args[len(first)+1:], true
}

// built: the name of what is called is put together from pieces in a way that is not
// followed, which honest programs do not do.
func (r *inlineRun) built(name inlineToken, args []inlineToken, method string) {
	pieces := 0
	for _, t := range args {
		if t.kind == 's' {
			pieces++
		}
	}
	if pieces > 1 && (method == "" || strings.IndexByte(method, scan.Hole) >= 0) {
		r.sh.e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
	}
}

// named judges a method of a mapper whose name is computed, as if it were written out.
func (r *inlineRun) named(receiver, method string) {
	if method = strings.TrimPrefix(method, ":"); method == "" || strings.IndexByte(method, scan.Hole) >= 0 {
		return
	}
	src := *r.src
	src.span, _ = r.src.where(0, len(r.src.text))
	if receiver = strings.TrimRight(receiver, ".:"); receiver == "" {
		receiver = "Model" // what a call gave
	}
	src.text, src.at = receiver+"."+method+"()", -1
	r.sh.read("orm", &src, nil)
}

// pipeOpen: Perl's open runs a command whose text ends or begins with "|", or that
// follows the mode "-|" or "|-".
func (r *inlineRun) pipeOpen(args []inlineToken) {
	list := r.strings(args)
	if slices.ContainsFunc(list, func(t inlineToken) bool {
		return slices.Contains(r.sh.e.groups["shells"], scan.Base(strings.Trim(t.text, "| ")))
	}) {
		for _, t := range r.toks { // what is printed to a shell
			if t.kind == 's' && r.sh.e.actsText(t.text) {
				r.shellText(t)
			}
		}
	}
	for i, t := range list {
		if c := r.sh.e.classOf(r.word(t), r.sh.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
			r.secret = true
			r.run([]inlineToken{{text: "cat"}, t})
		}
		trimmed := strings.Trim(t.text, " ")
		switch {
		case (trimmed == "-|" || trimmed == "|-") && i+1 < len(list):
			r.shellText(list[i+1])
			return
		case (trimmed == ">" || trimmed == ">>" || trimmed == "+>") && i+1 < len(list):
			r.read(t, []inlineToken{list[i+1], {kind: 's', text: map[bool]string{true: "a", false: "w"}[trimmed == ">>"]}})
			return
		case len(trimmed) > 1 && trimmed[0] == '>':
			t.text, t.exact = strings.TrimLeft(trimmed, "> "), false
			r.read(t, []inlineToken{t, {kind: 's', text: "w"}})
		case len(trimmed) > 1 && (trimmed[0] == '|' || trimmed[len(trimmed)-1] == '|'):
			t.text, t.exact = strings.Trim(trimmed, "|"), false
			r.shellText(t)
			return
		}
	}
}

// octal is a mode written as a number: 0777, 0o777.
func octal(args []inlineToken) string {
	for _, t := range args {
		if digits := strings.TrimPrefix(strings.TrimPrefix(t.text, "0o"), "0"); t.kind == 'i' && (len(digits) == 3 || len(digits) == 4 && digits[0] < '8') && strings.Trim(digits, "01234567") == "" {
			return digits
		}
	}
	return ""
}

// formatted is Python's "…" % x and "…".format(x) with the strings put in, and Lua's
// table.concat({…}).
func formatted(args []inlineToken) (inlineToken, bool) {
	if len(args) > 3 && args[0].text == "table.concat" && args[2].kind == '{' { // Lua: the words of a table
		end := closing(args, 2, '{', '}')
		var words []string
		for _, t := range args[3:min(end, len(args))] {
			if t.kind == 's' {
				words = append(words, t.text)
			}
		}
		return inlineToken{kind: 's', text: strings.Join(words, " "), from: args[0].from, to: args[min(end, len(args)-1)].to}, len(words) > 0
	}
	if len(args) < 3 || args[0].kind != 's' {
		return inlineToken{}, false
	}
	mark := ""
	switch {
	case args[1].kind == '%':
		mark = "%s"
	case args[1].text == ".format":
		mark = "{}"
	default:
		return inlineToken{}, false
	}
	out := args[0]
	out.exact = false
	for _, t := range args[2:] {
		if t.kind == 's' {
			out.text = strings.Replace(out.text, mark, t.text, 1)
		}
	}
	out.text = strings.ReplaceAll(out.text, mark, string(scan.Hole))
	return out, true
}
