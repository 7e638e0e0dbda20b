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

// output returns the output of a call, as far as it is known, and its origin.
func output(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Flow {
	f := printed(e, sh, v)
	if v.Dry && !f.Known {
		f.Makes = v
		if plan, ok := v.Value("-out", "--out", "--save-plan"); ok {
			e.Remember(sh, plan, f, false)
		}
	}
	return noted(e, v, f)
}

// editsInPlace records the text that a filter writes into YAML or JSON files whose content is not
// known.
func editsInPlace(sh *interp.Process, v *act.Invocation) {
	if !sh.Env.In("in-place-filters", v.Exe) || !slices.ContainsFunc([]string{"-i", "--in-place", "--inplace", "-pi"}, v.Has) {
		return
	}
	for _, w := range v.Operands {
		if ext := path.Ext(w.Text); ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		if f := sh.Env.ReadFile(sh, w); !f.Known {
			one := *v
			one.Stdin = f
			sh.Env.Remember(sh, w, noted(sh.Env, &one, f), false)
		}
	}
}

// noted adds to f.Edit the text that a filter inserts into an unknown text.
func noted(e *interp.Env, v *act.Invocation, f act.Flow) act.Flow {
	if f.Known {
		return f
	}
	f.Edit = v.Stdin.Edit
	if e.In("filters-with-programs", v.Exe) {
		for _, w := range v.Argv[1:] {
			if len(f.Edit)+len(w.Text) < scan.MaxValue {
				f.Edit += "\n" + w.Text
			}
		}
	}
	return f
}

// printed returns the output of a call, and records the files that it writes.
func printed(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Flow {
	if f, ok := emulate(e, sh, v); ok {
		return f
	}
	f := act.Flow{Via: v.Exe, Taint: v.Stdin.Taint, Layer: v.Stdin.Layer}
	fetches := e.In("downloaders", v.Exe) || connects(e.Set, v)
	switch {
	case !fetches:
		taintOf(sh, v, &f)
	case hosts.Local(v) && !rawConnection(v.Exe), fetchesNothing(v):
		f.Taint = 0
	default:
		f.Taint = act.FromNetwork
		if len(v.Operands) == 1 && slices.ContainsFunc(e.Groups.Get("installers"), func(p string) bool {
			rest, ok := strings.CutPrefix(v.Operands[0].Text, p)
			return ok && (rest == "" || rest[0] == '/' || p[len(p)-1] == '/')
		}) {
			f.Via = "installer"
		}
	}
	if unpacks(v) {
		f.Taint |= act.FromDecoder
	}
	spoken(e, v, &f)
	for i := range v.Argv {
		f.Taint |= v.Argv[i].Taint & (act.FromSecret | act.FromDump | act.FromEnviron)
	}
	copies(e, sh, v)
	transforms(e, sh, v)
	outputFile(sh, v)
	downloads(e, sh, v, f)
	if fetches && savesAll(e, v) { // the download goes to a file
		return act.Flow{Known: true}
	}
	return f
}

// taintOf adds the taints of the output of a program that downloads nothing.
func taintOf(sh *interp.Process, v *act.Invocation, f *act.Flow) {
	e := sh.Env
	switch {
	case dumps(e, v):
		f.Taint |= act.FromDump
		if dropsFirst(v) {
			f.Via += act.DropsMark
		}
	case e.In("variable-printers", v.Exe):
		if v.Exe == "history" || len(v.Operands) == 0 && !v.Has("-i") && !v.Has("--ignore-environment") { // env -i prints no variables
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

// dumps reports whether the program prints the whole content of a store. Outputs and state of
// Terraform count, because they contain the passwords that its resources were given.
func dumps(e *interp.Env, v *act.Invocation) bool {
	return e.In("dumpers", v.Exe) || e.In("tf", v.Exe) && (v.UnderAny([]string{"state pull"}) || v.Has("-json") && v.UnderAny([]string{"output", "show"}))
}

// inspectsContainer reports whether the call prints all properties of a container, including its
// environment variables.
func inspectsContainer(e *interp.Env, v *act.Invocation) bool {
	return e.In("containers", v.Exe) && v.UnderAny([]string{"inspect", "container inspect"}) && !v.Has("-f") && !v.Has("--format")
}

// ofFiles returns the taints that the output of a program gets from the files it prints or packs.
func ofFiles(sh *interp.Process, v *act.Invocation) (taint act.Taint) {
	e := sh.Env
	for i := range v.Argv[1:] { // a file may also be the value of an option
		if c := e.ClassOf(v.Argv[i+1], sh.Cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 && !sh.Remote {
			taint |= act.FromSecret
		}
	}
	for _, w := range v.Operands[min(v.Data, len(v.Operands)):] {
		if v.Has("--no-recursion") && !w.Glob && e.ClassOf(w, sh.Cwd)&paths.IsKeyFolder != 0 {
			continue // only the name of the folder
		}
		taint |= e.ReadFile(sh, w).Taint
	}
	for i := range v.Redirs {
		if v.Redirs[i].Op == "<" {
			taint |= e.ReadFile(sh, v.Redirs[i].File).Taint
		}
	}
	if findsKeys(e, v) {
		taint |= act.FromSecret
	}
	return taint
}

// dropsFirst reports whether the dump contains statements that drop tables or databases before it
// creates them.
func dropsFirst(v *act.Invocation) bool {
	return v.Has("--clean") || v.Exe == "pg_dump" && v.Has("-c") || v.Has("--add-drop-database")
}

// outputFile judges the option --output of Git commands, which writes their output to a file.
func outputFile(sh *interp.Process, v *act.Invocation) {
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

// connects reports whether a program that can also work locally connects to another machine in
// this call and prints the response.
func connects(c *facts.Set, v *act.Invocation) bool {
	operand := func(is func(string) bool) bool {
		return slices.ContainsFunc(v.Operands, func(w act.Word) bool { return is(w.Text) })
	}
	switch v.Exe {
	case "socat":
		return operand(func(t string) bool { return scan.HasAnyPrefix(strings.ToLower(t), "tcp", "udp", "openssl", "sctp") })
	case "openssl":
		return v.Has("s_client") && !hosts.Local(v)
	case "scp", "rsync", "sftp":
		return act.RemotePath(v.Operand(0))
	case "helm", "kustomize", "kubectl", "oc": // these may read manifests from another machine
		return v.UnderAny(remoteDescriptions) && (v.Has("--repo") || operand(func(t string) bool {
			return strings.Contains(t, "://") || scan.HasAnyPrefix(t, "github.com/", "git@")
		}))
	}
	return c.In("object-stores", v.Exe) && v.UnderAny(printsObject) && operand(func(t string) bool { return t == "cat" || standardOutput(t) })
}

// printsObject lists the commands of object stores that can print an object.
var printsObject = []string{"s3 cp", "cp", "cat", "storage cp", "storage cat", "storage blob download", "get", "s3api get-object"}

// remoteDescriptions lists the commands that print manifests from a chart, folder or address.
var remoteDescriptions = []string{"template", "pull", "show", "build", "kustomize"}

// savesAll reports whether the call saves everything that it downloads to files and prints
// nothing.
func savesAll(e *interp.Env, v *act.Invocation) bool {
	saved := 0
	for i := range v.Opts {
		switch o := &v.Opts[i]; o.Name {
		case "-o", "--output", "-O", "--remote-name", "--output-document", "--download":
			if standardOutput(o.Value.Text) || o.Name == "-o" && v.Exe == "wget" { // the -o of wget names the file for its log
				return false
			}
			saved++
		case "--remote-name-all":
			return true
		}
	}
	return e.In("savers-of-what-is-fetched", v.Exe) || e.In("printers-of-what-is-fetched", v.Exe) && saved > 0 && saved >= addresses(v)
}

// addresses returns the number of operands that may be an address.
func addresses(v *act.Invocation) int {
	n := 0
	for _, w := range v.Operands {
		if _, _, _, ok := hosts.Split(w.Text); ok || strings.IndexByte(w.Text, '.') > 0 || !w.Known() {
			n++
		}
	}
	return n
}

// suffixOf maps a compression program to the extension that it adds to the name of the file.
var suffixOf = map[string]string{"gzip": ".gz", "pigz": ".gz", "bzip2": ".bz2", "pbzip2": ".bz2", "xz": ".xz", "lzma": ".lzma", "lzop": ".lzo", "brotli": ".br", "compress": ".Z"}

// unpackers lists programs that decompress a file and remove the extension from its name.
var unpackers = scan.SetOf("gunzip bunzip2 unxz unzstd")

// transforms records that the file which a program creates from other files has their taints.
func transforms(e *interp.Env, sh *interp.Process, v *act.Invocation) {
	from, to := madeFile(v)
	if to == "" {
		return
	}
	f := act.Flow{Via: v.Exe}
	for _, w := range from {
		f.Taint |= e.ReadFile(sh, w).Taint
	}
	if f.Taint != 0 {
		e.Remember(sh, act.Word{Text: to}, f, false)
	}
}

// madeFile returns the files that a program reads and the name of the file that it creates from
// them. The name is "" if there is none.
func madeFile(v *act.Invocation) (from []act.Word, to string) {
	from = v.Operands
	switch v.Exe {
	case "sort", "gpg", "gpg2", "age", "iconv", "zstd", "shuf", "openssl", "pandoc", "qpdf", "convert":
		if in, ok := v.Value("-in"); ok {
			from = []act.Word{in}
		}
		out, _ := v.Value("-o", "--output", "-out")
		return from, out.Text
	case "uniq", "xxd", "lz4", "csplit", "uuencode":
		if len(from) == 2 {
			return from[:1], from[1].Text
		}
	case "zip", "7z", "7za", "7zz", "rar", "ar": // the archive comes first, after the letter of the command
		if i := slices.IndexFunc(from, func(w act.Word) bool { return len(w.Text) > 2 || v.Exe == "zip" }); i >= 0 {
			return from[i+1:], from[i].Text
		}
	case "split":
		if len(from) == 2 {
			return from[:1], from[1].Text + "aa"
		}
		return from, "xaa"
	default:
		if len(from) == 1 {
			return from, packedName(v, from[0].Text)
		}
	}
	return nil, ""
}

// packedName returns the name of the file that a compression program creates from a file, or "".
func packedName(v *act.Invocation, name string) string {
	suffix, packs := suffixOf[v.Exe]
	switch {
	case packs && !v.Has("-d"):
		return name + suffix
	case packs || unpackers.Has(v.Exe):
		return name[:max(0, strings.LastIndexByte(name, '.'))]
	}
	return ""
}

// packed returns the taints of the files that options of tar add to an archive: files below -C, a
// list on the input, --add-file.
func packed(e *interp.Env, sh *interp.Process, v *act.Invocation) act.Taint {
	var t act.Taint
	if !e.In("tars", v.Exe) {
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

// fetchesNothing reports whether the options of a network program show that it reads nothing from
// another machine.
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

// findsKeys reports whether the call searches folders for text that only credentials contain. Such
// a search prints credentials.
func findsKeys(e *interp.Env, v *act.Invocation) bool {
	if !e.In("folder-searchers", v.Exe) && !(e.In("greps", v.Exe) && (v.Has("-r") || v.Has("-R") || v.Has("--recursive"))) {
		return false
	}
	return slices.ContainsFunc(v.Argv, func(w act.Word) bool {
		return scan.HasAny(w.Text, "AKIA", "PRIVATE KEY", "BEGIN RSA", "BEGIN OPENSSH") || strings.Contains(strings.ToLower(w.Text), "aws_secret")
	})
}

// unpacks reports whether the call prints decoded or decompressed text.
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

// copies records the taints and the content of files that the call copies, moves or links.
func copies(e *interp.Env, sh *interp.Process, v *act.Invocation) {
	for _, pair := range copied(sh, v) {
		from, to := pair[0], pair[1]
		if from.Text == "" || to.Text == "" {
			continue
		}
		renames(e, sh, from, to)
		e.Linked(sh, v, from, to)
		if act.RemotePath(from.Text) {
			continue
		}
		if f := readOrInput(sh, v, from); f.Known || f.Taint != 0 || e.Trace != nil || e.ClassOf(from, sh.Cwd)&paths.IsPublic != 0 {
			e.Remember(sh, to, f, false)
		}
	}
}

// copied returns the pairs of source and destination of a program that copies files unchanged.
func copied(sh *interp.Process, v *act.Invocation) (pairs [][2]act.Word) {
	switch v.Exe {
	case "cp", "mv", "install", "ln", "link", "rsync", "scp", "ditto":
		from := v.Operands
		to, into := v.Value("-t", "--target-directory")
		if !into && len(from) > 1 {
			to, from = from[len(from)-1], from[:len(from)-1]
		}
		into = into || len(from) > 1 || to.Text == "." || strings.HasSuffix(to.Text, "/")
		for _, w := range from[:min(len(from), scan.MaxLoop)] {
			target := to
			if into && to.Text != "" {
				target.Text, target.At = strings.TrimSuffix(to.Text, "/")+"/"+path.Base(w.Text), -1
			}
			pairs = append(pairs, [2]act.Word{w, target})
		}
	case "dd":
		from, to := ddFiles(sh, v)
		return [][2]act.Word{{from, to}}
	case "sponge":
		if len(v.Operands) == 1 {
			sh.Env.Remember(sh, v.Operands[0], v.Stdin, v.Has("-a"))
		}
	}
	return pairs
}

// ddFiles returns the files that dd reads and writes.
func ddFiles(sh *interp.Process, v *act.Invocation) (from, to act.Word) {
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
		sh.Env.Remember(sh, to, v.Stdin, false)
	}
	return from, to
}

// downloads records the file to which a download is saved.
func downloads(e *interp.Env, sh *interp.Process, v *act.Invocation, f act.Flow) {
	if f.Taint&act.FromNetwork == 0 {
		return
	}
	if w, ok := v.Value("-o", "--output", "-O", "--output-document", "-OutFile", "--out"); ok {
		if c := e.ClassOf(w, sh.Cwd); c&(paths.IsSystem|paths.IsAccounts|paths.IsDevice) != 0 {
			sh.Write(act.Redir{Op: ">", File: w}, f)
		}
		fetched(sh, v, w)
		return
	}
	switch {
	case e.In("copiers", v.Exe):
		fetched(sh, v, copiedTo(v))
	case v.Exe == "wget" || v.Has("-O") || v.Has("-J") || v.Has("--remote-name"):
		folder, _ := v.Value("-P", "--directory-prefix", "--output-dir")
		for _, w := range v.Operands {
			if i := strings.LastIndexByte(w.Text, '/'); i > 8 && i+1 < len(w.Text) {
				name, _, _ := strings.Cut(w.Text[i+1:], "?")
				w.Text = path.Join(folder.Text, name)
				fetched(sh, v, w)
			}
		}
	}
}

// copiedTo returns the local file that scp or a similar program writes.
func copiedTo(v *act.Invocation) act.Word {
	name := act.Word{Text: "."}
	if len(v.Operands) > 1 {
		name = v.Operands[len(v.Operands)-1]
	}
	if name.Text == "." || strings.HasSuffix(name.Text, "/") {
		from := v.Operands[0].Text
		name.Text = path.Join(name.Text, path.Base(from[strings.LastIndexByte(from, ':')+1:]))
	}
	return name
}

// fetched records that a file contains data from the network.
func fetched(sh *interp.Process, v *act.Invocation, file act.Word) {
	sh.Env.Remember(sh, file, act.Flow{Taint: act.FromNetwork, Via: v.Exe}, false)
}

// rawConnection reports whether the program prints what the other end of a connection sends. This
// is untrusted even if the other end is on this machine.
func rawConnection(exe string) bool { return exe == "nc" || exe == "ncat" || exe == "netcat" }

// Some programs print lines in a format that the command sets: git for-each-ref --format, find
// -printf, stat -c, a string of jq. If the format is a command, they print a program text. The
// values that the program inserts are unknown parts.

// spoken adds to the output of a program that downloads nothing: the taint FromStore if others
// wrote the data, and the text that the program prints by a format.
func spoken(e *interp.Env, v *act.Invocation, f *act.Flow) {
	w, ok := formed(e, v)
	if f.Taint&act.FromNetwork != 0 {
		return
	}
	if fromStore(e, v) {
		f.Taint |= act.FromStore
	}
	if ok && !e.In("readers", v.Exe) {
		f.Word, f.Known = w, w.Known()
	}
}

// formed returns the text that a call prints by a format, and false if it has no format that is a
// command.
func formed(e *interp.Env, v *act.Invocation) (act.Word, bool) {
	if len(v.Argv) < 2 || e.In("speakers", v.Exe) || !e.Budget.Spend(len(v.Argv)) {
		return act.Word{}, false
	}
	for _, w := range v.Argv[1:] {
		if len(w.Text) < 4 || strings.IndexByte(w.Text, ' ') < 0 {
			continue
		}
		t := filledForm(formOf(e, v, w.Text))
		if e.ActsText(t) || v.Exe == "git" && strings.HasPrefix(t, "delete ") { // git update-ref --stdin reads such lines
			w.Text, w.At, w.Lone = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\n").Replace(t), -1, false
			return w, true
		}
	}
	return act.Word{}, false
}

// formOf returns the format in a word, without the option before it and without a prefix such as
// "jsonpath=". For jq and SQL the format is the string in the program text.
func formOf(e *interp.Env, v *act.Invocation, t string) string {
	if t[0] == '-' {
		_, t, _ = strings.Cut(t, "=")
	}
	t = strings.TrimPrefix(t, "+")
	if _, behind, ok := strings.Cut(t, `"`); ok && e.In("jqs", v.Exe) {
		t = behind
		if j := strings.LastIndexByte(t, '"'); j >= 0 {
			t = t[:j]
		}
	}
	if before, behind, ok := strings.Cut(t, "'"); ok && strings.Contains(strings.ToLower(before), "select") {
		t, _, _ = strings.Cut(behind, "'")
		t += string(scan.Hole)
	}
	for _, form := range [...]string{"go-template=", "jsonpath=", "template=", "custom-columns="} {
		t = strings.TrimPrefix(t, form)
	}
	return t
}

// filledForm replaces every placeholder of a format by an unknown part: {{.Name}}, %(refname),
// ${Package}, \(.path), {node}, %h. It removes the parts that only control a template.
func filledForm(t string) string {
	for _, m := range [...]struct{ open, shut string }{{"{{", "}}"}, {"%(", ")"}, {"%{", "}"}, {"${", "}"}, {`\(`, ")"}, {"{", "}"}} {
		var b strings.Builder
		for {
			before, behind, opened := strings.Cut(t, m.open)
			inside, rest, shut := strings.Cut(behind, m.shut)
			if !opened || !shut {
				break
			}
			b.WriteString(before + filledPlace(strings.TrimLeft(inside, " -")))
			t = rest
		}
		t = b.String() + t
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

// filledPlace returns the text for one placeholder: nothing for a control part, a line feed for
// "\n", and otherwise an unknown part.
func filledPlace(inside string) string {
	switch word, _, _ := strings.Cut(inside, " "); {
	case word == "range" || word == "end" || word == "if" || word == "else" || word == "with":
		return ""
	case strings.Trim(inside, "\"`\\nt ") == "":
		return "\n"
	}
	return string(scan.Hole)
}
