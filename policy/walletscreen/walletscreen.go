// Package walletscreen computes a risk score of 0 to 100, a level and a decision from a caller's
// evidence about a wallet: sanctions hits, exposures, labels of counterparties, transfers, and the
// declared source of funds. It fetches no chain data and no sanctions lists.
//
// Each piece of evidence is a signal with a strength s from 0 to 1: the weight of its category,
// reduced with the number of hops. The score is the probability that at least one of independent
// signals is right: 100 * (1 - product of (1 - s)). For example a fuzzy list hit of confidence 0.5
// (s = 0.30), a mixer two hops away with a quarter of the volume (s = 0.168) and an unverified
// gift (s = 0.05) give 100 * (1 - 0.70*0.832*0.95) = 44.67: medium, needs_review.
package walletscreen

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Service is the declaration of wallet-screen/score.
var Service = policy.Declare(policy.Service{
	Name:       "wallet-screen/score",
	PriceCents: 10,
	Group:      policy.GroupPayments,
	Title:      "Wallet screen",
	Summary:    "Scores a wallet's risk from 0 to 100 by sanctions hits, exposures, labels, transfers and source of funds that the caller sends, and shows the evidence of each signal.",
	Example: `{"address":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","network":"eip155:1",` +
		`"sanctionsHits":[{"list":"OFAC SDN","matchType":"fuzzy","confidence":0.5}],` +
		`"exposures":[{"category":"mixer","hops":2,"share":0.25}],"fundSource":{"declared":"gift","verified":false}}`,
	Rules: documented,
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Input is one wallet with the evidence about it.
type Input struct {
	policy.Common
	Subject
}

// Subject is the request without the members of policy.Common. Package spendassurance embeds it.
type Subject struct {
	Address        string         `json:"address" jsonschema:"minLength=3,maxLength=128,pattern=^[A-Za-z0-9:._-]+$" jsonschema_description:"Address of the wallet to screen."`
	Network        string         `json:"network,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Network of the address, for example eip155:8453."`
	SanctionsHits  []SanctionsHit `json:"sanctionsHits,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Entries of sanctions lists that match the wallet."`
	Exposures      []Exposure     `json:"exposures,omitempty" jsonschema:"maxItems=500" jsonschema_description:"Categories of wallets from which the wallet received funds or to which it sent them."`
	Counterparties []Counterparty `json:"counterparties,omitempty" jsonschema:"maxItems=500" jsonschema_description:"Labelled addresses with which the wallet had transfers."`
	Transfers      []Transfer     `json:"transfers,omitempty" jsonschema:"maxItems=2000" jsonschema_description:"Transfers of the wallet."`
	FundSource     *FundSource    `json:"fundSource,omitempty" jsonschema_description:"Source of the funds that the owner declares."`
}

// SanctionsHit is one match with an entry of a sanctions list.
type SanctionsHit struct {
	List       string   `json:"list" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Name of the list, for example OFAC-SDN."`
	MatchType  string   `json:"matchType" jsonschema:"minLength=1,enum=exact,enum=fuzzy" jsonschema_description:"exact: the address itself is listed; fuzzy: a name or a cluster of addresses is similar."`
	Confidence *float64 `json:"confidence,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Confidence of a fuzzy match, from 0 to 1; default 1."`
	Hops       int      `json:"hops,omitempty" jsonschema:"minimum=0,maximum=10" jsonschema_description:"Transfers between the wallet and the listed one; default 0, the wallet itself."`
	Entity     string   `json:"entity,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Person or organization that is listed."`
	Program    string   `json:"program,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Sanctions programme of the entry."`
}

// Exposure is the share of the wallet's volume that comes from, or goes to, a category of wallets.
type Exposure struct {
	Category  string   `json:"category" jsonschema:"minLength=1,enum=sanctions,enum=terrorism_financing,enum=child_abuse,enum=ransomware,enum=stolen_funds,enum=darknet_market,enum=mixer,enum=scam,enum=fraud_shop,enum=high_risk_jurisdiction,enum=high_risk_exchange,enum=gambling,enum=p2p_exchange,enum=privacy_protocol,enum=bridge,enum=unhosted_wallet,enum=unknown,enum=defi,enum=exchange,enum=mining,enum=payment_processor,enum=merchant" jsonschema_description:"Kind of the funds."`
	Direction string   `json:"direction,omitempty" jsonschema:"enum=incoming,enum=outgoing" jsonschema_description:"Whether the funds come into the wallet or go out of it. Default incoming."`
	Hops      *int     `json:"hops,omitempty" jsonschema:"minimum=0,maximum=10" jsonschema_description:"Default 1."`
	Share     *float64 `json:"share,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Share of the wallet's volume, from 0 to 1."`
	AmountUSD *float64 `json:"amountUsd,omitempty" jsonschema:"minimum=0" jsonschema_description:"Amount in US dollars. It does not change the score."`
}

// Counterparty is a labelled address with which the wallet had transfers.
type Counterparty struct {
	Address string `json:"address" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Address of the counterparty."`
	Label   string `json:"label" jsonschema:"minLength=1,enum=sanctions,enum=terrorism_financing,enum=child_abuse,enum=ransomware,enum=stolen_funds,enum=darknet_market,enum=mixer,enum=scam,enum=fraud_shop,enum=high_risk_jurisdiction,enum=high_risk_exchange,enum=gambling,enum=p2p_exchange,enum=privacy_protocol,enum=bridge,enum=unhosted_wallet,enum=unknown,enum=defi,enum=exchange,enum=mining,enum=payment_processor,enum=merchant" jsonschema_description:"Category of the counterparty."`
	Hops    *int   `json:"hops,omitempty" jsonschema:"minimum=0,maximum=10" jsonschema_description:"Default 1."`
}

// Transfer is one transfer to or from the wallet.
type Transfer struct {
	Direction    string  `json:"direction" jsonschema:"minLength=1,enum=incoming,enum=outgoing" jsonschema_description:"Into the wallet or out of it."`
	AmountUSD    float64 `json:"amountUsd" jsonschema:"minimum=0" jsonschema_description:"Amount in US dollars."`
	Timestamp    string  `json:"timestamp" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"Time of the transfer, RFC 3339 with zone."`
	Counterparty string  `json:"counterparty,omitempty" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Address of the other side."`
	TxHash       string  `json:"txHash,omitempty" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Hash of the transaction."`
}

// FundSource is the source of funds that the wallet's holder declares.
type FundSource struct {
	Declared string `json:"declared" jsonschema:"minLength=1,enum=salary,enum=business,enum=exchange_withdrawal,enum=mining,enum=investment,enum=gift,enum=other,enum=unknown" jsonschema_description:"Source of funds that the owner declares."`
	Verified bool   `json:"verified" jsonschema_description:"Whether the declared source was verified. Default false."`
}

// Output is the score with its signals.
type Output struct {
	Address         string           `json:"address" jsonschema_description:"The address as sent."`
	Network         *string          `json:"network" jsonschema:"nullable" jsonschema_description:"The network as sent."`
	RiskScore       float64          `json:"riskScore" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Risk from 0 to 100, with two decimals."`
	RiskLevel       string           `json:"riskLevel" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"low below 25, medium below 50, high below 75, else critical."`
	Decision        string           `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"deny, needs_review or allow."`
	Recommendation  string           `json:"recommendation" jsonschema:"enum=block,enum=review,enum=proceed" jsonschema_description:"Recommended next step for the decision."`
	Signals         []Signal         `json:"signals" jsonschema_description:"Signals, the strongest first; equal ones in the order of the request."`
	CategorySummary []CategoryTotal  `json:"categorySummary" jsonschema_description:"Signals by category, the strongest category first; equal ones by name."`
	Coverage        Coverage         `json:"coverage" jsonschema_description:"Number of items of each kind in the request."`
	Limitations     []string         `json:"limitations" jsonschema_description:"Checks that were not made."`
	Findings        []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// ReceiptDecision returns the decision that the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Decision }

// Signal is one piece of evidence. Points is 100 times its strength.
type Signal struct {
	ID       string  `json:"id" jsonschema_description:"sanctions_exact, sanctions_fuzzy, exposure, counterparty, structuring, rapid_pass_through, fan_in or fund_source."`
	Source   string  `json:"source" jsonschema_description:"JSON pointer of the evidence in the request."`
	Category *string `json:"category" jsonschema:"nullable" jsonschema_description:"Kind of the funds, where the signal has one."`
	Hops     *int    `json:"hops" jsonschema:"nullable" jsonschema_description:"Number of transfers between the wallet and the source; null if unknown."`
	Strength float64 `json:"strength" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Strength of the signal, from 0 to 1."`
	Points   float64 `json:"points" jsonschema:"minimum=0,maximum=100" jsonschema_description:"100 times strength."`
}

// CategoryTotal contains the number and the largest strength of the signals of one category.
type CategoryTotal struct {
	Category    string  `json:"category" jsonschema_description:"Kind of the funds."`
	MaxStrength float64 `json:"maxStrength" jsonschema_description:"The strongest signal of the kind, 0 to 1."`
	Count       int     `json:"count" jsonschema_description:"Number of signals of the kind."`
}

// Coverage counts the pieces of evidence in the request.
type Coverage struct {
	SanctionsHits  int  `json:"sanctionsHits" jsonschema_description:"Number sent."`
	Exposures      int  `json:"exposures" jsonschema_description:"Number sent."`
	Counterparties int  `json:"counterparties" jsonschema_description:"Number sent."`
	Transfers      int  `json:"transfers" jsonschema_description:"Number sent."`
	FundSource     bool `json:"fundSource" jsonschema_description:"Whether one was sent."`
}

// weights maps every category to its weight, from 0 (harmless) to 1. The tags of Exposure and
// Counterparty list the same names.
var weights = map[string]float64{
	"sanctions": 1, "terrorism_financing": 1, "child_abuse": 1, "ransomware": .9, "stolen_funds": .85, "darknet_market": .8,
	"mixer": .7, "scam": .7, "fraud_shop": .7, "high_risk_jurisdiction": .6, "high_risk_exchange": .45, "gambling": .3,
	"p2p_exchange": .25, "privacy_protocol": .5, "bridge": .15, "unhosted_wallet": .1, "unknown": .1, "defi": .05,
	"exchange": 0, "mining": 0, "payment_processor": 0, "merchant": 0,
}

// decay returns the part of a signal's strength that remains after a number of hops.
func decay(hops int) float64 {
	table := []float64{1, .8, .4, .2, .1}
	if hops < 0 {
		hops = 0
	}
	if hops < len(table) {
		return table[hops]
	}
	return .05
}

// Evaluate scores one wallet. It refuses a request that violates its schema, and an invalid time
// (invalid_date).
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	var e evidence
	e.sanctions(in.SanctionsHits)
	e.exposures(in.Exposures)
	e.counterparties(in.Counterparties)
	if err := e.transfers(in.Transfers); err != nil {
		return Output{}, err
	}
	e.fundSource(in.FundSource)
	coverage := Coverage{len(in.SanctionsHits), len(in.Exposures), len(in.Counterparties), len(in.Transfers), in.FundSource != nil}
	if coverage == (Coverage{}) {
		e.find("insufficient_evidence", "medium", "", "no evidence about this wallet was given")
	}
	out := Output{
		Address: in.Address, RiskScore: e.score(), Coverage: coverage,
		Limitations: []string{"caller_supplied_data_only", "no_chain_lookup"},
	}
	if in.Network != "" {
		out.Network = &in.Network
	}
	out.RiskLevel = level(out.RiskScore)
	out.Decision, out.Recommendation = e.decide(out.RiskScore, coverage == Coverage{})
	out.CategorySummary = e.summary()
	out.Signals = e.ordered()
	out.Findings = policy.SortFindings(e.findings)
	return out, nil
}

// level returns the risk level of a score.
func level(score float64) string {
	switch {
	case score < 25:
		return "low"
	case score < 50:
		return "medium"
	case score < 75:
		return "high"
	}
	return "critical"
}

// evidence collects signals and findings, in the order of the request.
type evidence struct {
	signals  []Signal
	findings []policy.Finding
	direct   bool // true if a sanctions list names the wallet itself
	fuzzy    bool
}

func (e *evidence) add(id, source, category string, hops *int, strength float64) {
	s := Signal{ID: id, Source: source, Hops: hops, Strength: strength}
	if category != "" {
		s.Category = &category
	}
	e.signals = append(e.signals, s)
}

func (e *evidence) find(id, severity, path, message string) {
	e.findings = append(e.findings, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
}

func (e *evidence) sanctions(hits []SanctionsHit) {
	for i, h := range hits {
		path, hops := "/sanctionsHits/"+strconv.Itoa(i), h.Hops
		if h.MatchType == "fuzzy" {
			confidence := 1.0
			if h.Confidence != nil {
				confidence = *h.Confidence
			}
			e.fuzzy = true
			e.add("sanctions_fuzzy", path, "sanctions", &hops, .6*confidence*decay(hops))
			e.find("sanctions_fuzzy_match", "high", path, "a sanctions list may name this wallet or one it dealt with")
			continue
		}
		e.add("sanctions_exact", path, "sanctions", &hops, decay(hops))
		if hops == 0 {
			e.direct = true
			e.find("sanctions_exact_match", "critical", path, "a sanctions list names this wallet")
		} else {
			e.find("sanctions_indirect", "high", path, "the wallet dealt, over other wallets, with one that a sanctions list names")
		}
	}
}

func (e *evidence) exposures(exposures []Exposure) {
	for i, x := range exposures {
		weight, hops := weights[x.Category], orOne(x.Hops)
		strength := weight * decay(hops) * shareFactor(x.Share)
		if x.Direction == "outgoing" {
			strength *= .8
		}
		path := "/exposures/" + strconv.Itoa(i)
		e.add("exposure", path, x.Category, &hops, strength)
		e.categoryFinding(path, weight, strength)
	}
}

// shareFactor returns the factor of an exposure for its share of the volume; nil means that the
// share is unknown.
func shareFactor(share *float64) float64 {
	switch {
	case share == nil:
		return .6
	case *share == 0:
		return 0
	}
	return math.Min(1, .2+float64(1.6**share))
}

func orOne(n *int) int {
	if n == nil {
		return 1
	}
	return *n
}

func (e *evidence) counterparties(counterparties []Counterparty) {
	for i, c := range counterparties {
		weight, hops := weights[c.Label], orOne(c.Hops)
		strength := .5 * weight * decay(hops)
		path := "/counterparties/" + strconv.Itoa(i)
		e.add("counterparty", path, c.Label, &hops, strength)
		e.categoryFinding(path, weight, strength)
	}
}

// categoryFinding adds the finding for a contact with a category, if its weight and strength are
// high enough. It compares the strength as answers contain it, so that the last bit of a product
// does not matter.
func (e *evidence) categoryFinding(path string, weight, strength float64) {
	switch s := policy.Sig12(strength); {
	case weight >= .9 && s >= .3:
		e.find("severe_exposure", "critical", path, "the wallet is exposed to one of the gravest categories")
	case weight >= .6 && s >= .15:
		e.find("high_risk_exposure", "high", path, "the wallet is exposed to a high-risk category")
	case s >= .05:
		e.find("moderate_exposure", "medium", path, "the wallet is exposed to a category with some risk")
	}
}

func (e *evidence) fundSource(f *FundSource) {
	switch {
	case f == nil:
		return
	case f.Declared == "unknown":
		e.add("fund_source", "/fundSource", "", nil, .10)
	case !f.Verified:
		e.add("fund_source", "/fundSource", "", nil, .05)
	default:
		e.add("fund_source", "/fundSource", "", nil, 0)
		return
	}
	e.find("fund_source_unverified", "low", "/fundSource", "the source of funds is unknown or not verified")
}

func (e *evidence) score() float64 {
	if e.direct {
		return 100
	}
	clean := 1.0
	for _, s := range e.signals {
		clean *= 1 - s.Strength
	}
	// First round hundredths to 12 digits, so that 1877.5 counts as a half and not as slightly
	// less.
	return math.Round(policy.Sig12(10000*(1-clean))) / 100
}

func (e *evidence) decide(score float64, nothing bool) (decision, recommendation string) {
	switch {
	case e.direct || score >= denyFrom:
		return "deny", "block"
	case score >= reviewFrom || e.fuzzy || nothing:
		return "needs_review", "review"
	}
	return "allow", "proceed"
}

// ordered returns the signals, the strongest first, with numbers as answers contain them.
func (e *evidence) ordered() []Signal {
	signals := append([]Signal{}, e.signals...)
	for i := range signals {
		signals[i].Points = policy.Sig12(100 * signals[i].Strength)
		signals[i].Strength = policy.Sig12(signals[i].Strength)
	}
	slices.SortStableFunc(signals, func(a, b Signal) int { return cmp.Compare(b.Strength, a.Strength) })
	return signals
}

func (e *evidence) summary() []CategoryTotal {
	totals := []CategoryTotal{}
	for _, s := range e.signals {
		if s.Category == nil {
			continue
		}
		i := slices.IndexFunc(totals, func(t CategoryTotal) bool { return t.Category == *s.Category })
		if i < 0 {
			totals = append(totals, CategoryTotal{Category: *s.Category})
			i = len(totals) - 1
		}
		totals[i].Count++
		totals[i].MaxStrength = math.Max(totals[i].MaxStrength, policy.Sig12(s.Strength))
	}
	slices.SortFunc(totals, func(a, b CategoryTotal) int {
		return cmp.Or(cmp.Compare(b.MaxStrength, a.MaxStrength), cmp.Compare(a.Category, b.Category))
	})
	return totals
}
