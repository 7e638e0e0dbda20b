package emailcheck

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign/countersign/policy/normal"
)

// judgeLocal judges the non-ASCII characters of a local part. RFC 6531 allows all of them, but
// no mail system has mailboxes with white space, invisible characters or unassigned code
// points; these are unusable. Doubtful are full-width and other compatibility forms, symbols
// and quotation marks, combining marks without a letter, and letters of several scripts in one
// word.
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

// wordMarks are punctuation inside words: the dot of Catalan, the marks of Hebrew.
var wordMarks = []rune{'\u00b7', '\u05f3', '\u05f4', '\u30fb'}

// wordsApart replaces separators of words by dots.
func wordsApart(r rune) rune {
	if strings.ContainsRune("-_+", r) {
		return '.'
	}
	return r
}

// Scripts whose letters are written together in one word.
var scriptGroups = []struct {
	group string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian}, {"Hebrew", unicode.Hebrew},
	{"Arabic", unicode.Arabic}, {"CJK", unicode.Han}, {"CJK", unicode.Hiragana}, {"CJK", unicode.Katakana}, {"CJK", unicode.Hangul}, {"CJK", unicode.Bopomofo},
	{"Thai", unicode.Thai}, {"Devanagari", unicode.Devanagari}, {"Georgian", unicode.Georgian}, {"Cherokee", unicode.Cherokee},
}

// mixedScripts reports whether a label mixes scripts. Latin together with Chinese, Japanese or
// Korean is common.
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
