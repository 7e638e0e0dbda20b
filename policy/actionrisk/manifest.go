package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// kindManifest items are Kubernetes objects, and changes of them, that a command
// hands over as text; their name is the object's kind in lower case, "patch" if it
// says none, and their tags are what its members say.
const kindManifest = "manifest"

// manifestWalk gathers what one object says.
type manifestWalk struct {
	sh       *shell
	src      *source
	tags     []string
	mounts   bool // its containers reach files that outlive them
	commands [][]*jsonNode
}

// manifests judges the objects of a text given to kubectl and its kind.
func (sh *shell) manifests(src *source, v *invocation) {
	text := *src
	if name, value, ok := strings.Cut(text.text, "="); ok && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[]") == "" && strings.HasPrefix(value, "{") { // --set-json a.b={…}
		text.text, text.at = value, -1
	}
	for _, n := range yamlDocuments(text.text, &sh.e.budget) {
		sh.manifest(&text, n, v, 0)
	}
}

func (sh *shell) manifest(src *source, n *jsonNode, v *invocation, depth int) {
	if n == nil {
		return
	}
	if items := n.get("items"); items != nil && items.kind == '[' && depth < 4 {
		for _, k := range items.kids {
			sh.manifest(src, k, v, depth+1)
		}
		return
	}
	w := &manifestWalk{sh: sh, src: src}
	w.node(n, "")
	kind := strings.ToLower(n.str("kind"))
	if kind == "" {
		kind = "patch"
	}
	meta := n.get("metadata")
	sh.e.match(&item{kind: kindManifest, name: kind, tags: w.tags, src: src, from: n.start, to: n.end,
		target: printable(meta.str("name")), words: meta.str("namespace") + " " + placeOf(v)})
	inner := sh.behalf(src, "container")
	inner.remote, inner.cwd, inner.scratch = true, "", !w.mounts
	for _, c := range w.commands {
		inner.startNode(inner.src, v, c...)
	}
}

// placeOf are the words of a command that say where it acts.
func placeOf(v *invocation) string {
	var out []string
	for i := range v.opts {
		if o := &v.opts[i]; o.given && labelOptions[o.name] {
			out = append(out, o.value.Text)
		}
	}
	return strings.Join(out, " ")
}

func (w *manifestWalk) tag(name string) {
	if !slices.Contains(w.tags, name) {
		w.tags = append(w.tags, name)
	}
}

// node looks at a value and what stands below it.
func (w *manifestWalk) node(n *jsonNode, key string) {
	if n == nil || !w.sh.e.budget.spend(1) {
		return
	}
	if path := n.str("path"); n.get("op") != nil && path != "" { // a JSON patch: one member by its path
		segments := strings.Split(strings.TrimRight(path, "-/0123456789"), "/")
		w.member(n, segments[len(segments)-1], n.get("value"))
	}
	if n.get("command", "entrypoint") != nil || n.get("args") != nil {
		w.commands = append(w.commands, []*jsonNode{n.get("command", "entrypoint"), n.get("args")})
	}
	for i, k := range n.kids {
		if n.kind == '{' {
			w.member(n, n.keys[i], k)
		}
		w.node(k, key)
	}
}

// hostSockets are sockets through which a container commands its machine.
var hostSockets = []string{"docker.sock", "containerd.sock", "crio.sock", "podman.sock", "dockershim.sock", "cri-dockerd.sock", "buildkitd.sock"}

// strongCapabilities let a container out.
var strongCapabilities = scan.SetOf("ALL SYS_ADMIN SYS_PTRACE SYS_MODULE SYS_RAWIO DAC_READ_SEARCH BPF SYS_BOOT MAC_ADMIN CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_SYS_MODULE CAP_SYS_RAWIO CAP_DAC_READ_SEARCH CAP_BPF")

// member notes what one member says.
func (w *manifestWalk) member(of *jsonNode, key string, v *jsonNode) {
	if v == nil {
		return
	}
	switch key {
	case "privileged", "hostPID", "hostIPC", "hostNetwork", "allowPrivilegedContainer":
		if v.truth() {
			w.tag(key)
		}
	case "hostPath":
		w.mounts = true
		p := v.str("path")
		if p == "" {
			p = v.text
		}
		w.hostPath(p)
	case "persistentVolumeClaim":
		w.mounts = true
	case "add":
		for _, c := range append(v.kids, v) {
			if strongCapabilities[strings.ToUpper(c.text)] {
				w.tag("capability")
			}
		}
	case "replicas", "maxReplicas", "replicaCount":
		if v.text == "0" {
			w.tag("no-replicas")
		}
	case "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io~1enforce":
		if v.text == "privileged" {
			w.tag("guard-off")
		}
	case "finalizers":
		if v.kind == 'n' || v.kind == '[' && len(v.kids) == 0 {
			w.tag("no-finalizers")
		}
	case "failurePolicy":
		if v.text == "Ignore" {
			w.tag("guard-off")
		}
	case "clientConfig": // every object of a kind is shown to a host outside of the cluster
		if v.get("url") != nil {
			w.tag("guard-off")
		}
	case "roleRef", "subjects", "verbs", "resources":
		w.access(of, key, v)
		fallthrough
	case "bases", "components", "helmCharts", "crds":
		if slices.ContainsFunc(v.kids, func(k *jsonNode) bool {
			return strings.Contains(k.text, "://") || strings.HasPrefix(k.text, "github.com/") || strings.HasPrefix(k.text, "git@")
		}) {
			w.tag("remote")
		}
	}
}

// hostPath notes a folder of the node.
func (w *manifestWalk) hostPath(p string) {
	if slices.ContainsFunc(hostSockets, func(s string) bool { return strings.HasSuffix(p, s) }) {
		w.tag("host-root")
		return
	}
	switch c := w.sh.e.classOf(Word{Text: p}, ""); {
	case c&paths.IsRoot != 0:
		w.tag("host-root")
	case c&(paths.IsSystem|paths.IsHome|paths.IsCredential|paths.IsAccounts|paths.IsDevice) != 0 || paths.UnderAny(p, "/proc", "/sys", "/var/lib/kubelet", "/var/lib/docker", "/var/lib/etcd", "/run"):
		w.tag("host-system")
	}
}

// access notes who may do what.
func (w *manifestWalk) access(of *jsonNode, key string, v *jsonNode) {
	holds := func(n *jsonNode, names ...string) bool {
		return n != nil && slices.ContainsFunc(n.kids, func(k *jsonNode) bool { return slices.Contains(names, k.text) })
	}
	switch key {
	case "roleRef":
		if w.tag("binding"); v.str("name") == "cluster-admin" {
			w.tag("all-rights")
		}
	case "subjects":
		subjects := v.kids
		if v.kind == '{' { // one that a patch adds
			subjects = []*jsonNode{v}
		}
		for _, s := range subjects {
			switch s.str("name") {
			case "system:anonymous", "system:unauthenticated", "system:authenticated", "system:masters", "system:serviceaccounts":
				w.tag("all-rights")
			}
		}
	case "verbs":
		if holds(v, "*") && holds(of.get("resources"), "*") || holds(v, "escalate", "bind", "impersonate") {
			w.tag("all-rights")
		}
	case "resources":
		if w.tag("role"); holds(v, "*") && holds(of.get("verbs"), "*") {
			w.tag("all-rights")
		}
	}
}

// editFacts are what a replacement text of a filter writes into an object: the text
// of an editor or of sed in front of kubectl, which cannot be applied to a text that
// nobody knows.
var editFacts = []struct{ key, value, tag string }{
	{"replicas", "0", "no-replicas"}, {"maxReplicas", "0", "no-replicas"}, {"privileged", "true", "privileged"}, {"hostPID", "true", "hostPID"},
	{"hostNetwork", "true", "hostNetwork"}, {"hostIPC", "true", "hostIPC"}, {"path", "/", "host-root"}, {"name", "cluster-admin", "all-rights"},
}

// edited judges what filters or an editor write into an object that v changes.
func (sh *shell) edited(text string, v *invocation) {
	if text == "" || !sh.e.budget.spend(1+len(text)/16) {
		return
	}
	var tags []string
	if strings.Contains(replacements(text), "cluster-admin") {
		tags = append(tags, "all-rights")
	}
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \\\"'\t=:", r) {
			return ':'
		}
		return r
	}, replacements(text))
	for _, f := range editFacts {
		for rest := text; ; {
			i := strings.Index(rest, f.key+":")
			if i < 0 {
				break
			}
			rest = strings.TrimLeft(rest[i+len(f.key):], ":")
			if after, ok := strings.CutPrefix(rest, f.value); ok && (after == "" || !scan.IsNameByte(after[0])) {
				tags = append(tags, f.tag)
			}
		}
	}
	if len(tags) > 0 {
		sh.e.match(&item{kind: kindManifest, name: "patch", tags: tags, src: sh.src, from: v.from, to: v.to, words: placeOf(v)})
	}
}

// replacements are what the commands of sed among the words put in; of other words
// all of them.
func replacements(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		i := strings.Index(line, "s")
		for i >= 0 && i+1 < len(line) && (scan.IsNameByte(line[i+1]) || strings.IndexByte(" -.'\"", line[i+1]) >= 0 || i > 0 && scan.IsNameByte(line[i-1])) {
			next := strings.Index(line[i+1:], "s")
			if next < 0 {
				i = -1
				break
			}
			i += 1 + next
		}
		if i < 0 || i+1 >= len(line) {
			out = append(out, line)
			continue
		}
		parts := strings.Split(line[i:], line[i+1:i+2])
		for j := 2; j < len(parts); j += 3 {
			out = append(out, parts[j])
		}
	}
	return strings.Join(out, "\n")
}

// appliedManifest judges what a program such as kubectl reads on its input or in a file when
// the text itself is not known: what a dry run printed is made after all, and what
// filters wrote into it is applied.
func appliedManifest(sh *shell, f flow, v *invocation) {
	sh.edited(f.edit, v)
	if f.makes == nil || sh.src.depth > scan.MaxDepth {
		return
	}
	made := *f.makes
	made.argv = slices.DeleteFunc(slices.Clone(made.argv), func(w Word) bool {
		return strings.HasPrefix(w.Text, "--dry-run") || w.Text == "client" || w.Text == "server"
	})
	made.dry, made.opts, made.operands = false, nil, nil
	inner := sh.behalf(sh.src, v.exe)
	inner.run(&invocation{src: inner.src, argv: made.argv, stdin: made.stdin, env: made.env, from: v.from, to: v.to})
}

// clientConfig runs what the users of a kubeconfig are told to get their tokens with.
func (sh *shell) clientConfig(src *source, v *invocation) {
	for _, n := range yamlDocuments(src.text, &sh.e.budget) {
		users := n.get("users")
		if users == nil {
			continue
		}
		for _, u := range users.kids {
			inner := sh.behalf(src, "credential plugin")
			user := u.get("user")
			if x := user.get("exec"); x != nil {
				inner.startNode(inner.src, v, x.get("command"), x.get("args"))
			}
			if c := user.get("auth-provider").get("config"); c != nil {
				inner.startNode(inner.src, v, c.get("cmd-path"), c.get("cmd-args"))
			}
		}
	}
}

// editedBy judges what an editor that needs no person writes.
func editedBy(sh *shell, v *invocation, _ int) {
	for _, name := range [...]string{"KUBE_EDITOR", "VISUAL", "EDITOR"} {
		sh.edited(sh.variable(v, name).Text, v)
	}
}

// manifestObject judges an object that describes something of a cluster.
func manifestObject(sh *shell, src *source, n *jsonNode, v *invocation) { sh.manifest(src, n, v, 0) }
