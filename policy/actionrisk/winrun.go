package actionrisk

import (
	"slices"
	"strings"
)

// winNames maps command names and aliases to one name.
var winNames = map[string]string{"ri": "remove-item", "rm": "remove-item", "rmdir": "remove-item", "rd": "remove-item", "del": "remove-item", "erase": "remove-item",

	"clc": "clear-content", "kill": "stop-process", "spps": "stop-process", "gci": "get-childitem", "ls": "get-childitem", "dir": "get-childitem",
	"gc": "get-content", "cat": "get-content", "type": "get-content", "iex": "invoke-expression", "iwr": "invoke-webrequest", "irm": "invoke-restmethod", "curl": "invoke-webrequest", "wget": "invoke-webrequest",
	"cp": "copy-item", "copy": "copy-item", "cpi": "copy-item", "mv": "move-item", "move": "move-item", "mi": "move-item", "sc": "set-content", "saps": "start-process", "start": "start-process",
	"rp": "remove-itemproperty", "icm": "invoke-command", "echo": "write-output", "write": "write-output", "foreach": "foreach-object", "%": "foreach-object", "?": "where-object", "where": "where-object"}

// run judges command i of the list as the POSIX command that does the same.
func (w *winShell) run(list []winCommand, i int) {
	c := &list[i]
	words := c.words
	for len(words) > 1 && (words[0].Text == "&" || words[0].Text == "." || strings.HasSuffix(words[0].Text, "&") && len(words[0].Text) == 1 || words[0].Text == "@echo" || words[0].Text == "call") {
		words = words[1:]
	}
	if len(words) == 0 || words[0].Text == "" {
		return
	}
	raw := strings.ToLower(strings.TrimSuffix(base(words[0].Text), ".exe"))
	if strings.HasPrefix(raw, "rem") && raw == "rem" || strings.HasPrefix(raw, "::") {
		return
	}
	if raw == "" || strings.IndexByte(raw, hole) >= 0 {
		if !strings.HasPrefix(words[0].Text, "$") && i+1 < len(list) || len(words) > 1 {
			w.e.raise("obf.dynamic-executable", w.src, c.from, c.to, "")
		}
		w.e.unproven = true
		return
	}
	name := raw
	if n, ok := winNames[raw]; ok && !(raw == "sc" && w.isServiceControl(words)) {
		name = n
	}
	opts, args := splitWindows(words[1:])
	if opts["-whatif"] || opts["/?"] {
		return
	}
	w.judge(list, i, name, raw, opts, args)
	if c.redirected != "" {
		w.redirect(c)
	}
}

// listsEnvironment: all variables of the environment are listed, not one by name.
func listsEnvironment(text string) bool {
	l := strings.ToLower(text)
	for _, n := range [...]string{"childitem env:", "gci env:", "dir env:", "ls env:", "getenvironmentvariables("} {
		if strings.Contains(l, n) {
			return true
		}
	}
	return false
}

func (w *winShell) isServiceControl(words []Word) bool {
	return len(words) > 1 && slices.Contains([]string{"stop", "delete", "config", "query", "start", "create"}, strings.ToLower(words[1].Text))
}

// recursive: -Recurse and its abbreviations, /s, and -rf for hands used to it.
func recursive(opts map[string]bool) bool {
	for o := range opts {
		if o == "/s" || strings.HasPrefix("-recurse", o) && len(o) >= 2 || o == "-rf" || o == "-fr" || o == "-rec" {
			return true
		}
	}
	return false
}

// judge dispatches on the command's name.
func (w *winShell) judge(list []winCommand, i int, name, raw string, opts map[string]bool, args []Word) {
	c := &list[i]
	posix := func(argv ...string) { w.posix(c.from, c.to, winFirst(args), argv...) }
	switch name {
	case "remove-item":
		w.removeItem(list, i, opts, args)
	case "clear-content", "set-content", "out-file", "add-content":
		for _, a := range args[:min(1, len(args))] {
			c.redirected = a.Text
		}
	case "format-volume", "clear-disk", "initialize-disk", "remove-partition":
		w.e.raise("shell.win.format", w.src, c.from, c.to, name)
	case "stop-computer", "restart-computer":
		posix("reboot")
	case "shutdown":
		if !opts["/a"] && !opts["-a"] {
			posix("shutdown", "now")
		}
	case "stop-process", "taskkill":
		if opts["-name"] || opts["/im"] || opts["-processname"] {
			posix(append([]string{"pkill"}, texts(args)...)...)
		} else {
			posix(append([]string{"kill"}, texts(args)...)...)
		}
	case "stop-service", "net", "sc":
		w.service(name, c, args)
	case "set-service":
		if strings.Contains(strings.ToLower(strings.Join(texts(args), " ")), "disabled") {
			posix(append([]string{"systemctl", "disable"}, texts(args)...)...)
		}
	case "remove-itemproperty":
		posix("reg", "delete", winFirst(args).Text)
	case "invoke-webrequest", "invoke-restmethod":
		if (opts["-body"] || opts["-infile"]) && listsEnvironment(w.e.action.Command) {
			w.e.raise("secret.exfil-network", w.src, c.from, c.to, "Env:")
		}
		w.web(c, opts, args)
	case "start-process":
		if len(args) > 1 { // the program and its list of arguments
			text := args[0]
			for _, a := range args[1:] {
				text.Text, text.At = text.Text+" "+strings.Trim(a.Text, ","), -1
			}
			w.inner(text, "Start-Process")
		} else {
			posix(append([]string{raw}, texts(args)...)...)
		}
	case "invoke-expression":
		if len(args) == 0 && i > 0 && c.piped && len(list[i-1].words) > 0 {
			if text := list[i-1].words[0]; text.Quoted || strings.IndexByte(text.Text, ' ') > 0 {
				w.inner(text, "Invoke-Expression")
			}
		}
		for _, a := range args {
			if a.known() && strings.TrimSpace(a.Text) != "" {
				w.inner(a, "Invoke-Expression")
			} else if !a.known() {
				w.e.unproven = true
				w.e.raise("obf.dynamic-structure", w.src, c.from, c.to, "")
			}
		}
	case "invoke-sqlcmd":
		for _, a := range args {
			if a.Quoted && strings.Contains(a.Text, " ") {
				inner := w.src.inside(a, "Invoke-Sqlcmd")
				w.e.runSQL(&inner, nil)
			}
		}
	case "get-content":
		posix(append([]string{"cat"}, texts(args)...)...)
	case "copy-item":
		posix(append([]string{"cp"}, texts(args)...)...)
	case "move-item":
		posix(append([]string{"mv"}, texts(args)...)...)
	case "set-mppreference", "add-mppreference", "netsh", "set-netfirewallprofile", "set-executionpolicy", "wevtutil", "clear-eventlog", "new-localuser", "add-localgroupmember", "schtasks", "register-scheduledtask", "uninstall-windowsfeature":
		w.hardening(name, c, opts, args)
	case "write-output", "write-host", "foreach-object", "where-object", "get-childitem", "get-item", "select-object", "get-process", "get-service", "test-path", "if", "else", "try", "catch", "exit", "return", "cd", "set-location", "get-date", "sort-object", "measure-object", "out-null", "format-table", "format-list", "convertto-json", "select-string", "get-location", "write-error", "write-warning":
	default:
		if verb, _, ok := strings.Cut(name, "-"); ok && verb == "get" {
			return
		}
		w.passOn(c, raw)
	}
}

func winFirst(words []Word) Word {
	if len(words) > 0 {
		return words[0]
	}
	return Word{At: -1}
}

func texts(words []Word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.Text
	}
	return out
}

// posix judges a command as if it had been given to a POSIX shell.
func (w *winShell) posix(from, to int, about Word, argv ...string) {
	span, _ := w.src.where(from, min(max(to, from), len(w.src.text)))
	at := *w.src
	at.depth++
	v := &invocation{src: w.src, from: from, to: to}
	for _, a := range argv {
		word := Word{Text: a, At: -1, Span: span, Glob: strings.ContainsAny(a, "*?")}
		if a == about.Text {
			word.Span = about.Span
		}
		v.argv = append(v.argv, word)
	}
	sh := &shell{e: w.e, src: &at}
	sh.run(v)
}

// passOn runs any other program as a POSIX shell would.
func (w *winShell) passOn(c *winCommand, raw string) {
	argv := make([]string, 0, len(c.words))
	for i, word := range c.words {
		t := word.Text
		if i == 0 {
			t = raw
		}
		argv = append(argv, t)
	}
	w.posix(c.from, c.to, Word{At: -1}, argv...)
}

// inner runs text found in a word.
func (w *winShell) inner(word Word, via string) {
	src := w.src.inside(word, via)
	if src.depth > maxDepth {
		w.e.tooDeep = true
		return
	}
	w.e.runWindows(&src, "powershell")
}

// removeItem: what is piped in comes from the command before.
func (w *winShell) removeItem(list []winCommand, i int, opts map[string]bool, args []Word) {
	c := &list[i]
	paths := make([]string, 0, len(args))
	for _, a := range args {
		if t := a.Text; t != "$_" && t != "$_.FullName" && t != "SilentlyContinue" && t != "silentlycontinue" && t != "Stop" && t != "true" {
			if !w.cmd || !strings.HasPrefix(t, "/") {
				paths = append(paths, t)
			}
		}
	}
	if len(paths) == 0 {
		w.removePiped(list, i)
		return
	}
	registry := strings.ToLower(paths[0])
	if strings.HasPrefix(registry, "hklm") || strings.HasPrefix(registry, "hkcu") || strings.HasPrefix(registry, "hkey_") || strings.HasPrefix(registry, "registry::") {
		w.posix(c.from, c.to, winFirst(args), "reg", "delete", paths[0])
		return
	}
	argv := []string{"rm"}
	if recursive(opts) {
		argv = append(argv, "-rf")
	}
	for k, p := range paths {
		if w.cmd && recursive(opts) { // del /s C:\*.* empties the drive
			p = strings.TrimSuffix(p, "*.*")
			p = strings.TrimSuffix(p, "*")
			if p == "" {
				p = "*"
			}
			paths[k] = p
		}
	}
	w.posix(c.from, c.to, winFirst(args), append(append(argv, "--"), paths...)...)
}

// removePiped: Get-ChildItem … | Remove-Item is find … -delete.
func (w *winShell) removePiped(list []winCommand, i int) {
	root, filter, found := ".", "", false
	for j := i - 1; j >= 0 && !found; j-- {
		words := list[j].words
		if len(words) == 0 {
			continue
		}
		switch n := strings.ToLower(words[0].Text); {
		case n == "where-object" || n == "?" || n == "where" || n == "select-object" || strings.HasPrefix(n, "$_"):
			filter = "filtered*"
		case n == "get-childitem" || n == "gci" || n == "ls" || n == "dir" || n == "get-item":
			found = true
			named := ""
			for _, word := range words[1:] {
				t := word.Text
				switch low := strings.ToLower(t); {
				case strings.HasPrefix(low, "-"):
					named = low
					continue
				case strings.HasPrefix("-filter", named) && len(named) > 2, strings.HasPrefix("-include", named) && len(named) > 2:
					filter = t
				case !strings.HasPrefix("-exclude", named) || named == "":
					root = t
				}
				named = ""
			}
		}
	}
	if !found {
		w.posix(list[i].from, list[i].to, Word{At: -1}, "rm", "-rf", string(hole))
		return
	}
	argv := []string{"find", root, "-delete"}
	if filter != "" && filter != "*" {
		argv = []string{"find", root, "-name", filter, "-delete"}
	}
	w.posix(list[i].from, list[i].to, Word{At: -1}, argv...)
}

// service: sc and net stop, disable and delete services, net adds users.
func (w *winShell) service(name string, c *winCommand, args []Word) {
	t := texts(args)
	low := strings.ToLower(strings.Join(t, " "))
	all := strings.ToLower(w.src.text[c.from:min(c.to, len(w.src.text))])
	posix := func(argv ...string) { w.posix(c.from, c.to, winFirst(args), argv...) }
	w.e.unproven = true
	switch {
	case name == "stop-service":
		posix(append([]string{"systemctl", "stop"}, t...)...)
	case strings.HasPrefix(low, "stop "):
		posix(append([]string{"systemctl", "stop"}, t[1:]...)...)
	case name == "sc" && (strings.HasPrefix(low, "delete ") || strings.HasPrefix(low, "config ") && strings.Contains(low, "disabled")):
		posix("systemctl", "disable", t[min(1, len(t)-1)])
	case name == "net" && strings.HasPrefix(low, "user ") && strings.Contains(all, "/add"):
		w.e.raise("priv.account", w.src, c.from, c.to, "")
	case name == "net" && strings.HasPrefix(low, "localgroup admin") && strings.Contains(all, "/add"):
		w.e.raise("priv.account-root", w.src, c.from, c.to, "")
	}
}

// web: a request of PowerShell's own clients is one of curl's.
func (w *winShell) web(c *winCommand, opts map[string]bool, args []Word) {
	argv := []string{"curl"}
	for _, a := range args {
		switch t := a.Text; {
		case strings.HasPrefix(t, "http"):
			argv = append(argv, t)
		case opts["-method"] && slices.Contains([]string{"DELETE", "POST", "PUT", "PATCH"}, strings.ToUpper(t)):
			argv = append(argv, "-X", strings.ToUpper(t))
		}
	}
	w.posix(c.from, c.to, winFirst(args), argv...)
}

// hardening: protections switched off, accounts and tasks added.
func (w *winShell) hardening(name string, c *winCommand, opts map[string]bool, args []Word) {
	low := strings.ToLower(w.src.text[c.from:min(c.to, len(w.src.text))])
	w.e.unproven = true
	raise := func(id string) { w.e.raise(id, w.src, c.from, c.to, "") }
	switch {
	case name == "set-mppreference" && strings.Contains(low, "disable") && !strings.Contains(low, "$false"), name == "add-mppreference" && strings.Contains(low, "exclusion"):
		raise("priv.hardening-off")
	case name == "set-executionpolicy" && (strings.Contains(low, "bypass") || strings.Contains(low, "unrestricted")):
		raise("priv.hardening-off")
	case name == "netsh" && strings.Contains(low, "firewall") && (strings.Contains(low, "state off") || strings.Contains(low, "disable") || strings.Contains(low, "reset")), name == "set-netfirewallprofile" && strings.Contains(low, "false"):
		raise("priv.firewall-flush")
	case name == "clear-eventlog", name == "wevtutil" && (strings.Contains(low, " cl ") || strings.Contains(low, "clear-log")):
		raise("priv.audit-off")
	case name == "new-localuser":
		raise("priv.account")
	case name == "add-localgroupmember" && strings.Contains(low, "admin"):
		raise("priv.account-root")
	case name == "schtasks" && opts["/create"], name == "register-scheduledtask":
		raise("rce.persistence")
	case name == "schtasks" && opts["/delete"]:
		w.posix(c.from, c.to, winFirst(args), "systemctl", "disable", "task")
	}
}

// redirect judges a file that is written.
func (w *winShell) redirect(c *winCommand) {
	if strings.EqualFold(c.redirected, "nul") || strings.EqualFold(c.redirected, "$null") || c.redirected == "" || c.redirected[0] == '&' {
		return
	}
	src := *w.src
	src.depth++
	src.text, src.at = "echo x > "+quote(c.redirected), -1
	src.span, _ = w.src.where(c.from, c.to)
	if src.depth <= maxDepth {
		(&shell{e: w.e}).script(&src, flow{})
	}
}
