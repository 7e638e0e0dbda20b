// Package recompute computes recorded verdicts again. A signed record names its input by SHA-256:
// the request of a gate receipt, or the policy and the caller's assertion of a decision. The
// package searches for this input in the given documents, evaluates it, and compares the result
// with the record. It makes no network calls and verifies no signatures.
package recompute

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/reviewtriage"
)

// Results of a computation.
const (
	Same      = "same"      // the verdict equals the recorded one
	Different = "different" // the verdict differs from the recorded one
	Unknown   = "unknown"   // the input or the engine is missing
)

// Result is the result for one signed record.
type Result struct {
	Document int    `json:"document"` // index of the document
	Path     string `json:"path"`     // JSON pointer of the record's envelope in the document; JSON lines count as an array
	Result   string `json:"result"`
	Says     string `json:"says"` // explanation in words
}

// gate lists the services whose verdicts can be computed again.
var gate = []policy.Service{actionrisk.Quick, actionsafety.Run, actionrisk.Score, reviewtriage.Service}

// Verdicts computes the verdict of every signed decision and gate receipt in the documents. A
// document is one JSON text, or JSON lines.
func Verdicts(documents ...[]byte) ([]Result, error) {
	s := search{found: map[string]jsontext.Value{}}
	for i, document := range documents {
		lines, err := canonicalLines(document)
		if err != nil {
			return nil, err
		}
		s.document = i
		for line, canonical := range lines {
			path := ""
			if len(lines) > 1 {
				path = "/" + strconv.Itoa(line)
			}
			if err := s.walk(path, canonical); err != nil {
				return nil, err
			}
		}
	}
	results := []Result{}
	for _, r := range s.records {
		kind, says := s.again(r.value)
		if kind != "" {
			results = append(results, Result{r.document, r.path, kind, says})
		}
	}
	return results, nil
}

// canonicalLines returns the canonical form of each JSON line. A document with a line that is not
// JSON counts as one text.
func canonicalLines(document []byte) (lines [][]byte, err error) {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		canonical, err := canon.Canonical(line)
		if err != nil {
			canonical, err = canon.Canonical(document)
			return [][]byte{canonical}, err
		}
		lines = append(lines, canonical)
	}
	return lines, nil
}

// search contains the parsed content of the documents.
type search struct {
	document int                       // index of the document that is being read
	found    map[string]jsontext.Value // every object in the documents, by SHA-256
	records  []placed                  // records of signed envelopes
}

// placed is a record with the position of its envelope.
type placed struct {
	document int
	path     string
	value    jsontext.Value
}

// walk stores every object in a canonical value. For a command it also stores the request with
// only this command, because the answer of the workflow repeats the command but not the request.
func (s *search) walk(path string, value jsontext.Value) error {
	switch value.Kind() {
	case '[':
		var elements []jsontext.Value
		if err := json.Unmarshal(value, &elements); err != nil {
			return err
		}
		for i, element := range elements {
			if err := s.walk(path+"/"+strconv.Itoa(i), element); err != nil {
				return err
			}
		}
	case '{':
		members, err := canon.Members(value)
		if err != nil {
			return err
		}
		s.found[canon.Hash(value)] = value
		if command, has := members["command"]; has && command.Kind() == '"' {
			request := canon.Object(map[string]jsontext.Value{"command": command})
			s.found[canon.Hash(request)] = request
		}
		if record := members["record"]; record.Kind() == '{' && members["integrity"].Kind() == '{' {
			s.records = append(s.records, placed{s.document, path, record})
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if err := s.walk(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), members[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// again computes the verdict of a record. The result is empty for a record without a verdict, such
// as an approval.
func (s *search) again(record jsontext.Value) (result, says string) {
	var kind struct {
		Schema  string `json:"schema"`
		Version string `json:"receiptVersion"`
	}
	_ = json.Unmarshal(record, &kind) // other records have neither member
	switch {
	case kind.Schema == assurance.DecisionSchema:
		return s.decision(record)
	case kind.Version == "svc-receipt-v1":
		return s.receipt(record)
	}
	return "", ""
}

// receipt evaluates the request of a gate receipt again, and compares the SHA-256 of the answer.
func (s *search) receipt(record jsontext.Value) (result, says string) {
	var r struct {
		Service    string `json:"service"`
		Version    string `json:"serviceVersion"`
		InputHash  string `json:"inputHash"`
		OutputHash string `json:"outputHash"`
		Workflow   struct {
			RulesetHash string `json:"rulesetHash"`
		} `json:"workflow"`
	}
	if err := json.Unmarshal(record, &r); err != nil {
		return Unknown, "the receipt has a format that this program does not support"
	}
	at := slices.IndexFunc(gate, func(service policy.Service) bool { return service.Label() == r.Service })
	if at < 0 || r.Version != policy.Version {
		return Unknown, "only verdicts of the gate and decisions are recomputed"
	}
	request, has := s.found[r.InputHash]
	if !has {
		return Unknown, "the documents do not contain the request: add the request that was sent"
	}
	answer, err := gate[at].EvaluateCanonical(request)
	switch _, rules := actionrisk.Ruleset(); {
	case err == nil && answer.OutputHash == r.OutputHash:
		return Same, "the verdict was recomputed from the recorded input and is the same"
	case r.Workflow.RulesetHash != rules:
		return Unknown, "the verdict was made with a rule set that this program does not have"
	}
	return Different, "the verdict was recomputed from the recorded input and is different"
}

// decision evaluates a decision again, from its intent, its policy and the caller's assertion.
func (s *search) decision(record jsontext.Value) (result, says string) {
	recorded, err := assurance.ReadDecision(record)
	if err != nil {
		return Unknown, "the decision has a format that this program does not support"
	}
	active, says := s.policy("policy", recorded.Policy.PolicyHash)
	if says != "" {
		return Unknown, says
	}
	var asserted *assurance.Rules
	if recorded.Policy.Asserted != nil {
		p, says := s.policy("assertion", recorded.Policy.Asserted.PolicyHash)
		if says != "" {
			return Unknown, says
		}
		asserted = &p.Rules
	}
	evaluation, known := assurance.Evaluate(recorded.EngineVersion, recorded.Protocol, active.Rules, asserted, recorded.Normalized)
	if !known {
		return Unknown, "the decision was made with an engine that this program does not have"
	}
	same, err := sameDecision(record, recorded, evaluation)
	switch {
	case err != nil:
		return Unknown, "the decision has a format that this program does not support"
	case same:
		return Same, "the verdict was recomputed from the recorded input and is the same"
	}
	return Different, "the verdict was recomputed from the recorded input and is different"
}

// policy returns the policy with this hash, or a text that says that it is missing.
func (s *search) policy(what, hash string) (p assurance.StoredPolicy, missing string) {
	text, has := s.found[hash]
	if has {
		var err error
		if p, err = assurance.ReadPolicy(text); err == nil {
			return p, ""
		}
	}
	return p, "the " + what + " is missing from the documents: add the policy whose SHA-256 is " + strings.ToValidUTF8(hash[:min(12, len(hash))], "") + "…"
}

// sameDecision compares verdict, findings and hashes with the record. The finding about the clock
// depends on the time of the decision, so it is taken from the record.
func sameDecision(record jsontext.Value, recorded assurance.DecisionRecord, e assurance.Evaluation) (bool, error) {
	subject, err := canon.Members(record)
	if err != nil {
		return false, err
	}
	action := assurance.ActionHash(recorded.Protocol, recorded.Normalized)
	binding, err := assurance.Binding{OrgID: recorded.OrgID, DecisionID: recorded.DecisionID, Decision: e.Decision, AssuranceActionHash: action,
		SubjectHash: canon.Hash(subject["subject"]), PolicyHash: recorded.Policy.PolicyHash, PolicyID: recorded.Policy.PolicyID, Version: recorded.Policy.Version}.Hash()
	if err != nil {
		return false, err
	}
	clock := slices.ContainsFunc(recorded.Findings, func(f assurance.Finding) bool { return f.RuleID == assurance.ClockAdjusted })
	again := recorded
	again.Decision, again.Findings, again.RulesEvaluated = e.Decision, assurance.Findings(e, clock), e.RulesEvaluated
	again.AssuranceActionHash, again.BindingHash = action, binding
	x, err := canon.Marshal(recorded)
	if err != nil {
		return false, err
	}
	y, err := canon.Marshal(again)
	return bytes.Equal(x, y), err
}
