package ground

import (
	"strconv"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// CheckText refuses a text that is empty, has more than one line or more characters than the limit
// "most", begins or ends with white space, or has invisible characters. The refusal names the field.
func CheckText(field, text string, most int) error {
	if text == "" || utf8.RuneCountInString(text) > most || normal.Text(text, false) != nil {
		return policy.Refuse("out_of_range", "/"+field, field+" must be one line of 1 to "+strconv.Itoa(most)+" characters")
	}
	return nil
}
