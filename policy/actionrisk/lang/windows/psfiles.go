package windows

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// registryPath tells whether a path is one of the registry.
func registryPath(path string) bool {
	low := strings.ToLower(path)
	for _, p := range [...]string{"hklm:", "hkcu:", "hkcr:", "hku:", "hklm\\", "hkcu\\", "hkey_", "registry::", "microsoft.powershell.core\\registry::"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return false
}

// resolve is a path without the drives that the command itself made.
func (w *winShell) resolve(path string) string {
	if d, rest, ok := strings.Cut(path, ":"); ok {
		if root, made := w.aliases["drive "+strings.ToLower(d)]; made {
			return strings.TrimRight(root, `\/`) + `\` + strings.TrimLeft(rest, `\/`)
		}
	}
	return path
}

// removeItem deletes files, folders, registry keys; what is piped in comes from a
// listing.
func (w *winShell) removeItem(c *psCall) psValue {
	path, ok := c.param("path")
	if lit, given := c.param("literalpath"); given {
		path, ok = lit, true
	}
	if !ok && c.piped {
		path = c.input
	}
	for _, v := range path.list() {
		if root, listed := v.member("root"); listed || v.kind == psObject {
			w.removeListed(c, v, root)
			continue
		}
		p := w.resolve(v.str())
		switch d, _ := drive(p); {
		case registryPath(p):
			w.posix(c, append(words("reg", "delete"), act.Word{Text: p, At: -1}), act.Flow{})
		case d == "cert":
			if strings.Contains(p, "*") || c.on("recurse") || !strings.Contains(strings.ToLower(p), "currentuser") {
				w.see(act.RemovesService, c) // what services of the machine show to others
			}
		case d == "env" || d == "function" || d == "alias" || d == "variable":
		default:
			argv := words("rm")
			if c.on("recurse") {
				argv = append(argv, words("-rf")...)
			} else if c.piped {
				argv = append(argv, words("-f")...)
			}
			if v.output && c.on("recurse") || v.output && c.piped { // what a loop goes through
				argv = words("rm", "-rf")
			}
			w.posix(c, append(argv, words("--")[0], w.argWord(p, v.taint)), act.Flow{})
		}
	}
	return psValue{}
}

// removeListed: Get-ChildItem … | Remove-Item is find … -delete.
func (w *winShell) removeListed(c *psCall, v, root psValue) {
	if root.kind == psText && root.text == "" {
		w.posix(c, words("rm", "-rf", string(scan.Hole)), act.Flow{})
		return
	}
	if len(root.list()) > 0 && registryPath(root.str()) {
		w.posix(c, append(words("reg", "delete"), act.Word{Text: root.str(), At: -1}), act.Flow{})
		return
	}
	filter := ""
	for _, name := range [...]string{"filter", "include"} {
		if f, ok := v.member(name); ok && strings.Trim(f.str(), "*.") != "" {
			filter = f.texts()[0]
		}
	}
	if _, ok := v.member("filtered"); ok && filter == "" {
		filter = "filtered*"
	}
	for _, p := range root.texts() {
		word := w.argWord(w.resolve(p), 0)
		if filter != "" && paths.KindOfFile(filter)&paths.IsData != 0 && w.e.ClassOf(word, w.sh.Cwd)&paths.IsAbsolute != 0 {
			w.see(act.RemovesBackup, c) // databases and backups, wherever they are kept
		}
		if strings.ContainsAny(p, "*?") && filter == "" { // a pattern is a filter of its own
			if i := strings.LastIndexByte(word.Text, '/'); strings.Trim(word.Text[i+1:], "*.") != "" {
				filter = word.Text[i+1:]
				word.Text = word.Text[:max(i, 0)]
				if word.Text == "" {
					word.Text = "."
				}
			}
		}
		argv := append(words("find"), word)
		if filter != "" {
			argv = append(argv, words("-name", filter)...)
		}
		w.posix(c, append(argv, words("-delete")...), act.Flow{})
	}
}

// web: a request of PowerShell's own clients is one of curl's.
func (w *winShell) web(c *psCall) psValue {
	argv := words("curl")
	add := func(option string, v psValue) {
		word := act.Word{Text: v.str(), At: -1, Taint: v.taints()}
		if option == "-T" || option == "-o" {
			word = w.argWord(word.Text, word.Taint)
		}
		argv = append(argv, act.Word{Text: option, At: -1}, word)
	}
	if m, ok := c.param("method"); ok {
		add("-X", psString(strings.ToUpper(m.str())))
	} else if m, ok := c.param("custommethod"); ok {
		add("-X", psString(strings.ToUpper(m.str())))
	}
	if v, ok := c.param("infile"); ok {
		if root, listed := v.member("root"); listed {
			v = root
		}
		add("-T", v)
	}
	if v, ok := c.param("outfile"); ok {
		add("-o", v)
	}
	for _, name := range [...]string{"body", "form"} {
		v, ok := c.param(name)
		if !ok {
			continue
		}
		if v.kind == psHash {
			for i := range v.items {
				if item := v.items[i]; name == "form" && item.kind == psText {
					add("-F", psValue{text: v.keys[i] + "=@" + strings.ReplaceAll(item.str(), `\`, "/"), taint: item.taints()})
				} else {
					add("-d", psValue{text: v.keys[i] + "=" + item.str(), taint: item.taints()})
				}
			}
			continue
		}
		add("-d", v)
	}
	if t := c.input.taints() & (act.FromSecret | act.FromEnviron | act.FromDump); c.piped && t != 0 { // the body is made of what is piped in
		add("-d", psUnknown(t))
	}
	if h, ok := c.param("headers"); ok && h.kind == psHash {
		for i := range h.items {
			add("-H", psValue{text: h.keys[i] + ": " + h.items[i].str()}) // that is what tokens are for
		}
	}
	uri := w.value(c, "uri")
	argv = append(argv, act.Word{Text: uri.str(), At: -1, Taint: uri.taints()})
	out := w.posix(c, argv, act.Flow{})
	v := psThing(c.name, out.Taint&act.FromNetwork)
	v.output = true
	return v
}
