package actionrisk

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

func TestParseJSON(t *testing.T) {
	for _, c := range []struct {
		text   string
		strict bool
		find   string // member to look up
		want   string
	}{
		{`{"a":"b"}`, true, "a", "b"},
		{`{"a":"\u0072m \"x\"\n"}`, true, "a", "rm \"x\"\n"},
		{`{"a":1.50}`, true, "a", "1.50"},
		{`{"a":"x","a":"y"}`, false, "a", "y"}, // most parsers use the last member
		{`{'a':'b'}`, false, "a", "b"},
		{`{a:"b"}`, false, "a", "b"},
		{`{"a":"b",}`, false, "a", "b"},
		{`{"a":"b"`, false, "a", "b"},
		{`{"a":"b"} x`, false, "a", "b"},
		{`{"a":["b"]`, false, "a", ""},
		{`{"a":`, false, "a", ""},
		{`{]`, false, "a", ""},
	} {
		root, strict := tree.JSON(c.text)
		if root == nil {
			t.Errorf("%s: no value", c.text)
			continue
		}
		if strict != c.strict || root.Str(c.find) != c.want {
			t.Errorf("%s: strict %v, %q", c.text, strict, root.Str(c.find))
		}
	}
}

func TestToolClass(t *testing.T) {
	for name, want := range map[string]string{
		"delete_repository": "destructive", "mcp__github__delete_file": "destructive", "purgeQueue": "destructive", "bulk-delete": "destructive",
		"list_and_delete": "destructive", "file.remove": "destructive",
		"get_deleted_items": "read", "list_files": "read", "search": "read", "mcp__fs__read_file": "read", "getUser": "read",
		"create_issue": "write", "updateRecord": "write", "send_email": "write", "transfer_issue": "write",
		"send_payment": "money", "create_refund": "money", "execute_trade": "money", "payInvoice": "money", "get_payment": "read",
		"bash": "shell", "run_terminal_cmd": "shell", "execute_command": "shell", "run_python_code": "shell", "list_commands": "read",
		"execute_sql": "sql", "run_query": "sql", "mysql_exec": "sql",
		"frobnicate": "unknown", "": "unknown",
	} {
		if got := facts.ToolClass(name); got != want {
			t.Errorf("toolClass(%q) = %s, want %s", name, got, want)
		}
	}
}

// TestJSONSpans checks that the evidence for a text inside JSON points into the submitted command.
func TestJSONSpans(t *testing.T) {
	command := `{"name":"bash","arguments":{"command":"ls; rm -rf /"}}`
	a := Assess(act.Action{Command: command})
	i := slices.IndexFunc(a.Findings, func(f interp.Finding) bool { return f.Rule.ID == "shell.rm.recursive-root" })
	if i < 0 {
		t.Fatal(a.RuleIDs())
	}
	f := a.Findings[i]
	if got := command[f.Span.Start:f.Span.End]; got != "rm -rf /" {
		t.Errorf("span is %q", got)
	}
	if !slices.Contains(f.Via, "mcp:bash") {
		t.Errorf("via is %v", f.Via)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"command":"ls"}`, `[{"a":`, `{"name":"x","arguments":"{\"a\":1}"}`, `{'a':[1,{}]}`, `{"x402Version":1,"accepts":[{"payTo":""}]}`, `{"Statement":{}}`, `{"types":{},"message":{},"primaryType":"Permit"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, strict := tree.JSON(text)
		if strict && root == nil {
			t.Fatal("strict without a value")
		}
		if root != nil && (root.Start < 0 || root.End > len(text) || root.Start > root.End) {
			t.Fatalf("span %d..%d of %d", root.Start, root.End, len(text))
		}
		a := Assess(act.Action{Command: text})
		for _, f := range a.Findings {
			if f.Span.Start < 0 || f.Span.End > len(text) || f.Span.Start > f.Span.End {
				t.Fatalf("%s: span %v of %d", f.Rule.ID, f.Span, len(text))
			}
		}
	})
}

// TestCommandsInParts checks that the members next to a command are its words, input and
// variables, not shell text, and that the findings point at them.
func TestCommandsInParts(t *testing.T) {
	for text, want := range map[string]act.Level{
		`{"command":"rm","args":["-rf","/"]}`:                                                     act.Critical,
		`{"command":"echo","args":["; rm -rf /"]}`:                                                act.Low,
		`{"command":"sh -c","args":["rm -rf /"]}`:                                                 act.Critical,
		`{"command":"cd /tmp && rm -rf","args":["/"]}`:                                            act.Critical,
		`{"command":"cat | sh","stdin":"rm -rf /"}`:                                               act.Critical,
		`{"command":"cat","stdin":"rm -rf /"}`:                                                    act.Low,
		`{"command":"git pull && make","env":{"GIT_SSH_COMMAND":"sh -c 'rm -rf /'"}}`:             act.Critical,
		`{"program":"dd","argv":["if=/dev/zero","of=/dev/sda"]}`:                                  act.Critical,
		`{"mcpServers":{"x":{"command":"sh","args":["-c","rm -rf /"]}}}`:                          act.Critical,
		`{"mcpServers":{"x":{"command":"node","args":["s.js","rm -rf /"]}}}`:                      act.High,
		`{"url":"https://api.acme.example/v1/t/7","method":"DELETE","body":"a | b"}`:              act.High,
		`{"tool":"delete_many","args":{"collection":"orders","filter":{}}}`:                       act.High,
		`{"tool":"run_command","args":{"command":{"drop": "orders"}, "database": "shop"}}`:        act.High,
		`{"tool":"find","args":{"collection":"orders","filter":{"note":"db.orders.drop()"}}}`:     act.Low,
		`{"tool":"update_many","args":{"collection":"orders","filter":{"a":1},"update":{"b":2}}}`: act.Medium,
	} {
		if got := Assess(Action{Command: text}); got.Risk != want {
			t.Errorf("%s: %v %v, want %v", text, got.Risk, got.RuleIDs(), want)
		}
	}
	text := `{"steps":1,"command":"rm","args":["-rf","/"]}`
	if f := Assess(Action{Command: text}).Findings[0]; f.Span != (act.Span{Start: 0, End: len(text)}) || f.Decoded != "" {
		t.Errorf("%v %q", f.Span, f.Decoded)
	}
}
