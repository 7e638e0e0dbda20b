package judge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// servicePredicates are predicates about clients of services: about their input, their words, and
// paths on other machines. In the comments, "it" is the invocation.
var servicePredicates = map[string]interp.Predicate{
	"input":          inputIs,       // a line of the known input matches one of these
	"nth":            nthIs,         // "1 a|b": operand 1 (0 is the first) matches one of these
	"remote-startup": remoteStartup, // host:path of a file that runs automatically later or permits a login
	"object-glob":    objectGlob,    // the name of a stored object ends with a pattern for everything
	"execs":          execsOne,      // find or fd runs one of these programs for each file
	"optpath":        optPath,       // the value of an option is a path of one of these classes
	"assignpath":     assignPath,    // "of= system": an operand with this prefix names a path of this class
	"decoded-file":   decodedFile,   // it runs a file that the command decoded
	"puts-secret":    putsSecret,    // a transfer client sends a file with credentials
	"lastword":       lastWord,      // the last word is one of these
	"below":          below,         // "retention.ms= 1000": a word sets the name to a smaller number
	"safe-last":      safeLast,      // the last of two opposite options makes the command harmless
}

// inputIs tests the lines that a client reads as commands: from a pipe, a here-document or a
// here-string.
func inputIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if it.Inv == nil || !it.Inv.Stdin.Known && !act.PartlyKnown(it.Inv.Stdin.Word) {
		return act.Word{}, false
	}
	w := it.Inv.Stdin.Word
	for part := range strings.FieldsFuncSeq(strings.ToLower(w.Text), func(r rune) bool { return r == '\n' || r == ';' }) {
		if matchesAny(strings.TrimSpace(part), args) {
			return w, true
		}
	}
	return act.Word{}, false
}

func nthIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	n := int(args[0][0] - '0')
	if it.Inv == nil || n >= len(it.Inv.Operands) {
		return act.Word{}, false
	}
	w := it.Inv.Operands[n]
	return w, act.MatchWord(args[0][2:], w.Text) || matchesAny(w.Text, args[1:])
}

// remoteStartup reports whether the last operand is host:path, and the path is a login script, a
// crontab or a list of keys.
func remoteStartup(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if len(v.Operands) < 2 {
		return act.Word{}, false
	}
	w := v.Operands[len(v.Operands)-1]
	host, p, ok := strings.Cut(w.Text, ":")
	if !ok || host == "" || p == "" || strings.Contains(host, "/") {
		return act.Word{}, false
	}
	return w, e.ClassOf(act.Word{Text: p}, "")&(paths.IsStartup|paths.IsAuthorized) != 0
}

// below reports whether a word contains NAME=number with a smaller number.
func below(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	name, limit, _ := strings.Cut(args[0], " ")
	most, err := strconv.ParseInt(limit, 10, 64)
	if it.Inv == nil || err != nil {
		return act.Word{}, false
	}
	return first(it.Inv.Argv, func(w act.Word) bool {
		_, rest, ok := strings.Cut(w.Text, name)
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		n, err := strconv.ParseInt(digits, 10, 64)
		return ok && err == nil && n < most
	})
}

// objectGlob reports whether an operand such as gs://bucket/* names everything in a bucket or
// folder.
func objectGlob(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(targets(it), func(w act.Word) bool {
		return strings.Contains(w.Text, "://") && scan.HasAnySuffix(w.Text, "/*", "/**")
	})
}

// safeLast reports whether the last of two opposite options is harmless, as in "--prune=now
// --no-prune". Its arguments are the harmless options and, after "vs", the harmful ones.
func safeLast(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	safe, list := false, args
	for i := range it.Inv.Opts {
		harmless := true
		for _, a := range list {
			if a == "vs" {
				harmless = false
				continue
			}
			if it.Inv.Opts[i].Name == a {
				safe = harmless
			}
		}
	}
	return act.Word{}, safe
}

// execsOne reports whether the program after -exec or a similar option is one of these.
func execsOne(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	argv := it.Inv.Argv
	for i := 1; i+1 < len(argv); i++ {
		switch argv[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			if slices.Contains(args, scan.Base(argv[i+1].Text)) {
				return argv[i+1], true
			}
		}
	}
	return act.Word{}, false
}

func optPath(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	want := classes(args)
	return option(it.Inv, func(o *act.Option) bool { return e.ClassOf(o.Value, it.Inv.Cwd)&want != 0 })
}

func assignPath(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	prefix, class, _ := strings.Cut(args[0], " ")
	want := classes(args[1:]) | paths.ClassByName[class]
	return first(it.Inv.Operands, func(w act.Word) bool {
		rest, ok := strings.CutPrefix(w.Text, prefix)
		return ok && e.ClassOf(act.Word{Text: rest}, it.Inv.Cwd)&want != 0
	})
}

// decodedFile reports whether the command runs a file that it decoded itself. With an argument it
// tests the program itself, otherwise the first operand.
func decodedFile(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	v := it.Inv
	w := v.Word(0)
	if len(args) == 0 {
		if len(v.Operands) == 0 {
			return act.Word{}, false
		}
		w = v.Operands[0]
	}
	decoded := w.Text != "" && w.Known() && w.Taint&act.FromDecoder != 0 || e.Files[e.Key(v.Cwd, w.Text)].Taint&act.FromDecoder != 0
	return w, decoded && (len(args) == 0 || strings.Contains(w.Text, "/"))
}

// putsSecret reports whether sftp, ftp or lftp gets a command such as "put .env" on its input or
// in an option.
func putsSecret(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	texts := []act.Word{it.Inv.Stdin.Word}
	for i := range it.Inv.Opts {
		if o := &it.Inv.Opts[i]; o.Given && (o.Name == "-e" || o.Name == "-c") {
			texts = append(texts, o.Value)
		}
	}
	return first(texts, func(t act.Word) bool {
		for line := range strings.FieldsFuncSeq(t.Text, func(r rune) bool { return r == '\n' || r == ';' }) {
			words := strings.Fields(line)
			puts := len(words) > 1 && slices.Contains([]string{"put", "mput", "reput"}, words[0])
			if puts && slices.ContainsFunc(words[1:], func(w string) bool { return e.Credential(act.Word{Text: w}, it.Inv.Cwd) }) {
				return true
			}
		}
		return false
	})
}

func lastWord(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	w := it.Inv.Argv[len(it.Inv.Argv)-1]
	return w, len(it.Inv.Argv) > 2 && slices.Contains(args, w.Text)
}
