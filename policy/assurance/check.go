package assurance

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// PendingCall is a call that an executor is about to make, reduced to its protocol and the hash of
// its normal form. It is read from {"protocol", "intent"}, as in the request of a decision.
type PendingCall struct {
	Protocol   string
	ActionHash string
}

// ParseCall reads a pending call strictly and computes the hash of its action.
func ParseCall(text []byte) (PendingCall, error) {
	var r DecisionRequest
	err := parse(text, []field{
		{"protocol", true, oneOf(&r.Protocol, X402, MCP)},
		{"intent", true, func(v value) error {
			in := &intentReader{protocol: protocolOf(text, v)}
			if err := in.read(v); err != nil {
				return err
			}
			return in.finish(&r)
		}},
	})
	if err != nil {
		return PendingCall{}, err
	}
	return PendingCall{r.Protocol, ActionHash(r.Protocol, r.Normalized)}, nil
}

// MayExecute checks whether an organization may make a pending call under a decision. approval is
// the approval of the decision, or nil. If the call is allowed, MayExecute returns the time until
// which it may be made, and an empty whyNot; otherwise whyNot gives the reason.
//
// The caller must make three more checks: that the signatures of the decision and the approval are
// valid, that neither was used before, and, by asking the service, that no newer policy has
// revoked them.
func MayExecute(call PendingCall, orgID string, decision DecisionRecord, decisionRecordHash string, approval *ApprovalRecord, now time.Time) (validUntil, whyNot string) {
	if decision.OrgID != orgID {
		return "", "the decision belongs to another organization"
	}
	if call.Protocol != decision.Protocol || call.ActionHash != decision.AssuranceActionHash {
		return "", "the pending call is not the one that was decided about"
	}
	until := decision.ValidUntil
	switch {
	case decision.Decision == Deny:
		return "", "the decision is deny"
	case decision.Decision == Allow:
	case decision.Decision != NeedsReview || approval == nil:
		return "", "the decision needs an approval"
	case approval.DecisionID != decision.DecisionID || approval.BindingHash != decision.BindingHash || approval.DecisionRecordHash != decisionRecordHash:
		return "", "the approval is for another decision"
	case approval.Verdict != VerdictApproved:
		return "", "a person rejected the call"
	default:
		until = &approval.ValidUntil
	}
	if until == nil {
		return "", "the decision has no valid time of expiry"
	}
	if end, err := ReadStamp(*until); err != nil || now.After(end) {
		return "", "the decision or approval has expired"
	}
	return *until, ""
}

// ReadDecision reads a decision record. It returns an error for a record with another schema.
func ReadDecision(record jsontext.Value) (DecisionRecord, error) {
	var d DecisionRecord
	if err := canon.Decode(record, &d); err != nil {
		return DecisionRecord{}, err
	}
	if d.Schema != DecisionSchema {
		return DecisionRecord{}, policy.Refuse("invalid_enum", "/schema", "schema is not that of a decision")
	}
	return d, nil
}

// DecisionSummary has the members of a decision record that are shown in lists of decisions.
type DecisionSummary struct {
	DecisionID, IssuedAt, Protocol, Decision, RunID string

	PolicyID      string
	PolicyVersion int64
	RuleIDs       []string // in the order of the findings
}

// ReadSummary reads the summary from a canonical decision record, in about a quarter of the time
// of ReadDecision. It also accepts records in which the members with personal data are encrypted.
func ReadSummary(record jsontext.Value) (s DecisionSummary, err error) {
	var findings []struct {
		RuleID string `json:"ruleId"`
	}
	for _, member := range []struct {
		path []string
		into any
	}{
		{[]string{"decisionId"}, &s.DecisionID}, {[]string{"issuedAt"}, &s.IssuedAt}, {[]string{"protocol"}, &s.Protocol},
		{[]string{"decision"}, &s.Decision}, {[]string{"subject", "runId"}, &s.RunID}, {[]string{"findings"}, &findings},
		{[]string{"policy", "policyId"}, &s.PolicyID}, {[]string{"policy", "version"}, &s.PolicyVersion},
	} {
		start, end, _ := canon.Find(record, member.path...)
		if err := json.Unmarshal(record[start:end], member.into); err != nil {
			return s, fmt.Errorf("%s: %w", strings.Join(member.path, "/"), err)
		}
	}
	s.RuleIDs = make([]string, len(findings))
	for i, f := range findings {
		s.RuleIDs[i] = f.RuleID
	}
	return s, nil
}

// ReadApproval reads an approval record. It returns an error for a record with another schema.
func ReadApproval(record jsontext.Value) (ApprovalRecord, error) {
	var a ApprovalRecord
	if err := canon.Decode(record, &a); err != nil {
		return ApprovalRecord{}, err
	}
	if a.Schema != ApprovalSchema {
		return ApprovalRecord{}, policy.Refuse("invalid_enum", "/schema", "schema is not that of an approval")
	}
	return a, nil
}
