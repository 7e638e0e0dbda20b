package events

import "testing"

// Only the type and the outcome determine the series of an event.
func TestSeriesOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ eventType, payload, want string }{
		{TypeDecisionRecorded, `{"record":{"decision":"allow"}}`, "decision/allow"},
		{TypeDecisionRecorded, `{"record":{"decision":"deny"}}`, "decision/deny"},
		{TypeDecisionRecorded, `{"record":{"decision":"needs_review"}}`, "decision/needs_review"},
		{TypeApprovalRecorded, `{"record":{"verdict":"approved"}}`, "approval/approved"},
		{TypeApprovalRecorded, `{"record":{"verdict":"rejected"}}`, "approval/rejected"},
		{TypeReceiptRecorded, `{"record":{"conformance":"conforming"}}`, "receipt/conforming"},
		{TypeReceiptRecorded, `{"record":{"conformance":"inconclusive"}}`, "receipt/inconclusive"},
		{TypeReceiptRecorded, `{"record":{"conformance":"violation"}}`, "receipt/violation"},
		{TypeSubjectErased, `{}`, "erasure"},
		{TypeCallCompleted, `{"record":{"decision":"deny"}}`, ""},
		{TypeExportCreated, `{}`, ""},
	} {
		if got, err := SeriesOf(tc.eventType, []byte(tc.payload)); got != tc.want || err != nil {
			t.Errorf("%s %s: %q, %v, want %q", tc.eventType, tc.payload, got, err, tc.want)
		}
	}
	for _, payload := range []string{`{}`, `{"record":{}}`, `{"record":{"decision":"maybe"}}`, `{"record":{"decision":""}}`, `{"record":{"decision":7}}`, `{"decision":"allow"}`} {
		if got, err := SeriesOf(TypeDecisionRecorded, []byte(payload)); err == nil {
			t.Errorf("%s has the series %q", payload, got)
		}
	}
}

func TestAgentOf(t *testing.T) {
	t.Parallel()
	const sealed = `"sealed":{"box":"","keyId":"sub_1","nonce":""}`
	for _, tc := range []struct {
		eventType, payload, want string
		ofDecision               bool
	}{
		{TypeDecisionRecorded, `{"record":{"subject":{"agentId":{"$committed":"ab"},"runId":"r"}},` + sealed + `}`, "sub_1", false},
		{TypeDecisionRecorded, `{"record":{"subject":{"purpose":{"$committed":"ab"},"runId":"r"}},` + sealed + `}`, "", false}, // the id of a run's data key
		{TypeDecisionRecorded, `{"record":{"subject":{"runId":"r"}}}`, "", false},
		{TypeReceiptRecorded, `{"record":{}}`, "", true},
		{TypeApprovalRecorded, `{"record":{}}`, "", true},
		{TypeSubjectErased, `{` + sealed + `}`, "", false},
		{TypeKeyIssued, `{` + sealed + `}`, "", false},
	} {
		if got, ofDecision := AgentOf(tc.eventType, []byte(tc.payload)); got != tc.want || ofDecision != tc.ofDecision {
			t.Errorf("%s %s: %q, %v, want %q, %v", tc.eventType, tc.payload, got, ofDecision, tc.want, tc.ofDecision)
		}
	}
}
