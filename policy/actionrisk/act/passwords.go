package act

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// passwordOptions lists the options whose value is a password, by program or by program and
// subcommand. A star means that the value follows the letter without a blank. "user:" means that
// the value is a user name, then ":" or "%", then the password.
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

// PasswordAt returns the position of the password if word i is one of the password options: word
// is the index of the word that contains it (i or i+1), and at is the offset in that word. at is
// negative if word i is not a password option or has no password.
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

// optionValue returns where the value of option o is: the index of the word, and the offset in
// this word. at is negative if word i is not this option.
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

// isPassword reports whether a value can be a password: it is not a variable, substitution,
// placeholder or prompt.
func isPassword(value string) bool {
	return len(value) >= 3 && !strings.ContainsAny(value[:1], "-$`<{/@") && strings.IndexByte(value, scan.Hole) < 0
}

// OptionsOfPasswords returns the password options of the program of a command line, or nil if it
// has none.
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

// passwordsIn returns the ranges of the passwords in the options of known programs. It splits the
// text at blanks, quotes and separators without parsing it, which is enough for masking.
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

// passwordsOf returns the ranges of the passwords in one command line. Other programs may precede
// the known program, as in "sudo mysql".
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
