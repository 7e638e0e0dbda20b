package mcprisk

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/normal"
)

// launch applies the rules about how the server is started and reached.
func (s *scan) launch() {
	raw := s.manifest.raw
	for _, member := range []string{"description", "instructions"} {
		if utf8.RuneCountInString(stringOf(raw[member])) > maxDescription {
			s.report("oversized_description", "", "", "/"+member, "")
		}
	}
	s.commandLine(stringOf(raw["command"]), stringsOf(raw["args"]))
	s.pinned(raw["package"])
	s.scopes(raw["auth"])
	s.remote(raw)
	for _, t := range s.manifest.config {
		if !s.spend(1+len(t.raw), perTextOctet+2*perSimpleOctet) {
			continue
		}
		s.hiddenCharacters(t)
		s.configValue(t)
	}
}

// stringsOf are the items of a list, empty where one is no string.
func stringsOf(value jsontext.Value) (all []string) {
	if value.Kind() != '[' {
		return nil
	}
	for in := enter(value); in.More(); {
		all = append(all, stringOf(in.Raw()))
	}
	return all
}

// configValue looks at one string of command, args, env, headers, URL or auth.
func (s *scan) configValue(t text) {
	clean := readings(t.raw)[0]
	s.matchProse(t, clean, []string{"pipe_to_shell", "metadata_endpoint"})
	if strings.Contains(clean, "file://") {
		s.report("metadata_endpoint", "", "", t.path, t.raw)
	}
	if loc := mountedSecret().FindStringIndex(clean); loc != nil {
		s.report("sensitive_file_access", "high", "", t.path, around(clean, loc))
	}
	if !strings.HasPrefix(t.path, "/serverUrl") && !strings.HasPrefix(t.path, "/url") {
		if hasSecret(t) {
			s.report("hardcoded_secret", "", "", t.path, secretPart(t.raw))
		}
	}
	for _, address := range webAddress().FindAllString(t.raw, 8) {
		if u, err := normal.ParseURLAnyHost(address); err == nil && !normal.IsLoopback(u.Host) {
			s.report("plaintext_transport", "", "", t.path, "http://"+u.Host)
		}
	}
}

var (
	webAddress    = expression(`(?i)\bhttp://[^\s"'<>|;]+`)
	mountedSecret = expression(`\.ssh(?:/|:|$)|\bid_rsa\b|\.aws(?:/credentials|:)|/etc/(?:passwd|shadow)\b|\bwallet\.dat\b|\.kube/config\b|\.git-credentials\b`)
	bearer        = expression(`(?i)^bearer ([a-z0-9._~+/=-]{20,})$`)
	hexKey        = expression(`^(?:0x)?[0-9a-fA-F]{64}$`)
	hashName      = expression(`(?i)hash|digest|sha|checksum|integrity|commit|address|txid|public`)
)

// hasSecret says whether a value is a token. Placeholders such as ${TOKEN} or
// <token> are none.
func hasSecret(t text) bool {
	value := strings.TrimSpace(t.raw)
	if strings.Contains(value, "${") || strings.Contains(value, "{{") || strings.HasPrefix(value, "<") {
		return false
	}
	if b := bearer().FindStringSubmatch(value); b != nil {
		return strings.ContainsAny(b[1], "0123456789")
	}
	if _, after, ok := strings.Cut(value, "="); ok && hexKey().MatchString(after) {
		value = after
	}
	return normal.SecretKind(t.member, value) != "" || strings.Contains(value, "-----BEGIN ") && !strings.Contains(value, "CERTIFICATE") && !strings.Contains(value, "PUBLIC KEY") ||
		hexKey().MatchString(value) && !hashName().MatchString(t.member)
}

// secretPart shows no more than four characters of a secret.
func secretPart(raw string) string {
	runes := []rune(visible(strings.TrimSpace(raw)))
	return string(runes[:min(4, len(runes))]) + "..."
}

// commandLine judges the command that starts the server.
func (s *scan) commandLine(command string, args []string) {
	if command == "" {
		return
	}
	// A command given as one line is split like its own arguments.
	words := append(strings.Fields(command), args...)
	line := readings(strings.Join(words, " "))[0]
	s.matchProse(text{path: "/command", raw: line}, line, []string{"pipe_to_shell"})
	if strings.HasPrefix(line, "sudo ") {
		s.report("privileged_runtime", "", "", "/command", line)
	}
	for i, arg := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		if privileged(arg, next) {
			s.report("privileged_runtime", "", "", "/args/"+strconv.Itoa(i), arg+" "+next)
		}
	}
	if spec, ok := launched(words); ok && !isPinned(spec) {
		s.report("unpinned_package", "", "", "/command", spec)
	}
}

// privileged says whether an argument gives the server the rights of the machine.
func privileged(arg, next string) bool {
	mount := ""
	switch {
	case arg == "-v" || arg == "--volume" || arg == "--mount":
		mount = next
	case strings.HasPrefix(arg, "-v=") || strings.HasPrefix(arg, "--volume=") || strings.HasPrefix(arg, "--mount="):
		_, mount, _ = strings.Cut(arg, "=")
	}
	return arg == "--privileged" || arg == "--privileged=true" || arg == "sudo" ||
		arg == "--net=host" || arg == "--network=host" || (arg == "--net" || arg == "--network") && next == "host" ||
		strings.Contains(arg, "docker.sock") || strings.HasPrefix(mount, "/:") || strings.Contains(mount, "source=/,") || strings.Contains(mount, "src=/,")
}

// launchers run a package fetched by name. Docker is apart.
var launchers = []string{"npx", "uvx", "pipx", "bunx", "pnpx"}

// Flags of launchers and of docker run that take the next argument as their value.
var valueFlags = []string{"-e", "--env", "-v", "--volume", "--mount", "--name", "-p", "--publish", "-w", "--workdir", "-u", "--user", "--env-file", "--network", "--net",
	"--entrypoint", "--platform", "-l", "--label", "-h", "--hostname", "-m", "--memory", "--cpus", "--add-host", "--pull", "--python", "--with", "--registry", "--index-url", "--pip-args", "--cache", "--call", "-c"}

// launched finds the package or image that a command line fetches and runs.
func launched(words []string) (spec string, ok bool) {
	program, rest := path.Base(words[0]), words[1:]
	program = strings.TrimSuffix(strings.TrimSuffix(program, ".cmd"), ".exe")
	if program == "cmd" && len(rest) > 1 && strings.EqualFold(rest[0], "/c") || program == "env" && len(rest) > 0 || program == "sudo" && len(rest) > 0 {
		if program == "cmd" {
			rest = rest[1:]
		}
		return launched(rest)
	}
	switch {
	case program == "docker" || program == "podman":
		if i := slices.Index(rest, "run"); i >= 0 {
			return firstOperand(rest[i+1:])
		}
		return "", false
	case (program == "pnpm" || program == "yarn") && len(rest) > 0 && rest[0] == "dlx",
		program == "npm" && len(rest) > 0 && (rest[0] == "exec" || rest[0] == "x"),
		program == "pipx" && len(rest) > 0 && rest[0] == "run",
		program == "uv" && len(rest) > 1 && rest[0] == "tool" && rest[1] == "run":
		if program == "uv" {
			rest = rest[1:]
		}
		return firstOperand(rest[1:])
	case slices.Contains(launchers, program):
		return firstOperand(rest)
	}
	return "", false
}

// firstOperand skips flags and their values. A package named by a flag wins.
func firstOperand(words []string) (string, bool) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		for _, flag := range []string{"--from", "--package", "--spec"} {
			if word == flag && i+1 < len(words) {
				return words[i+1], true
			}
			if value, ok := strings.CutPrefix(word, flag+"="); ok {
				return value, true
			}
		}
		switch {
		case word == "--":
		case slices.Contains(valueFlags, word):
			i++
		case strings.HasPrefix(word, "-"):
		default:
			return word, true
		}
	}
	return "", false
}

var exactVersion = expression(`^v?\d+(?:\.\d+){1,3}(?:[-+.a-zA-Z0-9]*)?$`)

// isPinned says whether a package specification always means the same bytes: an
// exact version, a digest, a commit, or a path of this machine.
func isPinned(spec string) bool {
	switch {
	case strings.HasPrefix(spec, ".") || strings.HasPrefix(spec, "/") || strings.HasPrefix(spec, "~"):
		return true
	case strings.Contains(spec, "@sha256:"):
		return true
	}
	if _, version, ok := strings.Cut(spec, "=="); ok {
		return exactVersion().MatchString(version)
	}
	if at := strings.LastIndexByte(spec, '@'); at > 0 { // a leading @ is an npm scope
		version := spec[at+1:]
		return exactVersion().MatchString(version) || commit().MatchString(version)
	}
	if hash := strings.LastIndexByte(spec, '#'); hash > 0 {
		return commit().MatchString(spec[hash+1:])
	}
	colon := strings.LastIndexByte(spec, ':') // an image tag, but not the port of a registry
	return colon > strings.LastIndexByte(spec, '/') && exactVersion().MatchString(spec[colon+1:])
}

var commit = expression(`^[0-9a-f]{40}$`)

// pinned judges the package member.
func (s *scan) pinned(value jsontext.Value) {
	if !isObject(value) {
		return
	}
	p := membersOf(value)
	version := stringOf(p["version"])
	if !exactVersion().MatchString(version) && stringOf(p["integrity"]) == "" && !commit().MatchString(version) {
		s.report("unpinned_package", "", "", "/package/version", version)
	}
}

// scopes judges what the server asks for.
func (s *scan) scopes(value jsontext.Value) {
	for i, scope := range stringsOf(membersOf(value)["scopes"]) {
		lower := strings.ToLower(scope)
		if slices.Contains([]string{"*", "admin", "root", "full_access", "repo", "https://mail.google.com/"}, lower) || strings.HasSuffix(lower, ":*") || strings.HasSuffix(lower, ".all") {
			s.report("broad_scope", "", "", "/auth/scopes/"+strconv.Itoa(i), scope)
		}
	}
}

// remote judges a server that is reached over the network.
func (s *scan) remote(raw members) {
	address := stringOf(serverURL(raw))
	if address == "" {
		return
	}
	at := "/serverUrl"
	if raw["serverUrl"] == nil {
		at = "/url"
	}
	u, err := normal.ParseURLAnyHost(address)
	if err != nil || u.Scheme != "https" || normal.IsLoopback(u.Host) {
		return
	}
	kind := stringOf(membersOf(raw["auth"])["type"])
	if headers := raw["headers"]; (kind == "" || kind == "none") && (!isObject(headers) || !enter(headers).More()) {
		s.report("no_authentication", "", "", at, "https://"+u.Host)
	}
}
