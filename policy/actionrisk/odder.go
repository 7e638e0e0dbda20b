package actionrisk

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// What runs by a detour that no text of a program shows: a file of a program that an
// interpreter is given, an editor that writes by itself, the rules of a firewall, a
// pipe that awk writes to.

// otherReading runs the words of a carrier as they stand if an option takes, or does
// not take, the next word otherwise than the tables say: the word that names a program
// tells.
func (sh *shell) otherReading(inner *shell, rest []Word, w *wrapper, v *invocation) {
	e := sh.e
	if len(rest) > 1 && !e.acts(rest[0].Text) && e.acts(rest[1].Text) && rest[1].Text[0] != '-' {
		before := slices.IndexFunc(v.argv, func(a Word) bool { return a.Text == rest[0].Text && a.Span == rest[0].Span })
		if before > 1 && strings.HasPrefix(v.argv[before-1].Text, "-") && v.argv[before-1].Text != "--" && !strings.Contains(v.argv[before-1].Text, "=") {
			inner.argv(rest[1:], w, v)
		}
	}
	for i := range v.opts {
		o := &v.opts[i]
		if len(o.name) != 2 || !o.given || !e.exeActs(o.value.Text) {
			continue
		}
		at := slices.IndexFunc(v.argv, func(a Word) bool { return a.Text == o.value.Text && a.Span == o.value.Span })
		if at > 0 && at+1 < len(v.argv) && v.argv[at+1].Text != rest[0].Text {
			inner.argv(v.argv[at:], w, v)
			return
		}
	}
}

// exeActs: rules judge the program itself, so that its name is no name of a user, a
// group or a file.
func (e *engine) exeActs(word string) bool {
	return e.exe[scan.Base(word)] && !slices.Contains(e.groups["subcommand-words"], word) && coreutils[scan.Base(word)]
}

// packedProgram runs a program that an interpreter is given as a file: java -jar
// bfg-1.14.0.jar, php wp-cli.phar, python3 /usr/bin/ansible.
func (sh *shell) packedProgram(v *invocation) (flow, bool) {
	at := 1
	if v.exe == "java" {
		if at = 1 + slices.IndexFunc(v.argv, func(w Word) bool { return w.Text == "-jar" }); at == 0 {
			return flow{}, false
		}
	} else if !slices.Contains(sh.e.groups["interpreters"], v.exe) {
		return flow{}, false
	}
	if at >= len(v.argv) || !v.argv[at].known() {
		return flow{}, false
	}
	name, ok := programOfFile(v.argv[at].Text)
	if _, own := sh.e.files[paths.FileKey(sh.cwd, v.argv[at].Text)]; !ok || own || !sh.e.acts(name) {
		return flow{}, false
	}
	words := slices.Clone(v.argv[at:])
	words[0].Text, words[0].At = name, -1
	return sh.argv(words, &wrapper{}, v), true
}

// programOfFile is the name of the program that such a file holds, without what says
// which release it is.
func programOfFile(file string) (string, bool) {
	name := scan.Base(file)
	stem, ok := name, strings.Contains(file, "bin/") && strings.IndexByte(name, '.') < 0
	for _, end := range [...]string{".jar", ".phar", ".pyz", ".pex"} {
		if s, cut := strings.CutSuffix(stem, end); cut {
			stem, ok = s, true
		}
	}
	if i := strings.IndexAny(stem, "0123456789"); i > 1 && stem[i-1] == '-' {
		stem = stem[:i-1]
	}
	for _, part := range [...]string{"-commandline", "-cli", "-all", "-standalone", "-core"} {
		stem = strings.TrimSuffix(stem, part)
	}
	return stem, ok && stem != ""
}

// personEditors are editors in which a person decides what is written; the rest of
// what an editor's variable may name writes by itself.
var personEditors = scan.SetOf("vim vi nvim nano emacs emacsclient code subl gedit hx helix micro kak joe pico mcedit ne jed mg zed mate idea atom kate kwrite mousepad vimr mvim gvim ed ex less more cat true false : echo code-insiders cursor windsurf pycharm webstorm sensible-editor editor select-editor notepad open xdg-open")

// edits runs the editor that a program starts on a file of its own, if that editor
// needs no person.
func (sh *shell) edits(file string, v *invocation) (flow, bool) {
	if file == "@operands" && len(v.operands) > 0 {
		file = v.operands[len(v.operands)-1].Text
	}
	for _, name := range [...]string{"SUDO_EDITOR", "SYSTEMD_EDITOR", "VISUAL", "EDITOR"} {
		editor := sh.variable(v, name)
		words := strings.Fields(editor.Text)
		if len(words) == 0 {
			continue
		}
		if personEditors[scan.Base(words[0])] && !strings.Contains(editor.Text, " -c") && !strings.Contains(editor.Text, " +") {
			return flow{}, false
		}
		editor.Text, editor.At = editor.Text+" "+scan.Quote(file), -1
		one := *v
		one.env = nil
		return sh.interpret("shell", editor, &one, name, nil), true
	}
	return flow{}, false
}

// listed runs a plain command with the words of a file of requirements.
func (sh *shell) listed(command []string, words []Word, v *invocation) {
	for _, w := range words {
		f := v.stdin
		if w.Text != "-" && w.Text != "/dev/stdin" {
			f = sh.e.readFile(sh, w)
		}
		if !f.known || !sh.e.budget.spend(1+len(f.word.Text)/16) {
			continue
		}
		var list []Word
		for line := range strings.Lines(f.word.Text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if line == "" || line[0] == '#' || len(list) >= scan.MaxLoop {
				continue
			}
			if line[0] != '-' {
				list = append(list, Word{Text: line, At: -1, Span: w.Span})
				continue
			}
			list = append(list, splitWords(Word{Text: line, Span: w.Span})...)
		}
		sh.plain(command, list, v)
	}
}

// runNft runs the lines of a rule set of nftables. One that empties the rules and then
// turns something away again is an ordinary reload.
func (e *engine) runNft(sh *shell, src *source) {
	reload := strings.Contains(src.text, "drop") || strings.Contains(src.text, "reject")
	e.eachLine(src.text, ";\n", func(from, to int) {
		line := strings.TrimSpace(src.text[from:to])
		if strings.HasPrefix(line, "flush ") && reload || !strings.HasPrefix(line, "flush ") && !strings.HasPrefix(line, "delete ") && !strings.HasPrefix(line, "destroy ") {
			return
		}
		e.carried(sh, src, from, to, "nft "+line, "nft")
	})
}

// opensFirewall: rules that are put in the place of all others let everything in.
func opensFirewall(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	in := v.stdin
	if len(v.operands) > 0 {
		in = e.files[paths.FileKey(v.cwd, v.operands[0].Text)]
		in.known = in.known || v.operands[0].Text == "/dev/null"
	}
	if !in.known || v.has("-n") || v.has("--noflush") || v.has("-t") || v.has("--test") {
		return Word{}, false
	}
	return in.word, !strings.Contains(in.word.Text, "DROP") && !strings.Contains(in.word.Text, "REJECT")
}

// shadowsProgram: a file from where everybody may write takes the place, or comes in
// front, of a program of another name.
func shadowsProgram(e *engine, it *item, _ []string) (Word, bool) {
	list := it.inv.operands
	if len(list) != 2 || !worldWritable(list[0].Text) {
		return Word{}, false
	}
	folder, name := path.Split(list[1].Text)
	return list[1], strings.HasSuffix(folder, "bin/") && name != "" && name != scan.Base(list[0].Text) && !e.stranger(name)
}

// startsShell: a multiplexer or a recorder that is given nothing to run runs a shell.
func startsShell(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.exe == "script" {
		return v.argv[0], len(v.operands) < 2
	}
	return v.argv[0], len(v.operands) == 0 || len(v.operands) == 1 && (v.operands[0].Text == "new" || v.operands[0].Text == "new-session")
}

// runM4 runs what the macros of m4 hand to the shell, without their quotes.
func (e *engine) runM4(sh *shell, src *source) {
	plain := *src
	plain.text, plain.at = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`[]", r) {
			return ' '
		}
		return r
	}, strings.ReplaceAll(src.text, "')", " )")), -1
	e.runMacros(sh, &plain, macro{"syscmd(", ")", "shell"})
}

// sendsSecret: a program text in a language without a scanner that names a credential
// and a function that sends.
func (e *engine) sendsSecret(src *source) {
	text := src.text
	secret := false
	for i := 0; i < len(text) && !secret; i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := closingQuote(text, i)
		if end < 0 {
			continue
		}
		value := text[i+1 : end]
		named := syntaxName(value) && value == strings.ToUpper(value) && secretName(value)
		file := strings.ContainsAny(value, "/~.") && !strings.Contains(value, "://") && paths.KindOfFile(value)&(paths.IsCredential|paths.IsPublic) == paths.IsCredential
		secret = named || file
		i = end
	}
	if i := strings.Index(text, "env("); i >= 0 && !secret { // Tcl
		name, _, ok := strings.Cut(text[i+len("env("):], ")")
		secret = ok && secretVariable(name)
	}
	if !secret {
		return
	}
	for _, name := range [...]string{"url-retrieve", "open-network-stream", "make-network-process", "request(", "http", "HTTP", "Http", "socket", "Socket", "download(", "fetch", "curl", "gen_tcp", "httpc"} {
		if strings.Contains(text, name) {
			e.raise("secret.exfil-network", src, 0, len(text), "")
			return
		}
	}
}

// arithmeticValue is the value of an expression of numbers.
func arithmeticValue(x syntax.ArithmExpr, depth int) (int64, bool) {
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return arithmeticValue(x.X, depth+1)
	case *syntax.Word:
		return shellNumber(x.Lit())
	case *syntax.BinaryArithm:
		if depth > scan.MaxDepth {
			return 0, false
		}
		a, okA := arithmeticValue(x.X, depth+1)
		b, okB := arithmeticValue(x.Y, depth+1)
		if !okA || !okB {
			return 0, false
		}
		return applied(x.Op, a, b)
	}
	return 0, false
}

// applied is one operation of the shell's arithmetic.
func applied(op syntax.BinAritOperator, a, b int64) (int64, bool) {
	switch op {
	case syntax.Add:
		return a + b, true
	case syntax.Sub:
		return a - b, true
	case syntax.Mul:
		return a * b, true
	case syntax.Quo:
		if b != 0 {
			return a / b, true
		}
	case syntax.Rem:
		if b != 0 {
			return a % b, true
		}
	case syntax.Shl:
		return a << min(max(b, 0), 63), b >= 0
	case syntax.Shr:
		return a >> min(max(b, 0), 63), b >= 0
	case syntax.Or:
		return a | b, true
	case syntax.And:
		return a & b, true
	case syntax.Xor:
		return a ^ b, true
	case syntax.Pow:
		out := int64(1)
		for range min(max(b, 0), 63) {
			out *= a
		}
		return out, b >= 0
	}
	return 0, false
}

// shellNumber reads 255, 0xff, 0377 and 16#ff.
func shellNumber(t string) (int64, bool) {
	if radix, digits, ok := strings.Cut(t, "#"); ok {
		base, err := strconv.Atoi(radix)
		if err != nil || base < 2 || base > 36 {
			return 0, false
		}
		n, err := strconv.ParseInt(digits, base, 64)
		return n, err == nil
	}
	n, err := strconv.ParseInt(t, 0, 64)
	return n, err == nil
}

// runsInput: the lines that a filter reads are run.
func (e *engine) runsInput(sh *shell, src *source, at int) {
	switch in := sh.carrier.stdin; {
	case in.known && in.word.Text != "":
		e.carried(sh, src, at, at+1, in.word.Text, "sed e")
	case in.taint&fromNetwork != 0:
		e.raise("rce.pipe-to-shell", src, at, at+1, "")
	case in.taint&(fromBuilt|fromStore|fromDecoder) != 0:
		e.raise("obf.dynamic-structure", src, at, at+1, "")
	}
}

// shows judges declare -p NAME and its kind, which print what a variable holds.
func (sh *shell) shows(c *syntax.DeclClause) {
	from, to := int(c.Pos().Offset()), int(c.End().Offset())
	words := []Word{{Text: c.Variant.Value, At: -1, Span: sh.spanOf(c)}}
	prints := false
	for _, a := range c.Args {
		switch {
		case a.Naked && a.Name != nil:
			words = append(words, Word{Text: a.Name.Value, At: -1, Span: sh.spanOf(c)})
		case a.Name == nil && a.Value != nil:
			w := sh.text(a.Value)
			prints = prints || strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "p")
			words = append(words, w)
		default:
			return
		}
	}
	if prints && sh.e.budget.spend(len(words)) {
		v := &invocation{exe: c.Variant.Value, argv: words, src: sh.src, remote: sh.remote, from: from, to: to}
		sh.e.parseArgs(v)
		sh.e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: from, to: to})
	}
}

// treeDeleters are functions of such languages that delete a folder and what is in it;
// those with a mark only if they are told so.
var treeDeleters = []string{"removeItem(", "rmtree(", "rm_rf(", "removeDirectoryRecursive", "removePathForcibly", "delete-directory", "deleteRecursively(", "delete_dir(", "rm(", "unlink("}

// deletesHome: the path that such a function is given is not written out but asked
// for, and is the home of the user.
func (e *engine) deletesHome(sh *shell, src *source) {
	for _, name := range treeDeleters {
		i := strings.Index(src.text, name)
		if i < 0 {
			continue
		}
		from := i + len(name)
		arg := strings.TrimLeft(src.text[from:], " (")
		if j := strings.IndexAny(arg, "\n;"); j >= 0 {
			arg = arg[:j]
		}
		l := strings.ToLower(arg)
		whole := strings.Contains(l, "homedir") || strings.Contains(l, "getenv(\"home") || strings.Contains(l, "env[\"home") || strings.Contains(l, "user.home")
		recurses := len(name) > len("unlink(") || strings.Contains(strings.ToLower(src.text), "recursive")
		if whole && recurses && strings.IndexByte(arg, '/') < 0 && !strings.Contains(l, "join") && !strings.Contains(l, "appending") {
			e.carried(sh, src, i, from, "rm -rf ~", strings.TrimRight(name, "("))
			return
		}
	}
}
