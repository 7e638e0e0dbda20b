package operate

import (
	"testing"
)

func TestPlacesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]eventPosition{"1": {0, false, 1}, "4711": {0, false, 4711}, "0:7": {0, true, 7}, "15:9": {15, true, 9}} {
		if at, err := parsePosition(text); err != nil || at != want {
			t.Errorf("%s: %+v, %v", text, at, err)
		}
	}
	for _, bad := range []string{"", "0", "-1", "x", "1:", ":1", "1:0", "-1:1", "1:2:3", "99999:1", "1:9223372036854775808"} {
		if at, err := parsePosition(bad); err == nil {
			t.Errorf("%s: %+v", bad, at)
		}
	}
}
