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
	plain.Text, plain.At = strings.NewReplacer("')", " )", "`", " ", "[", " ", "]", " ").Replace(sh.Src.Text), -1
	macros(macro{"syscmd(", ")", "shell"})(sh.Reading(&plain))
}

// sendsSecret: a program text in a language without a scanner that names a credential
// and a function that sends.
func sendsSecret(sh *interp.Process) {
	text := sh.Src.Text
	if namesSecret(text) && scan.HasAny(text, "url-retrieve", "open-network-stream", "make-network-process", "request(", "http", "HTTP", "Http", "socket", "Socket", "download(", "fetch", "curl", "gen_tcp", "httpc") {
		sh.Env.See(act.SendsSecret, sh.Src, 0, len(text), "")
	}
}

// namesSecret: a string of the text names a variable or a file that holds a secret.
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
	_, name, ok := strings.Cut(text, "env(") // Tcl
	name, _, closed := strings.Cut(name, ")")
	return ok && closed && hosts.SecretVariable(name)
}

// isSecret: the name of such a variable, or of such a file.
func isSecret(value string) bool {
	if act.SyntaxName(value) && value == strings.ToUpper(value) && hosts.SecretName(value) {
		return true
	}
	return strings.ContainsAny(value, "/~.") && !strings.Contains(value, "://") && paths.KindOfFile(value)&(paths.IsCredential|paths.IsPublic) == paths.IsCredential
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
