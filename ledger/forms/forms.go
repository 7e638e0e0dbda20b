// Package forms converts events, signed records and checkpoints to the formats of other tools:
//
//	CloudEvents 1.0     an event, as exports, webhooks and fanout send it
//	OCSF 1.8.0          an event as API Activity, for security monitoring (SIEM)
//	DSSE 1.0            a signed record with the signature that it already has
//	C2SP tlog-proof     a proof that an event is in the tree of a checkpoint, for offline verifiers
//	C2SP tlog-policy    the keys and witnesses that such a verifier trusts
//	COSE (RFC 9942)     the same proof as a receipt, for transparency services
//
// The conversion needs no signing key: the signature of COSE receipts is made together with that
// of a checkpoint. The event and its position in the ledger remain the evidence.
package forms

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/canon"
)

// Record contains the members of an event's signed record that formats, views and exports use. A
// missing member is empty.
type Record struct {
	DecisionID         string `json:"decisionId"`
	ReceiptID          string `json:"receiptId"`
	ApprovalID         string `json:"approvalId"`
	Protocol           string `json:"protocol"`
	Decision           string `json:"decision"`
	Verdict            string `json:"verdict"`
	Outcome            string `json:"outcome"`
	Conformance        string `json:"conformance"`
	DecisionRecordHash string `json:"decisionRecordHash"`
	Subject            struct {
		RunID   string `json:"runId"`
		AgentID any    `json:"agentId"` // not a string if it is a commitment
	} `json:"subject"`
	Policy struct {
		PolicyID   string `json:"policyId"`
		Version    int    `json:"version"`
		PolicyHash string `json:"policyHash"`
	} `json:"policy"`
	RulesetHash string `json:"rulesetHash"`
	Findings    []struct {
		RuleID string `json:"ruleId"`
		Effect string `json:"effect"`
	} `json:"findings"`
}

// ReadRecord parses the record of a payload. A payload without a record gives an empty Record.
func ReadRecord(payload []byte) (r Record, err error) {
	var p struct {
		Record jsontext.Value `json:"record"`
	}
	if err := json.Unmarshal(payload, &p); err != nil || len(p.Record) == 0 {
		return r, err
	}
	// Ignore errors: records of other types have members with these names and other JSON types.
	_ = json.Unmarshal(p.Record, &r)
	return r, nil
}

// Agent returns the id of the agent that made the request, or an empty text if it is unknown or
// not shown.
func (r Record) Agent() string {
	agent, _ := r.Subject.AgentID.(string)
	return agent
}

// Rules returns the ids of the rules that had an effect.
func (r Record) Rules() (ids []string) {
	for _, f := range r.Findings {
		if f.Effect != "info" {
			ids = append(ids, f.RuleID)
		}
	}
	return ids
}

// Event is an event of a bundle, prepared for conversion.
type Event struct {
	bundle.Shows
	Origin string // origin of the ledger
	Record Record
	Opened jsontext.Value // payload with the restored personal members
}

// NewEvent restores the opened personal members of an event in its payload, and parses the record.
func NewEvent(origin string, e bundle.Shows) (Event, error) {
	text := string(e.Payload)
	for _, o := range e.Openings {
		mark, err := o.Commitment()
		if err != nil {
			return Event{}, err
		}
		text = strings.Replace(text, mark, o.Value, 1)
	}
	r, err := ReadRecord([]byte(text))
	return Event{e, origin, r, jsontext.Value(text)}, err
}

// member returns a member of the payload with restored personal members, or nil.
func (e Event) member(name string) jsontext.Value {
	members, err := canon.Members(e.Opened)
	if err != nil {
		return nil
	}
	return members[name]
}
