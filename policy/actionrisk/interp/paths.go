package interp

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// ClassOf returns the class of a path relative to a working directory ("" is that of the action).
// Results are cached, because many predicates ask about the same few paths.
func (e *Env) ClassOf(w act.Word, cwd string) paths.Class {
	if w.Text == "" {
		return 0
	}
	if !startsAtRoot(cwd) && e.Context.Cwd != "" && cwd != string(scan.Hole) {
		cwd = path.Join(e.Context.Cwd, cwd)
	}
	key := paths.SeenFrom{Path: w.Text, Cwd: cwd}
	c, ok := e.classes[key]
	if ok {
		return c
	}
	if c = e.classify(w, cwd); c&paths.IsCredential != 0 && e.certificate(w, cwd) {
		c = c&^paths.IsCredential | paths.IsPublic
	}
	if len(e.classes) < scan.MaxClasses {
		scan.Put(&e.classes, key, c)
	}
	return c
}

// certificate reports whether the name of a file is that of a public certificate, and the folder
// is not one that has only keys.
func (e *Env) certificate(w act.Word, cwd string) bool {
	folder, name := path.Split(w.Text)
	if w.Glob || !slices.ContainsFunc(e.Groups.Get("certificates"), func(pattern string) bool { return paths.GlobMatch(pattern, strings.ToLower(name)) }) {
		return false
	}
	w.Text = folder + "readme"
	return e.classify(w, cwd)&(paths.IsCredential|paths.IsKeyFolder) == 0
}

func (e *Env) classify(w act.Word, cwd string) paths.Class {
	t := w.Text
	if len(e.links) > 0 {
		t = e.behindLink(t, cwd)
	}
	if rest, ok := strings.CutPrefix(t, "file://"); ok && rest != "" {
		t = rest
	}
	rooted := startsAtRoot(t)
	if t[0] == scan.Hole || !rooted && cwd == string(scan.Hole) {
		return e.dynamicClass(t)
	}
	if c, ok := paths.WindowsClass(t); ok {
		return c
	}
	if rooted {
		full := path.Clean(t)
		return e.absoluteClass(full) | paths.IsAbsolute | paths.KindOfFile(full)
	}
	return e.relativeClass(t, cwd)
}

// relativeClass returns the class of a path that is relative to a folder.
func (e *Env) relativeClass(t, cwd string) paths.Class {
	if cwd == "" || cwd == "." {
		return paths.RelativeClass(path.Clean(t)) | paths.KindOfFile(t)
	}
	full := path.Clean(cwd + "/" + t)
	if c, ok := paths.BelowDrive(full, t, cwd); ok {
		return c
	}
	if startsAtRoot(cwd) {
		return e.absoluteClass(full) | paths.KindOfFile(full)
	}
	return paths.RelativeClass(full) | paths.KindOfFile(full)
}

// startsAtRoot reports whether a path does not depend on the working directory.
func startsAtRoot(p string) bool { return p != "" && (p[0] == '/' || p[0] == '~') }

// behindLink resolves a path through the links that the command made.
func (e *Env) behindLink(t, cwd string) string {
	full := t
	if !startsAtRoot(t) && cwd != "" {
		full = cwd + "/" + t
	}
	full = strings.TrimPrefix(full, "./")
	for _, l := range e.links {
		if l.Mounted && strings.TrimSuffix(full, "/") == l.At {
			return l.To
		}
		if rest, ok := strings.CutPrefix(full, l.At); ok && strings.HasPrefix(rest, "/") {
			return strings.TrimSuffix(l.To, "/") + rest
		}
	}
	return t
}

// Linked records a link made by "ln -s", and clears the cache of path classes, which may depend on
// it.
func (e *Env) Linked(sh *Process, v *act.Invocation, from, to act.Word) {
	if v.Exe != "ln" || !v.Has("-s") && !v.Has("--symbolic") || from.Text == "" || !startsAtRoot(from.Text) && !strings.Contains(from.Text, ":/") || len(e.links) >= scan.MaxFiles {
		return
	}
	e.links = append(e.links, paths.Link{At: e.Key(sh.Cwd, to.Text), To: from.Text})
	clear(e.classes)
}

// SeenAt records that a folder is mounted at a path.
func (e *Env) SeenAt(sh *Process, at act.Word, folder string) {
	if !at.Known() || at.Text == "" || folder == "" || len(e.links) >= scan.MaxFiles {
		return
	}
	if !startsAtRoot(folder) && sh.Cwd != "" {
		folder = sh.Cwd + "/" + folder
	}
	e.links = append(e.links, paths.Link{At: strings.TrimSuffix(e.Key(sh.Cwd, at.Text), "/"), To: folder, Mounted: true})
	clear(e.classes)
}

// dynamicClass returns the class of a path whose first part is unknown. The rest may still
// identify it.
func (e *Env) dynamicClass(t string) paths.Class {
	rest := strings.Trim(t, string(scan.Hole))
	if len(rest) < 2 || rest[0] != '/' {
		return paths.IsDynamic
	}
	if paths.RelativeClass(path.Clean(rest[1:]))&paths.IsRebuildable != 0 {
		return paths.IsRebuildable | paths.KindOfFile(rest)
	}
	return paths.IsDynamic | paths.KindOfFile(rest)
}

// fixedPaths are the classes of paths that every machine has.
var fixedPaths = map[string]paths.Class{
	"/dev/null": paths.IsNullDevice, "/dev/stdout": paths.IsNullDevice, "/dev/stderr": paths.IsNullDevice, "/dev/stdin": paths.IsNullDevice,
	"/dev/tty": paths.IsNullDevice, "/dev/zero": paths.IsNullDevice, "/dev/full": paths.IsNullDevice,
	"/tmp": paths.IsTemp | paths.IsTempRoot, "/private/tmp": paths.IsTemp | paths.IsTempRoot, "/var/tmp": paths.IsTemp | paths.IsTempRoot,
	"/var/folders": paths.IsTemp | paths.IsTempRoot, "/dev/shm": paths.IsTemp | paths.IsTempRoot,
}

// fixedFolders are the classes of everything below certain folders. The first match counts.
var fixedFolders = []struct {
	below string
	class paths.Class
}{
	{"/dev/fd/", paths.IsNullDevice | paths.IsTemp}, {"/dev/shm/", paths.IsTemp},
	{"/dev/tcp/", paths.IsNullDevice}, {"/dev/udp/", paths.IsNullDevice}, {"/dev/", paths.IsDevice | paths.IsSystem},
}

// absoluteClass returns the class of a clean path that begins with "/" or "~".
func (e *Env) absoluteClass(p string) paths.Class {
	if p == "/" || strings.Trim(p, "/*.?") == "" && p[0] == '/' {
		return paths.IsRoot | paths.IsCatchAll
	}
	if c := fixedPaths[p]; c != 0 {
		return c
	}
	for _, f := range fixedFolders {
		if strings.HasPrefix(p, f.below) {
			return f.class
		}
	}
	if strings.Contains(p, "/AppData/Local/Temp/") || paths.UnderAny(p, "/tmp", "/private/tmp", "/var/tmp", "/var/folders", "/private/var/folders", "/var/cache", "/run/user") {
		return paths.IsTemp
	}
	if c := paths.HomeClass(p); c != 0 {
		if c == paths.IsHome {
			return c
		}
		return e.inside(p, c)
	}
	if paths.SystemPath(p) {
		return paths.IsSystem
	}
	return e.inside(p, paths.IsOutside)
}

// inside returns the class of a path. If the path is not below the working directory, it returns a
// class only for repository folders and build outputs, and its second argument for every other
// path.
func (e *Env) inside(p string, otherwise paths.Class) paths.Class {
	cwd := e.Context.Cwd
	if cwd != "" && cwd[0] == '/' && cwd != "/" {
		if p == cwd || p == cwd+"/*" {
			return paths.IsCwd | paths.IsCatchAll
		}
		if rest, ok := strings.CutPrefix(p, cwd+"/"); ok {
			return paths.RelativeClass(rest)
		}
	}
	if paths.IsVCSName(path.Base(p)) {
		return paths.IsVCS | paths.IsOutside
	}
	if paths.Rebuildable(p) {
		return paths.IsRebuildable
	}
	return otherwise
}
