package actionrisk

import (
	"strings"
)

// playbook judges the plays of a playbook, or a list of tasks.
func (sh *shell) playbook(src *source, v *invocation) {
	for _, n := range yamlDocuments(src.text, &sh.e.budget) {
		p := &playbookRun{sh: sh, src: src, v: v, vars: map[string]string{}}
		for _, o := range v.opts { // -e name=value
			if o.name == "-e" || o.name == "--extra-vars" {
				for pair := range strings.FieldsSeq(o.value.Text) {
					if name, value, ok := strings.Cut(pair, "="); ok {
						p.vars[name] = value
					}
				}
			}
		}
		sh.lookups(src, v)
		p.tasks(n, true)
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
var taskWords = setOf("name when become become_user become_method become_flags loop register vars tags notify until retries delay ignore_errors ignore_unreachable changed_when failed_when args environment no_log run_once delegate_to delegate_facts any_errors_fatal async poll check_mode diff throttle timeout module_defaults collections listen loop_control first_available_file hosts remote_user gather_facts serial strategy max_fail_percentage vars_files vars_prompt roles import_playbook port connection gather_subset gather_timeout fact_path order force_handlers user")

// taskLists are members that hold further tasks.
var taskLists = setOf("tasks pre_tasks post_tasks handlers block rescue always")

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
	for _, t := range optionWords(w.Text) {
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
			value = string(hole)
		}
		text = text[:from] + value + text[from+to+2:]
	}
	return text
}

// moduleWords judges one module given by its name and a text of arguments: ansible
// -m NAME -a ARGS, salt TARGET FUNCTION ARGS, pyinfra HOST OPERATION ARGS, puppet
// resource TYPE NAME ARGS, bolt task run NAME ARGS.
func (sh *shell) moduleWords(src *source, v *invocation) {
	inner := sh.behalf(src, v.exe)
	inner.remote = true
	switch v.exe {
	case "ansible":
		sh.lookups(src, v)
		r := &resource{kind: "command"}
		if w, ok := v.value("-m", "--module-name"); ok {
			r.kind = w.Text
		}
		if host := v.word(1).Text; host == "localhost" || host == "127.0.0.1" {
			inner.remote = false
		}
		text := Word{Text: src.text, At: src.at, Span: src.span, Taint: src.taint}
		if strings.HasPrefix(strings.TrimSpace(text.Text), "{") && !strings.HasPrefix(strings.TrimSpace(text.Text), "{{") {
			p := &playbookRun{sh: sh, src: src, v: v}
			for _, n := range yamlDocuments(src.text, &sh.e.budget) {
				p.properties(r, n, nil)
			}
		} else {
			assigned(r, text)
		}
		inner.describe(r, v)
	}
}

// functionWords judges the words that name a function of such a tool and its
// arguments; first is the place of the name.
func (sh *shell) functionWords(v *invocation, first int) {
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

// puppet judges the resources of a manifest of Puppet: kind { title: name => value }.
func (sh *shell) puppet(src *source, v *invocation) {
	toks := scanInline(src.text, "php", &sh.e.budget)
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].text == "generate" && toks[i+1].kind == '(' { // runs where the manifest is compiled
			r := &inlineRun{sh: sh.behalf(src, "generate"), src: src, lang: "php", toks: toks}
			if list := r.strings(r.arguments(i + 1)); len(list) > 0 {
				r.run(list)
			}
		}
		if toks[i].kind != 'i' || toks[i+1].kind != '{' || !sh.e.budget.spend(1) {
			continue
		}
		end := min(closing(toks, i+1, '{', '}'), len(toks))
		if !sh.e.budget.spend((end - i) / 16) {
			return
		}
		sh.puppetBodies(src, toks[i].text, toks[i+2:end], v)
	}
}

// puppetBodies are the titles and properties between the braces of one kind.
func (sh *shell) puppetBodies(src *source, kind string, toks []inlineToken, v *invocation) {
	inner := sh.behalf(src, kind)
	for at := 0; at < len(toks); {
		colon := at
		for depth := 0; colon < len(toks) && (toks[colon].kind != ':' || depth > 0); colon++ {
			switch toks[colon].kind {
			case '[', '{', '(':
				depth++
			case ']', '}', ')':
				depth--
			}
		}
		if colon >= len(toks) {
			return
		}
		r := &resource{kind: strings.TrimPrefix(kind, "::")}
		run := &inlineRun{sh: inner, src: src, lang: "php", toks: toks}
		titles := run.strings(toks[at:colon])
		end := colon + 1
		for end < len(toks) && toks[end].kind != ';' {
			end++
		}
		run.puppetProperties(r, toks[colon+1:end])
		for _, title := range titles {
			one := *r
			one.props = append(one.props[:len(one.props):len(one.props)], property{"title", []Word{run.word(title)}})
			inner.describe(&one, &invocation{exe: v.exe, src: inner.src, to: len(src.text), opts: v.opts, stdin: flow{known: true}})
		}
		at = end + 1
	}
}

// puppetProperties takes "name => value" pairs into a resource.
func (r *inlineRun) puppetProperties(to *resource, toks []inlineToken) {
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].kind != 'i' || toks[i+1].kind != '=' || toks[i+2].kind != '>' {
			continue
		}
		name := toks[i].text
		switch name {
		case "ensure":
			name = "state"
		}
		to.add(name, r.values(toks, i+3)...)
	}
}

// values is the text, the bare word or the list of texts at toks[i].
func (r *inlineRun) values(toks []inlineToken, i int) []Word {
	var out []Word
	switch t := toks[i]; t.kind {
	case 's':
		out = append(out, r.word(t))
	case 'i':
		t.text = strings.TrimPrefix(t.text, ":")
		if strings.HasPrefix(t.text, "$") {
			t.text = string(hole)
		}
		out = append(out, r.word(t))
	case '[':
		for _, s := range toks[i+1 : min(closing(toks, i, '[', ']'), len(toks))] {
			if s.kind == 's' || s.kind == 'i' {
				s.text = strings.TrimPrefix(s.text, ":")
				out = append(out, r.word(s))
			}
		}
	case ':': // a symbol
		if i+1 < len(toks) {
			out = append(out, r.word(toks[i+1]))
		}
	}
	return out
}

// chef judges the resources of a recipe, kind 'title' do … end, and runs the rest as
// the Ruby it is.
func (sh *shell) chef(src *source, v *invocation) {
	sh.e.runInline(sh, src, "ruby")
	toks := scanInline(src.text, "ruby", &sh.e.budget)
	inner := sh.behalf(src, "recipe")
	r := &inlineRun{sh: inner, src: src, lang: "ruby", toks: toks}
	for i := 0; i+1 < len(toks); i++ {
		if toks[i].kind != 'i' || strings.ContainsAny(toks[i].text, ".:") || !sh.e.budget.spend(1) {
			continue
		}
		at := i + 1
		if toks[at].kind == '(' {
			at++
		}
		if at >= len(toks) || toks[at].kind != 's' {
			continue
		}
		one := &resource{kind: toks[i].text}
		one.add("title", r.word(toks[at]))
		if at++; at < len(toks) && toks[at].kind == ')' {
			at++
		}
		if at < len(toks) && (toks[at].text == "do" || toks[at].kind == '{') {
			r.chefProperties(one, toks, at+1)
		}
		inner.describe(one, &invocation{exe: v.exe, src: inner.src, to: len(src.text), opts: v.opts, stdin: flow{known: true}})
	}
}

// chefProperties takes "name value" lines up to the end of the block.
func (r *inlineRun) chefProperties(to *resource, toks []inlineToken, i int) {
	for ; i+1 < len(toks) && toks[i].kind != '}' && toks[i].text != "end"; i++ {
		if toks[i].kind != 'i' {
			continue
		}
		name, at := toks[i].text, i+1
		switch {
		case toks[at].kind == '(' && at+1 < len(toks):
			at++
		case toks[at].kind == '<':
			if body, ok := hereText(r.src.text[toks[at].from:]); ok && r.sh.e.budget.spend(8+len(body)/4) {
				to.add(name, Word{Text: body, At: -1, Span: r.src.span})
				mark := len(body) + toks[at].from
				for i+1 < len(toks) && toks[i+1].from < mark {
					i++
				}
			}
			continue
		}
		if name == "action" {
			name = "state"
		}
		if list := r.values(toks, at); len(list) > 0 {
			to.add(name, list...)
			i = at
		}
	}
}

// states judges a state file of Salt: under each id the functions, "file.absent", and
// a list of their arguments.
func (sh *shell) states(src *source, v *invocation) {
	inner := sh.behalf(src, "state")
	p := &playbookRun{sh: sh, src: src, v: v}
	for _, n := range yamlDocuments(src.text, &sh.e.budget) {
		for i, state := range n.kids {
			if n.kind != '{' || !sh.e.budget.spend(2) {
				continue
			}
			id := Word{Text: n.keys[i], At: -1, Span: inner.src.span, Taint: src.taint}
			for j, args := range state.kids {
				if state.kind != '{' {
					continue
				}
				r := &resource{kind: state.keys[j]}
				p.properties(r, args, nil)
				for _, name := range [...]string{"name", "title", "1"} {
					if _, given := r.get("name"); !given || name != "name" {
						r.add(name, id)
					}
				}
				inner.describe(r, &invocation{exe: v.exe, src: inner.src, opts: v.opts, to: len(src.text), stdin: flow{known: true}})
			}
		}
	}
}
