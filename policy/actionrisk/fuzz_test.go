package actionrisk

import (
	"encoding/base64"
	"encoding/hex"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/go-json-experiment/json"
)

// FuzzUnwrap checks that a text inside wrappers is judged within the limit of work, always with
// the same verdict, and that a shell command with high risk has at least medium risk inside a
// wrapper.
func FuzzUnwrap(f *testing.F) {
	for _, name := range []string{"stop1", "allow1"} {
		for _, c := range readHidden(f, name) {
			f.Add(c.command, uint8(len(c.command)))
		}
	}
	f.Fuzz(func(t *testing.T, command string, which uint8) {
		if len(command) > 1500 || !utf8.ValidString(command) || strings.ContainsRune(command, 0) {
			return
		}
		command = strings.TrimSpace(command)
		if strings.HasPrefix(command, "-") || strings.HasPrefix(command, "+") || command == "/?" {
			return // an option of the shell that gets the text, or a request for help
		}
		carry := [...]func(string) string{
			func(s string) string { return "bash -c " + quoteShell(s) },
			func(s string) string { return "sudo sh -c " + quoteShell(s) },
			func(s string) string { return "eval " + quoteShell(s) },
			func(s string) string { return "timeout 5 bash -c " + quoteShell(s) },
		}[which%4](command)
		plain, _ := current().assess(act.Action{Command: command})
		carried := act.Action{Command: carry}
		checkAssessment(t, carried)
		if got := Assess(carried); !strings.ContainsRune(command, '$') && plain.Coverage.Route == "shell" && plain.Coverage.Parsed && plain.Risk >= act.High && got.Risk < act.Medium {
			t.Errorf("%q is %v, carried %v %v", command, plain.Risk, got.Risk, got.RuleIDs())
		}
	})
}

// FuzzDecode checks that decoders accept any text, are bounded, and reverse the encoders.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"rm -rf /", "", "\xff\x00", "cm0gLXJmIH4=", "726d", `\x72\155`, "a-zA-Z", "$HOME"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 {
			return
		}
		if got, ok := scan.Decode64(base64.StdEncoding.EncodeToString([]byte(text))); !ok || got != text {
			t.Errorf("base64 of %q gives %q", text, got)
		}
		if got, ok := scan.DecodeHex(hex.EncodeToString([]byte(text))); !ok || got != text {
			t.Errorf("hex of %q gives %q", text, got)
		}
		once, _ := scan.Rot13(text)
		if twice, _ := scan.Rot13(once); utf8.ValidString(text) && twice != text {
			t.Errorf("rot13 twice of %q gives %q", text, twice)
		}
		if got := scan.Unescape(text); len(got) > 4*len(text)+4 || strings.IndexByte(got, scan.Hole) >= 0 && strings.IndexByte(text, '\\') >= 0 {
			t.Errorf("unescape(%q) = %q", text, got)
		}
		scan.Translate(text, text, "x")
		scan.Decode64(text)
		scan.DecodeHex(text)
		if utf8.ValidString(text) {
			checkAssessment(t, act.Action{Command: "echo " + quoteShell(text) + " | base64 -d | sh"})
			checkAssessment(t, act.Action{Command: "printf " + quoteShell(text) + " | sed 's/a/b/' | tr a-z b-za | sh"})
		}
	})
}

// FuzzRoute checks that every text is read in one of the known languages, which is its route.
func FuzzRoute(f *testing.F) {
	for _, s := range []string{"ls", "{}", `{"command":"ls"}`, "SELECT 1", "approve(a, 1)", "send 5 USDC to 0x0", "Get-Item x", "DELETE https://x/y", "[ -f x ]", "{ ls; }", "\ufeffls", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 {
			return
		}
		got := Assess(act.Action{Command: text})
		if !slices.Contains([]string{"empty", "shell", "sql", "call", "action", "powershell", "program", "json", "http", "unknown"}, got.Coverage.Route) {
			t.Errorf("%q has the route %q", text, got.Coverage.Route)
		}
		if got.Coverage.ReadOnly && got.Coverage.Unmatched {
			t.Errorf("%q is proven and unmatched", text)
		}
		checkAssessment(t, act.Action{Command: text})
	})
}

// fakeSecrets have the formats of secrets but are none.
var fakeSecrets = []string{"sk-" + strings.Repeat("aB3d", 10), "ghp_" + strings.Repeat("x7Kq", 9), "AKIA" + strings.Repeat("Z2Q4", 4), "glpat-" + strings.Repeat("q8W_", 5)}

// FuzzMaskedScore checks that no secret of a known format is in any output, whatever text is
// before and after it.
func FuzzMaskedScore(f *testing.F) {
	f.Add("curl -H 'Authorization: Bearer ", "' https://example.org", uint8(0))
	f.Add("export TOKEN=", " && npm publish", uint8(1))
	f.Add("rm -rf / # ", "", uint8(2))
	f.Fuzz(func(t *testing.T, before, after string, which uint8) {
		if len(before)+len(after) > 1500 || !utf8.ValidString(before+after) {
			return
		}
		secret := fakeSecrets[int(which)%len(fakeSecrets)]
		if before != "" && secretByte(before[len(before)-1]) || after != "" && secretByte(after[0]) {
			return // the secret would be a part of a longer word
		}
		text := before + secret + after
		once := act.Mask(text)
		if strings.Contains(once, secret) {
			t.Errorf("Mask(%q) = %q", text, once)
		}
		out, err := json.Marshal(ScoreAction(act.Action{Command: text}))
		if err == nil && strings.Contains(string(out), secret) {
			t.Errorf("the score of %q shows the secret", text)
		}
	})
}

// TestSameForAllProcessors checks that verdicts do not depend on GOMAXPROCS or on concurrent
// calls.
func TestSameForAllProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	one := digest(t)
	runtime.GOMAXPROCS(8)
	sums := make([]string, 4)
	var wait sync.WaitGroup
	for i := range sums {
		wait.Go(func() { sums[i] = digest(t) })
	}
	wait.Wait()
	for _, sum := range sums {
		if sum != one {
			t.Errorf("digest %s with 8 processors, %s with one", sum, one)
		}
	}
}

// TestMetamorphic checks that the cases of testdata/hidden are stopped inside each carrier exactly
// if they are stopped without one, and that a command which only mentions such a case is not
// stopped.
func TestMetamorphic(t *testing.T) {
	checks, sample := 0, sampleOf(t, 6)
	for _, name := range hiddenFiles(t) {
		for _, c := range readHidden(t, name) {
			if !sample() {
				continue
			}
			own := Assess(act.Action{Command: c.command})
			if own.Coverage.Route != "shell" || !own.Coverage.Parsed || strings.Contains(c.command, "alias") {
				continue
			}
			for name, carry := range map[string]func(string) string{
				"bash -c": carriers["bash -c"], "eval": carriers["eval"], "here-string": carriers["here-string"], "newline": carriers["newline"], "file": carriers["file"],
				"group": func(s string) string { return "{\n" + s + "\n}" },
				"twice": func(s string) string { return carriers["bash -c"](carriers["bash -c"](s)) },
			} {
				if strings.Contains(c.command, "<<") && name == "group" {
					continue
				}
				checks++
				if got := Assess(act.Action{Command: carry(c.command)}); (got.Risk >= act.High) != (own.Risk >= act.High) {
					t.Errorf("%s: %v becomes %v %v: %s", name, own.Risk, got.Risk, got.RuleIDs(), carry(c.command))
				}
			}
			for _, name := range []string{"echo", "printf", "grep", "commit", "gh body", "unused", "heredoc file"} {
				if strings.Contains(c.command, "EOF") || strings.Contains(strings.Join(own.RuleIDs(), " "), "text.") {
					continue // deceptive characters are reported even in a text that is only mentioned
				}
				checks++
				if got := Assess(act.Action{Command: mentions[name](c.command)}); got.Risk >= act.High {
					t.Errorf("%s: %v %v: %s", name, got.Risk, got.RuleIDs(), mentions[name](c.command))
				}
			}
		}
	}
	if checks < 2000 {
		t.Errorf("only %d checks", checks)
	}
}

// TestBadInput checks that a command which the engine cannot understand is reported as such, and
// that it is stopped with failClosedOnUnmatched.
func TestBadInput(t *testing.T) {
	for _, command := range []string{
		"frobnicate --all", "echo hi; frobnicate --all", "rm a.tmp && frobnicate", "FROBNICATE TABLE users", "psql -c 'FROBNICATE users'",
		"julia -e 'run(`x`)'", "Rscript -e 'x()'", "echo $((", "if true; then ls", "{\"a\":", "[1,2", "\xff\xfe", "((((", "'", "\"$(", "<<<", "|", "case x in", "}{", "\x00\x01",
		"каждый охотник", "do it now", "xyzzy", "DROP", "for", "ssh host frobnicate", "bash -c 'frobnicate'", "kubectl frobnicate x",
	} {
		got := Assess(act.Action{Command: command, FailClosedOnUnmatched: true})
		if got.Risk < act.High || !got.RequiresApproval {
			t.Errorf("%q is %v %v %+v", command, got.Risk, got.RuleIDs(), got.Coverage)
		}
		open := Assess(act.Action{Command: command})
		if !open.Coverage.Unmatched && open.Coverage.Parsed && len(open.Findings) == 0 {
			t.Errorf("%q: coverage %+v", command, open.Coverage)
		}
	}
}

// TestDialectUnknown checks that text in an unknown language is reported as such.
func TestDialectUnknown(t *testing.T) {
	for _, command := range []string{"psql -c 'FROBNICATE users'", "julia -e 'run(x)'"} {
		got := Assess(act.Action{Command: command})
		if !slices.Contains(got.RuleIDs(), "parse.dialect-unknown") || got.Risk != act.Low || !got.Coverage.Unmatched || len(got.Coverage.Uncertainties) == 0 {
			t.Errorf("%q: %v %v %+v", command, got.Risk, got.RuleIDs(), got.Coverage)
		}
	}
}

// TestContextIsMonotone checks for the cases of testdata/hidden that the risk never falls from
// development to no environment to production.
func TestContextIsMonotone(t *testing.T) {
	sample := sampleOf(t, 6)
	for _, name := range hiddenFiles(t) {
		for _, c := range readHidden(t, name) {
			if sample() {
				checkAssessment(t, act.Action{Command: c.command})
			}
		}
	}
}

// secretByte reports whether a token may contain the byte.
func secretByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
