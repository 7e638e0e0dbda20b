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
func runNft(sh *interp.Process) {
	reload := strings.Contains(sh.Src.Text, "drop") || strings.Contains(sh.Src.Text, "reject")
	sh.Env.EachLine(sh.Src.Text, ";\n", func(from, to int) {
		line := strings.TrimSpace(sh.Src.Text[from:to])
		if strings.HasPrefix(line, "flush ") && reload || !strings.HasPrefix(line, "flush ") && !strings.HasPrefix(line, "delete ") && !strings.HasPrefix(line, "destroy ") {
			return
		}
		sh.Behalf(sh.Src, "nft").Start(wordsAt(strings.Fields("nft "+line), sh.Src.Word(from, to)), &act.Invocation{From: from, To: to})
	})
}

// runM4 runs what the macros of m4 hand to the shell, without their quotes.
func runM4(sh *interp.Process) {
	plain := *sh.Src
	plain.Text, plain.At = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`[]", r) {
			return ' '
		}
		return r
	}, strings.ReplaceAll(sh.Src.Text, "')", " )")), -1
	macros(macro{"syscmd(", ")", "shell"})(sh.Reading(&plain))
}

// sendsSecret: a program text in a language without a scanner that names a credential
// and a function that sends.
func sendsSecret(sh *interp.Process) {
	text := sh.Src.Text
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
			sh.Env.See(act.SendsSecret, sh.Src, 0, len(text), "")
			return
		}
	}
}

// runsInput: the lines that a filter reads are run.
func runsInput(sh *interp.Process, at int) {
	switch in := sh.Carrier.Stdin; {
	case in.Known && in.Word.Text != "":
		sh.Carried(at, at+1, in.Word.Text, "sed e")
	case in.Taint&act.FromNetwork != 0:
		sh.Env.See(act.RunsNetworkText, sh.Src, at, at+1, "")
	case in.Taint&(act.FromBuilt|act.FromStore|act.FromDecoder) != 0:
		sh.Env.See(act.RunsUnknownText, sh.Src, at, at+1, "")
	}
}

// treeDeleters are functions of such languages that delete a folder and what is in it;
// those with a mark only if they are told so.
var treeDeleters = []string{"removeItem(", "rmtree(", "rm_rf(", "removeDirectoryRecursive", "removePathForcibly", "delete-directory", "deleteRecursively(", "delete_dir(", "rm(", "unlink("}

// deletesHome: the path that such a function is given is not written out but asked
// for, and is the home of the user.
func deletesHome(sh *interp.Process) {
	for _, name := range treeDeleters {
		i := strings.Index(sh.Src.Text, name)
		if i < 0 {
			continue
		}
		from := i + len(name)
		arg := strings.TrimLeft(sh.Src.Text[from:], " (")
		if j := strings.IndexAny(arg, "\n;"); j >= 0 {
			arg = arg[:j]
		}
		l := strings.ToLower(arg)
		whole := strings.Contains(l, "homedir") || strings.Contains(l, "getenv(\"home") || strings.Contains(l, "env[\"home") || strings.Contains(l, "user.home")
		recurses := len(name) > len("unlink(") || strings.Contains(strings.ToLower(sh.Src.Text), "recursive")
		if whole && recurses && strings.IndexByte(arg, '/') < 0 && !strings.Contains(l, "join") && !strings.Contains(l, "appending") {
			home := act.Word{Text: "~", At: -1, Span: sh.Src.Span}
			sh.Emit(sh.Src, strings.TrimRight(name, "("), act.Effect{Op: act.DeleteTree, On: []act.Word{home}, From: i, To: from})
			return
		}
	}
}
