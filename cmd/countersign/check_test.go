package main

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const pendingIntent = `{"resourceUrl":"https://api.example/v1","method":"GET","amountUsd":0.5}`

// signedFile is a signed record in a file.
func signedFile(t *testing.T, signer *seal.Signer, payloadType string, record any) string {
	t.Helper()
	envelope, err := signer.Sign(payloadType, record)
	if err != nil {
		t.Fatal(err)
	}
	text, err := canon.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheckBeforeExecution(t *testing.T) {
	t.Parallel()
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := seal.NewSigner(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	key := "--key=" + signer.KeyID() + ":" + hex.EncodeToString(signer.Public())
	call, err := assurance.ParseCall([]byte(`{"protocol":"x402","intent":` + pendingIntent + `}`))
	if err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) *string { s := assurance.Stamp(time.Now().Add(d)); return &s }
	allow := assurance.DecisionRecord{Schema: assurance.DecisionSchema, DecisionID: "asd_1", BindingHash: "b", Protocol: "x402",
		Decision: "allow", AssuranceActionHash: call.ActionHash, ValidUntil: in(time.Minute), Intent: []byte(`{}`)}
	expired, review := allow, allow
	expired.ValidUntil = in(-time.Second)
	review.Decision, review.ValidUntil = "needs_review", nil
	good := signedFile(t, signer, assurance.DecisionType, allow)
	reviewFile := signedFile(t, signer, assurance.DecisionType, review)
	reviewed, err := signer.Sign(assurance.DecisionType, review)
	if err != nil {
		t.Fatal(err)
	}
	approval := assurance.ApprovalInput{Verdict: "approved", Reason: "ok"}.Record("apr_1", review, reviewed.Integrity.RecordHash, "cus_1", false, time.Now())
	approvalFile := signedFile(t, signer, assurance.ApprovalType, approval)
	changed := filepath.Join(t.TempDir(), "changed.json")
	text, err := os.ReadFile(signedFile(t, signer, assurance.DecisionType, expired))
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(text), *expired.ValidUntil, *in(time.Hour), 1)
	if err := os.WriteFile(changed, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"the call that was decided about", []string{key, "--decision", good, "--", pendingIntent}, 0, "EXECUTE"},
		{"the whole call", []string{key, "--decision", good, "--", `{"protocol":"x402","intent":` + pendingIntent + `}`}, 0, "EXECUTE"},
		{"another amount", []string{key, "--decision", good, "--", strings.Replace(pendingIntent, "0.5", "5", 1)}, 1, "not the one that was decided about"},
		{"another protocol", []string{key, "--decision", good, "--", `{"protocol":"mcp","intent":{"serverId":"s","toolName":"t"}}`}, 1, "not the one that was decided about"},
		{"expired", []string{key, "--decision", signedFile(t, signer, assurance.DecisionType, expired), "--", pendingIntent}, 1, "it has expired"},
		{"expiry changed", []string{key, "--decision", changed, "--", pendingIntent}, 1, "is not a good record"},
		{"signed by a stranger", []string{key, "--decision", signedFile(t, stranger, assurance.DecisionType, allow), "--", pendingIntent}, 1, "is not a good record"},
		{"signed as something else", []string{key, "--decision", signedFile(t, signer, seal.TypeReceipt, allow), "--", pendingIntent}, 1, "is not a good record"},
		{"not approved", []string{key, "--decision", reviewFile, "--", pendingIntent}, 1, "needs an approval"},
		{"approved", []string{key, "--decision", reviewFile, "--approval", approvalFile, "--", pendingIntent}, 0, "EXECUTE"},
		{"an approval of another decision", []string{key, "--decision", signedFile(t, signer, assurance.DecisionType, assurance.DecisionRecord{
			Schema: assurance.DecisionSchema, DecisionID: "asd_2", Protocol: "x402", Decision: "needs_review", AssuranceActionHash: call.ActionHash, Intent: []byte(`{}`)}),
			"--approval", approvalFile, "--", pendingIntent}, 1, "the approval is for another decision"},
		{"no key to trust", []string{"--decision", good, "--", pendingIntent}, 2, ""},
		{"no such file", []string{key, "--decision", "/nowhere", "--", pendingIntent}, 2, ""},
		{"no JSON", []string{key, "--decision", good, "--", "rm -rf /"}, 2, ""},
		{"duplicate members", []string{key, "--decision", good, "--", `{"method":"GET","method":"POST","resourceUrl":"https://api.example/v1"}`}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(append([]string{"check"}, c.args...), &stdout, &stderr); code != c.code || !strings.Contains(stdout.String(), c.says) {
				t.Errorf("exit %d, want %d; stdout %q, stderr %q", code, c.code, stdout.String(), stderr.String())
			}
		})
	}
}
