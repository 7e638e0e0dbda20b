package ground

import (
	"strconv"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// CheckText accepts 1 to most characters of one line without white space at its
// edges and without characters that are not seen.
func CheckText(field, text string, most int) error {
	if text == "" || utf8.RuneCountInString(text) > most || normal.Text(text, false) != nil {
		return policy.Refuse("out_of_range", "/"+field, field+" must be one line of 1 to "+strconv.Itoa(most)+" characters")
	}
	return nil
}
