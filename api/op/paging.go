package op

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// PagedBy is the end of the summary of an operation that returns a page of a list. All lists use
// the same parameters; nextCursor is null on the last page.
const PagedBy = " Query: limit (default 25, clamped to 1 to 100), cursor (nextCursor of the page before)."

// Paged contains the members that every page of a list has in addition to its items.
type Paged struct {
	NextCursor *string  `json:"nextCursor" jsonschema:"nullable"`
	Warnings   []string `json:"warnings,omitempty" jsonschema_description:"Parts of the query that were not understood and were ignored."`
}

// Page returns the page of a list that a query asks for. It refuses an invalid cursor, and a
// cursor whose item was removed, because a page that starts at the wrong item would mislead the
// caller.
func Page[T any](rawQuery string, list []T, id func(T) string) ([]T, Paged, error) {
	query, warnings := Understood(rawQuery, "limit", "cursor")
	limit, page := PageLimit(query.Get("limit")), Paged{Warnings: warnings}
	from, err := startOf(query, list, id)
	if err != nil {
		return nil, Paged{}, err
	}
	items := list[from:]
	if len(items) > limit {
		items = items[:limit]
		next := base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + id(items[limit-1])))
		page.NextCursor = &next
	}
	return append([]T{}, items...), page, nil
}

const cursorPrefix = "after:"

func startOf[T any](query url.Values, list []T, id func(T) string) (int, error) {
	cursor := query.Get("cursor")
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	last, ok := strings.CutPrefix(string(text), cursorPrefix)
	i := slices.IndexFunc(list, func(item T) bool { return id(item) == last })
	if err != nil || !ok || i < 0 {
		return 0, policy.Refuse("invalid_cursor", "/cursor", "cursor is not the nextCursor of a page, or its item was removed: start again without cursor")
	}
	return i + 1, nil
}

const maxWarnings = 20 // largest number of warnings in one answer

// Understood parses a query and refuses nothing. It returns a warning for each parameter that is
// unknown or given twice, so that the caller does not believe that it filtered the answer.
func Understood(raw string, known ...string) (query url.Values, warnings []string) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		warnings = append(warnings, "a part of the query could not be read and was ignored")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(known, name):
			shown := "a parameter"
			if name != "" && canon.SafePointer("/"+name) == "/"+name {
				shown = name
			}
			warnings = append(warnings, shown+" is not a parameter of this list and was ignored"+canon.Meant(name, known))
		case len(query[name]) > 1:
			warnings = append(warnings, name+" is given more than once: the first value was used")
		}
	}
	return query, warnings[:min(len(warnings), maxWarnings)]
}

// PageLimit parses the limit of a page: 25 if the text is not an integer, and at least 1 and at
// most 100.
func PageLimit(text string) int {
	n, _ := ReadLimit(text)
	return n
}

// ReadLimit is like PageLimit, and also reports whether the text was an integer. An integer of any
// length that is out of range gives the nearest limit.
func ReadLimit(text string) (n int, ok bool) {
	const standard, least, most = 25, 1, 100
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return standard, false
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil && text[0] == '-':
		return least, true
	case err != nil:
		return most, true
	}
	return min(max(n, least), most), true
}
