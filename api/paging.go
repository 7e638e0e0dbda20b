package api

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
)

// Lists are paged alike: limit (default 25, clamped to 1 to 100) and cursor, the
// nextCursor of the page before, null on the last one.
const pagedBy = " Query: limit (default 25, clamped to 1 to 100), cursor (nextCursor of the page before)."

// paged is what every page of a list says beside its items.
type paged struct {
	NextCursor *string  `json:"nextCursor" jsonschema:"nullable"`
	Warnings   []string `json:"warnings,omitempty" jsonschema_description:"What of the query was not understood, and so filtered nothing."`
}

// pageOf cuts the page that a query asks for out of a list whose items have ids.
// A cursor that no page gave, or whose item is gone, is refused: it must neither
// begin again nor skip.
func pageOf[T any](rawQuery string, list []T, id func(T) string) ([]T, paged, error) {
	query, warnings := understood(rawQuery, "limit", "cursor")
	limit, page := historyLimit(query.Get("limit")), paged{Warnings: warnings}
	from, err := startOf(query, list, id)
	if err != nil {
		return nil, paged{}, err
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
		return 0, policy.Refuse("invalid_cursor", "/cursor", "cursor is not one that a page gave, or its item is gone: begin again without it")
	}
	return i + 1, nil
}
