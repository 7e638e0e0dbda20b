package canon_test

import (
	"testing"

	"github.com/countersign/countersign/policy/canon"
)

// ReplaceNUL replaces NUL only in the named member. NUL in any other place remains, so that Check
// refuses it.
func TestReplaceNUL(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`{"email":"a\u0000b"}`, `{"email":"a\ufffdb"}`},
		{` { "x" : [1] , "email" : "\u0000\u0000" } `, ` { "x" : [1] , "email" : "\ufffd\ufffd" } `},
		{`{"email":"a\\u0000"}`, `{"email":"a\\u0000"}`},
		{`{"email":"a\\\u0000"}`, `{"email":"a\\\ufffd"}`},
		{`{"reference":"\u0000"}`, `{"reference":"\u0000"}`},
		{`{"o":{"email":"\u0000"}}`, `{"o":{"email":"\u0000"}}`},
		{`{"email":["\u0000"]}`, `{"email":["\u0000"]}`},
		{`["\u0000"]`, `["\u0000"]`},
		{`{"email":"\u0000`, `{"email":"\u0000`},
	} {
		if got := string(canon.ReplaceNUL([]byte(tc.text), "email")); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.text, got, tc.want)
		}
	}
	if got := string(canon.ReplaceNUL([]byte(`{"params":{"name":"x","arguments":{"email":"\u0000"}}}`), "params", "arguments", "email")); got != `{"params":{"name":"x","arguments":{"email":"\ufffd"}}}` {
		t.Errorf("below other members: got %s", got)
	}
}
