package facts

import (
	"encoding/json"
	"testing"
)

// TestNamesThatNothingDoes checks that a row is refused if its list or its effect is unknown, or
// if it has no effect in a list that needs one.
func TestNamesThatNothingDoes(t *testing.T) {
	for table, read := range map[string]bool{
		`{"calls":[{"names":["rm"],"does":"tree"}]}`:             true,
		`{"calls":[{"names":["rm"],"does":"trees"}]}`:            false,
		`{"calls":[{"names":["rm"]}]}`:                           false,
		`{"receivers":[{"names":["rm"]}]}`:                       false,
		`{"values":[{"names":["HOME"],"text":"~"}]}`:             true,
		`{"values":[{"names":["HOME"],"does":"home"}]}`:          false,
		`{"libraries":[{"names":["up"],"run":["pulumi","up"]}]}`: true,
		`{"libraries":[{"names":["up"],"does":"up"}]}`:           false,
		`{"libraries":[{"names":["up"],"import":["pulumi"]}]}`:   false,
		`{"callers":[{"names":["rm"],"does":"tree"}]}`:           false,
	} {
		err := new(Set).readNames(func(_ string, into any) error { return json.Unmarshal([]byte(table), into) })
		if (err == nil) != read {
			t.Errorf("%s: %v", table, err)
		}
	}
}
