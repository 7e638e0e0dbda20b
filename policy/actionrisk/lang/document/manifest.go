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

// kindManifest is the kind of the items for Kubernetes objects, and for changes to them, in a text
// that a command gets. The name of an item is the kind of its object in lower case, or "patch" if
// the text has no kind. The tags name the risky settings that its members contain.
const kindManifest = "manifest"

// manifestWalk collects the tags and the container commands of one object.
type manifestWalk struct {
	sh       *interp.Process
	src      *act.Source
	tags     []string
	mounts   bool // the containers mount files that outlive them
	commands [][]*tree.Node
}

// manifests judges the objects of a text that is given to kubectl, helm or a similar tool.
func manifests(sh *interp.Process, src *act.Source, v *act.Invocation) {
	text := *src
	if name, value, ok := strings.Cut(text.Text, "="); ok && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[]") == "" && strings.HasPrefix(value, "{") { // for example --set-json a.b={…}
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

// node checks a value and all values below it.
func (w *manifestWalk) node(n *tree.Node) {
	if n == nil || !w.sh.Env.Budget.Spend(1) {
		return
	}
	if path := n.Str("path"); n.Get("op") != nil && path != "" { // a JSON patch: the path names the member
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

// hostSockets lists sockets that give a container control over its host.
var hostSockets = []string{"docker.sock", "containerd.sock", "crio.sock", "podman.sock", "dockershim.sock", "cri-dockerd.sock", "buildkitd.sock"}

// strongCapabilities lists Linux capabilities with which a process can escape from its container.
var strongCapabilities = scan.SetOf("ALL SYS_ADMIN SYS_PTRACE SYS_MODULE SYS_RAWIO DAC_READ_SEARCH BPF SYS_BOOT MAC_ADMIN CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_SYS_MODULE CAP_SYS_RAWIO CAP_DAC_READ_SEARCH CAP_BPF")

// valueTags maps the name of a member to a tag. The object gets the tag if the test "when" returns
// true for the value of the member.
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
	"clientConfig":  {"guard-off", func(v *tree.Node) bool { return v.Get("url") != nil }}, // the webhook sends every matching object to a host outside the cluster
}

func says(text string) func(*tree.Node) bool {
	return func(v *tree.Node) bool { return v.Text == text }
}

// member adds the tags that follow from one member of an object.
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

// hostPath adds a tag if a mounted folder of the node is sensitive.
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

// access adds the tags for a role, or for the binding of a role to subjects.
func (w *manifestWalk) access(of *tree.Node, key string, v *tree.Node) {
	all := false
	switch key {
	case "roleRef":
		w.tag("binding")
		all = v.Str("name") == "cluster-admin"
	case "subjects": // the list, or one subject that a patch adds
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

// everybody lists groups that contain all users, all anonymous users or all administrators.
var everybody = scan.SetOf("system:anonymous system:unauthenticated system:authenticated system:masters system:serviceaccounts")

// holds reports whether the list n contains one of the names.
func holds(n *tree.Node, names ...string) bool {
	return slices.ContainsFunc(n.KidsOrNone(), func(k *tree.Node) bool { return slices.Contains(names, k.Text) })
}

// editFacts lists risky settings that a filter such as sed, or an editor command, may write into
// an object before kubectl applies it. The text of the object is unknown, so only the replacement
// text can be checked.
var editFacts = []struct{ key, value, tag string }{
	{"replicas", "0", "no-replicas"}, {"maxReplicas", "0", "no-replicas"}, {"privileged", "true", "privileged"}, {"hostPID", "true", "hostPID"},
	{"hostNetwork", "true", "hostNetwork"}, {"hostIPC", "true", "hostIPC"}, {"path", "/", "host-root"}, {"name", "cluster-admin", "all-rights"},
}

// edited judges the text that filters or an editor command write into an object which v changes.
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

// replacements returns the replacement texts of the sed commands "s/…/…/" in a text. It
// returns a line without such a command unchanged.
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

// Applied judges an object that a program such as kubectl reads from its input or a file, if the
// text is unknown. If the text is the output of a dry run, Applied judges that command without the
// dry-run option. It also judges the text that filters wrote into the object.
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

// clientConfig runs the programs that a kubeconfig file names for its users to get their tokens.
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

// EditedBy judges the editor command in the environment of v, which changes the object without a
// person.
func EditedBy(sh *interp.Process, v *act.Invocation, _ int) {
	for _, name := range [...]string{"KUBE_EDITOR", "VISUAL", "EDITOR"} {
		edited(sh, sh.Variable(v, name).Text, v)
	}
}

// Manifest judges the Kubernetes object n.
func Manifest(sh *interp.Process, src *act.Source, n *tree.Node, v *act.Invocation) {
	manifest(sh, src, n, v, 0)
}
