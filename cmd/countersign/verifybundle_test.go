package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// Verify reads an export from a file or standard input, with keys from a file or from flags. If a
// pin is missing, or the export does not extend it, verify refuses and leaves the pin unchanged. A
// check that could not be made is not reported as failed.
func TestAnExportIsVerifiedOrRefusedInWords(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	s := serveIn(t, dir)
	a, bare := &auditor{t, []string{"--data", dir}}, &auditor{t, nil}
	token := organizationToken(t, dir)
	status, record, err := post(s.base+decisionsPath, token, purchase("k1"))
	if err != nil || status != 201 {
		t.Fatal(status, record, err)
	}
	in := func(name string) string { return filepath.Join(files, name) }
	keep := func(name string, text []byte) string {
		t.Helper()
		if err := os.WriteFile(in(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	text, err := fetched(s.base + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	keys, export := keep("jwks.json", text), in("export.tar.gz")
	a.run(0, "", "export", "--out", export)
	set, err := bundle.ReadKeySet(text)
	if err != nil {
		t.Fatal(err)
	}
	one := func(purpose, suffix string) string {
		k := set[slices.IndexFunc(set, func(k bundle.Key) bool { return k.Purpose == purpose })]
		return "--key=" + seal.KeyID(k.Public) + ":" + hex.EncodeToString(k.Public) + suffix
	}

	bare.run(0, "VALID", "verify", export, one("record", ""), one("checkpoint", ":checkpoint"))
	bare.run(2, "keys: there is no checkpoint key", "verify", export, one("record", ""))
	bare.run(2, "no key to trust", "verify", export, one("checkpoint", ":checkpoint"))
	bare.run(2, "--key must be KEYID:HEX", "verify", export, one("record", ":other"))

	missing := in("missing.txt")
	bare.run(2, "make it with countersign pin", "verify", export, "--keys", keys, "--pin", missing)
	a.run(2, "make it with countersign pin", "verify", "--pin", missing)
	if _, err := os.Stat(missing); err == nil {
		t.Error("a pin that was mistyped was made")
	}
	bare.run(2, "a record alone does not contain the ledger's head", "verify", keep("record.json", []byte(record)), "--keys", keys, "--pin", keys)
	bare.run(2, "pin: it must be a checkpoint of this ledger", "verify", export, "--keys", keys, "--pin", keep("rubbish.txt", []byte("rubbish")))

	seed, err := os.ReadFile(filepath.Join(dir, "checkpoint.key"))
	if err != nil {
		t.Fatal(err)
	}
	private, err := setting.ParseSeed(strings.TrimSpace(string(seed)))
	if err != nil {
		t.Fatal(err)
	}
	head, err := fetched(s.base + "/api/ledger/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(string(head), "\n")
	forked, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: 1, Root: tree.Hash{1}}, ed25519.NewKeyFromSeed(private))
	if err != nil {
		t.Fatal(err)
	}
	pin := keep("pin.txt", forked)
	bare.run(2, "has no proof that its", "verify", export, "--keys", keys, "--pin", pin)
	if now, err := os.ReadFile(pin); err != nil || !bytes.Equal(now, forked) {
		t.Errorf("a pin that nothing continues is now %q, %v", now, err)
	}

	for code, args := range map[int][]string{0: {"verify", "-", "--keys", keys}, 2: {"verify", "-"}} {
		cmd := program(args...)
		if cmd.Stdin, err = os.Open(export); err != nil {
			t.Fatal(err)
		}
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if got := cmd.ProcessState.ExitCode(); got != code || (code == 0) != strings.HasPrefix(string(out), "VALID\n") {
			t.Errorf("%v: exit %d: %s", args, got, out)
		}
	}
}

// Verify joins two exports of one organization by their numbers, or reports a contradiction. It
// reports an answer that a caller has kept and that the exports should contain, but do not.
func TestExportsAreJoinedAndHeldAgainstKeptAnswers(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	s := serveIn(t, dir)
	a, bare := &auditor{t, []string{"--data", dir}}, &auditor{t, nil}
	token := organizationToken(t, dir)
	in := func(name string) string { return filepath.Join(files, name) }
	keep := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(in(name)), 0o700), os.WriteFile(in(name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(key string) {
		t.Helper()
		status, answer, err := post(s.base+decisionsPath, token, purchase(key))
		if err != nil || status != 201 {
			t.Fatal(status, answer, err)
		}
		keep("kept/"+key+".json", answer)
	}
	text, err := fetched(s.base + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	keep("jwks.json", string(text))
	verify := func(t *testing.T, code int, words string, args ...string) string {
		t.Helper()
		return bare.in(t).run(code, words, append([]string{"verify", "--keys", in("jwks.json")}, args...)...)
	}

	t.Run("kept answers need an export", func(t *testing.T) { bare.in(t).run(2, "--with needs an export", "verify", "--with", files) })
	decide("k1")
	decide("k2")
	a.run(0, "", "export", "--agent", "agent", "--out", in("a.tar.gz"))
	a.run(0, "", "export", "--out", in("whole.tar.gz"))
	decide("k3")
	a.run(0, "", "export", "--agent", "agent", "--out", in("b.tar.gz"))
	a.run(0, "", "export", "--out", in("all.tar.gz"))
	t.Run("two exports of one history are joined", func(t *testing.T) {
		verify(t, 0, ": 1 to 2, then 1 to 3\n", in("a.tar.gz"), in("b.tar.gz"))
		verify(t, 0, "JOINED      history of org_", in("whole.tar.gz"), in("all.tar.gz"))
		verify(t, 1, "NOT JOINED  ", in("b.tar.gz"), in("a.tar.gz"))
		verify(t, 0, "JOINED      decision/", in("a.tar.gz"), in("all.tar.gz"))
		if said := verify(t, 0, `"joined":["decision/`, in("a.tar.gz"), in("b.tar.gz"), "--json"); strings.Count(said, `"valid":true`) != 2 {
			t.Errorf("as JSON: %s", said)
		}
	})
	t.Run("a join of anything else is refused", func(t *testing.T) {
		verify(t, 2, "compared only if both are exports", in("a.tar.gz"), in("kept/k1.json"))
		verify(t, 2, "compared only if both are exports", in("kept/k1.json"), in("a.tar.gz"))
		verify(t, 2, "two exports of which", in("a.tar.gz"), in("a.tar.gz"), in("a.tar.gz"))
	})

	const here = "PROVEN      kept: the %d kept records that the filters cover are in the export as they were signed"
	t.Run("kept answers are found in an export", func(t *testing.T) {
		verify(t, 0, fmt.Sprintf(here, 3), in("b.tar.gz"), "--with", in("kept"))
		verify(t, 0, fmt.Sprintf(here, 3), in("all.tar.gz"), "--with", in("kept"))
		verify(t, 0, "anything about the 1 kept records that the filters and the period do not cover: k3.json", in("a.tar.gz"), "--with", in("kept"))
	})
	t.Run("kept answers that cannot be compared are refused", func(t *testing.T) {
		verify(t, 2, "--with must be a folder", in("a.tar.gz"), "--with", in("missing"))
		verify(t, 2, "--with needs an export: a record alone", in("kept/k1.json"), "--with", in("kept"))
	})

	t.Run("the nonce draws the same sample from each export", func(t *testing.T) {
		one := verify(t, 0, "SAMPLE      1 of 3 decisions, which the nonce has drawn:\n            sequence ", in("b.tar.gz"), "--sample", "1", "--nonce", "6152")
		if again := verify(t, 0, "SAMPLE", in("all.tar.gz"), "--sample", "1", "--nonce", "6152"); one[strings.Index(one, "SAMPLE"):] != again[strings.Index(again, "SAMPLE"):] {
			t.Errorf("another decision of another export of the same history is drawn: %s, %s", one, again)
		}
		verify(t, 0, `"sample":{"drawn":[{"decisionId":"asd_`, in("b.tar.gz"), "--sample", "5", "--nonce", "6152", "--json")
	})
	t.Run("a wrong request for a sample is refused", func(t *testing.T) {
		verify(t, 2, "--nonce must be a text of your own", in("b.tar.gz"), "--sample", "1")
		verify(t, 2, "--sample, the number of decisions to draw, must be 1 to 10000", in("b.tar.gz"), "--nonce", "6152")
		verify(t, 2, "--sample, the number of decisions to draw, must be 1 to 10000", in("b.tar.gz"), "--nonce", "6152", "--sample=-1")
		verify(t, 2, "--sample: name one export", in("a.tar.gz"), in("b.tar.gz"), "--nonce", "6152", "--sample", "1")
		verify(t, 2, "--sample: name one export", "--nonce", "6152", "--sample", "1")
		verify(t, 2, "--sample needs an export: a record alone", in("kept/k1.json"), "--nonce", "6152", "--sample", "1")
	})

	// Write two records: one that the service has signed, and one that it has not.
	seed, err := os.ReadFile(filepath.Join(dir, "signing.key"))
	if err != nil {
		t.Fatal(err)
	}
	private, err := setting.ParseSeed(strings.TrimSpace(string(seed)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := os.ReadFile(in("kept/k1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var envelope seal.Envelope
	if err := canon.Decode(answer, &envelope); err != nil {
		t.Fatal(err)
	}
	signer, err := seal.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	other, err := signer.SignCanonical(envelope.Integrity.PayloadType, canon.Put(envelope.Record, []byte(`"asd_01JD3Z8W5T0000000000000009"`), "decisionId"))
	if err != nil {
		t.Fatal(err)
	}
	other.Ledger = envelope.Ledger
	other.Ledger.EventHash = strings.Repeat("0", 64)
	dropped, err := other.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	keep("kept/dropped.json", string(dropped))
	t.Run("a kept answer that the export lacks is found", func(t *testing.T) {
		for _, export := range []string{"a.tar.gz", "all.tar.gz"} {
			verify(t, 1, "FALSE       with: dropped.json: position", in(export), "--with", in("kept"))
		}
	})
}

// A dispute pack about a purchase can be written and verified, with and without the answers that
// its holder has kept. It is refused if one character of its page was changed.
func TestADisputePackIsVerifiedOrRefused(t *testing.T) {
	t.Parallel()
	h := handOver(t, "k1")
	a, bare, in := h.a, h.bare, h.in
	if err := errors.Join(os.Mkdir(in("kept"), 0o700), os.WriteFile(in("kept/k1.json"), []byte(h.answers[0]), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(h.answers[0], `"decisionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	a.run(2, "name one decision or payment", "dispute", "--out", in("none.tar.gz"))
	a.run(2, "--decision must be the id of a decision", "dispute", "--decision", "pay_1", "--out", in("none.tar.gz"))
	a.run(2, "no decision of this organization has this id", "dispute", "--decision", "asd_none", "--out", in("none.tar.gz"))
	a.run(0, "decision/"+id+": 1 events", "dispute", "--decision", id, "--out", in("dispute.tar.gz"))
	bare.run(0, "PROVEN      whole: decision/"+id+": events 1 to 1\n", "verify", in("dispute.tar.gz"), "--keys", in("jwks.json"))
	bare.run(0, "the 1 kept records that the filters cover", "verify", in("dispute.tar.gz"), "--keys", in("jwks.json"), "--with", in("kept"))
	bare.run(2, "nothing can be joined", "verify", in("dispute.tar.gz"), in("dispute.tar.gz"), "--keys", in("jwks.json"))
	untar(t, in("dispute.tar.gz"), h.files)
	page := in("export/views/dispute.html")
	text, err := os.ReadFile(page)
	if err := errors.Join(err, os.WriteFile(page, bytes.Replace(text, []byte("allow"), []byte("deny!"), 1), 0o600)); err != nil {
		t.Fatal(err)
	}
	bare.run(1, "FALSE       views/dispute.html: hash", "verify", in("export"), "--keys", in("jwks.json"))
}

// The verifier counts a statement about an agent again. An agent that no decision names is
// refused; for an agent that did nothing in the period, the statement has only zeros.
func TestAStatementAboutAnAgentIsCountedAgain(t *testing.T) {
	t.Parallel()
	h := handOver(t, "k1", "k2")
	a, bare, in := h.a, h.bare, h.in
	a.run(2, "--between needs two times", "prove", "--agent", "agent", "--out", in("none.tar.gz"), "--between", "2020-01-01")
	a.run(2, "name the period", "prove", "--agent", "agent", "--out", in("none.tar.gz"))
	for want, period := range map[string][]string{"--between must be a time": {"--between", "yesterday", "2999-01-01"}, "TO must be a time": {"--between", "2020-01-01", "tomorrow"},
		"give --period, or --between and TO, not both": {"--between", "2020-01-01", "2999-01-01", "--period", "2026"},
		"TO must be later than --between":              {"--between", "2999-01-01", "2020-01-01"}} {
		a.run(2, want, append([]string{"prove", "--agent", "agent", "--out", in("none.tar.gz")}, period...)...)
	}
	a.run(2, "TO must be later than --between", "prove", "--agent", "agent", "--out", in("none.tar.gz"), "--between", "2020-01-01T00:00:00Z", "2020-01-01")
	a.run(2, "--to must be later than --from", "export", "--out", in("none.tar.gz"), "--from", "2999-01-01", "--to", "2020-01-01")
	a.run(2, "agent must be the id of an agent", "prove", "--agent", "agnet", "--out", in("none.tar.gz"), "--between", "2020-01-01", "2999-01-01")
	const all = "2 allow, 0 deny, 0 needs_review; 0 approved, 0 rejected; receipts 0 conforming, 0 inconclusive, 0 violation; authorized 2, largest 0.5 USD, total 1 USD; settled, as reported, 0, largest 0 USD, total 0 USD"
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for period, says := range map[string]string{"2020-01-01 2999-01-01": all, "2020-01-01 2020-04-01": strings.ReplaceAll(strings.ReplaceAll(strings.Replace(all, "2 allow", "0 allow", 1), "authorized 2, largest 0.5", "authorized 0, largest 0"), "total 1 ", "total 0 ")} {
		from, to, _ := strings.Cut(period, " ")
		out := in("from" + from + to + ".tar.gz")
		if said := a.run(0, "", "prove", "--agent", "agent", "--out", out, "--between", from, to); !strings.Contains(flat(said), says) {
			t.Errorf("%s: %s", period, said)
		}
		if said := bare.run(0, "VALID", "verify", out, "--keys", in("jwks.json")); !strings.Contains(flat(said), "PROVEN statement, counted again from these events: "+says) {
			t.Errorf("%s: %s", period, said)
		}
	}
}
