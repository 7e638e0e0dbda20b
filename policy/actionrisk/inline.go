package actionrisk

import (
	"slices"
	"strings"
)

// What a called name does, by its last part. The value says how its arguments
// are taken: 's' shell text, 'v' words of a command, 'd' deletes a tree,
// 'u' deletes a file, 'r' reads a file, 'e' evaluates text, 'q' SQL,
// 'n' deletes an index or a collection of a service, 'w' writes over a file, 'm'
// moves one, 'c' changes its mode, 'k' sends a signal.
var inlineSinks = map[string]byte{
	"system": 's', "popen": 's', "popen2": 's', "popen3": 's', "getoutput": 's', "getstatusoutput": 's', "shell_exec": 's', "passthru": 's', "proc_open": 's',
	"execSync": 's', "create_subprocess_shell": 's', "create_subprocess_exec": 'v', "check_output": 'v', "check_call": 'v', "Popen": 'v', "Command": 'v', "capture2": 'v', "capture2e": 'v', "capture3": 'v',
	"spawn": 'v', "spawnSync": 'v', "execFile": 'v', "execFileSync": 'v', "execvp": 'v', "execv": 'v', "execlp": 'v', "execl": 'v', "spawnlp": 'v',
	"rmtree": 'd', "rmSync": 'd', "rm_rf": 'd', "rm_r": 'd', "remove_dir": 'd', "remove_entry_secure": 'd', "remove_tree": 'd', "rimraf": 'd', "emptyDirSync": 'd', "removeSync": 'd', "rmdirSync": 'd', "removedirs": 'd', "remove_entry": 'd',
	"writeFileSync": 'w', "writeFile": 'w', "file_put_contents": 'w', "truncate": 'w', "truncateSync": 'w', "write_text": 'w', "write_bytes": 'w',
	"rename": 'm', "renameSync": 'm', "move": 'm', "chmod": 'c', "chmodSync": 'c', "lchmod": 'c', "kill": 'k', "killpg": 'k',
	"spawnv": 'v', "spawnvp": 'v', "spawnve": 'v', "spawnl": 'v', "posix_spawn": 'v', "posix_spawnp": 'v', "pcntl_exec": 'v', "execve": 'v', "execvpe": 'v', "execle": 'v', "execlpe": 'v',
	"unlink": 'u', "unlinkSync": 'u', "remove": 'u', "rm_f": 'u',
	"readfile": 'r', "fopen": 'r', "readFileSync": 'r', "readFile": 'r', "file_get_contents": 'r', "readlines": 'r', "read_text": 'r', "read_bytes": 'r', "open": 'r', "createReadStream": 'r',
	"eval": 'e', "exec": 'e', "Function": 'e', "assert": 'e', "instance_eval": 'e', "runInNewContext": 'e', "runInThisContext": 'e',
	"deleteIndex": 'n', "clearIndex": 'n', "clearObjects": 'n', "deleteAllDocuments": 'n', "deleteCollection": 'n', "delete_collection": 'n', "delete_index": 'n', "delete_all_documents": 'n', "delete_by_query": 'n', "deleteByQuery": 'n',
	"execute": 'q', "executescript": 'q', "query": 'q', "executeSql": 'q',
}

// sinkOf says what a call of a dotted name does.
func sinkOf(name, lang string) byte {
	i := strings.LastIndexAny(name, ".:")
	last := name[i+1:]
	first := strings.TrimSuffix(name[:max(i, 0)], ":")
	switch {
	case strings.HasPrefix(first, "subprocess") || first == "sp" && last == "run":
		return 'v'
	case (last == "run" || last == "call") && first == "" && i == 0 && lang == "python":
		return 'v' // a method of what a call gave, as __import__("subprocess").run
	case last == "run" || last == "call":
		return 0
	case (last == "rm" || last == "rmdir") && first == "" && i == 0 && lang == "node":
		return 'd'
	case last == "write" && (first == "File" || first == "IO"):
		return 'w'
	case (last == "rename" || last == "move" || last == "chmod" || last == "kill") && i >= 0 && first != "os" && first != "shutil" && first != "fs" && first != "File" && first != "Process" && first != "process" && first != "FileUtils" && first != "":
		return 0
	case last == "delete" && strings.HasSuffix(first, "indices"):
		return 'n'
	case last == "sh" && lang == "ruby" && i < 0: // of Rake
		return 's'
	case last == "execute" && lang == "lua":
		return 's'
	case last == "exec" && (strings.Contains(first, "child_process") || first == "cp" || lang == "node" && first == "" || strings.HasSuffix(first, "os")):
		return 's'
	case last == "exec" && (lang == "perl" || lang == "ruby" || lang == "php"):
		return 's'
	case last == "exec" && lang == "node":
		return 0 // a regular expression or a query
	case last == "rm" && (strings.Contains(first, "fs") || strings.HasSuffix(first, "promises")), last == "rmdir" && strings.Contains(first, "fs"), last == "rm" && first == "FileUtils":
		return 'd'
	case last == "delete" && (first == "File" || first == "Dir"), last == "unlink" && lang == "perl":
		return 'u'
	case last == "read" && (first == "File" || first == "IO"):
		return 'r'
	case last == "spawn" && first == "pty":
		return 'v'
	case last == "open" && lang == "ruby" && first == "", last == "remove" && !strings.HasSuffix(first, "os"):
		return 0
	}
	return inlineSinks[last]
}

// inlineRun is the state of one program text.
type inlineRun struct {
	sh      *shell
	src     *source
	lang    string
	toks    []inlineToken
	vars    map[string]inlineToken
	each    map[string][]inlineToken // the strings a loop's variable goes through
	names   map[string]string        // other names that the text gives to functions
	secret  bool                     // reads credentials
	billing byte                     // 0: not looked yet, 1: uses no payment service, 2: uses one
	mongo   bool                     // the text is for MongoDB's shell
}

// runInline looks for calls that run, delete, read or send in a program text of
// another language. What stands in strings, comments and logs is a mention.
func (e *engine) runInline(sh *shell, src *source, lang string) {
	e.unproven = true
	if src.depth > maxDepth || len(src.text) > maxText {
		e.tooDeep = true
		return
	}
	if e.runOddLanguage(sh, src, lang) {
		return
	}
	mongo := lang == "mongo"
	if mongo {
		lang = "node"
	}
	inner := *sh
	inner.src = src
	r := &inlineRun{sh: &inner, src: src, lang: lang, mongo: mongo, toks: scanInline(src.text, lang, &e.budget), vars: map[string]inlineToken{}}
	for i := range r.toks {
		r.loops(i)
	}
	for i := range r.toks {
		r.tagged(i)
		r.look(i)
	}
	r.whole()
	r.showsSecrets()
	r.libraries()
	r.wallets()
	if lang == "awk" && len(e.findings) == 0 && !strings.Contains(src.text, "system") && !strings.Contains(src.text, "|") && !strings.Contains(src.text, ">") {
		e.unproven = false
	}
}

// loops notes the strings that a variable goes through: for c in [...], for (const c
// of [...]), [...].forEach(c => …), %w[...].each { |c| … }, foreach ([...] as $c).
func (r *inlineRun) loops(i int) {
	if r.toks[i].kind != '[' {
		return
	}
	end := closing(r.toks, i, '[', ']')
	if end >= len(r.toks) {
		return
	}
	var list []inlineToken
	for _, t := range r.toks[i+1 : end] {
		switch {
		case t.kind == 's':
			list = append(list, t)
		case t.kind != ',':
			return
		}
	}
	name := ""
	if i > 1 && (r.toks[i-1].text == "in" || r.toks[i-1].text == "of") {
		name = r.toks[i-2].text
	}
	if end+1 < len(r.toks) {
		after := r.toks[end+1].text
		for j := end + 2; j < min(end+5, len(r.toks)) && name == "" && (after == ".forEach" || after == ".map" || after == ".each" || after == "as"); j++ {
			if r.toks[j].kind == 'i' {
				name = r.toks[j].text
			}
		}
	}
	if name == "" || len(list) == 0 || len(list) > maxLoop {
		return
	}
	if r.each == nil {
		r.each = map[string][]inlineToken{}
	}
	r.each[name] = list
}

// look judges what begins at token i.
func (r *inlineRun) look(i int) {
	t := r.toks[i]
	next := func(n int) inlineToken {
		if i+n < len(r.toks) {
			return r.toks[i+n]
		}
		return inlineToken{}
	}
	switch {
	case t.kind == 'x', t.kind == 's' && i > 0 && r.toks[i-1].kind == 'i' && strings.HasSuffix(r.toks[i-1].text, "$") && r.lang == "node":
		r.shellText(t)
	case t.kind == 'i' && t.text == "import" && next(2).text == "as":
		r.rename(next(3).text, next(1).text)
	case t.kind == 'i' && t.text == "from" && next(2).text == "import":
		r.imports(next(1).text, i+3)
	case t.kind == '[':
		r.indexed(i)
	case t.kind == 'i' && next(1).kind == '=' && (next(2).text == "require" || next(2).text == "__import__" || strings.HasSuffix(next(2).text, "import_module")) && next(3).kind == '(':
		r.rename(t.text, strings.TrimPrefix(r.join(r.arguments(i+3)).text, "node:"))
	case t.kind == 'i' && t.text == "getattr" && next(1).kind == '(':
		r.computed(i)
	case t.kind == 'i' && (t.text == "method" || t.text == "require") && next(1).kind == '(' && r.applied(i):
	case r.lang == "awk" && t.kind == 's' && next(1).kind == '|':
		r.shellText(t)
	case r.lang == "awk" && t.kind == '>' && next(1).kind == 's':
		r.read(t, []inlineToken{next(1), {kind: 's', text: "w"}})
	case r.lang == "awk" && t.kind == '|' && next(1).kind == 's':
		r.awkPipe(i)
	case t.kind == 'i' && next(2).kind == 'i' && (next(1).kind == ':' || next(1).text == "as") && sinkOf(t.text, r.lang) != 0:
		r.rename(next(2).text, t.text)
	case t.kind == 'i' && next(1).kind == '=' && next(2).kind == 'i':
		for j := i + 2; j < min(i+12, len(r.toks)) && r.toks[j].kind != ';'; j++ {
			if s := r.toks[j]; s.kind == 'i' && sinkOf(s.text, r.lang) != 0 && (j+1 == len(r.toks) || r.toks[j+1].kind != '(') {
				r.rename(t.text, s.text)
			}
		}
		if v, _, ok := r.value(r.toks[:r.statement(i)], i+2); ok && v.text != "" || next(2).text == "array" {
			r.assign(i, t)
		}
	case t.kind == 'i' && next(1).kind == '=' && (next(2).kind == 's' || next(2).kind == '[' || next(2).kind == '(' && r.lang == "perl" || next(2).kind == '{' && r.lang == "lua"):
		r.assign(i, t)
	case t.kind == 'i' && next(1).kind == '(':
		r.call(t, r.arguments(i+1))
	case t.kind == 'i' && t.text == "open" && r.lang == "perl" && next(1).kind != '(':
		r.pipeOpen(r.toks[i+1 : max(r.statement(i), i+1)])
	case t.kind == 'i' && (r.lang == "perl" || r.lang == "ruby" || r.lang == "awk") && (next(1).kind == 's' || next(1).kind == 'i' || next(1).kind == '[' && r.lang == "ruby"):
		if k := sinkOf(t.text, r.lang); k != 0 && k != 'r' || strings.Contains(t.text, ".") && r.usesService() {
			end := i + 1
			for end < len(r.toks) && r.toks[end].kind != ';' && r.toks[end].kind != '}' {
				end++
			}
			r.call(t, r.toks[i+1:end])
		}
	}
}

// assign notes the text that a variable is given at token i.
func (r *inlineRun) assign(i int, t inlineToken) {
	toks := r.toks[i+2 : max(r.statement(i), i+2)]
	if list := len(toks) > 1 && (toks[0].kind == '[' || toks[0].text == "array" && toks[1].kind == '(' || r.lang == "perl" && toks[0].kind == '(' || r.lang == "lua" && toks[0].kind == '{'); list {
		if _, _, ok := r.value(toks, 0); !ok {
			at := slices.IndexFunc(toks, func(t inlineToken) bool { return t.kind == '[' || t.kind == '(' || t.kind == '{' })
			shut := map[byte]byte{'[': ']', '(': ')', '{': '}'}[toks[at].kind]
			end := max(min(closing(toks, at, toks[at].kind, shut), len(toks)), at+1)
			if words := r.strings(toks[at+1 : end]); len(words) > 0 {
				v := r.listed(words, " ", t)
				v.list = true
				r.vars[strings.TrimLeft(t.text, "$@")] = v
			}
			return
		}
	}
	if v := r.join(toks); v.to > 0 {
		r.vars[strings.TrimLeft(t.text, "$@")] = v
	}
}

// imports: "from subprocess import run, call as c".
func (r *inlineRun) imports(module string, i int) {
	for ; i < len(r.toks) && r.toks[i].kind == 'i'; i++ {
		name := r.toks[i].text
		if i+2 < len(r.toks) && r.toks[i+1].text == "as" {
			i += 2
		}
		r.rename(r.toks[i].text, module+"."+name)
		if i+1 >= len(r.toks) || r.toks[i+1].kind != ',' {
			return
		}
		i++
	}
}

// computed: getattr(os, "sys"+"tem")("…") calls what its string names.
func (r *inlineRun) computed(i int) {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	comma := slices.IndexFunc(args, func(t inlineToken) bool { return t.kind == ',' })
	if comma < 0 || end+1 >= len(r.toks) {
		return
	}
	name := r.toks[i]
	if next := r.toks[end+1]; next.kind == 'i' && strings.HasPrefix(next.text, ".") && end+2 < len(r.toks) && r.toks[end+2].kind == '(' { // getattr(stripe, "Pay"+"out").create(…)
		name.text, name.from = r.join(args[:comma]).text+"."+r.join(args[comma+1:]).text+next.text, next.from
		r.money(name, r.arguments(end+2), true)
		return
	}
	if r.toks[end+1].kind != '(' {
		return
	}
	name.text, name.computed = "os."+r.join(args[comma+1:]).text, true
	r.call(name, r.arguments(end+1))
}

// applied: method(:system).call("…") and require("rimraf")("…").
func (r *inlineRun) applied(i int) bool {
	args := r.arguments(i + 1)
	end := i + 2 + len(args)
	if len(args) == 0 || end+1 >= len(r.toks) {
		return false
	}
	if r.toks[end+1].kind == 'i' && strings.HasSuffix(r.toks[end+1].text, "call") {
		end++
	}
	name := r.toks[i]
	name.text = strings.TrimPrefix(args[len(args)-1].text, ":")
	if end+1 >= len(r.toks) || r.toks[end+1].kind != '(' || sinkOf(name.text, r.lang) == 0 {
		return false
	}
	r.call(name, r.arguments(end+1))
	return true
}

// rename notes that the text calls a function by another name.
func (r *inlineRun) rename(to, from string) {
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[to] = from
}

// arguments are the tokens between the brackets that open at i.
func (r *inlineRun) arguments(i int) []inlineToken {
	depth := 0
	for j := i; j < len(r.toks); j++ {
		switch r.toks[j].kind {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return r.toks[i+1 : j]
			}
		}
	}
	return r.toks[i+1:]
}

// isPrefix: letters before a Python string say how it is written.
func isPrefix(s string) bool {
	return len(s) <= 2 && strings.Trim(strings.ToLower(s), "rbfu") == ""
}

// word makes a Word of a string token.
func (r *inlineRun) word(t inlineToken) Word {
	span, _ := r.src.where(t.from, t.to)
	w := Word{Text: t.text, Span: span, At: -1, Glob: strings.ContainsAny(t.text, "*?")}
	if t.exact && r.src.at >= 0 {
		w.At = span.Start
	}
	w.Lone = t.text == string(hole)
	if w.Lone {
		w.Var = "code"
	}
	return w
}

func (r *inlineRun) shellText(t inlineToken) {
	r.feedsClient(t.text)
	r.sh.interpret("shell", r.word(t), &invocation{exe: r.lang, src: r.src, from: t.from, to: t.to, stdin: flow{known: true}}, r.lang, nil)
}

// strings are the string arguments, those of lists one by one, up to 64.
func (r *inlineRun) strings(args []inlineToken) []inlineToken {
	var out []inlineToken
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
		if len(part) > 3 && part[0].kind == '{' && part[1].text == "args" && part[3].kind == '[' { // {args: ["-rf"]}
			part = part[3:]
		}
		if len(part) > 0 {
			if t, _, ok := r.value(part, 0); !ok && part[0].kind == '[' && len(part) < len(args)+1 {
				out = append(out, r.strings(part[1:min(closing(part, 0, '[', ']'), len(part))])...)
			} else if !ok || t.kind != 0 {
				if t = r.join(part); t.to > 0 {
					out = append(out, t)
				}
			}
		}
		start = i + 1
	}
	return out
}

// call judges one call.
func (r *inlineRun) call(name inlineToken, args []inlineToken) {
	if other, ok := r.names[name.text]; ok {
		name.text = other
	} else if first, rest, ok := strings.Cut(name.text, "."); ok && r.names[first] != "" {
		name.text = r.names[first] + "." + rest
	}
	if v, ok := r.vars[strings.TrimLeft(name.text, "$")]; ok && strings.HasPrefix(name.text, "$") {
		name.text = v.text // PHP calls what a variable names
	}
	if len(args) == 1 && args[0].kind == 'i' && r.each[args[0].text] != nil && sinkOf(name.text, r.lang) != 0 {
		list := r.each[args[0].text]
		delete(r.each, args[0].text)
		for _, t := range list {
			r.call(name, []inlineToken{t})
		}
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
			return strings.Trim(t.text, string(hole)) == ""
		})
		if len(list) > 0 {
			r.run(append([]inlineToken{{text: "redis-cli"}}, list...))
		}
		return
	}
	if r.database(name, args) {
		return
	}
	kind := sinkOf(name.text, r.lang)
	if kind == 0 {
		return
	}
	if kind == 'n' {
		r.sh.e.raise("nosql.index-delete", r.src, name.from, name.to, "")
		return
	}
	list := r.strings(args)
	if len(list) == 0 {
		if len(args) == 0 {
			if kind == 'u' || kind == 'd' {
				r.sweep()
			}
			return
		}
		list = []inlineToken{{kind: 's', text: string(hole), from: args[0].from, to: args[0].to}}
	}
	e := r.sh.e
	if text, ok := formatted(args); ok && kind == 's' {
		list = []inlineToken{text}
	}
	if kind == 'v' && len(list) > 1 && list[0].text == string(hole) && strings.Contains(name.text, "spawn") {
		list = list[1:] // the mode
	}
	switch kind {
	case 's', 'v':
		if decodes(args) {
			e.raise("obf.decode-exec", r.src, name.from, name.to, "")
		}
		if strings.IndexByte(list[0].text, ' ') >= 0 || len(list) == 1 || args[0].kind == 's' && kind == 's' && r.lang != "perl" && r.lang != "ruby" {
			if list[0].text == string(hole) {
				if r.lang == "awk" || r.fromInput() {
					e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
				}
				e.doubt("a program text runs a command that is not known")
				return
			}
			r.shellText(list[0])
			return
		}
		r.run(list)
	case 'd':
		r.run(append([]inlineToken{{text: "rm"}, {text: "-rf"}}, list[0]))
	case 'w':
		if list[0].text != string(hole) {
			r.read(name, []inlineToken{list[0], {kind: 's', text: "w"}})
		}
	case 'm':
		if len(list) > 1 {
			r.run(append([]inlineToken{{text: "mv"}}, list[:2]...))
		}
	case 'c':
		if mode := octal(args); mode != "" {
			r.run([]inlineToken{{text: "chmod"}, {text: mode}, list[len(list)-1]})
			r.run([]inlineToken{{text: "chmod"}, {text: mode}, list[0]})
		}
	case 'k':
		for j, t := range args {
			if t.kind == '-' && j+1 < len(args) && args[j+1].text == "1" {
				r.run([]inlineToken{{text: "kill"}, {text: "-9"}, {text: "-1", from: t.from, to: t.to}})
			}
		}
	case 'u':
		if strings.IndexByte(list[0].text, hole) >= 0 {
			r.sweep()
		}
		r.run(append([]inlineToken{{text: "rm"}}, list[0]))
	case 'r':
		r.read(name, list)
	case 'e':
		r.evaluate(name, args, list)
	case 'q':
		if sql := list[0].text; looksSQL(sql) {
			w := r.word(list[0])
			src := r.src.inside(w, r.lang)
			e.runSQL(&src, nil)
		}
	}
}

// reflected: send(:system, "…") and call_user_func("system", "…") call what their
// first argument names; array_map("unlink", …) calls it for each of the rest.
func (r *inlineRun) reflected(name inlineToken, args []inlineToken) (inlineToken, []inlineToken, bool) {
	switch name.text[strings.LastIndexAny(name.text, ".:>")+1:] {
	case "send", "public_send", "__send__", "call_user_func", "call_user_func_array", "array_map", "array_walk":
	default:
		return name, args, false
	}
	comma := slices.IndexFunc(args, func(t inlineToken) bool { return t.kind == ',' })
	if comma < 1 {
		return name, args, false
	}
	name.text = strings.TrimPrefix(args[comma-1].text, ":")
	return name, args[comma+1:], true
}

// pipeOpen: Perl's open runs a command whose text ends or begins with "|", or that
// follows the mode "-|" or "|-".
func (r *inlineRun) pipeOpen(args []inlineToken) {
	list := r.strings(args)
	if slices.ContainsFunc(list, func(t inlineToken) bool {
		return slices.Contains(r.sh.e.groups["shells"], base(strings.Trim(t.text, "| ")))
	}) {
		for _, t := range r.toks { // what is printed to a shell
			if t.kind == 's' && r.sh.e.actsText(t.text) {
				r.shellText(t)
			}
		}
	}
	for i, t := range list {
		if c := r.sh.e.classOf(r.word(t), r.sh.cwd); c&isCredential != 0 && c&isPublic == 0 {
			r.secret = true
			r.run([]inlineToken{{text: "cat"}, t})
		}
		trimmed := strings.Trim(t.text, " ")
		switch {
		case (trimmed == "-|" || trimmed == "|-") && i+1 < len(list):
			r.shellText(list[i+1])
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
	out.text = strings.ReplaceAll(out.text, mark, string(hole))
	return out, true
}

// fromInput: the text reads its input, its arguments or its environment.
func (r *inlineRun) fromInput() bool {
	for _, t := range r.toks {
		if t.kind == 'i' {
			for _, n := range [...]string{"sys.stdin", "sys.argv", "input", "process.argv", "process.stdin", "ARGV", "ARGF", "STDIN", "gets", "$argv", "$_GET", "os.environ", "process.env"} {
				if t.text == n || strings.HasPrefix(t.text, n+".") || strings.HasPrefix(t.text, "$"+n) {
					return true
				}
			}
		}
	}
	return false
}

// run judges words as a command.
func (r *inlineRun) run(list []inlineToken) {
	r.feedsClient(r.listed(list, " ", list[0]).text)
	v := &invocation{src: r.src, from: list[len(list)-1].from, to: list[len(list)-1].to, stdin: flow{known: true}}
	for _, t := range list {
		w := r.word(t)
		if t.to == 0 {
			w.Span, w.At = r.src.span, -1
		}
		v.argv = append(v.argv, w)
	}
	src := *r.src
	src.via = append(slices.Clip(src.via), r.lang)
	src.depth++
	v.src = &src
	inner := *r.sh
	inner.src = &src
	inner.run(v)
}

// sweep: files of a listed folder are deleted one by one; the folder is what
// matters.
func (r *inlineRun) sweep() {
	for _, t := range r.toks { // a filter: not the folder as a whole
		for _, n := range [...]string{"endswith", "fnmatch", "endsWith", "end_with?", ".suffix", "startswith", ".match", "extname"} {
			if t.kind == 'i' && strings.HasSuffix(t.text, n) {
				return
			}
		}
	}
	for i, t := range r.toks {
		if t.kind != 'i' || i+2 >= len(r.toks) || r.toks[i+1].kind != '(' || r.toks[i+2].kind != 's' {
			continue
		}
		for _, n := range [...]string{"listdir", "glob", "walk", "readdir", "iterdir", "foreach", "each_child", "opendir", "rglob", "scandir", "Path", "Pathname.new", "Path.new", "Dir.new", "entries", "children", "readdirSync"} {
			if strings.HasSuffix(t.text, n) {
				r.run([]inlineToken{{text: "rm"}, {text: "-rf"}, r.toks[i+2]})
				return
			}
		}
	}
}

// read judges a file that is opened: for writing as a redirection, else as cat.
func (r *inlineRun) read(name inlineToken, list []inlineToken) {
	e := r.sh.e
	w := r.word(list[0])
	if len(list) > 1 && len(list[1].text) <= 3 && strings.ContainsAny(list[1].text, "wa") && strings.Trim(list[1].text, "wabt+x") == "" {
		op := ">"
		if strings.ContainsRune(list[1].text, 'a') {
			op = ">>"
		}
		v := &invocation{exe: op, operands: []Word{w}, argv: []Word{{Text: op}, w}, after: -1, cwd: r.sh.cwd, src: r.src, from: name.from, to: list[0].to, stdin: flow{taint: fromStdin}}
		e.match(&item{kind: kindRedir, name: op, inv: v, src: r.src, from: name.from, to: list[0].to})
		return
	}
	if c := e.classOf(w, r.sh.cwd); c&isCredential != 0 && c&isPublic == 0 {
		r.secret = true
		r.run([]inlineToken{{text: "cat"}, list[0]})
	}
}

var decoderNames = []string{"b64decode", "atob", "unhexlify", "fromhex", "decompress", "base64_decode", "decode64", "decode_base64", "unpack", "codecs.decode", "marshal.loads", "rot13", "a85decode", "b32decode"}
var fetchNames = []string{"urlopen", "requests.get", "fetch(", "http.get", "https.get", "axios", "URI.open", "Net::HTTP", "LWP", "file_get_contents('http", "file_get_contents(\"http", "urllib", "http.client", "open-uri", "curl_exec"}

// evaluate judges text that is run as a program: decoded literals are looked
// into, anything else that is decoded or downloaded is a finding of its own.
func (r *inlineRun) evaluate(name inlineToken, args, list []inlineToken) {
	e := r.sh.e
	if strings.HasSuffix(name.text, "Function") && len(list) > 1 { // the names of its parameters stand first
		list = list[len(list)-1:]
	}
	decodes, fetches, literal := false, false, ""
	for _, t := range args {
		if t.kind == 'i' {
			decodes = decodes || slices.ContainsFunc(decoderNames, func(d string) bool { return strings.Contains(t.text, d) }) || strings.HasSuffix(t.text, "Buffer.from")
			fetches = fetches || slices.ContainsFunc(fetchNames, func(d string) bool { return strings.Contains(t.text+"(", d) })
		}
		if t.kind == 's' && len(t.text) > len(literal) {
			literal = t.text
		}
	}
	if strings.HasPrefix(literal, "http://") || strings.HasPrefix(literal, "https://") || strings.HasPrefix(literal, "ftp://") {
		fetches = true // whatever the function is called, it gets its text from there
	}
	if decodes || fetches {
		e.raise("rce.inline-exec", r.src, name.from, name.to, "")
	}
	if !decodes && !fetches && literal == "" && r.fromInput() {
		e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
		return
	}
	text := literal
	if len(list) > 0 && strings.IndexByte(list[0].text, hole) < 0 && list[0].text != literal {
		text = list[0].text
	} else if decodes {
		var ok bool
		if text, ok = decode64(literal); !ok {
			text, ok = decodeHex(literal)
		}
		if !ok || len(text) > maxDecoded || e.decoded+len(text) > maxDecodedTotal {
			return
		}
		e.decoded += len(text)
	} else if len(list) != 1 || list[0].text != literal {
		return
	}
	w := r.word(list[0])
	w.Text, w.At = text, -1
	src := r.src.inside(w, r.lang+" "+name.text)
	src.layers++
	switch {
	case src.layers > maxLayers:
	case r.mongo:
		e.runStore(r.sh, &src, "mongo", nil)
	default:
		e.runInline(r.sh, &src, r.lang)
	}
}

// whole looks at the text as a whole: a socket joined to a shell, credentials
// read and something sent.
func (r *inlineRun) whole() {
	e := r.sh.e
	names := func(list ...string) bool {
		for _, t := range r.toks {
			if t.kind != 'i' {
				continue
			}
			for _, n := range list {
				if strings.Contains(t.text, n) {
					return true
				}
			}
		}
		return false
	}
	if forks := func(t inlineToken) bool {
		return t.kind == 'i' && (t.text == "fork" || strings.HasSuffix(t.text, ".fork") || t.text == "pcntl_fork")
	}; slices.ContainsFunc(r.toks, forks) && slices.ContainsFunc(r.toks, func(t inlineToken) bool {
		return t.kind == 'i' && (t.text == "while" || t.text == "loop" || t.text == "until" || t.text == "for")
	}) && !names("wait") {
		e.raise("shell.proc.fork-bomb", r.src, 0, len(r.src.text), "")
	}
	shell := slices.ContainsFunc(r.toks, func(t inlineToken) bool {
		return t.kind == 's' && (strings.Contains(t.text, "/bin/sh") || strings.Contains(t.text, "/bin/bash") || t.text == "sh" || t.text == "bash" || strings.HasPrefix(t.text, "cmd.exe"))
	})
	for i, t := range r.toks {
		last := i+1 == len(r.toks) || r.toks[i+1].kind != '('
		if t.kind == 'i' && (t.text == "eval" || t.text == "Function") && last && i > 0 && r.toks[i-1].kind == '(' && names("fetch", "https.get", "http.get", "axios", "urlopen") {
			e.raise("rce.inline-exec", r.src, t.from, t.to, "")
		}
	}
	if shell && names("connect", "fsockopen", "TCPSocket", "Socket", "net.") && names("dup2", "pty", "spawn", "exec", "open", "proc_open", "pipe", "popen", "subprocess", "reopen") {
		e.raise("rce.inline-reverse-shell", r.src, 0, len(r.src.text), "")
	}
	if names("TCPSocket", "create_connection", "fsockopen", "IO::Socket", "socket.socket", "net.connect") && names("gets", "recv", "fgets", "readline") && names("popen", "system", "check_output", "getoutput", "shell_exec", "execSync", "proc_open") {
		e.raise("rce.inline-reverse-shell", r.src, 0, len(r.src.text), "") // runs what the other end sends
	}
	if (r.secret || r.wholeEnvironment()) && names("urlopen", "requests.post", "requests.get", "requests.put", "fetch", "http.request", "https.request", "axios", "Net::HTTP", "sendall", "curl_exec", "sendto", "smtplib", "LWP", "HTTP::Tiny", "IO::Socket", "create_connection", "httpx", "TCPSocket", "fsockopen", "createConnection", "Faraday", "RestClient") {
		e.raise("secret.exfil-network", r.src, 0, len(r.src.text), "")
	}
}

// wholeEnvironment: all variables at once are taken, not one by its name.
func (r *inlineRun) wholeEnvironment() bool {
	for i, t := range r.toks {
		if t.kind == 'i' && (t.text == "os.environ" || t.text == "process.env" || t.text == "ENV.to_h" || t.text == "ENV.to_a" || t.text == "$_ENV" || t.text == "%ENV" || t.text == "os.environ.copy" || t.text == "os.environ.items") && (i+1 == len(r.toks) || r.toks[i+1].kind != '[') {
			return true
		}
	}
	return false
}

// carried interprets text[from:to] of a source as shell.
func (e *engine) carried(sh *shell, src *source, from, to int, text, via string) {
	span, _ := src.where(from, to)
	w := Word{Text: text, Span: span, At: -1}
	if src.at >= 0 && text == src.text[from:to] {
		w.At = span.Start
	}
	inner := *sh
	inner.src = src
	inner.interpret("shell", w, &invocation{exe: via, src: src, from: from, to: to, stdin: flow{known: true}}, via, nil)
}

// runSed looks for the two ways in which sed runs commands: "1e command" and
// the flag e of s.
func (e *engine) runSed(sh *shell, src *source) {
	e.unproven = e.unproven && strings.ContainsAny(src.text, "ew")
	text := src.text
	for at := 0; at < len(text); {
		end := at + strings.IndexAny(text[at:]+";", ";\n")
		line := strings.TrimLeft(text[at:min(end, len(text))], "0123456789$, \t!{")
		from := min(end, len(text)) - len(line)
		switch {
		case line == "e" && sh.carrier != nil: // runs what it reads
			e.runsInput(sh, src, from)
		case strings.HasPrefix(line, "e "):
			e.carried(sh, src, from+2, min(end, len(text)), line[2:], "sed e")
		case len(line) > 3 && line[0] == 's' && !isNameByte(line[1]) && line[1] != ' ':
			parts := strings.Split(strings.ReplaceAll(line, "\\"+line[1:2], "\x01"), line[1:2])
			if len(parts) == 4 && strings.ContainsRune(parts[3], 'e') && strings.Trim(parts[3], "egiIpmM0123456789") == "" {
				e.carried(sh, src, from, min(end, len(text)), strings.ReplaceAll(strings.ReplaceAll(parts[2], "&", string(hole)), "\x01", line[1:2]), "sed s///e")
			}
		}
		at = end + 1
	}
}
