package minor

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// runNft judges the lines of an nftables rule set that flush, delete or destroy rules. If the text
// also drops or rejects packets, it is an ordinary reload, and its "flush" lines are ignored.
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

// runM4 judges the shell commands in the macro syscmd of m4, without the quotes of m4.
func runM4(sh *interp.Process) {
	plain := *sh.Src
	plain.Text, plain.At = strings.NewReplacer("')", " )", "`", " ", "[", " ", "]", " ").Replace(sh.Src.Text), -1
	macros(macro{"syscmd(", ")", "shell"})(sh.Reading(&plain))
}

// sendsSecret reports a program text that names a credential and a function for network access. It
// is for languages that have no scanner.
func sendsSecret(sh *interp.Process) {
	text := sh.Src.Text
	if namesSecret(text) && scan.HasAny(text, "url-retrieve", "open-network-stream", "make-network-process", "request(", "http", "HTTP", "Http", "socket", "Socket", "download(", "fetch", "curl", "gen_tcp", "httpc") {
		sh.Env.See(act.SendsSecret, sh.Src, 0, len(text), "")
	}
}

// namesSecret reports whether a string of the text is the name of a secret variable or of a
// credential file.
func namesSecret(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := tokens.ClosingQuote(text, i)
		if end < 0 {
			continue
		}
		if isSecret(text[i+1 : end]) {
			return true
		}
		i = end
	}
	_, name, ok := strings.Cut(text, "env(") // Tcl reads a variable with $env(NAME)
	name, _, closed := strings.Cut(name, ")")
	return ok && closed && hosts.SecretVariable(name)
}

// isSecret reports whether the value is the name of a secret variable, in capitals, or the path of
// a credential file.
func isSecret(value string) bool {
	if act.SyntaxName(value) && value == strings.ToUpper(value) && hosts.SecretName(value) {
		return true
	}
	return strings.ContainsAny(value, "/~.") && !strings.Contains(value, "://") && paths.KindOfFile(value)&(paths.IsCredential|paths.IsPublic) == paths.IsCredential
}

// runsInput judges the input of a filter that runs each line it reads.
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
