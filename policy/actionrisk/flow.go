package actionrisk

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// sink is a text that reads what is written to >(…).
type sink func(written flow)

// remember notes what a file written by the command itself holds.
func (e *engine) remember(sh *shell, name Word, f flow, more bool) {
	if s, ok := e.sinks[name.Text]; ok {
		delete(e.sinks, name.Text) // a text that writes to itself ends here
		s(f)
		e.sinks[name.Text] = s
		return
	}
	for _, written := range e.front.written {
		written(sh, name, f)
	}
	if !name.known() || len(f.word.Text) > scan.MaxDecoded || name.Text == "/dev/null" {
		return
	}
	key := paths.FileKey(sh.cwd, name.Text)
	old, ok := e.files[key]
	if !ok && len(e.files) >= scan.MaxFiles {
		return
	}
	if e.files == nil {
		e.files = map[string]flow{}
	}
	if more && ok {
		f = join(old, f)
	}
	e.files[key] = f
}

// readFile is what reading a file gives.
func (e *engine) readFile(sh *shell, name Word) flow {
	if fd, ok := descriptor(name.Text); ok {
		if f, ok := sh.fds[fd]; ok && f.file.Text != name.Text {
			name = f.file
		}
	}
	if f, ok := e.files[paths.FileKey(sh.cwd, name.Text)]; ok && name.known() {
		return f
	}
	if name.Text == "/dev/null" {
		return flow{known: true}
	}
	f := flow{via: "file", taint: name.Taint&^fromStdin | e.within(sh.cwd, name)}
	if strings.HasPrefix(name.Text, "/dev/tcp/") || strings.HasPrefix(name.Text, "/dev/udp/") {
		f.taint |= fromNetwork
	}
	c := e.classOf(name, sh.cwd)
	if c&paths.IsCredential != 0 && c&paths.IsPublic == 0 && !sh.remote || c&paths.IsKeyFolder != 0 {
		f.taint |= fromSecret
	}
	return f
}

// within is the taint of what the command itself wrote above or below a path: a
// folder that was copied, a file that was put into one.
func (e *engine) within(cwd string, name Word) taint {
	if len(e.files) == 0 || !name.known() || name.Text == "" {
		return 0
	}
	key := strings.TrimSuffix(paths.FileKey(cwd, strings.TrimRight(name.Text, "*")), "/")
	if key == "." || key == "/" || key == "~" || key == "/dev" {
		return 0
	}
	var t taint
	pattern := strings.HasSuffix(name.Text, "*")
	for file, f := range e.files {
		switch {
		case pattern && strings.HasPrefix(file, key):
			t |= f.taint & (fromSecret | fromDump | fromEnviron)
		case strings.HasPrefix(file, key+"/"):
			if t |= f.taint & (fromSecret | fromDump | fromEnviron); paths.KindOfFile(file)&(paths.IsCredential|paths.IsPublic) == paths.IsCredential {
				t |= fromSecret
			}
		case strings.HasPrefix(key, file+"/"):
			t |= f.taint & (fromSecret | fromDump | fromEnviron)
		}
	}
	return t
}

// descriptor is the number in /dev/fd/3 and its kind.
func descriptor(p string) (string, bool) {
	for _, prefix := range [...]string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", "/proc/" + string(scan.Hole) + "/fd/"} { // the last is $$
		if fd, ok := strings.CutPrefix(p, prefix); ok {
			return fd, true
		}
	}
	return "", false
}

// output is what an invocation prints, as far as it can be known, and where it
// came from.
func (e *engine) output(sh *shell, v *invocation) flow {
	f := e.printed(sh, v)
	if v.dry && !f.known {
		f.makes = v
		if plan, ok := v.value("-out", "--out", "--save-plan"); ok {
			e.remember(sh, plan, f, false)
		}
	}
	return v.noted(f)
}

// editsInPlace keeps what a filter writes into files that are not known.
func (sh *shell) editsInPlace(v *invocation) {
	switch v.exe {
	case "sed", "gsed", "yq", "perl":
	default:
		return
	}
	if !v.has("-i") && !v.has("--in-place") && !v.has("--inplace") && !v.has("-pi") {
		return
	}
	for _, w := range v.operands {
		if !strings.HasSuffix(w.Text, ".yaml") && !strings.HasSuffix(w.Text, ".yml") && !strings.HasSuffix(w.Text, ".json") {
			continue
		}
		if f := sh.e.readFile(sh, w); !f.known {
			one := *v
			one.stdin = f
			sh.e.remember(sh, w, one.noted(f), false)
		}
	}
}

// noted keeps what a filter writes into a text that is not known.
func (v *invocation) noted(f flow) flow {
	if f.known {
		return f
	}
	f.edit = v.stdin.edit
	switch v.exe {
	case "sed", "yq", "jq", "awk", "gawk", "perl", "gsed":
		for _, w := range v.argv[1:] {
			if len(f.edit)+len(w.Text) < scan.MaxValue {
				f.edit += "\n" + w.Text
			}
		}
	}
	return f
}

func (e *engine) printed(sh *shell, v *invocation) flow {
	if f, ok := e.emulate(sh, v); ok {
		return f
	}
	f := flow{via: v.exe, taint: v.stdin.taint, layer: v.stdin.layer}
	in := func(group string) bool { return slices.Contains(e.groups[group], v.exe) }
	quiet := false // what it fetches goes to a file
	switch {
	case in("downloaders") || connects(v):
		f.taint = fromNetwork
		if local(v) && !localCounts(v.exe) || fetchesNothing(v) {
			f.taint = 0
		}
		quiet = savesAll(v)
	case in("dumpers"), slices.Contains(e.groups["tf"], v.exe) && (v.has("-json") && v.underAny(tellsState) || v.underAny(tellsState[:1])):
		f.taint |= fromDump
		if dropsFirst(v) {
			f.via += dropsMark
		}
	case v.exe == "history":
		f.taint |= fromEnviron
	case v.exe == "env" || v.exe == "printenv" || v.exe == "set" || v.exe == "export" || v.exe == "declare":
		if len(v.operands) == 0 && !(v.exe == "env" && (v.has("-i") || v.has("--ignore-environment"))) {
			f.taint |= fromEnviron
		}
	case (v.exe == "docker" || v.exe == "podman") && v.underAny([][]string{{"inspect"}, {"container", "inspect"}}) && !v.has("-f") && !v.has("--format"): // with its variables
		f.taint |= fromEnviron
	case in("summaries"):
		f.taint = 0
	case in("readers"), in("packers"):
		f.taint |= e.packed(sh, v)
		for i := range v.argv[1:] { // also as the value of an option
			if c := e.classOf(v.argv[i+1], sh.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 && !sh.remote {
				f.taint |= fromSecret
			}
		}
		for _, w := range v.operands[min(v.data, len(v.operands)):] {
			if v.has("--no-recursion") && !w.Glob && e.classOf(w, sh.cwd)&paths.IsKeyFolder != 0 {
				continue // the folder's name alone
			}
			f.taint |= e.readFile(sh, w).taint
		}
		for i := range v.redirs {
			if v.redirs[i].op == "<" {
				f.taint |= e.readFile(sh, v.redirs[i].file).taint
			}
		}
		if findsKeys(v) {
			f.taint |= fromSecret
		}
	case e.printsSecret(v):
		f.taint |= fromSecret
	}
	if unpacks(v) {
		f.taint |= fromDecoder
	}
	if f.taint&fromNetwork == 0 && e.fromStore(v) {
		f.taint |= fromStore
	}
	for i := range v.argv {
		f.taint |= v.argv[i].Taint & (fromSecret | fromDump | fromEnviron)
	}
	if w, ok := e.spoken(v); ok && f.taint&fromNetwork == 0 && !in("readers") {
		f.word, f.known = w, w.known()
	}
	e.copies(sh, v)
	e.transforms(sh, v)
	e.outputFile(sh, v)
	e.downloads(sh, v, f)
	if quiet {
		return flow{known: true}
	}
	return f
}

// outputFile: Git's commands that print write to a file instead, if they are told to.
func (e *engine) outputFile(sh *shell, v *invocation) {
	if v.exe != "git" || len(v.operands) == 0 {
		return
	}
	switch v.operands[0].Text {
	case "diff", "log", "show", "shortlog", "whatchanged", "archive", "diff-tree", "diff-index", "rev-list", "reflog":
		for i := range v.opts {
			if o := &v.opts[i]; o.name == "--output" && o.given {
				sh.write(redir{">", o.value}, flow{}, nil)
			}
		}
	}
}

// tellsState: Terraform's outputs and state hold what its resources were given,
// passwords too.
var tellsState = [][]string{{"state", "pull"}, {"output"}, {"show"}}

// objectStores are the clients of stores of objects.
var objectStores = scan.SetOf("aws gsutil gcloud az rclone mc s3cmd s5cmd b2")

// connects: a program of many uses that is pointed at another machine here, whose
// answer it prints.
func connects(v *invocation) bool {
	switch v.exe {
	case "socat":
		for _, w := range v.operands {
			kind, _, _ := strings.Cut(strings.ToLower(w.Text), ":")
			if strings.HasPrefix(kind, "tcp") || strings.HasPrefix(kind, "udp") || strings.HasPrefix(kind, "openssl") || strings.HasPrefix(kind, "sctp") {
				return true
			}
		}
	case "openssl":
		return v.has("s_client") && !local(v)
	case "scp", "rsync", "sftp":
		return len(v.operands) > 0 && remotePath(v.operands[0].Text)
	}
	if objectStores[v.exe] {
		return v.underAny(printsObject) && slices.ContainsFunc(v.operands, func(w Word) bool { return w.Text == "-" || w.Text == "cat" || w.Text == "/dev/stdout" })
	}
	switch v.exe {
	case "helm", "kustomize", "kubectl", "oc": // what is described elsewhere
		return v.underAny(remoteDescriptions) && (v.has("--repo") || slices.ContainsFunc(v.operands, func(w Word) bool {
			return strings.Contains(w.Text, "://") || strings.HasPrefix(w.Text, "github.com/") || strings.HasPrefix(w.Text, "git@")
		}))
	}
	return false
}

// printsObject are the commands of object stores that can print one.
var printsObject = [][]string{{"s3", "cp"}, {"cp"}, {"cat"}, {"storage", "cp"}, {"storage", "cat"}, {"storage", "blob", "download"}, {"get"}, {"s3api", "get-object"}}

// remoteDescriptions are the commands that print manifests made from what they are
// pointed at.
var remoteDescriptions = [][]string{{"template"}, {"pull"}, {"show"}, {"build"}, {"kustomize"}}

// remotePath: host:path, host::module/path, rsync://host/path.
func remotePath(t string) bool {
	i := strings.IndexByte(t, ':')
	return i > 1 && strings.IndexByte(t[:i], '/') < 0 && t[0] != '.' && t[0] != '~'
}

// savesAll: everything that is fetched is saved to files, nothing is printed.
func savesAll(v *invocation) bool {
	stdout := func(w Word) bool { return w.Text == "-" || w.Text == "/dev/stdout" || w.Text == "/dev/fd/1" }
	saved, urls := 0, 0
	for i := range v.opts {
		switch o := &v.opts[i]; o.name {
		case "-o", "--output", "-O", "--remote-name", "--output-document", "--download":
			if (o.name == "-o" || o.name == "-O") && v.exe == "wget" && (o.name == "-o" || stdout(o.value)) || stdout(o.value) {
				return false
			}
			saved++
		case "--remote-name-all":
			return true
		}
	}
	for _, w := range v.operands {
		if _, _, _, ok := urlOf(w.Text); ok || strings.IndexByte(w.Text, '.') > 0 || !w.known() {
			urls++
		}
	}
	switch v.exe {
	case "wget", "aria2c", "axel", "scp", "rsync", "sftp":
		return true
	case "curl", "http", "https", "xh", "xhs", "fetch":
		return saved > 0 && saved >= urls
	}
	return false
}

// suffixOf is what a packer puts behind the name of the file that it packs.
var suffixOf = map[string]string{"gzip": ".gz", "pigz": ".gz", "bzip2": ".bz2", "pbzip2": ".bz2", "xz": ".xz", "lzma": ".lzma", "lzop": ".lzo", "brotli": ".br", "compress": ".Z"}

// transforms: what a program makes of files keeps where they came from, under the
// name it is told to write.
func (e *engine) transforms(sh *shell, v *invocation) {
	to, from := Word{}, v.operands
	switch v.exe {
	case "sort", "gpg", "gpg2", "age", "iconv", "zstd", "shuf", "openssl", "pandoc", "qpdf", "convert":
		to, _ = v.value("-o", "--output", "-out")
		if in, ok := v.value("-in"); ok {
			from = []Word{in}
		}
	case "uniq", "xxd", "lz4", "csplit", "uuencode":
		if len(from) == 2 {
			from, to = from[:1], from[1]
		}
	case "zip", "7z", "7za", "7zz", "rar", "ar":
		for i, w := range from { // the archive comes first, after the command's letter
			if len(w.Text) > 2 || v.exe == "zip" {
				from, to = from[i+1:], w
				break
			}
		}
	case "split":
		to = Word{Text: "xaa"}
		if len(from) == 2 {
			from, to = from[:1], Word{Text: from[1].Text + "aa"}
		}
	case "pigz", "pbzip2", "lzma", "lzop", "brotli", "compress":
		if len(from) == 1 {
			to = Word{Text: from[0].Text + suffixOf[v.exe]}
		}
	case "gunzip", "bunzip2", "unxz", "unzstd", "gzip", "bzip2", "xz":
		if len(from) == 1 && (strings.HasPrefix(v.exe, "un") || strings.Contains(v.exe, "un") || v.has("-d")) {
			if name := from[0].Text; strings.LastIndexByte(name, '.') > 0 {
				to = Word{Text: name[:strings.LastIndexByte(name, '.')]}
			}
		} else if len(from) == 1 {
			to = Word{Text: from[0].Text + suffixOf[v.exe]}
		}
	}
	if to.Text == "" {
		return
	}
	f := flow{via: v.exe}
	for _, w := range from {
		f.taint |= e.readFile(sh, w).taint
	}
	if f.taint != 0 {
		e.remember(sh, to, f, false)
	}
}

// packed is the taint of what tar packs by its options: files below -C, a list on
// its input, a file more.
func (e *engine) packed(sh *shell, v *invocation) taint {
	var t taint
	switch v.exe {
	case "tar", "gtar", "bsdtar":
	default:
		return 0
	}
	if folder, ok := v.value("-C", "--directory"); ok {
		for _, w := range v.operands {
			w.Text = path.Join(folder.Text, w.Text)
			t |= e.readFile(sh, w).taint
		}
	}
	if w, ok := v.value("--add-file"); ok {
		t |= e.readFile(sh, w).taint
	}
	if w, ok := v.value("-T", "--files-from"); ok && w.Text == "-" && v.stdin.known {
		for line := range strings.Lines(v.stdin.word.Text) {
			t |= e.readFile(sh, Word{Text: strings.TrimSpace(line)}).taint
		}
	}
	return t
}

// fetchesNothing: the options say that no text comes from elsewhere.
func fetchesNothing(v *invocation) bool {
	switch v.exe {
	case "nc", "ncat", "netcat":
		return v.has("-z")
	case "http", "https", "xh", "xhs":
		return v.has("--offline")
	case "socat":
		return strings.Contains(strings.ToLower(v.operands[0].Text), "listen")
	case "curl":
		w, ok := v.value("--url")
		return ok && len(v.operands) == 0 && strings.HasPrefix(w.Text, "file:")
	}
	return false
}

// findsKeys: a search through folders for what only a credential looks like prints credentials.
func findsKeys(v *invocation) bool {
	switch v.exe {
	case "rg", "ag", "ack":
	case "grep", "egrep", "fgrep":
		if !v.has("-r") && !v.has("-R") && !v.has("--recursive") {
			return false
		}
	default:
		return false
	}
	for _, w := range v.argv[min(1, len(v.argv)):] {
		if strings.Contains(w.Text, "AKIA") || strings.Contains(w.Text, "PRIVATE KEY") || strings.Contains(w.Text, "BEGIN RSA") || strings.Contains(w.Text, "BEGIN OPENSSH") || strings.Contains(strings.ToLower(w.Text), "aws_secret") {
			return true
		}
	}
	return false
}

// unpacks: what it prints stands nowhere in the open.
func unpacks(v *invocation) bool {
	switch v.exe {
	case "zcat", "gzcat", "bzcat", "xzcat", "zstdcat", "lz4cat", "gunzip", "bunzip2", "unxz", "uncompress", "uudecode":
		return true
	case "unzip", "unrar", "ar":
		return v.has("-p") || v.has("p")
	case "tar", "gtar", "bsdtar":
		return v.has("-O") || v.has("--to-stdout")
	case "7z", "7za", "7zz":
		return v.has("-so")
	case "ascii85", "base58", "base91", "basenc", "base64url":
		return v.has("-d") || v.has("--decode")
	case "gzip", "bzip2", "xz", "zstd", "gpg", "age":
		return v.has("-d") || v.has("--decrypt") || v.has("--decompress")
	}
	return false
}

// copies: a file that is copied, moved or linked keeps where it came from.
func (e *engine) copies(sh *shell, v *invocation) {
	var from, to Word
	switch v.exe {
	case "cp", "mv", "install", "ln", "link", "rsync", "scp", "ditto":
		if len(v.operands) != 2 {
			return
		}
		from, to = v.operands[0], v.operands[1]
	case "dd":
		for _, w := range v.operands {
			if rest, ok := strings.CutPrefix(w.Text, "if="); ok {
				from = Word{Text: rest}
			} else if rest, ok := strings.CutPrefix(w.Text, "of="); ok {
				to = Word{Text: rest}
				if !strings.HasPrefix(rest, "/dev/") {
					sh.writesTo(">", w.tail(len("of=")), v)
				}
			}
		}
		if from.Text == "" && to.Text != "" {
			e.remember(sh, to, v.stdin, false)
		}
	case "sponge":
		if len(v.operands) == 1 {
			e.remember(sh, v.operands[0], v.stdin, v.has("-a"))
		}
	}
	if from.Text == "" || to.Text == "" {
		return
	}
	e.renames(sh, from, to)
	e.linked(sh, v, from, to)
	if remotePath(from.Text) {
		return
	}
	f := e.readFile(sh, from)
	if from.Text == "/dev/stdin" {
		f = v.stdin
	}
	if f.known || f.taint != 0 || e.classOf(from, sh.cwd)&paths.IsPublic != 0 {
		e.remember(sh, to, f, false)
	}
}

// downloads remembers the file a download is saved to.
func (e *engine) downloads(sh *shell, v *invocation, f flow) {
	if f.taint&fromNetwork == 0 {
		return
	}
	if w, ok := v.value("-o", "--output", "-O", "--output-document", "-OutFile", "--out"); ok {
		if c := e.classOf(w, sh.cwd); c&(paths.IsSystem|paths.IsAccounts|paths.IsDevice) != 0 {
			sh.write(redir{">", w}, f, nil)
		}
		e.remember(sh, w, flow{taint: fromNetwork, via: v.exe}, false)
		return
	}
	if v.exe == "scp" || v.exe == "rsync" || v.exe == "sftp" {
		name := Word{Text: "."}
		if len(v.operands) > 1 {
			name = v.operands[len(v.operands)-1]
		}
		if name.Text == "." || strings.HasSuffix(name.Text, "/") {
			name.Text = path.Join(name.Text, path.Base(v.operands[0].Text[strings.LastIndexByte(v.operands[0].Text, ':')+1:]))
		}
		e.remember(sh, name, flow{taint: fromNetwork, via: v.exe}, false)
		return
	}
	if v.exe == "wget" || v.has("-O") || v.has("-J") || v.has("--remote-name") {
		for _, w := range v.operands {
			if i := strings.LastIndexByte(w.Text, '/'); i > 8 && i+1 < len(w.Text) {
				w.Text = strings.SplitN(w.Text[i+1:], "?", 2)[0]
				if folder, ok := v.value("-P", "--directory-prefix", "--output-dir"); ok {
					w.Text = strings.TrimSuffix(folder.Text, "/") + "/" + w.Text
				}
				e.remember(sh, w, flow{taint: fromNetwork, via: v.exe}, false)
			}
		}
	}
}

// localCounts: what a raw connection gives is foreign even on this machine.
func localCounts(exe string) bool { return exe == "nc" || exe == "ncat" || exe == "netcat" }
