package mcprisk

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/policy/secrets"
)

// launch applies the rules about how a client starts and reaches the servers.
func (s *scan) launch() {
	for _, member := range []string{"description", "instructions"} {
		if utf8.RuneCountInString(stringOf(s.manifest.raw[member])) > maxDescription {
			s.report("oversized_description", "", "", s.manifest.at+"/"+member, "")
		}
	}
	for _, server := range s.manifest.servers {
		s.commandLine(server, stringOf(server.raw["command"]), stringsOf(server.raw["args"]))
		s.pinned(server.at+"/package", server.raw["package"])
		s.scopes(server.at, server.raw["auth"])
		s.remote(server)
		if env := server.raw["env"]; isObject(env) {
			variables := membersOf(env)
			for _, name := range sortedNames(variables) {
				if text := strings.ToUpper(name) + "=" + stringOf(variables[name]); s.spend(len(text), perSimpleOctet) && unsafeVariable().MatchString(text) {
					s.report("unsafe_environment", "", "", server.at+"/env/"+escaped(name), text)
				}
			}
		}
		for i, p := range listOf(server.raw["packages"]) { // packages of a registry entry
			s.pinned(server.at+"/packages/"+strconv.Itoa(i), p)
		}
	}
	for _, t := range s.manifest.config {
		if !s.spend(1+len(t.raw), perTextOctet+2*perSimpleOctet) {
			continue
		}
		s.hiddenCharacters(t)
		s.configValue(t)
	}
}

// stringsOf returns the items of a list, with "" for an item that is not a string.
func stringsOf(value jsontext.Value) (all []string) {
	for _, item := range listOf(value) {
		all = append(all, stringOf(item))
	}
	return all
}

// configValue checks one string of command, args, env, headers, URL or auth.
func (s *scan) configValue(t text) {
	clean := readings(t.raw)[0]
	s.matchProse(t, clean, []string{"pipe_to_shell", "metadata_endpoint"})
	if strings.Contains(clean, "file://") {
		s.report("metadata_endpoint", "", "", t.path, t.raw)
	}
	if loc := mountedSecret().FindStringIndex(clean); loc != nil {
		s.report("sensitive_file_access", "high", "", t.path, around(clean, loc))
	}
	if at, found := secretIn(t.member, t.raw); found {
		s.report("hardcoded_secret", "", "", t.path, secretPart(t.raw[at:]))
	}
	for _, address := range webAddress().FindAllString(t.raw, 8) {
		if u, err := normal.ParseURLAnyHost(address); err == nil && !normal.IsLoopback(u.Host) {
			s.report("plaintext_transport", "", "", t.path, "http://"+u.Host)
		}
	}
}

var (
	webAddress    = expression(`(?i)\bhttp://[^\s"'<>|;]+`)
	mountedSecret = expression(`\.ssh(?:/|:|$)|\bid_rsa\b|\.aws(?:/credentials|:)|/etc/(?:passwd|shadow)\b|\bwallet\.dat\b|\.kube(?:/config\b|:|$)|\.gnupg(?:/|:|$)|\.git-credentials\b`)
	// Command lines that download or decode code and run it, in other ways than a pipe to a shell.
	fetchesCode = expression(`\biex\b.*\b(?:irm|iwr|downloadstring|invoke-webrequest|invoke-restmethod)\b|\b(?:powershell|pwsh)\b.* -e(?:nc|ncodedcommand)? [a-z0-9+/=]{20}` +
		`|\b(?:curl|wget|certutil|bitsadmin|invoke-webrequest|iwr)\b.*(?:&&|;) ?(?:chmod|sh|bash|python3?|node|start|sudo|\.?/|%temp%|\$env)` +
		`|\b(?:eval|source|exec|sh|bash) ["'(\x60$<]+ ?(?:curl|wget)\b|\bbase64 (?:-d|--decode|-di)\b.*\| ?(?:ba|z|da)?sh\b|/dev/tcp/|\b(?:nc|ncat)\b.* -[a-z]*[ce] ?(?:/bin/)?(?:ba|z)?sh\b|\bmshta https?:` +
		`|\bpython3? -c\b.*\b(?:exec|eval)\b.*\b(?:urlopen|requests\.get|urlretrieve|b64decode)\b|\bpython3? -c\b.*\b(?:urlopen|requests\.get)\b.*\b(?:exec|eval)\b|\bnode -e\b.*https?://`)
	hexKey   = expression(`^(?:0x)?[0-9a-fA-F]{64}$`)
	hashName = expression(`(?i)hash|digest|sha|checksum|integrity|commit|address|txid|public`)
)

// secretIn returns where a secret begins in the value of a variable, header, argument or URL.
func secretIn(name, value string) (at int, found bool) {
	if all := secrets.Find(value); len(all) > 0 {
		return all[0].Start, true
	}
	if _, after, ok := strings.Cut(value, "="); ok {
		value = after
	}
	// In a configuration 64 hexadecimal digits are a key, unless the name says that they are a
	// hash.
	return 0, secrets.Kind(name, value) != "" || hexKey().MatchString(value) && !hashName().MatchString(name)
}

// secretPart returns at most the first four characters of a secret.
func secretPart(raw string) string {
	runes := []rune(visible(strings.TrimSpace(raw)))
	return string(runes[:min(4, len(runes))]) + "..."
}

// commandLine checks the command that starts a server.
func (s *scan) commandLine(server server, command string, args []string) {
	if command == "" {
		return
	}
	// The command may contain its arguments in one line: split it.
	words := append(strings.Fields(command), args...)
	if len(words) == 0 {
		return
	}
	line := readings(strings.Join(words, " "))[0]
	s.matchProse(text{path: server.at + "/command", raw: line}, line, []string{"pipe_to_shell"})
	if s.spend(len(line), perOctet) {
		if loc := fetchesCode().FindStringIndex(line); loc != nil {
			s.report("pipe_to_shell", "", "", server.at+"/command", around(line, loc))
		}
	}
	if strings.HasPrefix(line, "sudo ") {
		s.report("privileged_runtime", "", "", server.at+"/command", line)
	}
	program := programOf(words[0])
	for i, arg := range args {
		before, next := "", ""
		if i > 0 {
			before = args[i-1]
		}
		if i+1 < len(args) {
			next = args[i+1]
		}
		at := server.at + "/args/" + strconv.Itoa(i)
		if privileged(arg, next) || wholeDisk(before, arg) || program == "deno" && (arg == "-A" || arg == "--allow-all") {
			s.report("privileged_runtime", "", "", at, arg+" "+next)
		}
		if strings.HasPrefix(arg, "--") && !strings.HasPrefix(next, "-") && len(secrets.Find(next)) == 0 && len(secrets.Find(arg+" "+next)) > 0 {
			s.report("hardcoded_secret", "", "", server.at+"/args/"+strconv.Itoa(i+1), secretPart(next))
		}
	}
	spec, ok := launched(words)
	switch {
	case ok && strings.HasPrefix(spec, "http") && strings.Contains(spec, "://") && !isPinned(spec):
		s.report("pipe_to_shell", "high", "", server.at+"/command", spec)
	case ok && !isPinned(spec):
		s.report("unpinned_package", "", "", server.at+"/command", spec)
	}
}

// unsafeVariable matches "NAME=value" of an environment variable that loads code into a program
// before it starts, or that turns off a security check.
var unsafeVariable = expression(`^(?:(?:LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|PYTHONSTARTUP|PERL5OPT|RUBYOPT|PROMPT_COMMAND|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF)=.` +
	`|(?:NODE_OPTIONS|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS)=.*(?:--require|-r |--import|loader|-javaagent|-agentpath|-agentlib)` +
	`|(?:NODE_TLS_REJECT_UNAUTHORIZED|PYTHONHTTPSVERIFY|(?:REQUESTS_|SSL_|TLS_)VERIFY|VERIFY_SSL|NPM_CONFIG_STRICT_SSL)=(?:0|false|no|off)$` +
	`|(?:GIT_SSL_NO_VERIFY|CURL_INSECURE|DANGEROUSLY_(?:OMIT_AUTH|SKIP_PERMISSIONS))=(?:1|true|yes|on)$)`)

// wholeDisk reports whether an argument gives the server access to a complete disk, or to all
// files of a user.
func wholeDisk(before, arg string) bool {
	if before == "-w" || before == "--workdir" {
		return false
	}
	if flag, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(flag, "--") {
		arg = value
	}
	return len(arg) >= 2 && len(arg) <= 3 && arg[1] == ':' && unicode.IsLetter(rune(arg[0])) && (len(arg) == 2 || arg[2] == '/' || arg[2] == '\\') || wholeFolder(arg)
}

// wholeFolder reports whether a path is a complete disk, the home folder of a user or the system's
// settings. It returns false for a folder below one of these.
func wholeFolder(whole string) bool {
	path := strings.ToLower(strings.ReplaceAll(whole, "\\", "/"))
	if len(path) > 3 && path[1:3] == ":/" {
		path = path[2:]
	}
	path = strings.TrimRight(path, "/")
	switch path {
	case "~", "$home", "${home}", "${env:home}", "${userhome}", "%userprofile%", "%homepath%", "$env:userprofile", "/home", "/users", "/root", "/etc", "/var", "/proc", "/sys", "/dev", "/boot", "/windows", "/mnt", "/media", "/volumes", "/library":
		return true
	}
	return path == "" && whole != "" || (strings.HasPrefix(path, "/home/") || strings.HasPrefix(path, "/users/")) && strings.Count(path, "/") == 2
}

// privileged reports whether an argument gives the server the privileges of the host machine.
func privileged(arg, next string) bool {
	mount := ""
	flag, value, given := strings.Cut(arg, "=")
	if !given {
		value = next
	}
	switch flag {
	case "-v", "--volume", "--mount":
		mount = mounted(value)
	case "--privileged":
		return !given || value == "true"
	case "--net", "--network", "--pid", "--ipc", "--uts", "--userns", "--cgroupns":
		return value == "host"
	case "--cap-add", "--device", "sudo":
		return true
	case "--security-opt":
		return strings.HasSuffix(value, "unconfined") || strings.HasSuffix(value, "label=disable") || strings.HasSuffix(value, "label:disable")
	}
	return strings.Contains(arg, "docker.sock") || mount != "" && wholeFolder(mount)
}

// mounted returns the folder of the host that a mount makes available to a container.
func mounted(mount string) string {
	for part := range strings.SplitSeq(mount, ",") {
		if name, value, ok := strings.Cut(part, "="); ok && (name == "source" || name == "src") {
			return value
		}
	}
	from, _, _ := strings.Cut(mount, ":")
	return from
}

// launchers are programs that fetch a package by its name and run it. launched handles Docker and
// others separately.
var launchers = []string{"npx", "uvx", "pipx", "bunx", "pnpx"}

// valueFlags lists flags of launchers and of docker run whose value is the next argument.
var valueFlags = []string{"-e", "--env", "-v", "--volume", "--mount", "--name", "-p", "--publish", "-w", "--workdir", "-u", "--user", "--env-file", "--network", "--net",
	"--entrypoint", "--platform", "-l", "--label", "-h", "--hostname", "-m", "--memory", "--cpus", "--add-host", "--pull", "--python", "--with", "--registry", "--index-url", "--pip-args", "--cache", "--call", "-c", "--cap-add", "--device", "--security-opt", "--pid", "--ipc"}

func programOf(word string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(word), ".cmd"), ".exe")
}

// launched returns the package or image that a command line fetches and runs. ok is false if there
// is none.
func launched(words []string) (spec string, ok bool) {
	program, rest := programOf(words[0]), words[1:]
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
	case program == "deno" && len(rest) > 1 && rest[0] == "run":
		spec, ok = firstOperand(rest[1:])
		return spec, ok && strings.Contains(spec, ":") // a local file is not fetched
	case program == "go" && len(rest) > 1 && rest[0] == "run":
		spec, ok = firstOperand(rest[1:])
		return spec, ok && strings.Contains(spec, "@")
	case program == "uv" && len(rest) > 1 && rest[0] == "run" && strings.Contains(rest[len(rest)-1], "://") && !strings.HasPrefix(rest[len(rest)-1], "-"):
		return firstOperand(rest[1:])
	case program == "uv" && len(rest) > 2 && rest[0] == "run" && slices.Contains(rest, "--with"):
		return firstOperand(append([]string{"--from"}, rest[slices.Index(rest, "--with")+1:]...))
	case program == "bun" && len(rest) > 0 && rest[0] == "x",
		(program == "pnpm" || program == "yarn") && len(rest) > 0 && rest[0] == "dlx",
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

// firstOperand returns the first word that is not a flag or the value of a flag. If a flag names a
// package, it returns that package.
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

// isPinned reports whether a package specification always means the same bytes: it has an exact
// version, a digest or a commit, or is a local path.
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
	if at := strings.LastIndexByte(spec, '@'); at > 0 && spec[at-1] != ':' { // an @ at the start is an npm scope
		version := spec[at+1:]
		if strings.Contains(spec[:at], "://") { // for example https://deno.land/x/name@1.2.0/mod.ts
			version, _, _ = strings.Cut(version, "/")
		}
		return exactVersion().MatchString(version) || commit().MatchString(version)
	}
	if hash := strings.LastIndexByte(spec, '#'); hash > 0 {
		return commit().MatchString(spec[hash+1:])
	}
	colon := strings.LastIndexByte(spec, ':') // an image tag follows the colon, unless it belongs to the port of a registry
	return colon > strings.LastIndexByte(spec, '/') && exactVersion().MatchString(spec[colon+1:])
}

var commit = expression(`^[0-9a-f]{40}$`)

// pinned checks that the member package, or a package of a registry entry, has a fixed version or
// a hash.
func (s *scan) pinned(at string, value jsontext.Value) {
	if !isObject(value) {
		return
	}
	p := membersOf(value)
	version := stringOf(p["version"])
	pinned := exactVersion().MatchString(version) || commit().MatchString(version) || stringOf(p["integrity"]) != "" || stringOf(p["fileSha256"]) != ""
	if image := stringOf(p["identifier"]); !pinned && (version != "" || image == "" || !isPinned(image)) {
		s.report("unpinned_package", "", "", at+"/version", version)
	}
}

// scopes checks the OAuth scopes that the server requests.
func (s *scan) scopes(at string, value jsontext.Value) {
	for i, scope := range stringsOf(membersOf(value)["scopes"]) {
		lower := strings.ToLower(scope)
		if slices.Contains([]string{"*", "admin", "root", "full_access", "repo", "https://mail.google.com/"}, lower) || strings.HasSuffix(lower, ":*") || strings.HasSuffix(lower, ".all") {
			s.report("broad_scope", "", "", at+"/auth/scopes/"+strconv.Itoa(i), scope)
		}
	}
}

// remote checks that a server that is reached over the network uses authentication.
func (s *scan) remote(server server) {
	raw := server.raw
	address := stringOf(serverURL(raw))
	if address == "" {
		return
	}
	at := server.at + "/serverUrl"
	if raw["serverUrl"] == nil {
		at = server.at + "/url"
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

// listOf returns the items of a list, or nil for any other value.
func listOf(value jsontext.Value) (all []jsontext.Value) {
	if value.Kind() == '[' {
		for in := enter(value); in.More(); {
			all = append(all, in.Raw())
		}
	}
	return all
}
