package words_test

import (
	"testing"

	"github.com/countersign/countersign/api/words"
)

// TestVisible holds that characters that do not show, or that change the order of the text, are
// written by their code points.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"rm -rf /tmp/x\n":     "rm -rf /tmp/x\n",
		"pay \u202e001\u202c": "pay <U+202E>001<U+202C>",
		"a\u200bb\u00a0c":     "a<U+200B>b<U+00A0>c",
		"\x1b[31m":            "<U+001B>[31m",
		"Zürich 東京":           "Zürich 東京",
	} {
		if got := words.Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
