// Package scan holds what the readers of all languages share: the limits of one
// assessment, classes of characters, functions on texts, words in braces, and the letters
// that look like others. It knows no language and no rule.
package scan

import "strings"

// Limits of one assessment. Each bounds work, never what was found before it.
const (
	// MaxSteps is the work of one assessment, some 0.1 microseconds a step; honest
	// commands of 2,000 characters take a third of it. It takes the place of a
	// time-out, and keeps any text below two milliseconds.
	MaxSteps = 13_000
	// MaxNesting is how many openers may stand open before a parser sees the
	// text: 1,000 nested "((" cost the shell parser over a millisecond.
	MaxNesting = 64
	// MaxDepth is how often one text may be found inside another.
	MaxDepth = 16
	// MaxInvocations bounds loops within loops.
	MaxInvocations = 512
	// MaxWords is what brace expansion may make of one word.
	MaxWords = 256
	// MaxBraced is how many words braces may make in all; beyond it only the first
	// alternative of each is looked at.
	MaxBraced = 512
	// MaxLayers is how many encodings are peeled off one text, MaxDecoded how
	// long a decoded text may be, MaxDecodedTotal all of them together.
	MaxLayers       = 4
	MaxDecoded      = 8 << 10
	MaxDecodedTotal = 32 << 10
	// MaxValue is the longest literal kept in a variable.
	MaxValue = 4 << 10
	// MaxLoop is how many values of a loop are run through.
	MaxLoop = 64
	// MaxRules is how many rules of a makefile are looked at.
	MaxRules = 1024
	// MaxRounds is how many values all loops together are run through; beyond it
	// each loop runs once, so that loops within loops do not multiply.
	MaxRounds = 128
	// MaxAncestors is how far above a path a folder is looked for.
	MaxAncestors = 64
	// MaxFiles is how many files written by the command itself are remembered.
	MaxFiles = 8
	// MaxSuspects is how many programs that no table knows may stand one inside the
	// other; wrappers that are known count as depth alone.
	MaxSuspects = 3
	// MaxPasswordWords is how many words of a command are looked through for passwords
	// before it is shown.
	MaxPasswordWords = 64
	// MaxLooks is at how many words with look-alike letters in prose is looked.
	MaxLooks = 16
	// MaxTexts is how many parsed texts are kept.
	MaxTexts = 16
	// MaxClasses is for how many paths what they are is kept.
	MaxClasses = 256
	// MaxRange is the longest a..b of PowerShell that is written out: a text has fewer
	// characters.
	MaxRange = 2048
	// MaxFindings is how many findings are reported, the highest first.
	MaxFindings = 64
	// MaxNumber is the longest text that is read as a number: 256 bits in decimal,
	// with separators and a factor.
	MaxNumber = 160
	// MaxLaterSQL is how many statements after a doubtful first one are looked at to
	// tell whether a text is SQL; scripts set two or three settings first.
	MaxLaterSQL = 8
	// MaxJSONDepth is the depth to which JSON is looked into.
	MaxJSONDepth = 64
	// MaxText is the longest text that is looked at at all; the contract has
	// 2,000 code points, decoded texts may be longer.
	MaxText = 32 << 10
)

// Nesting is the largest number of brackets and backticks open at once; quotes
// are ignored, so it errs on the high side.
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

// opening is 1 where a bracket or a command of the shell that has an end begins, -1 where
// it ends.
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

// IsNameByte tells whether a byte may be in a name: an ASCII letter, a digit or an underscore.
func IsNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
