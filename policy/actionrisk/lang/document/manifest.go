package document

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// kindManifest items are Kubernetes objects, and changes of them, that a command
// hands over as text; their name is the object's kind in lower case, "patch" if it
// says none, and their tags are what its members say.
const kindManifest = "manifest"

// manifestWalk gathers what one object says.
type manifestWalk struct {
	sh       *interp.Process
	src      *act.Source
	tags     []string
	mounts   bool // its containers reach files that outlive them
	commands [][]*tree.Node
}

// manifests judges the objects of a text given to kubectl and its kind.
func manifests(sh *interp.Process, src *act.Source, v *act.Invocation) {
	text := *src
	if name, value, ok := strings.Cut(text.Text, "="); ok && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[]") == "" && strings.HasPrefix(value, "{") { // --set-json a.b={…}
		text.Text, text.At = value, -1
	}
	for _, n := range tree.YAML(text.Text, &sh.Env.Budget) {
		manifest(sh, &text, n, v, 0)
	}
}

func manifest(sh *interp.Process, src *act.Source, n *tree.Node, v *act.Invocation, depth int) {
	if n == nil {
		return
	}
	if items := n.Get("items"); items != nil && items.Kind == '[' && depth < 4 {
		for _, k := range items.Kids {
			manifest(sh, src, k, v, depth+1)
		}
		return
	}
	w := &manifestWalk{sh: sh, src: src}
	w.node(n)
	kind := cmp.Or(strings.ToLower(n.Str("kind")), "patch")
	meta := n.Get("metadata")
	sh.Env.Match(&act.Item{Kind: kindManifest, Name: kind, Tags: w.tags, Src: src, From: n.Start, To: n.End,
		Target: act.Printable(meta.Str("name")), Words: meta.Str("namespace") + " " + interp.PlaceOf(v)})
	inner := sh.Behalf(src, "container")
	inner.Remote, inner.Cwd, inner.Scratch = true, "", !w.mounts
	for _, c := range w.commands {
		inner.StartNode(inner.Src, v, c...)
	}
}

func (w *manifestWalk) tag(name string) {
	if !slices.Contains(w.tags, name) {
		w.tags = append(w.tags, name)
	}
}

// node looks at a value and what stands below it.
func (w *manifestWalk) node(n *tree.Node) {
	if n == nil || !w.sh.Env.Budget.Spend(1) {
		return
	}
	if path := n.Str("path"); n.Get("op") != nil && path != "" { // a JSON patch: one member by its path
		segments := strings.Split(strings.TrimRight(path, "-/0123456789"), "/")
		w.member(n, segments[len(segments)-1], n.Get("value"))
	}
	if n.Get("command", "entrypoint") != nil || n.Get("args") != nil {
		w.commands = append(w.commands, []*tree.Node{n.Get("command", "entrypoint"), n.Get("args")})
	}
	for i, k := range n.Kids {
		if n.Kind == '{' {
			w.member(n, n.Keys[i], k)
		}
		w.node(k)
	}
}

// hostSockets are sockets through which a container commands its machine.
var hostSockets = []string{"docker.sock", "containerd.sock", "crio.sock", "podman.sock", "dockershim.sock", "cri-dockerd.sock", "buildkitd.sock"}

// strongCapabilities let a container out.
var strongCapabilities = scan.SetOf("ALL SYS_ADMIN SYS_PTRACE SYS_MODULE SYS_RAWIO DAC_READ_SEARCH BPF SYS_BOOT MAC_ADMIN CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_SYS_MODULE CAP_SYS_RAWIO CAP_DAC_READ_SEARCH CAP_BPF")

// valueTags say of a member what the tag of its object is, where its value is such.
var valueTags = map[string]struct {
	tag  string
	when func(*tree.Node) bool
}{
	"privileged": {"privileged", (*tree.Node).Truth}, "hostPID": {"hostPID", (*tree.Node).Truth}, "hostIPC": {"hostIPC", (*tree.Node).Truth},
	"hostNetwork": {"hostNetwork", (*tree.Node).Truth}, "allowPrivilegedContainer": {"allowPrivilegedContainer", (*tree.Node).Truth},
	"replicas": {"no-replicas", says("0")}, "maxReplicas": {"no-replicas", says("0")}, "replicaCount": {"no-replicas", says("0")},
	"pod-security.kubernetes.io/enforce": {"guard-off", says("privileged")}, "pod-security.kubernetes.io~1enforce": {"guard-off", says("privileged")},
	"finalizers":    {"no-finalizers", func(v *tree.Node) bool { return v.Kind == 'n' || v.Kind == '[' && len(v.Kids) == 0 }},
	"failurePolicy": {"guard-off", says("Ignore")},
	"clientConfig":  {"guard-off", func(v *tree.Node) bool { return v.Get("url") != nil }}, // every object of a kind is shown to a host outside of the cluster
}

func says(text string) func(*tree.Node) bool {
	return func(v *tree.Node) bool { return v.Text == text }
}

// member notes what one member says.
func (w *manifestWalk) member(of *tree.Node, key string, v *tree.Node) {
	if v == nil {
		return
	}
	if t, known := valueTags[key]; known && t.when(v) {
		w.tag(t.tag)
	}
	switch key {
	case "hostPath":
		w.mounts = true
		w.hostPath(cmp.Or(v.Str("path"), v.Text))
	case "persistentVolumeClaim":
		w.mounts = true
	case "add":
		if slices.ContainsFunc(append(v.Kids, v), func(c *tree.Node) bool { return strongCapabilities.Has(strings.ToUpper(c.Text)) }) {
			w.tag("capability")
		}
	case "roleRef", "subjects", "verbs", "resources":
		w.access(of, key, v)
		fallthrough
	case "bases", "components", "helmCharts", "crds":
		if slices.ContainsFunc(v.Kids, func(k *tree.Node) bool {
			return strings.Contains(k.Text, "://") || scan.HasAnyPrefix(k.Text, "github.com/", "git@")
		}) {
			w.tag("remote")
		}
	}
}

// hostPath notes a folder of the node.
func (w *manifestWalk) hostPath(p string) {
	if scan.HasAnySuffix(p, hostSockets...) {
		w.tag("host-root")
		return
	}
	switch c := w.sh.Env.ClassOf(act.Word{Text: p}, ""); {
	case c&paths.IsRoot != 0:
		w.tag("host-root")
	case c&(paths.IsSystem|paths.IsHome|paths.IsCredential|paths.IsAccounts|paths.IsDevice) != 0 || paths.UnderAny(p, "/proc", "/sys", "/var/lib/kubelet", "/var/lib/docker", "/var/lib/etcd", "/run"):
		w.tag("host-system")
	}
}

// access notes who may do what.
func (w *manifestWalk) access(of *tree.Node, key string, v *tree.Node) {
	all := false
	switch key {
	case "roleRef":
		w.tag("binding")
		all = v.Str("name") == "cluster-admin"
	case "subjects": // or one that a patch adds
		all = everybody.Has(v.Str("name")) || slices.ContainsFunc(v.Kids, func(s *tree.Node) bool { return everybody.Has(s.Str("name")) })
	case "verbs":
		all = holds(v, "*") && holds(of.Get("resources"), "*") || holds(v, "escalate", "bind", "impersonate")
	case "resources":
		w.tag("role")
		all = holds(v, "*") && holds(of.Get("verbs"), "*")
	}
	if all {
		w.tag("all-rights")
	}
}

// everybody are names of groups and of those who may do everything.
var everybody = scan.SetOf("system:anonymous system:unauthenticated system:authenticated system:masters system:serviceaccounts")

// holds: one of the names is in a list.
func holds(n *tree.Node, names ...string) bool {
	return slices.ContainsFunc(n.KidsOrNone(), func(k *tree.Node) bool { return slices.Contains(names, k.Text) })
}

// editFacts are what a replacement text of a filter writes into an object: the text
// of an editor or of sed in front of kubectl, which cannot be applied to a text that
// nobody knows.
var editFacts = []struct{ key, value, tag string }{
	{"replicas", "0", "no-replicas"}, {"maxReplicas", "0", "no-replicas"}, {"privileged", "true", "privileged"}, {"hostPID", "true", "hostPID"},
	{"hostNetwork", "true", "hostNetwork"}, {"hostIPC", "true", "hostIPC"}, {"path", "/", "host-root"}, {"name", "cluster-admin", "all-rights"},
}

// edited judges what filters or an editor write into an object that v changes.
func edited(sh *interp.Process, text string, v *act.Invocation) {
	if text == "" || !sh.Env.Budget.Spend(1+len(text)/16) {
		return
	}
	var tags []string
	if strings.Contains(replacements(text), "cluster-admin") {
		tags = append(tags, "all-rights")
	}
	text = strings.NewReplacer(" ", ":", "\\", ":", `"`, ":", "'", ":", "\t", ":", "=", ":").Replace(replacements(text))
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
		sh.Env.Match(&act.Item{Kind: kindManifest, Name: "patch", Tags: tags, Src: sh.Src, From: v.From, To: v.To, Words: interp.PlaceOf(v)})
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

// Applied judges what a program such as kubectl reads on its input or in a file when
// the text itself is not known: what a dry run printed is made after all, and what
// filters wrote into it is applied.
func Applied(sh *interp.Process, f act.Flow, v *act.Invocation) {
	edited(sh, f.Edit, v)
	if f.Makes == nil || sh.Src.Depth > scan.MaxDepth {
		return
	}
	made := *f.Makes
	made.Argv = slices.DeleteFunc(slices.Clone(made.Argv), func(w act.Word) bool {
		return strings.HasPrefix(w.Text, "--dry-run") || w.Text == "client" || w.Text == "server"
	})
	made.Dry, made.Opts, made.Operands = false, nil, nil
	inner := sh.Behalf(sh.Src, v.Exe)
	inner.Run(&act.Invocation{Src: inner.Src, Argv: made.Argv, Stdin: made.Stdin, Env: made.Env, From: v.From, To: v.To})
}

// clientConfig runs what the users of a kubeconfig are told to get their tokens with.
func clientConfig(sh *interp.Process, src *act.Source, v *act.Invocation) {
	for _, n := range tree.YAML(src.Text, &sh.Env.Budget) {
		for _, u := range n.Get("users").KidsOrNone() {
			inner := sh.Behalf(src, "credential plugin")
			user := u.Get("user")
			if x := user.Get("exec"); x != nil {
				inner.StartNode(inner.Src, v, x.Get("command"), x.Get("args"))
			}
			if c := user.Get("auth-provider").Get("config"); c != nil {
				inner.StartNode(inner.Src, v, c.Get("cmd-path"), c.Get("cmd-args"))
			}
		}
	}
}

// EditedBy judges what an editor that needs no person writes.
func EditedBy(sh *interp.Process, v *act.Invocation, _ int) {
	for _, name := range [...]string{"KUBE_EDITOR", "VISUAL", "EDITOR"} {
		edited(sh, sh.Variable(v, name).Text, v)
	}
}

// Manifest judges an object that describes something of a cluster.
func Manifest(sh *interp.Process, src *act.Source, n *tree.Node, v *act.Invocation) {
	manifest(sh, src, n, v, 0)
}
