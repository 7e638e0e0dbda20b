package judge

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// The destination of a secret decides whether sending it is harmless: the service that issued it,
// in a header for credentials, or another host.

// authenticates reports whether a request uses its secrets only to sign in: it only reads, it uses
// TLS, and each secret is in a header or option for credentials and belongs to the host.
func authenticates(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if hosts.SendsBody(v) || !slices.Contains([]string{"GET", "HEAD"}, hosts.Method(v)) || len(v.Operands) == 0 {
		return act.Word{}, false
	}
	var address, carried act.Word
	for _, w := range v.Argv[1:] {
		scheme, host, _, ok := hosts.Split(w.Text)
		printed := w.Taint&fromSecrets != 0
		secret := printed || hosts.SecretName(w.Var)
		switch {
		case ok && (secret || scheme != "https" || hosts.PasteHost(host) || strings.IndexByte(host, scan.Hole) >= 0):
			return act.Word{}, false
		case ok:
			address = w
		case secret && !credentialHeader(w.Text) && !isUser(v, w):
			return act.Word{}, false
		case printed:
			carried = w
		}
	}
	if address.Text == "" || carried.Text == "" {
		return act.Word{}, false
	}
	return carried, belongs(carried.Var, address.Text)
}

// credentialHeader reports whether a text "Name: value" is a header for a credential.
func credentialHeader(text string) bool {
	name, _, ok := strings.Cut(text, ":")
	return ok && !strings.ContainsAny(name, " /@=") && hosts.SecretName(name)
}

// isUser reports whether the word is the value of an option for a password or token.
func isUser(v *act.Invocation, w act.Word) bool {
	value, ok := v.Value("-u", "--user", "--oauth2-bearer", "-a", "--auth")
	return ok && value.Span == w.Span
}

// issuers maps a program that prints a credential to the service that accepts it.
var issuers = map[string]string{"gh": "github", "glab": "gitlab", "gcloud": "google", "aws": "amazonaws", "az": "azure", "heroku": "heroku",
	"flyctl": "fly", "fly": "fly", "doctl": "digitalocean", "npm": "npm", "vercel": "vercel", "netlify": "netlify"}

// belongs reports whether a secret belongs to the host of an address. variable is the variable
// with the secret, or "$(program)" for a secret that a program printed. A secret of a program in
// issuers belongs only to its service. Any other secret belongs to a host whose name has a part of
// the variable's name, and to every API.
func belongs(variable, address string) bool {
	_, host, rest, _ := hosts.Split(address)
	if program, ok := strings.CutPrefix(variable, "$("); ok {
		if issuer := issuers[strings.TrimSuffix(program, ")")]; issuer != "" {
			return hosts.OfService(host, issuer)
		}
	}
	return hosts.Named(variable, host) || programInterface(host, rest)
}

// programInterface reports whether a host or path is that of an API.
func programInterface(host, rest string) bool {
	if slices.Contains(strings.Split(host, "."), "api") || strings.HasPrefix(host, "api-") {
		return true
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "api" || part == "graphql" || len(part) > 1 && part[0] == 'v' && part[1] >= '0' && part[1] <= '9' {
			return true
		}
	}
	return false
}

// sentSecret reports whether a variable with a credential is sent in the body of a request. It
// does not count a service that the variable is named after, or a request to sign in.
func sentSecret(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	var address string
	for _, w := range v.Operands {
		if _, _, _, ok := hosts.Split(w.Text); ok {
			address = w.Text
		} else if host, ok := hosts.LooksHost(w.Text); ok && address == "" {
			_, rest, _ := strings.Cut(w.Text, "/")
			address = "https://" + host + "/" + rest
		}
	}
	if address == "" {
		return act.Word{}, false
	}
	_, host, rest, _ := hosts.Split(address)
	return option(v, func(o *act.Option) bool {
		if !slices.Contains(hosts.BodyOptions, o.Name) || !hosts.SecretName(o.Value.Var) || strings.HasPrefix(o.Value.Text, "@") {
			return false
		}
		text := strings.ToLower(o.Value.Text)
		signsIn := strings.ContainsAny(text, "=:") && (scan.HasAny(strings.ToLower(rest), "login", "token", "auth", "oauth", "session", "signin", "sign-in") || scan.HasAny(text, "grant_type", "client_"))
		return !signsIn && !hosts.Named(o.Value.Var, host)
	})
}

// syncedHere reports whether both folders of a synchronization are in the project or temporary.
func syncedHere(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	list := targets(it)
	if len(list) != 2 {
		return act.Word{}, false
	}
	from, to := e.ClassOf(list[0], it.Inv.Cwd), e.ClassOf(list[1], it.Inv.Cwd)
	const here = paths.IsRelative | paths.IsSource | paths.IsRebuildable
	const elsewhere = paths.IsOutside | paths.IsDynamic | paths.IsVCS | paths.IsHome | paths.IsRoot | paths.IsSystem | paths.IsTempRoot
	return list[1], !remote(list[0]) && !remote(list[1]) && from&(here|paths.IsCwd) != 0 && from&elsewhere == 0 && to&(here|paths.IsTemp) != 0 && to&(elsewhere|paths.IsCwd) == 0
}

// homeFile reports whether an operand is one of these paths, relative to a home directory.
// "**/name" matches in any folder.
func homeFile(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(targets(it), func(w act.Word) bool {
		rest, ok := belowHome(w.Text)
		return slices.ContainsFunc(args, func(p string) bool {
			if name, anywhere := strings.CutPrefix(p, "**/"); anywhere {
				return paths.GlobMatch(name, scan.Base(w.Text))
			}
			if !ok {
				return false
			}
			if folder, ok := strings.CutSuffix(p, "/"); ok {
				return strings.HasPrefix(rest, folder+"/") && len(rest) > len(p)
			}
			return strings.Count(p, "/") == strings.Count(rest, "/") && paths.GlobMatch(p, rest)
		})
	})
}

// belowHome returns a path relative to its home directory.
func belowHome(p string) (string, bool) {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return rest, true
	}
	if rest, ok := strings.CutPrefix(p, "/root/"); ok {
		return rest, true
	}
	for _, homes := range [...]string{"/home/", "/Users/"} {
		if rest, ok := strings.CutPrefix(p, homes); ok {
			_, rest, ok = strings.Cut(rest, "/")
			return rest, ok
		}
	}
	return "", false
}

// inProduction reports whether the words, the host or the environment of the invocation name
// production.
func inProduction(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	production, _ := wordsEnvironment(e, it.Inv)
	for _, w := range it.Inv.Operands {
		if host, _, ok := strings.Cut(w.Text, ":"); ok && remote(w) {
			p, _ := facts.Environments(host)
			production = production || p
		}
	}
	return act.Word{}, production
}

// remoteAddress reports whether git push names an address or a remote that the command added. With
// the argument "given" it accepts only an address on another machine without a variable, and
// without "given" only the others.
func remoteAddress(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if len(it.Inv.Operands) < 2 {
		return act.Word{}, false
	}
	w := it.Inv.Operands[1]
	_, host, _, ok := hosts.Split(w.Text)
	address := ok || strings.Contains(w.Text, "://") || strings.Contains(w.Text, "@") && act.RemotePath(w.Text)
	given := address && w.Var == "" && !hosts.LocalHost(host) && !strings.HasPrefix(w.Text, "file:")
	return w, given == slices.Contains(args, "given") && (address || strings.Contains(e.Action.Command, "git remote add "+w.Text+" "))
}

// testDatabase reports whether the deleted database is one for tests, by its name, and is on this
// machine or on an unnamed host.
func testDatabase(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	name, place := it.Target, strings.Fields(it.Words)
	if it.Inv != nil {
		name, place = it.Inv.Operand(len(it.Inv.Operands)-1), nil
		for _, w := range it.Inv.Argv {
			place = append(place, w.Text)
		}
	}
	production, _ := facts.Environments(name + " " + strings.Join(place, " "))
	elsewhere := slices.ContainsFunc(place, func(w string) bool { h, ok := hosts.LooksHost(w); return ok && !hosts.LocalHost(h) })
	return act.Word{}, !production && !elsewhere && slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_-.`\"[] ", r) }), func(w string) bool {
		return slices.Contains([]string{"test", "tests", "testing", "e2e"}, strings.TrimRight(w, "0123456789"))
	})
}

// answeredYes reports whether a pipe answers the program's questions with yes.
func answeredYes(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	in := it.Inv.Stdin
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(in.Word.Text)), "\n")
	return act.Word{}, in.Via == "yes" || in.Known && (first == "y" || first == "yes")
}
