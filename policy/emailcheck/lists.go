package emailcheck

import (
	_ "embed" // for the lists
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"

	"github.com/countersign/countersign/policy/canon"
)

// Each list begins with its name, date and licence. The answer's listVersion consists of the
// newest date and a hash of all lists, so two answers with the same version used the same lists.
var (
	//go:embed lists/disposable.txt
	disposableText string
	//go:embed lists/free.txt
	freeText string
	//go:embed lists/roles.txt
	rolesText string
	//go:embed lists/popular.txt
	popularText string
	//go:embed lists/known.txt
	knownText string
)

// The tables are built from the lists at their first use. Most programs that link this package
// never need them, and the coding-agent guard starts at every tool call.
var (
	freeProviders  = sync.OnceValue(func() map[string]bool { return setOf(freeText) })
	roleNames      = sync.OnceValue(func() map[string]bool { return setOf(rolesText) })
	knownDomains   = sync.OnceValue(func() map[string]bool { return setOf(knownText) })
	popularDomains = sync.OnceValue(func() []string { return linesOf(popularText) })
	listVersion    = sync.OnceValue(func() string { return version(disposableText, freeText, rolesText, popularText, knownText) })
)

// linesOf returns the entries of a list: one per line, without lines that begin with "#".
func linesOf(text string) []string {
	var entries []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			entries = append(entries, line)
		}
	}
	return entries
}

func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, entry := range linesOf(text) {
		set[entry] = true
	}
	return set
}

// version returns "countersign-lists-DATE+HASH" with the newest date of the lists and eight digits
// of the hash of all lists.
func version(texts ...string) string {
	var dates []string
	for _, text := range texts {
		_, rest, _ := strings.Cut(text, "# date: ")
		date, _, _ := strings.Cut(rest, "\n")
		dates = append(dates, date)
	}
	return "countersign-lists-" + slices.Max(dates) + "+" + canon.Hash([]byte(strings.Join(texts, "\x00")))[:8]
}

// listed reports whether the sorted list of disposable domains contains a domain. It uses a binary
// search in the text, because building a set of 120,000 entries would slow down the start of every
// program that links this package.
func listed(domain string) bool {
	low, high := 0, len(disposableText)
	for low < high {
		middle := (low + high) / 2
		start := strings.LastIndexByte(disposableText[low:middle], '\n') + 1 + low
		end := start + strings.IndexByte(disposableText[start:], '\n')
		line := disposableText[start:end]
		switch {
		case line == domain:
			return true
		case line < domain: // comment lines begin with "#", which sorts before letters and digits
			low = end + 1
		default:
			high = start
		}
	}
	return false
}

// isDisposable reports whether the list contains a domain or one of its parent domains.
func isDisposable(domain string) bool {
	for domain != "" {
		if listed(domain) {
			return true
		}
		_, domain, _ = strings.Cut(domain, ".")
	}
	return false
}

// tldTypos maps misspelled last labels to the intended label.
var tldTypos = map[string]string{
	"con": "com", "cmo": "com", "ocm": "com", "om": "com", "cm": "com", "co": "com", "comm": "com", "vom": "com", "xom": "com", "coom": "com", "c0m": "com",
	"nte": "net", "ner": "net", "met": "net", "ent": "net",
	"ogr": "org", "rog": "org", "orgg": "org",
}

// suggest returns the popular domain that was probably meant, if a domain is a typing error of
// one, or "". For a disposable domain it allows only one edit, because such domains often imitate
// popular names.
func suggest(domain string, disposable bool) string {
	if freeProviders()[domain] || knownDomains()[domain] || slices.Contains(popularDomains(), domain) {
		return ""
	}
	if dot := strings.LastIndexByte(domain, '.'); dot > 0 && !disposable {
		if meant := domain[:dot+1] + tldTypos[domain[dot+1:]]; slices.Contains(popularDomains(), meant) {
			return meant
		}
	}
	name, rest, _ := strings.Cut(domain, ".")
	suffix, real := publicsuffix.PublicSuffix(domain)
	best, found, tie := maxDistance+1, "", false
	for _, popular := range popularDomains() {
		brand, ending, _ := strings.Cut(popular, ".")
		switch {
		case name == brand && real && suffix == rest: // the same name under another public suffix
			continue
		case len(brand) < minBrand && rest == ending && !swapped(name, brand): // for example gm.com, which is not an error for gmx.com
			continue
		}
		switch d := distance(domain, popular, best); {
		case d < best:
			best, found, tie = d, popular, false
		case d == best:
			tie = true
		}
	}
	if tie || best > maxDistance || best > len(found)/4 || disposable && best > 1 {
		return ""
	}
	return found
}

// swapped reports whether two names differ only by two swapped neighbours.
func swapped(a, b string) bool {
	return len(a) == len(b) && distance(a, b, maxDistance) == 1 && sorted(a) == sorted(b)
}

func sorted(text string) string {
	letters := []byte(text)
	slices.Sort(letters)
	return string(letters)
}

// distance returns the optimal string alignment distance: the number of insertions, deletions,
// replacements and swaps of neighbours. If the lengths differ by more than limit, it returns
// limit+1.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
