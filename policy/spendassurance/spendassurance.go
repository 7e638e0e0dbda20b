// Package spendassurance combines three checks before an x402 payment: payment policy, wallet
// screening and evidence verification. The decision is the strictest of their decisions (deny,
// then needs_review, then allow). Wallet and evidence are optional, but a check that did not run
// leads to a finding and a review. So allow always means that all three checks passed.
//
// The binding hash is that of package attest for protocol x402, over the members of the payment
// that are part of an x402 intent. The caller of Evaluate signs the answer; this package has no
// key and no clock.
package spendassurance

import (
	"errors"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/evidence"
	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/policy/paymentpolicy"
	"github.com/countersign/countersign/policy/walletscreen"
)

// maxFindings is the largest number of findings in an answer; the most severe are kept.
const maxFindings = 500

// Service is the declaration of spend-assurance/run.
var Service = policy.Declare(policy.Service{
	Name:       "spend-assurance/run",
	PriceCents: 25,
	Group:      policy.GroupPayments,
	Title:      "Spend assurance",
	Summary:    "One signed preflight for an x402 payment: payment policy, wallet screening and evidence verification, combined to allow, deny or needs_review. A missing part leads to a review.",
	Example: `{"payment":{"resourceUrl":"https://api.weather.example/v1","method":"GET","scheme":"exact","network":"base","asset":"USDC",` +
		`"payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000","paymentIdentifier":"order-2026-000117"},` +
		`"policy":{"policyId":"research","version":3,"requireWalletScreening":true},` +
		`"wallet":{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","exposures":[{"category":"exchange","share":0.8}]},` +
		`"evidence":{"asOf":"2026-01-02T04:00:00Z","bundle":{"source":{"kind":"live"},"policyDecision":{"decision":"allow"},"response":{"status":200,"body":"{}"},` +
		`"challenge":{"resourceUrl":"https://api.weather.example/v1","method":"GET","network":"base","asset":"USDC","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000"},` +
		`"receipt":{"resourceUrl":"https://api.weather.example/v1","method":"GET","network":"base","asset":"USDC","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000",` +
		`"transaction":"0x5bccd9addac18a63994c85ae4317df42b1ceeba3e98dc6d428bb6406bec9145b","success":true,"settledAt":"2026-01-02T03:04:09Z"}}}}`,
	Signed:   true,
	Rules:    documented,
	PassesOn: []string{"payment-policy/decide", "wallet-screen/score", "evidence/verify"},
	Reasons:  []string{"inconsistent_input", "out_of_range"},
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Input is one payment, with what the buyer expects, allows and knows about it.
type Input struct {
	policy.Common
	Payment     paymentpolicy.Payment      `json:"payment" jsonschema_description:"The payment to judge, in the form of payment-policy/decide."`
	Expected    *paymentpolicy.Expected    `json:"expected,omitempty" jsonschema_description:"What the buyer expected."`
	Policy      *Policy                    `json:"policy,omitempty" jsonschema_description:"The limits and lists of the buyer."`
	Spend       *paymentpolicy.Spend       `json:"spend,omitempty" jsonschema_description:"Amounts spent before this payment."`
	Replay      *paymentpolicy.Replay      `json:"replay,omitempty" jsonschema_description:"Nonces and identifiers of earlier payments."`
	ServiceRisk *paymentpolicy.ServiceRisk `json:"serviceRisk,omitempty" jsonschema_description:"Risk of the seller's service."`
	Wallet      *walletscreen.Subject      `json:"wallet,omitempty" jsonschema_description:"The recipient's wallet; its address must be payment.payTo if that is given. Without it the decision is at least needs_review."`
	Evidence    *evidence.Body             `json:"evidence,omitempty" jsonschema_description:"Evidence of an earlier purchase of the same kind. Without it the decision is at least needs_review."`
}

// Policy is the payment policy with one additional member for this service.
type Policy struct {
	paymentpolicy.Policy
	RequireWalletScreening bool `json:"requireWalletScreening,omitempty" jsonschema_description:"Whether a missing wallet is a finding of high severity instead of medium."`
}

// Output is the combined decision with the answers of the parts.
type Output struct {
	Decision          string           `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"The strictest decision of the parts: deny, then needs_review, then allow."`
	Components        Components       `json:"components" jsonschema_description:"Answers of the parts."`
	Findings          []policy.Finding `json:"findings" jsonschema_description:"Findings of all parts; paths begin with /payment, /wallet or /evidence."`
	FindingsTruncated bool             `json:"findingsTruncated,omitzero" jsonschema_description:"True if there were more than 500 findings; the most severe are kept."`
	BindingHash       string           `json:"bindingHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical intent, null members left out, with its protocol."`
}

// ReceiptDecision returns the decision that the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Decision }

// Components contains the answers of the parts. A part that did not run is nil.
type Components struct {
	Payment  PaymentPart   `json:"payment" jsonschema_description:"Answer of payment-policy/decide."`
	Wallet   *WalletPart   `json:"wallet" jsonschema:"nullable" jsonschema_description:"Answer of wallet-screen/score; null if wallet was not sent."`
	Evidence *EvidencePart `json:"evidence" jsonschema:"nullable" jsonschema_description:"Answer of evidence/verify; null if evidence was not sent."`
}

// PaymentPart is the answer of the payment policy.
type PaymentPart struct {
	Decision       string                       `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"allow, deny or needs_review."`
	Findings       []paymentpolicy.Finding      `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
	RedactedRecord paymentpolicy.RedactedRecord `json:"redactedRecord" jsonschema_description:"Log entry about the payment."`
}

// WalletPart is the answer of the wallet screening.
type WalletPart struct {
	Decision  string           `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"allow, deny or needs_review."`
	RiskScore float64          `json:"riskScore" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Risk of the wallet from 0 to 100."`
	RiskLevel string           `json:"riskLevel" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"low below 25, medium below 50, high below 75, else critical."`
	Findings  []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// EvidencePart is the answer of the evidence verification.
type EvidencePart struct {
	Verdict  string           `json:"verdict" jsonschema:"enum=verified,enum=needs_review,enum=rejected,enum=insufficient_evidence" jsonschema_description:"Verdict on the evidence."`
	Findings []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Evaluate runs the parts and combines their answers. It returns the errors of the parts, with
// paths below the member of the part, and inconsistent_input if the wallet is not the recipient of
// the payment.
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	if in.Wallet != nil && in.Payment.PayTo != "" && !normal.SameAddress(in.Wallet.Address, in.Payment.PayTo) {
		return Output{}, policy.Refuse("inconsistent_input", "/wallet/address", "wallet.address must be payment.payTo")
	}
	out := Output{Decision: "allow"}
	for _, part := range []func(Input, *Output) error{payment, wallet, evidenced, bind} {
		if err := part(in, &out); err != nil {
			return Output{}, err
		}
	}
	out.Findings = policy.SortFindings(out.Findings)
	if len(out.Findings) > maxFindings {
		out.Findings, out.FindingsTruncated = out.Findings[:maxFindings], true
	}
	return out, nil
}

var ranks = map[string]int{"allow": 0, "needs_review": 1, "deny": 2}

// merge replaces the decision of the answer by another decision if that one is stricter.
func (o *Output) merge(decision string) {
	if ranks[decision] > ranks[o.Decision] {
		o.Decision = decision
	}
}

// add adds the findings of a part. It puts prefix before a path that does not begin with it.
func (o *Output) add(prefix string, findings []policy.Finding) {
	for _, f := range findings {
		if f.Path != prefix && !strings.HasPrefix(f.Path, prefix+"/") {
			f.Path = prefix + f.Path
		}
		o.Findings = append(o.Findings, f)
	}
}

// notRun adds the finding that a check did not run, and requires a review, because a missing check
// must not count as passed.
func (o *Output) notRun(f policy.Finding) {
	o.merge("needs_review")
	o.add(f.Path, []policy.Finding{f})
}

func payment(in Input, out *Output) error {
	call := paymentpolicy.Input{Payment: in.Payment, Expected: in.Expected, Spend: in.Spend, Replay: in.Replay, ServiceRisk: in.ServiceRisk}
	if in.Policy != nil {
		call.Policy = &in.Policy.Policy
	}
	decided, err := paymentpolicy.Evaluate(call)
	if err != nil {
		return err
	}
	out.Components.Payment = PaymentPart{decided.Decision, decided.Findings, decided.RedactedRecord}
	out.FindingsTruncated = decided.FindingsTruncated
	out.merge(decided.Decision)
	var findings []policy.Finding
	for _, f := range decided.Findings {
		findings = append(findings, policy.Finding{ID: f.ID, Severity: f.Severity, Path: f.Path, Message: f.Message,
			Evidence: "expected " + f.Expected + ", got " + f.Actual})
	}
	out.add("/payment", findings)
	return nil
}

func wallet(in Input, out *Output) error {
	if in.Wallet == nil {
		missing := policy.Finding{ID: "wallet_not_screened", Severity: "medium", Path: "/wallet", Message: "no wallet was given, so none was screened: send wallet with what is known about the recipient"}
		if in.Policy != nil && in.Policy.RequireWalletScreening {
			missing.Severity = "high"
		}
		out.notRun(missing)
		return nil
	}
	screened, err := walletscreen.Evaluate(walletscreen.Input{Subject: *in.Wallet})
	if err != nil {
		return below("/wallet", err)
	}
	out.Components.Wallet = &WalletPart{screened.Decision, screened.RiskScore, screened.RiskLevel, screened.Findings}
	out.merge(screened.Decision)
	out.add("/wallet", screened.Findings)
	return nil
}

func evidenced(in Input, out *Output) error {
	if in.Evidence == nil {
		out.notRun(policy.Finding{ID: "evidence_not_verified", Severity: "medium", Path: "/evidence", Message: "no evidence was given, so none was verified: send evidence with its bundle"})
		return nil
	}
	verified, err := evidence.Evaluate(evidence.Input{Body: *in.Evidence})
	if err != nil {
		return below("/evidence", err)
	}
	out.Components.Evidence = &EvidencePart{verified.Verdict, verified.Findings}
	out.merge(verified.Decision())
	out.add("/evidence", verified.Findings)
	return nil
}

// below changes the path of a part's error to the path in this request.
func below(prefix string, err error) error {
	var refusal *policy.Error
	if errors.As(err, &refusal) {
		return policy.Refuse(refusal.Code, prefix+refusal.Path, prefix[1:]+"."+refusal.Message)
	}
	return err
}

func bind(in Input, out *Output) (err error) {
	out.BindingHash, err = attest.BindingHash("x402", in.Payment.Intent)
	return err
}
