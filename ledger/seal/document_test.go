package seal_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// sealed signs a record and returns its envelope as text.
func sealed(t *testing.T, payloadType, record string) string {
	t.Helper()
	canonical, err := canon.Canonical([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	e, err := testSigner(t).SignCanonical(payloadType, canonical)
	if err != nil {
		t.Fatal(err)
	}
	text, err := canon.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answered returns the answer of a workflow with its receipt, as a service sends it.
func answered(t *testing.T) string {
	t.Helper()
	body := `"decision":"needs_review","findings":[{"id":"f"}],"risk":"critical","service":"action-safety-run"`
	canonical, err := canon.Canonical([]byte(`{` + body + `}`))
	if err != nil {
		t.Fatal(err)
	}
	hash := canon.Hash(canonical)
	receipt := sealed(t, seal.TypeReceipt, `{"service":"action-safety-run","outputHash":"`+hash+`","decision":"needs_review","issuedAt":"2026-11-22T15:09:35.123Z",
		"workflow":{"workflowId":"asw_1","risk":"critical","decision":"needs_review","matchedRuleIds":["git.push.force-protected"],"createdAt":"2026-11-22T15:09:35.123Z","humanApprovalIncluded":false}}`)
	return `{` + body + `,"outputHash":"` + hash + `","receipt":` + receipt + `,"workflowId":"asw_1","createdAt":"2026-11-22T15:09:35.123Z","statusUrl":"http://x/asw_1"}`
}

func TestTheFirstLineSaysWhatIsValid(t *testing.T) {
	s := testSigner(t)
	decision := sealed(t, "application/vnd.svc.decision.v1+json", `{"decisionId":"asd_1","decision":"deny","findings":[{"ruleId":"x402.host.blocked"},{"ruleId":"b"},{"ruleId":"c"},{"ruleId":"d"},{"ruleId":"e"}],"issuedAt":"2026-11-22T15:00:00.000Z"}`)
	violation := sealed(t, "application/vnd.svc.assurance-receipt.v1+json", `{"receiptId":"asr_1","decision":"deny","outcome":"fulfilled","conformance":"violation","findings":[{"ruleId":"receipt.executed_after_deny"}],"receivedAt":"2026-11-22T15:09:35.999Z"}`)
	answer := answered(t)
	for _, c := range []struct{ name, text, says, gaps string }{
		{"workflow", answer, "VALID needs_review · critical · git.push.force-protected · 2026-11-22T15:09:35Z · key 56475aa75463474c", "/statusUrl"},
		{"decision", decision, "VALID deny · x402.host.blocked, b, c and 2 more · 2026-11-22T15:00:00Z · key 56475aa75463474c", ""},
		{"violation", violation, "VALID violation · fulfilled after deny · receipt.executed_after_deny · 2026-11-22T15:09:35Z · key 56475aa75463474c", ""},
		{"approval", sealed(t, "t", `{"approvalId":"apr_1","decisionId":"asd_1","verdict":"approved","issuedAt":"2026-11-22T15:00:00.000Z"}`),
			"VALID approval approved · asd_1 · 2026-11-22T15:00:00Z · key 56475aa75463474c", ""},
		{"service without a decision", sealed(t, seal.TypeReceipt, `{"service":"bond-analyze","decision":null}`), "VALID answer · bond-analyze · key 56475aa75463474c", ""},
		{"something else", sealed(t, seal.TypeSigningKey, `{"a":1}`), "VALID record signing-key · key 56475aa75463474c", ""},
		{"page", `{"items":[` + decision + `,` + violation + `],"limit":2}`,
			"VALID 2 records: 1 deny, 1 violation · 2026-11-22T15:00:00Z to 2026-11-22T15:09:35Z · key 56475aa75463474c", "/limit"},
		{"status record", `{"workflowId":"asw_1","risk":"critical","boundaries":{"humanApprovalIncluded":false,"note":"x"},` + answer[strings.Index(answer, `"receipt":`):strings.LastIndex(answer, `,"workflowId"`)] + `}`,
			"VALID needs_review · critical · git.push.force-protected · 2026-11-22T15:09:35Z · key 56475aa75463474c", "/boundaries/note"},
		{"forged answer", strings.Replace(answer, `"risk":"critical"`, `"risk":"low"`, 1), "NOT VALID risk: the file says low, the signed record says critical", "/statusUrl"},
		{"forged findings", strings.Replace(answer, `[{"id":"f"}]`, `[]`, 1), "NOT VALID the members of the answer hash to ", "/statusUrl"},
		{"forged time", strings.Replace(answer, `"createdAt":"2026-11-22T15:09:35.123Z","statusUrl"`, `"createdAt":"2026-11-21T15:09:35.123Z","statusUrl"`, 1),
			"NOT VALID createdAt: the file says 2026-11-21T15:09:35.123Z, the signed record says 2026-11-22T15:09:35.123Z", "/statusUrl"},
		{"forged status address", strings.Replace(answer, `http://x/asw_1`, `http://x/asw_2`, 1), "NOT VALID statusUrl is that of another workflow", "/statusUrl"},
		{"forged in terminal codes", strings.Replace(answer, `"risk":"critical"`, `"risk":"\u001b[2J low"`, 1), "NOT VALID risk: the file says another value, the signed record says critical", "/statusUrl"},
		{"added member", strings.Replace(answer, `{"decision"`, `{"approved":true,"decision"`, 1), "NOT VALID the members of the answer hash to ", "/statusUrl"},
		{"hash taken out", strings.Replace(answer, `"outputHash"`, `"x"`, 1), "NOT VALID the members of the answer hash to ", "/statusUrl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := seal.Examiner{Keys: keys{s.KeyID(): s.Public()}}.Examine([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(e.Says, c.says) || e.Valid != strings.HasPrefix(e.Says, "VALID") {
				t.Errorf("valid %v, says %q\nwant %q", e.Valid, e.Says, c.says)
			}
			var gaps []string
			for _, g := range e.NotCovered {
				gaps = append(gaps, g.Path)
			}
			if diff := cmp.Diff(c.gaps, strings.Join(gaps, " ")); diff != "" {
				t.Errorf("not covered: %s", diff)
			}
		})
	}
}

func TestWhatCannotBeExamined(t *testing.T) {
	s := testSigner(t)
	one := sealed(t, seal.TypeReceipt, `{"a":1}`)
	x := seal.Examiner{Keys: keys{s.KeyID(): s.Public()}, Most: 2}
	for name, c := range map[string]struct{ text, code string }{
		"nothing signed":    {`{"items":[{"integrity":{"keyId":"x"}}]}`, "missing_field"},
		"no object":         {`7`, "missing_field"},
		"duplicate":         {`{"a":1,"a":2}`, "duplicate_field"},
		"empty integrity":   {`{"record":{},"integrity":{}}`, "missing_field"},
		"record a list":     {strings.Replace(one, `"record":{"a":1}`, `"record":[]`, 1), "wrong_type"},
		"unknown inside":    {strings.Replace(one, `"integrity":{`, `"integrity":{"x":1,`, 1), "unknown_field"},
		"too many":          {fmt.Sprintf(`[%s,%s,%s]`, one, one, one), "too_many_items"},
		"one without a key": {strings.Replace(one, `"keyId":"56475aa75463474c"`, `"keyId":""`, 1), "missing_field"},
	} {
		_, err := x.Examine([]byte(c.text))
		var refused *canon.Error
		if !errors.As(err, &refused) || refused.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	// One invalid record makes the whole document invalid.
	bad := strings.Replace(one, `"a":1`, `"a":2`, 1)
	e, err := x.Examine([]byte(`[` + one + `,` + bad + `]`))
	if err != nil || e.Valid {
		t.Errorf("%v %v", e, err)
	}
}

// A long member name is part of the path of every member below it. An examination limits the
// memory for all paths together, in a document of any shape.
func TestPlacesAreBounded(t *testing.T) {
	s := testSigner(t)
	one := sealed(t, seal.TypeReceipt, `{"a":1}`)
	long := strings.Repeat("x", 200_000)
	many := make([]string, 9000)
	for i := range many {
		many[i] = fmt.Sprintf(`"%d":1`, i)
	}
	members := strings.Join(many, ",")
	x := seal.Examiner{Keys: keys{s.KeyID(): s.Public()}, Most: 200, Rest: 10_000}
	for name, text := range map[string]string{
		"members":            `{"` + long + `":{` + members + `,"r":` + one + `}}`,
		"elements":           `{"` + long + `":[` + strings.Repeat("1,", 9000) + one + `]}`,
		"beside a record":    `{"` + long + `":{` + members + `,` + one[1:] + `}`,
		"beside a receipt":   `{"` + long + `":{` + members + `,"receipt":` + one + `}}`,
		"boundaries":         `{"` + long + `":{"boundaries":{` + members + `},` + one[1:] + `}`,
		"an answer's hashed": `{"` + long + `":{` + members + `,"receipt":` + sealed(t, seal.TypeReceipt, `{"outputHash":"0"}`) + `,"outputHash":"0"}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := x.Examine([]byte(text))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(100*len(text)) {
			t.Errorf("%s: %d octets were allocated for %d", name, used, len(text))
		}
		if err != nil && !errors.Is(err, seal.ErrTooMuchUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
