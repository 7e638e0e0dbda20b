package actionrisk

import (
	"cmp"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// emulate gives the exact output of commands that only move text.
func (e *engine) emulate(sh *shell, v *invocation) (flow, bool) {
	switch v.exe {
	case "echo":
		return echo(v), true
	case "printf":
		return printf(v), true
	case "yes":
		return echo(v), true
	case "xargs":
		if len(v.operands) == 0 && v.stdin.known { // it prints its words in one line
			f := v.stdin
			f.word.Text, f.word.At = strings.Join(strings.Fields(f.word.Text), " "), -1
			return f, true
		}
	case "cat", "tac":
		return e.cat(sh, v)
	case "tee":
		for _, w := range v.operands {
			e.remember(sh, w, v.stdin, v.has("-a"))
		}
		return v.stdin, true
	case "base64", "gbase64":
		if v.has("-d") || v.has("-D") || v.has("--decode") {
			return e.decode(sh, v, "base64", scan.Decode64)
		}
	case "base32":
		if v.has("-d") || v.has("--decode") {
			return e.decode(sh, v, "base32", func(s string) (string, bool) { return "", false })
		}
	case "openssl":
		if v.has("-d") {
			return e.decode(sh, v, "openssl", scan.Decode64)
		}
	case "xxd":
		if v.has("-r") {
			return e.decode(sh, v, "xxd", scan.DecodeHex)
		}
	case "gunzip", "zcat", "gzip", "bzip2", "xz", "uudecode":
		if v.exe == "gunzip" || v.exe == "zcat" || v.exe == "uudecode" || v.has("-d") {
			f := v.stdin
			f.known = false
			if f.taint&fromDecoder != 0 {
				f.layer++
			}
			return f, v.stdin.taint != 0
		}
	case "envsubst":
		return sh.substituted(v), v.stdin.word.Text != ""
	case "rev":
		return e.decode(sh, v, "rev", scan.Reverse)
	case "tr":
		return e.translate(sh, v)
	case "tar", "gtar", "bsdtar":
		if w, ok := v.value("-f", "--file"); ok && w.Text != "-" && w.Text != "/dev/stdout" && w.Text != "/dev/fd/1" && (v.has("-c") || v.has("--create") || v.has("-r")) {
			f := flow{via: "tar"}
			for _, w := range v.operands {
				f.taint |= e.readFile(sh, w).taint
			}
			if fd, ok := descriptor(w.Text); ok {
				if r, ok := sh.fds[fd]; ok {
					w = r.file
				} else if len(v.redirs) > 0 {
					w = v.redirs[len(v.redirs)-1].file
				}
			}
			sh.write(redir{">", w}, f, nil)
			return flow{known: true}, true
		}
	case "cast":
		if w, ok := largestNumber(v); ok {
			return flow{known: true, word: w}, true
		}
	case "find", "fd", "fdfind", "ls":
		return listing(v), true
	case "pwd":
		w := Word{Text: ".", At: -1, Span: v.argv[0].Span}
		if sh.cwd != "" {
			w.Text = sh.cwd
		}
		return flow{known: true, word: w}, true
	case "pgrep":
		if len(v.operands) == 0 || v.operands[0].Text == "." || v.operands[0].Text == ".*" { // all processes, whom a signal to -1 reaches
			return flow{known: true, word: Word{Text: "-1", At: -1, Span: v.argv[0].Span}}, true
		}
	case "mktemp":
		return flow{known: true, word: Word{Text: "/tmp/tmp.file", At: -1, Span: v.argv[0].Span}}, true
	case "true", "false", ":", "sleep", "wait", "cd", "test", "[":
		return flow{known: true}, true
	case "which", "command", "type":
		if len(v.operands) == 1 {
			return flow{known: true, word: v.operands[0]}, true
		}
	case "basename", "dirname", "realpath", "readlink":
		return pathPart(v)
	case "git":
		if v.underAny([][]string{{"rev-parse"}}) && v.has("--show-toplevel") {
			return flow{known: true, word: Word{Text: ".", At: -1, Span: v.argv[0].Span}}, true
		}
	}
	return e.filter(sh, v)
}

// largestNumber is what cast max-uint and cast max-int print.
func largestNumber(v *invocation) (Word, bool) {
	if len(v.operands) == 0 {
		return Word{}, false
	}
	bits := 256
	if len(v.operands) > 1 {
		if n, err := strconv.Atoi(strings.TrimLeft(v.operands[1].Text, "uint")); err == nil && n > 0 && n <= 256 {
			bits = n
		}
	}
	switch v.operands[0].Text {
	case "max-uint", "maxu":
	case "max-int", "maxi":
		bits--
	default:
		return Word{}, false
	}
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	return Word{Text: n.Sub(n, big.NewInt(1)).String(), At: -1, Span: v.argv[0].Span}, true
}

func pathPart(v *invocation) (flow, bool) {
	if len(v.operands) == 0 || !v.operands[0].known() {
		return flow{}, false
	}
	w := v.operands[0]
	switch w.At = -1; v.exe {
	case "basename":
		w.Text = path.Base(w.Text)
		if len(v.operands) > 1 {
			w.Text = strings.TrimSuffix(w.Text, v.operands[1].Text)
		}
	case "dirname":
		w.Text = path.Dir(w.Text)
	}
	return flow{known: true, word: w}, true
}

// listing is a pattern for what find and ls print.
func listing(v *invocation) flow {
	w := Word{Text: "*", At: -1, Span: v.argv[0].Span, Glob: true}
	if v.exe != "ls" {
		w = foundBy(v)
		w.Span = v.argv[0].Span
	} else if len(v.operands) == 1 {
		w.Text = strings.TrimSuffix(v.operands[0].Text, "/") + "/*"
	}
	return flow{known: w.known(), word: w, via: v.exe}
}

// echo is what echo prints.
func echo(v *invocation) flow {
	words := v.argv[1:]
	escapes, line := false, true
	for len(words) > 0 && len(words[0].Text) > 1 && strings.Trim(words[0].Text[1:], "neE") == "" && words[0].Text[0] == '-' {
		escapes = escapes || strings.ContainsRune(words[0].Text, 'e')
		line = line && !strings.ContainsRune(words[0].Text, 'n')
		words = words[1:]
	}
	if len(words) == 0 {
		return flow{known: true}
	}
	w := joinWords(words, v.src)
	f := flow{taint: w.Taint, line: line}
	if strings.IndexByte(w.Text, '\\') >= 0 && escapes {
		w.Text, w.At = scan.Unescape(w.Text), -1
		f.via = "echo -e"
	}
	f.word, f.known = w, w.known()
	return f
}

// printf is what printf prints where the format is literal and has only %s, %b.
func printf(v *invocation) flow {
	if len(v.argv) < 2 {
		return flow{known: true}
	}
	w := v.argv[1]
	args := slices.Clone(v.argv[2:])
	if w.Text == "-v" {
		return flow{known: true}
	}
	if w.Text == "--" && len(args) > 0 {
		w, args = args[0], args[1:]
	}
	var b strings.Builder
	format := w.Text
	before := len(args)
	for i := 0; i <= len(format); i++ {
		if i == len(format) {
			if len(args) == 0 || len(args) == before || b.Len() > scan.MaxValue {
				break
			}
			before, i = len(args), -1
			continue
		}
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		spec := readSpec(format[i+1:])
		switch i += spec.length; {
		case spec.verb == '%':
			b.WriteByte('%')
		case len(args) > 0:
			b.WriteString(spec.apply(args[0].Text))
			w.Taint |= args[0].Taint
			args = args[1:]
		case len(v.argv) == 2 && spec.verb != 0:
			b.WriteString(spec.apply("")) // the word for a missing argument is empty
		}
	}
	f := flow{}
	if text := scan.Unescape(b.String()); text != w.Text {
		w.Text, w.At = text, -1
		if strings.Contains(format, `\x`) || strings.Contains(format, `\0`) || strings.Contains(format, `\1`) {
			f.via = "printf"
			f.taint |= fromDecoder
		}
	}
	f.word, f.known, f.taint = w, w.known(), f.taint|w.Taint
	return f
}

// printfSpec is one directive of printf: %-10s, %064d, %.0s, %x.
type printfSpec struct {
	verb             byte
	left, zero       bool
	width, precision int // precision -1: none given
	length           int // bytes behind the percent sign
}

// readSpec reads the directive behind a percent sign.
func readSpec(s string) printfSpec {
	spec := printfSpec{precision: -1}
	number := func(i int) (n, next int) {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' && n < scan.MaxValue {
			n, i = 10*n+int(s[i]-'0'), i+1
		}
		return min(n, scan.MaxValue), i
	}
	i := 0
	for i < len(s) && strings.IndexByte("-+ #0'", s[i]) >= 0 {
		spec.left, spec.zero = spec.left || s[i] == '-', spec.zero || s[i] == '0'
		i++
	}
	spec.width, i = number(i)
	if i < len(s) && s[i] == '.' {
		spec.precision, i = number(i + 1)
	}
	for i < len(s) && (s[i] == 'l' || s[i] == 'h' || s[i] == 'j' || s[i] == 'z') {
		i++
	}
	if i < len(s) {
		spec.verb = s[i]
		i++
	}
	spec.length = i
	return spec
}

// printfBase is the base of the numbers that a directive writes, if it is not 10.
var printfBase = map[byte]int{'x': 16, 'X': 16, 'o': 8}

// apply writes an argument as the directive says.
func (p printfSpec) apply(text string) string {
	if strings.IndexByte(text, scan.Hole) >= 0 {
		return text // of a length that nobody knows
	}
	switch p.verb {
	case 'q':
		text = scan.Quote(text)
	case 'c':
		text = text[:min(1, len(text))]
	case 's', 'b':
		if p.precision >= 0 && p.precision < len(text) {
			text = text[:p.precision]
		}
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 0); ok || text == "" && p.width+max(p.precision, 0) > 0 {
			if n == nil {
				n = new(big.Int)
			}
			text = n.Text(cmp.Or(printfBase[p.verb], 10))
			if p.verb == 'X' {
				text = strings.ToUpper(text)
			}
			text = strings.Repeat("0", max(0, p.precision-len(text))) + text
		}
	}
	pad := max(0, p.width-len(text))
	switch {
	case p.left:
		return text + strings.Repeat(" ", pad)
	case p.zero && p.verb != 's':
		return strings.Repeat("0", pad) + text
	}
	return strings.Repeat(" ", pad) + text
}

// substituted is what envsubst makes of its input: $NAME and ${NAME} are replaced by
// variables, or by what is not known.
func (sh *shell) substituted(v *invocation) flow {
	out := v.stdin
	var b strings.Builder
	text := out.word.Text
	for i := 0; i < len(text) && b.Len() < scan.MaxDecoded; i++ {
		j := i + 1
		if brace := text[i] == '$' && j < len(text) && text[j] == '{'; brace {
			j++
		}
		from := j
		for text[i] == '$' && j < len(text) && scan.IsNameByte(text[j]) {
			j++
		}
		if j == from {
			b.WriteByte(text[i])
			continue
		}
		value := string(scan.Hole)
		if w := sh.vars[text[from:j]]; len(w) == 1 {
			value = w[0].Text
		}
		for _, a := range v.env {
			if a.name == text[from:j] {
				value = a.value.Text
			}
		}
		b.WriteString(value)
		if i = j - 1; j < len(text) && text[j] == '}' && text[from-1] == '{' {
			i = j
		}
	}
	out.word.Text, out.word.At = b.String(), -1
	out.known = out.known && strings.IndexByte(out.word.Text, scan.Hole) < 0
	return out
}

func (e *engine) cat(sh *shell, v *invocation) (flow, bool) {
	if len(v.operands) == 0 || len(v.operands) == 1 && v.operands[0].Text == "-" {
		return v.stdin, true
	}
	var out flow
	for i, w := range v.operands {
		f := e.readFile(sh, w)
		if i == 0 {
			out = f
		} else {
			out = join(out, f)
		}
	}
	return out, true
}

// decode applies a decoder to the known input.
func (e *engine) decode(sh *shell, v *invocation, name string, by func(string) (string, bool)) (flow, bool) {
	in := v.stdin
	if len(v.operands) > 0 && v.exe != "openssl" && v.operands[0].Text != "-" {
		in = e.readFile(sh, v.operands[0])
	}
	out := flow{taint: in.taint, via: name, layer: in.layer + 1}
	if name != "rev" && name != "tr" || in.known {
		out.taint |= fromDecoder
	}
	if in.known && out.layer <= scan.MaxLayers && len(in.word.Text) <= 2*scan.MaxDecoded {
		if text, ok := by(in.word.Text); ok && len(text) <= scan.MaxDecoded && e.decoded+len(text) <= scan.MaxDecodedTotal {
			e.decoded += len(text)
			out.known = true
			out.word = in.word
			out.word.Text, out.word.At = strings.ReplaceAll(text, string(scan.Hole), " "), -1
			out.word.Taint |= fromDecoder
		}
	}
	if out.layer >= 3 {
		e.raise("obf.nested-encoding", v.src, v.from, v.to, "")
	}
	return out, true
}

// translate is tr with two literal sets.
func (e *engine) translate(sh *shell, v *invocation) (flow, bool) {
	if len(v.operands) == 0 {
		return v.stdin, true
	}
	from := trSet(v.operands[0].Text)
	if v.has("-d") {
		return e.decode(sh, &invocation{exe: "openssl", stdin: v.stdin, src: v.src}, "tr", func(s string) (string, bool) {
			return strings.Map(func(r rune) rune {
				if slices.Contains(from, r) {
					return -1
				}
				return r
			}, s), true
		})
	}
	if len(v.operands) < 2 {
		return v.stdin, true
	}
	to := trSet(v.operands[1].Text)
	return e.decode(sh, &invocation{exe: "openssl", stdin: v.stdin, src: v.src}, "tr", func(s string) (string, bool) {
		return mapRunes(s, from, to), true
	})
}

// trSet expands the ranges of a tr set.
func trSet(s string) []rune {
	s = scan.Unescape(s)
	for name, class := range map[string]string{"[:lower:]": "a-z", "[:upper:]": "A-Z", "[:digit:]": "0-9"} {
		s = strings.ReplaceAll(s, name, class)
	}
	r := []rune(s)
	var out []rune
	for i := 0; i < len(r); i++ {
		if i+2 < len(r) && r[i+1] == '-' && r[i+2] >= r[i] && r[i+2]-r[i] < 256 {
			for c := r[i]; c <= r[i+2]; c++ {
				out = append(out, c)
			}
			i += 2
			continue
		}
		out = append(out, r[i])
	}
	return out
}
