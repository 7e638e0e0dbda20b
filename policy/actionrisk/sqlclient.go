package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Database clients have commands of their own beside SQL: they run programs, read
// and write files of the machine they run on, and put variables into the text.

var variablesOf = map[string]sql.ClientVariables{
	"psql":         {Define: []string{`\set `}, Options: []string{"-v", "--set", "--variable"}, Forms: []string{`:'?'`, `:"?"`, `:?`}, Joined: true},
	"sqlcmd":       {Define: []string{":setvar "}, Options: []string{"-v"}, Forms: []string{"$(?)"}},
	"sqlplus":      {Define: []string{"define ", "def "}, Forms: []string{"&&?.", "&?.", "&&?", "&?"}},
	"snowsql":      {Define: []string{"!define "}, Options: []string{"-D", "--variable"}, Forms: []string{"&?"}},
	"hive":         {Define: []string{"set hivevar:", "set hiveconf:", "set "}, Options: []string{"--hivevar", "--hiveconf", "-hiveconf", "-hivevar", "-d", "--define"}, Forms: []string{"${hivevar:?}", "${hiveconf:?}", "${?}"}},
	"impala-shell": {Options: []string{"--var"}, Forms: []string{"${var:?}"}},
}

var sameVariables = map[string]string{"pgcli": "psql", "usql": "psql", "ysqlsh": "psql", "gsql": "psql", "vsql": "psql", "nzsql": "psql", "osql": "sqlcmd", "mssql-cli": "sqlcmd", "sqlcl": "sqlplus", "sql": "sqlplus", "beeline": "hive", "spark-sql": "hive", "": "psql"}

// expandClient puts the variables that the text and the options set into the text.
func (e *engine) expandClient(name, text string, client *invocation) string {
	if other, ok := sameVariables[name]; ok {
		name = other
	}
	how, ok := variablesOf[name]
	if !ok {
		return text
	}
	set := map[string]string{}
	if client != nil {
		for i := range client.opts {
			if o := &client.opts[i]; o.given && slices.Contains(how.Options, o.name) {
				if k, v, ok := strings.Cut(o.value.Text, "="); ok && k != "" {
					set[k] = v
				}
			}
		}
	}
	if len(set) == 0 && !slices.ContainsFunc(how.Define, func(d string) bool { return strings.Contains(strings.ToLower(text), d) }) {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !e.budget.spend(1+len(set)) || out.Len() > scan.MaxDecoded {
			break
		}
		line = sql.PutVariables(line, how.Forms, set)
		k, v, ok := definition(line, &how)
		if ok && !strings.Contains(v, "`") && len(set) < scan.MaxLoop && len(v) < scan.MaxValue {
			set[k] = v
		}
		out.WriteString(line)
	}
	return out.String()
}

// definition reads a line that sets a variable.
func definition(line string, how *sql.ClientVariables) (name, value string, ok bool) {
	trimmed := strings.TrimSpace(line)
	for _, d := range how.Define {
		if len(trimmed) <= len(d) || !strings.EqualFold(trimmed[:len(d)], d) {
			continue
		}
		rest := strings.TrimRight(trimmed[len(d):], "; ")
		name, value, ok = strings.Cut(strings.Replace(rest, "=", " ", 1), " ")
		sep := " "
		if how.Joined {
			sep = ""
			name, value, ok = strings.Cut(rest, " ")
		}
		return name, strings.Join(scan.OptionWords(value), sep), ok && name != ""
	}
	return "", "", false
}
