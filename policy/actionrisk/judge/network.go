package judge

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
)

func urlIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for _, a := range args {
		if a == "local" {
			return act.Word{}, hosts.Local(it.Inv)
		}
		for i := 1; i < len(it.Inv.Argv); i++ {
			w := it.Inv.Argv[i]
			scheme, host, rest, ok := hosts.Split(w.Text)
			if !ok {
				if host, ok = hosts.LooksHost(w.Text); !ok {
					continue
				}
				_, rest, _ = strings.Cut(w.Text, "/")
			}
			switch {
			case a == "datastore" && hosts.DatastorePort(w.Text), a == "delete-path" && hosts.DeletePath(rest),
				a == "any", a == "metadata" && hosts.MetadataHost(host), a == "paste" && hosts.PasteHost(host),
				a == "insecure" && scheme == "http" && !hosts.LocalHost(host),
				a == "foreign" && !hosts.LocalHost(host),
				a == "program" && ok && !hosts.LocalHost(host) && !hosts.ModuleHost(host),
				a == "metadata-credentials" && hosts.MetadataHost(host) && (strings.Contains(rest, "credentials") || strings.Contains(rest, "token") || strings.Contains(rest, "identity")):
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// programURL: the first operand that is no subcommand, the program that an interpreter
// is to run, is an address of another machine.
func programURL(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for _, w := range it.Inv.Operands {
		switch w.Text {
		case "run", "script", "serve", "tool", "x":
			continue
		}
		scheme, host, _, ok := hosts.Split(w.Text)
		return w, ok && strings.HasPrefix(scheme, "http") && !hosts.LocalHost(host) && !hosts.ModuleHost(host)
	}
	return act.Word{}, false
}

// bodyText: a GraphQL mutation that deletes.
func bodyText(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for i := range it.Inv.Opts {
		o := &it.Inv.Opts[i]
		if o.Given && strings.Contains(o.Value.Text, "mutation") && (strings.Contains(o.Value.Text, "delete") || strings.Contains(o.Value.Text, "destroy") || strings.Contains(o.Value.Text, "Delete")) {
			return o.Value, true
		}
	}
	return act.Word{}, false
}

// methodIs: the HTTP method an HTTP client uses.
func methodIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	m := hosts.Method(it.Inv)
	if other := hosts.OverriddenMethod(it.Inv); other != "" {
		m = other
	}
	for _, a := range args {
		if a == m {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

// uploads: it sends a body; with "stdin" the body is its input, with "file" a file.
func uploads(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	v := it.Inv
	if len(args) == 0 {
		return act.Word{}, hosts.SendsBody(v)
	}
	for i := range v.Opts {
		o := &v.Opts[i]
		for _, name := range hosts.BodyOptions {
			if o.Name != name || !o.Given {
				continue
			}
			t := o.Value.Text
			for _, a := range args {
				if a == "stdin" && (t == "@-" || t == "-" || strings.HasSuffix(t, "=@-") || strings.HasSuffix(t, "=<-") || t == "." || strings.HasPrefix(t, "@-") || strings.Contains(t, "@/dev/stdin") || t == "/dev/stdin") ||
					a == "file" && (strings.Contains(t, "@") || name == "-T" || strings.HasSuffix(name, "-file")) ||
					a == "credential" && e.ClassOf(o.Value, v.Cwd)&paths.IsCredential != 0 && (name == "-T" || strings.HasSuffix(name, "-file")) {
					return o.Value, true
				}
			}
		}
	}
	return act.Word{}, false
}

// varIs: a word holds an unknown variable; "secret" by its name a credential.
func varIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for i := 1; i < len(it.Inv.Argv); i++ {
		w := it.Inv.Argv[i]
		if w.Var == "" {
			continue
		}
		for _, a := range args {
			if a == "any" || a == "secret" && hosts.SecretName(w.Var) {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// mountIs: a bind mount of the host's root, system folders or Docker's socket.
func mountIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for i := range it.Inv.Opts {
		o := &it.Inv.Opts[i]
		if !o.Given || o.Name != "-v" && o.Name != "--volume" && o.Name != "--mount" {
			continue
		}
		src, _, _ := strings.Cut(o.Value.Text, ":")
		if o.Name == "--mount" {
			for _, kv := range strings.Split(o.Value.Text, ",") {
				if k, val, _ := strings.Cut(kv, "="); k == "source" || k == "src" {
					src = val
				}
			}
		}
		c := e.ClassOf(act.Word{Text: src}, it.Inv.Cwd)
		for _, a := range args {
			if a == "root" && c&(paths.IsRoot) != 0 || a == "system" && c&paths.IsSystem != 0 && src != "/etc/localtime" && src != "/etc/timezone" && !strings.HasPrefix(src, "/usr/share") ||
				a == "docker-socket" && strings.HasSuffix(src, "docker.sock") || a == "home" && c&paths.IsHome != 0 || a == "credential" && c&paths.IsCredential != 0 {
				return o.Value, true
			}
		}
	}
	return act.Word{}, false
}

// findFilter: how narrow a find command is: none, filtered.
func findFilter(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	kind := "none"
	for i := 1; i+1 < len(it.Inv.Argv); i++ {
		if before := it.Inv.Argv[i-1].Text; before == "!" || before == "-not" {
			continue // all but one
		}
		switch it.Inv.Argv[i].Text {
		case "-name", "-iname", "-path", "-ipath", "-regex", "-wholename", "-iregex":
			if strings.Trim(it.Inv.Argv[i+1].Text, "*.") != "" {
				kind = "filtered"
			}
		case "-mtime", "-mmin", "-atime", "-ctime", "-size", "-newer", "-empty", "-user", "-xtype", "-maxdepth", "-perm", "-inum", "-cmin", "-older":
			if kind == "none" && it.Inv.Argv[i].Text != "-maxdepth" && it.Inv.Argv[i].Text != "-user" {
				kind = "filtered"
			}
		}
	}
	if it.Inv.Has("-empty") {
		kind = "filtered"
	}
	for _, a := range args {
		if a == kind {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

// findJunk: it finds only files that a build or an editor leaves behind.
func findJunk(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	for i := 1; i+1 < len(it.Inv.Argv); i++ {
		switch it.Inv.Argv[i].Text {
		case "-name", "-iname":
			n := it.Inv.Argv[i+1].Text
			if paths.Rebuildable(n) || strings.HasSuffix(n, "~") || n == "*.log" || n == "*.orig" || n == "*.rej" || n == "*.bak" || n == "._*" || n == "Thumbs.db" {
				return it.Inv.Argv[i+1], true
			}
			return act.Word{}, false
		}
	}
	return act.Word{}, it.Inv.Has("-empty")
}
