package toolcall

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// RequestBodies judges the statements in the body and the address of a request that an HTTP client
// sends. It always returns false, because it matches no rule for the call itself.
func RequestBodies(sh *interp.Process, v *act.Invocation) bool {
	e := sh.Env
	switch {
	case e.In("git-hosts", v.Exe):
		apiFields(sh, v)
		return false
	case v.Dry || !e.In("http-clients", v.Exe) || slices.ContainsFunc(v.Operands, searchAddress): // a search query is not a statement
		return false
	}
	for _, w := range v.Operands {
		if strings.Contains(w.Text, "?") {
			parameters(sh, w)
		}
	}
	words := hostsOf(v)
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && isBodyOption(o.Name) {
			optionBody(sh, v, o, words)
		}
	}
	if e.In("httpies", v.Exe) {
		items(sh, v, words)
	}
	return false
}

// hostsOf returns the names of the hosts to which a client sends, as words separated by spaces.
func hostsOf(v *act.Invocation) string {
	words := " " + v.Host
	for _, w := range v.Operands {
		if scheme, host, _, ok := hosts.Split(w.Text); ok && scheme != "" {
			words += " " + host
		}
	}
	return words
}

// searchAddress reports whether the path of the address is that of a search.
func searchAddress(w act.Word) bool {
	address, _, _ := strings.Cut(strings.ToLower(w.Text), "?")
	return scan.HasAny(address, "/search", "/_search", "autocomplete", "suggest")
}

func isBodyOption(name string) bool {
	return slices.Contains(hosts.BodyOptions, name) || name == "--raw" || name == "-Body"
}

// optionBody judges the body in the value of one option: a text, the input, or a file.
func optionBody(sh *interp.Process, v *act.Invocation, o *act.Option, words string) {
	body := act.Flow{Known: true, Word: o.Value}
	file, named := strings.CutPrefix(o.Value.Text, "@")
	switch o.Name {
	case "--post-file", "--body-file", "-T", "--upload-file":
		file, named = o.Value.Text, true
	case "--data-raw":
		named = false
	}
	switch {
	case named && slices.Contains([]string{"-", ".", "/dev/stdin"}, file):
		body = v.Stdin
	case named:
		body = sh.Env.ReadFile(sh, act.Word{Text: file})
	}
	if body.Known {
		src := sh.Src.Inside(body.Word, v.Exe+" body")
		runBody(sh.Env, &src, words)
	}
}

// apiFields judges the statements in the fields of gh api: -f query=text, -F query=@file.
func apiFields(sh *interp.Process, v *act.Invocation) {
	for i := range v.Opts {
		o := &v.Opts[i]
		key, value, ok := strings.Cut(o.Value.Text, "=")
		if !o.Given || !ok || !stores.QueryKeys.Has(key) {
			continue
		}
		text := act.Word{Text: value, At: -1, Span: o.Value.Span}
		if name, ok := strings.CutPrefix(value, "@"); ok {
			f := sh.Env.ReadFile(sh, act.Word{Text: name})
			if text = f.Word; !f.Known {
				continue
			}
		}
		src := sh.Src.Inside(text, v.Exe)
		runStatement(sh.Env, &src)
	}
}

// items judges the statements in the operands of httpie: key=value sets a member of the body, and
// key:=value sets it to a JSON value.
func items(sh *interp.Process, v *act.Invocation, words string) {
	for _, w := range v.Operands {
		key, value, ok := strings.Cut(w.Text, "=")
		if key = strings.TrimSuffix(key, ":"); !ok || strings.Contains(key, "://") {
			continue
		}
		src := sh.Src.Inside(act.Word{Text: strings.Trim(strings.TrimPrefix(value, "="), `"`), At: -1, Span: w.Span}, v.Exe)
		if stores.QueryKeys.Has(strings.ToLower(key)) {
			runStatement(sh.Env, &src)
		}
	}
	if v.Stdin.Known && v.Stdin.Word.Text != "" {
		src := sh.Src.Inside(v.Stdin.Word, v.Exe+" body")
		runBody(sh.Env, &src, words)
	}
}

// parameters judges the statements in the query of an address: ?query=DROP%20TABLE%20x.
func parameters(sh *interp.Process, w act.Word) {
	address, query, _ := strings.Cut(w.Text, "?")
	if strings.HasSuffix(address, "/query") { // InfluxDB calls the parameter "q"
		query = strings.ReplaceAll("&"+query, "&q=", "&query=")
	}
	runForm(sh.Env, &act.Source{Text: query, At: -1, Span: w.Span, Via: sh.Src.Via, Depth: sh.Src.Depth + 1})
}

// runForm judges the statements in a form: key=value&key=value.
func runForm(e *interp.Env, src *act.Source) {
	for pair := range strings.SplitSeq(src.Text, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || !stores.QueryKeys.Has(strings.ToLower(key)) || !e.Budget.Spend(1+len(pair)/16) {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		inner := *src
		inner.Text, inner.At, inner.Depth = value, -1, src.Depth+1
		runStatement(e, &inner)
	}
}

// runStatement judges a text as a database statement or a GraphQL mutation, and reports whether it
// looks like one.
func runStatement(e *interp.Env, src *act.Source) bool {
	text := strings.TrimSpace(src.Text)
	switch {
	case src.Depth > scan.MaxDepth || !e.Budget.Spend(1):
	case strings.HasPrefix(text, "mutation"):
		w := jsonWalk{e: e, src: src}
		return w.mutation(&tree.Node{Kind: '"', Text: text, End: len(src.Text)})
	case stores.LooksSQL(text) || stores.LooksMongo(text) || stores.LooksRedis(text):
		e.Read("sql", src, nil)
		return true
	}
	return false
}

// runBody judges the body of a request: JSON, one statement, or a form. words contains the names
// of the hosts.
func runBody(e *interp.Env, src *act.Source, words string) {
	text := strings.TrimSpace(src.Text)
	if text == "" || src.Depth > scan.MaxDepth || !e.Budget.Spend(1+len(text)/8) {
		return
	}
	switch {
	case text == "null" && (strings.Contains(words, "firebaseio.com") || strings.Contains(words, "firebasedatabase.app")):
		e.See(act.EmptiesStore, src, 0, len(src.Text), "") // null replaces all data at this path
	case text[0] == '{' || text[0] == '[':
		if root, _ := tree.JSON(src.Text); root != nil {
			w := bodyWalk{jsonWalk{e: e, src: src}, words}
			w.node(root, "")
		}
	case runStatement(e, src):
	default:
		form := *src
		if strings.HasPrefix(text, "q=") { // InfluxDB takes a form with the parameter "q"
			form.Text, form.At = "query="+text[2:], -1
		}
		runForm(e, &form)
	}
}

// bodyWalk finds statements and commands in a JSON body. words contains the names of the hosts.
type bodyWalk struct {
	jsonWalk
	words string
}

func (w *bodyWalk) node(n *tree.Node, key string) {
	if n == nil || !w.e.Budget.Spend(1) {
		return
	}
	switch n.Kind {
	case '"':
		if stores.QueryKeys.Has(strings.ToLower(key)) {
			src := n.Source(w.src, "body")
			runStatement(w.e, &src)
		}
	case '[':
		if w.command(n) {
			return
		}
		for _, k := range n.Kids {
			w.node(k, key)
		}
	case '{':
		if method := n.Str("method"); strings.HasPrefix(method, "tools/") {
			w.mcp(method, n.Get("params"))
			return
		}
		w.deletion(n)
		for i, k := range n.Kids {
			w.node(k, n.Keys[i])
		}
	}
}

// command judges a list that is a command of Redis (["FLUSHALL"]) or a list of SQL statements, and
// reports whether it is one.
func (w *bodyWalk) command(n *tree.Node) bool {
	if len(n.Kids) == 0 || n.Kids[0].Kind != '"' {
		return false
	}
	first := n.Kids[0].Text
	switch {
	case stores.LooksRedis(first):
		parts := make([]string, 0, len(n.Kids))
		for _, k := range n.Kids {
			parts = append(parts, k.Text)
		}
		src := n.Source(w.src, "body")
		src.Text, src.At = strings.Join(parts, " "), -1
		w.e.Redis(&src, src.Text, w.words)
		return true
	case len(first) > 10 && stores.LooksSQL(first):
		for _, k := range n.Kids {
			if k.Kind == '"' {
				src := k.Source(w.src, "body")
				runStatement(w.e, &src)
			}
		}
		return true
	}
	return false
}

// deletion reports objects that empty a store or remove an index.
func (w *bodyWalk) deletion(n *tree.Node) {
	all := func(names ...string) bool {
		v := n.Get(names...)
		return v != nil && v.Kind == 't'
	}
	removes := n.Get("delete", "remove")
	if all("deleteAll", "delete_all", "drop_all", "dropAll") || removes.Str("query") == "*:*" || n.Str("drop_op") == "ALL" {
		w.e.See(act.EmptiesStore, w.src, n.Start, n.End, "")
	}
	if n.Get("remove_index") != nil {
		w.e.See(act.RemovesIndex, w.src, n.Start, n.End, "")
	}
}

// ReadBody judges the body of a request of a known client.
func ReadBody(sh *interp.Process, src *act.Source, _ string, client *act.Invocation) act.Flow {
	runBody(sh.Env, src, stores.ClientWords(client, src.Text))
	return act.Flow{}
}
