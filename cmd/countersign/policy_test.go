package main

import (
	"strings"
	"testing"
)

// "policy lint" reports an unknown member, and suggests a similar name if there is one. It accepts
// a policy with a version.
func TestPolicyLint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"policyId":"p","requireHTTPS":true}`: "refused: policy: unknown field, did you mean requireHttps?\n",
		`{"policyId":"p","zzz":true}`:          "refused: policy: unknown field\n",
		`{"policyId":"p","version":7}`:         "accepted, hash ",
	} {
		lint := program("policy", "lint", "-")
		lint.Stdin = strings.NewReader(text)
		if out, _ := lint.Output(); !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %s", text, out)
		}
	}
}
