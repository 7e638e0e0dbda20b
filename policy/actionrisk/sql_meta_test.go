package actionrisk

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

// mustStopSQL are statements that must be stopped in every text of sqlCarriers.
var mustStopSQL = []string{
	"DROP TABLE users",
	"DROP DATABASE shop",
	"DROP SCHEMA app CASCADE",
	"TRUNCATE TABLE users",
	"DELETE FROM users",
	"DELETE FROM users WHERE 1=1",
	"DELETE FROM users WHERE id = 5 OR true",
	"UPDATE users SET role = 1",
	"UPDATE users SET role = 1 WHERE id IS NOT NULL",
	"ALTER TABLE users DROP COLUMN email",
	"GRANT ALL PRIVILEGES ON shop TO app",
	"ALTER ROLE app SUPERUSER",
}

func sqlLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func jsonText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// sqlCarriers make a text that runs the given statement.
var sqlCarriers = map[string]func(string) string{
	"lower case":         strings.ToLower,
	"mixed case":         mixCase,
	"comments as blanks": func(s string) string { return strings.ReplaceAll(s, " ", "/**/") },
	"line feeds":         func(s string) string { return strings.ReplaceAll(s, " ", "\n") },
	"second statement":   func(s string) string { return "SELECT 1; " + s },
	"before a comment":   func(s string) string { return s + " -- WHERE id = 1" },
	"behind a comment":   func(s string) string { return "/* nightly */ " + s + ";" },
	"executable comment": func(s string) string { return "/*!50000 " + s + " */" },
	"in a transaction":   func(s string) string { return "BEGIN; " + s + "; COMMIT;" },
	"DO block":           func(s string) string { return "DO $$ BEGIN " + s + "; END $$" },
	"EXECUTE":            func(s string) string { return "DO $$ BEGIN EXECUTE " + sqlLiteral(s) + "; END $$" },
	"concatenated": func(s string) string {
		return "DO $$ BEGIN EXECUTE " + sqlLiteral(s[:2]) + " || " + sqlLiteral(s[2:]) + "; END $$"
	},
	"prepared": func(s string) string { return "PREPARE s FROM " + sqlLiteral(s) + "; EXECUTE s" },
	"variable": func(s string) string { return "SET @q = " + sqlLiteral(s) + "; PREPARE s FROM @q; EXECUTE s" },
	"hexadecimal": func(s string) string {
		return "SET @q = 0x" + hex.EncodeToString([]byte(s)) + "; PREPARE s FROM @q; EXECUTE s"
	},
	"sp_executesql": func(s string) string { return "EXEC sp_executesql N" + sqlLiteral(s) },
	"psql":          func(s string) string { return "psql -h db shop -c " + scan.Quote(s) },
	"mysql":         func(s string) string { return "sudo mysql shop -e " + scan.Quote(s) },
	"here-document": func(s string) string { return "psql shop <<'SQL'\n" + s + ";\nSQL" },
	"echo":          func(s string) string { return "echo " + scan.Quote(s) + " | mysql shop" },
	"base64": func(s string) string {
		return "echo " + base64.StdEncoding.EncodeToString([]byte(s)) + " | base64 -d | psql"
	},
	"file":        func(s string) string { return "echo " + scan.Quote(s) + " > x.sql && psql -f x.sql" },
	"container":   func(s string) string { return "docker exec db psql -c " + scan.Quote(s) },
	"bash -c":     func(s string) string { return "bash -c " + scan.Quote("psql -c "+scan.Quote(s)) },
	"tool call":   func(s string) string { return `{"name":"execute_sql","arguments":{"query":` + jsonText(s) + `}}` },
	"JSON member": func(s string) string { return `{"sql":` + jsonText(s) + `}` },
}

func mixCase(s string) string {
	b := []byte(strings.ToLower(s))
	for i := 0; i < len(b); i += 2 {
		b[i] = strings.ToUpper(string(b[i]))[0]
	}
	return string(b)
}

// sqlMentions make a text that contains the statement as data.
var sqlMentions = map[string]func(string) string{
	"literal":        func(s string) string { return "SELECT " + sqlLiteral(s) },
	"dollar literal": func(s string) string { return "SELECT $x$" + s + "$x$" },
	"compared":       func(s string) string { return "SELECT * FROM log WHERE statement = " + sqlLiteral(s) },
	"inserted":       func(s string) string { return "INSERT INTO log VALUES (" + sqlLiteral(s) + ")" },
	"line comment":   func(s string) string { return "SELECT 1 -- " + s },
	"comment":        func(s string) string { return "SELECT 1 /* " + s + " */" },
	"explained":      func(s string) string { return "EXPLAIN " + s },
	"echo":           func(s string) string { return "echo " + scan.Quote(s) },
	"commit message": func(s string) string { return "git commit -m " + scan.Quote(s) },
	"searched for":   func(s string) string { return "grep -rn " + scan.Quote(s) + " db/" },
	"written":        func(s string) string { return "cat > notes.txt <<'EOF'\n" + s + "\nEOF" },
	"tool's data":    func(s string) string { return `{"name":"create_issue","arguments":{"body":` + jsonText(s) + `}}` },
	"searched":       func(s string) string { return `{"name":"search_code","arguments":{"query":` + jsonText(s) + `}}` },
	"psql literal":   func(s string) string { return "psql -c " + scan.Quote("SELECT "+sqlLiteral(s)) },
}

func TestSQLCarriers(t *testing.T) {
	for _, s := range mustStopSQL {
		for name, carry := range sqlCarriers {
			if command := carry(s); Assess(act.Action{Command: command}).Risk < act.High {
				t.Errorf("%s: %q is %v %v", name, command, Assess(act.Action{Command: command}).Risk, Assess(act.Action{Command: command}).RuleIDs())
			}
		}
	}
}

func TestSQLMentions(t *testing.T) {
	for _, s := range mustStopSQL {
		for name, mention := range sqlMentions {
			if command := mention(s); Assess(act.Action{Command: command}).Risk > act.Medium {
				t.Errorf("%s: %q is %v %v", name, command, Assess(act.Action{Command: command}).Risk, Assess(act.Action{Command: command}).RuleIDs())
			}
		}
	}
}

// TestSQLEnvironment checks that production never lowers the risk and development never raises it.
func TestSQLEnvironment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(append([]string{"SELECT 1", "DELETE FROM t WHERE id = 5", "INSERT INTO t VALUES (1)", "CREATE INDEX i ON t (a)"}, mustStopSQL...)).Draw(t, "statement")
		plain := Assess(act.Action{Command: s}).Risk
		prod := Assess(act.Action{Command: s, Environment: "production"}).Risk
		dev := Assess(act.Action{Command: s, Environment: "development"}).Risk
		if prod < plain || dev > plain || plain-dev > 1 {
			t.Fatalf("%s: production %v, unlabelled %v, development %v", s, prod, plain, dev)
		}
	})
}

// TestSQLAppended checks that a dangerous statement is stopped even if a comment or a harmless
// statement follows it.
func TestSQLAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(mustStopSQL).Draw(t, "statement")
		tail := rapid.SampledFrom([]string{"; SELECT 1", " -- WHERE id = 1", " /* LIMIT 1 */", ";", "; ROLLBACK", "; COMMIT; ROLLBACK", "\n-- BEGIN", "; EXPLAIN SELECT 1"}).Draw(t, "tail")
		if a := Assess(act.Action{Command: s + tail}); a.Risk < act.High {
			t.Fatalf("%s: %v %v", s+tail, a.Risk, a.RuleIDs())
		}
	})
}
