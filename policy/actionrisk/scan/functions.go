package scan

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Function is an operation on texts that programming languages have as a function. functions.json
// lists the names of each. The field Of computes the result, and returns false if the arguments
// are invalid.
type Function struct {
	Of func(args []string) (string, bool)
	// Holes: unknown parts of the arguments may remain unknown parts of the result, and the result
	// is as long as the arguments. Other functions need arguments that are fully known.
	Holes bool
	// Index: the argument is in square brackets after the name, as in parents[1].
	Index bool
}

// Functions are all operations, by the words that functions.json uses.
var Functions = map[string]Function{
	"base32":    {Of: first(Decode32)},
	"base64":    {Of: first(Decode64)},
	"hex":       {Of: first(DecodeHex)},
	"percent":   {Of: first(PercentDecoded)},
	"rot13":     {Of: first(Rot13)},
	"reverse":   {Of: first(Reverse)},
	"codec":     {Of: codec},
	"translate": {Of: translate},
	"unknown":   {Of: func([]string) (string, bool) { return "", false }}, // earlier rule sets knew the names of some decoders but not their results
	"same":      {Of: first(same), Holes: true},
	"lower":     {Of: first(always(strings.ToLower)), Holes: true},
	"upper":     {Of: first(always(strings.ToUpper)), Holes: true},
	"folder":    {Of: first(always(folder)), Holes: true},
	"ancestor":  {Of: ancestor, Holes: true, Index: true},
	"trim":      {Of: trim, Holes: true},
	"text64":    {Of: first(decodeText64)},
	"join":      {Of: join, Holes: true},
	"joinpath":  {Of: joinPath, Holes: true},
	"sibling":   {Of: sibling, Holes: true},
	"concat":    {Of: func(args []string) (string, bool) { return strings.Join(args, ""), true }, Holes: true},
	"format":    {Of: format, Holes: true},
	"fill":      {Of: fill, Holes: true},
	"replace":   {Of: replace(strings.ReplaceAll), Holes: true},
	"match":     {Of: match, Holes: true},
	"substring": {Of: substring, Holes: true},
	"remove":    {Of: remove, Holes: true},
	"insert":    {Of: insert, Holes: true},
}

// first adapts a function of one text. Further arguments are ignored.
func first(of func(string) (string, bool)) func([]string) (string, bool) {
	return func(args []string) (string, bool) {
		if len(args) == 0 {
			return "", false
		}
		return of(args[0])
	}
}

func same(s string) (string, bool) { return s, true }

// always adapts a function that accepts any text.
func always(of func(string) string) func(string) (string, bool) {
	return func(s string) (string, bool) { return of(s), true }
}

// codec decodes a text with the named codec. For a character encoding it returns the text itself.
func codec(args []string) (string, bool) {
	if len(args) < 2 {
		return "", false
	}
	name := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(args[1]))
	switch name = strings.TrimSuffix(name, "codec"); name {
	case "rot13":
		return Rot13(args[0])
	case "hex":
		return DecodeHex(args[0])
	case "base64":
		return Decode64(args[0])
	case "utf8", "utf16le", "latin1", "ascii", "binary", "escape":
		return args[0], true
	}
	return "", false
}

// Substring returns a part of a text. The parameter from is the index of its first character; if
// negative, it counts from the end. length is the number of characters; if negative, that many are
// omitted at the end; if not given, the rest of the text is returned.
func Substring(text string, from int, length ...int) string {
	r := []rune(text)
	if from < 0 {
		from += len(r)
	}
	from = min(max(from, 0), len(r))
	to := len(r)
	switch {
	case len(length) == 0:
	case length[0] < 0:
		to += length[0]
	default:
		to = min(from+min(length[0], len(r)), len(r))
	}
	return string(r[from:max(to, from)])
}

// cut splits the first argument at the character whose index is the second argument.
func cut(args []string) (before, rest string, ok bool) {
	if len(args) < 2 || strings.IndexByte(args[0], Hole) >= 0 {
		return "", "", false
	}
	n, err := strconv.Atoi(strings.TrimSpace(args[1]))
	before, rest = Substring(args[0], 0, max(n, 0)), Substring(args[0], max(n, 0))
	return before, rest, err == nil && n >= 0 && n <= len(args[0])
}

// substring returns the characters of the first argument from the index in the second one. The
// third argument is their number; without it the rest is returned.
func substring(args []string) (string, bool) {
	_, rest, ok := cut(args)
	if len(args) > 2 {
		n, err := strconv.Atoi(strings.TrimSpace(args[2]))
		return Substring(rest, 0, max(n, 0)), ok && err == nil
	}
	return rest, ok
}

// remove returns the first argument without the part that substring returns.
func remove(args []string) (string, bool) {
	before, rest, _ := cut(args)
	gone, ok := substring(args)
	return before + rest[len(gone):], ok
}

// insert inserts the third argument into the first, before the character whose index is the
// second.
func insert(args []string) (string, bool) {
	before, rest, ok := cut(args)
	if !ok || len(args) < 3 {
		return "", false
	}
	return before + args[2] + rest, true
}

// trim removes blanks, or the characters in the further arguments, from both ends.
func trim(args []string) (string, bool) {
	if len(args) > 1 {
		return strings.Trim(args[0], strings.Join(args[1:], "")), true
	}
	return first(always(strings.TrimSpace))(args)
}

// join joins the other arguments with the first one as the separator.
func join(args []string) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	return strings.Join(args[1:], args[0]), true
}

// joinPath joins parts of a path. An absolute part discards the parts before it.
func joinPath(parts []string) (string, bool) {
	for i, part := range slices.Backward(parts) {
		if strings.HasPrefix(part, "/") {
			parts = parts[i:]
			break
		}
	}
	return path.Join(parts...), true
}

// folder returns the parent folder of a path.
func folder(text string) string {
	switch {
	case text == "~":
		return "~/.."
	case text == "." || strings.HasSuffix(text, ".."):
		return path.Join(text, "..")
	}
	return path.Dir(text)
}

// ancestor returns the folder above a path with the given index: 0 is the parent, -1 is the root.
// If the index is unknown, the result is unknown.
func ancestor(args []string) (string, bool) {
	if len(args) != 2 {
		return "", false
	}
	n, err := strconv.Atoi(args[1])
	if n < 0 && strings.HasPrefix(args[0], "/") {
		n += strings.Count(path.Clean(args[0]), "/")
	}
	if err != nil || n < 0 {
		return string(Hole), true
	}
	text := args[0]
	for range min(n, MaxAncestors) + 1 {
		text = folder(text)
	}
	return text, true
}

// sibling replaces the last part of a path.
func sibling(parts []string) (string, bool) {
	if len(parts) != 2 {
		return "", false
	}
	return joinPath([]string{folder(parts[0]), parts[1]})
}

func translate(args []string) (string, bool) {
	if len(args) < 3 {
		return "", false
	}
	return Translate(args[0], args[1], args[2]), true
}

// Translate replaces characters like tr: each one of the first set with the one at the same
// position in the second set, or with the last one if the second set is shorter. If the second set
// is empty, it removes the characters.
func Translate(text, from, to string) string {
	old, with := set(from), set(to)
	return strings.Map(func(r rune) rune {
		switch i := slices.Index(old, r); {
		case i < 0:
			return r
		case len(with) == 0:
			return -1
		default:
			return with[min(i, len(with)-1)]
		}
	}, text)
}

// set returns the characters of a set of tr, with its ranges expanded.
func set(s string) []rune {
	s = strings.NewReplacer("[:lower:]", "a-z", "[:upper:]", "A-Z", "[:digit:]", "0-9").Replace(Unescape(s))
	r := []rune(s)
	var out []rune
	for i := 0; i < len(r); i++ {
		if i+2 < len(r) && r[i+1] == '-' && r[i+2] >= r[i] && r[i+2]-r[i] < 256 {
			for c := r[i]; c <= r[i+2]; c++ {
				out = append(out, c)
			}
			i += 2
			continue
		}
		out = append(out, r[i])
	}
	return out
}
