package mcprisk

import (
	"slices"
	"strings"
	"unicode"

	"github.com/countersign/countersign/policy/normal"
)

// hiddenCharacters reports invisible characters, and control characters that change what a
// terminal shows.
func (s *scan) hiddenCharacters(t text) {
	if isPlain(t.raw) {
		return
	}
	severity, at, escape := "", 0, -1
	runes := []rune(t.raw)
	for i, r := range runes {
		if found := hiddenSeverity(runes, i); worse(found, severity) {
			severity, at = found, i
		}
		if escape < 0 && unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' {
			escape = i
		}
	}
	if severity != "" {
		s.report("invisible_unicode", severity, t.tool, t.path, aroundRune(runes, at))
	}
	if escape >= 0 {
		s.report("terminal_escape", "", t.tool, t.path, aroundRune(runes, escape))
	}
}

func aroundRune(runes []rune, at int) string {
	return string(runes[max(0, at-20):min(len(runes), at+20)])
}

// hiddenSeverity returns the severity of the character at i: critical for tags and bidirectional
// controls, high for zero-width characters and long runs of variation selectors, and "" for a
// character that is visible or that its script needs.
func hiddenSeverity(runes []rune, i int) string {
	switch r := runes[i]; {
	case 0xe0000 <= r && r <= 0xe007f:
		if inFlag(runes, i) {
			return ""
		}
		return "critical"
	case 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return "critical"
	case isVariation(r):
		run := 1
		for run <= i && isVariation(runes[i-run]) {
			run++
		}
		if run > maxVariation {
			return "high"
		}
	case normal.Hidden(runes, i):
		return "high"
	}
	return ""
}

// subdivisionFlags are the only tag sequences that emoji fonts display: the flags of England,
// Scotland and Wales.
var subdivisionFlags = []string{"gbeng", "gbsct", "gbwls"}

// inFlag reports whether the tag character at i is part of one of these flags.
func inFlag(runes []rune, i int) bool {
	start := i
	for start > 0 && i-start < 7 && runes[start-1] >= 0xe0000 && runes[start-1] <= 0xe007f {
		start--
	}
	if start == 0 || runes[start-1] != 0x1f3f4 || start+6 > len(runes) || runes[start+5] != 0xe007f || i > start+5 {
		return false
	}
	tag := make([]byte, 5)
	for j := range tag {
		tag[j] = byte(runes[start+j] - 0xe0000)
	}
	return slices.Contains(subdivisionFlags, string(tag))
}

// names reports tool names that collide, and names with look-alike letters.
func (s *scan) names() {
	known := map[string]bool{}
	for _, name := range s.known {
		known[foldName(name)] = true
	}
	seen := map[string]bool{}
	for _, t := range s.manifest.tools {
		folded := foldName(t.name)
		if known[folded] || seen[folded] {
			s.report("tool_name_collision", "", t.name, t.path+"/name", t.name)
		}
		seen[folded] = true
		if confusable(t.name) {
			s.report("homoglyph_name", "", t.name, t.path+"/name", t.name)
		}
	}
}

// foldName returns a name in normal form without separators, for the comparison of names.
func foldName(name string) string {
	return separators.Replace(readings(name)[0])
}

var separators = strings.NewReplacer("-", "", "_", "", " ", "")

// confusable reports whether a name mixes Latin letters with letters of another script, or
// consists only of letters that look Latin but are not.
func confusable(name string) bool {
	latin, other, lookAlike, letters := false, false, 0, 0
	for _, r := range name {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		switch {
		case r < 0x80:
			latin = true
		case unicode.Is(unicode.Latin, r) && fold(string(r)) == strings.ToLower(string(r)):
			latin = true // a Latin letter with an accent
		default:
			other = true
			if looksLatin(r) {
				lookAlike++
			}
		}
	}
	return other && (latin || lookAlike == letters)
}

// looksLatin reports whether a letter that is not ASCII looks like an ASCII letter.
func looksLatin(r rune) bool {
	folded := fold(string(r))
	return r >= 0x80 && len(folded) == 1 && unicode.IsLetter(rune(folded[0]))
}

// LookAlikes returns the letters of a word that look like Latin letters but are not. It returns
// none for a word that does not look Latin as a whole, such as most Russian words.
func LookAlikes(word string) (letters []rune) {
	if isPlain(word) || !confusable(word) {
		return nil
	}
	for _, r := range word {
		if looksLatin(r) {
			letters = append(letters, r)
		}
	}
	return letters
}
