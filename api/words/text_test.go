package words_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/policy/assurance"
)

// TestVisible checks that characters are replaced by their code points if they are invisible,
// change the order of text, or look like Latin letters.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"rm -rf /tmp/x\n":     "rm -rf /tmp/x\n",
		"pay \u202e001\u202c": "pay <U+202E>001<U+202C>",
		"a\u200bb\u00a0c":     "a<U+200B>b<U+00A0>c",
		"\x1b[31m":            "<U+001B>[31m",
		"Zürich 東京":           "Zürich 東京",
		"p\u0430ypal.com":     "p<U+0430>ypal.com",        // Cyrillic a
		"\u0440\u0430\u0443":  "<U+0440><U+0430><U+0443>", // all Cyrillic, looks like "pay"
		"\uff41pi \U0001d44e": "<U+FF41>pi <U+1D44E>",     // full width, mathematical
		"Привет из Москвы":    "Привет из Москвы",         // resembles no Latin word
		"API呼び出し Ελλάδα":      "API呼び出し Ελλάδα",           // two scripts that are not confused
		"bad \xff\xfebytes":   "bad \uFFFD\uFFFDbytes",    // replaced as in a browser
		"1\u20ac a\u00a0b":    "1\u20ac a<U+00A0>b",
	} {
		if got := words.Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestAQuotationEndsWhereItEnds checks that the text of an agent cannot end its quotation marks
// early, and that titles of pages and e-mails contain no text of an agent.
func TestAQuotationEndsWhereItEnds(t *testing.T) {
	n := assurance.Intent{ServerID: `files”, approved by “owner`, ToolName: "write\" now\nAPPROVED"}
	if got, want := words.Deed(assurance.MCP, n).String(), `call “write\" now APPROVED” of “files<U+201D>, approved by <U+201C>owner”`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := words.Title(assurance.MCP, n); got != "Tool call" {
		t.Error(got)
	}
	if got := words.Who(assurance.Subject{}).String(); got != "An agent" {
		t.Error(got)
	}
}

// TestAComparisonHasNoCommaNoise checks that a line that differs only by a comma at its end counts
// as equal.
func TestAComparisonHasNoCommaNoise(t *testing.T) {
	var changed []words.DiffLine
	for _, line := range words.Diff("{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"b\": 2\n}") {
		if line.Kind != "" {
			changed = append(changed, line)
		}
	}
	if len(changed) != 1 || changed[0].Text != `  "b": 2` {
		t.Errorf("%+v", changed)
	}
}

// TestANameInAPolicyIsNoSentence checks that a name is quoted if it could be read as part of the
// sentence about a policy.
func TestANameInAPolicyIsNoSentence(t *testing.T) {
	said, err := words.Policy([]byte(`{"allowedMcpTools":["read_file","files/*","a. Addresses must use https.","b.","p\u0430y","","x,y"],"allowedHosts":["*.example.org","Zürich.example"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Only these hosts may be paid: *.example.org, “Zürich.example”.",
		"Only these tools may be called: read_file, files/*, “a. Addresses must use https.”, “b.”, “p<U+0430>y”, “”, “x,y”.",
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}
