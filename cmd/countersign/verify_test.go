package main

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// Verify checks a complete answer together with its receipt. A changed answer with an unchanged
// receipt is not valid.
func TestVerifyAWholeAnswer(t *testing.T) {
	t.Parallel()
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	const body = `"decision":"needs_review","risk":"critical"`
	hash := canon.Hash([]byte(`{` + body + `}`))
	receipt, err := signer.Sign(seal.TypeReceipt, map[string]any{"outputHash": hash, "decision": "needs_review", "issuedAt": "2026-11-22T15:09:35.123Z",
		"workflow": map[string]any{"decision": "needs_review", "risk": "critical", "matchedRuleIds": []string{"git.push.force-protected"}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := canon.Marshal(receipt)
	if err != nil {
		t.Fatal(err)
	}
	answer := `{` + body + `,"outputHash":"` + hash + `","receipt":` + string(text) + `}`
	file := filepath.Join(t.TempDir(), "answer.json")
	verify := func(text string) (out string, exit int) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := program("verify", file, "--key", signer.KeyID()+":"+hex.EncodeToString(signer.Public())).Output()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			exit = ended.ExitCode()
		}
		return string(said), exit
	}
	out, exit := verify(answer)
	want := "VALID needs_review · critical · git.push.force-protected · 2026-11-22T15:09:35Z · key " + signer.KeyID() + "\n"
	if exit != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("exit %d\n%s\nwant %s", exit, out, want)
	}
	out, exit = verify(strings.Replace(answer, `"risk":"critical"`, `"risk":"low"`, 1))
	if exit != 1 || !strings.HasPrefix(out, "NOT VALID risk: the file says low, the signed record says critical\n") {
		t.Errorf("forged: exit %d\n%s", exit, out)
	}
	if out, exit = verify(`{"a":1}`); exit != 2 {
		t.Errorf("nothing signed: exit %d\n%s", exit, out)
	}
}
