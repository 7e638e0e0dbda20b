package actionrisk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// writtenBombs are hostile texts of about 2,000 characters: nesting, products, loops,
// self-reference, long lists.
var writtenBombs = map[string]string{
	"parentheses": strings.Repeat("(", 2000), "substitutions": strings.Repeat("$(", 1000), "backticks": strings.Repeat("`", 2000),
	"braces": strings.Repeat("{a,b}", 400), "brace product": strings.Repeat("{1..9}", 300), "arithmetic": strings.Repeat("((", 1000),
	"if": strings.Repeat("if true; then ", 142), "case": strings.Repeat("case x in x) ", 150), "comments": strings.Repeat("/*", 1000),
	"quotes": strings.Repeat(`"'`, 1000), "heredocs": strings.Repeat("<<A ", 500), "pipes": strings.Repeat("a|", 1000), "semicolons": strings.Repeat("a;", 1000),
	"sudo": strings.Repeat("sudo ", 400) + "ls", "bash": strings.Repeat("bash -c ", 250), "eval": strings.Repeat("eval ", 400), "loops": strings.Repeat("for a in 1 2 3 4 5 6 7 8 9; do ", 60) + "ls" + strings.Repeat("; done", 60),
	"functions": "f(){ f;f;f;f; };f", "doubling": "a=xx;" + strings.Repeat("a=$a$a;", 100) + "echo $a | sh", "replace": "a=" + strings.Repeat("x", 500) + ";" + strings.Repeat("a=${a//x/xx};", 80),
	"zero width": strings.Repeat("\u200b", 660), "bidi": strings.Repeat("\u202e", 660), "combining": "a" + strings.Repeat("\u0301", 900), "json": strings.Repeat("[", 2000), "json2": strings.Repeat(`{"a":`, 400),
	"aliases": "alias a='a a';a", "xargs": strings.Repeat("xargs ", 300), "sql": strings.Repeat("SELECT(", 280), "dollar": strings.Repeat("$", 2000), "globs": "rm " + strings.Repeat("*", 1900),
	"base64": "echo " + strings.Repeat("YWFh", 480) + strings.Repeat(" | base64 -d", 6), "printf": "printf '%s%s' " + strings.Repeat("a ", 900), "python": "python3 -c '" + strings.Repeat("os.system(", 190) + "'",
	"self file": "echo 'sh x;sh x' > x; sh x", "tr": "echo a | tr " + strings.Repeat("a-z", 500) + " b", "assignments": strings.Repeat("a=b ", 480) + "ls", "ansi": "$'" + strings.Repeat(`\x41`, 480) + "'",
	"find": "find " + strings.Repeat("-exec ls {} ; ", 140), "parallel": "parallel ::: " + strings.Repeat("x ", 900), "redirects": strings.Repeat(">a ", 660), "nul": strings.Repeat("\x00", 2000), "bad utf8": strings.Repeat("\xff", 2000),
	"parentheses (2)": strings.Repeat("(", 2000), "substitutions (2)": strings.Repeat("$(", 1000), "backticks (2)": strings.Repeat("`", 2000),
	"braces (2)": strings.Repeat("{a,b}", 400), "brace product (2)": strings.Repeat("{1..9}", 300), "brace args": strings.Repeat("{1..9}{1..9} ", 150), "brace rm": "rm " + strings.Repeat("{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p} ", 45), "brace long": "rm " + strings.Repeat("x", 1000) + "{1..256}" + strings.Repeat("{a,b}", 100),
	"loops (2)": strings.Repeat("for a in 1 2 3 4 5 6 7 8 9; do ", 60) + "ls" + strings.Repeat("; done", 60), "loops2": strings.Repeat("for a in {1..64}; do ", 10) + strings.Repeat("rm $a;", 150) + strings.Repeat(" done;", 10), "loops3": "for a in {1..64}; do " + strings.Repeat("rm -rf $a/x;", 140) + "done", "loopsprint": "for a in {1..64}; do x=$x$a; done;" + strings.Repeat("echo $x|sh;", 150),
	"while": "while read l; do " + strings.Repeat("rm $l;", 100) + "done <<'E'\n" + strings.Repeat("x\n", 600) + "E", "ifs": strings.Repeat("if a; then x=1; else x=2; fi;", 60) + strings.Repeat("rm $x;", 40), "ifs2": strings.Repeat("if a; then x=$x$x; else x=2; fi;", 50) + strings.Repeat("rm $x$x;", 20),
	"case (2)": "case a in " + strings.Repeat("x) a=1;b=2;;", 130) + "esac;" + strings.Repeat("rm $a$b;", 20), "vars": strings.Repeat("a=1;", 450) + "if x; then b=1; fi", "manyvars": manyVariables(),
	"ls;": strings.Repeat("ls;", 660), "rm a": "rm " + strings.Repeat("a ", 990), "rm;": strings.Repeat("rm a;", 390), "rm -rf;": strings.Repeat("rm -rf /x;", 200), "git;": strings.Repeat("git push -f;", 160), "curl|sh": strings.Repeat("curl x|sh;", 200), "pipes (2)": strings.Repeat("echo x | ", 200) + "cat", "seds": "echo " + strings.Repeat("a", 500) + strings.Repeat("|sed s/a/aa/g", 110), "cyr": strings.Repeat("\u0441", 990),
	"python (2)": "python3 -c '" + strings.Repeat("os.system(", 190) + "'", "py2": "python3 -c '" + strings.Repeat("a=\"x\"+a;", 200) + "'", "py3": "python3 -c '" + strings.Repeat("x(", 900) + "'", "py4": "python3 -c '" + strings.Repeat("a[", 900) + "'", "py5": "python3 -c '" + strings.Repeat("chr(1)+", 250) + "'", "py6": "python3 -c 'eval(" + strings.Repeat("a.b[0](", 270) + "'", "py7": "python3 -c '" + strings.Repeat("eval(eval(", 190) + "'", "node": "node -e '" + strings.Repeat("a=require(", 200) + "'", "awk": "awk '" + strings.Repeat("system(x)", 200) + "'", "pyb": "python3 -c '" + strings.Repeat("[\"a\",", 400) + "'", "pyc": "python3 -c 'x(\"" + strings.Repeat("a\",\"", 390) + "\")'", "pyr": "python3 -c 'system(" + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "[::-1])'",
	"eval (2)": strings.Repeat("eval ", 400), "bash -c": strings.Repeat("bash -c ", 250), "funcs": "f(){ f;f;f;f; };f", "funcs2": "a(){ b;b;b;b;};b(){ c;c;c;c;};c(){ d;d;d;d;};d(){ e;e;e;e;};e(){ rm x;};a", "aliases (2)": "alias a='a a';a", "xargs (2)": strings.Repeat("xargs ", 300), "xargsI": "printf '" + strings.Repeat("a\\n", 300) + "' | xargs -I{} sh -c '" + strings.Repeat("rm {};", 150) + "'", "parallel (2)": "parallel rm ::: " + strings.Repeat("x ", 900),
	"doubling (2)": "a=xx;" + strings.Repeat("a=$a$a;", 100) + "echo $a | sh", "replace (2)": "a=" + strings.Repeat("x", 500) + ";" + strings.Repeat("a=${a//x/xx};", 80), "glob": "a=" + strings.Repeat("a", 900) + ";" + strings.Repeat("${a##*a*a*a*b}", 60), "subst": strings.Repeat("$(ls)", 60) + strings.Repeat(" a", 800), "substs": strings.Repeat("$(ls)", 390), "here": strings.Repeat("cat <<E;", 200),
	"json (2)": strings.Repeat("[", 2000), "json2 (2)": strings.Repeat(`{"a":`, 400), "json3": `[` + strings.Repeat(`{"command":"rm -rf /"},`, 80) + `1]`, "json4": `{"command":"` + strings.Repeat("ls;", 600) + `"}`, "sql (2)": strings.Repeat("SELECT(", 280), "sql2": strings.Repeat("DELETE FROM a;", 140), "sql3": "SELECT " + strings.Repeat("a,", 900), "sql4": "DELETE FROM a WHERE " + strings.Repeat("a=1 OR ", 250) + "1", "sqlcomment": "SELECT " + strings.Repeat("/*", 990), "sqlquote": "SELECT " + strings.Repeat("'", 1990), "sqldollar": "SELECT " + strings.Repeat("$a$", 600), "do": strings.Repeat("DO $$ BEGIN ", 150), "psql": "psql -c \"" + strings.Repeat("DELETE FROM a;", 130) + "\"",
	"base64 (2)": "echo " + strings.Repeat("YWFh", 480) + strings.Repeat(" | base64 -d", 6), "redirs": strings.Repeat(">a ", 660), "assigns": strings.Repeat("a=b ", 480) + "ls", "find (2)": "find " + strings.Repeat("-exec ls {} ; ", 140), "tr (2)": "echo a | tr " + strings.Repeat("a-z", 500) + " b", "zw": strings.Repeat("\u200b", 660), "comb": "a" + strings.Repeat("\u0301", 900), "emoji": strings.Repeat("😀", 990), "ps": strings.Repeat("Get-Item x|", 150) + "iex", "ps2": "Get-Item " + strings.Repeat("$(", 900), "psand": strings.Repeat("Remove-Item a;", 140), "selffile": "echo 'sh x;sh x' > x; sh x", "selffile2": "echo '" + strings.Repeat("sh x;", 300) + "' > x; sh x", "bgfile": "echo x > y & " + strings.Repeat("rm -rf a;", 200),
	"calls": strings.Repeat("transfer(", 200), "calls2": strings.Repeat("approve(a,b);", 150), "phrase": "send 5 USDC to " + strings.Repeat("0xabc ", 300), "sudo (2)": strings.Repeat("sudo ", 390) + "rm", "git -c": "git " + strings.Repeat("-c alias.x=!ls ", 120) + "x", "words": strings.Repeat("word ", 399), "urls": "curl " + strings.Repeat("http://a.b/ ", 160), "exp": strings.Repeat("$a", 990), "dq": strings.Repeat("\"$a\"", 490), "arr": "a=(" + strings.Repeat("x ", 900) + ");" + strings.Repeat("${a[@]}", 30), "arr2": strings.Repeat("a[1]=x;", 280), "arr3": strings.Repeat("a+=(x y z);", 180), "sinks": strings.Repeat("tee >(sh) ", 190) + "<<<ls", "sinks2": "tee " + strings.Repeat(">(tee ", 300) + strings.Repeat(")", 300), "others": "a=1;" + strings.Repeat("x&&a=2;", 100) + strings.Repeat("rm $a;", 180), "semi": strings.Repeat(";", 2000), "nul (2)": strings.Repeat("\x00", 2000), "bad": strings.Repeat("\xff", 2000), "dots": strings.Repeat("../", 660), "cd": strings.Repeat("cd ..;", 330), "bs": strings.Repeat("\\", 2000), "esc": "echo $'" + strings.Repeat("\\x41", 480) + "'", "unclosed": strings.Repeat("'a ", 600), "if (2)": strings.Repeat("if true; then ", 142), "heredocs (2)": strings.Repeat("bash <<E\nrm x\nE\n", 120), "docker": strings.Repeat("docker run ", 180) + "x", "ssh": strings.Repeat("ssh a ", 330) + "ls",
	"mixed prose": "echo '" + strings.Repeat("gіt ", 390) + "'", "strangers": strings.Repeat("x rm ", 390), "strangers;": strings.Repeat("x rm a;", 280), "run options": strings.Repeat("x --exec 'rm a' ", 120),
	"julia": "julia -e 'run(" + strings.Repeat(`"rm",`, 380) + ")'", "tcl": "tclsh <<< '" + strings.Repeat("exec rm a;", 180) + "'", "lisp": "guile -c '" + strings.Repeat(`(system "rm a")`, 120) + "'",
	"coproc": strings.Repeat("coproc A { cat; };", 105), "descriptors": strings.Repeat("exec 3<a 4<&3;", 140), "links": strings.Repeat("ln -s / a;rm a/b;", 115), "locals": "f(){ " + strings.Repeat("local a=b;", 190) + "};f;f", "hooks": strings.Repeat("PAGER='rm a' man x;", 100),
	"settings": "git " + strings.Repeat("-c pager.x='rm a' ", 105) + "log", "recursion": "f(){ f & };" + strings.Repeat("f;", 900), "patterns": "cat " + strings.Repeat("~/.s*/i?_[r]sa ", 125), "%w": "ruby -e 'system " + strings.Repeat("%w[rm a],", 210) + "'", "shifts": "set -- a b;" + strings.Repeat("shift;", 320),
	"ternary": "node -e \"require('child_process').exec(" + strings.Repeat("a?b:", 450) + "c)\"", "awk pipes": "awk 'BEGIN{" + strings.Repeat("a|b|", 400) + "}'", "receivers": "python3 -c '" + strings.Repeat("Path(a).unlink();", 110) + "'",
	"built": "python3 -c \"" + strings.Repeat("a=chr(b)+", 200) + "os.system(a)\"", "piped calls": "elixir -e '" + strings.Repeat("a()|>", 300) + "System.shell()'", "chained": "printf 'fn main(){" + strings.Repeat("Command::new(\"a\");", 50) + strings.Repeat(".arg(\"b\")", 80) + "}' > a.rs; rustc a.rs",
	"read files": "printf 'import os\n" + strings.Repeat("os.system(\"pytest\")\n", 80) + "' > conftest.py; pytest", "makefile": "printf 'A=$(B)$(B)\\nB=$(C)$(C)\\nC=$(D)$(D)\\nD=xxxxxxxx\\nall:\\n" + strings.Repeat("\\t$(A)\\n", 200) + "' > Makefile; make", "make makes": "printf 'all:\\n" + strings.Repeat("\\tmake\\n", 200) + "' > Makefile; make",
	"less than": "Remove-Item a < b", "less than (2)": "cmd /c \"sort < a\"",
	"scripts": "echo '{\"scripts\":{\"test\":\"" + strings.Repeat("npm test;", 150) + "\"}}' > package.json; npm test", "loops of code": "python3 -c 'for a in [\"x\",\"y\"]:\n" + strings.Repeat(" os.system(a)\n", 120) + "'", "methods": "python3 -c 'Path(\"x\")" + strings.Repeat(".a()", 400) + ".unlink()'",
	"not found": "command_not_found_handle(){ x; };" + strings.Repeat("x;", 900), "plus": "vim " + strings.Repeat("+!ls ", 390), "ends": strings.Repeat("xterm -e x -e ", 140), "tar options": "TAR_OPTIONS='" + strings.Repeat("-x ", 600) + "' tar", "serve": strings.Repeat("php -S a -t ~;", 130),
}

func manyVariables() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "v%d=1;", i)
	}
	return b.String() + strings.Repeat("if a;then b=1;fi;", 30)
}

// TestBombs checks that no text takes more steps than the budget, and that a text which uses the
// complete budget gets at least high risk.
func TestBombs(t *testing.T) {
	for name, text := range allBombs() {
		got, steps := current().assess(act.Action{Command: text})
		if steps > scan.MaxSteps {
			t.Errorf("%s: %d steps", name, steps)
		}
		if steps == scan.MaxSteps && got.Risk < act.High {
			t.Errorf("%s: out of budget and only %v", name, got.Risk)
		}
	}
}

// TestHonestSteps checks that an ordinary command uses at most an eighth of the budget, and a long
// script at most half of it. Fork bombs are excluded.
func TestHonestSteps(t *testing.T) {
	check := func(a act.Action) {
		got, steps := current().assess(a)
		if strings.Contains(strings.Join(got.RuleIDs(), " "), "fork-bomb") {
			return
		}
		if steps > scan.MaxSteps/8 {
			t.Errorf("%d steps: %s", steps, a.Command)
		}
	}
	for _, a := range seeds(t) {
		check(a)
	}
	for _, name := range hiddenFiles(t) {
		if strings.HasPrefix(name, "obscured") { // the effects in these texts are hidden on purpose, which may need more steps
			continue
		}
		for _, c := range readHidden(t, name) {
			check(act.Action{Command: c.command})
		}
	}
	long := strings.Repeat("mkdir -p build/out && cp -r src/app.js build/out/ && npm run lint\n", 30)
	if got, steps := current().assess(act.Action{Command: long}); steps > scan.MaxSteps/2 || got.Risk > act.Medium {
		t.Errorf("a script of %d characters takes %d steps and is %v %v", len(long), steps, got.Risk, got.RuleIDs())
	}
}

// BenchmarkWorst measures every text of allBombs. Its maximum is the worst case.
func BenchmarkWorst(b *testing.B) {
	worst, name := 0.0, ""
	times := make([]float64, 0, 1<<20)
	all := allBombs()
	for b.Loop() {
		for n, text := range all {
			best := 1e9 // the best of ten tries: other processes and the garbage collector disturb single ones
			for range 10 {
				start := nanotime()
				Assess(act.Action{Command: text})
				best = min(best, float64(nanotime()-start)/1e3)
			}
			times = append(times, best)
			if best > worst {
				worst, name = best, n
			}
		}
	}
	report(b, times)
	b.Logf("worst: %s, %.0f µs", name, worst)
}

// TestCrowd checks that a critical finding is reported after hundreds of less severe findings.
func TestCrowd(t *testing.T) {
	if got := Assess(act.Action{Command: strings.Repeat("rm a;", 258) + "rm -rf /"}); got.Risk != act.Critical {
		t.Errorf("%v %v", got.Risk, got.RuleIDs())
	}
}
