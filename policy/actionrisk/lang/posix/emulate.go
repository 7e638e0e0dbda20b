package posix

import (
	"cmp"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// emulate returns the exact output of commands that only copy or change text. It returns false for
// other commands.
func emulate(e *interp.Env, sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	if f := e.TextFunction("posix", v.Exe); f != nil && (f.Options == nil || slices.ContainsFunc(f.Options, v.Has)) {
		return decode(e, sh, v, f.Does)
	}
	if out, ok, is := movesText(e, sh, v); is {
		return out, ok
	}
	if out, ok := tellsText(sh, v); ok {
		return out, true
	}
	return filter(e, sh, v)
}

// movesText handles commands whose output is their input, or files, in another form. ok reports
// whether the output is known. The third result reports whether the command is one of these.
func movesText(e *interp.Env, sh *interp.Process, v *act.Invocation) (out act.Flow, ok, is bool) {
	switch v.Exe {
	case "xargs": // prints its words on one line
		out, ok = v.Stdin, v.Stdin.Known && len(v.Operands) == 0
		out.Word.Text, out.Word.At = strings.Join(strings.Fields(out.Word.Text), " "), -1
		return out, ok, ok
	case "cat", "tac":
		return cat(e, sh, v), true, true
	case "tee":
		for _, w := range v.Operands {
			e.Remember(sh, w, v.Stdin, v.Has("-a"))
		}
		return v.Stdin, true, true
	case "gunzip", "zcat", "uudecode":
		return unpacked(v), v.Stdin.Taint != 0, true
	case "gzip", "bzip2", "xz":
		return unpacked(v), v.Stdin.Taint != 0, v.Has("-d")
	case "envsubst":
		return substituted(sh, v), v.Stdin.Word.Text != "", true
	case "tr":
		out, ok = translate(e, sh, v)
		return out, ok, true
	case "basename", "dirname", "realpath", "readlink":
		out, ok = pathPart(v)
		return out, ok, true
	case "tar", "gtar", "bsdtar":
		is = archive(e, sh, v)
		return act.Flow{Known: true}, is, is
	}
	return act.Flow{}, false, false
}

// quietCommands lists commands that print nothing.
var quietCommands = scan.SetOf("true false : sleep wait cd test [")

// tellsText handles commands whose output follows from their arguments, commands without output,
// and searches, whose output becomes a pattern.
func tellsText(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	switch v.Exe {
	case "yes":
		if len(v.Argv) == 1 {
			return printsText(v, "y"), true
		}
		return echo(v), true
	case "echo":
		return echo(v), true
	case "printf":
		return printf(v), true
	case "cast":
		n, ok := largestNumber(v)
		return printsText(v, n), ok
	case "find", "fd", "fdfind", "ls":
		return listing(v), true
	case "pwd":
		return printsText(v, cmp.Or(sh.Cwd, ".")), true
	case "pgrep": // a pattern for all processes; kill -1 reaches the same ones
		return printsText(v, "-1"), strings.Trim(v.Operand(0), ".*") == ""
	case "mktemp":
		return printsText(v, "/tmp/tmp.file"), true
	case "which", "command", "type":
		if len(v.Operands) == 1 {
			return act.Flow{Known: true, Word: v.Operands[0]}, true
		}
		return act.Flow{}, false
	case "git":
		return printsText(v, "."), v.UnderAny([]string{"rev-parse"}) && v.Has("--show-toplevel")
	}
	return act.Flow{Known: true}, quietCommands.Has(v.Exe)
}

// standardOutput reports whether the file name means the standard output.
func standardOutput(name string) bool {
	return name == "-" || name == "/dev/stdout" || name == "/dev/fd/1"
}

// printsText returns the output of a call that prints the text.
func printsText(v *act.Invocation, text string) act.Flow {
	return act.Flow{Known: true, Word: act.Word{Text: text, At: -1, Span: v.Argv[0].Span}}
}

// unpacked returns the output of a decompression program. It keeps the taint of the input, and
// counts one more encoding if the input was decoded.
func unpacked(v *act.Invocation) act.Flow {
	f := v.Stdin
	f.Known = false
	if f.Taint&act.FromDecoder != 0 {
		f.Layer++
	}
	return f
}

// archive records the archive file that tar writes, with the taints of its operands. If the file
// is a descriptor, it uses the file that is open there. It returns false if tar does something
// else.
func archive(e *interp.Env, sh *interp.Process, v *act.Invocation) bool {
	file, ok := v.Value("-f", "--file")
	if !ok || standardOutput(file.Text) || !v.Has("-c") && !v.Has("--create") && !v.Has("-r") {
		return false
	}
	f := act.Flow{Via: "tar"}
	for _, w := range v.Operands {
		f.Taint |= e.ReadFile(sh, w).Taint
	}
	if fd, ok := act.Descriptor(file.Text); ok {
		if r, ok := sh.Fds[fd]; ok {
			file = r.File
		} else if len(v.Redirs) > 0 {
			file = v.Redirs[len(v.Redirs)-1].File
		}
	}
	sh.Write(act.Redir{Op: ">", File: file}, f)
	return true
}

// largestNumber returns the output of cast max-uint and cast max-int.
func largestNumber(v *act.Invocation) (string, bool) {
	bits, ok := map[string]int{"max-uint": 256, "maxu": 256, "max-int": 255, "maxi": 255}[v.Operand(0)]
	if n, err := strconv.Atoi(strings.TrimLeft(v.Operand(1), "uint")); err == nil && n > 0 && n <= 256 {
		bits -= 256 - n
	}
	n := new(big.Int).Lsh(big.NewInt(1), uint(max(bits, 0)))
	return n.Sub(n, big.NewInt(1)).String(), ok
}

func pathPart(v *act.Invocation) (act.Flow, bool) {
	if len(v.Operands) == 0 || !v.Operands[0].Known() {
		return act.Flow{}, false
	}
	w := v.Operands[0]
	switch w.At = -1; v.Exe {
	case "basename":
		w.Text = path.Base(w.Text)
		if len(v.Operands) > 1 {
			w.Text = strings.TrimSuffix(w.Text, v.Operands[1].Text)
		}
	case "dirname":
		w.Text = path.Dir(w.Text)
	}
	return act.Flow{Known: true, Word: w}, true
}

// listing returns a pattern for the output of find and ls.
func listing(v *act.Invocation) act.Flow {
	w := act.Word{Text: "*", At: -1, Span: v.Argv[0].Span, Glob: true}
	if v.Exe != "ls" {
		w = foundBy(v)
		w.Span = v.Argv[0].Span
	} else if len(v.Operands) == 1 && v.Operands[0].Glob {
		w.Text = v.Operands[0].Text
	} else if len(v.Operands) == 1 {
		w.Text = strings.TrimSuffix(v.Operands[0].Text, "/") + "/*"
	}
	return act.Flow{Known: w.Known(), Word: w, Via: v.Exe}
}

// echo returns the output of echo.
func echo(v *act.Invocation) act.Flow {
	words := v.Argv[1:]
	escapes, line := false, true
	for len(words) > 0 && len(words[0].Text) > 1 && strings.Trim(words[0].Text[1:], "neE") == "" && words[0].Text[0] == '-' {
		escapes = escapes || strings.ContainsRune(words[0].Text, 'e')
		line = line && !strings.ContainsRune(words[0].Text, 'n')
		words = words[1:]
	}
	if len(words) == 0 {
		return act.Flow{Known: true}
	}
	w := act.JoinWords(words, v.Src)
	f := act.Flow{Taint: w.Taint, Line: line}
	if strings.IndexByte(w.Text, '\\') >= 0 && escapes {
		w.Text, w.At = scan.Unescape(w.Text), -1
		f.Via = "echo -e"
	}
	f.Word, f.Known = w, w.Known()
	return f
}

// printf returns the output of printf.
func printf(v *act.Invocation) act.Flow {
	args := v.Argv[1:]
	if len(args) > 1 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].Text == "-v" {
		return act.Flow{Known: true}
	}
	w, texts := args[0], make([]string, len(args)-1)
	for i, a := range args[1:] {
		texts[i], w.Taint, w.Var = a.Text, w.Taint|a.Taint, cmp.Or(w.Var, a.Var)
	}
	format := w.Text
	text, used := scan.Format(format, texts, "", true)
	for texts = texts[used:]; used > 0 && len(texts) > 0 && len(text) <= scan.MaxValue; texts = texts[used:] { // printf repeats the format for the remaining arguments
		var more string
		more, used = scan.Format(format, texts, "", true)
		text += more
	}
	f := act.Flow{}
	if text := scan.Unescape(text); text != w.Text {
		w.Text, w.At = text, -1
		if scan.HasAny(format, `\x`, `\0`, `\1`) {
			f.Via, f.Taint = "printf", act.FromDecoder
		}
	}
	f.Word, f.Known, f.Taint = w, w.Known(), f.Taint|w.Taint
	return f
}

// substituted returns the output of envsubst, which replaces $NAME and ${NAME} by variables. An
// unknown variable becomes an unknown part.
func substituted(sh *interp.Process, v *act.Invocation) act.Flow {
	out := v.Stdin
	text, rest, more := strings.Cut(out.Word.Text, "$")
	for part := ""; more && len(text) < scan.MaxDecoded; {
		part, rest, more = strings.Cut(rest, "$")
		name, braced := strings.CutPrefix(part, "{")
		behind := strings.TrimLeftFunc(name, func(r rune) bool { return r < utf8.RuneSelf && scan.IsNameByte(byte(r)) })
		name = name[:len(name)-len(behind)]
		switch {
		case name == "":
			text += "$" + part
			continue
		case braced:
			behind = strings.TrimPrefix(behind, "}")
		}
		text += cmp.Or(sh.Variable(v, name).Text, string(scan.Hole)) + behind
	}
	out.Word.Text, out.Word.At = text, -1
	out.Known = out.Known && out.Word.Known()
	return out
}

func cat(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Flow {
	if len(v.Operands) == 0 || len(v.Operands) == 1 && v.Operands[0].Text == "-" {
		return v.Stdin
	}
	out := e.ReadFile(sh, v.Operands[0])
	for _, w := range v.Operands[1:] {
		out = interp.Join(out, e.ReadFile(sh, w))
	}
	return out
}

// decode returns the result of a text function on the input of the call, if it is known.
func decode(e *interp.Env, sh *interp.Process, v *act.Invocation, does string, how ...string) (act.Flow, bool) {
	in := v.Stdin
	if len(v.Operands) > 0 && v.Exe != "openssl" && v.Exe != "tr" && v.Operands[0].Text != "-" {
		in = e.ReadFile(sh, v.Operands[0])
	}
	out := act.Flow{Taint: in.Taint, Via: v.Exe, Layer: in.Layer + 1}
	if v.Exe != "rev" && v.Exe != "tr" || in.Known {
		out.Taint |= act.FromDecoder
	}
	if in.Known && out.Layer <= scan.MaxLayers {
		if text, ok := e.Make(does, append([]string{in.Word.Text}, how...)...); ok {
			out.Known, out.Word = true, in.Word
			out.Word.Text, out.Word.At = text, -1
			out.Word.Taint |= act.FromDecoder
		}
	}
	if out.Layer >= 3 {
		e.See(act.EncodedTwice, v.Src, v.From, v.To, "")
	}
	return out, true
}

// translate returns the output of tr with two literal sets, or with one set that it deletes.
func translate(e *interp.Env, sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	switch deletes := v.Has("-d"); {
	case deletes && len(v.Operands) > 0:
		return decode(e, sh, v, "translate", v.Operands[0].Text, "")
	case !deletes && len(v.Operands) > 1:
		return decode(e, sh, v, "translate", v.Operands[0].Text, v.Operands[1].Text)
	}
	return v.Stdin, true
}
