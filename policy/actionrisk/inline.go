package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// What a called name does, by its last part. The value says how its arguments
// are taken: 's' shell text, 'v' words of a command, 'd' deletes a tree,
// 'u' deletes a file, 'r' reads a file, 'e' evaluates text, 'q' SQL,
// 'n' deletes an index or a collection of a service, 'w' writes over a file, 'm'
// moves one, 'c' changes its mode, 'k' sends a signal, 'l' runs a file or an address,
// 'a' saves an address to a file, 'p' runs what a pickled text says, 'D' deletes a
// tree if its arguments say so. Names of single languages stand in code.json.
var inlineSinks = map[string]byte{
	"system": 's', "popen": 's', "popen2": 's', "popen3": 's', "getoutput": 's', "getstatusoutput": 's', "shell_exec": 's', "passthru": 's', "proc_open": 's',
	"execSync": 's', "create_subprocess_shell": 's', "create_subprocess_exec": 'v', "check_output": 'v', "check_call": 'v', "Popen": 'v', "Command": 'v', "capture2": 'v', "capture2e": 'v', "capture3": 'v',
	"spawn": 'v', "spawnSync": 'v', "execFile": 'v', "execFileSync": 'v', "execvp": 'v', "execv": 'v', "execlp": 'v', "execl": 'v', "spawnlp": 'v',
	"rmtree": 'd', "rmSync": 'd', "rm_rf": 'd', "rm_r": 'd', "remove_dir": 'd', "remove_entry_secure": 'd', "remove_tree": 'd', "rimraf": 'd', "emptyDirSync": 'd', "removeSync": 'd', "rmdirSync": 'd', "removedirs": 'd', "remove_entry": 'd',
	"writeFileSync": 'w', "writeFile": 'w', "file_put_contents": 'w', "truncate": 'w', "truncateSync": 'w', "write_text": 'w', "write_bytes": 'w',
	"rename": 'm', "renameSync": 'm', "move": 'm', "chmod": 'c', "chmodSync": 'c', "lchmod": 'c', "kill": 'k', "killpg": 'k',
	"spawnv": 'v', "spawnvp": 'v', "spawnve": 'v', "spawnl": 'v', "posix_spawn": 'v', "posix_spawnp": 'v', "pcntl_exec": 'v', "execve": 'v', "execvpe": 'v', "execle": 'v', "execlpe": 'v',
	"unlink": 'u', "unlinkSync": 'u', "remove": 'u', "rm_f": 'u',
	"readfile": 'r', "fopen": 'r', "readFileSync": 'r', "readFile": 'r', "file_get_contents": 'r', "readlines": 'r', "read_text": 'r', "read_bytes": 'r', "open": 'r', "createReadStream": 'r',
	"eval": 'e', "exec": 'e', "Function": 'e', "assert": 'e', "instance_eval": 'e', "runInNewContext": 'e', "runInThisContext": 'e',
	"deleteIndex": 'n', "clearIndex": 'n', "clearObjects": 'n', "deleteAllDocuments": 'n', "deleteCollection": 'n', "delete_collection": 'n', "delete_index": 'n', "delete_all_documents": 'n', "delete_by_query": 'n', "deleteByQuery": 'n',
	"execute": 'q', "executescript": 'q', "query": 'q', "executeSql": 'q',
}

// sinkOf says what a call of a dotted name does.
func sinkOf(name, lang string) byte {
	name = strings.TrimSuffix(name, "!")
	if n, ok := named(ruleset().code.calls, name, lang); ok {
		return n.does
	}
	return commonSink(name, lang)
}

// commonSink is sinkOf for what the scripting languages have in common.
func commonSink(name, lang string) byte {
	i := strings.LastIndexAny(name, ".:")
	last := name[i+1:]
	first := strings.TrimSuffix(name[:max(i, 0)], ":")
	switch {
	case strings.HasPrefix(first, "subprocess") || first == "sp" && last == "run":
		return 'v'
	case (last == "run" || last == "call") && first == "" && i == 0 && lang == "python":
		return 'v' // a method of what a call gave, as __import__("subprocess").run
	case last == "run" || last == "call":
		return 0
	case (last == "rm" || last == "rmdir") && first == "" && i == 0 && lang == "node":
		return 'd'
	case last == "write" && (first == "File" || first == "IO"):
		return 'w'
	case (last == "rename" || last == "move" || last == "chmod" || last == "kill") && i >= 0 && first != "os" && first != "shutil" && first != "fs" && first != "File" && first != "Process" && first != "process" && first != "FileUtils" && first != "":
		return 0
	case last == "delete" && strings.HasSuffix(first, "indices"):
		return 'n'
	case last == "sh" && lang == "ruby" && i < 0: // of Rake
		return 's'
	case last == "execute" && lang == "lua":
		return 's'
	case last == "exec" && (strings.Contains(first, "child_process") || first == "cp" || lang == "node" && first == "" || strings.HasSuffix(first, "os")):
		return 's'
	case last == "exec" && (lang == "perl" || lang == "ruby" || lang == "php"):
		return 's'
	case last == "exec" && lang == "node":
		return 0 // a regular expression or a query
	case last == "rm" && (strings.Contains(first, "fs") || strings.HasSuffix(first, "promises")), last == "rmdir" && strings.Contains(first, "fs"), last == "rm" && first == "FileUtils":
		return 'd'
	case last == "delete" && (first == "File" || first == "Dir"), last == "unlink" && lang == "perl":
		return 'u'
	case last == "read" && (first == "File" || first == "IO"):
		return 'r'
	case last == "spawn" && first == "pty":
		return 'v'
	case last == "open" && lang == "ruby" && first == "", last == "remove" && !strings.HasSuffix(first, "os"):
		return 0
	}
	return inlineSinks[last]
}

// inlineRun is the state of one program text.
type inlineRun struct {
	sh      *shell
	src     *source
	lang    string
	toks    []inlineToken
	vars    map[string]inlineToken
	each    map[string][]inlineToken // the strings a loop's variable goes through
	names   map[string]string        // other names that the text gives to functions
	secret  bool                     // reads credentials
	feeds   bool                     // a shell is started that it may write to
	swept   bool                     // the folders whose files it deletes are judged
	input   *bool                    // it reads its input, once somebody asks
	changed map[string]bool          // names whose text is changed in place
	from    map[string]origin        // where names get their text from, once somebody asks
	all     *origin                  // how all of it came about, once somebody asks
	billing byte                     // 0: not looked yet, 1: uses no payment service, 2: uses one
	mongo   bool                     // the text is for MongoDB's shell
}

// runInline looks for calls that run, delete, read or send in a program text of
// another language. What stands in strings, comments and logs is a mention.
func (e *engine) runInline(sh *shell, src *source, lang string) {
	e.unproven = true
	if src.depth > scan.MaxDepth || len(src.text) > scan.MaxText {
		e.tooDeep = true
		return
	}
	if !e.budget.spend(16 + len(src.text)/8) { // the text is gone through some ten times
		return
	}
	mongo := lang == "mongo"
	if mongo {
		lang = "node"
	}
	inner := *sh
	inner.src = src
	if ruleset().code.language(lang).Strings {
		inner.read("strings", src, nil)
	}
	r := &inlineRun{sh: &inner, src: src, lang: lang, mongo: mongo, toks: e.tokens(src.text, lang), vars: map[string]inlineToken{}}
	r.given()
	for i := range r.toks {
		r.loops(i)
	}
	for i := range r.toks {
		if e.budget.spent {
			return // which is a finding of its own
		}
		r.tagged(i)
		r.look(i)
	}
	r.whole()
	r.showsSecrets()
	r.libraries()
	r.wallets()
	if lang == "awk" && len(e.findings) == 0 && !strings.Contains(src.text, "system") && !strings.Contains(src.text, "|") && !strings.Contains(src.text, ">") {
		e.unproven = false
	}
}

// arguments are the tokens between the brackets that open at i.
func (r *inlineRun) arguments(i int) []inlineToken {
	return r.toks[i+1 : closing(r.toks, i, '(', ')')]
}

// isPrefix: letters before a Python string say how it is written.
func isPrefix(s string) bool {
	return len(s) <= 2 && strings.Trim(strings.ToLower(s), "rbfu") == ""
}

// word makes a Word of a string token.
func (r *inlineRun) word(t inlineToken) Word {
	span, _ := r.src.where(t.from, t.to)
	w := Word{Text: t.text, Span: span, At: -1, Glob: strings.ContainsAny(t.text, "*?")}
	if t.exact && r.src.at >= 0 {
		w.At = span.Start
	}
	w.Lone = t.text == string(scan.Hole)
	if w.Lone {
		w.Var = "code"
	}
	return w
}

func (r *inlineRun) shellText(t inlineToken) {
	r.feedsClient(t.text)
	r.sh.interpret("shell", r.word(t), &invocation{exe: r.lang, src: r.src, from: t.from, to: t.to, stdin: flow{known: true}}, r.lang, nil)
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
	for _, t := range r.toks {
		if t.kind == 'i' {
			for _, n := range [...]string{"sys.stdin", "sys.argv", "input", "process.argv", "process.stdin", "ARGV", "ARGF", "STDIN", "gets", "$argv", "$_GET", "os.environ", "process.env"} {
				if t.text == n || strings.HasPrefix(t.text, n+".") || strings.HasPrefix(t.text, "$"+n) {
					return true
				}
			}
		}
	}
	return false
}

// run judges words as a command.
func (r *inlineRun) run(list []inlineToken) {
	r.feedsClient(r.listed(list, " ", list[0]).text)
	v := &invocation{src: r.src, from: list[len(list)-1].from, to: list[len(list)-1].to, stdin: flow{known: true}}
	for _, t := range list {
		w := r.word(t)
		if t.to == 0 {
			w.Span, w.At = r.src.span, -1
		}
		v.argv = append(v.argv, w)
	}
	src := *r.src
	src.via = append(slices.Clip(src.via), r.lang)
	src.depth++
	v.src = &src
	inner := *r.sh
	inner.src = &src
	inner.run(v)
}

// sweep: files of a listed folder are deleted one by one; the folder is what
// matters.
// read judges a file that is opened: for writing as a redirection, else as cat.
var decoderNames = []string{"b64decode", "atob", "unhexlify", "fromhex", "decompress", "base64_decode", "decode64", "decode_base64", "unpack", "codecs.decode", "marshal.loads", "rot13", "a85decode", "b32decode"}

var fetchNames = []string{"urlopen", "requests.get", "fetch(", "http.get", "https.get", "axios", "URI.open", "Net::HTTP", "LWP", "file_get_contents('http", "file_get_contents(\"http", "urllib", "http.client", "open-uri", "curl_exec"}

// evaluate judges text that is run as a program: decoded literals are looked
// into, anything else that is decoded or downloaded is a finding of its own.
func (r *inlineRun) evaluate(name inlineToken, args, list []inlineToken) {
	e := r.sh.e
	if strings.HasSuffix(name.text, "Function") && len(list) > 1 { // the names of its parameters stand first
		list = list[len(list)-1:]
	}
	decodes, fetches, literal := false, false, ""
	for _, t := range args {
		if t.kind == 'i' {
			decodes = decodes || slices.ContainsFunc(decoderNames, func(d string) bool { return strings.Contains(t.text, d) }) || strings.HasSuffix(t.text, "Buffer.from")
			fetches = fetches || slices.ContainsFunc(fetchNames, func(d string) bool { return strings.Contains(t.text+"(", d) })
		}
		if t.kind == 's' && len(t.text) > len(literal) {
			literal = t.text
		}
	}
	r.origins()
	o := r.origin(args)
	decodes, fetches = decodes || o&builtText != 0, fetches || o&fetchedText != 0
	if strings.HasPrefix(literal, "http://") || strings.HasPrefix(literal, "https://") || strings.HasPrefix(literal, "ftp://") {
		fetches = true // whatever the function is called, it gets its text from there
	}
	if decodes || fetches {
		e.raise("rce.inline-exec", r.src, name.from, name.to, "")
	}
	if !decodes && !fetches && strings.IndexByte(list[0].text, scan.Hole) >= 0 && (r.unknown(name, args) || r.fetchesAtAll(name)) {
		return
	}
	if !decodes && !fetches && literal == "" && r.fromInput() {
		e.raise("obf.dynamic-structure", r.src, name.from, name.to, "")
		return
	}
	text := literal
	if len(list) > 0 && strings.IndexByte(list[0].text, scan.Hole) < 0 && list[0].text != literal {
		text = list[0].text
	} else if decodes {
		var ok bool
		if text, ok = scan.Decode64(literal); !ok {
			text, ok = scan.DecodeHex(literal)
		}
		if !ok || len(text) > scan.MaxDecoded || e.decoded+len(text) > scan.MaxDecodedTotal {
			return
		}
		e.decoded += len(text)
	} else if len(list) != 1 || list[0].text != literal {
		return
	}
	w := r.word(list[0])
	w.Text, w.At = text, -1
	src := r.src.inside(w, r.lang+" "+name.text)
	src.layers++
	switch {
	case src.layers > scan.MaxLayers:
	case r.mongo:
		r.sh.read("mongo", &src, nil)
	default:
		e.runInline(r.sh, &src, r.lang)
	}
}

// whole looks at the text as a whole: a socket joined to a shell, credentials
// read and something sent.
func (r *inlineRun) whole() {
	e := r.sh.e
	names := func(list ...string) bool {
		for _, t := range r.toks {
			if t.kind != 'i' {
				continue
			}
			for _, n := range list {
				if strings.Contains(t.text, n) {
					return true
				}
			}
		}
		return false
	}
	if forks := func(t inlineToken) bool {
		return t.kind == 'i' && (t.text == "fork" || strings.HasSuffix(t.text, ".fork") || t.text == "pcntl_fork")
	}; slices.ContainsFunc(r.toks, forks) && slices.ContainsFunc(r.toks, func(t inlineToken) bool {
		return t.kind == 'i' && (t.text == "while" || t.text == "loop" || t.text == "until" || t.text == "for")
	}) && !names("wait") {
		e.raise("shell.proc.fork-bomb", r.src, 0, len(r.src.text), "")
	}
	shell := slices.ContainsFunc(r.toks, func(t inlineToken) bool {
		return t.kind == 's' && (strings.Contains(t.text, "/bin/sh") || strings.Contains(t.text, "/bin/bash") || t.text == "sh" || t.text == "bash" || strings.HasPrefix(t.text, "cmd.exe"))
	})
	for i, t := range r.toks {
		last := i+1 == len(r.toks) || r.toks[i+1].kind != '('
		if t.kind == 'i' && (t.text == "eval" || t.text == "Function") && last && i > 0 && r.toks[i-1].kind == '(' && names("fetch", "https.get", "http.get", "axios", "urlopen") {
			e.raise("rce.inline-exec", r.src, t.from, t.to, "")
		}
	}
	if shell && names("connect", "fsockopen", "TCPSocket", "Socket", "net.") && names("dup2", "pty", "spawn", "exec", "open", "proc_open", "pipe", "popen", "subprocess", "reopen") {
		e.raise("rce.inline-reverse-shell", r.src, 0, len(r.src.text), "")
	}
	if names("TCPSocket", "create_connection", "fsockopen", "IO::Socket", "socket.socket", "net.connect") && names("gets", "recv", "fgets", "readline") && names("popen", "system", "check_output", "getoutput", "shell_exec", "execSync", "proc_open") {
		e.raise("rce.inline-reverse-shell", r.src, 0, len(r.src.text), "") // runs what the other end sends
	}
	if (r.secret || r.wholeEnvironment()) && names("urlopen", "requests.post", "requests.get", "requests.put", "fetch", "http.request", "https.request", "axios", "Net::HTTP", "sendall", "curl_exec", "sendto", "gethostbyname", "getaddrinfo", "dns.lookup", "dns.resolve", "resolve4", "Resolv", "smtplib", "LWP", "HTTP::Tiny", "IO::Socket", "create_connection", "httpx", "TCPSocket", "fsockopen", "createConnection", "Faraday", "RestClient") {
		e.raise("secret.exfil-network", r.src, 0, len(r.src.text), "")
	}
}

// wholeEnvironment: all variables at once are taken, not one by its name.
func (r *inlineRun) wholeEnvironment() bool {
	for i, t := range r.toks {
		if t.kind == 'i' && ruleset().code.environments[t.text] && (i+1 == len(r.toks) || r.toks[i+1].kind != '[' && (r.toks[i+1].kind != '(' || i+2 < len(r.toks) && r.toks[i+2].kind == ')')) {
			return true
		}
	}
	return false
}
