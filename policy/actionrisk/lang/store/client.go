package store

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
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

// ExpandClient puts the variables that the text and the options set into the text.
func ExpandClient(e *interp.Env, name, text string, client *act.Invocation) string {
	if other, ok := sameVariables[name]; ok {
		name = other
	}
	how, ok := variablesOf[name]
	if !ok {
		return text
	}
	set := map[string]string{}
	if client != nil {
		for i := range client.Opts {
			if o := &client.Opts[i]; o.Given && slices.Contains(how.Options, o.Name) {
				if k, v, ok := strings.Cut(o.Value.Text, "="); ok && k != "" {
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
		if !e.Budget.Spend(1+len(set)) || out.Len() > scan.MaxDecoded {
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
