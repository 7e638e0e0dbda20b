package document

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// playbook judges an Ansible text: a playbook with plays, or a list of tasks.
func playbook(sh *interp.Process, src *act.Source, v *act.Invocation) {
	for _, n := range tree.YAML(src.Text, &sh.Env.Budget) {
		p := &playbookRun{sh: sh, src: src, v: v, vars: map[string]string{}}
		p.extraVars(v)
		lookups(sh, src, v)
		p.tasks(n)
	}
}

// extraVars stores the variables that the options -e and --extra-vars set as NAME=VALUE.
func (p *playbookRun) extraVars(v *act.Invocation) {
	for _, o := range v.Opts {
		if o.Name != "-e" && o.Name != "--extra-vars" {
			continue
		}
		for pair := range strings.FieldsSeq(o.Value.Text) {
			if name, value, ok := strings.Cut(pair, "="); ok && len(p.vars) < 64 {
				p.vars[name] = value
			}
		}
	}
}

// playbookRun is the state of the reading of one playbook: the known variables, and whether the
// current play runs on this machine.
type playbookRun struct {
	sh    *interp.Process
	src   *act.Source
	v     *act.Invocation
	vars  map[string]string
	local bool
	depth int
}

// taskWords lists the members that any Ansible task may have. Every other member names the module
// of the task, unless it is in taskLists.
var taskWords = scan.SetOf("name when become become_user become_method become_flags loop register vars tags notify until retries delay ignore_errors ignore_unreachable changed_when failed_when args environment no_log run_once delegate_to delegate_facts any_errors_fatal async poll check_mode diff throttle timeout module_defaults collections listen loop_control first_available_file hosts remote_user gather_facts serial strategy max_fail_percentage vars_files vars_prompt roles import_playbook port connection gather_subset gather_timeout fact_path order force_handlers user")

// taskLists lists the members whose value is a list of further tasks.
var taskLists = scan.SetOf("tasks pre_tasks post_tasks handlers block rescue always")

func (p *playbookRun) tasks(n *tree.Node) {
	if n == nil || p.depth > 16 || !p.sh.Env.Budget.Spend(1) {
		return
	}
	if n.Kind == '{' {
		n = &tree.Node{Kind: '[', Kids: []*tree.Node{n}}
	}
	p.depth++
	defer func() { p.depth-- }()
	for _, task := range n.Kids {
		if task.Kind == '{' && p.sh.Env.Budget.Spend(2) {
			p.task(task)
		}
	}
}

func (p *playbookRun) task(task *tree.Node) {
	vars := task.Get("vars")
	for i, k := range vars.KidsOrNone() {
		if len(p.vars) < 64 {
			p.vars[vars.KeysAt(i)] = k.Text
		}
	}
	local := p.local
	if host := task.Str("hosts"); task.Str("connection") == "local" || host == "localhost" || host == "127.0.0.1" {
		p.local = true
	}
	for i, k := range task.Kids {
		switch key := task.Keys[i]; {
		case taskLists.Has(key):
			p.tasks(k)
		case taskWords.Has(key) || strings.HasPrefix(key, "with_"):
		default:
			p.module(key, k, task)
		}
	}
	p.local = local
}

// module judges a task by its module, once per element of its loop (at most 8).
func (p *playbookRun) module(name string, args, task *tree.Node) {
	if name == "action" || name == "local_action" { // the module is the member "module", or the first word of the text
		word, rest, _ := strings.Cut(strings.TrimSpace(args.Text), " ")
		if name = args.Str("module"); args.Kind != '{' {
			name, args = word, &tree.Node{Kind: '"', Text: rest, Start: args.Start, End: args.End}
		}
	}
	if name == "" {
		return
	}
	items := task.Get("loop", "with_items", "with_list", "with_fileglob", "with_dict")
	rounds := []*tree.Node{nil}
	if items != nil && len(items.Kids) > 0 {
		rounds = items.Kids[:min(len(items.Kids), 8)]
	} else if items != nil {
		rounds = []*tree.Node{items}
	}
	inner := p.sh.Behalf(p.src, name)
	inner.Remote = p.sh.Remote || !p.local
	for _, it := range rounds {
		r := &facts.Resource{Kind: name, From: args}
		p.properties(r, args, it)
		p.properties(r, task.Get("args"), it)
		inner.Describe(r, &act.Invocation{Exe: p.v.Exe, Src: inner.Src, Opts: p.v.Opts, To: len(p.src.Text), Stdin: act.Flow{Known: true}})
	}
}

// properties adds the arguments of a module to the resource r. It replaces {{item}} by the current
// element of the loop, if there is a loop.
func (p *playbookRun) properties(r *facts.Resource, n, it *tree.Node) {
	switch {
	case n == nil:
	case n.Kind == '{':
		for i, k := range n.Kids {
			list := k.Kids
			if k.Kind != '[' {
				list = []*tree.Node{k}
			}
			var words []act.Word
			for _, l := range list {
				w := interp.Piece(p.src, l)
				if l.Kind == '{' { // an object: use its source text
					w.Text = p.src.Text[l.Start:min(max(l.End, l.Start), len(p.src.Text))]
				}
				w.Text = p.filled(w.Text, it)
				words = append(words, w)
			}
			r.Add(n.Keys[i], words...)
		}
	case n.Kind == '[':
		for _, k := range n.Kids {
			p.properties(r, k, it)
		}
	case n.Text != "":
		w := interp.Piece(p.src, n)
		w.Text = p.filled(w.Text, it)
		assigned(r, w)
	}
}

// assigned adds arguments written as "k=v k=v" to a resource, and the text after the leading
// settings (chdir, creates …) as the property "free".
func assigned(r *facts.Resource, w act.Word) {
	free := w
	for _, t := range scan.OptionWords(w.Text) {
		if name, value, ok := strings.Cut(t, "="); ok && act.SyntaxName(name) {
			one := w
			one.Text, one.At = value, -1
			r.Add(name, one)
		}
	}
	for { // skip the settings before the free text
		first, rest, ok := strings.Cut(strings.TrimSpace(free.Text), " ")
		name, _, set := strings.Cut(first, "=")
		if !ok || !set || name != "chdir" && name != "creates" && name != "removes" && name != "executable" {
			break
		}
		free.Text, free.At = rest, -1
	}
	r.Add("free", free)
}

// filled replaces {{NAME}} in a text by the value of the variable, and {{item}} by the current
// element of the loop. An unknown variable becomes an unknown part of the text.
func (p *playbookRun) filled(text string, it *tree.Node) string {
	for n := 0; n < 16; n++ {
		from := strings.Index(text, "{{")
		if from < 0 {
			break
		}
		to := strings.Index(text[from:], "}}")
		if to < 0 {
			break
		}
		name := strings.TrimSpace(text[from+2 : from+to])
		value, ok := p.vars[name]
		switch {
		case ok && !strings.Contains(value, "{{"):
		case it != nil && name == "item":
			value = it.Text
		case it != nil && strings.HasPrefix(name, "item."):
			value = it.Str(name[len("item."):])
		default:
			value = string(scan.Hole)
		}
		text = text[:from] + value + text[from+to+2:]
	}
	return text
}

// moduleWords judges a module that a command line names, with a text of arguments: ansible HOSTS
// -m NAME -a ARGS.
func moduleWords(sh *interp.Process, src *act.Source, v *act.Invocation) {
	inner := sh.Behalf(src, v.Exe)
	host := v.Word(1).Text
	inner.Remote = host != "localhost" && host != "127.0.0.1"
	lookups(sh, src, v)
	r := &facts.Resource{Kind: "command"}
	if w, ok := v.Value("-m", "--module-name"); ok {
		r.Kind = w.Text
	}
	p := &playbookRun{sh: sh, src: src, v: v, vars: map[string]string{}}
	p.extraVars(v)
	text := strings.TrimSpace(src.Text)
	if strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "{{") {
		for _, n := range tree.YAML(src.Text, &sh.Env.Budget) {
			p.properties(r, n, nil)
		}
	} else {
		w := act.Word{Text: p.filled(src.Text, nil), At: -1, Span: src.Span, Taint: src.Taint}
		if w.Text == src.Text {
			w.At = src.At
		}
		assigned(r, w)
	}
	inner.Describe(r, v)
}

// FunctionWords judges a command line whose words are the name of a function or resource kind and
// its arguments: salt HOSTS FUNCTION ARGS, pyinfra HOST OPERATION ARGS, puppet resource KIND NAME
// ARGS, bolt task run NAME ARGS. first is the index of the operand that holds the name.
func FunctionWords(sh *interp.Process, v *act.Invocation, first int) {
	inner := sh.Behalf(sh.Src, v.Exe)
	if w, ok := v.Value("-m", "--module-name"); ok && v.Exe == "ansible" { // ansible HOSTS -m NAME, a module without arguments
		inner.Describe(&facts.Resource{Kind: w.Text}, v)
		return
	}
	if plugin, ok := v.Value("--exec-command"); ok { // kubectl config set-credentials names a program that prints credentials
		inner.Start(append([]act.Word{plugin}, v.Values("--exec-arg")...), v)
		return
	}
	if first >= len(v.Operands) {
		return
	}
	name := v.Operands[first]
	rest := v.Operands[first+1:]
	for strings.HasSuffix(name.Text, "state.single") && len(rest) > 0 || v.Exe == "bolt" && name.Text == "run" && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	inner.Describe(resourceOf(name.Text, rest), v)
}

// resourceOf returns a resource with words as properties. A word "key=value" sets the property
// key; any other word sets the property named by its number ("1", "2" …), and the first one also
// sets "free" and "title".
func resourceOf(kind string, words []act.Word) *facts.Resource {
	r := &facts.Resource{Kind: kind}
	n := 0
	for _, w := range words {
		key, value, ok := strings.Cut(w.Text, "=")
		if !ok || !act.SyntaxName(key) {
			if n++; n == 1 {
				r.Add("free", w)
				r.Add("title", w)
			}
			r.Add(string(rune('0'+min(n, 9))), w)
			continue
		}
		one := w.Tail(len(key) + 1)
		switch key {
		case "ensure", "action", "present":
			if key = "state"; value == "False" || value == "false" {
				one.Text = "absent"
			}
		}
		r.Add(key, one)
	}
	return r
}

// lookups judges the commands that Ansible templates start on the control machine: the argument of
// a 'pipe' lookup, by lookup(), query() or q(). It also judges an SSH ProxyCommand and the
// settings that name the programs Ansible starts.
func lookups(sh *interp.Process, src *act.Source, v *act.Invocation) {
	text := src.Text
	if i := strings.Index(text, "ProxyCommand="); i >= 0 { // this option of ssh names a command
		i += len("ProxyCommand=")
		sh.Carried(i, len(text), strings.Trim(text[i:], "'\" "), "ProxyCommand")
	}
	for _, key := range [...]string{"ansible_python_interpreter", "ansible_shell_executable", "ansible_become_exe", "ansible_ssh_executable"} {
		if i := strings.Index(text, key); i >= 0 && i+len(key) < len(text) {
			i += len(key) + 1
			value := strings.Trim(scan.FirstLine(text[i:]), " :='\"")
			if strings.Contains(value, " ") {
				sh.Carried(i, len(text), value, key)
			}
		}
	}
	for i := 0; strings.Contains(text, "{{") && sh.Env.Budget.Spend(1); {
		at := strings.Index(text[i:], "pipe")
		if at < 0 {
			return
		}
		before := strings.TrimSuffix(text[:i+at], "ansible.builtin.")
		if i += at + len("pipe"); scan.HasAnySuffix(before, "'", "\"") {
			lookupPipe(sh, text, i)
		}
	}
}

// lookupPipe judges the quoted string that follows 'pipe' in a call as a shell command.
func lookupPipe(sh *interp.Process, text string, i int) {
	rest := text[min(i+1, len(text)):]
	j := strings.IndexAny(rest, "'\"")
	if j < 0 || strings.Trim(rest[:j], " ,(\\") != "" {
		return
	}
	if t := tokens.StringToken(sh.Env, rest, j, "jinja"); t.Text != "" {
		sh.Carried(i+1+t.From, i+1+t.To, strings.TrimSuffix(t.Text, "\\"), "lookup pipe")
	}
}
