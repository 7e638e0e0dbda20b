package actionrisk

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Hostile texts: pieces of many languages, repeated, doubled by variables and files, and passed to
// every language that the engine reads. They are made to find code that reads the same text again
// and again. Only an attacker who wants to stall the gate would write them.

// bomb is one hostile command.
type bomb struct {
	name    string // piece, growth and carrier
	command string
}

// pieces are the repeated parts. Each makes a text that is deeply nested, long, or both.
var pieces = []string{
	"eval(", "exec(", "system(", "os.system(", "a(", "a.b(", "a.b(c,", "a[", "a[0](", "{", "[", "(", "{\"a\":", "[\"a\",", "f(\"a\",", "x.y[z(",
	")", "]", "}", "\"", "'", "`", "\\", "#", "/*", "//", "--", "<<A\n", "%{", "${", "$(", "#{", "<(", "@(", "\"a\"+", "a+", "a=a+", "a=b;", "a=\"x\"+a;", "a+=b;",
	"a,b=c,d;", "a.b.c.d.e ", "chr(1)+", "a.replace(b,", "a.format(", "'%s'%(", "join(", "require(", "import a;", "from a import b;", "import a as b;",
	"def f(a):", "function f(a){", "lambda a:", "a=>{", "if a:", "for a in b:", "for a in [\"x\"]:", "while(a){", "try{", "a?b:", "a|", "a||", "a&&", "a|>", "a->b(", "a::b(",
	"open(a,", "unlink(", "rmtree(", "requests.get(", "fetch(", "urlopen(", "subprocess.run([", "Popen(", "spawn(", "child_process.", "getattr(a,", "send(:a,", "`a`;", "\"#{a}\"",
	"base64.b64decode(", "atob(", "Buffer.from(", "pack(", "a.call(", "a.apply(", "Function(", "transfer(", "approve(a,", "a.delete(", "a.create({", "SELECT(", "select a from (", "drop table a;", "begin;", "case when ",
	"a;", "a\n", "a ", "a=", "=", ",", ".", ":", "<", ">", ">a ", "|", "&", ";", "!", "?", "*", "~", "^", "%", "%a%", "$a", "$$", "@a", "-a ", "--a=b ", "/", "../", "*/", "{a,b}", "{1..9}", "\t", "\u200b", "\u0441", "é", "\x00",
	"${a:-", "\"${a:-", "${a:+", "${a:=", "${a/", "${a##", "${a[", "${!", "${a:-$(b ", "${a:-`", "$((a[", "$[", "$'", "$\"", "$env:a", "%a:", "<%= ", "{{ ", "0x", "1e", "0xabcdef ", "5 USDC ", "a@b.c ", "http://a/", "- a:\n", "a: &a\n", "*a ", "? ", "a:\n ", "<<: ", "resource \"a\" \"b\" {", "file{\"a\":", "FROM a\nRUN ", "a:\n\tb\n", "Remove-Item ", "& {", "iex ", "[char]1+", "-f a,", "^", "%~a", "for %a in (", "if a==b ",
}

// growths make a text of about n characters from a piece.
var growths = []struct {
	name string
	grow func(piece string, n int) string
}{
	{"repeated", func(piece string, n int) string { return repeat(piece, n) }},
	{"then shut", func(piece string, n int) string {
		half := repeat(piece, n/2)
		return half + repeat(shut(piece), min(n-len(half), n/2))
	}},
	{"in front of a call", func(piece string, n int) string { return repeat(piece, n*3/4) + repeat("eval(a(\"b\"));", n/4) }},
	{"in a string", func(piece string, n int) string {
		return "a=\"" + strings.ReplaceAll(repeat(piece, n*3/4), `"`, "") + "\";" + repeat("eval(a);", n/4)
	}},
	{"assigned", func(piece string, n int) string { return repeat("a="+piece+";", n/2) + repeat("b(a);", n/2) }},
}

// bombCarriers pass a text to a language. Those that double the text write it once and use it
// several times.
var bombCarriers = []struct {
	name  string
	carry func(text string) string
	share int // the text may be at most 1/share of the command
}{
	{"shell", func(s string) string { return s }, 1},
	{"bash -c", func(s string) string { return "bash -c " + quote(s) }, 1},
	{"python", func(s string) string { return "python3 -c " + quote(s) }, 1},
	{"node", func(s string) string { return "node -e " + quote(s) }, 1},
	{"ruby", func(s string) string { return "ruby -e " + quote(s) }, 1},
	{"perl", func(s string) string { return "perl -e " + quote(s) }, 1},
	{"php", func(s string) string { return "php -r " + quote(s) }, 1},
	{"awk", func(s string) string { return "awk " + quote(s) }, 1},
	{"lua", func(s string) string { return "lua -e " + quote(s) }, 1},
	{"r", func(s string) string { return "Rscript -e " + quote(s) }, 1},
	{"julia", func(s string) string { return "julia -e " + quote(s) }, 1},
	{"elixir", func(s string) string { return "elixir -e " + quote(s) }, 1},
	{"go", func(s string) string { return "cat > a.go <<'E'\npackage main\n" + s + "\nE\ngo run a.go" }, 1},
	{"tcl", func(s string) string { return "tclsh <<< " + quote(s) }, 1},
	{"jq", func(s string) string { return "jq " + quote(s) }, 1},
	{"sed", func(s string) string { return "sed " + quote(s) + " a" }, 1},
	{"powershell", func(s string) string { return "powershell -Command " + quote(s) }, 1},
	{"cmd", func(s string) string { return "cmd /c " + quote(s) }, 1},
	{"sql", func(s string) string { return "psql -c " + quote(s) }, 1},
	{"sql text", func(s string) string { return "DROP TABLE a; " + s }, 1},
	{"mysql", func(s string) string { return "mysql <<'E'\n" + s + "\nE" }, 1},
	{"mongo", func(s string) string { return "mongosh --eval " + quote(s) }, 1},
	{"redis", func(s string) string { return "redis-cli " + s }, 1},
	{"cypher", func(s string) string { return "cypher-shell " + quote(s) }, 1},
	{"yaml", func(s string) string { return "kubectl apply -f - <<'E'\nkind: Pod\n" + s + "\nE" }, 1},
	{"compose", func(s string) string { return "docker compose -f - up <<'E'\nservices:\n" + s + "\nE" }, 1},
	{"playbook", func(s string) string { return "ansible-playbook - <<'E'\n- hosts: a\n  tasks:\n" + s + "\nE" }, 1},
	{"terraform", func(s string) string { return "cat > a.tf <<'E'\n" + s + "\nE\nterraform apply" }, 1},
	{"makefile", func(s string) string { return "cat > Makefile <<'E'\nall:\n\t" + s + "\nE\nmake" }, 1},
	{"dockerfile", func(s string) string { return "docker build - <<'E'\n" + s + "\nE" }, 1},
	{"json", func(s string) string { return `{"name":"bash","arguments":{"command":` + jsonQuote(s) + `}}` }, 1},
	{"json program", func(s string) string { return `{"name":"python","arguments":{"code":` + jsonQuote(s) + `}}` }, 1},
	{"json text", func(s string) string { return `{"a":` + s }, 1},
	{"patch", func(s string) string { return "*** Begin Patch\n*** Add File: a.sh\n+" + s + "\n*** End Patch" }, 1},
	{"http body", func(s string) string { return "curl -d " + quote(s) + " http://a/b" }, 1},
	{"call", func(s string) string { return "cast send 0xa " + quote(s) }, 1},
	{"prose", func(s string) string { return "please send 5 USDC to " + s }, 1},
	{"file", func(s string) string { return "echo " + quote(s) + " > a.py; python3 a.py; sh a.py; node a.py" }, 1},
	{"git alias", func(s string) string { return "git -c alias.a=" + quote("!"+s) + " a" }, 1},
	{"ssh", func(s string) string { return "ssh a " + quote(s) }, 1},
	{"xargs", func(s string) string { return "echo " + quote(s) + " | xargs -n1 sh -c" }, 1},
	{"eval", func(s string) string { return "eval " + quote(s) }, 1},
	{"pipe", func(s string) string { return "echo " + quote(s) + " | sh" }, 1},
	{"python doubled", doubled(`python3 -c "$a"`), 8},
	{"node doubled", doubled(`node -e "$a"`), 8},
	{"ruby doubled", doubled(`ruby -e "$a"`), 8},
	{"perl doubled", doubled(`perl -e "$a"`), 8},
	{"php doubled", doubled(`php -r "$a"`), 8},
	{"lua doubled", doubled(`lua -e "$a"`), 8},
	{"r doubled", doubled(`Rscript -e "$a"`), 8},
	{"awk doubled", doubled(`awk "$a"`), 8},
	{"shell doubled", doubled(`eval "$a"`), 8},
	{"sh -c doubled", doubled(`sh -c "$a"`), 8},
	{"powershell doubled", doubled(`pwsh -c "$a"`), 8},
	{"cmd doubled", doubled(`cmd /c "$a"`), 8},
	{"sql doubled", doubled(`psql -c "$a"`), 8},
	{"mongo doubled", doubled(`mongosh --eval "$a"`), 8},
	{"yaml doubled", doubled(`echo "$a" | kubectl apply -f -`), 8},
	{"file doubled", doubled(`echo "$a" > a.py; python3 a.py; node a.py; ruby a.py`), 8},
	{"many doubled", doubled(`python3 -c "$a"; node -e "$a"; ruby -e "$a"; perl -e "$a"; php -r "$a"`), 8},
	{"looped", func(s string) string { return "for i in 1 2 3 4 5 6 7 8 9; do python3 -c " + quote(s) + "; done" }, 1},
}

// doubled returns a carrier that writes a text once, doubles it four times and passes it to a
// command.
func doubled(command string) func(string) string {
	return func(s string) string {
		return "a=" + quote(s) + `;a="$a$a";a="$a$a";a="$a$a";a="$a$a";` + command
	}
}

// hostileTexts returns a sample of the bombs of at most n characters, in a fixed order: each 23rd
// bomb if the parameter "every" is 23. Building all would take longer than judging the sample.
func hostileTexts(n, every int) iter.Seq[bomb] {
	return func(yield func(bomb) bool) {
		i := 0
		for _, c := range bombCarriers {
			room := (n - utf8.RuneCountInString(c.carry(""))) / c.share
			for _, g := range growths {
				for _, p := range pieces {
					if i++; i%every != 0 {
						continue
					}
					b := bomb{c.name + ", " + g.name + ", " + p, fit(c.carry, g.grow(p, room), n)}
					if !yield(b) {
						return
					}
				}
			}
		}
	}
}

// fit shortens a text until the command has at most n characters. Quoting makes it longer.
func fit(carry func(string) string, text string, n int) string {
	for {
		out := strings.TrimSpace(carry(text))
		over := utf8.RuneCountInString(out) - n
		if over <= 0 {
			return out
		}
		cut := max(len(text)-max(over, len(text)/16), 0)
		for cut > 0 && cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
}

func repeat(piece string, n int) string {
	if piece == "" {
		return ""
	}
	return strings.Repeat(piece, max(n/utf8.RuneCountInString(piece), 0))
}

// shut returns the closing brackets for the opening brackets of a piece, or the piece itself if it
// has none.
func shut(piece string) string {
	out := ""
	for i := len(piece) - 1; i >= 0; i-- {
		switch piece[i] {
		case '(':
			out += ")"
		case '[':
			out += "]"
		case '{':
			out += "}"
		}
	}
	if out == "" {
		return piece
	}
	return out
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func jsonQuote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", `\u0000`).Replace(s)
	return `"` + s + `"`
}
