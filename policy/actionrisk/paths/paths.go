// Package paths classifies a path by its name alone: a root, a home directory, a folder of the
// operating system, a build output, a credential. It reads no files.
package paths

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Class is a set of properties of a path: its location, and the type of the file.
type Class uint32

const (
	IsRoot        Class = 1 << iota // /, /* or a drive
	IsHome                          // a complete home directory
	IsSystem                        // belongs to the operating system
	IsOutside                       // outside the working directory
	IsCwd                           // the working directory or everything in it
	IsTemp                          // below a temporary directory
	IsRebuildable                   // made by a build or a package manager
	IsRelative                      // below the working directory
	IsDynamic                       // unknown
	IsDevice                        // a block device
	IsNullDevice                    // /dev/null and similar devices
	IsVCS                           // .git and similar folders
	IsSource                        // a source tree
	IsData                          // databases, dumps, archives, keys
	IsCredential                    // contains a secret
	IsPublic                        // has a name like a credential, but is public
	IsStartup                       // runs automatically: rc file, unit, cron job, hook, authorized_keys
	IsLog                           // a log
	IsAccounts                      // passwd, shadow, sudoers
	IsGenerated                     // a lock file or a snapshot
	IsAbsolute                      // begins at a root or a home directory
	IsCatchAll                      // a pattern that matches every name
	IsHistory                       // history of a shell
	IsAuthorized                    // authorized_keys
	IsKeyFolder                     // a folder that usually contains keys
	IsTempRoot                      // a temporary directory itself
)

// ClassByName maps the words that the tables use to the classes.
var ClassByName = map[string]Class{
	"root": IsRoot, "home": IsHome, "system": IsSystem, "outside": IsOutside, "cwd": IsCwd, "temp": IsTemp,
	"rebuildable": IsRebuildable, "relative": IsRelative, "dynamic": IsDynamic, "device": IsDevice,
	"null": IsNullDevice, "vcs": IsVCS, "source": IsSource, "data": IsData, "credential": IsCredential,
	"public": IsPublic, "startup": IsStartup, "log": IsLog, "accounts": IsAccounts, "generated": IsGenerated,
	"absolute": IsAbsolute, "catch-all": IsCatchAll, "history": IsHistory, "authorized": IsAuthorized, "key-folder": IsKeyFolder, "temp-root": IsTempRoot,
}

// SeenFrom is a path with the working directory that it is relative to.
type SeenFrom struct{ Path, Cwd string }

// Link is a symbolic link to an absolute path, or a mounted folder. Deleting a link keeps its
// target, while deleting a mounted folder empties it.
type Link struct {
	At, To  string
	Mounted bool
}

// everything lists patterns that match all files in the working directory.
var everything = scan.SetOf(". * ./* .* ** {*,.*} .[!.]* ..?* *.* [a-z]* [!.]* [^.]* **/* ?* */*")

// RelativeClass returns the class of a clean path below an unknown working directory.
func RelativeClass(p string) Class {
	first, _, _ := strings.Cut(p, "/")
	last := path.Base(p)
	if last == "*" || last == "**" {
		last = path.Base(path.Dir(p))
	}
	switch {
	case everything.Has(p):
		return IsCwd | IsCatchAll
	case p == "..":
		return IsOutside | IsCatchAll
	case first == "..":
		return IsOutside
	case strings.HasPrefix(p, string(scan.Hole)):
		return IsDynamic
	case IsVCSName(first) || IsVCSName(last):
		return IsVCS | IsRelative
	case Rebuildable(p):
		return IsRebuildable
	case sourceNames.Has(first) && last == first:
		return IsSource | IsRelative
	}
	return IsRelative
}

// withoutClasses replaces each class of characters in a pattern, such as [a-z], with ?. It returns
// false if a class has no closing bracket.
func withoutClasses(p string) (string, bool) {
	for i := strings.IndexByte(p, '['); i >= 0; i = strings.IndexByte(p, '[') {
		j := strings.IndexByte(p[i:], ']')
		if j < 0 {
			return p, false
		}
		p = p[:i] + "?" + p[i+j+1:]
	}
	return p, true
}

// IsVCSName reports whether a file name is that of a repository's folder, such as .git, or a
// pattern that matches .git.
func IsVCSName(s string) bool {
	if strings.ContainsAny(s, "*?[") && len(s) > 2 && s[0] == '.' {
		s, ok := withoutClasses(s)
		return ok && strings.Trim(s, ".*?") != "" && GlobMatch(s, ".git")
	}
	return s == ".git" || s == ".hg" || s == ".svn" || s == ".jj"
}

var sourceNames = scan.SetOf("src lib app apps packages internal cmd pkg server client backend frontend services source sources tests test docs migrations components modules api core config infra terraform scripts crates include")

var rebuildableNames = scan.SetOf("node_modules bower_components dist build out target .next .nuxt .output .svelte-kit .turbo .parcel-cache .cache coverage .nyc_output htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .tox .nox .venv venv __pycache__ .gradle .terraform .serverless .angular .vite .eggs .ipynb_checkpoints DerivedData Pods .dart_tool .bundle tmp temp logs .tmp cmake-build-debug cmake-build-release bazel-bin bazel-out bazel-testlogs _build .stack-work dist-newstyle elm-stuff .expo storybook-static .docusaurus public/build site-packages .hypothesis Caches .yarn/cache .pnpm-store .vercel .wrangler test-results playwright-report .jest-cache .eslintcache .sass-cache obj artifacts npm-cache yarn-cache pnpm-cache INetCache CrashDumps .vs TestResults v3-cache plugins-cache")

// Rebuildable reports whether a build or a package manager can create a path again, by the names of
// the path's parts.
func Rebuildable(p string) bool {
	if packageCache(p) {
		return true
	}
	for part := range strings.SplitSeq(p, "/") {
		if rebuildableNames.Has(part) || strings.HasSuffix(part, ".egg-info") || scan.HasAnyPrefix(part, "cmake-build-", "bazel-") {
			return true
		}
	}
	return scan.HasAnySuffix(p, ".pyc", ".pyo", ".o", ".class", ".tmp", ".swp", ".DS_Store", ".tsbuildinfo")
}

// UnderAny reports whether a path is one of the roots or below one.
func UnderAny(p string, roots ...string) bool {
	for _, r := range roots {
		if strings.HasPrefix(p, r) && (len(p) == len(r) || p[len(r)] == '/') {
			return true
		}
	}
	return false
}

// HomeClass returns IsHome for a complete home directory, IsOutside for a path in one, and 0 for
// other paths.
func HomeClass(p string) Class {
	rest := ""
	switch {
	case p[0] == '~':
		_, rest, _ = strings.Cut(p, "/")
	case UnderAny(p, "/home", "/Users"):
		parts := strings.SplitN(strings.TrimPrefix(p, "/"), "/", 3)
		if len(parts) == 3 {
			rest = parts[2]
		}
	case UnderAny(p, "/root"):
		rest = strings.TrimPrefix(strings.TrimPrefix(p, "/root"), "/")
	default:
		return 0
	}
	if rest == "" || strings.Trim(rest, "*.?[]!") == "" {
		return IsHome
	}
	return IsOutside
}

// packageCache reports whether a package manager can fetch or create a path again: lists,
// archives, or documentation that no program needs.
func packageCache(p string) bool {
	return UnderAny(strings.TrimRight(p, "*"), "/var/lib/apt/lists", "/var/cache", "/usr/share/doc", "/usr/share/man", "/usr/share/info", "/usr/share/locale", "/usr/local/go") ||
		scan.HasAny(p, "/.npm/_cacache", "/.npm/_npx", "/.m2/repository/", "/.gradle/caches", "/.cargo/registry/cache")
}

// SystemPath reports whether a clean absolute path belongs to the operating system.
func SystemPath(p string) bool {
	switch {
	case UnderAny(p, "/var/www", "/var/log", "/var/lib/docker/tmp", "/usr/local", "/usr/src") && strings.Count(p, "/") > 2 && !scan.HasAnySuffix(p, "/bin", "/lib"),
		packageCache(p) && p != "/var/cache",
		strings.Contains(p, "/keyrings/"): // keys of package sources, which installation guides tell users to add
		return false
	}
	return p == "/opt" || p == "/srv" || p == "/mnt" || p == "/media" || p == "/home" ||
		UnderAny(strings.TrimRight(p, "*"), "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/boot", "/sys", "/proc",
			"/var", "/run", "/private/etc", "/private/var", "/System", "/Library", "/Applications", "/Volumes", "/nix", "/snap", "/efi") ||
		scan.HasAnyPrefix(p, "/etc*", "/usr*", "/bin*", "/var*", "/lib*")
}

// WindowsClass returns the class of a path with a drive. The result is false for other paths.
func WindowsClass(t string) (Class, bool) {
	given := strings.ReplaceAll(t, `\`, "/")
	p := strings.ToLower(given)
	if len(p) < 2 || p[1] != ':' || p[0] < 'a' || p[0] > 'z' {
		return 0, false
	}
	rest := strings.Trim(p[2:], "/*.")
	home, isHome := strings.CutPrefix(rest, "users")
	switch {
	case rest == "":
		return IsRoot | IsCatchAll | IsAbsolute, true
	case UnderAny(rest, "windows", "program files", "program files (x86)", "programdata", "efi", "boot", "bootmgr", "recovery", "system volume information"):
		return IsSystem | IsAbsolute | KindOfFile(p) | KindOfFile(given), true
	case isHome && strings.LastIndexByte(home, '/') <= 0:
		return IsHome | IsAbsolute, true
	case UnderAny(rest, "temp") || strings.Contains(rest, "/appdata/local/temp"):
		return IsTemp | IsAbsolute, true
	case Rebuildable(rest):
		return IsRebuildable | IsAbsolute, true
	}
	return IsOutside | IsAbsolute | KindOfFile(p) | KindOfFile(given), true
}

// BelowDrive returns the class of a path that is relative to a folder on Windows. The result is
// false unless the path means everything in the folder, or the folder is a root, a home directory
// or a system folder.
func BelowDrive(full, t, cwd string) (Class, bool) {
	all := RelativeClass(path.Clean(t))&IsCatchAll != 0
	if c, ok := WindowsClass(cwd); !all && (!ok || c&(IsRoot|IsHome|IsSystem) == 0) {
		return 0, false
	}
	c, ok := WindowsClass(strings.TrimRight(full, "*"))
	if all {
		c |= IsCatchAll
	}
	return c, ok
}

// kindsOfFile are tests for the type of a file. p is the path, lower its last part in lower case.
var kindsOfFile = [...]struct {
	class Class
	is    func(p, lower string) bool
}{
	{IsCatchAll, func(p, lower string) bool { return lower == "*" || lower == "**" }},
	{IsCredential, credentialFile},
	{IsPublic, publicFile},
	{IsStartup, startupFile},
	{IsAuthorized, func(_, lower string) bool { return strings.HasPrefix(lower, "authorized_keys") }},
	{IsAccounts, func(p, _ string) bool {
		return scan.HasAnySuffix(p, "/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/gshadow", "/etc/group") || strings.Contains(p, "/etc/sudoers.d")
	}},
	{IsHistory, func(_, lower string) bool {
		return strings.HasPrefix(lower, ".") && strings.HasSuffix(lower, "_history")
	}},
	{IsGenerated, func(_, lower string) bool { return lockFiles.Has(lower) }},
}

var lockFiles = scan.SetOf("package-lock.json pnpm-lock.yaml go.sum npm-shrinkwrap.json")

// dataExtensions are the extensions of files with data that cannot be recreated.
var dataExtensions = scan.SetOf(`.db .sqlite .sqlite3 .sql .bak .dump .pem .key .p12 .pfx .jks .mdb .rdb .tfstate .backup .parquet .mdf .ndf .ldf .edb .accdb .fdb .dbf
		.vhd .vhdx .avhdx .vmdk .pst .ost .vbk .vib`)

// kindOfExtension returns the type of a file by its extension.
func kindOfExtension(end string) Class {
	switch {
	case end == ".log":
		return IsLog
	case end == ".lock" || end == ".snap":
		return IsGenerated
	case dataExtensions.Has(end):
		return IsData
	}
	return 0
}

// secretExtensions are the extensions of secrets in a folder named secrets. A secret may also have
// no extension.
var secretExtensions = scan.SetOf(".txt .json .yml .yaml .env .key .ini .properties")

// KindOfFile returns the type of a file by its name.
func KindOfFile(p string) Class {
	name := path.Base(p)
	lower := strings.ToLower(name)
	if t := strings.TrimRight(lower, "*?"); t != "" && t != "." {
		lower = t
	}
	c := kindOfExtension(path.Ext(lower))
	for _, k := range kindsOfFile {
		if k.is(p, lower) {
			c |= k.class
		}
	}
	if strings.Trim(name, "*") == "" {
		name = path.Base(path.Dir(p))
	}
	if keyFolders.Has(name) || strings.HasSuffix(p, "/.aws/config") { // .aws/config contains profiles, which may be read but not sent
		c |= IsKeyFolder
	}
	return c
}

var keyFolders = scan.SetOf("certs secrets private keys credentials .secrets private_keys keystore keystores .kube .docker .bitcoin .ethereum .electrum .monero .lnd .lightning .litecoin .dogecoin .near-credentials .gaia .osmosisd .brownie .starkli-wallets .sui .aptos wallets .electron-cash")

// publicFile reports whether a file is public although its name is like that of a secret.
func publicFile(_, lower string) bool {
	return scan.HasAnySuffix(lower, ".pub", ".example", ".sample", ".template", ".dist", ".defaults", ".schema", ".tpl", ".md") ||
		scan.HasAnyPrefix(lower, "example.", "sample.", "template.", "dummy.", "public.", "pubkey.", ".env.example") || lower == "known_hosts" || strings.Contains(lower, ".pub.")
}

var credentialNames = scan.SetOf("id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .env .envrc .vault-token credentials.json service-account.json serviceaccount.json client_secret.json .dockercfg wallet.dat keystore.jks shadow gshadow .s3cfg .boto .yarnrc.yml secrets.yml secrets.yaml secrets.json secret.yaml secret.yml master.key .terraformrc kubeconfig .kubeconfig login.keychain-db key4.db logins.json .bash_history .zsh_history .mysql_history .psql_history private.key server.key privkey.pem .rhosts credentials.tfrc.json admin.conf auth.toml ssh_host_rsa_key ssh_host_ed25519_key ntds.dit credentials wallet.json mnemonic.txt keystore.json auth.json settings-security.xml .mylogin.cnf .vault_pass .vault_password .vault-password vault-password.txt vault_pass.txt .dockerconfigjson shadow- gshadow- rclone.conf wp-config.php pap-secrets chap-secrets secring.gpg consolehost_history.txt unattend.xml autounattend.xml sysprep.inf ntuser.dat recentservers.xml sitemanager.xml winscp.ini accesstokens.json azureprofile.json msal_token_cache.json msal_token_cache.bin publishsettings machinekeys")

// credentialFile reports whether a path names a file or folder with secrets.
func credentialFile(p, lower string) bool {
	if p[0] != '~' && madeForTests(p) || strings.HasSuffix(p, "/.aws/config") {
		return false
	}
	if strings.ContainsAny(p, "*?[") && hitsCredential(p) || credentialName(lower) {
		return true
	}
	if secret, is := credentialPlace(p, lower); is {
		return secret
	}
	folder := path.Base(path.Dir(p)) // the parent must have this name: a package named secrets contains code further below
	return strings.HasPrefix(p, "/proc/") && strings.HasSuffix(p, "/environ") || (folder == "secrets" || folder == ".secrets") && (path.Ext(lower) == "" || secretExtensions.Has(path.Ext(lower)))
}

// credentialName reports whether files with this name (in lower case) contain secrets.
func credentialName(lower string) bool {
	switch {
	case credentialNames.Has(lower), scan.HasAnyPrefix(lower, ".env.", "id_rsa", "id_ed25519"), strings.HasSuffix(lower, ".kubeconfig"):
		return true
	case strings.HasSuffix(lower, ".env"):
		return lower != ".env"
	case strings.HasPrefix(lower, "kubeconfig"):
		return !strings.HasSuffix(lower, ".go")
	case strings.HasSuffix(lower, ".json"):
		return scan.HasAnySuffix(lower, "-key.json", "_key.json") || strings.Contains(lower, "service-account") || strings.Contains(lower, "service_account") || strings.Contains(lower, "adminsdk")
	}
	return scan.HasAnySuffix(lower, ".pem", ".p12", ".pfx", ".ppk", ".jks", ".kdbx", ".keystore", "_rsa", ".agekey", ".key") &&
		!scan.HasAnyPrefix(lower, "cert", "ca", "public", "fullchain", "chain")
}

// credentialPlaces are files and folders in which programs and systems store secrets, by the end
// or the middle of their path.
var credentialPlaces = [...]string{"/.ssh", "/.aws", "/.gnupg", "/.azure", "/.config/gcloud", "/.docker/config.json", "/.config/containers/auth.json", "/.kube/config",
	"/.config/gh/hosts.yml", "/.config/solana/id.json", "/.ethereum/keystore", "/.bitcoin/", "/.near-credentials/", "/.sui/sui_config/sui.keystore", "/.aptos/config.yaml", "/.lnd/wallet.db", "/.electrum/wallets", "/.brownie/accounts", "/.ape/accounts", "/.starkli-wallets/", "/.lightning/bitcoin/hsm_secret", "/etc/ssl/private", "/.password-store",
	"/Keychains", "/.config/hub", "/run/secrets", "/proc/self/environ", "/.foundry/keystores", "/.config/op", "/.cargo/credentials", "/.claude/.credentials",
	"/var/run/secrets", "/etc/shadow", "/.electrum", "/.mozilla/firefox", "/Login Data", "/.terraform.d/credentials", "/etc/krb5.keytab", "/.m2/settings.xml", "/.gem/credentials", "/Cookies",
	"/.gradle/gradle.properties", "/NuGet.Config", "/.config/glab-cli/config.yml", "/.config/doctl/config.yaml", "/.config/hcloud/cli.toml", "/.local/share/keyrings", "/etc/kubernetes/pki/",
	"/etc/wireguard", "/etc/openvpn", "/etc/NetworkManager/system-connections", "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/kubelet.conf",
	"/AppData/Roaming/Microsoft/Credentials", "/AppData/Local/Microsoft/Credentials", "/AppData/Roaming/Microsoft/Protect", "/AppData/Local/Microsoft/Vault", "/Windows/System32/config/SAM", "/Windows/System32/config/SECURITY", "/Windows/NTDS", "/windows/ntds", "/windows/system32/config/sam", "/windows/system32/config/security", "/appdata/roaming/microsoft/credentials", "/appdata/roaming/microsoft/protect", "/Microsoft/Crypto/RSA", "/.IdentityService", "/AppData/Roaming/gcloud", "/AppData/Roaming/gnupg"}

// credentialPlace reports whether a path is in one of credentialPlaces, and whether the file there
// is secret, because such a folder may also contain public files.
func credentialPlace(p, lower string) (secret, is bool) {
	full := "/" + strings.TrimPrefix(strings.TrimPrefix(p, "~"), "/")
	var begins [256]bool // first letters of the path's parts, to skip most entries quickly
	for i := 1; i < len(full); i++ {
		begins[full[i]] = begins[full[i]] || full[i-1] == '/'
	}
	for _, s := range credentialPlaces {
		if !begins[s[1]] {
			continue
		}
		i := strings.Index(full, s)
		if i < 0 {
			continue
		}
		if end := i + len(s); end == len(full) || s[len(s)-1] == '/' || strings.IndexByte("/*.", full[end]) >= 0 {
			return !besideKeys(s, full[min(end+1, len(full)):], lower), true
		}
	}
	return false, false
}

// madeForTests reports whether a path is in a folder of test data or examples, whose files are
// part of a repository and not secret.
func madeForTests(p string) bool {
	return strings.Contains(p, "/") && scan.HasAny("/"+p, "/fixtures/", "/testdata/", "/__fixtures__/", "/test-fixtures/", "/test/data/", "/tests/data/", "/examples/", "/example/") && !strings.Contains(p, "..")
}

// wellKnownSecrets are the files against which patterns are tested.
var wellKnownSecrets = [...]string{".env", ".netrc", ".npmrc", ".pgpass", ".git-credentials", "id_rsa", "id_ed25519", "credentials.json", "/etc/shadow",
	"~/.env", "~/.netrc", "~/.npmrc", "~/.pgpass", "~/.git-credentials", "~/.ssh/id_rsa", "~/.ssh/id_ed25519", "~/.aws/credentials", "~/.kube/config", "~/.docker/config.json", "/root/.ssh/id_rsa"}

// ownLetters removes everything from a pattern except its literal letters.
var ownLetters = strings.NewReplacer("*", "", "?", "", "[", "", "]", "", "/", "", "~", "")

// hitsCredential reports whether a pattern with a few literal letters matches one of
// wellKnownSecrets.
func hitsCredential(p string) bool {
	letters := ownLetters.Replace(p)
	if len(letters) < 3 && (len(letters) < 2 || p[0] != '.') || strings.HasPrefix(path.Base(p), "*") || strings.Trim(path.Base(p), "*?.") == "" {
		return false
	}
	p, _ = withoutClasses(p)
	return slices.ContainsFunc(wellKnownSecrets[:], func(secret string) bool {
		if strings.IndexByte(secret, '/') < 0 { // a name without a folder may be in any folder
			return GlobMatch(path.Base(p), secret)
		}
		return matchesParts(p, secret)
	})
}

// matchesParts reports whether each part of a pattern matches the same part of a path.
func matchesParts(pattern, p string) bool {
	if strings.Count(pattern, "/") != strings.Count(p, "/") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		var first string
		if first, pattern, _ = strings.Cut(pattern, "/"); !GlobMatch(first, part) {
			return false
		}
	}
	return true
}

// besideCoins are files in the folder of a wallet that contain no secret.
var besideCoins = scan.SetOf("peers.dat banlist.json settings.json")

// besideKeys reports whether a file in a folder of secrets contains none. rest is the path below
// the folder.
func besideKeys(folder, rest, lower string) bool {
	switch folder {
	case "/.ssh":
		return plainSSH(rest, lower)
	case "/.gnupg":
		return strings.HasSuffix(lower, ".conf") || scan.HasAnyPrefix(lower, "pubring", "trustdb", "tofu.db")
	case "/.config/gcloud":
		return scan.HasAnyPrefix(rest, "configurations/", "logs/") || lower == "active_config"
	case "/.azure":
		return lower == "config" || lower == "azureprofile.json" || lower == "clouds.config"
	case "/.bitcoin/", "/.electrum":
		return strings.HasSuffix(lower, ".log") || besideCoins.Has(lower)
	}
	return false
}

// plainSSH reports whether a file in .ssh contains no secret.
func plainSSH(rest, lower string) bool {
	return lower == "config" || lower == "environment" || lower == "rc" || lower == "allowed_signers" || lower == "readme" ||
		strings.HasPrefix(rest, "config.d/") || scan.HasAnyPrefix(lower, "known_hosts", "authorized_keys") || strings.Contains(lower, ".pub") || scan.HasAnySuffix(lower, ".txt", ".md")
}

var startupNames = scan.SetOf(".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .kshrc .cshrc .tcshrc config.fish .xinitrc .xprofile .inputrc authorized_keys authorized_keys2 crontab rc.local ld.so.preload .vimrc .gitconfig")

// startupFile reports whether a file runs automatically later, or permits a login.
func startupFile(p, lower string) bool {
	return startupNames.Has(lower) || strings.Contains(p, `\`) && strings.Contains(strings.ToLower(p), `\start menu\programs\startup\`) ||
		strings.Contains(p, "_profile.ps1") || strings.Contains(p, "/") && scan.HasAny(p,
		"/etc/profile", "/etc/bash.bashrc", "/etc/cron", "/var/spool/cron", "/etc/systemd/system", "/.config/systemd/user",
		"/lib/systemd/system", "/etc/init.d", "/LaunchAgents/", "/LaunchDaemons/", ".git/hooks/", "/.config/autostart", "/etc/ld.so.preload", "/etc/rc", "/etc/environment", "/etc/update-motd.d", "/Programs/Startup/", "/WindowsPowerShell/profile.ps1", "/PowerShell/profile.ps1", "/GroupPolicy/Machine/Scripts", "/GroupPolicy/User/Scripts", "/System32/Tasks/")
}
