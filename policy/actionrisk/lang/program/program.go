// Package program is the front-end for program texts, that is, source code in Python, JavaScript,
// Ruby, PHP, Perl, Go, awk and similar languages. It finds the commands that a program text
// starts, the files that it deletes or writes, the requests that it sends and the payments that it
// makes.
package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// inlineRun is the state of the analysis of one program text.
type inlineRun struct {
	sh      *interp.Process
	src     *act.Source
	lang    string
	toks    []tokens.Token
	vars    map[string]tokens.Token
	each    map[string][]tokens.Token // the strings over which a loop variable iterates
	names   map[string]string         // aliases in the program text, mapped to the names of functions and modules
	secret  bool                      // the program text reads credentials
	feeds   bool                      // it starts a shell, to which it may write commands
	swept   bool                      // sweep has run already
	input   *bool                     // it reads its input; nil until fromInput is called
	changed map[string]bool           // variables whose text is changed in place
	from    map[string]origin         // origin of the text of each name; nil until origins is called
	all     *origin                   // origins in the whole program text; nil until needed
	billing byte                      // 0: not known yet; 1: uses no payment service; 2: uses one
	mongo   bool                      // the program text is for the MongoDB shell
}

// runInline judges a program text: the calls that run, delete, read, write, send or pay. Text in
// comments and logged strings has no effect and is not judged.
func runInline(e *interp.Env, sh *interp.Process, src *act.Source, lang string) {
	e.Unproven = true
	if src.Depth > scan.MaxDepth || len(src.Text) > scan.MaxText {
		e.TooDeep = true
		return
	}
	if !e.Budget.Spend(16 + len(src.Text)/8) { // the analysis reads the program text about ten times
		return
	}
	mongo := lang == "mongo"
	if mongo {
		lang = "node"
	}
	inner := sh.Reading(src)
	if e.Language(lang).Strings {
		inner.Read("strings", src, nil)
	}
	r := &inlineRun{sh: inner, src: src, lang: lang, mongo: mongo, toks: tokens.Tokens(e, src.Text, lang), vars: map[string]tokens.Token{}}
	r.given()
	for i := range r.toks {
		r.loops(i)
	}
	for i := range r.toks {
		if e.Budget.Spent {
			return // a spent budget is reported elsewhere
		}
		r.tagged(i)
		r.look(i)
	}
	r.whole()
	r.showsSecrets()
	r.libraries()
	r.wallets()
	if lang == "awk" && len(e.Findings) == 0 && !scan.HasAny(src.Text, "system", "|", ">") {
		e.Unproven = false
	}
}

// inputNames lists names with which a program text reads its input, its arguments or its
// environment.
var inputNames = [...]string{"sys.stdin", "sys.argv", "input", "process.argv", "process.stdin", "ARGV", "ARGF", "STDIN", "gets", "$argv", "$_GET", "os.environ", "process.env"}

// arguments returns the tokens between the brackets that open at token i.
func (r *inlineRun) arguments(i int) []tokens.Token {
	return r.toks[i+1 : closing(r.toks, i)]
}

// isPrefix reports whether s is a prefix of a Python string, such as r or f.
func isPrefix(s string) bool {
	return len(s) <= 2 && strings.Trim(strings.ToLower(s), "rbfu") == ""
}

// word converts a string token to a Word.
func (r *inlineRun) word(t tokens.Token) act.Word {
	span, _ := r.src.Where(t.From, t.To)
	w := act.Word{Text: t.Text, Span: span, At: -1, Glob: strings.ContainsAny(t.Text, "*?")}
	if t.Exact && r.src.At >= 0 {
		w.At = span.Start
	}
	w.Lone = t.Text == string(scan.Hole)
	if w.Lone {
		w.Var = "code"
	}
	return w
}

func (r *inlineRun) shellText(t tokens.Token) {
	r.feedsClient(t.Text)
	r.sh.Interpret("shell", r.word(t), &act.Invocation{Exe: r.lang, Src: r.src, From: t.From, To: t.To, Stdin: act.Flow{Known: true}}, r.lang, nil)
}

// fromInput reports whether the program text reads its input, its arguments or its environment.
func (r *inlineRun) fromInput() bool {
	if r.input == nil {
		reads := r.readsInput()
		r.input = &reads
	}
	return *r.input
}

func (r *inlineRun) readsInput() bool {
	return slices.ContainsFunc(r.toks, func(t tokens.Token) bool {
		return t.Kind == tokens.Name && slices.ContainsFunc(inputNames[:], func(n string) bool {
			return t.Text == n || scan.HasAnyPrefix(t.Text, n+".", "$"+n)
		})
	})
}

// run judges the strings as the words of a command.
func (r *inlineRun) run(list []tokens.Token) {
	r.feedsClient(r.listed(list, " ", list[0]).Text)
	last := list[len(list)-1]
	r.sh.Behalf(r.src, r.lang).Start(r.words(list), &act.Invocation{From: last.From, To: last.To})
}

// emit judges an effect on the files that the strings name.
func (r *inlineRun) emit(op act.Op, on ...tokens.Token) {
	last := on[len(on)-1]
	r.sh.Emit(r.src, r.lang, act.Effect{Op: op, On: r.words(on), From: last.From, To: last.To})
}

// words converts strings to words. A string that is not in the source gets the span of the whole
// source.
func (r *inlineRun) words(list []tokens.Token) []act.Word {
	out := make([]act.Word, len(list))
	for i, t := range list {
		if out[i] = r.word(t); t.To == 0 {
			out[i].Span, out[i].At = r.src.Span, -1
		}
	}
	return out
}

// decoderNames lists parts of names of functions that decode.
var decoderNames = []string{"b64decode", "atob", "unhexlify", "fromhex", "decompress", "base64_decode", "decode64", "decode_base64", "unpack", "codecs.decode", "marshal.loads", "rot13", "a85decode", "b32decode"}

// fetchNames lists parts of calls that download.
var fetchNames = []string{"urlopen", "requests.get", "fetch(", "http.get", "https.get", "axios", "URI.open", "Net::HTTP", "LWP", "file_get_contents('http", "file_get_contents(\"http", "urllib", "http.client", "open-uri", "curl_exec"}

// evaluate judges a string that is run as a program. It decodes a literal and judges the result.
// It reports any other text that is decoded or downloaded.
func (r *inlineRun) evaluate(name tokens.Token, args, list []tokens.Token) {
	if strings.HasSuffix(name.Text, "Function") { // the names of the parameters come first
		list = list[len(list)-1:]
	}
	literal, decodes := longest(args), r.hasOrigin(args, builtText) || decodesAny(args)
	switch {
	case decodes || r.fetches(args):
		r.sh.Env.See(act.ProgramRuns, r.src, name.From, name.To, "")
	case strings.IndexByte(list[0].Text, scan.Hole) >= 0 && (r.unknown(name, args) || r.fetchesAtAll(name)):
		return
	case literal == "" && r.fromInput():
		r.sh.Env.See(act.RunsUnknownText, r.src, name.From, name.To, "")
		return
	}
	if text, ok := r.evaluated(list, literal, decodes); ok {
		r.runsAgain(list[0], text, name.Text)
	}
}

// runsAgain judges a text that runs as a program in the same language. The string at contains it,
// and the function by runs it.
func (r *inlineRun) runsAgain(at tokens.Token, text, by string) {
	w := r.word(at)
	w.Text, w.At = text, -1
	src := r.src.Inside(w, r.lang+" "+by)
	src.Layers++
	switch {
	case src.Layers > scan.MaxLayers:
	case r.mongo:
		r.sh.Read("mongo", &src, nil)
	default:
		runInline(r.sh.Env, r.sh, &src, r.lang)
	}
}

// hasOrigin reports whether a value among the tokens has one of the origins.
func (r *inlineRun) hasOrigin(toks []tokens.Token, of origin) bool {
	r.origins()
	return r.origin(toks)&of != 0
}

// fetches reports whether the evaluated text is downloaded.
func (r *inlineRun) fetches(args []tokens.Token) bool {
	return r.hasOrigin(args, fetchedText) || slices.ContainsFunc(args, fetchesText) || scan.HasAnyPrefix(longest(args), "http://", "https://", "ftp://")
}

// longest returns the longest string among the tokens.
func longest(toks []tokens.Token) string {
	out := ""
	for _, t := range toks {
		if t.Kind == tokens.String && len(t.Text) > len(out) {
			out = t.Text
		}
	}
	return out
}

// fetchesText reports whether the token is the name of a function that downloads.
func fetchesText(t tokens.Token) bool {
	return t.Kind == tokens.Name && slices.ContainsFunc(fetchNames, func(d string) bool { return strings.Contains(t.Text+"(", d) })
}

// evaluated returns the text that a call evaluates: its first argument, or the decoded form of the
// longest literal. It returns false if the text is not known.
func (r *inlineRun) evaluated(list []tokens.Token, literal string, decodes bool) (string, bool) {
	switch first := list[0].Text; {
	case strings.IndexByte(first, scan.Hole) < 0 && first != literal:
		return first, true
	case decodes:
		text, ok := r.sh.Env.Make("base64", literal)
		if !ok {
			text, ok = r.sh.Env.Make("hex", literal)
		}
		return text, ok
	default:
		return literal, len(list) == 1 && first == literal
	}
}

// mentions reports whether a name in the program text contains one of the parts.
func (r *inlineRun) mentions(parts ...string) bool {
	return slices.ContainsFunc(r.toks, func(t tokens.Token) bool { return t.Kind == tokens.Name && scan.HasAny(t.Text, parts...) })
}

// has reports whether the program text contains one of the names.
func (r *inlineRun) has(names ...string) bool {
	return slices.ContainsFunc(r.toks, func(t tokens.Token) bool { return t.Kind == tokens.Name && slices.Contains(names, t.Text) })
}

// whole reports combinations in the program text: processes that start themselves in a loop, a
// shell connected to a socket, credentials that are read while something is sent.
func (r *inlineRun) whole() {
	see := func(what act.Sight) { r.sh.Env.See(what, r.src, 0, len(r.src.Text), "") }
	if r.forks() && r.has("while", "loop", "until", "for") && !r.mentions("wait") {
		see(act.CallsItself)
	}
	for i, t := range r.toks {
		if r.handsEvaluator(i) && r.mentions("fetch", "https.get", "http.get", "axios", "urlopen") {
			r.sh.Env.See(act.ProgramRuns, r.src, t.From, t.To, "") // the function that gets eval as an argument downloads the text
		}
	}
	if r.joinsSocket() || r.runsReceived() {
		see(act.ShellOnSocket)
	}
	if (r.secret || r.wholeEnvironment()) && r.mentions(sendNames...) {
		see(act.SendsSecret)
	}
	r.leaks()
}

// handsEvaluator reports whether token i passes a function that evaluates texts as an argument, as
// in then(eval).
func (r *inlineRun) handsEvaluator(i int) bool {
	t := r.toks[i]
	return t.Kind == tokens.Name && (t.Text == "eval" || t.Text == "Function") && r.at(i, 1).Kind != '(' && i > 0 && r.toks[i-1].Kind == '('
}

// forks reports whether the process creates a copy of itself.
func (r *inlineRun) forks() bool {
	return r.has("fork", "pcntl_fork") || slices.ContainsFunc(r.toks, func(t tokens.Token) bool { return t.Kind == tokens.Name && strings.HasSuffix(t.Text, ".fork") })
}

// joinsSocket reports whether the program text opens a connection and starts a shell with
// redirected input or output.
func (r *inlineRun) joinsSocket() bool {
	return slices.ContainsFunc(r.toks, namesShell) && r.mentions("connect", "fsockopen", "TCPSocket", "Socket", "net.") &&
		r.mentions("dup2", "pty", "spawn", "exec", "open", "proc_open", "pipe", "popen", "subprocess", "reopen")
}

// runsReceived reports whether the program text opens a connection, reads from it and runs
// commands.
func (r *inlineRun) runsReceived() bool {
	return r.mentions("TCPSocket", "create_connection", "fsockopen", "IO::Socket", "socket.socket", "net.connect") && r.mentions("gets", "recv", "fgets", "readline") &&
		r.mentions("popen", "system", "check_output", "getoutput", "shell_exec", "execSync", "proc_open")
}

// sendNames lists parts of names of functions that send data.
var sendNames = []string{"urlopen", "requests.post", "requests.get", "requests.put", "fetch", "http.request", "https.request", "axios", "Net::HTTP", "sendall", "curl_exec", "sendto", "gethostbyname", "getaddrinfo", "dns.lookup", "dns.resolve", "resolve4", "Resolv", "smtplib", "LWP", "HTTP::Tiny", "IO::Socket", "create_connection", "httpx", "TCPSocket", "fsockopen", "createConnection", "Faraday", "RestClient"}

// namesShell reports whether the string is the name of a shell.
func namesShell(t tokens.Token) bool {
	return t.Kind == tokens.String && (strings.Contains(t.Text, "/bin/sh") || strings.Contains(t.Text, "/bin/bash") || t.Text == "sh" || t.Text == "bash" || strings.HasPrefix(t.Text, "cmd.exe"))
}

// wholeEnvironment reports whether the program text reads all environment variables at once.
func (r *inlineRun) wholeEnvironment() bool {
	for i, t := range r.toks {
		if t.Kind != tokens.Name || r.sh.Env.Named(facts.AsEnvironment, t.Text, r.lang) == nil {
			continue
		}
		if next := r.at(i, 1).Kind; next != '[' && (next != '(' || r.at(i, 2).Kind == ')') {
			return true
		}
	}
	return false
}
