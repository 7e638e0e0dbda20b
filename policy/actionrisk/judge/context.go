package judge

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// ReadContext derives the context from the members of the action. If they disagree, the higher
// risk counts: production takes precedence over development.
func ReadContext(a *act.Action) interp.Context {
	c := interp.Context{Cwd: strings.TrimSpace(a.Cwd)}
	if c.Cwd != "" {
		c.Cwd = path.Clean(c.Cwd)
	}
	for _, m := range [...]struct{ name, text string }{{"environment", a.Environment}, {"target", a.Target}, {"branch", ""}, {"cwd", a.Cwd}, {"repo", a.Repo}} {
		prod, dev := facts.Environments(m.text)
		if m.name == "cwd" || m.name == "repo" {
			dev = false // a folder or repository called test does not lower the level
		}
		if prod && c.Production == "" {
			c.Production = m.name
		}
		if dev && c.Development == "" {
			c.Development = m.name
		}
	}
	if protectedBranch(a.Branch) {
		c.Branch = "branch"
	}
	return c
}

// Adjust returns the level of a rule in this context. Production and a protected branch raise it;
// development and a test network lower it, but not below medium or the rule's own level, whichever
// is lower. The letters in the rule's class say which of these apply: e (environment), b (branch),
// c (test network). With the letter p nothing lowers the level below the rule's own. An effect
// that is rolled back or does not run yet, or whose object can be recreated, is at most medium in
// any case.
func Adjust(e *interp.Env, r *facts.Rule, it *act.Item) (act.Level, []act.Adjustment) {
	level, floor := r.Level, min(r.Level, act.Medium)
	if strings.Contains(r.Class, "p") {
		floor = r.Level
	}
	var out []act.Adjustment
	by := func(field, class string, delta int) {
		level += act.Level(delta)
		out = append(out, act.Adjustment{Field: field, Class: class, Delta: delta})
	}
	if strings.Contains(r.Class, "e") {
		switch prod, dev := environment(e, it); {
		case prod != "":
			by(prod, "production", 1)
		case dev != "":
			by(dev, "development", -1)
		}
	}
	if strings.Contains(r.Class, "b") && e.Context.Branch != "" && !namesTopics(e, it) {
		by("branch", "protected", 1)
	}
	if strings.Contains(r.Class, "c") && interp.TestChain(e, it) {
		by("command", "test-network", -1)
	}
	level = act.Clamp(max(level, floor))
	if madeAgain(e, it) {
		level = min(level, act.Medium)
	}
	return level, out
}

// madeAgain reports whether the effect is rolled back or does not run yet, or its object can be
// recreated.
func madeAgain(e *interp.Env, it *act.Item) bool {
	return it != nil && (it.Undone || it.Inv != nil && emulated(e, it.Inv))
}

// environment returns the member that names a production environment for the item, and the one
// that names a development environment. "command" means the words of the command.
func environment(e *interp.Env, it *act.Item) (production, development string) {
	production, development = e.Context.Production, e.Context.Development
	var p, d bool
	switch {
	case it != nil && it.Inv != nil:
		p, d = wordsEnvironment(e, it.Inv)
		d = d || emulated(e, it.Inv)
	case it != nil && it.Words != "":
		p, d = facts.Environments(it.Words)
	}
	if p {
		production = cmp.Or(production, "command")
	}
	if d {
		development = cmp.Or(development, "command")
	}
	return production, development
}

// emulated reports whether the command acts on a local emulator, whose state can be recreated: a
// cluster in containers or the emulator of a cloud.
func emulated(e *interp.Env, v *act.Invocation) bool {
	if slices.Contains(e.Groups.Get("localclusters"), v.Exe) {
		return true
	}
	url, _ := v.Value("--endpoint-url") // option of a cloud's client
	_, host, _, ok := hosts.Split(url.Text)
	return ok && hosts.LocalHost(host)
}

// wordsEnvironment derives the environment from the words of the command. A name of production
// counts anywhere. A name of development counts only in an option or variable for the environment,
// or as a complete name ("dev-db").
func wordsEnvironment(e *interp.Env, v *act.Invocation) (production, development bool) {
	says := func(p, d bool) { production, development = production || p, development || d }
	for _, w := range v.Operands {
		p, _ := facts.Environments(w.Text)
		says(p, namesDevelopment(w.Text))
	}
	for i := range v.Opts {
		says(optionEnvironment(v, &v.Opts[i]))
	}
	for _, a := range v.Env {
		if labels(a.Name) {
			says(facts.Environments(a.Value.Text))
		}
	}
	says(facts.Environments(v.Host))
	says(false, v.Has("--local") && e.In("local-stores", v.Exe) || e.In("http-clients", v.Exe) && hosts.Local(v) && namesTest(v))
	return production, development
}

// labels reports whether a variable names the environment or database of a program.
func labels(name string) bool {
	return storeVariables.Has(name) || scan.HasAnySuffix(name, "_ENV", "PROFILE") || slices.Contains([]string{"ENV", "ENVIRONMENT", "STAGE"}, name)
}

// optionEnvironment derives the environment from an option.
func optionEnvironment(v *act.Invocation, o *act.Option) (production, development bool) {
	if !o.Given {
		return o.Name == "--prod" || o.Name == "--production", false
	}
	label := facts.LabelOptions.Has(o.Name) && !strings.HasPrefix(o.Value.Text, "/dev/")
	switch o.Name {
	case "-m", "--message", "--body", "--data", "--title", "--notes":
		return false, false
	case "-f", "--file", "-p", "--project-name":
		label = label || composes(v)
	}
	production, development = facts.Environments(o.Value.Text)
	return production, development && label
}

// namesTest reports whether the path of a URL has a name of development.
func namesTest(v *act.Invocation) bool {
	for _, w := range v.Operands {
		_, rest, _ := strings.Cut(w.Text, "://")
		if _, path, ok := strings.Cut(rest, "/"); ok {
			if _, d := facts.Environments(path); d {
				return true
			}
		}
	}
	return false
}

// composes reports whether the option -f names the file of a compose project, whose name may
// contain the environment: docker-compose.test.yml.
func composes(v *act.Invocation) bool {
	return strings.HasSuffix(v.Exe, "-compose") || len(v.Operands) > 0 && v.Operands[0].Text == "compose"
}

// storeVariables are the variables that name the database of a program.
var storeVariables = scan.SetOf("DATABASE_URL DB_URL DATABASE_URI SQLALCHEMY_DATABASE_URI MONGO_URL MONGO_URI MONGODB_URI MONGODB_URL REDIS_URL AMQP_URL PGHOST PGDATABASE DB_HOST DB_NAME DB_DATABASE MYSQL_HOST MYSQL_DATABASE")

// namesDevelopment reports whether a name means development, such as "dev" or "orders-test".
// Paths, hosts and URLs do not count.
func namesDevelopment(t string) bool {
	if t == "test" || t == "ci" || t == "local" || strings.ContainsAny(t, "@.:/ ") {
		return false
	}
	_, d := facts.Environments(t)
	return d
}
