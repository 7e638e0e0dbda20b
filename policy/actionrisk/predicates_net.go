package actionrisk

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// urlOf splits a URL or host operand into scheme, host and rest.
func urlOf(t string) (scheme, host, rest string, ok bool) {
	i := strings.Index(t, "://")
	if i < 0 {
		return "", "", "", false
	}
	scheme, t = strings.ToLower(t[:i]), t[i+3:]
	if j := strings.IndexAny(t, "/?#"); j >= 0 {
		t, rest = t[:j], t[j:]
	}
	if j := strings.LastIndexByte(t, '@'); j >= 0 {
		t = t[j+1:]
	}
	if strings.HasPrefix(t, "[") {
		host, _, _ = strings.Cut(t[1:], "]")
	} else {
		host, _, _ = strings.Cut(t, ":")
	}
	return scheme, strings.ToLower(strings.TrimSuffix(host, ".")), rest, true
}

func localHost(h string) bool {
	return h == "localhost" || h == "127.0.0.1" || h == "::1" || h == "0.0.0.0" || h == "host.docker.internal" ||
		strings.HasSuffix(h, ".localhost") || strings.HasSuffix(h, ".test") || strings.HasPrefix(h, "127.")
}

// looksHost: "localhost:3000/x", "example.org/path" without a scheme.
func looksHost(t string) (string, bool) {
	if name, rest, ok := strings.Cut(t, ":"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		port, _, path := strings.Cut(rest, "/")
		if port = strings.TrimLeft(port, "0123456789"); port == "" && name == "" {
			return "localhost", true // httpie's short form
		}
		if port == "" && path && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" { // es:9200/x, a name without a domain
			return name, true
		}
	}
	host, _, _ := strings.Cut(t, "/")
	host, _, _ = strings.Cut(host, ":")
	host, _, _ = strings.Cut(host, "?")
	if host != "localhost" && !topLevel[host[strings.LastIndexByte(host, '.')+1:]] && !numericHost(host) {
		return "", false
	}
	if host == "localhost" || strings.Count(host, ".") > 0 && strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == "" && !strings.HasPrefix(host, ".") {
		return strings.ToLower(host), true
	}
	return "", false
}

// topLevel are the last labels by which a bare word is taken for a host.
var topLevel = scan.SetOf("com org net io dev app co ai cloud edu gov info biz me us uk de fr eu ru cn in br jp nl se ch it es xyz site online top tech fun test example internal local corp lan localhost onion link page so gg to tv cc be at ca au pl ws pro zone store live wiki")

func numericHost(h string) bool {
	return strings.Count(h, ".") == 3 && strings.Trim(h, "0123456789.") == ""
}

// local: every host an HTTP client is pointed at is this machine.
func local(v *invocation) bool {
	n := 0
	for _, w := range v.operands {
		scheme, host, _, ok := urlOf(w.Text)
		if scheme == "file" {
			host = "localhost"
		}
		if !ok {
			host, ok = looksHost(w.Text)
		}
		if ok {
			if !localHost(host) {
				return false
			}
			n++
		}
	}
	return n > 0
}

func urlIs(e *engine, it *item, args []string) (Word, bool) {
	for _, a := range args {
		if a == "local" {
			return Word{}, local(it.inv)
		}
		for i := 1; i < len(it.inv.argv); i++ {
			w := it.inv.argv[i]
			scheme, host, rest, ok := urlOf(w.Text)
			if !ok {
				if host, ok = looksHost(w.Text); !ok {
					continue
				}
				_, rest, _ = strings.Cut(w.Text, "/")
			}
			switch {
			case a == "datastore" && datastorePort(w.Text), a == "delete-path" && deletePath(rest),
				a == "any", a == "metadata" && metadataHost(host), a == "paste" && pasteHost(host),
				a == "insecure" && scheme == "http" && !localHost(host),
				a == "foreign" && !localHost(host),
				a == "program" && ok && !localHost(host) && !moduleHost(host),
				a == "metadata-credentials" && metadataHost(host) && (strings.Contains(rest, "credentials") || strings.Contains(rest, "token") || strings.Contains(rest, "identity")):
				return w, true
			}
		}
	}
	return Word{}, false
}

// programURL: the first operand that is no subcommand, the program that an interpreter
// is to run, is an address of another machine.
func programURL(_ *engine, it *item, _ []string) (Word, bool) {
	for _, w := range it.inv.operands {
		switch w.Text {
		case "run", "script", "serve", "tool", "x":
			continue
		}
		scheme, host, _, ok := urlOf(w.Text)
		return w, ok && strings.HasPrefix(scheme, "http") && !localHost(host) && !moduleHost(host)
	}
	return Word{}, false
}

// datastorePort: the usual port of a database, a search engine, a gateway or a
// secret store with an HTTP interface.
func datastorePort(t string) bool {
	for _, p := range [...]string{":9200", ":7700", ":8001", ":8108", ":6333", ":5984", ":8123", ":8086", ":9090", ":2379", ":8500", ":8200", ":15672", ":8983", ":9000", ":8529", ":7474", ":2019", ":28017", ":8080/apis"} {
		if i := strings.Index(t, p); i >= 0 && (i+len(p) == len(t) || t[i+len(p)] == '/' || t[i+len(p)] == '?') {
			return true
		}
	}
	return false
}

// deletePath: a POST whose path is a verb that deletes.
func deletePath(rest string) bool {
	l := strings.ToLower(rest)
	l, _, _ = strings.Cut(l, "?")
	for _, p := range [...]string{"/dodelete", "_delete_by_query", "/delete-batch", "/delete_series", "/destroy", "/delete", "/purge", "/clean_tombstones", "/dowipeoutworkspace", "/_all", "/deleterange", "/deletemany", "/delete_all", "/delete-all", "/deleteall", "/truncate", "/wipe", "/collections/drop", "/databases/drop", "/partitions/drop", "/api/v1/reset", "/api/v2/reset", "/bulk-delete", "/bulk_delete", "/_bulk_delete", "/batchdelete"} {
		if strings.HasSuffix(l, p) {
			return true
		}
	}
	return false
}

// bodyText: a GraphQL mutation that deletes.
func bodyText(_ *engine, it *item, _ []string) (Word, bool) {
	for i := range it.inv.opts {
		o := &it.inv.opts[i]
		if o.given && strings.Contains(o.value.Text, "mutation") && (strings.Contains(o.value.Text, "delete") || strings.Contains(o.value.Text, "destroy") || strings.Contains(o.value.Text, "Delete")) {
			return o.value, true
		}
	}
	return Word{}, false
}

func metadataHost(h string) bool {
	h, _, _ = strings.Cut(h, string(scan.Hole))
	if n, ok := numberedHost(h); ok && n == 169<<24|254<<16|169<<8|254 || strings.HasSuffix(h, "::ffff:a9fe:a9fe") || strings.HasSuffix(h, "::ffff:169.254.169.254") || strings.HasPrefix(h, "169.254.169.254.") {
		return true
	}
	switch h {
	case "169.254.169.254", "metadata.google.internal", "169.254.170.2", "metadata", "100.100.100.200", "fd00:ec2::254", "0xa9fea9fe", "2852039166", "instance-data":
		return true
	}
	return false
}

// numberedHost is an address written in numbers of any base and any grouping:
// 0xa9fea9fe, 2852039166, 0251.0376.0251.0376, 169.16689662.
func numberedHost(h string) (uint32, bool) {
	if h == "" || h[0] < '0' || h[0] > '9' || len(h) > 48 {
		return 0, false
	}
	parts := strings.Split(h, ".")
	if len(parts) > 4 {
		return 0, false
	}
	var out uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32)
		last := i == len(parts)-1
		if err != nil || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return 0, false
		}
		if last {
			return uint32(out<<(8*(5-len(parts))) | n), true
		}
		out = out<<8 | n
	}
	return 0, false
}

func pasteHost(h string) bool {
	for _, p := range [...]string{"pastebin.com", "paste.rs", "transfer.sh", "0x0.st", "file.io", "ix.io", "termbin.com", "webhook.site", "requestbin.net", "ngrok.io", "ngrok-free.app", "pipedream.net", "oast.fun", "interact.sh", "burpcollaborator.net", "hastebin.com", "dpaste.org", "temp.sh", "catbox.moe", "requestcatcher.com"} {
		if h == p || strings.HasSuffix(h, "."+p) {
			return true
		}
	}
	return false
}

// methodIs: the HTTP method an HTTP client uses.
func methodIs(_ *engine, it *item, args []string) (Word, bool) {
	m := httpMethod(it.inv)
	if other := overriddenMethod(it.inv); other != "" {
		m = other
	}
	for _, a := range args {
		if a == m {
			return Word{}, true
		}
	}
	return Word{}, false
}

// overriddenMethod is the method that a header, a parameter or a member of the form
// puts in the place of the request's own, "" if none does.
func overriddenMethod(v *invocation) string {
	for _, w := range v.argv[min(1, len(v.argv)):] {
		text := strings.ToUpper(w.Text)
		for _, mark := range [...]string{"X-HTTP-METHOD-OVERRIDE", "X-HTTP-METHOD", "X-METHOD-OVERRIDE", "_METHOD", "X-HTTP-METHOD_OVERRIDE"} {
			before, rest, ok := strings.Cut(text, mark)
			if !ok || before != "" && scan.IsNameByte(before[len(before)-1]) { // payment_method is another word
				continue
			}
			rest = strings.TrimLeft(rest, "\"': =")
			for _, m := range [...]string{"DELETE", "PUT", "PATCH"} {
				if after, ok := strings.CutPrefix(rest, m); ok && (after == "" || !scan.IsNameByte(after[0])) {
					return m
				}
			}
		}
	}
	return ""
}

func httpMethod(v *invocation) string {
	if w, ok := v.value("-X", "--request", "--method", "-Method", "--http-method", "-m"); ok {
		return strings.ToUpper(w.Text)
	}
	switch v.exe {
	case "http", "https", "xh", "xhs", "httpie", "curlie", "restish":
		if len(v.operands) > 0 {
			switch m := strings.ToUpper(v.operands[0].Text); m {
			case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS":
				return m
			}
			for _, w := range v.operands[1:] {
				if strings.ContainsAny(w.Text, "=") && !strings.Contains(w.Text, "==") {
					return "POST"
				}
			}
		}
		return "GET"
	case "curl":
		if v.has("-I") || v.has("--head") {
			return "HEAD"
		}
		if v.has("-G") || v.has("--get") {
			return "GET"
		}
		if v.has("-T") || v.has("--upload-file") {
			return "PUT"
		}
		if sendsBody(v) {
			return "POST"
		}
	case "wget":
		if v.has("--post-data") || v.has("--post-file") || v.has("--body-data") {
			return "POST"
		}
	case "gh", "glab":
		if v.has("-f") || v.has("-F") || v.has("--field") || v.has("--raw-field") || v.has("--input") {
			return "POST"
		}
	}
	return "GET"
}

var bodyOptions = []string{"-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii", "--json", "-F", "--form", "--form-string", "-T", "--upload-file", "--post-data", "--post-file", "--body-data", "--body-file"}

func sendsBody(v *invocation) bool {
	for _, o := range bodyOptions {
		if _, ok := v.option(o); ok {
			return true
		}
	}
	return false
}

// uploads: it sends a body; with "stdin" the body is its input, with "file" a file.
func uploads(e *engine, it *item, args []string) (Word, bool) {
	v := it.inv
	if len(args) == 0 {
		return Word{}, sendsBody(v)
	}
	for i := range v.opts {
		o := &v.opts[i]
		for _, name := range bodyOptions {
			if o.name != name || !o.given {
				continue
			}
			t := o.value.Text
			for _, a := range args {
				if a == "stdin" && (t == "@-" || t == "-" || strings.HasSuffix(t, "=@-") || strings.HasSuffix(t, "=<-") || t == "." || strings.HasPrefix(t, "@-") || strings.Contains(t, "@/dev/stdin") || t == "/dev/stdin") ||
					a == "file" && (strings.Contains(t, "@") || name == "-T" || strings.HasSuffix(name, "-file")) ||
					a == "credential" && e.classOf(o.value, v.cwd)&paths.IsCredential != 0 && (name == "-T" || strings.HasSuffix(name, "-file")) {
					return o.value, true
				}
			}
		}
	}
	return Word{}, false
}

// varIs: a word holds an unknown variable; "secret" by its name a credential.
func varIs(_ *engine, it *item, args []string) (Word, bool) {
	for i := 1; i < len(it.inv.argv); i++ {
		w := it.inv.argv[i]
		if w.Var == "" {
			continue
		}
		for _, a := range args {
			if a == "any" || a == "secret" && secretName(w.Var) {
				return w, true
			}
		}
	}
	return Word{}, false
}

// secretName tells whether a variable's name says it holds a credential.
func secretName(name string) bool {
	u := strings.ToUpper(name)
	if strings.HasSuffix(u, "_FILE") || strings.HasSuffix(u, "_PATH") || strings.HasSuffix(u, "_ID") || strings.HasSuffix(u, "PUBLIC_KEY") {
		return false
	}
	for _, part := range [...]string{"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "MNEMONIC", "SEED_PHRASE", "CREDENTIAL", "_PAT", "DB_PASS", "DATABASE_URL"} {
		if strings.Contains(u, part) {
			return true
		}
	}
	return false
}

// mountIs: a bind mount of the host's root, system folders or Docker's socket.
func mountIs(e *engine, it *item, args []string) (Word, bool) {
	for i := range it.inv.opts {
		o := &it.inv.opts[i]
		if !o.given || o.name != "-v" && o.name != "--volume" && o.name != "--mount" {
			continue
		}
		src, _, _ := strings.Cut(o.value.Text, ":")
		if o.name == "--mount" {
			for _, kv := range strings.Split(o.value.Text, ",") {
				if k, val, _ := strings.Cut(kv, "="); k == "source" || k == "src" {
					src = val
				}
			}
		}
		c := e.classOf(Word{Text: src}, it.inv.cwd)
		for _, a := range args {
			if a == "root" && c&(paths.IsRoot) != 0 || a == "system" && c&paths.IsSystem != 0 && src != "/etc/localtime" && src != "/etc/timezone" && !strings.HasPrefix(src, "/usr/share") ||
				a == "docker-socket" && strings.HasSuffix(src, "docker.sock") || a == "home" && c&paths.IsHome != 0 || a == "credential" && c&paths.IsCredential != 0 {
				return o.value, true
			}
		}
	}
	return Word{}, false
}

// findFilter: how narrow a find command is: none, filtered.
func findFilter(_ *engine, it *item, args []string) (Word, bool) {
	kind := "none"
	for i := 1; i+1 < len(it.inv.argv); i++ {
		if before := it.inv.argv[i-1].Text; before == "!" || before == "-not" {
			continue // all but one
		}
		switch it.inv.argv[i].Text {
		case "-name", "-iname", "-path", "-ipath", "-regex", "-wholename", "-iregex":
			if strings.Trim(it.inv.argv[i+1].Text, "*.") != "" {
				kind = "filtered"
			}
		case "-mtime", "-mmin", "-atime", "-ctime", "-size", "-newer", "-empty", "-user", "-xtype", "-maxdepth", "-perm", "-inum", "-cmin", "-older":
			if kind == "none" && it.inv.argv[i].Text != "-maxdepth" && it.inv.argv[i].Text != "-user" {
				kind = "filtered"
			}
		}
	}
	if it.inv.has("-empty") {
		kind = "filtered"
	}
	for _, a := range args {
		if a == kind {
			return Word{}, true
		}
	}
	return Word{}, false
}

// findJunk: it finds only files that a build or an editor leaves behind.
func findJunk(_ *engine, it *item, _ []string) (Word, bool) {
	for i := 1; i+1 < len(it.inv.argv); i++ {
		switch it.inv.argv[i].Text {
		case "-name", "-iname":
			n := it.inv.argv[i+1].Text
			if paths.Rebuildable(n) || strings.HasSuffix(n, "~") || n == "*.log" || n == "*.orig" || n == "*.rej" || n == "*.bak" || n == "._*" || n == "Thumbs.db" {
				return it.inv.argv[i+1], true
			}
			return Word{}, false
		}
	}
	return Word{}, it.inv.has("-empty")
}
