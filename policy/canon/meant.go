package canon

import (
	"reflect"
	"slices"
	"strings"
)

// Unknown returns the error text for an unknown member. It names the known member that was
// probably meant, and all known members: "has an unknown member; known members: agent, command".
// If there is a good guess, it omits a list that is long. The text contains only known names.
func Unknown(unknown string, known []string) string {
	const long = 120
	meant, list := Meant(unknown, known), strings.Join(slices.Sorted(slices.Values(known)), ", ")
	switch {
	case list == "" || meant != "" && len(list) > long:
		return "has an unknown member" + meant
	case meant == "":
		meant = ";"
	}
	return "has an unknown member" + meant + " known members: " + list
}

// Meant guesses which known name was meant by an unknown one. It returns ", did you mean
// command?", or "" if no known name is similar.
func Meant(unknown string, known []string) string {
	best, distance := "", 3 // at most one edit for a short name, two for a longer one
	for _, name := range slices.Sorted(slices.Values(known)) {
		if near := edits(strings.ToLower(unknown), strings.ToLower(name), distance); near < distance && (near < 2 || len(name) > 5) {
			best, distance = name, near
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// edits returns the number of edits that turn a into b: to insert, delete or replace a byte, or to
// swap two neighbours (optimal string alignment). It stops counting at the limit most, and returns
// the limit.
func edits(a, b string, most int) int {
	if d := len(a) - len(b); d >= most || -d >= most {
		return most
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			replaced := rows[i][j]
			if a[i] != b[j] {
				replaced++
			}
			n := min(replaced, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = n
		}
	}
	return min(rows[len(a)][len(b)], most)
}

// memberNames returns the JSON names of a struct's members.
func memberNames(t reflect.Type) []string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
