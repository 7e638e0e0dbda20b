// Package hosts classifies hosts and URLs: this machine, a metadata service, a paste site, an IP
// address. It also finds the method of a call of an HTTP client.
package hosts

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/secrets"
)

// Split splits a URL into scheme, host and rest. It returns false if there is no scheme.
func Split(t string) (scheme, host, rest string, ok bool) {
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

// LocalHost reports whether a host is this machine.
func LocalHost(h string) bool {
	return h == "localhost" || h == "127.0.0.1" || h == "::1" || h == "0.0.0.0" || h == "host.docker.internal" ||
		strings.HasSuffix(h, ".localhost") || strings.HasSuffix(h, ".test") || strings.HasPrefix(h, "127.")
}

// LooksHost reports whether a text is a host without a scheme, as in "localhost:3000/x" or
// "example.org/path", and returns the host.
func LooksHost(t string) (string, bool) {
	if name, ok := portHost(t); ok {
		return name, true
	}
	host := t
	if end := strings.IndexAny(t, "/:?"); end >= 0 {
		host = t[:end]
	}
	named := strings.IndexByte(host, '.') > 0 && topLevel.Has(host[strings.LastIndexByte(host, '.')+1:]) &&
		strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == ""
	if host == "localhost" || named || numericHost(host) {
		return strings.ToLower(host), true
	}
	return "", false
}

// portHost returns the host before a port: localhost for ":3000", which is a short form of HTTPie,
// or a name without a domain, as in es:9200/x.
func portHost(t string) (string, bool) {
	name, rest, ok := strings.Cut(t, ":")
	behind := strings.TrimLeft(rest, "0123456789")
	if !ok || behind == rest || behind != "" && behind[0] != '/' {
		return "", false
	}
	if name == "" {
		return "localhost", true
	}
	return name, behind != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// topLevel are the last labels by which a word is recognized as a host.
var topLevel = scan.SetOf("com org net io dev app co ai cloud edu gov info biz me us uk de fr eu ru cn in br jp nl se ch it es xyz site online top tech fun test example internal local corp lan localhost onion link page so gg to tv cc be at ca au pl ws pro zone store live wiki")

func numericHost(h string) bool {
	return strings.Count(h, ".") == 3 && strings.Trim(h, "0123456789.") == ""
}

// Local reports whether an HTTP client connects only to this machine.
func Local(v *act.Invocation) bool {
	n := 0
	for _, w := range v.Operands {
		scheme, host, _, ok := Split(w.Text)
		if scheme == "file" {
			host = "localhost"
		}
		if !ok {
			host, ok = LooksHost(w.Text)
		}
		if ok {
			if !LocalHost(host) {
				return false
			}
			n++
		}
	}
	return n > 0
}

// DatastorePort reports whether a text has the usual port of a database, search engine, gateway or
// secret store with an HTTP interface.
func DatastorePort(t string) bool {
	for _, p := range [...]string{":9200", ":7700", ":8001", ":8108", ":6333", ":5984", ":8123", ":8086", ":9090", ":2379", ":8500", ":8200", ":15672", ":8983", ":9000", ":8529", ":7474", ":2019", ":28017", ":8080/apis"} {
		if i := strings.Index(t, p); i >= 0 && (i+len(p) == len(t) || t[i+len(p)] == '/' || t[i+len(p)] == '?') {
			return true
		}
	}
	return false
}

// DeletePath reports whether the path of a POST ends with a verb that means a deletion.
func DeletePath(rest string) bool {
	l, _, _ := strings.Cut(strings.ToLower(rest), "?")
	return scan.HasAnySuffix(l, "/dodelete", "_delete_by_query", "/delete-batch", "/delete_series", "/destroy", "/delete", "/purge", "/clean_tombstones", "/dowipeoutworkspace", "/_all", "/deleterange", "/deletemany", "/delete_all", "/delete-all", "/deleteall", "/truncate", "/wipe", "/collections/drop", "/databases/drop", "/partitions/drop", "/api/v1/reset", "/api/v2/reset", "/bulk-delete", "/bulk_delete", "/_bulk_delete", "/batchdelete")
}

// MetadataHost reports whether a host is the metadata service of a cloud.
func MetadataHost(h string) bool {
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

// numberedHost parses an IPv4 address in numbers of any base and any grouping: 0xa9fea9fe,
// 2852039166, 0251.0376.0251.0376, 169.16689662.
func numberedHost(h string) (uint32, bool) {
	parts := strings.Split(h, ".")
	if len(parts) > 4 || len(h) > 48 {
		return 0, false
	}
	var out uint64
	for i, p := range parts {
		bits := 8
		if i == len(parts)-1 { // the last number fills the remaining bytes
			bits = 8 * (4 - i)
		}
		n, err := strconv.ParseUint(p, 0, bits)
		if err != nil {
			return 0, false
		}
		out = out<<bits | n
	}
	return uint32(out), true
}

// PasteHost reports whether a host publishes the data that it receives.
func PasteHost(h string) bool {
	return scan.HasAnySuffix("."+h, ".pastebin.com", ".paste.rs", ".transfer.sh", ".0x0.st", ".file.io", ".ix.io", ".termbin.com", ".webhook.site", ".requestbin.net", ".ngrok.io", ".ngrok-free.app", ".pipedream.net", ".oast.fun", ".interact.sh", ".burpcollaborator.net", ".hastebin.com", ".dpaste.org", ".temp.sh", ".catbox.moe", ".requestcatcher.com")
}

// OverriddenMethod returns the method with which a header, parameter or form member overrides the
// request's own, or "".
func OverriddenMethod(v *act.Invocation) string {
	for _, w := range v.Argv[min(1, len(v.Argv)):] {
		text := strings.ToUpper(w.Text)
		if !strings.Contains(text, "METHOD") {
			continue
		}
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

// Method returns the method that is given to an HTTP client, or that its options imply.
func Method(v *act.Invocation) string {
	if w, ok := v.Value("-X", "--request", "--method", "-Method", "--http-method", "-m"); ok {
		return strings.ToUpper(w.Text)
	}
	switch v.Exe {
	case "http", "https", "xh", "xhs", "httpie", "curlie", "restish":
		return methodOfWords(v)
	}
	for _, implied := range impliedMethods[v.Exe] {
		if slices.ContainsFunc(implied.by, v.Has) {
			return implied.method
		}
	}
	if v.Exe == "curl" && SendsBody(v) {
		return "POST"
	}
	return "GET"
}

// impliedMethods are the methods that options of a client imply. The first match counts.
var impliedMethods = map[string][]struct {
	method string
	by     []string
}{
	"curl": {{"HEAD", []string{"-I", "--head"}}, {"GET", []string{"-G", "--get"}}, {"PUT", []string{"-T", "--upload-file"}}},
	"wget": {{"POST", []string{"--post-data", "--post-file", "--body-data"}}},
	"gh":   {{"POST", []string{"-f", "-F", "--field", "--raw-field", "--input"}}},
	"glab": {{"POST", []string{"-f", "-F", "--field", "--raw-field", "--input"}}},
}

// methodOfWords returns the first operand of HTTPie and similar clients if that is a method, or
// the method that the operands imply.
func methodOfWords(v *act.Invocation) string {
	if len(v.Operands) == 0 {
		return "GET"
	}
	switch m := strings.ToUpper(v.Operands[0].Text); m {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS":
		return m
	}
	for _, w := range v.Operands[1:] {
		if strings.Contains(w.Text, "=") && !strings.Contains(w.Text, "==") {
			return "POST"
		}
	}
	return "GET"
}

// BodyOptions are the options of HTTP clients that set the body.
var BodyOptions = []string{"-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii", "--json", "-F", "--form", "--form-string", "-T", "--upload-file", "--post-data", "--post-file", "--body-data", "--body-file"}

// SendsBody reports whether the invocation sends a body or a file.
func SendsBody(v *act.Invocation) bool {
	return slices.ContainsFunc(BodyOptions, v.Has)
}

// SecretName reports whether the name of a variable means a credential.
func SecretName(name string) bool { return secrets.Name(name) }

// Named reports whether a part of a variable's name equals a label of a host: SLACK_TOKEN belongs
// to slack.com.
func Named(variable, host string) bool {
	labels := strings.Split(host, ".")
	for part := range strings.SplitSeq(strings.ToLower(variable), "_") {
		if len(part) > 2 && slices.Contains(labels, part) {
			return true
		}
	}
	return false
}

// registered lists the domains that a service registered in addition to its own name.
var registered = map[string][]string{"github": {"github", "githubusercontent", "githubcopilot", "ghcr"}, "google": {"google", "googleapis", "gcr", "pkg"}, "amazonaws": {"ecr"}, "npm": {"npm", "npmjs", "github"}}

// OfService reports whether a host belongs to a service: it is in a domain that the service
// registered. A label in another domain, such as github in api.github.com.example.net, does not
// count.
func OfService(host, service string) bool {
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	n := len(labels) - 2
	if n >= 1 && len(labels[n+1]) == 2 && slices.Contains([]string{"co", "com", "org", "net", "gov", "ac"}, labels[n]) {
		n--
	}
	return n >= 0 && (labels[n] == service || slices.Contains(registered[service], labels[n]))
}

// ModuleHost reports whether a host is a registry from which programs import modules.
func ModuleHost(host string) bool {
	switch host {
	case "deno.land", "jsr.io", "esm.sh", "cdn.skypack.dev", "unpkg.com", "cdn.jsdelivr.net", "esm.run", "ga.jspm.io":
		return true
	}
	return false
}

// ForeignShare reports whether a network path names its host by IP address or uses WebDAV.
func ForeignShare(name string) bool {
	rest, ok := strings.CutPrefix(name, "//")
	if !ok {
		return false
	}
	host, path, _ := strings.Cut(rest, "/")
	host, _, dav := strings.Cut(host, "@")
	return dav || numericHost(host) || strings.HasPrefix(strings.ToLower(path), "davwwwroot")
}
