package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// shellPredicates test invocations. Their arguments are alternatives.
var shellPredicates = map[string]predicate{
	"operand":         operandIs,       // a path operand is of one of these classes
	"all-of":          allOf,           // an operand is every file of a folder of that class
	"acl":             aclIs,           // setfacl: open lets everybody write
	"operands":        countIs,         // how many operands: none, one, some, many
	"last":            lastIs,          // the last operand's path class
	"first":           firstIs,         // the first operand's path class
	"word":            wordIs,          // an operand equals one of these words, or begins with one ending in *
	"contains":        contains,        // any word or option value contains one of these, in any case
	"option":          optionIs,        // "--opt=value|…" or option given
	"stdin":           stdinIs,         // taint of the input: network secret environ dump decoded unknown
	"reads-stdin":     readsStdin,      // nothing else to read is named
	"tainted":         taintedWord,     // a word carries text from there
	"gitset":          gitSet,          // a Git setting holds: name=off, name=now
	"expires":         expires,         // takes away what is new, not only what is old
	"refspec":         refspecIs,       // what a push or branch command is about: protected, unknown, topic, force, delete
	"program-url":     programURL,      // the program that it is to run is an address
	"url":             urlIs,           // a URL operand: local, foreign, insecure, metadata, install
	"method":          methodIs,        // HTTP method of the invocation
	"upload":          uploads,         // sends a body or a file
	"var":             varIs,           // a word holds an unknown variable: secret, any
	"dynamic":         dynamicWord,     // an operand is unknown
	"root":            runsAsRoot,      // runs as root for sure
	"copyof":          copyOf,          // a word is a copy of one of the programs, made by the command itself
	"mode":            modeIs,          // chmod mode: open, closed, setuid
	"unpinned":        unpinned,        // a package without an exact version
	"foreign":         foreignSource,   // a package from a URL, path or VCS
	"loads":           loadsDownloaded, // the value of an option names a file that the command itself downloaded
	"downloaded":      downloadedRun,   // runs a file the command itself downloaded
	"mount":           mountIs,         // a container mount of: root, docker-socket, system
	"exact":           exactOption,     // an option exactly so, no abbreviation
	"signal":          signalIs,
	"findfilter":      findFilter,
	"junk":            findJunk,
	"device":          deviceOperand, // of=… or an operand names a block device
	"argfile":         argFile,       // a word "@file", "key=@file" or "=<file" names a path of that class
	"assign":          assignIs,      // an operand NAME=value with that prefix
	"branch":          branchIs,      // the action's branch: protected
	"discards":        discards,      // git checkout of paths, not of a branch
	"generated":       generated,     // all paths are files that tools generate
	"configvalue":     configValue,   // git config with a value
	"ownsettings":     ownSettings,   // lines that only set a path, a variable or a short name
	"emptied":         emptied,       // nothing is written
	"k8sother":        otherResource, // kubectl delete of a kind no other rule names
	"awsplain":        plainAWS,      // an AWS call that no other rule is about
	"awssecret":       awsSecret,     // the value is shown in the clear
	"first-remote":    firstRemote,   // the remote of a git push
	"verb":            verbIs,        // one of the first five operands is one of these words
	"ruled":           alreadyRuled,  // another rule has matched this invocation
	"known-service":   knownService,
	"unknown-tool":    unknownTool,  // no table knows the program
	"remote-system":   remoteSystem, // host:/system/path is written
	"bodytext":        bodyText,     // what is sent is a GraphQL mutation that deletes
	"optvalue":        optValue,     // the value of any option matches
	"first-word":      firstWord,    // the first operand equals one of these
	"made":            madeWith,     // a saved plan was made with one of these options
	"foreignvalue":    foreignValue, // so is the value of an option that names packages or a text to run
	"foreignknown":    foreignKnown, // of a registry that everybody uses
	"opens-firewall":  opensFirewall,
	"shadows-program": shadowsProgram,
	"starts-shell":    startsShell,
}

func targets(it *item) []Word {
	if it.inv == nil {
		return nil
	}
	return it.inv.operands[min(it.inv.data, len(it.inv.operands)):]
}

func operandIs(e *engine, it *item, args []string) (Word, bool) {
	v, want := it.inv, classes(args)
	if v == nil {
		return Word{}, false
	}
	if len(v.classes) != len(v.operands) {
		v.classes = make([]paths.Class, len(v.operands))
		for i, w := range v.operands {
			v.classes[i] = e.classOf(w, v.cwd)
		}
	}
	for i := min(v.data, len(v.operands)); i < len(v.operands); i++ {
		if v.classes[i]&want != 0 {
			return v.operands[i], true
		}
	}
	return Word{}, false
}

// allOf: "*" at the end of a path is all that the folder holds.
func allOf(e *engine, it *item, args []string) (Word, bool) {
	for _, w := range targets(it) {
		switch i := strings.LastIndexByte(w.Text, '/'); w.Text[i+1:] {
		case "*", "**", ".*", "*.*", "{*,.*}":
			if c := e.classOf(w, it.inv.cwd); w.Glob && c&classes(args) != 0 && c&(paths.IsTemp|paths.IsRebuildable) == 0 {
				return w, true
			}
		}
	}
	return Word{}, false
}

// aclIs: an entry for others, or for a named everybody, with the right to write.
func aclIs(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.argv[1:] {
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
	return Word{}, false
}

func classes(args []string) paths.Class {
	var c paths.Class
	for _, a := range args {
		c |= paths.ClassByName[a]
	}
	return c
}

func lastIs(e *engine, it *item, args []string) (Word, bool) {
	if t := targets(it); len(t) > 1 {
		w := t[len(t)-1]
		return w, e.classOf(w, it.inv.cwd)&classes(args) != 0
	}
	return Word{}, false
}

func firstIs(e *engine, it *item, args []string) (Word, bool) {
	if t := targets(it); len(t) > 0 {
		return t[0], e.classOf(t[0], it.inv.cwd)&classes(args) != 0
	}
	return Word{}, false
}

func countIs(_ *engine, it *item, args []string) (Word, bool) {
	n := len(targets(it))
	for _, a := range args {
		if a == "none" && n == 0 || a == "one" && n == 1 || a == "some" && n > 0 || a == "many" && n > 1 || a == "two" && n == 2 {
			return Word{}, true
		}
	}
	return Word{}, false
}

func wordIs(_ *engine, it *item, args []string) (Word, bool) {
	for _, w := range targets(it) {
		for _, a := range args {
			if matchWord(a, w.Text) {
				return w, true
			}
		}
	}
	return Word{}, false
}

// matchWord: equal, or the pattern ends or begins with *.
func matchWord(pattern, s string) bool {
	n := len(pattern) - 1
	switch {
	case n > 0 && pattern[n] == '*' && pattern[0] == '*':
		return strings.Contains(s, pattern[1:n])
	case n >= 0 && pattern[n] == '*':
		return strings.HasPrefix(s, pattern[:n])
	case n > 0 && pattern[0] == '*':
		return strings.HasSuffix(s, pattern[1:])
	}
	return pattern == s
}

func contains(_ *engine, it *item, args []string) (Word, bool) {
	if it.inv == nil {
		return Word{}, false
	}
	for _, w := range it.inv.argv[min(1, len(it.inv.argv)):] {
		lower := strings.ToLower(w.Text)
		for _, a := range args {
			if strings.Contains(lower, a) {
				return w, true
			}
		}
	}
	return Word{}, false
}

func optionIs(_ *engine, it *item, args []string) (Word, bool) {
	for _, a := range args {
		name, pattern, valued := strings.Cut(a, "=")
		for i := range it.inv.opts {
			o := &it.inv.opts[i]
			if o.name == name && (!valued || matchWord(pattern, o.value.Text)) {
				return o.value, true
			}
		}
	}
	return Word{}, false
}

func optValue(_ *engine, it *item, args []string) (Word, bool) {
	for i := range it.inv.opts {
		for _, a := range args {
			if o := &it.inv.opts[i]; o.given && matchWord(a, o.value.Text) {
				return o.value, true
			}
		}
	}
	return Word{}, false
}

func exactOption(_ *engine, it *item, args []string) (Word, bool) {
	for i := 1; i < len(it.inv.argv); i++ {
		for _, a := range args {
			if it.inv.argv[i].Text == a {
				return it.inv.argv[i], true
			}
		}
	}
	return Word{}, false
}

var taintByName = map[string]taint{"network": fromNetwork, "secret": fromSecret, "environ": fromEnviron,
	"dump": fromDump, "decoded": fromDecoder, "unknown": fromStdin}

func taints(args []string) taint {
	var t taint
	for _, a := range args {
		t |= taintByName[a]
	}
	return t
}

func stdinIs(e *engine, it *item, args []string) (Word, bool) {
	in := it.inv.stdin
	for _, a := range args {
		if a == "text" && in.known && in.word.Text != "" {
			return in.word, true
		}
		if a == "object" && objectStores[in.via] {
			return in.word, true
		}
	}
	return in.word, (in.taint|in.word.Taint|it.src.taint&fromNetwork)&taints(args) != 0
}

func readsStdin(e *engine, it *item, args []string) (Word, bool) {
	v := it.inv
	if strings.HasPrefix(v.exe, "py") && v.has("-m") { // a module, which reads data
		return Word{}, false
	}
	if slices.Contains(e.groups["shells"], v.exe) && v.has("-n") { // it is only checked
		return Word{}, false
	}
	if !strings.HasSuffix(v.exe, "sh") && hasProgram(v) { // its program stands in the command, the input is data
		return Word{}, false
	}
	return Word{}, len(v.operands) == 0 || v.operands[0].Text == "-" || v.has("-s") || strings.HasPrefix(v.operands[0].Text, "/dev/stdin") || v.operands[0].Text == "/dev/fd/0" || v.operands[0].Text == "/proc/self/fd/0"
}

func taintedWord(e *engine, it *item, args []string) (Word, bool) {
	want := taints(args)
	for _, w := range it.inv.argv[min(1, len(it.inv.argv)):] {
		if w.Taint&want != 0 && !(want == fromNetwork && parameterOnly(e, it.inv, w)) {
			return w, true
		}
	}
	return Word{}, false
}

// parameterOnly: a shell is given its text with -c or in a file; the word is one of
// the parameters behind it, which the text may use or not.
func parameterOnly(e *engine, v *invocation, w Word) bool {
	return slices.Contains(e.groups["shells"], v.exe) && !v.has("-s") && len(v.operands) > 1 && v.operands[0].Taint&w.Taint == 0 && v.operands[0].known()
}

func dynamicWord(e *engine, it *item, _ []string) (Word, bool) {
	for _, w := range targets(it) {
		if !w.known() {
			return w, true
		}
	}
	return Word{}, false
}

func runsAsRoot(_ *engine, it *item, _ []string) (Word, bool) { return Word{}, it.inv.root }

// modeIs looks at chmod's first operand.
func copyOf(e *engine, it *item, names []string) (Word, bool) {
	names, err := e.names(names)
	if err != nil {
		return Word{}, false
	}
	for _, w := range it.inv.operands {
		if name, ok := e.programs[paths.FileKey(it.inv.cwd, w.Text)]; ok && slices.Contains(names, name) {
			return w, true
		}
	}
	return Word{}, false
}

func modeIs(_ *engine, it *item, args []string) (Word, bool) {
	if len(it.inv.argv) < 2 {
		return Word{}, false
	}
	for _, w := range it.inv.argv[1:] {
		for _, a := range args {
			if a == "open" && openMode(w.Text) || a == "setuid" && setuidMode(w.Text) || a == "closed" && closedMode(w.Text) {
				return w, true
			}
		}
	}
	return Word{}, false
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
		return m[n-1] == '7' || m[n-1] == '6' || m[n-1] == '2' || m[n-1] == '3'
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

// unpinned: the first operand, which names a package, has no exact version.
func unpinned(_ *engine, it *item, _ []string) (Word, bool) {
	packages := targets(it)
	if len(packages) == 0 {
		return Word{}, true
	}
	t := strings.TrimPrefix(packages[0].Text, "@")
	if i := strings.LastIndexByte(t, '@'); i > 0 && i+1 < len(t) && t[i+1] >= '0' && t[i+1] <= '9' || strings.Contains(t, "==") {
		return Word{}, false
	}
	return packages[0], true
}

// foreignSource: a package that comes from a URL or a version control system; "first" looks at the
// first operand and the options only, what follows belongs to the package.
func foreignSource(_ *engine, it *item, args []string) (Word, bool) {
	list := targets(it)
	if len(args) > 0 && len(list) > 1 && it.inv != nil {
		list = list[:1]
		for _, name := range [...]string{"-p", "--package", "--from", "--with"} {
			if w, ok := it.inv.value(name); ok {
				list = append(list, w)
			}
		}
	}
	for _, w := range list {
		if elsewhere(w.Text) {
			return w, true
		}
	}
	return Word{}, false
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
func foreignValue(_ *engine, it *item, _ []string) (Word, bool) {
	for i := range it.inv.opts {
		switch o := &it.inv.opts[i]; o.name {
		case "--from", "--with", "--spec", "-r", "--requirement", "--with-requirements", "-c", "--constraint", "-f", "--file", "-S", "-u", "-l", "--load":
			if elsewhere(o.value.Text) {
				return o.value, true
			}
		}
	}
	return Word{}, false
}

// foreignKnown: the address is one of a registry.
func foreignKnown(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		for _, p := range [...]string{"https://deno.land/", "https://esm.sh/", "https://jsr.io/", "https://cdn.jsdelivr.net/", "https://flathub.org/", "https://dl.flathub.org/", "github:NixOS/", "https://rubygems.org/", "https://pypi.org/"} {
			if strings.HasPrefix(w.Text, p) {
				return w, true
			}
		}
	}
	return Word{}, false
}

// downloadedRun: the file it runs, reads or makes executable was downloaded by
// the same command.
func downloadedRun(e *engine, it *item, args []string) (Word, bool) {
	v := it.inv
	check := func(w Word) bool {
		if w.Taint&fromNetwork != 0 && w.known() && w.Text != "" {
			return true
		}
		f, ok := e.files[paths.FileKey(v.cwd, w.Text)]
		return ok && f.taint&fromNetwork != 0
	}
	if len(v.argv) > 0 && len(args) > 0 && args[0] == "self" {
		first := v.argv[0]
		if strings.IndexByte(first.Text, '/') >= 0 {
			return first, check(first)
		}
		for _, d := range standardDirectories { // saved where programs are found by their bare name
			if f, ok := e.files[d+first.Text]; ok && f.taint&fromNetwork != 0 {
				return first, true
			}
		}
		return first, false
	}
	for i, w := range v.operands {
		if len(args) > 0 && args[0] == "script" && (i > 0 || v.has("-m") && slices.Contains(e.groups["pythons"], v.exe)) { // its program; the others are data
			break
		}
		if check(w) {
			return w, true
		}
	}
	return Word{}, false
}

func loadsDownloaded(e *engine, it *item, _ []string) (Word, bool) {
	for i := range it.inv.opts {
		o := &it.inv.opts[i]
		if f, ok := e.files[paths.FileKey(it.inv.cwd, o.value.Text)]; ok && o.given && f.taint&fromNetwork != 0 {
			return o.value, true
		}
	}
	return Word{}, false
}

func signalIs(_ *engine, it *item, args []string) (Word, bool) {
	for _, w := range it.inv.argv[min(1, len(it.inv.argv)):] {
		for _, a := range args {
			if w.Text == a {
				return w, true
			}
		}
	}
	return Word{}, false
}

// deviceOperand: dd's of= or an operand names a block device.
func deviceOperand(e *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		if rest, ok := strings.CutPrefix(w.Text, "of="); ok {
			w.Text = rest
		} else if strings.HasPrefix(w.Text, "if=") {
			continue
		}
		if e.classOf(w, it.inv.cwd)&paths.IsDevice != 0 {
			return w, true
		}
	}
	return Word{}, false
}

// argFile: words of the form "@file", "name=@file", "name=<file".
func argFile(e *engine, it *item, args []string) (Word, bool) {
	want := classes(args)
	for i := 1; i < len(it.inv.argv); i++ {
		w := it.inv.argv[i]
		j := strings.IndexByte(w.Text, '@')
		httpie := j > 0 && (it.inv.exe == "http" || it.inv.exe == "https" || it.inv.exe == "xh" || it.inv.exe == "xhs") // field@file
		if j < 0 {
			j = strings.IndexByte(w.Text, '<')
		}
		if j < 0 || !httpie && j > 0 && w.Text[j-1] != '=' && !(w.Text[0] == '-' && j == 2) {
			continue
		}
		f := w.tail(j + 1)
		for part := range strings.FieldsFuncSeq(f.Text, func(r rune) bool { return r == ';' || r == ',' }) {
			if e.classOf(Word{Text: part}, it.inv.cwd)&want != 0 {
				return f, true
			}
		}
		f.Text, _, _ = strings.Cut(f.Text, ";")
		if e.classOf(f, it.inv.cwd)&want != 0 {
			return f, true
		}
		if r := e.files[paths.FileKey(it.inv.cwd, f.Text)]; r.taint&(fromSecret|fromDump|fromEnviron) != 0 && want&paths.IsCredential != 0 {
			return f, true
		}
	}
	return Word{}, false
}

func assignIs(_ *engine, it *item, args []string) (Word, bool) {
	for _, w := range it.inv.operands {
		for _, a := range args {
			if strings.HasPrefix(w.Text, a) {
				return w, true
			}
		}
	}
	return Word{}, false
}
