package conformance_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/countersign/countersign/api/clients/conformance"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

var update = flag.Bool("update", false, "write answers.json")

const (
	orgID     = "org_01JD3Z8W5T0000000000000001"
	otherOrg  = "org_01JD3Z8W5T0000000000000002"
	policyTxt = `{"policyId":"default","version":1,"allowedHosts":["api.weather.example"],"allowedMcpServers":["files"],
		"allowedMcpTools":["read","write"],"maxUsdPerTransaction":1,"reviewMcpRiskAtOrAbove":"high"}`
)

// signer returns a key pair for tests. Its seed is public: 32 times the same byte.
func signer(t *testing.T, b byte) *seal.Signer {
	t.Helper()
	s, err := seal.NewSigner(bytes.Repeat([]byte{b}, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// jwk returns a public key as in /.well-known/jwks.json.
func jwk(s *seal.Signer, purpose string, more map[string]any) map[string]any {
	key := map[string]any{"alg": "EdDSA", "crv": "Ed25519", "kid": s.KeyID(), "kty": "OKP", "use": "sig",
		"svc_purpose": purpose, "svc_from_position": 1, "svc_to_position": nil, "x": base64.RawURLEncoding.EncodeToString(s.Public())}
	maps.Copy(key, more)
	return key
}

// maker generates the answers as the service would.
type maker struct {
	t       *testing.T
	now     time.Time
	file    conformance.File
	policy  assurance.StoredPolicy
	record  *seal.Signer
	answers map[string]conformance.Answer
}

func (m *maker) put(name string, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	m.answers[name] = conformance.Answer{Status: status, Body: text}
}

// decision returns a decision on an intent, made by the real rules.
func (m *maker) decision(id, org, intent, key string, issued time.Time) assurance.DecisionRecord {
	m.t.Helper()
	protocol := assurance.MCP
	if bytes.Contains(m.file.Intents[intent], []byte("resourceUrl")) {
		protocol = assurance.X402
	}
	text := fmt.Sprintf(`{"protocol":%q,"idempotencyKey":%q,"subject":{"runId":"run-1"},"intent":%s}`, protocol, key, m.file.Intents[intent])
	r, err := assurance.ParseDecision([]byte(text))
	if err != nil {
		m.t.Fatal(intent, err)
	}
	e, ok := assurance.Evaluate(assurance.EngineVersion, protocol, m.policy.Rules, nil, r.Normalized)
	if !ok {
		m.t.Fatal("no engine")
	}
	record, err := assurance.Ruling{DecisionID: id, OrgID: org, Environment: "dev", IssuedAt: issued, Request: r,
		Policy: m.policy, ActivatedSequence: 4, Evaluation: e}.Record()
	if err != nil {
		m.t.Fatal(err)
	}
	return record
}

// sealed returns a signed envelope of a record at a position of the ledger.
func (m *maker) sealed(by *seal.Signer, payloadType string, record any, position int64) seal.Envelope {
	m.t.Helper()
	e, err := by.Sign(payloadType, record)
	if err != nil {
		m.t.Fatal(err)
	}
	e.Ledger = &seal.LedgerPosition{Position: position, Tenant: orgID, Sequence: position, EventHash: canon.Hash(e.Record)}
	e.Verify = &seal.VerifyAt{URL: "https://countersign.example/api/verify", Method: "POST"}
	return e
}

// decided returns the envelope of a decision at position 10.
func (m *maker) decided(record assurance.DecisionRecord) seal.Envelope {
	m.t.Helper()
	return m.sealed(m.record, assurance.DecisionType, record, 10)
}

// altered returns an envelope whose text was changed after the signature.
func (m *maker) altered(e seal.Envelope, old, new string) json.RawMessage {
	m.t.Helper()
	text, err := canon.Marshal(e)
	if err != nil {
		m.t.Fatal(err)
	}
	changed := bytes.Replace(text, []byte(old), []byte(new), 1)
	if bytes.Equal(text, changed) {
		m.t.Fatalf("%s is not in the envelope", old)
	}
	return changed
}

// receipt returns the receipt that the service records for a client's report on a decision.
func (m *maker) receipt(d seal.Envelope, record assurance.DecisionRecord, outcome string) assurance.ReceiptRecord {
	m.t.Helper()
	text := fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":%q,"outcome":%q}`,
		record.DecisionID, d.Integrity.RecordHash, record.BindingHash, record.Protocol, outcome)
	r, err := assurance.ParseReceipt([]byte(text))
	if err != nil {
		m.t.Fatal(err)
	}
	decided := assurance.Decided{Decision: record.Decision, IssuedAt: m.now, ValidUntil: m.now.Add(assurance.ValidFor)}
	return r.Record("asr_01JD3Z8W5T0000000000000001", record.OrgID, decided, assurance.Conform(decided, r, m.now), m.now, assurance.Submitter{TokenID: "tok_1"})
}

func standing(e seal.Envelope, record assurance.DecisionRecord, holds bool, reason any) map[string]any {
	return map[string]any{"decisionId": record.DecisionID, "orgId": record.OrgID, "decisionRecordHash": e.Integrity.RecordHash,
		"decision": record.Decision, "approvalId": nil, "activeDecision": "allow", "holds": holds, "reason": reason,
		"validUntil": record.ValidUntil, "checkedAt": "2026-11-26T05:00:00.000Z"}
}

// verdicts adds the gate's real answers, and answers that a broken or malicious gate might give.
func (m *maker) verdicts() {
	of := func(action string) map[string]any {
		answer, err := actionrisk.Quick.Evaluate(m.file.Actions[action])
		if err != nil {
			m.t.Fatal(action, err)
		}
		var members map[string]any
		if err := json.Unmarshal(answer.Body, &members); err != nil {
			m.t.Fatal(err)
		}
		return members
	}
	with := func(action, name string, value any) map[string]any {
		members := of(action)
		members[name] = value
		return members
	}
	for verdict, action := range map[string]string{"low": "command", "low: full": "full", "medium": "medium", "high": "high", "critical": "critical"} {
		m.put(verdict, 200, of(action))
	}
	m.put("low: needs approval", 200, with("command", "requiresApproval", true))
	m.put("low: approval not a boolean", 200, with("command", "requiresApproval", "false"))
	m.put("low: another action", 200, of("other"))
	m.put("low: another service", 200, with("command", "service", "command-risk-score"))
	m.put("low: not scored", 200, with("command", "status", "pending"))
	m.put("low: with 202", 202, of("command"))
	m.put("low: with 404", 404, of("command"))
	m.put("risk: unknown", 200, with("command", "risk", "none"))
	m.put("risk: in capitals", 200, with("command", "risk", "LOW"))
	m.put("risk: a list", 200, with("command", "risk", []string{"low"}))
	m.put("risk: missing", 200, map[string]any{"status": "scored", "service": "action-safety-quick-gate", "actionHash": of("command")["actionHash"], "requiresApproval": false})
}

func (m *maker) decisions() {
	const id = "asd_01JD3Z8W5T0000000000000001"
	allow := m.decision(id, orgID, "tool", "order-1", m.now)
	signed := m.decided(allow)
	m.put("allow", 201, signed)
	m.put("allow again", 200, signed)
	m.put("standing", 200, standing(signed, allow, true, nil))
	m.put("standing: ended", 200, standing(signed, allow, false, "a policy was activated since that denies the action"))
	other := standing(signed, allow, true, nil)
	other["decisionId"] = "asd_01JD3Z8W5T0000000000000009"
	m.put("standing: another decision", 200, other)
	other = standing(signed, allow, true, nil)
	other["decisionRecordHash"] = canon.Hash([]byte("another"))
	m.put("standing: another record", 200, other)
	other = standing(signed, allow, true, nil)
	other["holds"] = "true"
	m.put("standing: not a boolean", 200, other)

	m.put("allow: decision altered", 201, m.altered(m.decided(m.decision(id, orgID, "denied tool", "order-1", m.now)), `"decision":"deny"`, `"decision":"allow"`))
	m.put("allow: signature altered", 201, m.altered(signed, `"signature":"`+signed.Integrity.Signature, `"signature":"`+m.decided(m.decision(id, orgID, "tool", "order-2", m.now)).Integrity.Signature))
	m.put("allow: no signature", 201, m.altered(signed, `"signature":"`+signed.Integrity.Signature, `"signature":"`))
	m.put("allow: hash altered", 201, m.altered(signed, `"recordHash":"`+signed.Integrity.RecordHash, `"recordHash":"`+canon.Hash([]byte("another"))))
	m.put("allow: another algorithm", 201, m.altered(signed, `"hashAlgorithm":"sha256"`, `"hashAlgorithm":"sha512"`))
	m.put("allow: unknown key", 201, m.sealed(signer(m.t, 9), assurance.DecisionType, allow, 10))
	m.put("allow: checkpoint key", 201, m.sealed(signer(m.t, 2), assurance.DecisionType, allow, 10))
	m.put("allow: retired key", 201, m.sealed(signer(m.t, 3), assurance.DecisionType, allow, 10))
	m.put("allow: key too new", 201, m.sealed(signer(m.t, 4), assurance.DecisionType, allow, 10))
	m.put("allow: void key", 201, m.sealed(signer(m.t, 5), assurance.DecisionType, allow, 10))
	m.put("allow: another kind", 201, m.sealed(m.record, assurance.ReceiptType, allow, 10))
	m.put("allow: another organization", 201, m.decided(m.decision(id, otherOrg, "tool", "order-1", m.now)))
	m.put("allow: another request", 201, m.decided(m.decision(id, orgID, "tool", "order-2", m.now)))
	m.put("allow: another intent", 201, m.decided(m.decision(id, orgID, "other tool", "order-1", m.now)))
	m.put("allow: other arguments", 201, m.decided(m.decision(id, orgID, "other arguments", "order-1", m.now)))
	m.put("allow: another declared risk", 201, m.decided(m.decision(id, orgID, "other risk", "order-1", m.now)))
	hashed := allow
	hashed.AssuranceActionHash = canon.Hash([]byte("another"))
	m.put("allow: another action hash", 201, m.decided(hashed))
	old := m.decision(id, orgID, "tool", "order-1", m.now.Add(-assurance.ValidFor-time.Second))
	m.put("allow: old", 200, m.decided(old))
	endless := allow
	endless.ValidUntil = nil
	m.put("allow: without an end", 201, m.decided(endless))
	m.put("allow: record alone", 201, map[string]any{"record": allow})

	m.put("deny", 201, m.decided(m.decision(id, orgID, "denied tool", "order-1", m.now)))
	numbers := m.decision(id, orgID, "numbers", "order-1", m.now)
	n := m.decided(numbers)
	m.put("numbers", 201, n)
	m.put("numbers: standing", 200, standing(n, numbers, true, nil))
	m.put("numbers: receipt", 201, m.sealed(m.record, assurance.ReceiptType, m.receipt(n, numbers, "fulfilled"), 11))

	m.receipts("receipt", signed, allow)
	m.falseReceipts(signed, allow)
	m.review()
	m.payment()
}

func (m *maker) receipts(prefix string, signed seal.Envelope, record assurance.DecisionRecord) {
	m.put(prefix, 201, m.sealed(m.record, assurance.ReceiptType, m.receipt(signed, record, "fulfilled"), 11))
	m.put(prefix+": failed", 201, m.sealed(m.record, assurance.ReceiptType, m.receipt(signed, record, "failed"), 11))
}

// falseReceipts adds receipts that a client must refuse.
func (m *maker) falseReceipts(signed seal.Envelope, record assurance.DecisionRecord) {
	m.put("receipt: altered", 201, m.altered(m.sealed(m.record, assurance.ReceiptType, m.receipt(signed, record, "failed"), 11), `"outcome":"failed"`, `"outcome":"fulfilled"`))
	m.put("receipt: another kind", 201, signed)
	foreign := m.receipt(signed, record, "fulfilled")
	foreign.DecisionRecordHash = canon.Hash([]byte("another"))
	m.put("receipt: another decision", 201, m.sealed(m.record, assurance.ReceiptType, foreign, 11))
}

// later adds the service's later answers about a decision: whether it is still in effect, and the
// receipts of its execution.
func (m *maker) later(prefix string, signed seal.Envelope, record assurance.DecisionRecord) {
	m.put(prefix+": standing", 200, standing(signed, record, true, nil))
	m.put(prefix+": ended", 200, standing(signed, record, false, "a policy was activated since that denies the action"))
	m.receipts(prefix+": receipt", signed, record)
}

// review adds a decision that requires approval, and the possible approvals.
func (m *maker) review() {
	record := m.decision("asd_01JD3Z8W5T0000000000000002", orgID, "risky tool", "order-1", m.now)
	signed := m.decided(record)
	m.put("review", 201, signed)
	m.later("review", signed, record)
	say := func(verdict string, at time.Time) assurance.ApprovalRecord {
		in := assurance.ApprovalInput{Verdict: verdict, Reason: "the amount is not agreed"}
		return in.Record("apr_01JD3Z8W5T0000000000000001", record, signed.Integrity.RecordHash, "cus_1", false, at)
	}
	approved := say("approved", m.now)
	m.put("approval", 200, m.sealed(m.record, assurance.ApprovalType, approved, 12))
	m.put("approval: rejected", 200, m.sealed(m.record, assurance.ApprovalType, say("rejected", m.now), 12))
	m.put("approval: altered", 200, m.altered(m.sealed(m.record, assurance.ApprovalType, say("rejected", m.now), 12), `"verdict":"rejected"`, `"verdict":"approved"`))
	m.put("approval: another kind", 200, signed)
	m.put("approval: unknown key", 200, m.sealed(signer(m.t, 9), assurance.ApprovalType, approved, 12))
	m.put("approval: expired", 200, m.sealed(m.record, assurance.ApprovalType, say("approved", m.now.Add(-assurance.ValidFor-time.Second)), 12))
	foreign := approved
	foreign.DecisionRecordHash = canon.Hash([]byte("another"))
	m.put("approval: another decision", 200, m.sealed(m.record, assurance.ApprovalType, foreign, 12))
}

// payment adds the service's answers about payments and to the reports on them.
func (m *maker) payment() {
	record := m.decision("asd_01JD3Z8W5T0000000000000003", orgID, "payment", "order-1", m.now)
	signed := m.decided(record)
	m.put("payment: allow", 201, signed)
	m.later("payment", signed, record)
	dear := m.decision("asd_01JD3Z8W5T0000000000000004", orgID, "expensive payment", "order-1", m.now)
	m.put("payment: deny", 201, m.decided(dear))
}

// TestAnswersAreThoseOfTheService generates answers.json with the real rules and with public test
// keys, and compares it with the file.
func TestAnswersAreThoseOfTheService(t *testing.T) {
	file, _, err := conformance.Load()
	if err != nil && !*update {
		t.Fatal(err)
	}
	now, err := time.Parse(time.RFC3339, file.Now)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := assurance.ReadPolicy([]byte(policyTxt))
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{t, now, file, policy, signer(t, 1), map[string]conformance.Answer{}}
	m.verdicts()
	m.decisions()
	keys := []any{
		jwk(signer(t, 1), "record", nil),
		jwk(signer(t, 2), "checkpoint", nil),
		jwk(signer(t, 3), "record", map[string]any{"svc_to_position": 5}),
		jwk(signer(t, 4), "record", map[string]any{"svc_from_position": 11}),
		jwk(signer(t, 5), "record", map[string]any{"svc_void_from_position": 3}),
	}
	text, err := json.MarshalIndent(map[string]any{"keys": map[string]any{"keys": keys}, "answers": m.answers}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("answers.json", text, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if committed, err := os.ReadFile("answers.json"); err != nil || !bytes.Equal(committed, text) {
		t.Fatalf("answers.json is not what the rules and cases.json make: go test ./api/clients/conformance -update (%v)", err)
	}
}
