package judge

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// ShellPredicates are predicates about invocations. Their arguments are alternatives. In the
// comments, "it" is the invocation.
var ShellPredicates = map[string]interp.Predicate{
	"synced-here":        syncedHere,      // both folders are in the project or temporary
	"homefile":           homeFile,        // an operand is one of these, relative to a home directory
	"production":         inProduction,    // the invocation names production
	"vital":              vital,           // a path operand is of one of these classes, and is not a drop-in file
	"dropin":             dropIn,          // an operand is a drop-in file: it only adds settings to a part of the system
	"operand":            operandIs,       // a path operand is of one of these classes
	"all-of":             allOf,           // an operand means all files of a folder of one of these classes
	"acl":                aclIs,           // setfacl lets everybody write
	"operands":           countIs,         // number of operands: none, one, some (at least 1), two, many (at least 2)
	"last":               lastIs,          // the last of several path operands is of one of these classes
	"first":              firstIs,         // the first path operand is of one of these classes
	"word":               wordIs,          // an operand matches one of these words, which may begin or end with *
	"contains":           contains,        // a word contains one of these, ignoring case
	"option":             optionIs,        // an option is given: "--opt" or "--opt=value|…"
	"stdin":              stdinIs,         // origin of the input: network, secret, environ, dump, decoded, unknown; or text (known), object (from an object store)
	"reads-stdin":        readsStdin,      // it reads its program from the input, because no other is named
	"tainted":            taintedWord,     // a word has one of these origins
	"gitset":             gitSet,          // a Git setting is active: name=off, name=now
	"expires":            expires,         // it deletes recent data, not only old data
	"refspec":            refspecIs,       // kinds of refspecs of a push; see refspecIs
	"program-url":        programURL,      // the program that it runs is a URL
	"url":                urlIs,           // a word is a URL or host with one of addressTests; local: all hosts are this machine
	"method":             methodIs,        // HTTP method of the invocation
	"upload":             uploads,         // it sends a body or a file
	"var":                varIs,           // a word contains an unknown variable: secret (by its name), any
	"dynamic":            dynamicWord,     // an operand is unknown
	"root":               runsAsRoot,      // it certainly runs as root
	"copyof":             copyOf,          // an operand is a copy of one of these programs that the command made
	"mode":               modeIs,          // mode of chmod: open, closed, setuid, shared
	"unpinned":           unpinned,        // a package without an exact version
	"foreign":            foreignSource,   // a package from a URL or a version control system
	"loads":              loadsDownloaded, // the value of an option names a file that the command downloaded
	"downloaded":         downloadedRun,   // it runs a file that the command downloaded
	"mount":              mountIs,         // a container mounts: root, docker-socket, system
	"exact":              exactOption,     // an option is written exactly like this, not abbreviated
	"signal":             exactOption,
	"findfilter":         findFilter,
	"junk":               findJunk,
	"device":             deviceOperand, // an operand or the value of of= is a block device
	"argfile":            argFile,       // a word "@file", "key=@file" or "key=<file" names a path of one of these classes
	"assign":             assignIs,      // an operand has one of these prefixes, such as "NAME="
	"branch":             branchIs,      // the action's branch is protected
	"discards":           discards,      // git checkout names paths, not a branch
	"generated":          generated,     // all paths are files that tools generate
	"configvalue":        configValue,   // git config sets a value that is not known to be harmless
	"ownsettings":        ownSettings,   // the lines only set a path, a variable or an alias
	"emptied":            emptied,       // nothing is written
	"k8sother":           otherResource, // kubectl delete of a kind without a specific rule
	"awsplain":           plainAWS,      // an AWS command for a service without specific rules
	"awssecret":          awsSecret,     // the value of a secret is shown
	"test-database":      testDatabase,  // a database for tests, by its name
	"remote-address":     remoteAddress, // the remote of a git push is an address, or one that the command added; see remoteAddress
	"answered-yes":       answeredYes,   // a pipe answers its questions with yes
	"first-remote":       firstRemote,   // the remote of a git push is one of these
	"verb":               verbIs,        // one of the first five operands matches one of these
	"ruled":              alreadyRuled,  // a more specific rule has matched the same words
	"known-service":      knownService,
	"unknown-tool":       unknownTool,  // no table describes the program, which is called by its name
	"remote-system":      remoteSystem, // the last operand is host:path, and the path belongs to the system
	"bodytext":           bodyText,     // the body of a request is a GraphQL mutation that deletes
	"optvalue":           optValue,     // the value of an option matches one of these
	"first-word":         firstWord,    // the first operand equals one of these
	"made":               madeWith,     // the operand is a plan that the command created with one of these options
	"foreignvalue":       foreignValue, // like foreign, for options that name packages or a text to run
	"foreignknown":       foreignKnown, // an operand is a URL of a public registry
	"opens-firewall":     opensFirewall,
	"shadows-program":    shadowsProgram,
	"starts-shell":       startsShell,
	"only-sets":          onlySets,    // every operand is NAME=value with one of these names
	"last-like":          lastLike,    // the last operand matches one of these patterns
	"first-operand-like": operandLike, // the operand after the subcommand matches one of these patterns
}

func targets(it *act.Item) []act.Word {
	if it.Inv == nil {
		return nil
	}
	return it.Inv.Operands[min(it.Inv.Data, len(it.Inv.Operands)):]
}

// arguments returns all words after the program.
func arguments(it *act.Item) []act.Word {
	if it.Inv == nil {
		return nil
	}
	return it.Inv.Argv[min(1, len(it.Inv.Argv)):]
}

// first returns the first word for which the test returns true.
func first(list []act.Word, is func(act.Word) bool) (act.Word, bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return act.Word{}, false
}

// option returns the value of the first given option for which the test returns true.
func option(v *act.Invocation, is func(*act.Option) bool) (act.Word, bool) {
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && is(o) {
			return o.Value, true
		}
	}
	return act.Word{}, false
}

// matchesAny reports whether a text matches one of the patterns.
func matchesAny(text string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return act.MatchWord(p, text) })
}

func operandIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	v, want := it.Inv, classes(args)
	if v == nil {
		return act.Word{}, false
	}
	if len(v.Classes) != len(v.Operands) {
		v.Classes = make([]paths.Class, len(v.Operands))
		for i, w := range v.Operands {
			v.Classes[i] = e.ClassOf(w, v.Cwd)
		}
	}
	for i := min(v.Data, len(v.Operands)); i < len(v.Operands); i++ {
		if v.Classes[i]&want != 0 {
			return v.Operands[i], true
		}
	}
	return act.Word{}, false
}

// vital is like operandIs, but ignores files that only add settings to a part of the system:
// overwriting such a file leaves the other settings unchanged.
func vital(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(targets(it), func(w act.Word) bool {
		return e.ClassOf(w, it.Inv.Cwd)&classes(args) != 0 && !addsSettings(e, it, w)
	})
}

func dropIn(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if it.Inv == nil {
		return act.Word{}, false
	}
	return first(it.Inv.Operands, func(w act.Word) bool { return addsSettings(e, it, w) })
}

// addsSettings reports whether a word names a file in a folder of drop-in settings. The file does
// not count if the text written to it accepts unsigned packages.
func addsSettings(e *interp.Env, it *act.Item, w act.Word) bool {
	if scan.HasAny(it.Inv.Stdin.Word.Text, e.Groups.Get("unsigned-sources")...) {
		return false
	}
	folder, name := path.Split(w.Text)
	return w.Known() && !w.Glob && name != "" && name != ".." && slices.Contains(e.Groups.Get("drop-in-folders"), folder)
}

// allOf reports whether a path ends with "*" or a similar pattern, which means all files of a
// folder.
func allOf(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for _, w := range targets(it) {
		switch i := strings.LastIndexByte(w.Text, '/'); w.Text[i+1:] {
		case "*", "**", ".*", "*.*", "{*,.*}":
			if c := e.ClassOf(w, it.Inv.Cwd); w.Glob && c&classes(args) != 0 && c&(paths.IsTemp|paths.IsRebuildable) == 0 {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// aclIs reports whether an entry of an ACL gives others, or the user nobody, the right to write.
func aclIs(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for _, w := range it.Inv.Argv[1:] {
		for entry := range strings.SplitSeq(w.Text, ",") {
			entry = strings.TrimPrefix(strings.TrimPrefix(entry, "d:"), "default:")
			if rest, ok := strings.CutPrefix(entry, "o:"); ok && strings.ContainsAny(rest, "w67") {
				return w, true
			}
			if rest, ok := strings.CutPrefix(entry, "other:"); ok && strings.ContainsAny(rest, "w67") {
				return w, true
			}
			if strings.Contains(entry, ":nobody:") && strings.ContainsAny(entry[strings.LastIndexByte(entry, ':'):], "w67") {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

func classes(args []string) paths.Class {
	var c paths.Class
	for _, a := range args {
		c |= paths.ClassByName[a]
	}
	return c
}

func lastIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if t := targets(it); len(t) > 1 {
		w := t[len(t)-1]
		return w, e.ClassOf(w, it.Inv.Cwd)&classes(args) != 0
	}
	return act.Word{}, false
}

func lastLike(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	t := targets(it)
	if len(t) == 0 {
		return act.Word{}, false
	}
	return t[len(t)-1], matchesAny(t[len(t)-1].Text, args)
}

func firstIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if t := targets(it); len(t) > 0 {
		return t[0], e.ClassOf(t[0], it.Inv.Cwd)&classes(args) != 0
	}
	return act.Word{}, false
}

func countIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	n := len(targets(it))
	for _, a := range args {
		if a == "none" && n == 0 || a == "one" && n == 1 || a == "some" && n > 0 || a == "many" && n > 1 || a == "two" && n == 2 {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

func wordIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(targets(it), func(w act.Word) bool {
		return slices.ContainsFunc(args, func(a string) bool { return act.MatchWord(a, w.Text) })
	})
}

func contains(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool {
		lower := strings.ToLower(w.Text)
		return scan.HasAny(lower, args...)
	})
}

func optionIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for _, a := range args {
		name, pattern, valued := strings.Cut(a, "=")
		for i := range it.Inv.Opts {
			o := &it.Inv.Opts[i]
			if o.Name == name && (!valued || act.MatchWord(pattern, o.Value.Text)) {
				return o.Value, true
			}
		}
	}
	return act.Word{}, false
}

func optValue(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return option(it.Inv, func(o *act.Option) bool { return matchesAny(o.Value.Text, args) })
}

// modes are tests for a mode of chmod.
var modes = map[string]func(string) bool{"open": openMode, "setuid": setuidMode, "closed": closedMode, "shared": sharedMode}

func exactOption(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool { return slices.Contains(args, w.Text) })
}

var taintByName = map[string]act.Taint{"network": act.FromNetwork, "secret": act.FromSecret, "environ": act.FromEnviron,
	"dump": act.FromDump, "decoded": act.FromDecoder, "unknown": act.FromStdin}

func taints(args []string) act.Taint {
	var t act.Taint
	for _, a := range args {
		t |= taintByName[a]
	}
	return t
}

func stdinIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	in := it.Inv.Stdin
	for _, a := range args {
		if a == "text" && in.Known && in.Word.Text != "" {
			return in.Word, true
		}
		if a == "object" && e.In("object-stores", in.Via) {
			return in.Word, true
		}
	}
	return in.Word, (in.Taint|in.Word.Taint|it.Src.Taint&act.FromNetwork)&taints(args) != 0
}

func readsStdin(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	v := it.Inv
	if strings.HasPrefix(v.Exe, "py") && v.Has("-m") { // a module reads data, not a program
		return act.Word{}, false
	}
	if slices.Contains(e.Groups.Get("shells"), v.Exe) && v.Has("-n") { // the program is only checked
		return act.Word{}, false
	}
	if !strings.HasSuffix(v.Exe, "sh") && hasProgram(v) { // the command contains the program, so the input is data
		return act.Word{}, false
	}
	return act.Word{}, len(v.Operands) == 0 || v.Operands[0].Text == "-" || v.Has("-s") || strings.HasPrefix(v.Operands[0].Text, "/dev/stdin") || v.Operands[0].Text == "/dev/fd/0" || v.Operands[0].Text == "/proc/self/fd/0"
}

func taintedWord(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	want := taints(args)
	return first(arguments(it), func(w act.Word) bool {
		return w.Taint&want != 0 && !(want == act.FromNetwork && parameterOnly(e, it.Inv, w))
	})
}

// parameterOnly reports whether a word is only a parameter of a shell script that is given with -c
// or as a file.
func parameterOnly(e *interp.Env, v *act.Invocation, w act.Word) bool {
	return slices.Contains(e.Groups.Get("shells"), v.Exe) && !v.Has("-s") && len(v.Operands) > 1 && v.Operands[0].Taint&w.Taint == 0 && v.Operands[0].Known()
}

func dynamicWord(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(targets(it), func(w act.Word) bool { return !w.Known() })
}

func runsAsRoot(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return act.Word{}, it.Inv.Root
}

// copyOf reports whether an operand is a file that is a copy of one of the named programs.
func copyOf(e *interp.Env, it *act.Item, names []string) (act.Word, bool) {
	names, err := e.Names(names)
	if err != nil {
		return act.Word{}, false
	}
	return first(it.Inv.Operands, func(w act.Word) bool {
		name, ok := e.Programs[e.Key(it.Inv.Cwd, w.Text)]
		return ok && slices.Contains(names, name)
	})
}

// modeIs reports whether a word of chmod passes one of the tests.
func modeIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool {
		return slices.ContainsFunc(args, func(a string) bool { return modes[a] != nil && modes[a](w.Text) })
	})
}

// closedMode reports whether a mode takes the right to read or to run from everybody.
func closedMode(m string) bool {
	if m != "" && strings.Trim(m, "0") == "" {
		return true
	}
	for part := range strings.SplitSeq(m, ",") {
		who, what, ok := strings.Cut(part, "-")
		if ok && (who == "" || strings.Contains(who, "a") || strings.Contains(who, "u") && strings.Contains(who, "o")) && strings.Trim(who, "ugoa") == "" && strings.ContainsAny(what, "rx") {
			return true
		}
	}
	return false
}

func openMode(m string) bool {
	if n := len(m); n >= 3 && n <= 4 && strings.Trim(m, "01234567") == "" {
		return strings.IndexByte("2367", m[n-1]) >= 0
	}
	for _, part := range strings.Split(m, ",") {
		who, what, ok := strings.Cut(part, "+")
		if !ok {
			who, what, ok = strings.Cut(part, "=")
		}
		if ok && strings.Trim(who, "ugoa") == "" && strings.ContainsAny(who, "oa") && strings.Contains(what, "w") {
			return true
		}
	}
	return false
}

func setuidMode(m string) bool {
	if len(m) == 4 && strings.Trim(m, "01234567") == "" {
		return m[0] == '4' || m[0] == '6' || m[0] == '2' || m[0] == '7'
	}
	for _, part := range strings.Split(m, ",") {
		if who, what, ok := strings.Cut(part, "+"); ok && strings.Trim(who, "ugoa") == "" && strings.Contains(what, "s") && strings.Trim(what, "rwxXst") == "" {
			return true
		}
	}
	return false
}

// sharedMode reports whether a mode gives new files in a folder to the folder's group and lets the
// group write: g+s, 2775. For a program the same mode would be setgid.
func sharedMode(m string) bool {
	if len(m) == 4 && strings.Trim(m, "01234567") == "" {
		return m[0] == '2' && m[2] == '7'
	}
	return m == "g+s" || m == "g+ws" || m == "g+rws" || m == "g+rwxs" || m == "g+rwXs" || m == "g+sw" || m == "g+srw"
}

// unpinned reports whether the first operand, a package, has no exact version.
func unpinned(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	packages := targets(it)
	if len(packages) == 0 {
		return act.Word{}, true
	}
	t := strings.TrimPrefix(packages[0].Text, "@")
	if i := strings.LastIndexByte(t, '@'); i > 0 && i+1 < len(t) && t[i+1] >= '0' && t[i+1] <= '9' || strings.Contains(t, "==") {
		return act.Word{}, false
	}
	return packages[0], true
}

// foreignSource reports whether a package comes from a URL or a version control system. With an
// argument it tests only the first operand and the options, because the other operands are
// arguments of the package.
func foreignSource(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	list := targets(it)
	if len(args) > 0 && len(list) > 1 && it.Inv != nil {
		list = list[:1]
		for _, name := range [...]string{"-p", "--package", "--from", "--with"} {
			if w, ok := it.Inv.Value(name); ok {
				list = append(list, w)
			}
		}
	}
	return first(list, func(w act.Word) bool { return elsewhere(w.Text) })
}

// elsewhere reports whether a package is named by a URL.
func elsewhere(t string) bool {
	for _, p := range [...]string{"http://", "https://", "git+", "git://", "ssh://", "hg+", "svn+", "github:", "gitlab:", "ftp://", "git@"} {
		if strings.HasPrefix(t, p) || strings.Contains(t, "@"+p) || strings.Contains(t, "@ "+p) {
			return true
		}
	}
	return false
}

// foreignValue reports whether an option for packages, or for a text that runs, has a URL.
func foreignValue(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return option(it.Inv, func(o *act.Option) bool { return sourceOptions.Has(o.Name) && elsewhere(o.Value.Text) })
}

// sourceOptions are options that name the source of a package, or a text that runs.
var sourceOptions = scan.SetOf("--from --with --spec -r --requirement --with-requirements -c --constraint -f --file -S -u -l --load")

// foreignKnown reports whether an operand is a URL of a public registry.
func foreignKnown(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		return scan.HasAnyPrefix(w.Text, "https://deno.land/", "https://esm.sh/", "https://jsr.io/", "https://cdn.jsdelivr.net/", "https://flathub.org/", "https://dl.flathub.org/", "github:NixOS/", "https://rubygems.org/", "https://pypi.org/")
	})
}

// downloadedRun reports whether the command downloaded the file that it runs, reads or makes
// executable. With "self" it tests the program itself, with "script" only the first operand.
func downloadedRun(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	v := it.Inv
	if slices.Contains(args, "self") && len(v.Argv) > 0 {
		return v.Argv[0], downloadedProgram(e, v)
	}
	list := v.Operands
	if slices.Contains(args, "script") { // the first operand is the program, the others are data
		list = list[:min(1, len(list))]
		if v.Has("-m") && slices.Contains(e.Groups.Get("pythons"), v.Exe) {
			list = nil
		}
	}
	return first(list, func(w act.Word) bool { return fetched(e, v, w) })
}

// fetched reports whether a word, or the file that it names, came from the network.
func fetched(e *interp.Env, v *act.Invocation, w act.Word) bool {
	return w.Taint&act.FromNetwork != 0 && w.Known() && w.Text != "" || e.Files[e.Key(v.Cwd, w.Text)].Taint&act.FromNetwork != 0
}

// downloadedProgram reports whether the program was downloaded to the path by which it is called,
// or to a folder on the search path.
func downloadedProgram(e *interp.Env, v *act.Invocation) bool {
	name := v.Argv[0]
	if strings.IndexByte(name.Text, '/') >= 0 {
		return fetched(e, v, name)
	}
	return len(e.Files) > 0 && slices.ContainsFunc(facts.StandardDirectories[:], func(d string) bool { return e.Files[d+name.Text].Taint&act.FromNetwork != 0 })
}

func loadsDownloaded(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return option(it.Inv, func(o *act.Option) bool {
		return e.Files[e.Key(it.Inv.Cwd, o.Value.Text)].Taint&act.FromNetwork != 0
	})
}

// deviceOperand reports whether an operand, or dd's of=, names a block device.
func deviceOperand(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for _, w := range it.Inv.Operands {
		if rest, ok := strings.CutPrefix(w.Text, "of="); ok {
			w.Text = rest
		} else if strings.HasPrefix(w.Text, "if=") {
			continue
		}
		if e.ClassOf(w, it.Inv.Cwd)&paths.IsDevice != 0 {
			return w, true
		}
	}
	return act.Word{}, false
}

// argFile tests the files in words of the form "@file", "name=@file" or "name=<file".
func argFile(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	want := classes(args)
	for _, w := range it.Inv.Argv[min(1, len(it.Inv.Argv)):] {
		at := fileMark(w.Text, e.In("httpies", it.Inv.Exe))
		if at < 0 {
			continue
		}
		f := w.Tail(at + 1)
		for part := range strings.FieldsFuncSeq(f.Text, func(r rune) bool { return r == ';' || r == ',' }) {
			if e.ClassOf(act.Word{Text: part}, it.Inv.Cwd)&want != 0 {
				return f, true
			}
		}
		f.Text, _, _ = strings.Cut(f.Text, ";")
		r := e.Files[e.Key(it.Inv.Cwd, f.Text)]
		if e.ClassOf(f, it.Inv.Cwd)&want != 0 || r.Taint&fromSecrets != 0 && want&paths.IsCredential != 0 {
			return f, true
		}
	}
	return act.Word{}, false
}

// fileMark returns the offset of the "@" or "<" before a file name in a word, or -1. The character
// is at the beginning, after "=" or after a short option, and for HTTPie (field@file) anywhere.
func fileMark(text string, anywhere bool) int {
	at := strings.IndexByte(text, '@')
	if at > 0 && anywhere {
		return at
	}
	if at < 0 {
		at = strings.IndexByte(text, '<')
	}
	if at > 0 && text[at-1] != '=' && !(text[0] == '-' && at == 2) {
		return -1
	}
	return at
}

func assignIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		return scan.HasAnyPrefix(w.Text, args...)
	})
}

// opensFirewall reports whether a new set of firewall rules, which replaces the old one, blocks
// nothing.
func opensFirewall(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	in := v.Stdin
	if len(v.Operands) > 0 {
		in = e.Files[e.Key(v.Cwd, v.Operands[0].Text)]
		in.Known = in.Known || v.Operands[0].Text == "/dev/null"
	}
	if !in.Known || v.Has("-n") || v.Has("--noflush") || v.Has("-t") || v.Has("--test") {
		return act.Word{}, false
	}
	return in.Word, !strings.Contains(in.Word.Text, "DROP") && !strings.Contains(in.Word.Text, "REJECT")
}

// shadowsProgram reports whether a file from a world-writable folder replaces a program of another
// name, or takes precedence over it.
func shadowsProgram(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	list := it.Inv.Operands
	if len(list) != 2 || !facts.WorldWritable(list[0].Text) {
		return act.Word{}, false
	}
	folder, name := path.Split(list[1].Text)
	return list[1], strings.HasSuffix(folder, "bin/") && name != "" && name != scan.Base(list[0].Text) && !e.Stranger(name)
}

// startsShell reports whether a terminal multiplexer or recorder gets no command, so that it
// starts a shell.
func startsShell(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Exe == "script" {
		return v.Argv[0], len(v.Operands) < 2
	}
	return v.Argv[0], len(v.Operands) == 0 || len(v.Operands) == 1 && (v.Operands[0].Text == "new" || v.Operands[0].Text == "new-session")
}

// onlySets reports whether all operands are assignments to these names.
func onlySets(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	names := args
	if len(args) == 1 && strings.HasPrefix(args[0], "@") {
		names = e.Groups.Get(args[0][1:])
	}
	list := targets(it)
	for _, w := range list {
		name, _, sets := strings.Cut(w.Text, "=")
		if !sets || !slices.ContainsFunc(names, func(n string) bool { return act.MatchWord(n, name) }) {
			return act.Word{}, false
		}
	}
	return act.Word{}, len(list) > 0
}

// operandLike reports whether the single operand after the subcommand matches a pattern.
func operandLike(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	list := targets(it)
	if len(list) != 2 {
		return act.Word{}, false
	}
	return list[1], slices.ContainsFunc(args, func(p string) bool { return paths.GlobMatch(p, list[1].Text) })
}

// hasProgram reports whether an interpreter gets its program in an option, and the program does
// not run its input.
func hasProgram(v *act.Invocation) bool {
	found := false
	for i := range v.Opts {
		switch o := &v.Opts[i]; o.Name {
		case "-e", "-E", "-c", "-r", "--eval", "-p", "--print":
			found = true
			if scan.HasAny(o.Value.Text, "eval", "exec", "Function", "system", "spawn", "popen", "runIn", "include", "require_once") {
				return false
			}
		}
	}
	return found
}
