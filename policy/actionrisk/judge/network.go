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

// addressTests are the properties of an address that rules match, as functions of the whole word,
// its scheme, its host and the rest.
var addressTests = map[string]func(word, scheme, host, rest string) bool{
	"any":         func(_, _, _, _ string) bool { return true },
	"datastore":   func(word, _, _, _ string) bool { return hosts.DatastorePort(word) },
	"delete-path": func(_, _, _, rest string) bool { return hosts.DeletePath(rest) },
	"metadata":    func(_, _, host, _ string) bool { return hosts.MetadataHost(host) },
	"paste":       func(_, _, host, _ string) bool { return hosts.PasteHost(host) },
	"insecure":    func(_, scheme, host, _ string) bool { return scheme == "http" && !hosts.LocalHost(host) },
	"foreign":     func(_, _, host, _ string) bool { return !hosts.LocalHost(host) },
	"program":     func(_, _, host, _ string) bool { return !hosts.LocalHost(host) && !hosts.ModuleHost(host) },
	"metadata-credentials": func(_, _, host, rest string) bool {
		return hosts.MetadataHost(host) && scan.HasAny(rest, "credentials", "token", "identity")
	},
}

func urlIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for _, a := range args {
		if a == "local" {
			return act.Word{}, hosts.Local(it.Inv)
		}
		for _, w := range it.Inv.Argv[min(1, len(it.Inv.Argv)):] {
			scheme, host, rest, ok := hosts.Split(w.Text)
			if !ok {
				if host, ok = hosts.LooksHost(w.Text); !ok {
					continue
				}
				_, rest, _ = strings.Cut(w.Text, "/")
			}
			if test := addressTests[a]; test != nil && test(w.Text, scheme, host, rest) {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

// programURL reports whether the program that an interpreter runs, which is the first operand
// after the subcommand, is a URL of another machine.
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

// bodyText returns the word of a request body that contains a GraphQL mutation which deletes data,
// and false if there is none.
func bodyText(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return option(it.Inv, func(o *act.Option) bool {
		return strings.Contains(o.Value.Text, "mutation") && scan.HasAny(o.Value.Text, "delete", "destroy", "Delete")
	})
}

// methodIs reports whether the HTTP client uses one of these methods.
func methodIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if it.Inv.Method == "" {
		it.Inv.Method = cmp.Or(hosts.OverriddenMethod(it.Inv), hosts.Method(it.Inv))
	}
	return act.Word{}, slices.Contains(args, it.Inv.Method)
}

// uploads reports whether the invocation sends a body. "stdin" requires that the body is its
// input, "file" that it is a file, "credential" that it is a file with a credential.
func uploads(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if len(args) == 0 {
		return act.Word{}, hosts.SendsBody(it.Inv)
	}
	return option(it.Inv, func(o *act.Option) bool {
		return slices.Contains(hosts.BodyOptions, o.Name) && slices.ContainsFunc(args, func(kind string) bool { return bodyIs(e, it.Inv, o, kind) })
	})
}

// bodyIs reports whether the body in an option is of the given kind; see uploads.
func bodyIs(e *interp.Env, v *act.Invocation, o *act.Option, kind string) bool {
	file := o.Name == "-T" || strings.HasSuffix(o.Name, "-file")
	switch kind {
	case "stdin":
		return isInput(o.Value.Text)
	case "file":
		return file || strings.Contains(o.Value.Text, "@")
	case "credential":
		return file && e.ClassOf(o.Value, v.Cwd)&paths.IsCredential != 0
	}
	return false
}

// isInput reports whether the value of a body option means the program's standard input.
func isInput(t string) bool {
	return slices.Contains([]string{"-", ".", "/dev/stdin"}, t) || strings.HasPrefix(t, "@-") || scan.HasAnySuffix(t, "=@-", "=<-") || strings.Contains(t, "@/dev/stdin")
}

// varIs reports whether a word contains an unknown variable. With "secret" the variable's name
// must mean a credential.
func varIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool {
		return w.Var != "" && (slices.Contains(args, "any") || slices.Contains(args, "secret") && hosts.SecretName(w.Var))
	})
}

// mountIs reports whether a container mounts a folder of these classes from the host, or with
// "docker-socket" Docker's socket.
func mountIs(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	for i := range it.Inv.Opts {
		o := &it.Inv.Opts[i]
		if !o.Given || o.Name != "-v" && o.Name != "--volume" && o.Name != "--mount" {
			continue
		}
		src := mounted(o)
		if strings.HasSuffix(src, "docker.sock") && slices.Contains(args, "docker-socket") {
			return o.Value, true
		}
		c := e.ClassOf(act.Word{Text: src}, it.Inv.Cwd)
		if src == "/etc/localtime" || src == "/etc/timezone" || strings.HasPrefix(src, "/usr/share") {
			c &^= paths.IsSystem
		}
		if c&classes(args) != 0 {
			return o.Value, true
		}
	}
	return act.Word{}, false
}

// mounted returns the host's folder in "/:/host" or "type=bind,source=/,target=/host".
func mounted(o *act.Option) string {
	src, _, _ := strings.Cut(o.Value.Text, ":")
	if o.Name == "--mount" {
		for _, kv := range strings.Split(o.Value.Text, ",") {
			if k, val, _ := strings.Cut(kv, "="); k == "source" || k == "src" {
				src = val
			}
		}
	}
	return src
}

// findNames are the tests of find that select files by name. findPicks are those that select files
// by other properties.
var (
	findNames = scan.SetOf("-name -iname -path -ipath -regex -wholename -iregex")
	findPicks = scan.SetOf("-mtime -mmin -atime -ctime -size -newer -empty -xtype -perm -inum -cmin -older")
)

// findFilter reports whether find selects files ("filtered") or not ("none").
func findFilter(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	kind, argv := "none", it.Inv.Argv
	for i := 1; i+1 < len(argv); i++ {
		if before := argv[i-1].Text; before == "!" || before == "-not" {
			continue // a negated test selects almost everything
		}
		if t := argv[i].Text; findPicks.Has(t) || findNames.Has(t) && strings.Trim(argv[i+1].Text, "*.") != "" {
			kind = "filtered"
		}
	}
	if it.Inv.Has("-empty") {
		kind = "filtered"
	}
	return act.Word{}, slices.Contains(args, kind)
}

// findJunk reports whether find selects only files that a build or an editor leaves behind.
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
