package scan

import (
	"slices"
	"strings"
)

// replace returns a function that replaces a part of its first argument. Without a replacement the
// function removes the part.
func replace(of func(text, old, with string) string) func([]string) (string, bool) {
	return func(args []string) (string, bool) {
		if len(args) < 2 || args[1] == "" {
			return first(same)(args)
		}
		if strings.IndexByte(args[1], Hole) >= 0 {
			return "", false
		}
		return of(args[0], args[1], strings.Join(args[2:min(3, len(args))], "")), true
	}
}

// match replaces the matches of a regular expression, ignoring case. It supports only expressions
// that match a single text, and, for removal, those that list characters.
func match(args []string) (string, bool) {
	if len(args) < 2 || args[1] == "" || strings.IndexByte(args[0], Hole) >= 0 {
		return first(same)(args)
	}
	if PlainPattern(args[1]) {
		return replace(ReplaceFold)(slices.Concat([]string{args[0], strings.ReplaceAll(args[1], `\`, "")}, args[2:]))
	}
	class := strings.TrimRight(strings.TrimPrefix(args[1], "["), "]+")
	if args[1] != "["+class+"]" && args[1] != "["+class+"]+" || class == "" || class[0] == '^' || strings.ContainsAny(class, "]-") || strings.Join(args[2:], "") != "" {
		return "", false
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(class, r) {
			return -1
		}
		return r
	}, args[0]), true
}

// PlainPattern reports whether a regular expression matches a single text only.
func PlainPattern(p string) bool {
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+1 < len(p) && !IsNameByte(p[i+1]) {
			i++
		} else if strings.IndexByte(`\^$.|?*+()[]{}`, p[i]) >= 0 {
			return false
		}
	}
	return p != ""
}

// ReplaceFold replaces all occurrences of old, ignoring case. If text is not ASCII it does not
// ignore case, because changing the case may change the length.
func ReplaceFold(text, old, with string) string {
	if !IsASCII(text) {
		return strings.ReplaceAll(text, old, with)
	}
	low, old := strings.ToLower(text), strings.ToLower(old)
	var b strings.Builder
	for b.Len() <= MaxDecoded {
		i := strings.Index(low, old)
		if i < 0 || old == "" {
			break
		}
		b.WriteString(text[:i])
		b.WriteString(with)
		text, low = text[i+len(old):], low[i+len(old):]
	}
	return b.String() + text
}
