package toolcall

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// This file judges tools that are named after programs (git_push, kubectl,
// docker_create_container, terraform_execute), and objects that contain a command in parts
// ({program, argv, env}), as the equivalent command.

// toolPrefixes lists name spaces that may precede the name of a tool.
var toolPrefixes = []string{"functions.", "function.", "tools.", "tool.", "mcp.", "default_api.", "api."}

func bareToolName(name string) string {
	for _, p := range toolPrefixes {
		name = strings.TrimPrefix(name, p)
	}
	return name
}

// programOf returns the program after which a tool is named, and the words after it in the name.
// The program is "" if there is none.
func programOf(e *interp.Env, name string) (exe string, rest []string) {
	words := facts.ToolWords(bareToolName(name))
	for i, w := range words {
		if other := facts.Verbs().Programs.Get(w); other != "" {
			w = other
		}
		if exe, sub, more := strings.Cut(w, " "); more && e.Program(exe).Judged { // for example compose
			return exe, append([]string{sub}, words[i+1:]...)
		}
		if e.Program(w).Judged && facts.Verbs().Class.Get(w) == "" && !e.In("tool-nouns", w) {
			return w, words[i+1:]
		}
		if i > 1 || i > 0 && !facts.Says(words[i:i+1], "fillers") { // filler words only show that the tool runs a program
			break
		}
	}
	return "", nil
}

// commandParts collects the arguments of a tool as words of a command.
type commandParts struct {
	exe                           string
	container                     bool // the program runs commands in containers
	sub, options, operands, inner []string
}

// actionKeys lists members that contain the subcommand of a program. commandKeys lists members
// that contain the subcommand, too, or for a container the command that it runs.
var (
	actionKeys  = scan.SetOf("action operation subcommand verb operation_name op")
	commandKeys = scan.SetOf("command cmd args arguments argv cli_command")
)

// asideKeys lists members that set where a program runs, for how long and why. They are not words
// of its command.
var asideKeys = scan.SetOf("cwd workdir working_dir working_directory workingdirectory repo_path repopath repository_path project_dir project_path dir timeout timeout_ms description reason message title body comment explanation env environment labels is_background background region_name")

// mountKeys lists members that name folders of the host to mount in a container.
var mountKeys = scan.SetOf("volumes volume binds bind mounts mount")

// program judges a tool that is named after a program as a call of that program. The other words
// of its name are subcommands, members with the value true are options, and the other members are
// operands. It returns false if the tool is not named after a program.
func (w *jsonWalk) program(name string, args *tree.Node) bool {
	if args == nil || w.src.Depth >= scan.MaxDepth {
		return false
	}
	exe, rest := programOf(w.e, name)
	if exe == "" && opensHost(args) {
		exe, rest = "docker", []string{"run"}
	}
	switch {
	case exe == "":
		return w.listProgram(name, args)
	case args.Kind == '[':
		return w.runWords(args, append([]string{exe}, strs(args)...))
	case args.Kind != '{':
		return false
	}
	p := commandParts{exe: exe, container: w.e.In("containers", exe)}
	w.collect(&p, args, 0)
	return w.runWords(args, p.argv(rest, args.Get("remote") != nil))
}

// argv returns the words of the command: the program, the other words of the tool's name, and the
// collected parts.
func (p *commandParts) argv(rest []string, remote bool) []string {
	rest = slices.DeleteFunc(rest, p.isFiller)
	if p.exe == "git" && len(rest) > 0 && rest[0] == "push" && !remote {
		rest = append(rest, "origin")
	}
	if p.container && len(rest)+len(p.sub) == 0 { // one member contains the whole command line
		p.sub, p.inner = p.inner, nil
	}
	if len(p.sub) > 0 && p.sub[0] == p.exe {
		p.sub = p.sub[1:]
	}
	return slices.Concat([]string{p.exe}, rest, p.sub, p.options, p.operands, p.inner)
}

// isFiller reports whether a word of the tool's name is not a subcommand.
func (p *commandParts) isFiller(word string) bool {
	if p.container && (word == "run" || word == "exec") {
		return false
	}
	return p.container && (word == "container" || word == "containers") || facts.Says([]string{word}, "fillers")
}

// opensHost reports whether the arguments start a container that is privileged or mounts folders
// of the host.
func opensHost(args *tree.Node) bool {
	if args.Kind != '{' || args.Get("image", "Image", "image_name", "imageName") == nil {
		return false
	}
	for i, k := range args.Kids {
		key := strings.ToLower(args.KeysAt(i))
		if mountKeys.Has(key) && k.Kind != 't' || key == "privileged" && k.Kind == 't' || key == "hostconfig" || key == "host_config" {
			return true
		}
	}
	return false
}

// listProgram judges {tool: "dd", args: ["if=…"]}, where the name of the tool is a program that
// may also be a verb. It returns false for other calls.
func (w *jsonWalk) listProgram(name string, args *tree.Node) bool {
	list := args
	if args != nil && args.Kind == '{' {
		list = args.Get("args", "argv", "arguments")
	}
	name = bareToolName(name)
	if !isWords(list) || !w.e.Acts(name) {
		return false
	}
	return w.runWords(args, append([]string{name}, strs(list)...))
}

// isWords reports whether n is a list of strings.
func isWords(n *tree.Node) bool { return n != nil && n.Kind == '[' && tree.AllStrings(n) }

// collect adds the members of the arguments to the parts of a command.
func (w *jsonWalk) collect(p *commandParts, args *tree.Node, depth int) {
	dash := "--"
	if o := w.e.Program(p.exe).Options; o != nil && o.Long {
		dash = "-"
	}
	for i, k := range args.Kids {
		key := strings.ToLower(args.KeysAt(i))
		switch {
		case asideKeys.Has(key), isService(key) && k.Kind != '"', p.container && p.ofContainer(key, k):
			continue
		}
		switch k.Kind {
		case 't':
			p.options = append(p.options, dash+strings.ReplaceAll(key, "_", "-"))
		case '"':
			p.text(key, k.Text)
		case '[':
			p.words(key, strs(k))
		case '{':
			if depth < 2 {
				w.collect(p, k, depth+1)
			}
		}
	}
}

// words adds a member whose value is a list.
func (p *commandParts) words(key string, list []string) {
	if actionKeys.Has(key) || commandKeys.Has(key) {
		p.sub = append(p.sub, list...)
	} else {
		p.operands = append(p.operands, list...)
	}
}

// isService reports whether the member names the service of a cloud client: aws {service: s3,
// operation: …}
func isService(key string) bool { return key == "service" || key == "service_name" }

// ofContainer adds a member that only calls of containers have: a mount, a mode, the command
// inside, a name. It returns false for other members.
func (p *commandParts) ofContainer(key string, k *tree.Node) bool {
	mode, isMode := strings.CutSuffix(strings.TrimRight(key, "_-"), "mode")
	switch {
	case isService(key):
		return false
	case mountKeys.Has(key) && k.Kind != 't' && k.Kind != 'f':
		for _, m := range mounts(k) {
			p.options = append(p.options, "-v", m)
		}
		return true
	case commandKeys.Has(key) && k.Kind == '[':
		p.inner = append(p.inner, strs(k)...)
		return true
	case k.Kind != '"':
		return false
	case isMode:
		p.options = append(p.options, "--"+strings.TrimRight(mode, "_-")+"="+k.Text)
		return true
	case commandKeys.Has(key):
		p.inner = append(p.inner, strings.Fields(strings.TrimPrefix(k.Text, p.exe+" "))...)
		return true
	}
	return slices.Contains([]string{"name", "working_dir", "workdir"}, key)
}

// text adds a member whose value is a string.
func (p *commandParts) text(key, text string) {
	switch {
	case isService(key):
		p.sub = append([]string{text}, p.sub...)
	case actionKeys.Has(key) || commandKeys.Has(key):
		p.sub = append(p.sub, strings.Fields(strings.TrimPrefix(text, p.exe+" "))...)
	case key == "output" && p.exe == "kubectl":
		p.options = append(p.options, "-o", text)
	case key == "namespace":
		p.options = append(p.options, "-n", text)
	case key == "image" || key == "remote" || strings.HasPrefix(text, "-"):
		p.operands = append([]string{text}, p.operands...)
	default:
		p.operands = append(p.operands, text)
	}
}

// strs returns the strings and numbers of a list.
func strs(list *tree.Node) []string {
	var out []string
	for _, k := range list.KidsOrNone() {
		if k.Kind == '"' || k.Kind == '0' {
			out = append(out, k.Text)
		}
	}
	return out
}

// mounts returns the mounted folders of the host as values of the option -v. It accepts "/:/host",
// ["/:/host"], {"/": {"bind": "/host"}} and [{"source": "/", "target": "/host"}].
func mounts(n *tree.Node) []string {
	switch n.Kind {
	case '"':
		return []string{n.Text}
	case '{':
		if source := n.Str("source", "Source", "src", "host_path", "hostPath", "host"); source != "" {
			return []string{source + ":/m"}
		}
		var out []string
		for _, key := range n.Keys {
			out = append(out, key+":/m")
		}
		return out
	}
	var out []string
	for _, k := range n.Kids {
		out = append(out, mounts(k)...)
	}
	return out
}

// runWords judges words of the JSON text as a command.
func (w *jsonWalk) runWords(at *tree.Node, argv []string) bool {
	return w.start(at, "", argv, act.Invocation{})
}

// start judges words as a program that starts without a shell. The node at contains the words; v
// sets the environment and the input.
func (w *jsonWalk) start(at *tree.Node, via string, argv []string, v act.Invocation) bool {
	src := w.src.Inside(w.src.Word(at.Start, max(at.Start, at.End)), via)
	if src.Depth > scan.MaxDepth || len(argv) == 0 {
		return false
	}
	v.Src, v.Direct, v.Argv, v.Stdin.Known, v.To = &src, true, interp.WordsAt(&src, argv), true, len(src.Text)
	(&interp.Process{Env: w.e, Src: &src}).Run(&v)
	return true
}

// Where a command is written in parts, headKeys lists members that may name the program, exeKeys
// those that always name it, and tailKeys those that contain its arguments.
var (
	headKeys = []string{"program", "exe", "executable", "binary", "bin", "cmd", "command", "file", "path", "interpreter", "entrypoint"}
	exeKeys  = []string{"program", "exe", "executable", "binary", "bin", "interpreter", "entrypoint"}
	tailKeys = scan.SetOf("args argv arguments options operands params parameters flags cmd command")
)

// commandInParts judges an object such as {program: "dd", argv: ["if=…"]}, and reports whether
// it is one.
func (w *jsonWalk) commandInParts(n *tree.Node) bool {
	head := n.Get(headKeys...)
	if head == nil {
		return w.commandAlone(n)
	}
	argv := oneProgram(head)
	if argv == nil || n.Get(exeKeys...) != head && !w.e.Acts(argv[0]) {
		return false
	}
	behind := len(argv)
	for i, k := range n.Kids {
		if k != head && isWords(k) && tailKeys.Has(strings.ToLower(n.KeysAt(i))) {
			argv = append(argv, strs(k)...)
		}
	}
	return len(argv) > behind && w.start(n, "json", argv, surroundings(n, head))
}

// commandAlone judges {process: {args: ["rm", …]}}, and reports whether the object is one.
func (w *jsonWalk) commandAlone(n *tree.Node) bool {
	list := n.Get("args", "argv")
	return isWords(list) && len(list.Kids) > 1 && w.e.Acts(list.Kids[0].Text) && toolNameOf(n) == "" && w.runWords(n, strs(list))
}

// oneProgram returns the word or list of words that names a program, or nil.
func oneProgram(head *tree.Node) []string {
	switch {
	case head.Kind == '"' && head.Text != "" && !strings.ContainsAny(head.Text, " \n"):
		return []string{head.Text}
	case isWords(head) && len(head.Kids) > 0:
		return strs(head)
	}
	return nil
}

// surroundings returns the variables and the input that the object n sets for the command in its
// member v.
func surroundings(n, v *tree.Node) (out act.Invocation) {
	if in := n.Get("stdin", "input"); in != nil && in != v && in.Kind == '"' && len(in.Text) < scan.MaxDecoded {
		out.Stdin.Word = act.Word{Text: in.Text, At: -1}
	}
	env := n.Get("env", "environment", "envVars", "env_vars", "Env")
	for i, k := range env.KidsOrNone() {
		name, value := env.KeysAt(i), k.Text
		if env.Kind == '[' {
			name, value, _ = strings.Cut(k.Text, "=")
			if k.Kind == '{' {
				name, value = k.Str("name", "key"), k.Str("value")
			}
		}
		if act.SyntaxName(name) && value != "" && len(value) < scan.MaxValue {
			out.Env = append(out.Env, act.Assign{Name: name, Value: act.Word{Text: value, At: -1}})
		}
	}
	return out
}
