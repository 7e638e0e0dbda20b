package secrets

import (
	"slices"
	"strings"
)

// assigned returns the secret value after NAME=, "name": or Name:. i is the position of the = or
// :.
func assigned(text string, i int) (Span, bool) {
	name, quoted := nameBefore(text[:i])
	if name == "" {
		return Span{}, false
	}
	from := i + 1
	if from < len(text) && (text[from] == '=' || text[from] == '>') { // the sign is :=, ==, => or :>
		from++
	}
	gap := run(text[from:], 8, isBlank)
	class := classOf(name)
	if class < likely {
		return Span{}, false
	}
	tight := quoted || text[i] == '=' && gap == 0 && i > 0 && !isBlank(text[i-1])
	return valueAt(text, from+gap, class, tight)
}

// flagged returns the secret value after a flag --name. i is the position of the first dash.
func flagged(text string, i int) (Span, bool) {
	if !strings.HasPrefix(text[i:], "--") || i > 0 && (isAlnum(text[i-1]) || text[i-1] == '-') {
		return Span{}, false
	}
	n := run(text[i+2:], longestName, isURLSafe)
	at := i + 2 + n
	if n == 0 || at+1 >= len(text) || text[at] != ' ' || text[at+1] == '-' {
		return Span{}, false
	}
	class := classOf(text[i+2 : at])
	if class < likely {
		return Span{}, false
	}
	return valueAt(text, at+1, class, true)
}

// nameBefore returns the name at the end of a text, and whether it is quoted. If a name consists
// of several words, as in "API key: …", it returns the last two if only both together name a
// secret.
func nameBefore(text string) (name string, quoted bool) {
	end := len(text)
	for end > 0 && len(text)-end < 4 && isBlank(text[end-1]) {
		end--
	}
	if end > 0 && isQuote(text[end-1]) {
		end--
		quoted = true
		if end > 0 && text[end-1] == '\\' {
			end--
		}
	}
	start := end
	for start > 0 && end-start < longestName && isDotted(text[start-1]) {
		start--
	}
	if second := start; !quoted && start > 1 && text[start-1] == ' ' {
		second--
		for second > 0 && end-second < longestName && isURLSafe(text[second-1]) {
			second--
		}
		if classOf(text[start:end]) < certain && classOf(text[second:end]) == certain {
			start = second
		}
	}
	return text[start:end], quoted
}

// valueAt returns the value that begins at the position from, if it is a secret. If tight is
// false, the sign before the value may be punctuation, so the value counts only if it looks
// random.
func valueAt(text string, from int, class class, tight bool) (Span, bool) {
	const judged = 96
	open := from
	for open < len(text) && text[open] == '\\' {
		open++
	}
	ends := isValueEnd
	if open < len(text) && isQuote(text[open]) {
		quote := text[open]
		from = open + 1
		ends = func(c byte) bool { return c == quote || c == '\\' || c == '\n' }
		tight = true
	}
	from += schemeLength(text[from:min(len(text), from+16)])
	n := run(text[from:], judged, func(c byte) bool { return !ends(c) })
	if n == 0 {
		return Span{}, false
	}
	if s, ok := shapeAt(text, from); ok {
		return s, true
	}
	value := text[from : from+n]
	if from+n < len(text) && strings.IndexByte("([{<", text[from+n]) >= 0 || !tight && !random(value, 8) || !isLiteral(value, class) {
		return Span{}, false
	}
	if n == judged {
		n = run(text[from:], len(text), func(c byte) bool { return !ends(c) })
	}
	return Span{NamedValue, from, from + n}, true
}

// kindByName returns the kind of secret of a complete value, judged by its name, or "".
func kindByName(name, value string) string {
	const judged = 4096
	value = strings.TrimSpace(value[:min(len(value), judged)])
	value = value[schemeLength(value):]
	lower := strings.ToLower(value)
	words := wordsOf(name)
	class := classOf(name)
	switch {
	case isHexKey(lower) && len(strings.TrimPrefix(lower, "0x")) == 64:
		if class == certain || slices.ContainsFunc([]string{"pk", "seed", "privkey", "sk"}, func(s string) bool { return len(words) == 1 && words[0] == s }) {
			return PrivateKey
		}
		return ""
	case isSeed(lower):
		if slices.ContainsFunc(words, func(w string) bool { return seedNames()[w] }) {
			return SeedPhrase
		}
		return ""
	case class >= likely && isLiteral(value, class):
		return NamedValue
	}
	return ""
}

// isLiteral reports whether a value under a name of this class is a secret that is written out,
// not a placeholder.
func isLiteral(value string, class class) bool {
	const shortest = 4
	if len(value) < shortest || class < certain && !random(value, 10) || strings.ContainsAny(value, " \t\r\n") {
		return false
	}
	return !Placeholder(value) && (class == certain || !isAddress(value))
}

// random reports whether a value may be random: it has letters and digits, and no white space,
// colon, comma or at-sign. least is the smallest length of such a value in bytes.
func random(value string, least int) bool {
	if len(value) < least {
		return false
	}
	digits, letters := 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case isDigit(c):
			digits++
		case isUpper(c) || isLower(c):
			letters++
		case c <= ' ' || c == ':' || c == ',' || c == '@':
			return false
		}
	}
	return digits > 0 && letters > 1
}

// isAddress reports whether a value may be a blockchain address or a hash. Under the name "token"
// such a value is an asset, not a secret.
func isAddress(value string) bool {
	hex := strings.TrimPrefix(strings.ToLower(value), "0x")
	if (len(hex) == 40 || len(hex) == 64) && run(hex, len(hex), isLowerHex) == len(hex) {
		return true
	}
	base58 := func(c byte) bool { return isAlnum(c) && c != '0' && c != 'O' && c != 'I' && c != 'l' }
	return len(value) >= 32 && len(value) <= 44 && run(value, len(value), base58) == len(value) && !isHexKey(hex)
}

// Placeholder reports whether a value is not a secret itself but a placeholder: a variable, a word
// to be replaced, a reference to a secret store, or the name of a type.
func Placeholder(value string) bool {
	const judged = 256
	value = strings.TrimSpace(value[:min(len(value), judged)])
	lower := strings.ToLower(value)
	switch {
	case value == "", strings.IndexByte("$<{[%*@(", value[0]) >= 0 && !isSigned(value):
		return true
	case hasAny(lower, "${", "$(", "{{", "xxxx", "****", "...", "…", "process.env", "os.environ", "getenv", "import.meta", "env.", "secrets."):
		return true
	case hasPrefix(lower, "op://", "vault:", "env:", "file:", "arn:", "ssm:", "secret:", "keyring:", "ref+", "gcp:", "aws:", "/", "./", "~/", "../", "http://", "https://"):
		return true
	case run(value, len(value), func(c byte) bool { return c == value[0] }) == len(value):
		return true
	}
	words := wordsOf(value)
	if slices.ContainsFunc(words, func(w string) bool { return placeholderWords()[w] }) {
		return !slices.ContainsFunc(words, func(w string) bool { return random(w, 10) })
	}
	if len(words) == 1 && typeWords()[lower] {
		return true
	}
	// Without digits, the name of a variable or of a setting is a placeholder.
	digits := strings.ContainsAny(value, "0123456789")
	return !digits && len(words) > 1 && (Name(value) || value == strings.ToUpper(value) && strings.Contains(value, "_"))
}

// isSigned reports whether a value that begins like a placeholder is a password with a special
// character in front, such as *Hx7-b2Qz.
func isSigned(value string) bool {
	return len(value) > 7 && strings.IndexByte("*@%(", value[0]) >= 0 && random(value, 8) && !strings.HasSuffix(value, value[:1]) && !strings.HasSuffix(value, ")")
}

var (
	placeholderWords = setOf("your", "my", "placeholder", "example", "sample", "dummy", "replace", "replaceme", "insert", "changeme", "change", "enter", "here", "todo", "redacted", "masked", "hidden", "removed", "fill", "paste", "set")

	typeWords = setOf("string", "str", "text", "number", "integer", "boolean", "bool", "true", "false", "null", "nil", "none", "undefined", "required", "optional", "unset", "empty", "default",
		"object", "secret", "token", "password", "passwd", "key", "apikey", "api_key", "inherit", "yes", "no", "n/a", "tbd", "auto", "disabled", "enabled", "bearer", "basic", "secretstr", "bytes", "prompt", "stdin", "free")

	seedNames = setOf("seed", "mnemonic", "recovery", "phrase")
)

// schemeLength returns the length of the scheme of an Authorization header, such as "Bearer ", at
// the start of a value, or 0.
func schemeLength(value string) int {
	for _, scheme := range []string{"bearer ", "basic ", "token ", "apikey "} {
		if len(value) > len(scheme) && strings.EqualFold(value[:len(scheme)], scheme) {
			return len(scheme)
		}
	}
	return 0
}

// labels are the words that may precede a seed phrase, the longest first among those with the same
// beginning.
var labels = []string{"seed phrase", "seed words", "seed", "mnemonic phrase", "mnemonic words", "mnemonic", "recovery phrase", "recovery words", "secret phrase", "secret recovery phrase"}

// labelled returns the seed phrase, or the private key of 64 hexadecimal digits, that follows a
// label. i is the position of the first letter of the label.
func labelled(text string, i int) (Span, bool) {
	rest := text[i:]
	switch {
	case startsLike(rest, "key"):
		from := i + len("key")
		from += gapLength(text[from:])
		if n := hexKeyLength(text[from:]); n > 0 && ownedKey(text[:i]) {
			return Span{PrivateKey, from, from + n}, true
		}
	case startsLike(rest, "seed") || startsLike(rest, "mnemonic") || startsLike(rest, "recovery ") || startsLike(rest, "secret "):
		for _, label := range labels {
			if !startsLike(rest, label) {
				continue
			}
			from := i + len(label)
			from += gapLength(text[from:])
			if n := seedLength(text[from:]); n > 0 {
				return Span{SeedPhrase, from, from + n}, true
			}
		}
	}
	return Span{}, false
}

// startsLike reports whether a text begins with a label. The case does not matter, and a dash or
// underscore counts as a space.
func startsLike(text, label string) bool {
	if len(text) < len(label) {
		return false
	}
	for i := range len(label) {
		c := text[i]
		if isUpper(c) {
			c += 'a' - 'A'
		}
		if c == '_' || c == '-' {
			c = ' '
		}
		if c != label[i] {
			return false
		}
	}
	return true
}

// gapLength returns the length of what may be between a name and its value: a quotation mark,
// white space, a colon or equals sign, white space, and a quotation mark, each of them optional.
func gapLength(rest string) int {
	const longest = 64
	n := run(rest, 1, isQuote)
	n += run(rest[n:], longest, isSpace)
	n += run(rest[n:], 1, func(c byte) bool { return c == ':' || c == '=' })
	n += run(rest[n:], longest, isSpace)
	return n + run(rest[n:], 1, isQuote)
}

// hexKeyLength returns the length of a key of 64 hexadecimal digits, with or without 0x, at the
// start of a text, or 0.
func hexKeyLength(rest string) int {
	const longest = len("0x") + 65
	lower := strings.ToLower(rest[:min(len(rest), longest)])
	if !isHexKey(lower) {
		return 0
	}
	return 64 + len(lower) - len(strings.TrimPrefix(lower, "0x"))
}

// seedLength returns the length of the seed phrase at the start of a text, or 0.
func seedLength(rest string) int {
	const longest = 256
	lower := strings.ToLower(rest[:min(len(rest), longest)])
	if !isSeed(lower) {
		return 0
	}
	return run(lower, len(lower), func(c byte) bool { return isLower(c) || c == ' ' || c == ',' })
}

// ownedKey reports whether "private", "secret", "signing" or "wallet" is the word before "key".
func ownedKey(before string) bool {
	const longest = 16
	before = strings.ToLower(before[max(0, len(before)-longest):])
	if before != "" && strings.IndexByte(" _-", before[len(before)-1]) >= 0 {
		before = before[:len(before)-1]
	}
	return slices.ContainsFunc([]string{"private", "secret", "signing", "wallet"}, func(owner string) bool { return strings.HasSuffix(before, owner) })
}

// isHexKey reports whether a lower-case text begins with exactly 64 hexadecimal digits, with or
// without 0x before them.
func isHexKey(text string) bool {
	return run(strings.TrimPrefix(text, "0x"), 65, isLowerHex) == 64
}

// isSeed reports whether a lower-case text begins with twelve words of three to eight letters (the
// lengths of BIP 39), separated by spaces or commas.
func isSeed(text string) bool {
	for words := 1; ; words++ {
		n := run(text, 9, isLower)
		if n < 3 || n > 8 {
			return false
		}
		if words == 12 {
			return true
		}
		text = text[n:]
		gap := run(text, 4, func(c byte) bool { return c == ' ' || c == ',' })
		if gap == 0 {
			return false
		}
		text = text[gap:]
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
func isSpace(c byte) bool { return isBlank(c) || c == '\r' || c == '\n' }
func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isValueEnd reports whether a value without quotation marks ends at this byte.
func isValueEnd(c byte) bool { return c <= ' ' || strings.IndexByte("\"'`;,&|()[]{}<>\\", c) >= 0 }

func hasAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func hasPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
