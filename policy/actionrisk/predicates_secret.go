package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// secretPredicates serve the secret, rce and priv tables.
var secretPredicates = map[string]predicate{
	"sent-copy":      sentCopy,      // an operand is, holds or lies in a copy of credentials that the command itself made
	"remote-archive": remoteArchive, // the archive that it writes is on another machine
	"serves-secrets": servesSecrets, // a web server whose root holds credentials
	"names-only":     namesOnly,     // shows what stands before "=" alone
	"secretfile":     secretFile,    // shows a file of credentials on this machine
	"local":          func(_ *engine, it *item, _ []string) (Word, bool) { return Word{}, !it.inv.remote },
	"any-out": func(_ *engine, it *item, _ []string) (Word, bool) {
		return Word{}, !it.inv.has("-pubout") && !it.inv.has("-pubin") && !it.inv.has("-check")
	},
	"noinner": func(_ *engine, it *item, _ []string) (Word, bool) {
		return Word{}, len(it.inv.argv) == 1 || it.inv.exe == "printenv"
	},
	"bare": func(_ *engine, it *item, _ []string) (Word, bool) { return Word{}, len(it.inv.argv) == 1 },
	"jqenv": func(_ *engine, it *item, _ []string) (Word, bool) { // a filter that gives a variable with a credential, or all
		for _, w := range it.inv.operands[:min(1, len(it.inv.operands))] {
			t := strings.Trim(w.Text, "() ")
			for _, p := range [...]string{"env.", "$ENV."} {
				if name, ok := strings.CutPrefix(t, p); ok && secretName(name) {
					return w, true
				}
			}
			if t == "env" || t == "$ENV" {
				return w, true
			}
		}
		return Word{}, false
	},
	"envsearch": func(_ *engine, it *item, _ []string) (Word, bool) { // the environment is searched for credentials
		in, list := it.inv.stdin, it.inv.operands
		if in.taint&fromEnviron == 0 || len(list) != 1 {
			return Word{}, false
		}
		switch in.via {
		case "env", "printenv", "set", "export", "declare":
			return list[0], secretName(list[0].Text)
		}
		return Word{}, false
	},
	"stdinvar": func(_ *engine, it *item, _ []string) (Word, bool) { // a variable with a credential is its input
		w := it.inv.stdin.word
		return w, secretName(w.Var) && it.inv.stdin.via == ""
	},
	"secretname":    secretOperand, // an operand is the name of a variable with a credential
	"huntname":      huntName,      // find -name with the name of a credential file
	"huntpattern":   huntPattern,   // a pattern that credentials match
	"scp-remote":    remoteOperand, // an operand is on another machine or in a bucket
	"literalsecret": literalSecret, // a token stands in the words
	"password":      password,      // a password stands in the words, by its option
	"tokenhost":     tokenHost,     // a token of a known service goes to another host
	"nettool": func(e *engine, it *item, _ []string) (Word, bool) {
		return Word{}, slices.Contains(e.groups["netclients"], it.inv.exe) || slices.Contains(e.groups["downloaders"], it.inv.exe)
	},
	"sendsinput":   sendsInput, // its input goes out
	"local-target": func(_ *engine, it *item, _ []string) (Word, bool) { return Word{}, local(it.inv) },
	"filearg":      sentFile,    // a body option names a file of credentials
	"secretinurl":  secretInURL, // a variable with a credential stands in a URL or a body
	"anysecret":    anySecret,   // input, words or operands are credentials
	"devtcp":       devTCP,      // the file is /dev/tcp/host/port
	"devtcp-redir": devTCPRedir, // one of the redirections is
	"redirected": func(_ *engine, it *item, _ []string) (Word, bool) {
		return it.inv.stdin.word, slices.ContainsFunc(it.inv.redirs, func(r redir) bool { return r.op == "<" })
	},
	"socat-file":       socatFile,
	"stdin-fifo":       stdinFifo,
	"listen-free":      func(_ *engine, it *item, _ []string) (Word, bool) { return Word{}, !listens(it.inv) },
	"startup-write":    startupWrite, // the last operand, or what is edited in place, runs by itself later
	"authorized-write": authorizedWrite,
	"crontab-set":      crontabSet,
	"chmod-x": func(_ *engine, it *item, _ []string) (Word, bool) {
		return Word{}, len(it.inv.operands) > 0 && (strings.Contains(it.inv.operands[0].Text, "x") || strings.ContainsAny(it.inv.operands[0].Text, "157"))
	},
	"instsub": func(_ *engine, it *item, _ []string) (Word, bool) {
		return Word{}, it.inv.has("-i") || it.inv.has("-U") || it.inv.has("install") || it.inv.has("-Uvh") || it.inv.has("-ivh")
	},
	"localtool": localTool,      // a tool that projects have installed
	"unpinned2": unpinnedSecond, // like unpinned, for the operand after the subcommand
	"removes": func(_ *engine, it *item, _ []string) (Word, bool) {
		return Word{}, it.inv.has("remove") || it.inv.has("purge") || it.inv.has("erase") || it.inv.has("autoremove") || it.inv.has("--purge") || it.inv.has("-r") || it.inv.has("-P") || it.inv.has("-R") || it.inv.has("-e") || it.inv.has("-Rns") || it.inv.has("-Rdd") || it.inv.has("del")
	},
	"root-shell":      rootShell,
	"su-root":         suRoot,
	"inner-shell":     innerShell,
	"interactive":     interactiveShell,
	"sudoers":         sudoersFile,
	"sudoers-operand": sudoersFile,
	"contains-word":   containsWord, // a word, or a part of it between commas, equals
	"account-root":    accountRoot,
	"account-change":  accountChange,
	"optempty":        optEmpty,
	"rootkeys": func(_ *engine, it *item, _ []string) (Word, bool) {
		w, ok := wordWith(it, "/root/.ssh")
		return w, ok || it.inv.root && len(it.inv.operands) > 0 && strings.HasPrefix(it.inv.operands[0].Text, "~/.ssh")
	},
	"auditlog": func(_ *engine, it *item, _ []string) (Word, bool) {
		for _, p := range [...]string{"/var/log/audit", "/var/log/auth.log", "/var/log/syslog", "/var/log/secure", "/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog", "/var/log/messages"} {
			if w, ok := wordWith(it, p); ok {
				return w, true
			}
		}
		return Word{}, false
	},
	"vacuumall": func(_ *engine, it *item, _ []string) (Word, bool) {
		w, ok := it.inv.value("--vacuum-time", "--vacuum-size")
		return w, ok && (strings.HasPrefix(w.Text, "1s") || strings.HasPrefix(w.Text, "0") || w.Text == "1")
	},
	"sets": func(_ *engine, it *item, args []string) (Word, bool) { // sysctl: a value is given
		for _, w := range it.inv.operands {
			if strings.IndexByte(w.Text, '=') > 0 && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(w.Text, a) }) {
				return w, true
			}
		}
		return Word{}, false
	},
	"procsys": func(_ *engine, it *item, _ []string) (Word, bool) {
		w, ok := wordWith(it, "/proc/sys")
		if !ok {
			w, ok = wordWith(it, "/sys/kernel")
		}
		return w, ok
	},
	"procmem": func(_ *engine, it *item, _ []string) (Word, bool) {
		for _, w := range it.inv.operands {
			t := strings.TrimPrefix(w.Text, "if=")
			if strings.HasPrefix(t, "/proc/") && strings.HasSuffix(t, "/mem") || t == "/dev/mem" || t == "/dev/kmem" || t == "/proc/kcore" {
				return w, true
			}
		}
		return Word{}, false
	},
}

// wordWith finds an operand that begins with a path.
func wordWith(it *item, prefix string) (Word, bool) {
	for _, w := range it.inv.operands {
		if paths.UnderAny(w.Text, prefix) || strings.HasPrefix(w.Text, prefix+"*") {
			return w, true
		}
	}
	return Word{}, false
}

func secretFile(e *engine, it *item, _ []string) (Word, bool) {
	if it.inv.exe == "gpg" || it.inv.exe == "sort" && it.inv.has("-o") {
		return Word{}, false
	}
	for _, w := range targets(it) {
		t := w
		if it.inv.exe == "git" {
			_, rest, ok := strings.Cut(w.Text, ":")
			if !ok {
				continue
			}
			t.Text = rest
		}
		if rest, ok := strings.CutPrefix(w.Text, "if="); ok {
			t.Text = rest
		}
		if f, own := e.files[paths.FileKey(it.inv.cwd, t.Text)]; own && f.taint&fromSecret != 0 && !f.known && f.via == "file" {
			return w, true // a copy
		}
		if c := e.classOf(t, it.inv.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
			if _, own := e.files[paths.FileKey(it.inv.cwd, t.Text)]; !own {
				return w, true
			}
		}
	}
	return Word{}, false
}

func sentCopy(e *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		f, ok := e.files[paths.FileKey(it.inv.cwd, w.Text)]
		if ok && f.taint&(fromSecret|fromDump|fromEnviron) != 0 || e.within(it.inv.cwd, w) != 0 {
			return w, true
		}
	}
	return Word{}, false
}

// remoteArchive: tar, cpio and pax write to host:path over ssh or rsh, given as an
// option or, for tar, in TAPE.
func remoteArchive(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.has("-x") || v.has("-t") || v.has("-r") && v.exe == "pax" || v.has("--force-local") {
		return Word{}, false
	}
	w, ok := v.value("-f", "--file", "-F", "-O")
	if !ok && strings.HasSuffix(v.exe, "tar") {
		for _, a := range v.env {
			if a.name == "TAPE" {
				w = a.value
			}
		}
	}
	return w, w.Text != "" && remotePath(w.Text)
}

// servesSecrets: a web server for one folder, which is a folder of keys, a home
// directory or the root.
func servesSecrets(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	name := v.exe
	if name == "npx" && len(v.operands) > 0 {
		name = scan.Base(v.operands[0].Text)
	}
	folder := Word{Text: "."}
	option := func(names ...string) {
		for _, n := range names {
			if w, ok := v.value(n); ok {
				folder = w
			} else if w, ok := wordAfter(v, n); ok {
				folder = w
			}
		}
	}
	switch {
	case strings.HasPrefix(name, "py"):
		if module, ok := v.value("-m"); !ok || module.Text != "http.server" && module.Text != "SimpleHTTPServer" {
			return Word{}, false
		}
		option("-d", "--directory")
	case name == "php":
		if !v.has("-S") {
			return Word{}, false
		}
		option("-t")
	case name == "ruby":
		if !v.has("httpd") && !slices.ContainsFunc(v.argv, func(w Word) bool { return w.Text == "httpd" }) {
			return Word{}, false
		}
		folder = v.argv[len(v.argv)-1]
	case name == "busybox":
		if !v.has("httpd") {
			return Word{}, false
		}
		option("-h")
	case name == "caddy":
		if !v.has("file-server") {
			return Word{}, false
		}
		option("--root", "-r")
	case name == "serve" || name == "http-server" || name == "darkhttpd" || name == "webfsd" || name == "httpd":
		if len(v.operands) > 0 {
			folder = v.operands[len(v.operands)-1]
		}
	default:
		return Word{}, false
	}
	if folder.Text == "." && v.cwd == "" {
		return Word{}, false
	}
	return folder, e.classOf(folder, v.cwd)&(paths.IsCredential|paths.IsHome|paths.IsRoot) != 0 || folder.Text == "." && e.classOf(Word{Text: v.cwd}, "")&(paths.IsCredential|paths.IsHome|paths.IsRoot) != 0
}

// namesOnly: the names of the variables in a file are shown, not their values.
func namesOnly(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	program := ""
	if len(v.operands) > 0 {
		program = v.operands[0].Text
	}
	switch v.exe {
	case "cut":
		d, ok1 := v.value("-d", "--delimiter")
		f, ok2 := v.value("-f", "--fields")
		return Word{}, ok1 && ok2 && d.Text == "=" && f.Text == "1"
	case "sed":
		return Word{}, strings.HasPrefix(program, "s/=.*/") && (strings.HasSuffix(program, "//") || strings.HasSuffix(program, "/=/") || strings.HasSuffix(program, "***/"))
	case "awk", "gawk", "mawk":
		f, ok := v.value("-F", "--field-separator")
		return Word{}, ok && f.Text == "=" && strings.Contains(program, "print $1") && strings.Count(program, "$") == 1
	case "grep", "egrep", "rg":
		return Word{}, v.has("-o") && strings.HasPrefix(program, "^[") && !strings.ContainsAny(program, ".=")
	}
	return Word{}, false
}

func secretOperand(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		if secretName(w.Text) {
			return w, true
		}
	}
	return Word{}, false
}

var huntNames = []string{"id_rsa", "id_ed25519", "id_dsa", ".pem", ".env", "credentials", "wallet.dat", ".aws", ".ssh", ".netrc", ".pgpass", "shadow", "keystore", "kubeconfig", ".kdbx", ".npmrc", "private_key", "secrets", ".key", ".p12", ".pfx", ".jks"}

func huntName(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	broad := len(v.argv) > 1 && e.classOf(v.argv[1], v.cwd)&(paths.IsRoot|paths.IsHome|paths.IsSystem|paths.IsOutside) != 0 || v.exe == "locate" || v.exe == "mdfind"
	if !broad {
		return Word{}, false
	}
	for _, w := range v.argv[1:] {
		for _, n := range huntNames {
			if t := strings.Trim(w.Text, "*"); t == n || strings.HasSuffix(t, "/"+n) || t == "."+n {
				return w, true
			}
		}
	}
	return Word{}, false
}

func huntPattern(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.argv[1:] {
		l := strings.ToLower(w.Text)
		for _, p := range [...]string{"private key", "begin rsa", "begin openssh", "akia", "aws_secret", "api_key", "apikey", "secret_key", "password", "passwd", "token", "mnemonic", "secret", "credential"} {
			if strings.Contains(l, p) && !strings.HasPrefix(l, "/") {
				return w, true
			}
		}
	}
	return Word{}, false
}

// remoteOperand: host:path, s3://, gs:// and their kind.
func remoteOperand(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		i := strings.IndexByte(w.Text, ':')
		if i > 1 && !strings.HasPrefix(w.Text, "/") && !strings.HasPrefix(w.Text, ".") && !strings.HasPrefix(w.Text, "file:") {
			return w, true
		}
	}
	return Word{}, false
}

func literalSecret(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.exe == "sshpass" {
		w, ok := wordAfter(v, "-p")
		return w, ok
	}
	for _, w := range v.argv[1:] {
		if !w.known() || len(w.Text) < 12 {
			continue
		}
		for _, s := range secretsIn(w.Text) {
			if t := w.Text[s.Start:s.End]; secretWord(t) || strings.Contains(w.Text, "earer "+t) {
				return w, true
			}
		}
	}
	return Word{}, false
}

func wordAfter(v *invocation, option string) (Word, bool) {
	for i := 1; i+1 < len(v.argv); i++ {
		if v.argv[i].Text == option {
			return v.argv[i+1], true
		}
	}
	return Word{}, false
}

// tokenHome says where the tokens of a service belong, by prefix or by the name
// of the variable.
var tokenHome = []struct{ prefix, variable, host string }{
	{"ghp_", "GITHUB_TOKEN", "github"}, {"gho_", "GH_TOKEN", "github"}, {"github_pat_", "GITHUB_PAT", "github"}, {"ghs_", "GITHUB_API_TOKEN", "github"},
	{"glpat-", "GITLAB_TOKEN", "gitlab"}, {"sk-ant-", "ANTHROPIC_API_KEY", "anthropic"}, {"sk-proj-", "OPENAI_API_KEY", "openai"},
	{"AKIA", "AWS_SECRET_ACCESS_KEY", "amazonaws"}, {"xoxb-", "SLACK_BOT_TOKEN", "slack"}, {"xoxp-", "SLACK_TOKEN", "slack"},
	{"sk_live_", "STRIPE_SECRET_KEY", "stripe"}, {"npm_", "NPM_TOKEN", "npm"}, {"AIza", "GOOGLE_API_KEY", "google"}, {"hf_", "HF_TOKEN", "huggingface"},
	{"dop_v1_", "DIGITALOCEAN_TOKEN", "digitalocean"}, {"SG.", "SENDGRID_API_KEY", "sendgrid"},
}

func tokenHost(_ *engine, it *item, _ []string) (Word, bool) {
	named := []string{}
	for _, w := range it.inv.argv[1:] {
		if _, h, _, ok := urlOf(w.Text); ok {
			named = append(named, h)
		} else if h, ok := looksHost(w.Text); ok {
			named = append(named, h)
		}
	}
	if len(named) == 0 {
		return Word{}, false
	}
	for _, w := range it.inv.argv[1:] {
		for _, t := range tokenHome {
			if w.Var != t.variable && !strings.Contains(w.Text, t.prefix) {
				continue
			}
			if w.Var != t.variable && !slices.ContainsFunc(secretsIn(w.Text), func(s Span) bool { return strings.Contains(w.Text[s.Start:s.End], t.prefix) }) {
				continue
			}
			for _, h := range named {
				if !strings.Contains(h, t.host) && !localHost(h) {
					return w, true
				}
			}
		}
	}
	return Word{}, false
}

// sendsInput: the program sends its standard input away.
func sendsInput(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	switch v.exe {
	case "curl", "wget":
		return uploads(e, it, []string{"stdin"})
	case "aws", "gsutil", "gcloud", "az", "mc", "s3cmd":
		return Word{}, v.has("-") && !slices.ContainsFunc(v.operands, func(w Word) bool { return w.Text == "login" })
	case "scp", "sftp", "rsync", "rclone":
		return Word{}, v.has("rcat")
	case "ssh", "mosh":
		return Word{}, !v.has("-n") && !v.has("-f") // these give it no input
	}
	return Word{}, !local(v)
}

func sentFile(e *engine, it *item, _ []string) (Word, bool) {
	for i := range it.inv.opts {
		o := &it.inv.opts[i]
		if !slices.Contains(bodyOptions, o.name) || !o.given {
			continue
		}
		w := o.value
		if j := strings.LastIndexAny(w.Text, "@<"); j >= 0 {
			w = w.tail(j + 1)
			w.Text, _, _ = strings.Cut(w.Text, ";")
		} else if o.name != "-T" && !strings.HasSuffix(o.name, "-file") {
			continue
		}
		if fd, ok := descriptor(w.Text); ok {
			if f, ok := it.inv.fds[fd]; ok && f.op == "<" {
				w = f.file
			}
		}
		if f, ok := e.files[paths.FileKey(it.inv.cwd, w.Text)]; ok && f.taint&(fromSecret|fromDump|fromEnviron) != 0 || !ok && e.within(it.inv.cwd, w) != 0 {
			return w, true
		}
		if c := e.classOf(w, it.inv.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 || c&paths.IsAccounts != 0 {
			return w, true
		}
	}
	return Word{}, false
}

// secretInURL: a variable that holds a credential stands in the URL or, sent to
// a host that collects requests, anywhere.
func secretInURL(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.argv[1:] {
		if _, host, rest, ok := urlOf(w.Text); ok && secretName(w.Var) && strings.IndexByte(rest, scan.Hole) >= 0 && !localHost(host) && !strings.Contains(host, "telegram") && !strings.Contains(host, "slack") && !strings.Contains(host, "discord") {
			return w, true
		}
	}
	for i := range it.inv.opts {
		o := &it.inv.opts[i]
		if slices.Contains(bodyOptions, o.name) && secretName(o.value.Var) && !strings.Contains(strings.ToLower(o.value.Text), "client_") && !strings.Contains(o.value.Text, "grant_type") {
			for _, w := range it.inv.operands {
				if _, host, _, ok := urlOf(w.Text); ok && pasteHost(host) {
					return o.value, true
				}
			}
		}
	}
	return Word{}, false
}

func anySecret(e *engine, it *item, _ []string) (Word, bool) {
	bad := fromSecret | fromEnviron | fromDump
	if (it.inv.stdin.taint|it.inv.stdin.word.Taint)&bad != 0 {
		return it.inv.stdin.word, true
	}
	for _, w := range it.inv.argv[1:] {
		if w.Taint&bad != 0 {
			return w, true
		}
		if c := e.classOf(w, it.inv.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 && !strings.ContainsAny(w.Text, " \n") {
			return w, true
		}
	}
	return Word{}, false
}

func devTCP(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		if strings.HasPrefix(w.Text, "/dev/tcp/") || strings.HasPrefix(w.Text, "/dev/udp/") {
			return w, true
		}
	}
	return Word{}, false
}

func devTCPRedir(_ *engine, it *item, _ []string) (Word, bool) {
	for _, r := range it.inv.redirs {
		if strings.HasPrefix(r.file.Text, "/dev/tcp/") || strings.HasPrefix(r.file.Text, "/dev/udp/") {
			return r.file, true
		}
	}
	return Word{}, strings.Contains(it.src.text, "/dev/tcp/") && it.inv.has("-i")
}

// stdinFifo: a shell that reads a named pipe which a network client writes.
func stdinFifo(_ *engine, it *item, _ []string) (Word, bool) {
	t := it.src.text
	return Word{}, strings.Contains(t, "mkfifo") && (strings.Contains(t, "nc ") || strings.Contains(t, "ncat ") || strings.Contains(t, "openssl s_client") || strings.Contains(t, "telnet "))
}

func listens(v *invocation) bool { return v.has("-l") || v.has("--listen") || v.has("-L") }

// socatFile: socat sends a file of credentials to a network address.
func socatFile(e *engine, it *item, _ []string) (Word, bool) {
	net := false
	var file Word
	for _, w := range it.inv.operands {
		kind, rest, _ := strings.Cut(w.Text, ":")
		switch k := strings.ToUpper(kind); {
		case strings.HasPrefix(k, "TCP"), strings.HasPrefix(k, "UDP"), strings.HasPrefix(k, "OPENSSL"):
			net = true
		case k == "FD":
			file := it.inv.fds[rest].file.Text
			net = net || strings.HasPrefix(file, "/dev/tcp/") || strings.HasPrefix(file, "/dev/udp/")
		case k == "EXEC" || k == "SYSTEM":
			for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" '\"\\,;|", r) }) {
				if c := e.classOf(Word{Text: part}, it.inv.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
					file = w
				}
			}
		case k == "OPEN" || k == "FILE" || k == "GOPEN" || k == "PIPE" || k == "CREATE" || rest == "" && strings.Contains(w.Text, "/"):
			if rest == "" {
				rest = w.Text
			}
			rest, _, _ = strings.Cut(strings.Trim(rest, "'\""), ",")
			if f, ok := e.files[paths.FileKey(it.inv.cwd, rest)]; ok && f.taint&(fromSecret|fromDump|fromEnviron) != 0 {
				file = w
			}
			if c := e.classOf(Word{Text: rest}, it.inv.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
				file = w
			}
		}
	}
	return file, net && file.Text != ""
}
