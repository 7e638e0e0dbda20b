package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// checkCmd is the executor's own check, just before it pays or calls: the pending
// call must be the one that was decided about, and the decision in force. It
// needs neither the service nor a database.
type checkCmd struct {
	Decision string `help:"The signed decision, as it was answered; - for standard input." required:"" placeholder:"FILE"`
	Approval string `help:"The signed approval of a decision that needed a review." placeholder:"FILE"`
	trustedKeys
	Call string `arg:"" help:"The pending call as JSON: {\"protocol\",\"intent\"}, or the intent alone."`
}

// Run says whether the call may be made; exit code 1 says no.
func (c *checkCmd) Run(o *output) error {
	trusted, err := c.trusted()
	if err != nil {
		return err
	}
	keys := forRecords(trusted)
	record, hash, err := c.genuine(c.Decision, assurance.DecisionType, keys)
	if err != nil {
		return c.answer(o, "", err)
	}
	decision, err := assurance.ReadDecision(record)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Decision, err)
	}
	var approval *assurance.ApprovalRecord
	if c.Approval != "" {
		record, _, err := c.genuine(c.Approval, assurance.ApprovalType, keys)
		if err != nil {
			return c.answer(o, "", err)
		}
		read, err := assurance.ReadApproval(record)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Approval, err)
		}
		approval = &read
	}
	call, err := pendingCall(c.Call, decision.Protocol)
	if err != nil {
		return fmt.Errorf("the pending call: %w", err)
	}
	if whyNot := assurance.MayExecute(call, decision, hash, approval, time.Now()); whyNot != "" {
		return c.answer(o, call.ActionHash, errors.New(whyNot))
	}
	return c.answer(o, call.ActionHash, nil)
}

// errFalse is a record that is not what it says: an answer of no.
var errFalse = errors.New("is not a good record of a trusted key")

// genuine reads a signed record and checks it with keys from elsewhere.
func (c *checkCmd) genuine(file, payloadType string, keys seal.Keys) (record jsontext.Value, hash string, err error) {
	text, err := readInput(file)
	if err != nil {
		return nil, "", err
	}
	var envelope seal.Envelope
	if err := canon.Decode(text, &envelope); err != nil {
		return nil, "", fmt.Errorf("%s: want a signed record as the service answered it: %w", file, err)
	}
	if envelope.Integrity.PayloadType != payloadType || !seal.Good(envelope.Examine(keys)) {
		return nil, "", fmt.Errorf("%s %w", file, errFalse)
	}
	record, err = canon.Canonical(envelope.Record)
	return record, envelope.Integrity.RecordHash, err
}

// pendingCall reads a call, or an intent alone of the decision's protocol.
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

// answer prints yes, or no and why. Only what is known to be wrong is a no: what
// could not be read is an error.
func (c *checkCmd) answer(o *output, actionHash string, whyNot error) error {
	if whyNot != nil && actionHash == "" && !errors.Is(whyNot, errFalse) {
		return whyNot
	}
	result := map[string]any{"execute": whyNot == nil, "assuranceActionHash": nil, "reason": nil}
	text := "EXECUTE\n"
	if actionHash != "" {
		result["assuranceActionHash"] = actionHash
	}
	if whyNot != nil {
		result["reason"], text = whyNot.Error(), "DO NOT EXECUTE  "+whyNot.Error()+"\n"
	}
	if err := o.result(result, text); err != nil {
		return err
	}
	if whyNot != nil {
		return errNo
	}
	return nil
}
