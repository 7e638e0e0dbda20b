// Package forms writes events, signed records and checkpoints in the forms that tools of
// others read:
//
//	CloudEvents 1.0     an event, as exports, webhooks and fanout send it
//	OCSF 1.8.0          an event as API Activity, for systems that watch security (SIEM)
//	DSSE 1.0            a signed record with the signature that it already has
//	C2SP tlog-proof     that an event is in the tree of a checkpoint, for offline verifiers
//	C2SP tlog-policy    which keys and witnesses such a verifier trusts
//	COSE (RFC 9942)     the same proof as a receipt, for transparency services
//
// A form is derived. It needs no signing key: the signature of COSE receipts is made when a
// checkpoint is signed. The event and its place in the ledger remain the evidence.
package forms

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/canon"
)

// Record has the members of an event's signed record that forms and views show and that exports
// read. A member that the record does not have is empty.
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

// ReadRecord reads the record of a payload. A payload without a record is an empty Record.
func ReadRecord(payload []byte) (r Record, err error) {
	var p struct {
		Record jsontext.Value `json:"record"`
	}
	if err := json.Unmarshal(payload, &p); err != nil || len(p.Record) == 0 {
		return r, err
	}
	// Records of other types have members of these names and other kinds.
	_ = json.Unmarshal(p.Record, &r)
	return r, nil
}

// Agent returns the id of the agent that asked, or an empty text if it is not known or not shown.
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

// Event is an event as a reader of a bundle has it.
type Event struct {
	bundle.Shows
	Origin string // of the ledger
	Record Record
	Opened jsontext.Value // the payload with the personal members that the reader has put back
}

// NewEvent puts the openings of an event back into its payload and reads the record.
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

// member returns a member of the payload with the openings, nil if it has none.
func (e Event) member(name string) jsontext.Value {
	members, err := canon.Members(e.Opened)
	if err != nil {
		return nil
	}
	return members[name]
}
