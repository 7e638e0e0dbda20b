// Package paymentpolicy judges an x402 payment before the agent signs it. It checks whether the
// payment is bound to the requested resource, costs the expected amount, goes to a recipient that
// the buyer's policy allows, repeats an earlier payment, or sends secrets. The answer is allow,
// deny or needs_review, with every rule that did not pass.
//
// The package fetches and stores nothing: the caller sends earlier spending and used nonces. A
// rule that has nothing to compare is skipped. A limit that cannot be checked (a limit in US
// dollars for an unknown token) leads to needs_review, never to allow.
//
// URLs, networks, addresses and amounts have the normal forms of package normal. Amounts are
// compared exactly, as the decimal numbers that the caller wrote.
package paymentpolicy

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Service is the declaration of payment-policy/decide.
var Service = policy.Declare(policy.Service{
	Name:       "payment-policy/decide",
	PriceCents: 5,
	Group:      policy.GroupPayments,
	Title:      "Payment policy",
	Summary:    "Checks one x402 payment before it is signed: resource binding, price, recipient, limits, replay and leaked secrets. The decision is allow, deny or needs_review.",
	Example: `{"payment":{"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact","network":"base",` +
		`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000",` +
		`"paymentPayloadResource":"https://api.weather.example/v1/forecast?city=Oslo","paymentIdentifier":"order-2026-000117","maxTimeoutSeconds":60},` +
		`"expected":{"amountUnits":"40000"},` +
		`"policy":{"policyId":"research","version":3,"maxUsdPerTransaction":0.1,"allowedNetworks":["base"],"allowedHosts":["api.weather.example"]}}`,
	Rules:   documented,
	Reasons: []string{"out_of_range"},
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Effects of a rule, the weakest first. The strongest effect determines the decision.
const (
	none   = "none"
	review = "review"
	deny   = "deny"
)

// fault is one violation of a rule. Its texts contain no secrets. effect and severity are empty if
// they are those of the rule.
type fault struct {
	path, expected, actual, message string
	effect, severity                string // empty: as in the rule
}

// rule is one entry of the catalogue. judge returns the violations. compared is false if the rule
// had nothing to compare.
type rule struct {
	id, effect, severity string
	judge                func(*call) (faults []fault, compared bool)
}

// call is a request that was read, with its values in normal form.
type call struct {
	Input
	policy      Policy // the zero policy if the request has none
	url         normal.URL
	network     string   // CAIP-2 name, or as sent if unknown
	units       *big.Int // nil if absent
	usd         *big.Rat // amount in US dollars; nil if unknown
	expectedURL *normal.URL
	leaks       *leaks // nil until leaksOf has scanned the texts

	allowedHosts, blockedHosts, allowedFacilitators []normal.HostEntry
}

// Evaluate judges one payment. It refuses a request that violates its schema, and a URL or a host
// entry that has no normal form (out_of_range).
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	c, err := newCall(in)
	if err != nil {
		return Output{}, err
	}
	var out Output
	for _, r := range catalogue {
		faults, compared := r.judge(c)
		outcome := "pass"
		switch {
		case len(faults) > 0:
			outcome = "fail"
		case !compared:
			outcome = "skipped"
		}
		out.Checks = append(out.Checks, Check{r.id, outcome})
		for _, f := range faults {
			out.Findings = append(out.Findings, Finding{r.id, cmp.Or(f.effect, r.effect), cmp.Or(f.severity, r.severity), f.path, f.expected, f.actual, f.message, policy.RulePath(r.id)})
		}
	}
	if in.Policy != nil {
		out.PolicyID, out.PolicyVersion = &in.Policy.PolicyID, &in.Policy.Version
	}
	out.Decision = decisionOf(out.Findings)
	sortFindings(out.Findings)
	out.AmountUSD = c.amountUSD()
	out.RedactedRecord = c.redacted(out)
	if len(out.Findings) > maxFindings {
		out.Findings, out.FindingsTruncated = out.Findings[:maxFindings], true
	}
	if out.Findings == nil {
		out.Findings = []Finding{}
	}
	return out, nil
}

func newCall(in Input) (*call, error) {
	c := &call{Input: in, network: normal.Network(in.Payment.Network)}
	if in.Policy != nil {
		c.policy = *in.Policy
	}
	var err error
	switch in.Payment.Metadata.Kind() {
	case '{':
	case 'n':
		c.Payment.Metadata = nil
	default:
		if in.Payment.Metadata != nil {
			return nil, policy.Refuse("wrong_type", "/payment/metadata", "payment.metadata must be an object")
		}
	}
	if c.url, err = webURL(in.Payment.ResourceURL, "/payment/resourceUrl"); err != nil {
		return nil, err
	}
	if in.Payment.AmountUnits != "" {
		if c.units, err = normal.Units(in.Payment.AmountUnits); err != nil {
			return nil, policy.Refuse("out_of_range", "/payment/amountUnits", "payment.amountUnits "+normal.UnitsAllowed)
		}
	}
	if in.Expected != nil && in.Expected.ResourceURL != "" {
		u, err := webURL(in.Expected.ResourceURL, "/expected/resourceUrl")
		if err != nil {
			return nil, err
		}
		c.expectedURL = &u
	}
	for _, list := range []struct {
		name    string
		entries []string
		into    *[]normal.HostEntry
	}{
		{"allowedHosts", c.policy.AllowedHosts, &c.allowedHosts},
		{"blockedHosts", c.policy.BlockedHosts, &c.blockedHosts},
		{"allowedFacilitators", c.policy.AllowedFacilitators, &c.allowedFacilitators},
	} {
		if *list.into, err = hostEntries(list.entries, "/policy/"+list.name); err != nil {
			return nil, err
		}
	}
	c.usd = usdOf(c.network, in.Payment.Asset, c.units, in.Payment.AmountUSD)
	return c, nil
}

// webURL parses an http or https URL. It accepts numeric hosts such as "127.1", which the rule
// private_network_host judges.
func webURL(raw, path string) (normal.URL, error) {
	u, err := normal.ParseURLAnyHost(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		name := strings.ReplaceAll(path[1:], "/", ".")
		return u, policy.Refuse("out_of_range", path, name+" must be an absolute http or https URL")
	}
	return u, nil
}

func hostEntries(entries []string, path string) ([]normal.HostEntry, error) {
	var parsed []normal.HostEntry
	for _, entry := range entries {
		e, err := normal.ParseHostEntry(entry)
		if err != nil {
			return nil, policy.Refuse("out_of_range", path, strings.ReplaceAll(path[1:], "/", ".")+" must have only entries of the form host, *.domain or host:port")
		}
		parsed = append(parsed, e)
	}
	return parsed, nil
}

// usdOf returns the amount in US dollars: the stated amount, or the value of the units if the
// asset is USDC, or nil.
func usdOf(network, asset string, units *big.Int, stated *float64) *big.Rat {
	switch {
	case stated != nil:
		return normal.Float(*stated)
	case units != nil && asset != "" && normal.IsUSDC(network, asset):
		return normal.Scale(units, normal.USDCDecimals)
	}
	return nil
}

func (c *call) amountUSD() *float64 {
	if c.usd == nil {
		return nil
	}
	f, _ := c.usd.Float64()
	f = policy.Sig12(f)
	return &f
}

// decisionOf returns the decision for the strongest effect: deny, then needs_review, then allow.
func decisionOf(findings []Finding) string {
	decision := "allow"
	for _, f := range findings {
		switch f.Effect {
		case deny:
			return "deny"
		case review:
			decision = "needs_review"
		}
	}
	return decision
}

var severities = []string{"critical", "high", "medium", "low", "info"}

// sortFindings sorts findings by severity, highest first, then by id, then by path.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
	})
}

// CatalogueIDs returns the ids of all rules, in the order of the checks.
func CatalogueIDs() []string {
	ids := make([]string, len(catalogue))
	for i, r := range catalogue {
		ids[i] = r.id
	}
	return ids
}
