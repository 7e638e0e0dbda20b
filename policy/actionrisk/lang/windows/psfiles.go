package windows

import (
	"cmp"
	"path"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// registryPath reports whether a path is in the Windows registry.
func registryPath(path string) bool {
	low := strings.ToLower(path)
	for _, p := range [...]string{"hklm:", "hkcu:", "hkcr:", "hku:", "hklm\\", "hkcu\\", "hkey_", "registry::", "microsoft.powershell.core\\registry::"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return false
}

// resolve replaces a drive that the command itself created by its root.
func (w *winShell) resolve(path string) string {
	if d, rest, ok := strings.Cut(path, ":"); ok {
		if root, made := w.aliases["drive "+strings.ToLower(d)]; made {
			return strings.TrimRight(root, `\/`) + `\` + strings.TrimLeft(rest, `\/`)
		}
	}
	return path
}

// removeItem judges Remove-Item on files, folders and registry keys. The paths are arguments or
// the piped output of a listing.
func (w *winShell) removeItem(c *psCall) psValue {
	path, ok := c.path()
	if !ok && c.piped {
		path = c.input
	}
	for _, v := range path.list() {
		if root, listed := v.member("root"); listed || v.kind == psObject {
			w.removeListed(c, v, root)
		} else {
			w.removePath(c, v)
		}
	}
	return psValue{}
}

// removePath judges the deletion of one path.
func (w *winShell) removePath(c *psCall, v psValue) {
	p, recurse := w.resolve(v.str()), c.on("recurse")
	switch d, _ := drive(p); {
	case registryPath(p):
		w.posix(c, append(words("reg", "delete"), act.Word{Text: p, At: -1}), act.Flow{})
	case d == "cert":
		if strings.Contains(p, "*") || recurse || !strings.Contains(strings.ToLower(p), "currentuser") {
			w.see(act.RemovesService, c) // the certificate may be the one that a service presents
		}
	case itemDrives.Has(d):
	default:
		argv := words("rm", "--")
		if recurse || c.piped && v.output { // a loop over the output of a command deletes all of it
			argv = words("rm", "-rf", "--")
		}
		w.posix(c, append(argv, w.argWord(p, v.taint)), act.Flow{})
	}
}

// itemDrives lists drives whose items are not files but parts of the session.
var itemDrives = scan.SetOf("env function alias variable")

// removeListed judges Get-ChildItem … | Remove-Item as find … -delete.
func (w *winShell) removeListed(c *psCall, v, root psValue) {
	if root.kind == psText && root.text == "" {
		w.posix(c, words("rm", "-rf", string(scan.Hole)), act.Flow{})
		return
	}
	if registryPath(root.str()) {
		w.posix(c, append(words("reg", "delete"), act.Word{Text: root.str(), At: -1}), act.Flow{})
		return
	}
	filter := listFilter(v)
	for _, p := range root.texts() {
		word := w.argWord(w.resolve(p), 0)
		if filter != "" && paths.KindOfFile(filter)&paths.IsData != 0 && w.e.ClassOf(word, w.sh.Cwd)&paths.IsAbsolute != 0 {
			w.see(act.RemovesBackup, c) // the filter selects databases or backups
		}
		if strings.ContainsAny(p, "*?") && filter == "" { // a pattern is a filter, too
			if folder, last := path.Split(word.Text); strings.Trim(last, "*.") != "" {
				filter, word.Text = last, cmp.Or(strings.TrimSuffix(folder, "/"), ".")
			}
		}
		argv := append(words("find"), word)
		if filter != "" {
			argv = append(argv, words("-name", filter)...)
		}
		w.posix(c, append(argv, words("-delete")...), act.Flow{})
	}
}

// listFilter returns the pattern that selects some files of a listing, or "" if it lists all
// files.
func listFilter(v psValue) (filter string) {
	for _, name := range [...]string{"filter", "include"} {
		if f, ok := v.member(name); ok && strings.Trim(f.str(), "*.") != "" {
			filter = f.texts()[0]
		}
	}
	if _, ok := v.member("filtered"); ok && filter == "" {
		return "filtered*"
	}
	return filter
}

// web judges a request of Invoke-WebRequest or Invoke-RestMethod as the equivalent call of curl.
func (w *winShell) web(c *psCall) psValue {
	argv := words("curl")
	add := func(option string, v psValue) {
		word := act.Word{Text: v.str(), At: -1, Taint: v.taints()}
		if option == "-T" || option == "-o" {
			word = w.argWord(word.Text, word.Taint)
		}
		argv = append(argv, act.Word{Text: option, At: -1}, word)
	}
	for _, o := range webOptions {
		v, ok := c.param(o.param)
		if root, listed := v.member("root"); listed {
			v = root
		}
		switch {
		case !ok:
		case o.option == "-X":
			add("-X", psString(strings.ToUpper(v.str())))
		case v.kind != psHash:
			add(o.option, v)
		default:
			webTable(o.param, v, add)
		}
	}
	if t := c.input.taints() & (act.FromSecret | act.FromEnviron | act.FromDump); c.piped && t != 0 { // the piped input is the body
		add("-d", psUnknown(t))
	}
	uri := w.value(c, "uri")
	argv = append(argv, act.Word{Text: uri.str(), At: -1, Taint: uri.taints()})
	out := w.posix(c, argv, act.Flow{})
	v := psThing(c.name, out.Taint&act.FromNetwork)
	v.output = true
	return v
}

// webOptions maps the parameters of Invoke-WebRequest and Invoke-RestMethod to options of curl.
var webOptions = []struct{ param, option string }{
	{"method", "-X"}, {"custommethod", "-X"}, {"infile", "-T"}, {"outfile", "-o"}, {"body", "-d"}, {"form", "-d"}, {"headers", "-H"},
}

// webTable adds the members of a hash table with add: as headers, as form fields that may upload
// files, or as fields of the body.
func webTable(param string, v psValue, add func(string, psValue)) {
	for i, item := range v.items {
		switch {
		case param == "headers":
			add("-H", psString(v.keys[i]+": "+item.str()))
		case param == "form" && item.kind == psText:
			add("-F", psValue{text: v.keys[i] + "=@" + strings.ReplaceAll(item.str(), `\`, "/"), taint: item.taints()})
		default:
			add("-d", psValue{text: v.keys[i] + "=" + item.str(), taint: item.taints()})
		}
	}
}

// path returns the parameter LiteralPath or Path, and false if neither is given.
func (c *psCall) path() (psValue, bool) {
	if v, ok := c.param("literalpath"); ok {
		return v, true
	}
	return c.param("path")
}
