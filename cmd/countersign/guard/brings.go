package guard

import (
	"cmp"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/pattern"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
)

// Programs that unpack, apply a patch or download write files that their arguments do not name.
// The guard judges them by the folder into which they write.

// bringers lists programs that write files which their arguments do not name, each with the words
// that make it do so; nil means that the program always does. A word such as -O also matches
// inside a group of short options such as -sLO.
var bringers = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"tar": nil, "gtar": nil, "bsdtar": nil, "pax": nil, "cpio": nil, "bsdcpio": nil, "unzip": nil, "bsdunzip": nil, "unar": nil, "unrar": nil, "rar": nil, "jar": nil, "unshar": nil,
		"7z": nil, "7za": nil, "7zz": nil, "7zr": nil, "ouch": nil, "patch": nil, "gpatch": nil, "stow": nil, "degit": nil, "tiged": nil, "giget": nil, "sftp": nil, "lftp": nil, "lftpget": nil,
		"git": {"clone", "pull", "merge", "checkout", "switch", "restore", "reset", "stash", "cherry-pick", "revert", "rebase", "am", "apply", "submodule", "subtree", "read-tree", "checkout-index", "sparse-checkout", "bisect", "clean", "lfs"},
		"gh":  {"clone", "download", "checkout"}, "glab": {"clone", "download", "checkout"},
		"svn": {"checkout", "co", "update", "up", "export", "switch", "patch", "merge"}, "hg": {"clone", "pull", "update", "up", "import", "unbundle"}, "jj": {"git", "new", "edit", "restore"},
		"curl": {"-O", "-J", "--remote-name", "--remote-name-all", "--remote-header-name", "-K", "--config"}, "wget": nil, "wget2": nil, "aria2c": nil, "axel": nil,
		"http": {"-d", "--download"}, "https": {"-d", "--download"}, "xh": {"-d", "--download"},
		"aws": {"cp", "sync", "mv"}, "gsutil": {"cp", "rsync", "mv"}, "gcloud": {"cp", "rsync", "mv"}, "az": {"download", "download-batch", "copy", "sync"}, "azcopy": {"copy", "cp", "sync"}, "s3cmd": {"get", "sync"}, "mc": {"cp", "mirror"},
		"rclone": {"copy", "copyto", "sync", "bisync", "move", "moveto"}, "docker": {"cp"}, "podman": {"cp"}, "nerdctl": {"cp"}, "kubectl": {"cp"}, "oc": {"cp", "rsync"}, "adb": {"pull"},
		"npm": {"pack"}, "pnpm": {"pack"}, "python": {"zipfile", "tarfile"}, "python3": {"zipfile", "tarfile"}, "oras": {"pull"}, "helm": {"pull"}, "hf": {"download"}, "huggingface-cli": {"download"},
	}
})

// packs has, for programs in bringers, a pattern of the words with which they create or list an
// archive instead of unpacking one.
var packs = map[string]func() *regexp.Regexp{
	"tar": packsTar, "gtar": packsTar, "bsdtar": packsTar, "cpio": pattern.Lazy(`^(?:-[a-z]*[ot]|--create|--list)`), "jar": pattern.Lazy(`^-?[a-z]*[ctu]`),
	"7z": packs7z, "7za": packs7z, "7zz": packs7z, "7zr": packs7z, "rar": packs7z, "unzip": pattern.Lazy(`^-[lvtZpc]`),
}

var (
	packsTar = pattern.Lazy(`^(?:-?[A-Za-wyz]*[crtu][A-Za-wyz]*|--create|--list|--append|--update)$`)
	packs7z  = pattern.Lazy(`^[adltu]$`)
)

// brings reports whether a call writes unnamed files into a folder with agents' settings or the
// guard's state, or downloads a protected file under the name in its URL.
func (f fence) brings(u *actionrisk.Use, folder string) bool {
	verbs, known := bringers()[u.Program]
	words := u.Words[1:]
	if !known || verbs != nil && !slices.ContainsFunc(words, func(w act.Word) bool { return isVerb(verbs, w.Text) }) ||
		makesArchive(u.Program, words) {
		return false
	}
	if f.takesIn(folder, verbs == nil) {
		return true
	}
	for i, w := range words {
		for _, spelled := range spellings(w) {
			if path := f.account.pathOf(folder, strings.TrimSuffix(spelled.Text, "/.")); spelled.Known() && f.takesIn(path, verbs == nil) && !sendsAway(words, i) {
				return true
			}
		}
		if name := nameOfAddress(w.Text); name != "" && slices.ContainsFunc([]string{path.Base(name), name}, func(n string) bool { return f.holds(f.account.pathOf(folder, n)) }) {
			return true
		}
	}
	return false
}

// makesArchive reports whether a call of a program in packs creates or lists an archive.
func makesArchive(program string, words []act.Word) bool {
	says := packs[program]
	for i, w := range words {
		if says != nil && (i == 0 || strings.HasPrefix(w.Text, "-")) && says().MatchString(w.Text) {
			return true
		}
	}
	return false
}

// isVerb reports whether a word is one of verbs, or a group of short options that contains one.
func isVerb(verbs []string, word string) bool {
	return slices.ContainsFunc(verbs, func(v string) bool {
		return v == word || len(v) == 2 && v[0] == '-' && len(word) > 2 && word[0] == '-' && word[1] != '-' && strings.Contains(word, v[1:]) && strings.Trim(word[1:], "OJLskfS#v") == ""
	})
}

// takesIn reports whether a folder contains agents' settings or the guard's state. If unpacks is
// true, for a program that unpacks, it also reports the folder of the guard's program.
func (f fence) takesIn(path string, unpacks bool) bool {
	if path == "" {
		return false
	}
	real := files.Real(path)
	return settingsFolder(path) || settingsFolder(real) || slices.ContainsFunc(f.paths().folders, func(s string) bool { return below(real, s) }) ||
		unpacks && f.account.Program != "" && filepath.Dir(f.account.Program) == real || slices.ContainsFunc(f.account.userFiles(), func(file string) bool { return filepath.Dir(file) == real && real != f.account.Home })
}

// sendsAway reports whether the operand at i is copied to a remote address in a later operand.
func sendsAway(words []act.Word, i int) bool {
	if i > 0 && strings.HasPrefix(words[i-1].Text, "-") || strings.HasPrefix(words[i].Text, "-") {
		return false
	}
	return slices.ContainsFunc(words[i+1:], func(w act.Word) bool { return strings.Contains(w.Text, "://") || act.RemotePath(w.Text) })
}

// nameOfAddress returns the path of a URL without slashes at its ends, or "" if the word is not a
// URL.
func nameOfAddress(word string) string {
	if !strings.HasPrefix(word, "http") && !strings.HasPrefix(word, "ftp") {
		return ""
	}
	u, err := url.Parse(word)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.Trim(u.Path, "/")
}

// onThisMachine returns the path in a word such as "localhost:x", and any other word unchanged.
func onThisMachine(w act.Word) act.Word {
	host, name, ok := strings.Cut(w.Text, ":")
	if !ok || !act.RemotePath(w.Text) || !hosts.LocalHost(host[strings.LastIndexByte(host, '@')+1:]) {
		return w
	}
	if w.Text, w.At = name, -1; !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") {
		w.Text = "~/" + name
	}
	return w
}

// sandboxes lists programs that run others with folders of this machine mounted at other paths.
// mountOptions lists the options that name those folders.
var (
	sandboxes    = []string{"docker", "podman", "nerdctl", "finch", "container", "buildah", "bwrap", "systemd-nspawn", "singularity", "apptainer", "firejail", "proot", "nsjail", "distrobox", "toolbox", "multipass"}
	mountOptions = []string{"-v", "--volume", "--mount", "-B", "--bind", "--bind-try", "--dev-bind", "-b", "--bindmount", "--whitelist"}
	readOnly     = pattern.Lazy(`(?::|,)(?:[a-zA-Z,]*,)?(?:ro|readonly)(?:,|$)|readonly=true`)
)

// mounts reports whether a call gives a sandbox write access to a protected path or to a folder
// that contains one. A program in the sandbox could change it under another path.
func (f fence) mounts(u *actionrisk.Use, cwd string) bool {
	if u.Remote || !slices.Contains(sandboxes, u.Program) {
		return false
	}
	folder := f.account.folderOf(u, cwd)
	for i := 1; i < len(u.Words); i++ {
		option, _, given := strings.Cut(u.Words[i].Text, "=")
		if !slices.Contains(mountOptions, option) || !given && i+1 == len(u.Words) {
			continue
		}
		w := u.Words[i].Tail(len(option) + 1)
		if !given {
			w = u.Words[i+1]
		}
		w.Text = fromEnvironmentOr(w)
		value, _, _ := strings.Cut(w.Text, ":")
		if strings.Contains(w.Text, "source=") || strings.Contains(w.Text, "src=") {
			_, value, _ = strings.Cut(strings.Replace(w.Text, "source=", "src=", 1), "src=")
			value, _, _ = strings.Cut(value, ",")
		}
		path := f.account.pathOf(folder, value)
		if value == "" || path == "" || readOnly().MatchString(w.Text) {
			continue
		}
		onTheWay := func(file string) bool { return below(file, path) && files.Exists(file) }
		if f.holds(path) || f.takesIn(path, false) || !f.worksIn(path, folder) && slices.ContainsFunc(slices.Concat(f.paths().files, f.paths().folders), onTheWay) {
			return true
		}
	}
	return false
}

// fromEnvironmentOr returns the text of a word. A variable in the word is replaced by its value in
// the guard's environment, if it has one.
func fromEnvironmentOr(w act.Word) string { return cmp.Or(fromEnvironment(w).Text, w.Text) }
