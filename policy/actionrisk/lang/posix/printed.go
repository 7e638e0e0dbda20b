package posix

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// output is what an invocation prints, as far as it can be known, and where it
// came from.
func output(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Flow {
	f := printed(e, sh, v)
	if v.Dry && !f.Known {
		f.Makes = v
		if plan, ok := v.Value("-out", "--out", "--save-plan"); ok {
			e.Remember(sh, plan, f, false)
		}
	}
	return noted(v, f)
}

// editsInPlace keeps what a filter writes into files that are not known.
func editsInPlace(sh *interp.Process, v *act.Invocation) {
	switch v.Exe {
	case "sed", "gsed", "yq", "perl":
	default:
		return
	}
	if !v.Has("-i") && !v.Has("--in-place") && !v.Has("--inplace") && !v.Has("-pi") {
		return
	}
	for _, w := range v.Operands {
		if !strings.HasSuffix(w.Text, ".yaml") && !strings.HasSuffix(w.Text, ".yml") && !strings.HasSuffix(w.Text, ".json") {
			continue
		}
		if f := sh.Env.ReadFile(sh, w); !f.Known {
			one := *v
			one.Stdin = f
			sh.Env.Remember(sh, w, noted(&one, f), false)
		}
	}
}

// noted keeps what a filter writes into a text that is not known.
func noted(v *act.Invocation, f act.Flow) act.Flow {
	if f.Known {
		return f
	}
	f.Edit = v.Stdin.Edit
	switch v.Exe {
	case "sed", "yq", "jq", "awk", "gawk", "perl", "gsed":
		for _, w := range v.Argv[1:] {
			if len(f.Edit)+len(w.Text) < scan.MaxValue {
				f.Edit += "\n" + w.Text
			}
		}
	}
	return f
}

// printed is what a call prints, and what it leaves in files beside it.
func printed(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Flow {
	if f, ok := emulate(e, sh, v); ok {
		return f
	}
	f := act.Flow{Via: v.Exe, Taint: v.Stdin.Taint, Layer: v.Stdin.Layer}
	fetches := e.In("downloaders", v.Exe) || connects(e.Set, v)
	if fetches {
		f.Taint = act.FromNetwork
		if hosts.Local(v) && !localCounts(v.Exe) || fetchesNothing(v) {
			f.Taint = 0
		}
	} else {
		taintOf(sh, v, &f)
	}
	if unpacks(v) {
		f.Taint |= act.FromDecoder
	}
	if f.Taint&act.FromNetwork == 0 && fromStore(e, v) {
		f.Taint |= act.FromStore
	}
	for i := range v.Argv {
		f.Taint |= v.Argv[i].Taint & (act.FromSecret | act.FromDump | act.FromEnviron)
	}
	if w, ok := spoken(e, v); ok && f.Taint&act.FromNetwork == 0 && !e.In("readers", v.Exe) {
		f.Word, f.Known = w, w.Known()
	}
	copies(e, sh, v)
	transforms(e, sh, v)
	outputFile(e, sh, v)
	downloads(e, sh, v, f)
	if fetches && savesAll(v) { // what it fetches goes to a file
		return act.Flow{Known: true}
	}
	return f
}

// taintOf adds what is known of the output of a program that fetches nothing.
func taintOf(sh *interp.Process, v *act.Invocation, f *act.Flow) {
	e := sh.Env
	switch {
	case e.In("dumpers", v.Exe), e.In("tf", v.Exe) && (v.Has("-json") && v.UnderAny(tellsState) || v.UnderAny(tellsState[:1])):
		f.Taint |= act.FromDump
		if dropsFirst(v) {
			f.Via += act.DropsMark
		}
	case e.In("variable-printers", v.Exe):
		if len(v.Operands) == 0 && !(v.Exe == "env" && (v.Has("-i") || v.Has("--ignore-environment"))) || v.Exe == "history" {
			f.Taint |= act.FromEnviron
		}
	case inspectsContainer(e, v):
		f.Taint |= act.FromEnviron
	case e.In("summaries", v.Exe):
		f.Taint = 0
	case e.In("readers", v.Exe), e.In("packers", v.Exe):
		f.Taint |= packed(e, sh, v) | ofFiles(sh, v)
	case printsSecret(e, v):
		f.Taint |= act.FromSecret
	}
}

// inspectsContainer: all is shown of a container, with its variables.
func inspectsContainer(e *interp.Env, v *act.Invocation) bool {
	return e.In("containers", v.Exe) && v.UnderAny([]string{"inspect", "container inspect"}) && !v.Has("-f") && !v.Has("--format")
}

// ofFiles is what a program that prints or packs files gets from those it names.
func ofFiles(sh *interp.Process, v *act.Invocation) (taint act.Taint) {
	e := sh.Env
	for i := range v.Argv[1:] { // also as the value of an option
		if c := e.ClassOf(v.Argv[i+1], sh.Cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 && !sh.Remote {
			taint |= act.FromSecret
		}
	}
	for _, w := range v.Operands[min(v.Data, len(v.Operands)):] {
		if v.Has("--no-recursion") && !w.Glob && e.ClassOf(w, sh.Cwd)&paths.IsKeyFolder != 0 {
			continue // the folder's name alone
		}
		taint |= e.ReadFile(sh, w).Taint
	}
	for i := range v.Redirs {
		if v.Redirs[i].Op == "<" {
			taint |= e.ReadFile(sh, v.Redirs[i].File).Taint
		}
	}
	if findsKeys(v) {
		taint |= act.FromSecret
	}
	return taint
}

// dropsFirst: the program prints statements that drop what is there.
func dropsFirst(v *act.Invocation) bool {
	return v.Has("--clean") || v.Exe == "pg_dump" && v.Has("-c") || v.Has("--add-drop-database")
}

// outputFile: Git's commands that print write to a file instead, if they are told to.
func outputFile(e *interp.Env, sh *interp.Process, v *act.Invocation) {
	if v.Exe != "git" || len(v.Operands) == 0 {
		return
	}
	switch v.Operands[0].Text {
	case "diff", "log", "show", "shortlog", "whatchanged", "archive", "diff-tree", "diff-index", "rev-list", "reflog":
		for i := range v.Opts {
			if o := &v.Opts[i]; o.Name == "--output" && o.Given {
				sh.Write(act.Redir{Op: ">", File: o.Value}, act.Flow{})
			}
		}
	}
}

// tellsState: Terraform's outputs and state hold what its resources were given,
// passwords too.
var tellsState = []string{"state pull", "output", "show"}

// connects: a program of many uses that is pointed at another machine here, whose
// answer it prints.
func connects(c *facts.Set, v *act.Invocation) bool {
	switch v.Exe {
	case "socat":
		for _, w := range v.Operands {
			kind, _, _ := strings.Cut(strings.ToLower(w.Text), ":")
			if strings.HasPrefix(kind, "tcp") || strings.HasPrefix(kind, "udp") || strings.HasPrefix(kind, "openssl") || strings.HasPrefix(kind, "sctp") {
				return true
			}
		}
	case "openssl":
		return v.Has("s_client") && !hosts.Local(v)
	case "scp", "rsync", "sftp":
		return len(v.Operands) > 0 && act.RemotePath(v.Operands[0].Text)
	}
	if c.In("object-stores", v.Exe) {
		return v.UnderAny(printsObject) && slices.ContainsFunc(v.Operands, func(w act.Word) bool { return w.Text == "-" || w.Text == "cat" || w.Text == "/dev/stdout" })
	}
	switch v.Exe {
	case "helm", "kustomize", "kubectl", "oc": // what is described elsewhere
		return v.UnderAny(remoteDescriptions) && (v.Has("--repo") || slices.ContainsFunc(v.Operands, func(w act.Word) bool {
			return strings.Contains(w.Text, "://") || strings.HasPrefix(w.Text, "github.com/") || strings.HasPrefix(w.Text, "git@")
		}))
	}
	return false
}

// printsObject are the commands of object stores that can print one.
var printsObject = []string{"s3 cp", "cp", "cat", "storage cp", "storage cat", "storage blob download", "get", "s3api get-object"}

// remoteDescriptions are the commands that print manifests made from what they are
// pointed at.
var remoteDescriptions = []string{"template", "pull", "show", "build", "kustomize"}

// savesAll: everything that is fetched is saved to files, nothing is printed.
func savesAll(v *act.Invocation) bool {
	saved, urls := 0, 0
	for i := range v.Opts {
		switch o := &v.Opts[i]; o.Name {
		case "-o", "--output", "-O", "--remote-name", "--output-document", "--download":
			if (o.Name == "-o" || o.Name == "-O") && v.Exe == "wget" && (o.Name == "-o" || standardOutput(o.Value.Text)) || standardOutput(o.Value.Text) {
				return false
			}
			saved++
		case "--remote-name-all":
			return true
		}
	}
	for _, w := range v.Operands {
		if _, _, _, ok := hosts.Split(w.Text); ok || strings.IndexByte(w.Text, '.') > 0 || !w.Known() {
			urls++
		}
	}
	switch v.Exe {
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
func transforms(e *interp.Env, sh *interp.Process, v *act.Invocation) {
	to, from := act.Word{}, v.Operands
	switch v.Exe {
	case "sort", "gpg", "gpg2", "age", "iconv", "zstd", "shuf", "openssl", "pandoc", "qpdf", "convert":
		to, _ = v.Value("-o", "--output", "-out")
		if in, ok := v.Value("-in"); ok {
			from = []act.Word{in}
		}
	case "uniq", "xxd", "lz4", "csplit", "uuencode":
		if len(from) == 2 {
			from, to = from[:1], from[1]
		}
	case "zip", "7z", "7za", "7zz", "rar", "ar":
		for i, w := range from { // the archive comes first, after the command's letter
			if len(w.Text) > 2 || v.Exe == "zip" {
				from, to = from[i+1:], w
				break
			}
		}
	case "split":
		to = act.Word{Text: "xaa"}
		if len(from) == 2 {
			from, to = from[:1], act.Word{Text: from[1].Text + "aa"}
		}
	case "pigz", "pbzip2", "lzma", "lzop", "brotli", "compress":
		if len(from) == 1 {
			to = act.Word{Text: from[0].Text + suffixOf[v.Exe]}
		}
	case "gunzip", "bunzip2", "unxz", "unzstd", "gzip", "bzip2", "xz":
		if len(from) == 1 && (strings.HasPrefix(v.Exe, "un") || strings.Contains(v.Exe, "un") || v.Has("-d")) {
			if name := from[0].Text; strings.LastIndexByte(name, '.') > 0 {
				to = act.Word{Text: name[:strings.LastIndexByte(name, '.')]}
			}
		} else if len(from) == 1 {
			to = act.Word{Text: from[0].Text + suffixOf[v.Exe]}
		}
	}
	if to.Text == "" {
		return
	}
	f := act.Flow{Via: v.Exe}
	for _, w := range from {
		f.Taint |= e.ReadFile(sh, w).Taint
	}
	if f.Taint != 0 {
		e.Remember(sh, to, f, false)
	}
}

// packed is the taint of what tar packs by its options: files below -C, a list on
// its input, a file more.
func packed(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Taint {
	var t act.Taint
	switch v.Exe {
	case "tar", "gtar", "bsdtar":
	default:
		return 0
	}
	if folder, ok := v.Value("-C", "--directory"); ok {
		for _, w := range v.Operands {
			w.Text = path.Join(folder.Text, w.Text)
			t |= e.ReadFile(sh, w).Taint
		}
	}
	if w, ok := v.Value("--add-file"); ok {
		t |= e.ReadFile(sh, w).Taint
	}
	if w, ok := v.Value("-T", "--files-from"); ok && w.Text == "-" && v.Stdin.Known {
		for line := range strings.Lines(v.Stdin.Word.Text) {
			t |= e.ReadFile(sh, act.Word{Text: strings.TrimSpace(line)}).Taint
		}
	}
	return t
}

// fetchesNothing: the options say that no text comes from elsewhere.
func fetchesNothing(v *act.Invocation) bool {
	switch v.Exe {
	case "nc", "ncat", "netcat":
		return v.Has("-z")
	case "http", "https", "xh", "xhs":
		return v.Has("--offline")
	case "socat":
		return strings.Contains(strings.ToLower(v.Operands[0].Text), "listen")
	case "curl":
		w, ok := v.Value("--url")
		return ok && len(v.Operands) == 0 && strings.HasPrefix(w.Text, "file:")
	}
	return false
}

// findsKeys: a search through folders for what only a credential looks like prints credentials.
func findsKeys(v *act.Invocation) bool {
	switch v.Exe {
	case "rg", "ag", "ack":
	case "grep", "egrep", "fgrep":
		if !v.Has("-r") && !v.Has("-R") && !v.Has("--recursive") {
			return false
		}
	default:
		return false
	}
	for _, w := range v.Argv[min(1, len(v.Argv)):] {
		if strings.Contains(w.Text, "AKIA") || strings.Contains(w.Text, "PRIVATE KEY") || strings.Contains(w.Text, "BEGIN RSA") || strings.Contains(w.Text, "BEGIN OPENSSH") || strings.Contains(strings.ToLower(w.Text), "aws_secret") {
			return true
		}
	}
	return false
}

// unpacks: what it prints stands nowhere in the open.
func unpacks(v *act.Invocation) bool {
	switch v.Exe {
	case "zcat", "gzcat", "bzcat", "xzcat", "zstdcat", "lz4cat", "gunzip", "bunzip2", "unxz", "uncompress", "uudecode":
		return true
	case "unzip", "unrar", "ar":
		return v.Has("-p") || v.Has("p")
	case "tar", "gtar", "bsdtar":
		return v.Has("-O") || v.Has("--to-stdout")
	case "7z", "7za", "7zz":
		return v.Has("-so")
	case "ascii85", "base58", "base91", "basenc", "base64url":
		return v.Has("-d") || v.Has("--decode")
	case "gzip", "bzip2", "xz", "zstd", "gpg", "age":
		return v.Has("-d") || v.Has("--decrypt") || v.Has("--decompress")
	}
	return false
}

// copies: a file that is copied, moved or linked keeps where it came from.
func copies(e *interp.Env, sh *interp.Process, v *act.Invocation) {
	var from, to act.Word
	switch v.Exe {
	case "cp", "mv", "install", "ln", "link", "rsync", "scp", "ditto":
		if len(v.Operands) != 2 {
			return
		}
		from, to = v.Operands[0], v.Operands[1]
	case "dd":
		for _, w := range v.Operands {
			if rest, ok := strings.CutPrefix(w.Text, "if="); ok {
				from = act.Word{Text: rest}
			} else if rest, ok := strings.CutPrefix(w.Text, "of="); ok {
				to = act.Word{Text: rest}
				if !strings.HasPrefix(rest, "/dev/") {
					sh.WritesTo(">", w.Tail(len("of=")), v)
				}
			}
		}
		if from.Text == "" && to.Text != "" {
			e.Remember(sh, to, v.Stdin, false)
		}
	case "sponge":
		if len(v.Operands) == 1 {
			e.Remember(sh, v.Operands[0], v.Stdin, v.Has("-a"))
		}
	}
	if from.Text == "" || to.Text == "" {
		return
	}
	renames(e, sh, from, to)
	e.Linked(sh, v, from, to)
	if act.RemotePath(from.Text) {
		return
	}
	f := e.ReadFile(sh, from)
	if from.Text == "/dev/stdin" {
		f = v.Stdin
	}
	if f.Known || f.Taint != 0 || e.ClassOf(from, sh.Cwd)&paths.IsPublic != 0 {
		e.Remember(sh, to, f, false)
	}
}

// downloads remembers the file a download is saved to.
func downloads(e *interp.Env, sh *interp.Process, v *act.Invocation, f act.Flow) {
	if f.Taint&act.FromNetwork == 0 {
		return
	}
	if w, ok := v.Value("-o", "--output", "-O", "--output-document", "-OutFile", "--out"); ok {
		if c := e.ClassOf(w, sh.Cwd); c&(paths.IsSystem|paths.IsAccounts|paths.IsDevice) != 0 {
			sh.Write(act.Redir{Op: ">", File: w}, f)
		}
		e.Remember(sh, w, act.Flow{Taint: act.FromNetwork, Via: v.Exe}, false)
		return
	}
	if e.In("copiers", v.Exe) {
		name := act.Word{Text: "."}
		if len(v.Operands) > 1 {
			name = v.Operands[len(v.Operands)-1]
		}
		if name.Text == "." || strings.HasSuffix(name.Text, "/") {
			name.Text = path.Join(name.Text, path.Base(v.Operands[0].Text[strings.LastIndexByte(v.Operands[0].Text, ':')+1:]))
		}
		e.Remember(sh, name, act.Flow{Taint: act.FromNetwork, Via: v.Exe}, false)
		return
	}
	if v.Exe == "wget" || v.Has("-O") || v.Has("-J") || v.Has("--remote-name") {
		for _, w := range v.Operands {
			if i := strings.LastIndexByte(w.Text, '/'); i > 8 && i+1 < len(w.Text) {
				w.Text = strings.SplitN(w.Text[i+1:], "?", 2)[0]
				if folder, ok := v.Value("-P", "--directory-prefix", "--output-dir"); ok {
					w.Text = strings.TrimSuffix(folder.Text, "/") + "/" + w.Text
				}
				e.Remember(sh, w, act.Flow{Taint: act.FromNetwork, Via: v.Exe}, false)
			}
		}
	}
}

// localCounts: what a raw connection gives is foreign even on this machine.
func localCounts(exe string) bool { return exe == "nc" || exe == "ncat" || exe == "netcat" }

// Programs that print lines of a form the command gives (git for-each-ref --format,
// find -printf, stat -c, a string of jq) print a program text where the form is one.
// What stands in the places that the program fills is not known.

// spoken is the text that an invocation prints by such a form.
func spoken(e *interp.Env, v *act.Invocation) (act.Word, bool) {
	if len(v.Argv) < 2 || slices.Contains(e.Groups["speakers"], v.Exe) || !e.Budget.Spend(len(v.Argv)) {
		return act.Word{}, false
	}
	for _, w := range v.Argv[1:] {
		t := w.Text
		if len(t) < 4 || strings.IndexByte(t, ' ') < 0 {
			continue
		}
		if t[0] == '-' {
			_, t, _ = strings.Cut(t, "=")
		}
		t = strings.TrimPrefix(t, "+")
		if i := strings.IndexByte(t, '"'); i >= 0 && e.In("jqs", v.Exe) {
			t = t[i+1:]
			if j := strings.LastIndexByte(t, '"'); j >= 0 {
				t = t[:j]
			}
		}
		if i := strings.IndexByte(strings.ToLower(t), '\''); i >= 0 && strings.Contains(strings.ToLower(t[:i]), "select") { // of SQL
			t, _, _ = strings.Cut(t[i+1:], "'")
			t += string(scan.Hole)
		}
		for _, form := range [...]string{"go-template=", "jsonpath=", "template=", "custom-columns="} {
			t = strings.TrimPrefix(t, form)
		}
		if t = filledForm(t); e.ActsText(t) || v.Exe == "git" && strings.HasPrefix(t, "delete ") { // what update-ref --stdin takes
			w.Text, w.At, w.Lone = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\n").Replace(t), -1, false
			return w, true
		}
	}
	return act.Word{}, false
}

// filledForm puts a hole in every place that a program fills: {{.Name}}, %(refname),
// ${Package}, \(.path), {node}, %h. What only controls a template is dropped.
func filledForm(t string) string {
	for _, m := range [...]struct{ open, shut string }{{"{{", "}}"}, {"%(", ")"}, {"%{", "}"}, {"${", "}"}, {`\(`, ")"}, {"{", "}"}} {
		var b strings.Builder
		for {
			i := strings.Index(t, m.open)
			if i < 0 {
				break
			}
			j := strings.Index(t[i+len(m.open):], m.shut)
			if j < 0 {
				break
			}
			b.WriteString(t[:i])
			inside := strings.TrimLeft(t[i+len(m.open):i+len(m.open)+j], " -")
			switch word, _, _ := strings.Cut(inside, " "); {
			case word == "range" || word == "end" || word == "if" || word == "else" || word == "with":
			case strings.Trim(inside, "\"`\\nt ") == "": // a line end
				b.WriteByte('\n')
			default:
				b.WriteByte(scan.Hole)
			}
			t = t[i+len(m.open)+j+len(m.shut):]
		}
		b.WriteString(t)
		t = b.String()
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] != '%' || i+1 == len(t) {
			b.WriteByte(t[i])
			continue
		}
		for i++; i+1 < len(t) && strings.IndexByte("-+ 0123456789.#", t[i]) >= 0; i++ {
		}
		if t[i] == '%' {
			b.WriteByte('%')
		} else {
			b.WriteByte(scan.Hole)
		}
	}
	return b.String()
}
