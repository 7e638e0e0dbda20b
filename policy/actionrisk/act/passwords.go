package act

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// passwordOptions are the options whose value is a password, by program or program
// and subcommand. "*" is where the value is attached to the letter; "user:" says
// that the password is after a name and a colon or "%".
var passwordOptions = map[string][]string{
	"mysql": {"-p*", "--password"}, "mysqldump": {"-p*", "--password"}, "mysqladmin": {"-p*", "--password"}, "mysqlimport": {"-p*", "--password"},
	"mariadb": {"-p*", "--password"}, "mariadb-dump": {"-p*", "--password"}, "mycli": {"-p*", "--password"},
	"docker login": {"-p", "--password"}, "podman login": {"-p", "--password"}, "nerdctl login": {"-p", "--password"}, "helm registry": {"-p", "--password"},
	"skopeo login": {"-p", "--password"}, "buildah login": {"-p", "--password"}, "crane auth": {"-p", "--password"}, "oras login": {"-p", "--password"}, "az login": {"-p", "--password"},
	"redis-cli": {"-a", "--pass"}, "mongosh": {"-p", "--password"}, "mongo": {"-p", "--password"}, "mongodump": {"-p", "--password"}, "mongorestore": {"-p", "--password"},
	"sqlcmd": {"-P"}, "bcp": {"-P"}, "cqlsh": {"-p", "--password"}, "clickhouse-client": {"--password"}, "rabbitmqadmin": {"-p", "--password"},
	"ldapsearch": {"-w"}, "ldapmodify": {"-w"}, "smbclient": {"user:-U"}, "curl": {"user:-u", "user:--user"}, "http": {"user:-a", "user:--auth"}, "https": {"user:-a", "user:--auth"},
	"wget": {"--password", "--http-password", "--ftp-password"}, "sshpass": {"-p", "-p*"},
}

// PasswordAt is where in word i of a command line the value of a password option
// begins, and of which word: the next one, or the rest of this one. at is negative
// if the word is no such option.
func PasswordAt(options []string, words []string, i int) (word, at int) {
	for _, option := range options {
		o, named := strings.CutPrefix(option, "user:")
		word, at = optionValue(o, words, i)
		if at < 0 {
			continue
		}
		if named {
			colon := strings.IndexAny(words[word][at:], ":%")
			if colon < 0 {
				continue
			}
			at += colon + 1
		}
		if isPassword(words[word][at:]) {
			return word, at
		}
	}
	return i, -1
}

// optionValue is where the value of an option begins, as PasswordAt says it.
func optionValue(o string, words []string, i int) (word, at int) {
	letter, attached := strings.CutSuffix(o, "*")
	switch {
	case attached && strings.HasPrefix(words[i], letter) && len(words[i]) > len(letter) && !strings.HasPrefix(words[i], "--"):
		return i, len(letter)
	case !attached && strings.HasPrefix(o, "--") && strings.HasPrefix(words[i], o+"="):
		return i, len(o) + 1
	case words[i] == o && i+1 < len(words):
		return i + 1, 0
	}
	return i, -1
}

// isPassword: not a variable, a substitution, a placeholder or a prompt.
func isPassword(value string) bool {
	return len(value) >= 3 && !strings.ContainsAny(value[:1], "-$`<{/@") && strings.IndexByte(value, scan.Hole) < 0
}

// OptionsOfPasswords of a command line, if its program has any.
func OptionsOfPasswords(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	exe := scan.Base(words[0])
	if options := passwordOptions[exe]; options != nil || len(words) == 1 {
		return options
	}
	return passwordOptions[exe+" "+words[1]]
}

// passwordsIn lists the passwords that are in the options of known programs in a
// text; it reads words and quotes, which is enough for showing.
func passwordsIn(text string) []Span {
	var out []Span
	var words []string
	var starts []int
	for i := 0; i <= len(text); {
		end := i
		for end < len(text) && strings.IndexByte(" \t\n;|&\"'()", text[end]) < 0 {
			end++
		}
		if end > i && len(words) < scan.MaxPasswordWords {
			words, starts = append(words, text[i:end]), append(starts, i)
		}
		if end == len(text) || strings.IndexByte("\n;|&()", text[end]) >= 0 {
			out = append(out, passwordsOf(words, starts)...)
			words, starts = words[:0], starts[:0]
		}
		i = end + 1
	}
	return out
}

// passwordsOf lists those of one command line. Its program may be after others, as in
// "sudo mysql".
func passwordsOf(words []string, starts []int) (out []Span) {
	for first := range words {
		options := OptionsOfPasswords(words[first:])
		if options == nil {
			continue
		}
		for i := first + 1; i < len(words); i++ {
			if word, at := PasswordAt(options, words, i); at >= 0 {
				out = append(out, Span{starts[word] + at, starts[word] + len(words[word])})
			}
		}
		return out
	}
	return nil
}
