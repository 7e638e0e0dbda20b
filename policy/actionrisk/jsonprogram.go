package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Tools that are named after programs (git_push, kubectl, docker_create_container,
// terraform_execute), and objects that write a command in parts ({program, argv,
// env}): both are judged as the command that they stand for.

// toolPrefixes are name spaces before a tool's name.
var toolPrefixes = []string{"functions.", "function.", "tools.", "tool.", "mcp.", "default_api.", "api."}

func bareToolName(name string) string {
	for _, p := range toolPrefixes {
		name = strings.TrimPrefix(name, p)
	}
	return name
}

// fillers are words of a tool's name that say that it runs a program, and are no
// subcommand of it.
var fillers = scan.SetOf("execute exec run call invoke use command commands cli generic operation tool cmd query api mcp")

// programOf is the program that a tool is named after, and the other words of the
// name; "" if it is none.
func (e *engine) programOf(name string) (exe string, rest []string) {
	words := toolWords(bareToolName(name))
	for i, w := range words {
		if other := verbs().Programs[w]; other != "" {
			w = other
		}
		if exe, sub, more := strings.Cut(w, " "); more && e.exe[exe] { // compose
			return exe, append([]string{sub}, words[i+1:]...)
		}
		if e.exe[w] && verbs().class[w] == "" && !alsoNouns[w] {
			return w, words[i+1:]
		}
		if !fillers[w] && i > 0 || i > 1 {
			break
		}
	}
	return "", nil
}

// alsoNouns are programs whose names tools use for what they are about.
var alsoNouns = scan.SetOf("http https x xh service host link mail at split pass op security account passwd")

// commandParts are a tool's arguments as words of a command.
type commandParts struct {
	sub, options, operands, inner []string
}

// actionKeys are members that say what the program shall do; so do commandKeys, but
// for a container, where they are what it runs.
var (
	actionKeys  = scan.SetOf("action operation subcommand verb operation_name op")
	commandKeys = scan.SetOf("command cmd args arguments argv cli_command")
)

// asideKeys say where a program runs, how long and why: no words of its command.
var asideKeys = scan.SetOf("cwd workdir working_dir working_directory workingdirectory repo_path repopath repository_path project_dir project_path dir timeout timeout_ms description reason message title body comment explanation env environment labels is_background background region_name")

// mountKeys are members that name folders of the host for a container.
var mountKeys = scan.SetOf("volumes volume binds bind mounts mount")

// program judges a tool that is named after a program as a call of that program:
// its other words are subcommands, true members are options, the rest operands.
func (w *jsonWalk) program(name string, args *jsonNode) bool {
	e := w.e
	if args == nil || w.src.depth >= scan.MaxDepth {
		return false
	}
	exe, rest := e.programOf(name)
	if exe == "" && opensHost(args) {
		exe, rest = "docker", []string{"run"}
	}
	if exe == "" {
		return w.listProgram(name, args)
	}
	if args.kind == '[' {
		return w.runWords(args, append([]string{exe}, strs(args)...))
	}
	if args.kind != '{' {
		return false
	}
	container := slices.Contains(e.groups["containers"], exe)
	var p commandParts
	w.collect(&p, exe, args, container, 0)
	rest = slices.DeleteFunc(rest, func(word string) bool {
		return fillers[word] && !(container && (word == "run" || word == "exec")) || container && (word == "container" || word == "containers")
	})
	if exe == "git" && len(rest) > 0 && rest[0] == "push" && args.get("remote") == nil {
		rest = append(rest, "origin")
	}
	if container && len(rest)+len(p.sub) == 0 { // the whole command line in one member
		p.sub, p.inner = p.inner, nil
	}
	if len(p.sub) > 0 && p.sub[0] == exe {
		p.sub = p.sub[1:]
	}
	argv := append([]string{exe}, rest...)
	for _, part := range [...][]string{p.sub, p.options, p.operands, p.inner} {
		argv = append(argv, part...)
	}
	return w.runWords(args, argv)
}

// opensHost: the arguments start a container with rights over, or folders of, the
// machine that it runs on.
func opensHost(args *jsonNode) bool {
	if args.kind != '{' || args.get("image", "Image", "image_name", "imageName") == nil {
		return false
	}
	for i, k := range args.kids {
		key := strings.ToLower(args.keysAt(i))
		if mountKeys[key] && k.kind != 't' || key == "privileged" && k.kind == 't' || key == "hostconfig" || key == "host_config" {
			return true
		}
	}
	return false
}

// listProgram is {tool: "dd", args: ["if=…"]} with a name that is a verb as well.
func (w *jsonWalk) listProgram(name string, args *jsonNode) bool {
	list := args
	if args.kind == '{' {
		list = args.get("args", "argv", "arguments")
	}
	name = bareToolName(name)
	if list == nil || list.kind != '[' || !allStrings(list) || !w.e.acts(name) {
		return false
	}
	return w.runWords(args, append([]string{name}, strs(list)...))
}

// collect sorts the members of the arguments into the parts of a command.
func (w *jsonWalk) collect(p *commandParts, exe string, args *jsonNode, container bool, depth int) {
	dash := "--"
	if exe == "terraform" || exe == "tofu" {
		dash = "-"
	}
	for i, k := range args.kids {
		key := strings.ToLower(args.keysAt(i))
		option := strings.ReplaceAll(key, "_", "-")
		switch {
		case asideKeys[key]:
		case key == "service" || key == "service_name": // aws {service: s3, operation: …}
			if k.kind == '"' {
				p.sub = append([]string{k.text}, p.sub...)
			}
		case container && mountKeys[key] && k.kind != 't' && k.kind != 'f':
			for _, m := range mounts(k) {
				p.options = append(p.options, "-v", m)
			}
		case container && strings.HasSuffix(strings.TrimRight(key, "_-"), "mode") && k.kind == '"':
			p.options = append(p.options, "--"+strings.TrimSuffix(strings.TrimRight(strings.TrimSuffix(key, "mode"), "_-"), "_")+"="+k.text)
		case k.kind == 't':
			p.options = append(p.options, dash+option)
		case (actionKeys[key] || commandKeys[key]) && (k.kind == '"' || k.kind == '['):
			words := strs(k)
			if k.kind == '"' {
				words = strings.Fields(strings.TrimPrefix(k.text, exe+" "))
			}
			if container && commandKeys[key] {
				p.inner = append(p.inner, words...)
			} else {
				p.sub = append(p.sub, words...)
			}
		case k.kind == '"' && key == "output" && exe == "kubectl":
			p.options = append(p.options, "-o", k.text)
		case k.kind == '"' && key == "namespace":
			p.options = append(p.options, "-n", k.text)
		case k.kind == '"' && (key == "image" || key == "remote" || strings.HasPrefix(k.text, "-")):
			p.operands = append([]string{k.text}, p.operands...)
		case k.kind == '"' && container && (key == "name" || key == "working_dir" || key == "workdir"):
		case k.kind == '"':
			p.operands = append(p.operands, k.text)
		case k.kind == '[':
			p.operands = append(p.operands, strs(k)...)
		case k.kind == '{' && depth < 2:
			w.collect(p, exe, k, container, depth+1)
		}
	}
}

// strs are the strings and numbers of a list.
func strs(list *jsonNode) []string {
	var out []string
	for _, k := range list.kids {
		if k.kind == '"' || k.kind == '0' {
			out = append(out, k.text)
		}
	}
	return out
}

// mounts are the host's folders in "/:/host", ["/:/host"], {"/": {"bind": "/host"}}
// and [{"source": "/", "target": "/host"}].
func mounts(n *jsonNode) []string {
	switch n.kind {
	case '"':
		return []string{n.text}
	case '{':
		if source := n.str("source", "Source", "src", "host_path", "hostPath", "host"); source != "" {
			return []string{source + ":/m"}
		}
		var out []string
		for _, key := range n.keys {
			out = append(out, key+":/m")
		}
		return out
	}
	var out []string
	for _, k := range n.kids {
		out = append(out, mounts(k)...)
	}
	return out
}

// runWords runs a command that the text writes in parts.
func (w *jsonWalk) runWords(at *jsonNode, argv []string) bool {
	src := source{text: shellWords(argv), at: -1, via: w.src.via, depth: w.src.depth + 1}
	src.span, _ = w.src.where(at.start, at.end)
	w.e.front.script(&shell{e: w.e}, &src, flow{})
	return true
}

// shellWords writes words as one command line.
func shellWords(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		quoted[i] = scan.Quote(a)
	}
	return strings.Join(quoted, " ")
}

// headKeys name a program, tailKeys its arguments, where a command is written in
// parts.
var (
	headKeys = []string{"program", "exe", "executable", "binary", "bin", "cmd", "command", "file", "path", "interpreter", "entrypoint"}
	tailKeys = scan.SetOf("args argv arguments options operands params parameters flags cmd command")
)

// commandInParts runs {program: "dd", argv: ["if=…"]} and its kind.
func (w *jsonWalk) commandInParts(n *jsonNode) bool {
	head := n.get(headKeys...)
	if list := n.get("args", "argv"); head == nil && list != nil && list.kind == '[' && allStrings(list) && len(list.kids) > 1 && w.e.acts(list.kids[0].text) && toolNameOf(n) == "" {
		return w.runWords(n, strs(list)) // {process: {args: ["rm", …]}}
	}
	if head == nil || strings.ContainsAny(head.text, " \n") && head.kind == '"' {
		return false
	}
	var argv []string
	switch {
	case head.kind == '"' && head.text != "":
		argv = []string{head.text}
	case head.kind == '[' && allStrings(head):
		argv = strs(head)
	default:
		return false
	}
	lists := 0
	for i, k := range n.kids {
		if k != head && k.kind == '[' && tailKeys[strings.ToLower(n.keysAt(i))] && allStrings(k) {
			argv = append(argv, strs(k)...)
			lists++
		}
	}
	plain := n.get("program", "exe", "executable", "binary", "bin", "interpreter", "entrypoint") == head
	if lists == 0 || !plain && !w.e.acts(argv[0]) || w.src.depth >= scan.MaxDepth {
		return false
	}
	text := environment(n) + shellWords(argv)
	src := source{text: text, at: -1, via: append(slices.Clip(w.src.via), "json"), depth: w.src.depth + 1}
	src.span, _ = w.src.where(n.start, n.end)
	w.e.routed(&src)
	return true
}

// environment is what an object sets for the command that it carries, as words
// before the command.
func environment(n *jsonNode) string {
	env := n.get("env", "environment", "envVars", "env_vars", "Env")
	if env == nil {
		return ""
	}
	var b strings.Builder
	for i, k := range env.kids {
		name, value := env.keysAt(i), k.text
		if env.kind == '[' {
			name, value, _ = strings.Cut(k.text, "=")
			if k.kind == '{' {
				name, value = k.str("name", "key"), k.str("value")
			}
		}
		if syntaxName(name) && value != "" && len(value) < scan.MaxValue {
			b.WriteString(name + "=" + scan.Quote(value) + " ")
		}
	}
	return b.String()
}
