// Package program is the front-end of general programming languages: what a Python,
// JavaScript, Ruby, PHP, Perl, Go or awk text starts, deletes, writes, sends and pays.
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

// inlineRun is the state of one program text.
type inlineRun struct {
	sh      *interp.Process
	src     *act.Source
	lang    string
	toks    []tokens.Token
	vars    map[string]tokens.Token
	each    map[string][]tokens.Token // the strings a loop's variable goes through
	names   map[string]string         // other names that the text gives to functions
	secret  bool                      // reads credentials
	feeds   bool                      // a shell is started that it may write to
	swept   bool                      // the folders whose files it deletes are judged
	input   *bool                     // it reads its input, once it is asked for
	changed map[string]bool           // names whose text is changed in place
	from    map[string]origin         // where names get their text from, once it is asked for
	all     *origin                   // how all of it came about, once it is asked for
	billing byte                      // 0: not looked yet, 1: uses no payment service, 2: uses one
	mongo   bool                      // the text is for MongoDB's shell
}

// runInline looks for calls that run, delete, read or send in a program text of
// another language. What is in strings, comments and logs is a mention.
func runInline(e *interp.Env, sh *interp.Process, src *act.Source, lang string) {
	e.Unproven = true
	if src.Depth > scan.MaxDepth || len(src.Text) > scan.MaxText {
		e.TooDeep = true
		return
	}
	if !e.Budget.Spend(16 + len(src.Text)/8) { // the text is gone through some ten times
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
			return // which is a finding of its own
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

// inputNames are names by which a text gets its input, its arguments or its environment.
var inputNames = [...]string{"sys.stdin", "sys.argv", "input", "process.argv", "process.stdin", "ARGV", "ARGF", "STDIN", "gets", "$argv", "$_GET", "os.environ", "process.env"}

// arguments are the tokens between the brackets that open at i.
func (r *inlineRun) arguments(i int) []tokens.Token {
	return r.toks[i+1 : closing(r.toks, i)]
}

// isPrefix: letters before a Python string say how it is written.
func isPrefix(s string) bool {
	return len(s) <= 2 && strings.Trim(strings.ToLower(s), "rbfu") == ""
}

// word makes a Word of a string token.
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

// fromInput: the text reads its input, its arguments or its environment.
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

// run judges words as a command.
func (r *inlineRun) run(list []tokens.Token) {
	r.feedsClient(r.listed(list, " ", list[0]).Text)
	last := list[len(list)-1]
	r.sh.Behalf(r.src, r.lang).Start(r.words(list), &act.Invocation{From: last.From, To: last.To})
}

// emit judges an effect on what the texts name.
func (r *inlineRun) emit(op act.Op, on ...tokens.Token) {
	last := on[len(on)-1]
	r.sh.Emit(r.src, r.lang, act.Effect{Op: op, On: r.words(on), From: last.From, To: last.To})
}

// words are the words of texts; one that is nowhere in the source has its carrier's place.
func (r *inlineRun) words(list []tokens.Token) []act.Word {
	out := make([]act.Word, len(list))
	for i, t := range list {
		if out[i] = r.word(t); t.To == 0 {
			out[i].Span, out[i].At = r.src.Span, -1
		}
	}
	return out
}

// decoderNames are parts of names that decode.
var decoderNames = []string{"b64decode", "atob", "unhexlify", "fromhex", "decompress", "base64_decode", "decode64", "decode_base64", "unpack", "codecs.decode", "marshal.loads", "rot13", "a85decode", "b32decode"}

// fetchNames are parts of texts that download.
var fetchNames = []string{"urlopen", "requests.get", "fetch(", "http.get", "https.get", "axios", "URI.open", "Net::HTTP", "LWP", "file_get_contents('http", "file_get_contents(\"http", "urllib", "http.client", "open-uri", "curl_exec"}

// evaluate judges text that is run as a program: decoded literals are looked
// into, anything else that is decoded or downloaded is a finding of its own.
func (r *inlineRun) evaluate(name tokens.Token, args, list []tokens.Token) {
	if strings.HasSuffix(name.Text, "Function") { // the names of its parameters are first
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

// runsAgain runs a text as a program of the same language, in the place of a string.
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

// hasOrigin: what is in tokens came about in one of these ways.
func (r *inlineRun) hasOrigin(toks []tokens.Token, of origin) bool {
	r.origins()
	return r.origin(toks)&of != 0
}

// fetches: what is evaluated is downloaded, whatever the function is called.
func (r *inlineRun) fetches(args []tokens.Token) bool {
	return r.hasOrigin(args, fetchedText) || slices.ContainsFunc(args, fetchesText) || scan.HasAnyPrefix(longest(args), "http://", "https://", "ftp://")
}

// longest is the longest text that is among tokens.
func longest(toks []tokens.Token) string {
	out := ""
	for _, t := range toks {
		if t.Kind == tokens.String && len(t.Text) > len(out) {
			out = t.Text
		}
	}
	return out
}

// fetchesText: the token names what downloads.
func fetchesText(t tokens.Token) bool {
	return t.Kind == tokens.Name && slices.ContainsFunc(fetchNames, func(d string) bool { return strings.Contains(t.Text+"(", d) })
}

// evaluated is the text that a call evaluates: the one it is given, or what the longest
// literal among its arguments decodes to.
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

// mentions: a name of the text has one of these parts.
func (r *inlineRun) mentions(parts ...string) bool {
	return slices.ContainsFunc(r.toks, func(t tokens.Token) bool { return t.Kind == tokens.Name && scan.HasAny(t.Text, parts...) })
}

// has: one of these names is in the text.
func (r *inlineRun) has(names ...string) bool {
	return slices.ContainsFunc(r.toks, func(t tokens.Token) bool { return t.Kind == tokens.Name && slices.Contains(names, t.Text) })
}

// whole looks at the text as a whole: processes that make processes, a socket joined to
// a shell, credentials read and something sent.
func (r *inlineRun) whole() {
	see := func(what act.Sight) { r.sh.Env.See(what, r.src, 0, len(r.src.Text), "") }
	if r.forks() && r.has("while", "loop", "until", "for") && !r.mentions("wait") {
		see(act.CallsItself)
	}
	for i, t := range r.toks {
		if r.handsEvaluator(i) && r.mentions("fetch", "https.get", "http.get", "axios", "urlopen") {
			r.sh.Env.See(act.ProgramRuns, r.src, t.From, t.To, "") // to what fetches
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

// handsEvaluator: what evaluates texts is not called at i, but an argument: then(eval).
func (r *inlineRun) handsEvaluator(i int) bool {
	t := r.toks[i]
	return t.Kind == tokens.Name && (t.Text == "eval" || t.Text == "Function") && r.at(i, 1).Kind != '(' && i > 0 && r.toks[i-1].Kind == '('
}

// forks: the process makes another of itself.
func (r *inlineRun) forks() bool {
	return r.has("fork", "pcntl_fork") || slices.ContainsFunc(r.toks, func(t tokens.Token) bool { return t.Kind == tokens.Name && strings.HasSuffix(t.Text, ".fork") })
}

// joinsSocket: a shell is started where a connection is made.
func (r *inlineRun) joinsSocket() bool {
	return slices.ContainsFunc(r.toks, namesShell) && r.mentions("connect", "fsockopen", "TCPSocket", "Socket", "net.") &&
		r.mentions("dup2", "pty", "spawn", "exec", "open", "proc_open", "pipe", "popen", "subprocess", "reopen")
}

// runsReceived: a connection is made, read from, and something run.
func (r *inlineRun) runsReceived() bool {
	return r.mentions("TCPSocket", "create_connection", "fsockopen", "IO::Socket", "socket.socket", "net.connect") && r.mentions("gets", "recv", "fgets", "readline") &&
		r.mentions("popen", "system", "check_output", "getoutput", "shell_exec", "execSync", "proc_open")
}

// sendNames are parts of names that send something.
var sendNames = []string{"urlopen", "requests.post", "requests.get", "requests.put", "fetch", "http.request", "https.request", "axios", "Net::HTTP", "sendall", "curl_exec", "sendto", "gethostbyname", "getaddrinfo", "dns.lookup", "dns.resolve", "resolve4", "Resolv", "smtplib", "LWP", "HTTP::Tiny", "IO::Socket", "create_connection", "httpx", "TCPSocket", "fsockopen", "createConnection", "Faraday", "RestClient"}

// namesShell: the text is the name of a shell.
func namesShell(t tokens.Token) bool {
	return t.Kind == tokens.String && (strings.Contains(t.Text, "/bin/sh") || strings.Contains(t.Text, "/bin/bash") || t.Text == "sh" || t.Text == "bash" || strings.HasPrefix(t.Text, "cmd.exe"))
}

// wholeEnvironment: all variables at once are taken, not one by its name.
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
