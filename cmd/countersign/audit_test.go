package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// auditor runs subcommands while a service is running.
type auditor struct {
	t    *testing.T
	data []string
}

// in returns the auditor for a step of a test, so that a failure names the step.
func (a *auditor) in(t *testing.T) *auditor { return &auditor{t, a.data} }

// run runs a subcommand, checks the exit code and a part of the output, and returns the output.
func (a *auditor) run(code int, words string, args ...string) string {
	a.t.Helper()
	cmd := program(append(args, a.data...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the exit code is checked below
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(out.String(), words) {
		a.t.Fatalf("%v: exit %d, want %d and %q: %s", args, got, code, words, out.String())
	}
	return out.String()
}

// handedOver is a service with an organization and decisions, and the files that its auditor gets.
type handedOver struct {
	a, bare     *auditor // a has the data folder of the service, bare has only files
	files       string   // a temporary folder; jwks.json in it has the public keys of the service
	answers     []string // the decisions, in the order of their idempotency keys
	base, token string   // the URL of the service, and a token of its organization
}

// in returns the path of a file in the folder.
func (h handedOver) in(name string) string { return filepath.Join(h.files, name) }

// handOver starts a service and requests a decision for each idempotency key.
func handOver(t *testing.T, keys ...string) handedOver {
	t.Helper()
	dir := dataDir(t)
	s := serveIn(t, dir)
	h := handedOver{a: &auditor{t, []string{"--data", dir}}, bare: &auditor{t, nil}, files: t.TempDir()}
	h.base, h.token = s.base, organizationToken(t, dir)
	for _, key := range keys {
		status, answer, err := post(s.base+decisionsPath, h.token, purchase(key))
		if err != nil || status != 201 {
			t.Fatal(status, answer, err)
		}
		h.answers = append(h.answers, answer)
	}
	set, err := fetched(s.base + "/.well-known/jwks.json")
	if err := errors.Join(err, os.WriteFile(h.in("jwks.json"), set, 0o600)); err != nil {
		t.Fatal(err)
	}
	return h
}

// While the service runs, commands pin, export, verify and replay an organization's history, erase
// data and rotate keys. An export that was changed, is older than the pin, or is signed with an
// untrusted key is refused with the reason.
func TestAnAuditOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	const next = "2222222222222222222222222222222222222222222222222222222222222222"
	s := serveIn(t, dir, "NEXT_SIGNING_KEY="+next)
	a := &auditor{t, []string{"--data", dir}}
	bare := &auditor{t, nil} // no access to the service's data folder
	token := organizationToken(t, dir)
	org := ""
	decide := func(key, agent string) {
		t.Helper()
		status, answer, err := post(s.base+decisionsPath, token, strings.ReplaceAll(purchase(key), `"agentId":"agent"`, `"agentId":"`+agent+`"`))
		if err != nil || status != http.StatusCreated {
			t.Fatalf("%s: %d %s %v", key, status, answer, err)
		}
		var d struct {
			Record struct {
				OrgID string `json:"orgId"`
			} `json:"record"`
		}
		if err := json.Unmarshal([]byte(answer), &d); err != nil {
			t.Fatal(err)
		}
		org = d.Record.OrgID
	}
	keys := func(name string) string {
		t.Helper()
		text, err := fetched(s.base + "/.well-known/jwks.json")
		path := filepath.Join(files, name)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	decide("k1", "ada")
	decide("k2", "bob")
	before, pin := keys("before.json"), filepath.Join(files, "ledger.note")
	first, second := filepath.Join(files, "first.tar.gz"), filepath.Join(files, "second.tar.gz")

	bare.run(2, "give the ledger's keys with --keys", "pin", before, "--pin", pin)
	bare.run(0, "TRUSTED     the keys", "pin", s.base, "--pin", pin)
	a.run(0, "check it: countersign verify", "export", "--org", org, "--out", first)
	bare.run(0, "VALID", "verify", first, "--keys", before)
	size := func() string {
		text, err := fetched(s.base + "/api/ledger/checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")[1]
	}
	covered := size()
	decide("k3", "ada")
	ledgertest.Until(t, "a checkpoint beyond that of the export", func() bool { return size() != covered })
	bare.run(0, "which continue the", "pin", s.base, "--pin", pin)
	bare.run(1, "ask for a new export", "pin", first, "--pin", pin)
	bare.run(1, "ask for a new export", "verify", first, "--keys", before, "--pin", pin)

	a.run(2, "name the subject to erase", "erase", "--org", org, "--reason", "asked for", "--requested-by", "ada", "--approved-by", "bob")
	a.run(2, "must be two different people", "erase", "--org", org, "--agent", "ada", "--reason", "asked for", "--requested-by", "bob", "--approved-by", "bob")
	a.run(0, "NOT erased: e-mail stored in "+filepath.Join(dir, "letters.txt"), "erase", "--vacuum", "--org", org, "--agent", "ada", "--reason", "asked for", "--requested-by", "ada", "--approved-by", "bob")
	a.run(2, "nothing is encrypted for it", "erase", "--org", org, "--agent", "ada", "--reason", "asked for", "--requested-by", "ada", "--approved-by", "bob")

	a.run(0, "as the events say", "replay", "diff")
	a.run(2, "no such read model", "replay", "diff", "decisions")
	a.run(0, "2 times: bindingHash (erased)", "replay", "decisions", "--org", org)
	strict := filepath.Join(files, "strict.json")
	if err := os.WriteFile(strict, []byte(`{"policyId":"default","allowedHosts":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a.run(1, "DIFFERENT", "replay", "decisions", "--org", org, "--policy", strict)
	a.run(0, "schema replay_3 has every read model", "replay", "at", "3")
	a.run(2, "the ledger has the positions", "replay", "at", "100000")

	a.run(2, "NEXT_SIGNING_KEY is not set", "signer", "rotate")
	a.run(0, "was retired", "signer", "rotate", "--next-signing-key", next)
	decide("k4", "bob") // the running node signs with the new key
	after := keys("after.json")
	a.run(0, "to ", "signer", "list")
	for _, args := range [][]string{{"export", "--org", org, "--out", second}, {"org", "list"}} {
		a.run(2, "after a rotation, the former NEXT_SIGNING_KEY", args...)
	}
	a.run(0, "", "export", "--org", org, "--out", second, "--signing-key", next)
	bare.run(0, "VALID", "verify", second, "--keys", after)
	bare.run(1, "NOT VALID", "verify", second, "--keys", before)
	bare.run(0, "SEEN        "+org, "verify", second, "--keys", after, "--pin", pin)
	bare.run(0, "which continue the", "pin", s.base, "--pin", pin, "--keys", after)
	if kept, err := os.ReadFile(pin); err != nil || !strings.Contains(string(kept), "\n\n"+org+" ") {
		t.Errorf("the pin does not keep what it has seen of the organization: %s, %v", kept, err)
	}
	bare.run(0, "PINNED", "pin", pin, "--pin", filepath.Join(files, "another.note"), "--keys", after)

	a.run(2, "stop every node first", "signer", "kek", "rotate")
	stop(t, s.cmd)
	a.run(0, "data keys are wrapped under the new key", "signer", "kek", "rotate")
	a.run(0, "VALID", "verify", "--pin", pin)
	s = serveIn(t, dir, "SIGNING_KEY="+next)
	decide("k5", "bob")
	status, answer, err := post(s.base+decisionsPath, token, strings.ReplaceAll(purchase("k2"), `"agentId":"agent"`, `"agentId":"bob"`))
	if err != nil || status != http.StatusOK || !strings.Contains(answer, `"agentId":"bob"`) {
		t.Errorf("what the old key wrapped: %d %s %v", status, answer, err)
	}

	// Change one character.
	text, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(second, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if cmd := program("verify", second, "--keys", after); cmd.Run() == nil {
		t.Error("a changed export is valid")
	}
}

// The signing key is declared compromised from an event on. The next key signs at once. Earlier
// signatures stay valid, and verifiers with the new list of keys refuse later ones. The service
// continues, because its history has not changed.
func TestAKeyThatSomebodyElseHas(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	const next = "3333333333333333333333333333333333333333333333333333333333333333"
	s := serveIn(t, dir, "NEXT_SIGNING_KEY="+next)
	a, bare := &auditor{t, []string{"--data", dir}}, &auditor{t, nil}
	token, org := organizationToken(t, dir), ""
	decide := func(key string) (file string, position int64) {
		t.Helper()
		status, answer, err := post(s.base+decisionsPath, token, purchase(key))
		if err != nil || status != http.StatusCreated {
			t.Fatalf("%s: %d %s %v", key, status, answer, err)
		}
		var d struct {
			Record struct {
				OrgID string `json:"orgId"`
			} `json:"record"`
			Ledger struct {
				Position int64 `json:"position"`
			} `json:"ledger"`
		}
		file = filepath.Join(files, key+".json")
		if err := errors.Join(json.Unmarshal([]byte(answer), &d), os.WriteFile(file, []byte(answer), 0o600)); err != nil {
			t.Fatal(err)
		}
		org = d.Record.OrgID
		return file, d.Ledger.Position
	}
	good, _ := decide("good")
	doubtful, from := decide("doubtful")
	a.run(2, "compromised from: must be a position from 1 to", "signer", "rotate", "--next-signing-key", next, "--compromised-from", "99999")
	a.run(0, "was retired", "signer", "rotate", "--next-signing-key", next, "--compromised-from", strconv.FormatInt(from, 10))
	fresh, _ := decide("fresh")

	text, err := fetched(s.base + "/.well-known/jwks.json")
	keys := filepath.Join(files, "jwks.json")
	if err := errors.Join(err, os.WriteFile(keys, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	bare.run(0, "VALID", "verify", good, "--keys", keys)
	bare.run(1, "the key is compromised from position", "verify", doubtful, "--keys", keys)
	bare.run(0, "VALID", "verify", fresh, "--keys", keys)
	for file, want := range map[string]string{good: `"valid":true`, doubtful: "the key is compromised", fresh: `"valid":true`} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, answer, err := post(s.base+"/api/verify", "", string(text)); err != nil || !strings.Contains(answer, want) {
			t.Errorf("%s: %s, %v", file, answer, err)
		}
	}
	doubt := fmt.Sprintf("from position %d on, which a compromised key signed", from)
	a.run(0, doubt, "verify")
	bundle := filepath.Join(files, "history.tar.gz")
	a.run(0, "", "export", "--org", org, "--out", bundle, "--signing-key", next)
	bare.run(0, doubt, "verify", bundle, "--keys", keys)
}
