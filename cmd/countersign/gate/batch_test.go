package gate

import (
	"strings"
	"testing"
)

// The error for a line that is too long names its line number in the file; lines without a command
// count, too.
func TestBatchNamesTheLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	_, err := (&Verdict{}).judgeLines(strings.NewReader("# a comment\n\nls\n" + strings.Repeat("x", maxCommand+1)))
	if err == nil || !strings.Contains(err.Error(), "line 4 ") {
		t.Error(err)
	}
}
