// Package scan has what the parsers of all languages share: the limits of one evaluation, classes
// of characters, functions on texts, sets of words, and characters that look like others. It
// depends on no language and no rule.
package scan

import "strings"

// Limits of one evaluation. They limit the work; findings made before a limit is reached are kept.
const (
	// MaxSteps is the work of one evaluation, about 0.1 microseconds per step. Ordinary commands
	// of 2,000 characters need a third of it. It replaces a time-out and keeps the evaluation of
	// any text below two milliseconds.
	MaxSteps = 13_000
	// MaxNesting is the largest number of brackets open at once in a text that is passed to a
	// parser: 1,000 nested "((" cost the shell parser over a millisecond.
	MaxNesting = 64
	// MaxDepth is the largest number of texts nested in each other.
	MaxDepth = 16
	// MaxInvocations is the largest number of program starts, which nested loops multiply.
	MaxInvocations = 512
	// MaxWords is the largest number of words that brace expansion makes of one word.
	MaxWords = 256
	// MaxBraced is the largest number of words that brace expansion makes in total. After that,
	// each expansion gives its first alternative only.
	MaxBraced = 512
	// MaxLayers is the largest number of encodings that are removed from one text. MaxDecoded is
	// the largest length of a decoded text, MaxDecodedTotal that of all decoded texts together, in
	// bytes.
	MaxLayers       = 4
	MaxDecoded      = 8 << 10
	MaxDecodedTotal = 32 << 10
	// MaxValue is the largest literal that is stored for a variable, in bytes.
	MaxValue = 4 << 10
	// MaxLoop is the largest number of iterations of one loop.
	MaxLoop = 64
	// MaxRules is the largest number of rules that are read from a makefile.
	MaxRules = 1024
	// MaxRounds is the largest number of iterations of all loops together. After that, each loop
	// runs once, so that nested loops do not multiply.
	MaxRounds = 128
	// MaxAncestors is the largest number of folders above a path that are searched.
	MaxAncestors = 64
	// MaxFiles is the largest number of files, written by the command itself, whose contents are
	// kept for later parts of the command. Other short lists, such as links, have the same limit.
	MaxFiles = 8
	// MaxSuspects is the largest number of unknown programs nested in each other. Known wrappers
	// count only towards MaxDepth.
	MaxSuspects = 3
	// MaxPasswordWords is the number of words of a command that are searched for passwords before
	// it is shown.
	MaxPasswordWords = 64
	// MaxLooks is the number of words with look-alike letters that are examined in prose.
	MaxLooks = 16
	// MaxTexts is the number of parsed texts in the cache.
	MaxTexts = 16
	// MaxClasses is the number of paths whose class is cached.
	MaxClasses = 256
	// MaxRange is the largest number of elements of a range a..b in PowerShell that is expanded; a
	// submitted text has fewer characters.
	MaxRange = 2048
	// MaxFindings is the largest number of findings that are reported, the most severe first.
	MaxFindings = 64
	// MaxNumber is the longest text that is parsed as a number, in bytes: 256 bits in decimal,
	// with separators and a factor.
	MaxNumber = 160
	// MaxLaterSQL is the number of statements after the first that are examined to decide whether
	// a text is SQL, if the first one is unclear. Scripts begin with two or three settings.
	MaxLaterSQL = 8
	// MaxJSONDepth is the largest depth of JSON that is parsed.
	MaxJSONDepth = 64
	// MaxText is the longest text that is examined, in bytes. The API accepts 2,000 code points,
	// but a decoded text may be longer.
	MaxText = 32 << 10
)

// Nesting returns the largest number of brackets and backticks that are open at once. It ignores
// quotes, so the result may be too high.
func Nesting(text string) int {
	depth, deepest, ticks := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '`':
			ticks++
		case c == '\\':
			i++
		default:
			depth = max(depth+opening(text, i), 0)
			deepest = max(deepest, depth)
		}
	}
	return max(deepest, ticks/8)
}

// opening returns 1 if a bracket or a compound command of the shell begins at i, -1 if one ends
// there, and 0 otherwise.
func opening(text string, i int) int {
	switch text[i] {
	case '(', '{', '[':
		return 1
	case ')', '}', ']':
		return -1
	case 'i', 'c', 'w', 'f', 'u', 's':
		if i > 0 && IsNameByte(text[i-1]) {
			return 0
		}
		if HasAnyPrefix(text[i:], "if ", "case ", "while ", "for ", "until ", "select ") {
			return 1
		}
		if rest, ok := strings.CutPrefix(text[i:], "fi"); ok && (rest == "" || !IsNameByte(rest[0])) {
			return -1
		}
	}
	return 0
}

// IsNameByte reports whether a byte may be part of a name: an ASCII letter, a digit or an
// underscore.
func IsNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
