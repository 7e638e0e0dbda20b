package actionrisk

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// servicePredicates look at what a client of a service is told on its input, in
// the words after its name, and in the paths of other machines.
var servicePredicates = map[string]predicate{
	"input":          inputIs,       // a line of the known input begins with one of these
	"nth":            nthIs,         // "1 a|b": operand number 1 (0 is the first) matches one of these
	"remote-startup": remoteStartup, // host:path that runs by itself later, or lets somebody in
	"object-glob":    objectGlob,    // the name of a stored object ends in a pattern for all
	"execs":          execsOne,      // find or fd hands what it finds to one of these programs
	"optpath":        optPath,       // the value of an option is a path of one of these classes
	"assignpath":     assignPath,    // "of= system": a word with that beginning names a path of that class
	"decoded-file":   decodedFile,   // runs a file that the command itself decoded
	"puts-secret":    putsSecret,    // a transfer client is told to send a file of credentials
	"lastword":       lastWord,      // the last word is one of these
	"below":          below,         // "retention.ms= 1000": a word sets the name to a number below
	"safe-last":      safeLast,      // the last of two opposite options makes it harmless
}

// inputIs looks at the lines that a client reads as commands: from a pipe, a
// here-document or a here-string.
func inputIs(_ *engine, it *item, args []string) (Word, bool) {
	if it.inv == nil || !it.inv.stdin.known && !partlyKnown(it.inv.stdin.word) {
		return Word{}, false
	}
	w := it.inv.stdin.word
	for line := range strings.Lines(w.Text) {
		for part := range strings.SplitSeq(strings.ToLower(line), ";") {
			part = strings.TrimSpace(part)
			for _, a := range args {
				if matchWord(a, part) {
					return w, true
				}
			}
		}
	}
	return Word{}, false
}

func nthIs(_ *engine, it *item, args []string) (Word, bool) {
	n := int(args[0][0] - '0')
	if it.inv == nil || n >= len(it.inv.operands) {
		return Word{}, false
	}
	w := it.inv.operands[n]
	for i, a := range args {
		if i == 0 {
			a = a[2:]
		}
		if matchWord(a, w.Text) {
			return w, true
		}
	}
	return Word{}, false
}

// remoteStartup: the last operand is host:path, and the path is a login script,
// a job table or a list of keys of that machine.
func remoteStartup(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) < 2 {
		return Word{}, false
	}
	w := v.operands[len(v.operands)-1]
	host, p, ok := strings.Cut(w.Text, ":")
	if !ok || host == "" || p == "" || strings.Contains(host, "/") {
		return Word{}, false
	}
	return w, e.classOf(Word{Text: p}, "")&(paths.IsStartup|paths.IsAuthorized) != 0
}

// below: a word holds NAME=number, alone or in a list, and the number is smaller.
func below(_ *engine, it *item, args []string) (Word, bool) {
	name, limit, _ := strings.Cut(args[0], " ")
	most, err := strconv.ParseInt(limit, 10, 64)
	if it.inv == nil || err != nil {
		return Word{}, false
	}
	for _, w := range it.inv.argv {
		_, rest, ok := strings.Cut(w.Text, name)
		end := 0
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[end] == '-') {
			end++
		}
		if n, err := strconv.ParseInt(rest[:end], 10, 64); ok && err == nil && n >= 0 && n < most {
			return w, true
		}
	}
	return Word{}, false
}

// objectGlob: gs://bucket/* and its kind name everything below.
func objectGlob(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range targets(it) {
		if strings.Contains(w.Text, "://") && (strings.HasSuffix(w.Text, "/*") || strings.HasSuffix(w.Text, "/**")) {
			return w, true
		}
	}
	return Word{}, false
}

// safeLast: of "--no-prune --prune=now" the later one counts. Its arguments are
// the harmless options and, after "vs", the harmful ones.
func safeLast(_ *engine, it *item, args []string) (Word, bool) {
	safe, list := false, args
	for i := range it.inv.opts {
		harmless := true
		for _, a := range list {
			if a == "vs" {
				harmless = false
				continue
			}
			if it.inv.opts[i].name == a {
				safe = harmless
			}
		}
	}
	return Word{}, safe
}

// execsOne: the program after -exec and its kind.
func execsOne(_ *engine, it *item, args []string) (Word, bool) {
	argv := it.inv.argv
	for i := 1; i+1 < len(argv); i++ {
		switch argv[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			for _, a := range args {
				if scan.Base(argv[i+1].Text) == a {
					return argv[i+1], true
				}
			}
		}
	}
	return Word{}, false
}

func optPath(e *engine, it *item, args []string) (Word, bool) {
	for i := range it.inv.opts {
		if o := &it.inv.opts[i]; o.given && e.classOf(o.value, it.inv.cwd)&classes(args) != 0 {
			return o.value, true
		}
	}
	return Word{}, false
}

func assignPath(e *engine, it *item, args []string) (Word, bool) {
	prefix, first, _ := strings.Cut(args[0], " ")
	want := classes(args[1:]) | paths.ClassByName[first]
	for _, w := range it.inv.operands {
		if rest, ok := strings.CutPrefix(w.Text, prefix); ok && e.classOf(Word{Text: rest}, it.inv.cwd)&want != 0 {
			return w, true
		}
	}
	return Word{}, false
}

// decodedFile: like downloaded, for what a decoder of the command wrote.
func decodedFile(e *engine, it *item, args []string) (Word, bool) {
	v := it.inv
	check := func(w Word) bool {
		return w.Text != "" && w.known() && w.Taint&fromDecoder != 0 || e.files[paths.FileKey(v.cwd, w.Text)].taint&fromDecoder != 0
	}
	if len(args) > 0 {
		return v.word(0), strings.Contains(v.word(0).Text, "/") && check(v.word(0))
	}
	for i, w := range v.operands {
		if i == 0 && check(w) {
			return w, true
		}
	}
	return Word{}, false
}

// putsSecret: "put .env" on the input or in an option of sftp, ftp or lftp.
func putsSecret(e *engine, it *item, _ []string) (Word, bool) {
	texts := []Word{it.inv.stdin.word}
	for i := range it.inv.opts {
		if o := &it.inv.opts[i]; o.given && (o.name == "-e" || o.name == "-c") {
			texts = append(texts, o.value)
		}
	}
	for _, t := range texts {
		for line := range strings.FieldsFuncSeq(t.Text, func(r rune) bool { return r == '\n' || r == ';' }) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "put" && words[0] != "mput" && words[0] != "reput" {
				continue
			}
			for _, w := range words[1:] {
				if c := e.classOf(Word{Text: w}, it.inv.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
					return t, true
				}
			}
		}
	}
	return Word{}, false
}

func lastWord(_ *engine, it *item, args []string) (Word, bool) {
	w := it.inv.argv[len(it.inv.argv)-1]
	for _, a := range args {
		if len(it.inv.argv) > 2 && w.Text == a {
			return w, true
		}
	}
	return Word{}, false
}
