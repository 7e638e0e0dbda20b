package document

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// kindCompose is the kind of the items for the services of a compose file. Their tags name the
// rights on the host that a container normally does not have.
const kindCompose = "compose"

// composeFile judges the services of a compose file: their rights on the host, and the commands
// that they run.
func composeFile(sh *interp.Process, src *act.Source, v *act.Invocation) {
	for _, n := range tree.YAML(src.Text, &sh.Env.Budget) {
		services := n.Get("services")
		if services == nil {
			services = n // version 1 of the format has no "services" member
		}
		for i, s := range services.Kids {
			if s.Kind != '{' || !sh.Env.Budget.Spend(1) {
				continue
			}
			w := &manifestWalk{sh: sh, src: src}
			w.service(s)
			name := services.KeysAt(i)
			sh.Env.Match(&act.Item{Kind: kindCompose, Name: "service", Tags: w.tags, Src: src, From: s.Start, To: s.End, Target: act.Printable(name), Words: interp.PlaceOf(v)})
			inner := sh.Behalf(src, "container")
			inner.Remote, inner.Cwd, inner.Scratch = true, "", !w.mounts
			inner.StartNode(inner.Src, v, s.Get("entrypoint"))
			inner.StartNode(inner.Src, v, s.Get("command"))
			if build := s.Get("build"); build.Str("dockerfile_inline") != "" {
				text := act.Source{Text: build.Str("dockerfile_inline"), At: -1, Span: inner.Src.Span, Via: inner.Src.Via, Depth: src.Depth + 1}
				buildFile(inner, &text, v)
			}
		}
	}
}

// service adds the tags for what a service can reach on its host: privileges, namespaces, devices
// and mounted folders.
func (w *manifestWalk) service(s *tree.Node) {
	if s.Get("privileged").Truth() {
		w.tag("privileged")
	}
	if s.Str("pid") == "host" || s.Str("ipc") == "host" || s.Str("userns_mode") == "host" {
		w.tag("hostPID")
	}
	w.tagIf(s, "cap_add", "capability", func(c *tree.Node) bool { return strongCapabilities.Has(strings.ToUpper(c.Text)) })
	w.tagIf(s, "security_opt", "capability", func(o *tree.Node) bool { return strings.HasSuffix(o.Text, "unconfined") })
	w.tagIf(s, "devices", "host-system", func(d *tree.Node) bool {
		p, _, _ := strings.Cut(d.Text, ":")
		return w.sh.Env.ClassOf(act.Word{Text: p}, "")&paths.IsDevice != 0
	})
	for _, m := range s.Get("volumes").KidsOrNone() {
		p := m.Str("source", "src")
		if m.Kind == '"' {
			p, _, _ = strings.Cut(m.Text, ":")
		}
		w.mounts = true // a named volume outlives the container, too
		if p != "" && strings.IndexByte("/~.$", p[0]) >= 0 && p != "/etc/localtime" && p != "/etc/timezone" && !strings.HasPrefix(p, "/usr/share") {
			w.hostPath(p)
		}
	}
}

// tagIf adds a tag if an element of the named list passes the given test.
func (w *manifestWalk) tagIf(of *tree.Node, list, tag string, asks func(*tree.Node) bool) {
	if slices.ContainsFunc(of.Get(list).KidsOrNone(), asks) {
		w.tag(tag)
	}
}

// buildFile judges the RUN steps of a Dockerfile. They run in a container that the build creates
// and drops, so deleting files in it is harmless. What they run, download or send counts.
func buildFile(sh *interp.Process, src *act.Source, v *act.Invocation) {
	inner := sh.Behalf(src, "build")
	inner.Remote, inner.Scratch, inner.Cwd, inner.Vars = true, true, "", nil
	at := &act.Invocation{Exe: v.Exe, Src: inner.Src, To: len(src.Text), Stdin: act.Flow{Known: true}}
	lines := strings.Split(src.Text, "\n")
	for len(lines) > 0 && sh.Env.Budget.Spend(1) {
		var step string
		if step, lines = buildStep(lines); strings.HasPrefix(step, "[") {
			for _, n := range tree.YAML(step, &sh.Env.Budget) {
				inner.StartNode(inner.Src, v, n)
			}
		} else if step != "" {
			inner.Interpret("shell", act.Word{Text: step, At: -1, Span: inner.Src.Span, Taint: src.Taint}, at, "RUN", nil)
		}
	}
}

// buildStep returns the command of the first line, if that begins a RUN step, and the lines after
// the step. The command is empty for other steps.
func buildStep(lines []string) (string, []string) {
	line, lines := strings.TrimSpace(lines[0]), lines[1:]
	for strings.HasSuffix(line, "\\") && len(lines) > 0 {
		if next := strings.TrimSpace(lines[0]); !strings.HasPrefix(next, "#") {
			line = strings.TrimSuffix(line, "\\") + " " + next
		}
		lines = lines[1:]
	}
	verb, rest, _ := strings.Cut(line, " ")
	if strings.EqualFold(verb, "ONBUILD") {
		verb, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	if !strings.EqualFold(verb, "RUN") {
		return "", lines
	}
	for rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "--"); rest = strings.TrimSpace(rest) {
		_, rest, _ = strings.Cut(rest, " ")
	}
	if _, mark, ok := strings.Cut(rest, "<<"); ok { // RUN <<E: the command is in the lines below
		mark, _, _ = strings.Cut(strings.Trim(strings.TrimLeft(mark, "-"), "'\" \t"), " ")
		rest, lines = hereDocument(rest, mark, lines)
	}
	return rest, lines
}

// hereDocument appends to a step the lines up to the mark that ends its here-document. It also
// returns the remaining lines.
func hereDocument(step, mark string, lines []string) (string, []string) {
	end := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == mark })
	if end < 0 {
		end = len(lines)
	}
	step = strings.Join(append(append([]string{step}, lines[:end]...), mark), "\n")
	if strings.HasPrefix(step, "<<") {
		step = "sh " + step
	}
	return step, lines[min(end+1, len(lines)):]
}

// Container judges a request of the Docker API that creates a container.
func Container(sh *interp.Process, src *act.Source, n *tree.Node, v *act.Invocation) {
	w := &manifestWalk{sh: sh, src: src}
	host := n.Get("HostConfig")
	if host.Get("Privileged").Truth() {
		w.tag("privileged")
	}
	if host.Str("PidMode") == "host" || host.Str("IpcMode") == "host" || host.Str("UsernsMode") == "host" {
		w.tag("hostPID")
	}
	w.tagIf(host, "CapAdd", "capability", func(c *tree.Node) bool { return strongCapabilities.Has(strings.ToUpper(c.Text)) })
	for _, m := range append(host.Get("Binds").KidsOrNone(), host.Get("Mounts").KidsOrNone()...) {
		p := m.Str("Source")
		if m.Kind == '"' {
			p, _, _ = strings.Cut(m.Text, ":")
		}
		if strings.HasPrefix(p, "/") {
			w.mounts = true
			w.hostPath(p)
		}
	}
	sh.Env.Match(&act.Item{Kind: kindCompose, Name: "service", Tags: w.tags, Src: src, From: n.Start, To: n.End, Target: act.Printable(n.Str("Image")), Words: interp.PlaceOf(v)})
	inner := sh.Behalf(src, "container")
	inner.Remote, inner.Cwd, inner.Scratch = true, "", !w.mounts
	inner.StartNode(inner.Src, v, n.Get("Entrypoint"), n.Get("Cmd"))
}
