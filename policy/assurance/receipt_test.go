package assurance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

var issued = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func after(d time.Duration) string { return issued.Add(d).Format(time.RFC3339Nano) }

func receipt(t testing.TB, members string) assurance.ReceiptRequest {
	t.Helper()
	r, err := assurance.ParseReceipt([]byte(`{"decisionId":"asd_1","decisionRecordHash":"h","bindingHash":"b","protocol":"x402"` + members + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestConformance has every row of the contract's table of receipts, with the boundaries of each
// time limit.
func TestConformance(t *testing.T) {
	allow := assurance.Decided{Decision: "allow", IssuedAt: issued, ValidUntil: issued.Add(15 * time.Minute)}
	deny := assurance.Decided{Decision: "deny", IssuedAt: issued}
	review := assurance.Decided{Decision: "needs_review", IssuedAt: issued}
	approved, refused := review, review
	approved.Approval = &assurance.Approved{ApprovalID: "apr_1", Verdict: "approved", IssuedAt: issued.Add(time.Hour), ValidUntil: issued.Add(75 * time.Minute)}
	refused.Approval = &assurance.Approved{ApprovalID: "apr_1", Verdict: "rejected", IssuedAt: issued.Add(time.Hour), ValidUntil: issued.Add(75 * time.Minute)}
	stopped, late, unapproved, denied := allow, approved, review, deny
	stopped.Stopped, late.Stopped, unapproved.Stopped, denied.Stopped = issued.Add(2*time.Minute), issued.Add(62*time.Minute), issued.Add(2*time.Minute), issued.Add(time.Second)
	const full = `,"responseStatus":200,"responseBodyHash":"` + "0000000000000000000000000000000000000000000000000000000000000000" + `"`
	at := func(d time.Duration) string { return `,"observedAt":"` + after(d) + `"` }
	for _, c := range []struct {
		name     string
		decided  assurance.Decided
		outcome  string
		members  string
		received time.Duration
		want     string
	}{
		{"allow and fulfilled", allow, "fulfilled", full + at(time.Minute), 2 * time.Minute, "conforming"},
		{"allow and failed", allow, "failed", at(time.Minute), 2 * time.Minute, "conforming"},
		{"allow and rejected", allow, "rejected", at(time.Hour), time.Hour, "conforming"},
		{"deny and rejected", deny, "rejected", at(time.Minute), time.Minute, "conforming"},
		{"needs_review and rejected", review, "rejected", at(time.Minute), time.Minute, "conforming"},
		{"deny and fulfilled", deny, "fulfilled", full + at(time.Minute), time.Minute, "violation receipt.executed_after_deny"},
		{"deny and failed", deny, "failed", at(time.Minute), time.Minute, "violation receipt.executed_after_deny"},
		{"needs_review and fulfilled", review, "fulfilled", full + at(time.Minute), time.Minute, "violation receipt.executed_without_approval"},
		{"needs_review, approved and fulfilled", approved, "fulfilled", full + at(61*time.Minute), 61 * time.Minute, "conforming"},
		{"needs_review, approved, before the approval", approved, "failed", at(57 * time.Minute), 61 * time.Minute, "violation receipt.executed_without_approval"},
		{"needs_review, approved, at the end", approved, "failed", at(75 * time.Minute), 76 * time.Minute, "conforming"},
		{"needs_review, approved, too late", approved, "failed", at(75*time.Minute + 1), 76 * time.Minute, "violation receipt.after_expiry"},
		{"needs_review, rejected by a person", refused, "fulfilled", full + at(61*time.Minute), 61 * time.Minute, "violation receipt.executed_without_approval"},
		{"at the last moment", allow, "failed", at(15 * time.Minute), time.Hour, "conforming"},
		{"after expiry", allow, "failed", at(15*time.Minute + 1), time.Hour, "violation receipt.after_expiry"},
		{"2 minutes before the decision", allow, "failed", at(-2 * time.Minute), time.Minute, "conforming"},
		{"more than 2 minutes before", allow, "failed", at(-2*time.Minute - 1), time.Minute, "inconclusive receipt.observed_before_decision"},
		{"2 minutes in the future", allow, "failed", at(3 * time.Minute), time.Minute, "conforming"},
		{"more than 2 minutes in the future", allow, "failed", at(3*time.Minute + 1), time.Minute, "inconclusive receipt.observed_in_future"},
		{"no time, in time", allow, "failed", "", time.Minute, "conforming receipt.observed_at_missing"},
		{"no time, received after expiry", allow, "failed", "", 16 * time.Minute, "violation receipt.after_expiry receipt.observed_at_missing"},
		{"allow, before a stop", stopped, "failed", at(2*time.Minute - 1), 3 * time.Minute, "conforming receipt.reported_after_stop"},
		{"allow, at a stop", stopped, "failed", at(2 * time.Minute), 3 * time.Minute, "violation receipt.executed_after_stop"},
		{"allow, no time, received after a stop", stopped, "failed", "", 3 * time.Minute, "violation receipt.executed_after_stop receipt.observed_at_missing"},
		{"allow, not executed after a stop", stopped, "rejected", at(3 * time.Minute), 3 * time.Minute, "conforming"},
		{"approved, after a stop", late, "failed", at(63 * time.Minute), 63 * time.Minute, "violation receipt.executed_after_stop"},
		{"not approved, after a stop", unapproved, "failed", at(3 * time.Minute), 3 * time.Minute, "violation receipt.executed_after_stop receipt.executed_without_approval"},
		{"a deny needs no stop", denied, "failed", at(time.Minute), time.Minute, "violation receipt.executed_after_deny"},
		{"fulfilled with 400", allow, "fulfilled", strings.Replace(full, "200", "400", 1) + at(0), 0, "inconclusive receipt.status_mismatch"},
		{"fulfilled with 399", allow, "fulfilled", strings.Replace(full, "200", "399", 1) + at(0), 0, "conforming"},
		{"failed with 204", allow, "failed", `,"responseStatus":204` + at(0), 0, "inconclusive receipt.status_mismatch"},
		{"failed with 500", allow, "failed", `,"responseStatus":500` + at(0), 0, "conforming"},
		{"fulfilled without hash", allow, "fulfilled", `,"responseStatus":200` + at(0), 0, "conforming receipt.response_unbound"},
		{"the worst wins", deny, "fulfilled", `,"responseStatus":500` + at(-time.Hour), 0,
			"violation receipt.executed_after_deny receipt.observed_before_decision receipt.status_mismatch receipt.response_unbound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := assurance.Conform(c.decided, receipt(t, `,"outcome":"`+c.outcome+`"`+c.members), issued.Add(c.received))
			text := got.Is
			for _, f := range got.Findings {
				text += " " + f.RuleID
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
	for _, c := range []struct {
		decided assurance.Decided
		after   time.Duration
		late    bool
	}{
		{allow, 24*time.Hour + 15*time.Minute, false}, {allow, 24*time.Hour + 15*time.Minute + 1, true},
		{deny, 24 * time.Hour, false}, {deny, 24*time.Hour + 1, true},
	} {
		if got := assurance.Conform(c.decided, receipt(t, `,"outcome":"rejected"`), issued.Add(c.after)); got.Late != c.late {
			t.Errorf("%s received after %s: late is %v", c.decided.Decision, c.after, got.Late)
		}
	}
}

func TestReceiptRecordIsGolden(t *testing.T) {
	r := receipt(t, `,"outcome":"fulfilled","observedAt":"2026-11-21T11:01:00+01:00","settlementId":"0xabc","evidenceHashes":["e1"],"responseStatus":200,"responseBodyHash":"`+strings.Repeat("0", 64)+`"`)
	d := assurance.Decided{Decision: "allow", IssuedAt: issued, ValidUntil: issued.Add(15 * time.Minute)}
	now := issued.Add(2 * time.Minute)
	got, err := canon.Marshal(r.Record("asr_1", "org_1", d, assurance.Conform(d, r, now), now, assurance.Submitter{TokenID: "svco_1"}))
	want := `{"approvalId":null,"bindingHash":"b","conformance":"conforming","decision":"allow","decisionId":"asd_1","decisionRecordHash":"h",` +
		`"evidenceHashes":["e1"],"findings":[],"late":false,"observedAt":"2026-11-21T11:01:00+01:00","orgId":"org_1","outcome":"fulfilled","protocol":"x402",` +
		`"receiptId":"asr_1","receivedAt":"2026-11-21T10:02:00.000Z","responseBodyHash":"` + strings.Repeat("0", 64) + `","responseStatus":200,` +
		`"schema":"svc-assurance-receipt-v1","settlementId":"0xabc","submittedBy":{"tokenId":"svco_1"}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Error(diff, err)
	}
}

func TestRefusalsOfReceipts(t *testing.T) {
	with := func(members string) string {
		return `{"decisionId":"d","decisionRecordHash":"h","bindingHash":"b","protocol":"mcp","outcome":"failed"` + members + `}`
	}
	for _, c := range [][2]string{
		{`{}`, "decisionId is required"},
		{`{"decisionId":""}`, "decisionId must be 1 to 8192 characters"},
		{`{"decisionId":"d","decisionRecordHash":"h","bindingHash":"b","protocol":"http"}`, "protocol must be x402 or mcp"},
		{`{"decisionId":"d","decisionRecordHash":"h","bindingHash":"b","protocol":"mcp","outcome":"done"}`, "outcome must be fulfilled, failed or rejected"},
		{with(`,"observedAt":"yesterday"`), "observedAt is not an RFC 3339 date-time"},
		{with(`,"observedAt":"2026-11-21"`), "observedAt is not an RFC 3339 date-time"},
		{with(`,"evidenceHashes":[` + strings.Repeat(`"e",`, 100) + `"e"]`), "evidenceHashes must have at most 100 entries"},
		{with(`,"evidenceHashes":["` + strings.Repeat("e", 257) + `"]`), "evidenceHashes.0 must be 1 to 256 characters"},
		{with(`,"responseStatus":99`), "responseStatus must be an integer of 100 to 599"},
		{with(`,"responseStatus":600`), "responseStatus must be an integer of 100 to 599"},
		{with(`,"responseStatus":"200"`), "responseStatus must be an integer"},
		{with(`,"responseBodyHash":"` + strings.Repeat("A", 64) + `"`), "responseBodyHash must be 64 lower-case hex digits"},
		{with(`,"responseBodyHash":"` + strings.Repeat("a", 63) + `"`), "responseBodyHash must be 64 lower-case hex digits"},
		{with(`,"idempotencyKey":"k"`), "request: unknown field"},
	} {
		_, err := assurance.ParseReceipt([]byte(c[0]))
		refused(t, c[0], err, c[1])
	}
}

func TestRefusalsOfApprovals(t *testing.T) {
	for _, c := range [][2]string{
		{`{}`, "verdict is required"},
		{`{"verdict":"yes"}`, "verdict must be approved or rejected"},
		{`{"verdict":"approved"}`, "reason is required"},
		{`{"verdict":"approved","reason":""}`, "reason must be 1 to 1000 characters"},
		{`{"verdict":"approved","reason":"x","approvedBy":"me"}`, "request: unknown field"},
	} {
		_, err := assurance.ParseApproval([]byte(c[0]))
		refused(t, c[0], err, c[1])
	}
}

// MayExecute accepts only the call that was decided about, and only under a valid decision.
func TestMayExecute(t *testing.T) {
	r := decision(t, "x402", weather)
	until := canon.Stamp(issued.Add(assurance.ValidFor))
	allow := assurance.DecisionRecord{DecisionID: "asd_1", OrgID: "org_1", BindingHash: "b", Protocol: "x402", Decision: "allow", AssuranceActionHash: r.ActionHash, ValidUntil: &until}
	review := allow
	review.Decision, review.ValidUntil = "needs_review", nil
	deny := review
	deny.Decision = "deny"
	foreign := allow
	foreign.OrgID = "org_2"
	approval := assurance.ApprovalInput{Verdict: "approved", Reason: "ok"}.Record("apr_1", review, "h", "cus_1", false, issued)
	rejection := assurance.ApprovalInput{Verdict: "rejected", Reason: "no"}.Record("apr_1", review, "h", "cus_1", false, issued)
	other := approval
	other.BindingHash = "c"
	call := func(intent string) assurance.PendingCall {
		c, err := assurance.ParseCall([]byte(`{"protocol":"x402","intent":` + intent + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	good := call(weather)
	for _, c := range []struct {
		name     string
		call     assurance.PendingCall
		decision assurance.DecisionRecord
		approval *assurance.ApprovalRecord
		after    time.Duration
		want     string
	}{
		{"the call that was allowed", good, allow, nil, time.Minute, ""},
		{"another organization's", good, foreign, nil, time.Minute, "the decision belongs to another organization"},
		{"another call", call(strings.Replace(weather, "250000", "250001", 1)), allow, nil, time.Minute, "the pending call is not the one that was decided about"},
		{"the last moment", good, allow, nil, 15 * time.Minute, ""},
		{"expired", good, allow, nil, 15*time.Minute + 1, "the decision or approval has expired"},
		{"denied", good, deny, &approval, 0, "the decision is deny"},
		{"not approved", good, review, nil, 0, "the decision needs an approval"},
		{"approved", good, review, &approval, 0, ""},
		{"approved and expired", good, review, &approval, 16 * time.Minute, "the decision or approval has expired"},
		{"rejected", good, review, &rejection, 0, "a person rejected the call"},
		{"approved, another decision", good, review, &other, 0, "the approval is for another decision"},
	} {
		until, got := assurance.MayExecute(c.call, "org_1", c.decision, "h", c.approval, issued.Add(c.after))
		if got != c.want || got == "" && until != after(15*time.Minute) && until != approval.ValidUntil {
			t.Errorf("%s: got %q until %s, want %q", c.name, got, until, c.want)
		}
	}
}

func TestLint(t *testing.T) {
	for _, c := range [][2]string{
		{`{"policyId":"p","version":0}`, "policy.version must be an integer of 1"},
		{`{"policyId":"p","version":"1"}`, "policy.version must be an integer"},
		{`{"policyId":"p","Version":1}`, "policy: unknown field, did you mean version?"},
		{`{}`, "policy.policyId is required"},
		{`{"policyId":"p","allowedHost":[]}`, "policy: unknown field, did you mean allowedHosts?"},
		{`{"policyId":"p","allowedHosts":["https://a.example"]}`, "policy.allowedHosts.0 is not a host"},
		{`{"policyId":"p","allowedHosts":["a.example:0"]}`, "policy.allowedHosts.0 is not a host"},
		{`{"policyId":"p","allowedHosts":["a.example:65536"]}`, "policy.allowedHosts.0 is not a host"},
		{`{"policyId":"p","allowedHosts":["a.*"]}`, "policy.allowedHosts.0 is not a host"},
		{`{"policyId":"p","blockedHosts":["a..b"]}`, "policy.blockedHosts.0 is not a host"},
		{`{"policyId":"p","allowedPayTo":["0x0000000000000000000000000000000000000000"]}`, "policy.allowedPayTo.0 is not a valid address"},
		{`{"policyId":"p","maxUsdPerTransaction":1.00000000000000000001}`, "policy.maxUsdPerTransaction has more digits than a JSON number can represent"},
		{`{"policyId":"p","allowedHosts":["b.example","api.evil.example"],"blockedHosts":["EVIL.example"]}`, "policy.allowedHosts.1 is covered by blockedHosts"},
	} {
		_, err := assurance.Lint([]byte(c[0]))
		refused(t, c[0], err, c[1])
	}
	for _, c := range [][2]string{
		{`{"policyId":"p"}`, "policy.no_mcp_rule policy.no_x402_rule"},
		{`{"policyId":"p","requireHttps":true,"requireMcpArgumentBinding":true}`, "policy.no_allowed_pay_to policy.no_maximum"},
		{`{"policyId":"p","maxUsdPerTransaction":0.1,"allowedPayTo":[],"allowedMcpServers":[],"allowedHosts":["*.com","*.co.uk"]}`, "policy.wide_wildcard"},
		{`{"policyId":"p","maxUsdPerTransaction":0.1,"allowedPayTo":[],"allowedMcpServers":[],"allowedNetworks":["base","Base","eip155:1"]}`, "policy.unknown_network policy.network_alias"},
	} {
		draft, err := assurance.Lint([]byte(c[0]))
		ids := []string{}
		for _, w := range draft.Warnings {
			ids = append(ids, w.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != c[1] {
			t.Errorf("%s: got %q, want %q (%v)", c[0], got, c[1], err)
		}
	}
}

// Activation adds the version to the canonical bytes of a draft and changes nothing else.
func TestVersionIsAddedToTheDraft(t *testing.T) {
	draft, err := assurance.Lint([]byte(` {"requireHttps": true, "policyId": "p", "maxUsdPerTransaction": 5.0} `))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"maxUsdPerTransaction":5,"policyId":"p","requireHttps":true}`; string(draft.Canonical) != want {
		t.Errorf("canonical bytes %s, want %s", draft.Canonical, want)
	}
	for version := range int64(3) {
		text, hash, err := assurance.WithVersion(draft.Canonical, version+1)
		want := fmt.Sprintf(`{"maxUsdPerTransaction":5,"policyId":"p","requireHttps":true,"version":%d}`, version+1)
		if err != nil || string(text) != want || hash != canon.Hash([]byte(want)) {
			t.Errorf("version %d: %s %s %v", version+1, text, hash, err)
		}
	}
	if _, _, err := assurance.WithVersion(draft.Canonical, 0); err == nil {
		t.Error("version 0 is accepted")
	}
}
