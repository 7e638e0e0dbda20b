package emailcheck

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign/countersign/policy/normal"
)

// judgeLocal judges the non-ASCII characters of a local part. RFC 6531 allows all of them.
// unusable is true for white space, invisible characters and unassigned code points, because no
// mail system has such mailboxes. doubtful is true for full-width and other compatibility forms,
// symbols and quotation marks, combining marks without a letter, and words with letters of several
// scripts.
func judgeLocal(local string) (unusable, doubtful bool) {
	if normal.IsASCII(local) {
		return false, false
	}
	runes := []rune(local)
	marks := 0
	for i, r := range runes {
		switch {
		case r < 0x80:
			marks = 0
			continue
		case normal.Hidden(runes, i), unicode.IsSpace(r), !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf):
			unusable = true
		case unicode.Is(unicode.M, r):
			marks++
			doubtful = doubtful || marks > maxMarks || i == 0 || runes[i-1] < 0x80 && !unicode.IsLetter(runes[i-1])
			continue
		case unicode.In(r, unicode.S, unicode.P) && !slices.Contains(wordMarks, r):
			doubtful = true
		}
		marks = 0
	}
	return unusable, doubtful || norm.NFKC.String(local) != local || mixedScripts(strings.Map(wordsApart, local))
}

// wordMarks contains punctuation that occurs inside words, such as the middle dot of Catalan and
// the marks of Hebrew.
var wordMarks = []rune{'\u00b7', '\u05f3', '\u05f4', '\u30fb'}

// wordsApart replaces characters between words by a dot, which separates labels for mixedScripts.
func wordsApart(r rune) rune {
	if strings.ContainsRune("-_+", r) {
		return '.'
	}
	return r
}

// scriptGroups assigns each script to a group of scripts that occur together in one word.
var scriptGroups = []struct {
	group string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian}, {"Hebrew", unicode.Hebrew},
	{"Arabic", unicode.Arabic}, {"CJK", unicode.Han}, {"CJK", unicode.Hiragana}, {"CJK", unicode.Katakana}, {"CJK", unicode.Hangul}, {"CJK", unicode.Bopomofo},
	{"Thai", unicode.Thai}, {"Devanagari", unicode.Devanagari}, {"Georgian", unicode.Georgian}, {"Cherokee", unicode.Cherokee},
}

// mixedScripts reports whether a label mixes groups of scripts. Latin together with Chinese,
// Japanese or Korean is allowed, because it is common.
func mixedScripts(domain string) bool {
	for label := range strings.SplitSeq(domain, ".") {
		groups := map[string]bool{}
		for _, r := range label {
			for _, s := range scriptGroups {
				if unicode.Is(s.table, r) {
					groups[s.group] = true
				}
			}
		}
		if len(groups) > 2 || len(groups) == 2 && !(groups["Latin"] && groups["CJK"]) {
			return true
		}
	}
	return false
}
