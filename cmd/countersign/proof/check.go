package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Check is the command that a program runs right before it pays or calls. It checks that the
// decision is about the pending call, belongs to this organization, and is still valid. It needs
// no database. It asks the service only whether an emergency stop has ended the decision.
type Check struct {
	Decision string `help:"The signed decision, as the service returned it; - for standard input." required:"" placeholder:"FILE"`
	Approval string `help:"The signed approval of a decision that needed a review." placeholder:"FILE"`
	Org      string `help:"Id of the organization whose decision it must be: equal calls of two organizations have equal action hashes." required:"" env:"COUNTERSIGN_ORG" placeholder:"ORG_ID"`
	URL      string `name:"url" help:"Service to ask whether an emergency stop or another policy has ended the decision. Without this flag, check cannot notice a stop." env:"COUNTERSIGN_URL" placeholder:"URL"`
	Token    string `help:"Organization token (svco_...) with the scope assurance:read, for --url." env:"COUNTERSIGN_TOKEN" secret:"" placeholder:"TOKEN"`
	State    string `help:"File that lists the decisions used on this machine. Default: used.json in the user's state folder." placeholder:"FILE"`
	setting.TrustedKeys
	Call string `arg:"" help:"The pending call as JSON: {\"protocol\",\"intent\"}, or the intent alone."`
}

// checkAnswer is the result of check.
type checkAnswer struct {
	Execute     bool    `json:"execute"`
	OrgID       string  `json:"orgId"`
	ActionHash  *string `json:"assuranceActionHash"`
	Reason      *string `json:"reason"`
	ValidUntil  *string `json:"validUntil"`
	StopChecked bool    `json:"stopChecked"` // true if the service was asked
	UsedIn      *string `json:"usedIn"`      // path of the file in which the decision is recorded as used
}

// Run prints whether the call may be made. The exit code is 1 if not.
func (c *Check) Run(ctx context.Context, o *gate.Output) error {
	if !strings.HasPrefix(c.Org, "org_") {
		return errors.New("--org must be the id of an organization (org_...)")
	}
	said := checkAnswer{OrgID: c.Org}
	whyNot, err := c.check(ctx, o.Account(), &said)
	if err != nil {
		return err
	}
	if said.Execute = whyNot == ""; !said.Execute {
		said.Reason = &whyNot
	}
	if err := o.Result(said, o.Wrapped("%s", said.text())); err != nil {
		return err
	}
	if !said.Execute {
		return screen.ErrNo
	}
	return nil
}

// check returns the reason why the call must not be made, or "" if it may be made. It checks the
// files first, then asks the service, and records the decision as used in the last step, because
// only that changes something. An error means that a check could not be made.
func (c *Check) check(ctx context.Context, user guard.Account, said *checkAnswer) (whyNot string, err error) {
	trusted, err := c.Trusted()
	if err != nil {
		return "", err
	}
	keys := setting.ForRecords(trusted)
	record, hash, err := c.genuine(c.Decision, assurance.DecisionType, keys)
	if err != nil {
		return refusedRecord(err)
	}
	decision, err := assurance.ReadDecision(record)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Decision, err)
	}
	var approval *assurance.ApprovalRecord
	if c.Approval != "" {
		record, _, err := c.genuine(c.Approval, assurance.ApprovalType, keys)
		if err != nil {
			return refusedRecord(err)
		}
		read, err := assurance.ReadApproval(record)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.Approval, err)
		}
		approval = &read
	}
	// Decision and approval must permit this call at this time.
	call, err := pendingCall(c.Call, decision.Protocol)
	if err != nil {
		return "", fmt.Errorf("the pending call: %w", err)
	}
	said.ActionHash = &call.ActionHash
	until, whyNot := assurance.MayExecute(call, c.Org, decision, hash, approval, time.Now())
	if whyNot != "" {
		return whyNot, nil
	}
	said.ValidUntil = &until
	// An emergency stop must not have ended the decision; only the service can tell.
	if c.URL != "" {
		if whyNot, err = c.ask(ctx, decision, hash, approval); err != nil || whyNot != "" {
			return whyNot, err
		}
		said.StopChecked = true
	}
	// The decision must not have been used on this machine. Record that it is used now.
	used := usedDecisions(c.State)
	if used == "" {
		if used, err = ownUsedDecisions(user); err != nil {
			return "", err
		}
	}
	first, err := used.add(decision.DecisionID, time.Now())
	if err != nil || !first {
		return "the decision was already used on this machine, by this user", err
	}
	said.UsedIn = (*string)(&used)
	return "", nil
}

// refusedRecord returns the reason to refuse the call if a record is not valid. Other errors, for
// example a file that cannot be read, it returns as errors.
func refusedRecord(err error) (whyNot string, _ error) {
	if errors.Is(err, errFalse) {
		return err.Error(), nil
	}
	return "", err
}

// text returns the result as text.
func (c checkAnswer) text() string {
	if !c.Execute {
		return "DO NOT EXECUTE  " + *c.Reason + "\norganization    " + c.OrgID + "\n"
	}
	stop := "STOP NOT CHECKED, valid until " + *c.ValidUntil
	if c.StopChecked {
		stop = "no stop, valid until " + *c.ValidUntil
	}
	return "EXECUTE         once: a second check of this decision is refused for this user on this machine; other users and machines do not know about this check\n" +
		"organization    " + c.OrgID + "\n" + stop + "\n"
}

// errFalse is the error for a record that no trusted key has signed in this form.
var errFalse = errors.New("is not a valid record signed with a trusted key")

// genuine reads a signed record from a file and verifies it with keys that the user trusts, never
// with keys in the file itself.
func (c *Check) genuine(file, payloadType string, keys seal.Keys) (record jsontext.Value, hash string, err error) {
	text, err := files.ReadInput(file)
	if err != nil {
		return nil, "", err
	}
	var envelope seal.Envelope
	if err := canon.Decode(text, &envelope); err != nil {
		return nil, "", fmt.Errorf("%s must be a signed record as the service returned it: %w", file, err)
	}
	if envelope.Integrity.PayloadType != payloadType || !seal.Good(envelope.Examine(keys)) {
		return nil, "", fmt.Errorf("%s %w", file, errFalse)
	}
	record, err = canon.Canonical(envelope.Record)
	return record, envelope.Integrity.RecordHash, err
}

// pendingCall parses a call. If the text is only an intent, it belongs to the decision's protocol.
func pendingCall(text, protocol string) (assurance.PendingCall, error) {
	members, err := canon.Canonical([]byte(text))
	if err != nil {
		return assurance.PendingCall{}, err
	}
	if whole, err := canon.Members(members); err == nil && whole["intent"] == nil {
		text = `{"protocol":"` + protocol + `","intent":` + text + `}`
	}
	return assurance.ParseCall([]byte(text))
}
