package store

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Database clients have commands besides SQL. These run programs, read and write local files, and
// insert variables into the text.

var variablesOf = map[string]sql.ClientVariables{
	"psql":         {Define: []string{`\set `}, Options: []string{"-v", "--set", "--variable"}, Forms: []string{`:'?'`, `:"?"`, `:?`}, Joined: true},
	"sqlcmd":       {Define: []string{":setvar "}, Options: []string{"-v"}, Forms: []string{"$(?)"}},
	"sqlplus":      {Define: []string{"define ", "def "}, Forms: []string{"&&?.", "&?.", "&&?", "&?"}},
	"snowsql":      {Define: []string{"!define "}, Options: []string{"-D", "--variable"}, Forms: []string{"&?"}},
	"hive":         {Define: []string{"set hivevar:", "set hiveconf:", "set "}, Options: []string{"--hivevar", "--hiveconf", "-hiveconf", "-hivevar", "-d", "--define"}, Forms: []string{"${hivevar:?}", "${hiveconf:?}", "${?}"}},
	"impala-shell": {Options: []string{"--var"}, Forms: []string{"${var:?}"}},
}

var sameVariables = map[string]string{"pgcli": "psql", "usql": "psql", "ysqlsh": "psql", "gsql": "psql", "vsql": "psql", "nzsql": "psql", "osql": "sqlcmd", "mssql-cli": "sqlcmd", "sqlcl": "sqlplus", "sql": "sqlplus", "beeline": "hive", "spark-sql": "hive", "": "psql"}

// ExpandClient replaces the variables of a database client in a text by their values. The text
// itself and the options of the client set them.
func ExpandClient(e *interp.Env, name, text string, client *act.Invocation) string {
	if other, ok := sameVariables[name]; ok {
		name = other
	}
	how, ok := variablesOf[name]
	if !ok {
		return text
	}
	set := optionVariables(how.Options, client)
	if len(set) == 0 && !scan.HasAny(strings.ToLower(text), how.Define...) {
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

// optionVariables returns the variables that the listed options of the client set as NAME=VALUE.
func optionVariables(options []string, client *act.Invocation) map[string]string {
	set := map[string]string{}
	for _, name := range options {
		if client == nil {
			break
		}
		for _, w := range client.Values(name) {
			if k, v, ok := strings.Cut(w.Text, "="); ok && k != "" {
				set[k] = v
			}
		}
	}
	return set
}

// definition returns the variable that a line sets, and false if the line sets none.
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
