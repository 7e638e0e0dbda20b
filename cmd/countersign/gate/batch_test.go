package gate

import (
	"strings"
	"testing"
)

// A line that is too long is named by its number in the file, of which lines without a
// command are part.
func TestBatchNamesTheLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	_, err := (&Verdict{}).judgeLines(strings.NewReader("# a comment\n\nls\n" + strings.Repeat("x", maxCommand+1)))
	if err == nil || !strings.Contains(err.Error(), "line 4 ") {
		t.Error(err)
	}
}
