package main

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const pendingIntent = `{"resourceUrl":"https://api.example/v1","method":"GET","amountUsd":0.5}`

// signedFile writes a signed record to a file and returns its path.
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
	in := func(d time.Duration) *string { s := canon.Stamp(time.Now().Add(d)); return &s }
	allow := assurance.DecisionRecord{Schema: assurance.DecisionSchema, DecisionID: "asd_1", OrgID: "org_1", BindingHash: "b", Protocol: "x402",
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
		{"expired", []string{key, "--decision", signedFile(t, signer, assurance.DecisionType, expired), "--", pendingIntent}, 1, "the decision or approval has expired"},
		{"expiry changed", []string{key, "--decision", changed, "--", pendingIntent}, 1, "is not a valid record"},
		{"signed by a stranger", []string{key, "--decision", signedFile(t, stranger, assurance.DecisionType, allow), "--", pendingIntent}, 1, "is not a valid record"},
		{"signed as something else", []string{key, "--decision", signedFile(t, signer, seal.TypeReceipt, allow), "--", pendingIntent}, 1, "is not a valid record"},
		{"not approved", []string{key, "--decision", reviewFile, "--", pendingIntent}, 1, "needs an approval"},
		{"approved", []string{key, "--decision", reviewFile, "--approval", approvalFile, "--", pendingIntent}, 0, "EXECUTE"},
		{"an approval of another decision", []string{key, "--decision", signedFile(t, signer, assurance.DecisionType, assurance.DecisionRecord{
			Schema: assurance.DecisionSchema, DecisionID: "asd_2", OrgID: "org_1", Protocol: "x402", Decision: "needs_review", AssuranceActionHash: call.ActionHash, Intent: []byte(`{}`)}),
			"--approval", approvalFile, "--", pendingIntent}, 1, "the approval is for another decision"},
		{"another organization's", []string{key, "--org", "org_2", "--decision", good, "--", pendingIntent}, 1, "DO NOT EXECUTE  the decision belongs to another organization\norganization    org_2\n"},
		{"no organization", []string{key, "--org", "", "--decision", good, "--", pendingIntent}, 2, ""},
		{"an organization's name", []string{key, "--org", "Acme", "--decision", good, "--", pendingIntent}, 2, ""},
		{"a stop is not looked for", []string{key, "--decision", good, "--", pendingIntent}, 0, "\norganization    org_1\nSTOP NOT CHECKED, valid until " + *allow.ValidUntil + "\n"},
		{"a service without a token", []string{key, "--url", "http://127.0.0.1:1", "--decision", good, "--", pendingIntent}, 2, ""},
		{"a service that does not answer", []string{key, "--url", "http://127.0.0.1:1", "--token", "svco_x", "--decision", good, "--", pendingIntent}, 2, ""},
		{"no key to trust", []string{"--decision", good, "--", pendingIntent}, 2, ""},
		{"no such file", []string{key, "--decision", "/nowhere", "--", pendingIntent}, 2, ""},
		{"no JSON", []string{key, "--decision", good, "--", "rm -rf /"}, 2, ""},
		{"duplicate members", []string{key, "--decision", good, "--", `{"method":"GET","method":"POST","resourceUrl":"https://api.example/v1"}`}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"check", "--org", "org_1", "--state", filepath.Join(t.TempDir(), "used.json")}, c.args...)
			if code := run(args, &stdout, &stderr); code != c.code || !strings.Contains(stdout.String(), c.says) {
				t.Errorf("exit %d, want %d; stdout %q, stderr %q", code, c.code, stdout.String(), stderr.String())
			}
		})
	}
}

// A decision can be used once on a machine, even if several checks run at the same time. If the
// use cannot be recorded, the check fails.
func TestCheckFindsASecondUse(t *testing.T) {
	t.Parallel()
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	call, err := assurance.ParseCall([]byte(`{"protocol":"x402","intent":` + pendingIntent + `}`))
	if err != nil {
		t.Fatal(err)
	}
	decision := func(id string) string {
		until := canon.Stamp(time.Now().Add(time.Minute))
		return signedFile(t, signer, assurance.DecisionType, assurance.DecisionRecord{Schema: assurance.DecisionSchema, DecisionID: id, OrgID: "org_1",
			Protocol: "x402", Decision: "allow", AssuranceActionHash: call.ActionHash, ValidUntil: &until, Intent: []byte(`{}`)})
	}
	first, second := decision("asd_1"), decision("asd_2")
	state := filepath.Join(t.TempDir(), "folder", "used.json")
	check := func(file, state string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run([]string{"check", "--org", "org_1", "--key", signer.KeyID() + ":" + hex.EncodeToString(signer.Public()), "--state", state,
			"--decision", file, "--", pendingIntent}, &stdout, &stderr)
		return code, stdout.String()
	}
	var yes atomic.Int64
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			if code, _ := check(first, state); code == 0 {
				yes.Add(1)
			}
		})
	}
	done.Wait()
	if yes.Load() != 1 {
		t.Errorf("used %d times", yes.Load())
	}
	if code, said := check(first, state); code != 1 || !strings.Contains(said, "the decision was already used on this machine") {
		t.Errorf("again: %d %s", code, said)
	}
	if code, said := check(second, state); code != 0 || !strings.Contains(said, "for this user on this machine; other users and machines do not know about this check") {
		t.Errorf("another decision: %d %s", code, said)
	}
	if err := os.WriteFile(state, []byte(`{"asd_1":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := check(decision("asd_3"), state); code != 2 || said != "" {
		t.Errorf("a list that cannot be read: %d %s", code, said)
	}
}
