package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// SecretPredicates are the predicates of the tables secret, rce and priv. In the comments, "it" is
// the invocation.
var SecretPredicates = map[string]interp.Predicate{
	"sent-copy":      sentCopy,      // an operand is, contains or is in a copy of credentials that the command made
	"remote-archive": remoteArchive, // it writes an archive to another machine
	"serves-secrets": servesSecrets, // a web server serves a folder with credentials
	"names-only":     namesOnly,     // it shows only the names before "="
	"secretfile":     secretFile,    // it shows a file with credentials on this machine
	"given-secret": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { // its input is or contains a credential
		in := it.Inv.Stdin
		return in.Word, ((in.Taint|in.Word.Taint)&fromSecrets != 0 || hosts.SecretName(in.Word.Var)) && !foreignToken(in.Word, namedHosts(it))
	},
	"secret-in":     secretIn,      // the value of one of these options contains a variable with a credential
	"authenticates": authenticates, // the request only reads, and sends each secret to its own service in a header for credentials
	"sent-secret":   sentSecret,    // a variable with a credential is sent in a body
	"local":         func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { return act.Word{}, !it.Inv.Remote },
	"any-out": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, !it.Inv.Has("-pubout") && !it.Inv.Has("-pubin") && !it.Inv.Has("-check")
	},
	"noinner": func(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, len(it.Inv.Argv) == 1 || e.Program(it.Inv.Exe).Carries == nil
	},
	"bare": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, len(it.Inv.Argv) == 1
	},
	"jqenv": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { // the filter prints a variable with a credential, or all variables
		for _, w := range it.Inv.Operands[:min(1, len(it.Inv.Operands))] {
			t := strings.Trim(w.Text, "() ")
			for _, p := range [...]string{"env.", "$ENV."} {
				if name, ok := strings.CutPrefix(t, p); ok && hosts.SecretName(name) {
					return w, true
				}
			}
			if t == "env" || t == "$ENV" {
				return w, true
			}
		}
		return act.Word{}, false
	},
	"envsearch": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { // it searches the environment for credentials
		in, list := it.Inv.Stdin, it.Inv.Operands
		if in.Taint&act.FromEnviron == 0 || len(list) != 1 {
			return act.Word{}, false
		}
		switch in.Via {
		case "env", "printenv", "set", "export", "declare":
			return list[0], hosts.SecretName(list[0].Text)
		}
		return act.Word{}, false
	},
	"stdinvar": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { // its input is a variable with a credential
		w := it.Inv.Stdin.Word
		return w, hosts.SecretName(w.Var) && it.Inv.Stdin.Via == ""
	},
	"secretname":    secretOperand, // an operand is the name of a variable with a credential
	"huntname":      huntName,      // find -name with the name of a credential file
	"huntpattern":   huntPattern,   // a pattern that matches credentials
	"scp-remote":    remoteOperand, // an operand is on another machine or in a bucket
	"last-outside":  lastOutside,   // the last operand, the destination of a copy, is on another machine or in a bucket
	"literalsecret": literalSecret, // a word contains a token
	"password":      password,      // an option contains a password
	"tokenhost":     tokenHost,     // a token of a known service is sent to another host
	"nettool": func(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, e.In("netclients", it.Inv.Exe) || e.In("downloaders", it.Inv.Exe)
	},
	"sendsinput":   sendsInput, // it sends its input over the network
	"fed-by":       fedBy,      // its unknown input comes from one of these programs, or from a file ("file")
	"local-target": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { return act.Word{}, hosts.Local(it.Inv) },
	"filearg":      sentFile,    // a body option names a file with credentials
	"secretinurl":  secretInURL, // a URL or body contains a variable with a credential
	"anysecret":    anySecret,   // its input or a word is a credential
	"devtcp":       devTCP,      // an operand is /dev/tcp/host/port
	"devtcp-redir": devTCPRedir, // a redirection is to or from /dev/tcp/host/port
	"redirected": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return it.Inv.Stdin.Word, slices.ContainsFunc(it.Inv.Redirs, func(r act.Redir) bool { return r.Op == "<" })
	},
	"socat-file":       socatFile,
	"stdin-fifo":       stdinFifo,
	"listen-free":      func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) { return act.Word{}, !listens(it.Inv) },
	"startup-write":    startupWrite, // the file that it writes or edits runs automatically later
	"authorized-write": authorizedWrite,
	"crontab-set":      crontabSet,
	"chmod-x": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, len(it.Inv.Operands) > 0 && (strings.Contains(it.Inv.Operands[0].Text, "x") || strings.ContainsAny(it.Inv.Operands[0].Text, "157"))
	},
	"instsub": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, it.Inv.Has("-i") || it.Inv.Has("-U") || it.Inv.Has("install") || it.Inv.Has("-Uvh") || it.Inv.Has("-ivh")
	},
	"localtool": localTool,      // a tool that projects usually have as a dependency
	"unpinned2": unpinnedSecond, // like unpinned, for the operand after the subcommand
	"removes": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		return act.Word{}, it.Inv.Has("remove") || it.Inv.Has("purge") || it.Inv.Has("erase") || it.Inv.Has("autoremove") || it.Inv.Has("--purge") || it.Inv.Has("-r") || it.Inv.Has("-P") || it.Inv.Has("-R") || it.Inv.Has("-e") || it.Inv.Has("-Rns") || it.Inv.Has("-Rdd") || it.Inv.Has("del")
	},
	"root-shell":      rootShell,
	"su-root":         suRoot,
	"inner-shell":     innerShell,
	"interactive":     interactiveShell,
	"sudoers":         sudoersFile,
	"sudoers-operand": sudoersFile,
	"contains-word":   containsWord, // a word, or a part of it between commas, equals one of these
	"account-root":    accountRoot,
	"account-change":  accountChange,
	"optempty":        optEmpty,
	"rootkeys": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		w, ok := wordWith(it, "/root/.ssh")
		return w, ok || it.Inv.Root && len(it.Inv.Operands) > 0 && strings.HasPrefix(it.Inv.Operands[0].Text, "~/.ssh")
	},
	"auditlog": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		for _, p := range [...]string{"/var/log/audit", "/var/log/auth.log", "/var/log/syslog", "/var/log/secure", "/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog", "/var/log/messages"} {
			if w, ok := wordWith(it, p); ok {
				return w, true
			}
		}
		return act.Word{}, false
	},
	"covers": covers, // an operand is a pattern that matches one of these paths
	"vacuumall": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		w, ok := it.Inv.Value("--vacuum-time", "--vacuum-size")
		return w, ok && (strings.HasPrefix(w.Text, "1s") || strings.HasPrefix(w.Text, "0") || w.Text == "1")
	},
	"sets": func(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) { // sysctl sets a value whose name begins with one of these
		return first(it.Inv.Operands, func(w act.Word) bool { return strings.IndexByte(w.Text, '=') > 0 && scan.HasAnyPrefix(w.Text, args...) })
	},
	"procsys": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		w, ok := wordWith(it, "/proc/sys")
		if !ok {
			w, ok = wordWith(it, "/sys/kernel")
		}
		return w, ok
	},
	"procmem": func(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
		for _, w := range it.Inv.Operands {
			t := strings.TrimPrefix(w.Text, "if=")
			if strings.HasPrefix(t, "/proc/") && strings.HasSuffix(t, "/mem") || t == "/dev/mem" || t == "/dev/kmem" || t == "/proc/kcore" {
				return w, true
			}
		}
		return act.Word{}, false
	},
}

// covers reports whether an operand is a pattern that the shell expands to one of the paths.
func covers(_ *interp.Env, it *act.Item, list []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		return w.Glob && slices.ContainsFunc(list, func(p string) bool {
			return strings.Count(p, "/") == strings.Count(w.Text, "/") && paths.GlobMatch(w.Text, p)
		})
	})
}

// wordWith returns the first operand that is in or below a path.
func wordWith(it *act.Item, prefix string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		return paths.UnderAny(w.Text, prefix) || strings.HasPrefix(w.Text, prefix+"*")
	})
}

func secretFile(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if it.Inv.Exe == "gpg" || it.Inv.Exe == "sort" && it.Inv.Has("-o") {
		return act.Word{}, false
	}
	return first(targets(it), func(w act.Word) bool {
		if it.Inv.Exe == "git" { // a file in a commit: commit:path
			_, rest, ok := strings.Cut(w.Text, ":")
			if !ok {
				return false
			}
			w.Text = rest
		}
		w.Text = strings.TrimPrefix(w.Text, "if=")
		f, own := e.Files[e.Key(it.Inv.Cwd, w.Text)]
		if own {
			return f.Taint&act.FromSecret != 0 && !f.Known && f.Via == "file" // a copy of a secret
		}
		return e.Credential(w, it.Inv.Cwd)
	})
}

func sentCopy(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		return e.Files[e.Key(it.Inv.Cwd, w.Text)].Taint&fromSecrets != 0 || e.Within(it.Inv.Cwd, w) != 0
	})
}

// remoteArchive reports whether tar, cpio or pax writes to host:path over ssh or rsh. The
// destination is an option or, for tar, the variable TAPE.
func remoteArchive(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Has("-x") || v.Has("-t") || v.Has("-r") && v.Exe == "pax" || v.Has("--force-local") {
		return act.Word{}, false
	}
	w, ok := v.Value("-f", "--file", "-F", "-O")
	if !ok && strings.HasSuffix(v.Exe, "tar") {
		for _, a := range v.Env {
			if a.Name == "TAPE" {
				w = a.Value
			}
		}
	}
	return w, w.Text != "" && act.RemotePath(w.Text)
}

// servers are programs that serve a folder over HTTP. If the program has other uses, the field
// "by" contains the word that starts the server. The field "folders" lists the options that name
// the folder.
var servers = map[string]struct {
	by      string
	folders []string
	last    bool // the last operand may be the folder
	runs    bool // the first operand is the program that serves
}{
	"php":         {by: "-S", folders: []string{"-t"}},
	"ruby":        {by: "httpd", last: true},
	"busybox":     {by: "httpd", folders: []string{"-h"}},
	"caddy":       {by: "file-server", folders: []string{"--root", "-r"}},
	"npx":         {runs: true},
	"serve":       {last: true},
	"http-server": {last: true},
	"darkhttpd":   {last: true},
	"webfsd":      {last: true},
	"httpd":       {last: true},
	"python":      {folders: []string{"-d", "--directory"}},
}

// servesSecrets reports whether a web server serves a folder of keys, a home directory or the
// root.
func servesSecrets(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	folder := servedFolder(v)
	here := folder.Text == "."
	if folder.Text == "" || here && v.Cwd == "" {
		return act.Word{}, false
	}
	c := e.ClassOf(folder, v.Cwd)
	if here {
		c |= e.ClassOf(act.Word{Text: v.Cwd}, "")
	}
	return folder, c&(paths.IsCredential|paths.IsHome|paths.IsRoot) != 0
}

// servedFolder returns the folder that a web server serves, or the zero Word.
func servedFolder(v *act.Invocation) act.Word {
	server, ok := servers[serverName(v)]
	if !ok || server.by != "" && !v.Has(server.by) && !slices.ContainsFunc(v.Argv, func(w act.Word) bool { return w.Text == server.by }) {
		return act.Word{}
	}
	folder := act.Word{Text: "."}
	if server.last && len(v.Operands) > 0 {
		folder = v.Operands[len(v.Operands)-1]
	}
	for _, n := range server.folders {
		if w, ok := v.Value(n); ok {
			folder = w
		} else if w, ok := act.WordAfter(v, n); ok {
			folder = w
		}
	}
	return folder
}

// serverName returns the program that serves: the program that npx runs, Python with the module of
// a web server, or the program itself.
func serverName(v *act.Invocation) string {
	switch {
	case servers[v.Exe].runs:
		return scan.Base(v.Operand(0))
	case strings.HasPrefix(v.Exe, "py"):
		if !valueIs(v, "http.server", "-m") && !valueIs(v, "SimpleHTTPServer", "-m") {
			return ""
		}
		return "python"
	}
	return v.Exe
}

// valueIs reports whether one of the named options has this value.
func valueIs(v *act.Invocation, value string, names ...string) bool {
	w, ok := v.Value(names...)
	return ok && w.Text == value
}

// namesOnly reports whether a program shows only the names of variables in a file, not their
// values.
func namesOnly(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	program, only := v.Operand(0), false
	switch v.Exe {
	case "cut":
		only = valueIs(v, "=", "-d", "--delimiter") && valueIs(v, "1", "-f", "--fields")
	case "sed":
		only = strings.HasPrefix(program, "s/=.*/") && scan.HasAnySuffix(strings.TrimRight(program, "gp"), "//", "/=/", "***/")
	case "awk", "gawk", "mawk":
		only = valueIs(v, "=", "-F", "--field-separator") && strings.Contains(program, "print $1") && strings.Count(program, "$") == 1
	case "grep", "egrep", "rg":
		pattern := strings.TrimSuffix(strings.Replace(program, "[^=]", "[]", 1), "=") // the pattern matches anything but "=", and may have "=" at the end
		only = v.Has("-o") && strings.HasPrefix(pattern, "^[") && !strings.ContainsAny(pattern, ".=")
	}
	return act.Word{}, only
}

func secretOperand(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool { return hosts.SecretName(w.Text) })
}

var huntNames = []string{"id_rsa", "id_ed25519", "id_dsa", ".pem", ".env", "credentials", "wallet.dat", ".aws", ".ssh", ".netrc", ".pgpass", "shadow", "keystore", "kubeconfig", ".kdbx", ".npmrc", "private_key", "secrets", ".key", ".p12", ".pfx", ".jks"}

func huntName(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	broad := len(v.Argv) > 1 && e.ClassOf(v.Argv[1], v.Cwd)&(paths.IsRoot|paths.IsHome|paths.IsSystem|paths.IsOutside) != 0 || e.In("machine-searchers", v.Exe)
	if !broad {
		return act.Word{}, false
	}
	for _, w := range v.Argv[1:] {
		for _, n := range huntNames {
			if t := strings.Trim(w.Text, "*"); t == n || strings.HasSuffix(t, "/"+n) || t == "."+n {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// huntPatterns are texts that people search for to find credentials.
var huntPatterns = []string{"private key", "begin rsa", "begin openssh", "akia", "aws_secret", "api_key", "apikey", "secret_key", "password", "passwd", "token", "mnemonic", "secret", "credential"}

func huntPattern(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool {
		l := strings.ToLower(w.Text)
		return !strings.HasPrefix(l, "/") && scan.HasAny(l, huntPatterns...)
	})
}

// remoteOperand reports whether an operand is on another machine or in a bucket: host:path, s3://,
// gs:// and similar.
func remoteOperand(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(it.Inv.Operands, remote)
}

func remote(w act.Word) bool {
	return strings.IndexByte(w.Text, ':') > 1 && !strings.HasPrefix(w.Text, "/") && !strings.HasPrefix(w.Text, ".") && !strings.HasPrefix(w.Text, "file:")
}

// lastOutside reports whether the last operand is on another machine, in a bucket, or in storage
// that is configured in place (:webdav,url=…:in of rclone). A service on this machine does not
// count. An unknown operand counts, unless one of the operands is remote.
func lastOutside(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	list := targets(it)
	if len(list) == 0 {
		return act.Word{}, false
	}
	last := list[len(list)-1]
	if strings.IndexByte(last.Text, scan.Hole) == 0 && strings.IndexByte(last.Text, ':') < 0 {
		return last, !slices.ContainsFunc(list, remote)
	}
	_, host, _, ok := hosts.Split(last.Text)
	return last, !(ok && hosts.LocalHost(host)) && (remote(last) || strings.HasPrefix(last.Text, ":"))
}

func literalSecret(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Exe == "sshpass" {
		w, ok := act.WordAfter(v, "-p")
		return w, ok
	}
	for _, w := range v.Argv[1:] {
		if !w.Known() || len(w.Text) < 12 {
			continue
		}
		for _, s := range act.SecretsIn(w.Text) {
			if t := w.Text[s.Start:s.End]; act.SecretWord(t) || strings.Contains(w.Text, "earer "+t) {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// tokenHome maps tokens, by their prefix or their variable, to the service that they belong to.
var tokenHome = []struct{ prefix, variable, host string }{
	{"ghp_", "GITHUB_TOKEN", "github"}, {"gho_", "GH_TOKEN", "github"}, {"github_pat_", "GITHUB_PAT", "github"}, {"ghs_", "GITHUB_API_TOKEN", "github"},
	{"glpat-", "GITLAB_TOKEN", "gitlab"}, {"sk-ant-", "ANTHROPIC_API_KEY", "anthropic"}, {"sk-proj-", "OPENAI_API_KEY", "openai"},
	{"AKIA", "AWS_SECRET_ACCESS_KEY", "amazonaws"}, {"xoxb-", "SLACK_BOT_TOKEN", "slack"}, {"xoxp-", "SLACK_TOKEN", "slack"},
	{"sk_live_", "STRIPE_SECRET_KEY", "stripe"}, {"npm_", "NPM_TOKEN", "npm"}, {"AIza", "GOOGLE_API_KEY", "google"}, {"hf_", "HF_TOKEN", "huggingface"},
	{"dop_v1_", "DIGITALOCEAN_TOKEN", "digitalocean"}, {"SG.", "SENDGRID_API_KEY", "sendgrid"},
	{"gsk_", "GROQ_API_KEY", "groq"}, {"xai-", "XAI_API_KEY", "x"}, {"sk-or-", "OPENROUTER_API_KEY", "openrouter"}, {"r8_", "REPLICATE_API_TOKEN", "replicate"}, {"pplx-", "PERPLEXITY_API_KEY", "perplexity"},
	{"AIza", "GEMINI_API_KEY", "google"}, {"lin_api_", "LINEAR_API_KEY", "linear"}, {"ntn_", "NOTION_TOKEN", "notion"}, {"figd_", "FIGMA_TOKEN", "figma"}, {"dckr_pat_", "DOCKERHUB_TOKEN", "docker"},
}

func tokenHost(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	named := append(namedHosts(it), detours(it.Inv)...)
	if len(named) == 0 {
		return act.Word{}, false
	}
	return first(append(arguments(it), it.Inv.Stdin.Word), func(w act.Word) bool { return foreignToken(w, named) })
}

// namedHosts returns the hosts in the words of an invocation.
func namedHosts(it *act.Item) (named []string) {
	for _, w := range arguments(it) {
		_, h, _, ok := hosts.Split(w.Text)
		if !ok {
			h, ok = hosts.LooksHost(w.Text)
		}
		if ok {
			named = append(named, h)
		}
	}
	return named
}

// foreignToken reports whether a word contains a token of one service, and one of the hosts
// belongs to another.
func foreignToken(w act.Word, named []string) bool {
	for _, t := range tokenHome {
		mine := w.Var == t.variable || strings.Contains(w.Text, t.prefix) && slices.ContainsFunc(act.SecretsIn(w.Text), func(s act.Span) bool { return strings.Contains(w.Text[s.Start:s.End], t.prefix) })
		if mine && slices.ContainsFunc(named, func(h string) bool { return !hosts.OfService(h, t.host) && !hosts.LocalHost(h) }) {
			return true
		}
	}
	return false
}

// secretIn reports whether the value of one of these options contains a variable with a
// credential.
func secretIn(_ *interp.Env, it *act.Item, names []string) (act.Word, bool) {
	for _, name := range names {
		for _, w := range it.Inv.Values(name) {
			if hosts.SecretName(w.Var) {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// detours returns the hosts to which a request is redirected: by options of curl, or by the
// variables for a proxy.
func detours(v *act.Invocation) (out []string) {
	for _, w := range append(v.Values("--connect-to"), v.Values("--resolve")...) {
		if parts := strings.Split(w.Text, ":"); len(parts) > 2 && parts[2] != "" {
			out = append(out, parts[2])
		}
	}
	for _, a := range v.Env {
		if _, h, _, ok := hosts.Split(a.Value.Text); ok && strings.HasSuffix(strings.ToLower(a.Name), "_proxy") {
			out = append(out, h)
		}
	}
	return out
}

// sendsInput reports whether the program sends its standard input over the network.
func sendsInput(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	switch v.Exe {
	case "curl", "wget":
		return uploads(e, it, []string{"stdin"})
	case "aws", "gsutil", "gcloud", "az", "mc", "s3cmd":
		return act.Word{}, v.Has("-") && !slices.ContainsFunc(v.Operands, func(w act.Word) bool { return w.Text == "login" })
	case "scp", "sftp", "rsync", "rclone":
		return act.Word{}, v.Has("rcat")
	case "ssh", "mosh":
		return act.Word{}, !v.Has("-n") && !v.Has("-f") // these options disconnect the input
	}
	return act.Word{}, !hosts.Local(v)
}

// fedBy reports whether the unknown input was made by one of the programs, or is a file.
func fedBy(e *interp.Env, it *act.Item, names []string) (act.Word, bool) {
	in := it.Inv.Stdin
	names, err := e.Names(names)
	return in.Word, err == nil && !in.Known && in.Word.Text == "" && slices.Contains(names, in.Via)
}

func sentFile(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for i := range it.Inv.Opts {
		w, ok := bodyFile(it.Inv, &it.Inv.Opts[i])
		if !ok {
			continue
		}
		if f, own := e.Files[e.Key(it.Inv.Cwd, w.Text)]; f.Taint&fromSecrets != 0 || !own && e.Within(it.Inv.Cwd, w) != 0 {
			return w, true
		}
		if c := e.ClassOf(w, it.Inv.Cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 || c&paths.IsAccounts != 0 {
			return w, true
		}
	}
	return act.Word{}, false
}

// bodyFile returns the file that an option for the body of a request names.
func bodyFile(v *act.Invocation, o *act.Option) (act.Word, bool) {
	if !o.Given || !slices.Contains(hosts.BodyOptions, o.Name) {
		return act.Word{}, false
	}
	w := o.Value
	if j := strings.LastIndexAny(w.Text, "@<"); j >= 0 {
		w = w.Tail(j + 1)
		w.Text, _, _ = strings.Cut(w.Text, ";")
	} else if o.Name != "-T" && !strings.HasSuffix(o.Name, "-file") {
		return w, false
	}
	if fd, ok := act.Descriptor(w.Text); ok {
		if f, ok := v.Fds[fd]; ok && f.Op == "<" {
			w = f.File
		}
	}
	return w, true
}

// secretInURL reports whether a URL contains a variable with a credential, or such a variable is
// in the body of a request to a host that collects requests.
func secretInURL(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if w, ok := first(arguments(it), inURL); ok {
		return w, true
	}
	if _, ok := first(it.Inv.Operands, toPasteHost); !ok {
		return act.Word{}, false
	}
	for i := range it.Inv.Opts {
		o := &it.Inv.Opts[i]
		if slices.Contains(hosts.BodyOptions, o.Name) && hosts.SecretName(o.Value.Var) && !strings.Contains(strings.ToLower(o.Value.Text), "client_") && !strings.Contains(o.Value.Text, "grant_type") {
			return o.Value, true
		}
	}
	return act.Word{}, false
}

// inURL reports whether a URL contains a credential, and the service is not one that expects it
// there.
func inURL(w act.Word) bool {
	_, host, rest, ok := hosts.Split(w.Text)
	return ok && hosts.SecretName(w.Var) && strings.IndexByte(rest, scan.Hole) >= 0 && !hosts.LocalHost(host) && !scan.HasAny(host, "telegram", "slack", "discord")
}

// toPasteHost reports whether a word is a URL of a host that publishes or collects requests.
func toPasteHost(w act.Word) bool {
	_, host, _, ok := hosts.Split(w.Text)
	return ok && hosts.PasteHost(host)
}

func anySecret(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if (it.Inv.Stdin.Taint|it.Inv.Stdin.Word.Taint)&fromSecrets != 0 {
		return it.Inv.Stdin.Word, true
	}
	return first(it.Inv.Argv[1:], func(w act.Word) bool {
		c := e.ClassOf(w, it.Inv.Cwd)
		return w.Taint&fromSecrets != 0 || c&paths.IsCredential != 0 && c&paths.IsPublic == 0 && !strings.ContainsAny(w.Text, " \n")
	})
}

// isDevTCP reports whether the shell opens a connection for a file of this name.
func isDevTCP(w act.Word) bool {
	return strings.HasPrefix(w.Text, "/dev/tcp/") || strings.HasPrefix(w.Text, "/dev/udp/")
}

func devTCP(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return first(it.Inv.Operands, isDevTCP)
}

func devTCPRedir(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for _, r := range it.Inv.Redirs {
		if isDevTCP(r.File) {
			return r.File, true
		}
	}
	return act.Word{}, strings.Contains(it.Src.Text, "/dev/tcp/") && it.Inv.Has("-i")
}

// stdinFifo reports whether the text creates a named pipe and runs a network client, so that a
// shell may read what the client writes into the pipe.
func stdinFifo(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	t := it.Src.Text
	return act.Word{}, strings.Contains(t, "mkfifo") && scan.HasAny(t, "nc ", "ncat ", "openssl s_client", "telnet ")
}

func listens(v *act.Invocation) bool { return v.Has("-l") || v.Has("--listen") || v.Has("-L") }

// socatFile reports whether socat sends a file with credentials to a network address.
func socatFile(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	net := false
	var file act.Word
	for _, w := range it.Inv.Operands {
		kind, rest, _ := strings.Cut(w.Text, ":")
		kind = strings.ToUpper(kind)
		switch {
		case strings.HasPrefix(kind, "TCP"), strings.HasPrefix(kind, "UDP"), strings.HasPrefix(kind, "OPENSSL"):
			net = true
		case kind == "FD":
			net = net || isDevTCP(it.Inv.Fds[rest].File)
		case slices.ContainsFunc(socatReads(kind, rest, w.Text), func(name string) bool { return secretHere(e, it, name) }):
			file = w
		}
	}
	return file, net && file.Text != ""
}

// socatReads returns the files that an address of socat may read: the words of the command that it
// runs, or the file that it names.
func socatReads(kind, rest, whole string) []string {
	switch kind {
	case "EXEC", "SYSTEM":
		return strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" '\"\\,;|", r) })
	case "OPEN", "FILE", "GOPEN", "PIPE", "CREATE":
	default:
		if rest != "" || !strings.Contains(whole, "/") {
			return nil
		}
	}
	name, _, _ := strings.Cut(strings.Trim(cmp.Or(rest, whole), "'\""), ",")
	return []string{name}
}

// secretHere reports whether a file contains credentials, or the command wrote secrets into it.
func secretHere(e *interp.Env, it *act.Item, name string) bool {
	return e.Files[e.Key(it.Inv.Cwd, name)].Taint&fromSecrets != 0 || e.Credential(act.Word{Text: name}, it.Inv.Cwd)
}

// password reports whether an option contains a password. It does not return the word, because
// that would show the password.
func password(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	words := make([]string, len(it.Inv.Argv))
	for i, w := range it.Inv.Argv {
		words[i] = w.Text
	}
	words[0] = it.Inv.Exe
	options := act.OptionsOfPasswords(words)
	for i := 1; i < len(words) && options != nil; i++ {
		if _, at := act.PasswordAt(options, words, i); at >= 0 {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

// fromSecrets are the origins that count as secret: credentials, the whole environment, or a dump
// of a store.
const fromSecrets = act.FromSecret | act.FromDump | act.FromEnviron
