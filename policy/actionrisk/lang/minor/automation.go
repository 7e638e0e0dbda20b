package minor

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// runNft runs the lines of a rule set of nftables. One that empties the rules and then
// turns something away again is an ordinary reload.
func runNft(e *interp.Env, sh *interp.Process, src *act.Source) {
	reload := strings.Contains(src.Text, "drop") || strings.Contains(src.Text, "reject")
	e.EachLine(src.Text, ";\n", func(from, to int) {
		line := strings.TrimSpace(src.Text[from:to])
		if strings.HasPrefix(line, "flush ") && reload || !strings.HasPrefix(line, "flush ") && !strings.HasPrefix(line, "delete ") && !strings.HasPrefix(line, "destroy ") {
			return
		}
		sh.Behalf(src, "nft").Start(wordsAt(strings.Fields("nft "+line), src.Word(from, to)), &act.Invocation{From: from, To: to})
	})
}

// runM4 runs what the macros of m4 hand to the shell, without their quotes.
func runM4(e *interp.Env, sh *interp.Process, src *act.Source) {
	plain := *src
	plain.Text, plain.At = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`[]", r) {
			return ' '
		}
		return r
	}, strings.ReplaceAll(src.Text, "')", " )")), -1
	runMacros(e, sh, &plain, macro{"syscmd(", ")", "shell"})
}

// sendsSecret: a program text in a language without a scanner that names a credential
// and a function that sends.
func sendsSecret(e *interp.Env, src *act.Source) {
	text := src.Text
	secret := false
	for i := 0; i < len(text) && !secret; i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := tokens.ClosingQuote(text, i)
		if end < 0 {
			continue
		}
		value := text[i+1 : end]
		named := act.SyntaxName(value) && value == strings.ToUpper(value) && hosts.SecretName(value)
		file := strings.ContainsAny(value, "/~.") && !strings.Contains(value, "://") && paths.KindOfFile(value)&(paths.IsCredential|paths.IsPublic) == paths.IsCredential
		secret = named || file
		i = end
	}
	if i := strings.Index(text, "env("); i >= 0 && !secret { // Tcl
		name, _, ok := strings.Cut(text[i+len("env("):], ")")
		secret = ok && hosts.SecretVariable(name)
	}
	if !secret {
		return
	}
	for _, name := range [...]string{"url-retrieve", "open-network-stream", "make-network-process", "request(", "http", "HTTP", "Http", "socket", "Socket", "download(", "fetch", "curl", "gen_tcp", "httpc"} {
		if strings.Contains(text, name) {
			e.Raise("secret.exfil-network", src, 0, len(text), "")
			return
		}
	}
}

// runsInput: the lines that a filter reads are run.
func runsInput(e *interp.Env, sh *interp.Process, src *act.Source, at int) {
	switch in := sh.Carrier.Stdin; {
	case in.Known && in.Word.Text != "":
		e.Carried(sh, src, at, at+1, in.Word.Text, "sed e")
	case in.Taint&act.FromNetwork != 0:
		e.Raise("rce.pipe-to-shell", src, at, at+1, "")
	case in.Taint&(act.FromBuilt|act.FromStore|act.FromDecoder) != 0:
		e.Raise("obf.dynamic-structure", src, at, at+1, "")
	}
}

// treeDeleters are functions of such languages that delete a folder and what is in it;
// those with a mark only if they are told so.
var treeDeleters = []string{"removeItem(", "rmtree(", "rm_rf(", "removeDirectoryRecursive", "removePathForcibly", "delete-directory", "deleteRecursively(", "delete_dir(", "rm(", "unlink("}

// deletesHome: the path that such a function is given is not written out but asked
// for, and is the home of the user.
func deletesHome(e *interp.Env, sh *interp.Process, src *act.Source) {
	for _, name := range treeDeleters {
		i := strings.Index(src.Text, name)
		if i < 0 {
			continue
		}
		from := i + len(name)
		arg := strings.TrimLeft(src.Text[from:], " (")
		if j := strings.IndexAny(arg, "\n;"); j >= 0 {
			arg = arg[:j]
		}
		l := strings.ToLower(arg)
		whole := strings.Contains(l, "homedir") || strings.Contains(l, "getenv(\"home") || strings.Contains(l, "env[\"home") || strings.Contains(l, "user.home")
		recurses := len(name) > len("unlink(") || strings.Contains(strings.ToLower(src.Text), "recursive")
		if whole && recurses && strings.IndexByte(arg, '/') < 0 && !strings.Contains(l, "join") && !strings.Contains(l, "appending") {
			home := act.Word{Text: "~", At: -1, Span: src.Span}
			sh.Emit(src, strings.TrimRight(name, "("), act.Effect{Op: act.DeleteTree, On: []act.Word{home}, From: i, To: from})
			return
		}
	}
}
