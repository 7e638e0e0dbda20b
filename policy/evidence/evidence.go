// Package evidence verifies the artifacts of an agent's purchase: the seller's challenge, the
// settlement receipt, the buyer's policy decision and the seller's response. It checks whether
// they belong to the same purchase, are recent, match the stated hashes, and are not made up. It
// fetches nothing and queries no chain.
//
// Every rule has an outcome (pass, fail, missing, skipped) and an effect. The verdict follows from
// the worst effect: reject gives rejected, insufficient gives insufficient_evidence, review gives
// needs_review, none gives verified. A rule whose artifact is absent is skipped, because another
// rule reports the absence.
//
// Hashes cover the artifacts as they were sent, in canonical form, including members that are
// null.
package evidence

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Service is the declaration of evidence/verify.
var Service = policy.Declare(policy.Service{
	Name:       "evidence/verify",
	PriceCents: 5,
	Group:      policy.GroupPayments,
	Title:      "Evidence verification",
	Summary:    "Verifies the evidence of an agent's purchase: challenge, receipt, policy decision and response must agree, be recent and genuine, and match their hashes. The answer has the outcome of each rule.",
	Example: `{"bundle":{"challenge":{"resourceUrl":"https://api.weather.example/v1","method":"GET","network":"base","asset":"USDC",` +
		`"payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000","issuedAt":"2026-01-02T03:04:05Z"},` +
		`"receipt":{"network":"eip155:8453","payTo":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","amountUnits":"40000","success":true,"settledAt":"2026-01-02T03:04:08Z"},` +
		`"source":{"kind":"live"}},"asOf":"2026-01-02T04:00:00Z"}`,
	Rules: documented,
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Effects of a rule, the weakest first.
const (
	none         = "none"
	review       = "review"
	insufficient = "insufficient"
	reject       = "reject"
)

// Evaluate verifies one bundle. It refuses a request that violates its schema, and an invalid time
// (invalid_date).
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	c, err := newCase(in)
	if err != nil {
		return Output{}, err
	}
	out := Output{Rules: []Rule{}}
	for _, r := range catalogue {
		said := r.judge(c)
		out.Rules = append(out.Rules, Rule{r.id, said.outcome, said.effect, said.expected, said.actual, said.detail})
	}
	out.Verdict, out.Confidence = sumUp(out.Rules)
	out.Findings = findings(out.Rules)
	hash, err := hashOf(in.Bundle.raw, in.Bundle)
	if err != nil {
		return Output{}, policy.Refuse("invalid_json", "/bundle", "bundle has no canonical form")
	}
	out.BundleHash = hash
	return out, nil
}

// hashOf returns the hash of an artifact. raw is its text as sent; if it is nil, because the
// artifact was built in Go, hashOf encodes value.
func hashOf(raw jsontext.Value, value any) (string, error) {
	var canonical []byte
	var err error
	if raw != nil {
		canonical, err = canon.CanonicalChecked(raw) // canon.Decode has already checked the text
	} else {
		canonical, err = canon.Marshal(value)
	}
	return canon.Hash(canonical), err
}

// sumUp returns the verdict, and the share of the rules that passed among those that were not
// skipped.
func sumUp(rules []Rule) (verdict string, confidence float64) {
	passed, judged := 0, 0
	effects := map[string]bool{}
	for _, r := range rules {
		effects[r.Effect] = true
		if r.Outcome != "skipped" {
			judged++
		}
		if r.Outcome == "pass" {
			passed++
		}
	}
	if judged > 0 {
		confidence = policy.Sig12(float64(passed) / float64(judged))
	}
	switch {
	case effects[reject]:
		return "rejected", confidence
	case effects[insufficient]:
		return "insufficient_evidence", confidence
	case effects[review]:
		return "needs_review", confidence
	}
	return "verified", confidence
}

var severities = map[string]string{reject: "critical", insufficient: "high", review: "medium"}

func findings(rules []Rule) []policy.Finding {
	var all []policy.Finding
	for _, r := range rules {
		if r.Effect != none {
			all = append(all, policy.Finding{ID: r.ID, Severity: severities[r.Effect], Message: r.Detail, Path: paths[r.ID]})
		}
	}
	return policy.SortFindings(all)
}

// RuleIDs returns the ids of all rules, in the order of answers.
func RuleIDs() []string {
	var ids []string
	for _, r := range catalogue {
		ids = append(ids, r.id)
	}
	return slices.Clip(ids)
}
