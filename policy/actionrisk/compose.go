package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// kindCompose items are the services of a compose file; their tags are what gives a
// container more than its own.
const kindCompose = "compose"

// composeFile judges the services of a compose file.
func (sh *shell) composeFile(src *source, v *invocation) {
	for _, n := range yamlDocuments(src.text, &sh.e.budget) {
		services := n.get("services")
		if services == nil {
			services = n // the oldest form has nothing around them
		}
		for i, s := range services.kids {
			if s.kind != '{' || !sh.e.budget.spend(1) {
				continue
			}
			w := &manifestWalk{sh: sh, src: src}
			w.service(s)
			name := ""
			if i < len(services.keys) {
				name = services.keys[i]
			}
			sh.e.match(&item{kind: kindCompose, name: "service", tags: w.tags, src: src, from: s.start, to: s.end, target: printable(name), words: placeOf(v)})
			inner := sh.behalf(src, "container")
			inner.remote, inner.cwd, inner.scratch = true, "", !w.mounts
			inner.startNode(inner.src, v, s.get("entrypoint"))
			inner.startNode(inner.src, v, s.get("command"))
			if build := s.get("build"); build.str("dockerfile_inline") != "" {
				text := source{text: build.str("dockerfile_inline"), at: -1, span: inner.src.span, via: inner.src.via, depth: src.depth + 1}
				inner.buildFile(&text, v)
			}
		}
	}
}

// service notes what a service reaches of its machine.
func (w *manifestWalk) service(s *jsonNode) {
	if s.get("privileged").truth() {
		w.tag("privileged")
	}
	for _, key := range [...]string{"pid", "ipc", "userns_mode"} {
		if s.str(key) == "host" {
			w.tag("hostPID")
		}
	}
	for _, c := range s.get("cap_add").kidsOrNone() {
		if strongCapabilities[strings.ToUpper(c.text)] {
			w.tag("capability")
		}
	}
	for _, o := range s.get("security_opt").kidsOrNone() {
		if strings.HasSuffix(o.text, "unconfined") {
			w.tag("capability")
		}
	}
	for _, d := range s.get("devices").kidsOrNone() {
		p, _, _ := strings.Cut(d.text, ":")
		if w.sh.e.classOf(Word{Text: p}, "")&paths.IsDevice != 0 {
			w.tag("host-system")
		}
	}
	for _, m := range s.get("volumes").kidsOrNone() {
		p := m.str("source", "src")
		if m.kind == '"' {
			p, _, _ = strings.Cut(m.text, ":")
		}
		w.mounts = true // a named volume, too, outlives the container
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || strings.HasPrefix(p, ".") || strings.HasPrefix(p, "$") {
			if p != "/etc/localtime" && p != "/etc/timezone" && !strings.HasPrefix(p, "/usr/share") {
				w.hostPath(p)
			}
		}
	}
}

// buildFile runs the steps of a Dockerfile. They run in a container that is made for
// them: what they delete is missed by nobody, what they fetch, run or send counts.
func (sh *shell) buildFile(src *source, v *invocation) {
	inner := sh.behalf(src, "build")
	inner.remote, inner.scratch, inner.cwd, inner.vars = true, true, "", nil
	at := &invocation{exe: v.exe, src: inner.src, to: len(src.text), stdin: flow{known: true}}
	lines := strings.Split(src.text, "\n")
	for i := 0; i < len(lines) && sh.e.budget.spend(1); i++ {
		line := strings.TrimSpace(lines[i])
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			if next := strings.TrimSpace(lines[i]); !strings.HasPrefix(next, "#") {
				line = strings.TrimSuffix(line, "\\") + " " + next
			}
		}
		verb, rest, _ := strings.Cut(line, " ")
		if strings.EqualFold(verb, "ONBUILD") {
			verb, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
		}
		if !strings.EqualFold(verb, "RUN") {
			continue
		}
		for rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "--"); {
			_, rest, _ = strings.Cut(rest, " ")
			rest = strings.TrimSpace(rest)
		}
		if _, mark, ok := strings.Cut(rest, "<<"); ok { // RUN <<E: the lines below
			mark = strings.Trim(strings.TrimLeft(mark, "-"), "'\" \t")
			mark, _, _ = strings.Cut(mark, " ")
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != mark; i++ {
				rest += "\n" + lines[i]
			}
			rest += "\n" + mark
			if strings.HasPrefix(rest, "<<") {
				rest = "sh " + rest
			}
		}
		if strings.HasPrefix(rest, "[") {
			for _, n := range yamlDocuments(rest, &sh.e.budget) {
				inner.startNode(inner.src, v, n)
			}
			continue
		}
		inner.interpret("shell", Word{Text: rest, At: -1, Span: inner.src.span, Taint: src.taint}, at, "RUN", nil)
	}
}

// container judges what the interface of Docker is told to make.
func (sh *shell) container(src *source, n *jsonNode, v *invocation) {
	w := &manifestWalk{sh: sh, src: src}
	host := n.get("HostConfig")
	if host.get("Privileged").truth() {
		w.tag("privileged")
	}
	if host.str("PidMode") == "host" || host.str("IpcMode") == "host" || host.str("UsernsMode") == "host" {
		w.tag("hostPID")
	}
	for _, c := range host.get("CapAdd").kidsOrNone() {
		if strongCapabilities[strings.ToUpper(c.text)] {
			w.tag("capability")
		}
	}
	for _, m := range append(host.get("Binds").kidsOrNone(), host.get("Mounts").kidsOrNone()...) {
		p := m.str("Source")
		if m.kind == '"' {
			p, _, _ = strings.Cut(m.text, ":")
		}
		if strings.HasPrefix(p, "/") {
			w.mounts = true
			w.hostPath(p)
		}
	}
	sh.e.match(&item{kind: kindCompose, name: "service", tags: w.tags, src: src, from: n.start, to: n.end, target: printable(n.str("Image")), words: placeOf(v)})
	inner := sh.behalf(src, "container")
	inner.remote, inner.cwd, inner.scratch = true, "", !w.mounts
	inner.startNode(inner.src, v, n.get("Entrypoint"), n.get("Cmd"))
}

// containerObject judges an object that describes a container.
func containerObject(sh *shell, src *source, n *jsonNode, v *invocation) { sh.container(src, n, v) }
