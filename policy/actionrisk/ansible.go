package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// playbook judges the plays of a playbook, or a list of tasks.
func (sh *shell) playbook(src *source, v *invocation) {
	for _, n := range yamlDocuments(src.text, &sh.e.budget) {
		p := &playbookRun{sh: sh, src: src, v: v, vars: map[string]string{}}
		p.extraVars(v)
		sh.lookups(src, v)
		p.tasks(n, true)
	}
}

// extraVars takes the variables given as -e name=value.
func (p *playbookRun) extraVars(v *invocation) {
	for _, o := range v.opts {
		if o.name != "-e" && o.name != "--extra-vars" {
			continue
		}
		for pair := range strings.FieldsSeq(o.value.Text) {
			if name, value, ok := strings.Cut(pair, "="); ok && len(p.vars) < 64 {
				p.vars[name] = value
			}
		}
	}
}

// playbookRun is the state of one playbook.
type playbookRun struct {
	sh    *shell
	src   *source
	v     *invocation
	vars  map[string]string
	local bool
	depth int
}

// taskWords are members of a task that are not its module.
var taskWords = scan.SetOf("name when become become_user become_method become_flags loop register vars tags notify until retries delay ignore_errors ignore_unreachable changed_when failed_when args environment no_log run_once delegate_to delegate_facts any_errors_fatal async poll check_mode diff throttle timeout module_defaults collections listen loop_control first_available_file hosts remote_user gather_facts serial strategy max_fail_percentage vars_files vars_prompt roles import_playbook port connection gather_subset gather_timeout fact_path order force_handlers user")

// taskLists are members that hold further tasks.
var taskLists = scan.SetOf("tasks pre_tasks post_tasks handlers block rescue always")

func (p *playbookRun) tasks(n *jsonNode, plays bool) {
	if n == nil || p.depth > 16 || !p.sh.e.budget.spend(1) {
		return
	}
	if n.kind == '{' {
		n = &jsonNode{kind: '[', kids: []*jsonNode{n}}
	}
	p.depth++
	defer func() { p.depth-- }()
	for _, task := range n.kids {
		if task.kind == '{' && p.sh.e.budget.spend(2) {
			p.task(task)
		}
	}
}

func (p *playbookRun) task(task *jsonNode) {
	if vars := task.get("vars"); vars != nil {
		for i, k := range vars.kids {
			if i < len(vars.keys) && len(p.vars) < 64 {
				p.vars[vars.keys[i]] = k.text
			}
		}
	}
	local := p.local
	if host := task.str("hosts"); task.str("connection") == "local" || host == "localhost" || host == "127.0.0.1" {
		p.local = true
	}
	for i, k := range task.kids {
		switch key := task.keys[i]; {
		case taskLists[key]:
			p.tasks(k, false)
		case taskWords[key] || strings.HasPrefix(key, "with_"):
		default:
			p.module(key, k, task)
		}
	}
	p.local = local
}

// module judges one task by its module.
func (p *playbookRun) module(name string, args, task *jsonNode) {
	if name == "action" || name == "local_action" { // the module is its first word
		if args.kind == '{' {
			name = args.str("module")
		} else {
			var rest string
			name, rest, _ = strings.Cut(strings.TrimSpace(args.text), " ")
			args = &jsonNode{kind: '"', text: rest, start: args.start, end: args.end}
		}
	}
	if name == "" {
		return
	}
	items := task.get("loop", "with_items", "with_list", "with_fileglob", "with_dict")
	rounds := []*jsonNode{nil}
	if items != nil && len(items.kids) > 0 {
		rounds = items.kids[:min(len(items.kids), 8)]
	} else if items != nil {
		rounds = []*jsonNode{items}
	}
	inner := p.sh.behalf(p.src, name)
	inner.remote = p.sh.remote || !p.local
	for _, it := range rounds {
		r := &resource{kind: name, from: args}
		p.properties(r, args, it)
		p.properties(r, task.get("args"), it)
		inner.describe(r, &invocation{exe: p.v.exe, src: inner.src, opts: p.v.opts, to: len(p.src.text), stdin: flow{known: true}})
	}
}

// properties takes the arguments of a module into a resource.
func (p *playbookRun) properties(r *resource, n, it *jsonNode) {
	switch {
	case n == nil:
	case n.kind == '{':
		for i, k := range n.kids {
			list := k.kids
			if k.kind != '[' {
				list = []*jsonNode{k}
			}
			var words []Word
			for _, l := range list {
				w := piece(p.src, l)
				if l.kind == '{' { // an object: its text
					w.Text = p.src.text[l.start:min(max(l.end, l.start), len(p.src.text))]
				}
				w.Text = p.filled(w.Text, it)
				words = append(words, w)
			}
			r.add(n.keys[i], words...)
		}
	case n.kind == '[':
		for _, k := range n.kids {
			p.properties(r, k, it)
		}
	case n.text != "":
		w := piece(p.src, n)
		w.Text = p.filled(w.Text, it)
		assigned(r, w)
	}
}

// assigned takes "k=v k=v" or free text into a resource.
func assigned(r *resource, w Word) {
	free := w
	for _, t := range scan.OptionWords(w.Text) {
		if name, value, ok := strings.Cut(t, "="); ok && syntaxName(name) {
			one := w
			one.Text, one.At = value, -1
			r.add(name, one)
		}
	}
	for { // settings in front of a free text
		first, rest, ok := strings.Cut(strings.TrimSpace(free.Text), " ")
		name, _, set := strings.Cut(first, "=")
		if !ok || !set || name != "chdir" && name != "creates" && name != "removes" && name != "executable" {
			break
		}
		free.Text, free.At = rest, -1
	}
	r.add("free", free)
}

// filled puts the values of known variables into a text; unknown ones become holes.
func (p *playbookRun) filled(text string, it *jsonNode) string {
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
			value = it.text
		case it != nil && strings.HasPrefix(name, "item."):
			value = it.str(name[len("item."):])
		default:
			value = string(scan.Hole)
		}
		text = text[:from] + value + text[from+to+2:]
	}
	return text
}

// moduleWords judges one module given by its name and a text of arguments: ansible
// HOSTS -m NAME -a ARGS.
func (sh *shell) moduleWords(src *source, v *invocation) {
	inner := sh.behalf(src, v.exe)
	host := v.word(1).Text
	inner.remote = host != "localhost" && host != "127.0.0.1"
	sh.lookups(src, v)
	r := &resource{kind: "command"}
	if w, ok := v.value("-m", "--module-name"); ok {
		r.kind = w.Text
	}
	p := &playbookRun{sh: sh, src: src, v: v, vars: map[string]string{}}
	p.extraVars(v)
	text := strings.TrimSpace(src.text)
	if strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "{{") {
		for _, n := range yamlDocuments(src.text, &sh.e.budget) {
			p.properties(r, n, nil)
		}
	} else {
		w := Word{Text: p.filled(src.text, nil), At: -1, Span: src.span, Taint: src.taint}
		if w.Text == src.text {
			w.At = src.at
		}
		assigned(r, w)
	}
	inner.describe(r, v)
}

// functionWords judges the words that name a function or a kind and its arguments:
// salt HOSTS FUNCTION ARGS, pyinfra HOST OPERATION ARGS, puppet resource KIND NAME
// ARGS, bolt task run NAME ARGS; first is the place of the name.
func functionWords(sh *shell, v *invocation, first int) {
	inner := sh.behalf(sh.src, v.exe)
	if w, ok := v.value("-m", "--module-name"); ok && v.exe == "ansible" { // a module without arguments
		inner.describe(&resource{kind: w.Text}, v)
		return
	}
	if plugin, ok := v.value("--exec-command"); ok { // kubectl config set-credentials
		words := []Word{plugin}
		for i := range v.opts {
			if v.opts[i].name == "--exec-arg" {
				words = append(words, v.opts[i].value)
			}
		}
		inner.start(words, v)
		return
	}
	if first >= len(v.operands) {
		return
	}
	name := v.operands[first]
	rest := v.operands[first+1:]
	for strings.HasSuffix(name.Text, "state.single") && len(rest) > 0 || v.exe == "bolt" && name.Text == "run" && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	r := &resource{kind: name.Text}
	n := 0
	for _, w := range rest {
		key, value, ok := strings.Cut(w.Text, "=")
		switch {
		case ok && syntaxName(key):
			one := w.tail(len(key) + 1)
			one.Text = value
			switch key {
			case "ensure", "action", "present":
				if key = "state"; value == "False" || value == "false" {
					one.Text = "absent"
				}
			}
			r.add(key, one)
		default:
			if n++; n == 1 {
				r.add("free", w)
				r.add("title", w)
			}
			r.add(string(rune('0'+min(n, 9))), w)
		}
	}
	inner.describe(r, v)
}

// lookups runs what templates of Ansible start on the machine that controls the
// others: lookup('pipe', 'command'), and what query() and q() are given.
func (sh *shell) lookups(src *source, v *invocation) {
	text := src.text
	if i := strings.Index(text, "ProxyCommand="); i >= 0 { // options of ssh
		i += len("ProxyCommand=")
		sh.e.carried(sh, src, i, len(text), strings.Trim(text[i:], "'\" "), "ProxyCommand")
	}
	for _, key := range [...]string{"ansible_python_interpreter", "ansible_shell_executable", "ansible_become_exe", "ansible_ssh_executable"} {
		if i := strings.Index(text, key); i >= 0 && i+len(key) < len(text) {
			i += len(key) + 1
			value, _, _ := strings.Cut(text[i:], "\n")
			if value = strings.Trim(value, " :='\""); strings.Contains(value, " ") {
				sh.e.carried(sh, src, i, len(text), value, key)
			}
		}
	}
	for i := 0; i < len(text); {
		at := strings.Index(text[i:], "pipe")
		if at < 0 || !sh.e.budget.spend(1) {
			return
		}
		i += at + len("pipe")
		if before := text[:i-len("pipe")]; !strings.HasSuffix(strings.TrimSuffix(before, "ansible.builtin."), "'") && !strings.HasSuffix(strings.TrimSuffix(before, "ansible.builtin."), "\"") || !strings.Contains(text, "{{") {
			continue
		}
		rest := text[min(i+1, len(text)):]
		j := strings.IndexAny(rest, "'\"")
		if j < 0 || strings.Trim(rest[:j], " ,(\\") != "" {
			continue
		}
		if t := stringToken(rest, j, "jinja"); t.text != "" {
			sh.e.carried(sh, src, i+1+t.from, i+1+t.to, strings.TrimSuffix(t.text, "\\"), "lookup pipe")
		}
	}
}
