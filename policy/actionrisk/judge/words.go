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

// ShellPredicates test invocations. Their arguments are alternatives.
var ShellPredicates = map[string]interp.Predicate{
	"synced-here":        syncedHere,      // two folders of the project, or temporary ones
	"homefile":           homeFile,        // an operand is one of these, seen from a home directory
	"production":         inProduction,    // the call says that it is about production
	"vital":              vital,           // a path operand is of one of these classes, and no drop-in
	"dropin":             dropIn,          // a path operand is a file that adds to the settings of a part of the system
	"operand":            operandIs,       // a path operand is of one of these classes
	"all-of":             allOf,           // an operand is every file of a folder of that class
	"acl":                aclIs,           // setfacl: open lets everybody write
	"operands":           countIs,         // how many operands: none, one, some, many
	"last":               lastIs,          // the last operand's path class
	"first":              firstIs,         // the first operand's path class
	"word":               wordIs,          // an operand equals one of these words, or begins with one ending in *
	"contains":           contains,        // any word or option value contains one of these, in any case
	"option":             optionIs,        // "--opt=value|…" or option given
	"stdin":              stdinIs,         // taint of the input: network secret environ dump decoded unknown
	"reads-stdin":        readsStdin,      // nothing else to read is named
	"tainted":            taintedWord,     // a word carries text from there
	"gitset":             gitSet,          // a Git setting holds: name=off, name=now
	"expires":            expires,         // takes away what is new, not only what is old
	"refspec":            refspecIs,       // what a push or branch command is about: protected, unknown, topic, force, delete
	"program-url":        programURL,      // the program that it is to run is an address
	"url":                urlIs,           // a URL operand: local, foreign, insecure, metadata, install
	"method":             methodIs,        // HTTP method of the invocation
	"upload":             uploads,         // sends a body or a file
	"var":                varIs,           // a word holds an unknown variable: secret, any
	"dynamic":            dynamicWord,     // an operand is unknown
	"root":               runsAsRoot,      // runs as root for sure
	"copyof":             copyOf,          // a word is a copy of one of the programs, made by the command itself
	"mode":               modeIs,          // chmod mode: open, closed, setuid
	"unpinned":           unpinned,        // a package without an exact version
	"foreign":            foreignSource,   // a package from a URL, path or VCS
	"loads":              loadsDownloaded, // the value of an option names a file that the command itself downloaded
	"downloaded":         downloadedRun,   // runs a file the command itself downloaded
	"mount":              mountIs,         // a container mount of: root, docker-socket, system
	"exact":              exactOption,     // an option exactly so, no abbreviation
	"signal":             exactOption,
	"findfilter":         findFilter,
	"junk":               findJunk,
	"device":             deviceOperand, // of=… or an operand names a block device
	"argfile":            argFile,       // a word "@file", "key=@file" or "=<file" names a path of that class
	"assign":             assignIs,      // an operand NAME=value with that prefix
	"branch":             branchIs,      // the action's branch: protected
	"discards":           discards,      // git checkout of paths, not of a branch
	"generated":          generated,     // all paths are files that tools generate
	"configvalue":        configValue,   // git config with a value
	"ownsettings":        ownSettings,   // lines that only set a path, a variable or a short name
	"emptied":            emptied,       // nothing is written
	"k8sother":           otherResource, // kubectl delete of a kind no other rule names
	"awsplain":           plainAWS,      // an AWS call that no other rule is about
	"awssecret":          awsSecret,     // the value is shown in the clear
	"test-database":      testDatabase,  // a database of tests, by its name
	"remote-address":     remoteAddress, // the remote of a git push is an address, or one that the command itself added
	"answered-yes":       answeredYes,   // its questions are answered by a pipe
	"first-remote":       firstRemote,   // the remote of a git push
	"verb":               verbIs,        // one of the first five operands is one of these words
	"ruled":              alreadyRuled,  // another rule has matched this invocation
	"known-service":      knownService,
	"unknown-tool":       unknownTool,  // no table knows the program
	"remote-system":      remoteSystem, // host:/system/path is written
	"bodytext":           bodyText,     // what is sent is a GraphQL mutation that deletes
	"optvalue":           optValue,     // the value of any option matches
	"first-word":         firstWord,    // the first operand equals one of these
	"made":               madeWith,     // a saved plan was made with one of these options
	"foreignvalue":       foreignValue, // so is the value of an option that names packages or a text to run
	"foreignknown":       foreignKnown, // of a registry that everybody uses
	"opens-firewall":     opensFirewall,
	"shadows-program":    shadowsProgram,
	"starts-shell":       startsShell,
	"only-sets":          onlySets,    // every operand is NAME=value with one of these names
	"last-like":          lastLike,    // the last operand matches one of these patterns
	"first-operand-like": operandLike, // the operand after the subcommand matches one of these paths
}

func targets(it *act.Item) []act.Word {
	if it.Inv == nil {
		return nil
	}
	return it.Inv.Operands[min(it.Inv.Data, len(it.Inv.Operands)):]
}

// arguments are all words after the program.
func arguments(it *act.Item) []act.Word {
	if it.Inv == nil {
		return nil
	}
	return it.Inv.Argv[min(1, len(it.Inv.Argv)):]
}

// first is the first word that is so.
func first(list []act.Word, is func(act.Word) bool) (act.Word, bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return act.Word{}, false
}

// option is the value of the first given option that is so.
func option(v *act.Invocation, is func(*act.Option) bool) (act.Word, bool) {
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && is(o) {
			return o.Value, true
		}
	}
	return act.Word{}, false
}

// matchesAny tells whether a text matches one of the patterns.
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

// vital is operandIs without the files that add to the settings of one part of the
// system: to write one over leaves the rest as it is.
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

// addsSettings: a file of a folder of settings, and nothing in it switches off that
// packages are signed.
func addsSettings(e *interp.Env, it *act.Item, w act.Word) bool {
	if scan.HasAny(it.Inv.Stdin.Word.Text, e.Groups.Get("unsigned-sources")...) {
		return false
	}
	folder, name := path.Split(w.Text)
	return w.Known() && !w.Glob && name != "" && name != ".." && slices.Contains(e.Groups.Get("drop-in-folders"), folder)
}

// allOf: "*" at the end of a path is all that the folder holds.
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

// aclIs: an entry for others, or for a named everybody, with the right to write.
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

// modes are what rules ask of a mode that chmod gives.
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
	if strings.HasPrefix(v.Exe, "py") && v.Has("-m") { // a module, which reads data
		return act.Word{}, false
	}
	if slices.Contains(e.Groups.Get("shells"), v.Exe) && v.Has("-n") { // it is only checked
		return act.Word{}, false
	}
	if !strings.HasSuffix(v.Exe, "sh") && hasProgram(v) { // its program is in the command, the input is data
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

// parameterOnly: a shell is given its text with -c or in a file; the word is one of
// the parameters after it, which the text may use or not.
func parameterOnly(e *interp.Env, v *act.Invocation, w act.Word) bool {
	return slices.Contains(e.Groups.Get("shells"), v.Exe) && !v.Has("-s") && len(v.Operands) > 1 && v.Operands[0].Taint&w.Taint == 0 && v.Operands[0].Known()
}

func dynamicWord(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(targets(it), func(w act.Word) bool { return !w.Known() })
}

func runsAsRoot(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return act.Word{}, it.Inv.Root
}

// copyOf: an operand is a file that is known to be one of the named programs.
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

// modeIs: a word of chmod gives or takes such rights.
func modeIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool {
		return slices.ContainsFunc(args, func(a string) bool { return modes[a] != nil && modes[a](w.Text) })
	})
}

// closedMode takes the right to read or to run away from everybody.
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

// sharedMode makes what is put into a folder belong to its group, and lets that write:
// g+s, 2775. As a mode of a program it would be another thing.
func sharedMode(m string) bool {
	if len(m) == 4 && strings.Trim(m, "01234567") == "" {
		return m[0] == '2' && m[2] == '7'
	}
	return m == "g+s" || m == "g+ws" || m == "g+rws" || m == "g+rwxs" || m == "g+rwXs" || m == "g+sw" || m == "g+srw"
}

// unpinned: the first operand, which names a package, has no exact version.
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

// foreignSource: a package that comes from a URL or a version control system; "first" looks at the
// first operand and the options only, what follows belongs to the package.
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

// elsewhere: a package that is named by its address.
func elsewhere(t string) bool {
	for _, p := range [...]string{"http://", "https://", "git+", "git://", "ssh://", "hg+", "svn+", "github:", "gitlab:", "ftp://", "git@"} {
		if strings.HasPrefix(t, p) || strings.Contains(t, "@"+p) || strings.Contains(t, "@ "+p) {
			return true
		}
	}
	return false
}

// foreignValue looks at the options that name packages, or a text that runs.
func foreignValue(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return option(it.Inv, func(o *act.Option) bool { return sourceOptions.Has(o.Name) && elsewhere(o.Value.Text) })
}

// sourceOptions name where a package comes from, or a text that runs.
var sourceOptions = scan.SetOf("--from --with --spec -r --requirement --with-requirements -c --constraint -f --file -S -u -l --load")

// foreignKnown: the address is one of a registry.
func foreignKnown(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		return scan.HasAnyPrefix(w.Text, "https://deno.land/", "https://esm.sh/", "https://jsr.io/", "https://cdn.jsdelivr.net/", "https://flathub.org/", "https://dl.flathub.org/", "github:NixOS/", "https://rubygems.org/", "https://pypi.org/")
	})
}

// downloadedRun: the file it runs, reads or makes executable was downloaded by
// the same command; with "self" the program itself.
func downloadedRun(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	v := it.Inv
	if slices.Contains(args, "self") && len(v.Argv) > 0 {
		return v.Argv[0], downloadedProgram(e, v)
	}
	list := v.Operands
	if slices.Contains(args, "script") { // its program; the others are data
		list = list[:min(1, len(list))]
		if v.Has("-m") && slices.Contains(e.Groups.Get("pythons"), v.Exe) {
			list = nil
		}
	}
	return first(list, func(w act.Word) bool { return fetched(e, v, w) })
}

// fetched: the word, or the file that it names, came over the network.
func fetched(e *interp.Env, v *act.Invocation, w act.Word) bool {
	return w.Taint&act.FromNetwork != 0 && w.Known() && w.Text != "" || e.Files[e.Key(v.Cwd, w.Text)].Taint&act.FromNetwork != 0
}

// downloadedProgram: the program was saved where it is called, or where programs are
// found by their bare name.
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

// deviceOperand: dd's of= or an operand names a block device.
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

// argFile: words of the form "@file", "name=@file", "name=<file".
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

// fileMark is where the sign is after which a word names a file, or -1: at its
// beginning, after "=" or a short option, and for httpie (field@file) anywhere.
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

// opensFirewall: rules that are put in the place of all others let everything in.
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

// shadowsProgram: a file from where everybody may write takes the place, or comes in
// front, of a program of another name.
func shadowsProgram(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	list := it.Inv.Operands
	if len(list) != 2 || !facts.WorldWritable(list[0].Text) {
		return act.Word{}, false
	}
	folder, name := path.Split(list[1].Text)
	return list[1], strings.HasSuffix(folder, "bin/") && name != "" && name != scan.Base(list[0].Text) && !e.Stranger(name)
}

// startsShell: a multiplexer or a recorder that is given nothing to run runs a shell.
func startsShell(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Exe == "script" {
		return v.Argv[0], len(v.Operands) < 2
	}
	return v.Argv[0], len(v.Operands) == 0 || len(v.Operands) == 1 && (v.Operands[0].Text == "new" || v.Operands[0].Text == "new-session")
}

// onlySets: something is set, and each thing that is set is one of these.
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

// operandLike: the one operand after the subcommand matches a path with stars.
func operandLike(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	list := targets(it)
	if len(list) != 2 {
		return act.Word{}, false
	}
	return list[1], slices.ContainsFunc(args, func(p string) bool { return paths.GlobMatch(p, list[1].Text) })
}

// hasProgram: the interpreter is given its program as an option, and the program
// does not run what it reads.
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
