package evidence

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/policy/secrets"
)

// said is the outcome of a rule, with its effect and texts.
type said struct{ outcome, effect, expected, actual, detail string }

type rule struct {
	id    string
	judge func(*purchase) said
}

// catalogue contains the rules in the order of answers.
var catalogue = []rule{
	{"challenge_present", func(p *purchase) said { return present(p.challenge.there, insufficient, "challenge") }},
	{"receipt_present", func(p *purchase) said { return present(p.receipt.there, insufficient, "receipt") }},
	{"response_present", func(p *purchase) said { return present(p.bundle.Response != nil, insufficient, "response") }},
	{"policy_decision_present", func(p *purchase) said { return present(p.bundle.PolicyDecision != nil, review, "policy decision") }},
	{"endpoint_binding", binding(insufficient, "resource URL", func(t Terms) string { return t.ResourceURL }, resource, showURL)},
	{"method_binding", binding(review, "method", func(t Terms) string { return t.Method }, upper, normal.Shown)},
	{"network_binding", binding(insufficient, "network", func(t Terms) string { return t.Network }, network, normal.Shown)},
	{"asset_binding", binding(review, "asset", func(t Terms) string { return t.Asset }, asset, normal.Shown)},
	{"pay_to_binding", binding(insufficient, "recipient", func(t Terms) string { return t.PayTo }, address, normal.MaskAddress)},
	{"price_binding", binding(insufficient, "amount", func(t Terms) string { return t.AmountUnits }, amount, normal.Shown)},
	{"settlement_success", settled},
	{"transaction_format", transaction},
	{"policy_allows", policyAllows},
	{"response_status", responseStatus},
	{"body_hash", bodyHash},
	{"artifact_hashes", artifactHashes},
	{"freshness", freshness},
	{"time_order", timeOrder},
	{"source_kind", sourceKind},
	{"synthetic_proof", syntheticProof},
	{"secret_leakage", secretLeakage},
}

// paths maps each rule to the pointer of the member that it judges.
var paths = map[string]string{
	"challenge_present": "/bundle/challenge", "receipt_present": "/bundle/receipt", "response_present": "/bundle/response", "policy_decision_present": "/bundle/policyDecision",
	"endpoint_binding": "/bundle", "method_binding": "/bundle", "network_binding": "/bundle", "asset_binding": "/bundle", "pay_to_binding": "/bundle", "price_binding": "/bundle",
	"settlement_success": "/bundle/receipt/success", "transaction_format": "/bundle/receipt/transaction", "policy_allows": "/bundle/policyDecision/decision",
	"response_status": "/bundle/response/status", "body_hash": "/bundle/response/bodyHash", "artifact_hashes": "/bundle/hashes", "freshness": "/bundle/receipt/settledAt",
	"time_order": "/bundle", "source_kind": "/bundle/source/kind", "synthetic_proof": "/bundle", "secret_leakage": "/bundle",
}

// party is an artifact that states terms: the expectation, the challenge or the receipt. there is
// false if it is absent.
type party struct {
	Terms
	name  string
	there bool
}

// purchase is a request that was read, with its times parsed.
type purchase struct {
	Input
	bundle                       Bundle
	expected, challenge, receipt party
	asOf, settledAt              time.Time
	steps                        []step // times of the purchase, in the order in which the steps should happen
}

type step struct {
	name string
	at   time.Time
}

func newCase(in Input) (*purchase, error) {
	p := &purchase{Input: in, bundle: *in.Bundle}
	p.expected.name, p.challenge.name, p.receipt.name = "expected", "challenge", "receipt"
	if in.Expected != nil {
		p.expected.Terms, p.expected.there = in.Expected.Terms, true
	}
	b := in.Bundle
	var texts []struct{ name, text, path string }
	add := func(name, text, path string) {
		if text != "" {
			texts = append(texts, struct{ name, text, path string }{name, text, path})
		}
	}
	if b.Challenge != nil {
		p.challenge.Terms, p.challenge.there = b.Challenge.Terms, true
		add("challenge", b.Challenge.IssuedAt, "/bundle/challenge/issuedAt")
	}
	if b.PolicyDecision != nil {
		add("policy decision", b.PolicyDecision.IssuedAt, "/bundle/policyDecision/issuedAt")
	}
	if b.Receipt != nil {
		p.receipt.Terms, p.receipt.there = b.Receipt.Terms, true
		add("settlement", b.Receipt.SettledAt, "/bundle/receipt/settledAt")
	}
	if b.Response != nil {
		add("response", b.Response.ReceivedAt, "/bundle/response/receivedAt")
	}
	for _, t := range texts {
		at, err := normal.Timestamp(t.text)
		if err != nil {
			return nil, policy.Refuse("invalid_date", t.path, strings.ReplaceAll(t.path[1:], "/", ".")+" must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z")
		}
		p.steps = append(p.steps, step{t.name, at})
		if t.name == "settlement" {
			p.settledAt = at
		}
	}
	if in.AsOf != "" {
		at, err := normal.Timestamp(in.AsOf)
		if err != nil {
			return nil, policy.Refuse("invalid_date", "/asOf", "asOf must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z")
		}
		p.asOf = at
	}
	return p, nil
}

func pass(detail string) said { return said{"pass", none, "", "", detail} }

func skipped(detail string) said { return said{"skipped", none, "", "", detail} }

func missing(effect, what string) said {
	return said{"missing", effect, "present", "absent", "the " + what + " is missing"}
}

func fail(effect, expected, actual, detail string) said {
	return said{"fail", effect, expected, actual, detail}
}

func present(there bool, effect, what string) said {
	if !there {
		return missing(effect, what)
	}
	return pass("the " + what + " is there")
}

// binding returns a rule that compares one member of the terms in all artifacts that have it. At
// least two must have it, and all values must agree. bring normalizes a value for its network.
// show returns the part of a value that an answer may contain.
func binding(ifMissing, what string, of func(Terms) string, bring func(p *purchase, value string) string, show func(string) string) func(*purchase) said {
	return func(p *purchase) said {
		var first, firstRaw string
		values := 0
		for _, party := range []party{p.expected, p.challenge, p.receipt} {
			value := of(party.Terms)
			if value == "" {
				continue
			}
			if values++; values == 1 {
				first, firstRaw = bring(p, value), value
			} else if bring(p, value) != first {
				return fail(reject, show(firstRaw), show(value), "the "+what+" of the "+party.name+" is another one")
			}
		}
		switch {
		case values >= 2:
			return pass("the " + what + " is the same everywhere")
		case !p.challenge.there || !p.receipt.there:
			return skipped("an artifact is absent")
		}
		return missing(ifMissing, what+" to compare")
	}
}

func resource(_ *purchase, value string) string {
	u, err := normal.ParseURLAnyHost(value)
	if err != nil {
		return value
	}
	return u.String()
}

func showURL(value string) string {
	u, err := normal.ParseURLAnyHost(value)
	if err != nil {
		return "not a valid URL"
	}
	return u.Origin() + " (path and query not shown)"
}

func upper(_ *purchase, value string) string   { return strings.ToUpper(value) }
func network(_ *purchase, value string) string { return normal.Network(value) }
func address(_ *purchase, value string) string { return normal.FoldAddress(value) }
func amount(_ *purchase, value string) string  { return value } // already in normal form: digits without leading zeros

// asset returns the normal form of an asset. It replaces the symbol USDC by the contract of the
// network.
func asset(p *purchase, value string) string {
	for _, party := range []party{p.challenge, p.receipt, p.expected} {
		if contract, ok := normal.USDC(party.Network); ok && normal.IsUSDC(party.Network, value) {
			return contract
		}
	}
	return normal.FoldAddress(value)
}

func settled(p *purchase) said {
	switch {
	case !p.receipt.there:
		return skipped("the receipt is absent")
	case p.bundle.Receipt.Success == nil || !*p.bundle.Receipt.Success:
		return fail(reject, "true", "not true", "the settlement did not succeed")
	}
	return pass("the settlement succeeded")
}

var (
	evmHash    = normal.Pattern(`^0x[0-9a-fA-F]{64}$`)
	solanaHash = normal.Pattern(`^[1-9A-HJ-NP-Za-km-z]{64,88}$`)
)

func transaction(p *purchase) said {
	if !p.receipt.there {
		return skipped("the receipt is absent")
	}
	tx := p.bundle.Receipt.Transaction
	if tx == "" {
		return missing(insufficient, "transaction")
	}
	chain := p.receipt.Network
	if chain == "" {
		chain = p.challenge.Network
	}
	good, form := true, "a transaction of the network"
	switch {
	case normal.IsEVM(chain) || strings.HasPrefix(tx, "0x"):
		good, form = evmHash(tx), "0x and 64 hexadecimal digits"
	case normal.IsSolana(chain) || chain == "":
		good, form = solanaHash(tx), "64 to 88 characters of base58"
	}
	if !good {
		return fail(reject, form, strconv.Itoa(len(tx))+" bytes of another form", "the transaction does not have the form of its network")
	}
	return pass("the transaction has the form of its network")
}

func policyAllows(p *purchase) said {
	d := p.bundle.PolicyDecision
	if d == nil {
		return skipped("the policy decision is absent")
	}
	switch d.Decision {
	case "allow":
		return pass("the policy allowed the payment")
	case "deny":
		return fail(reject, "allow", "deny", "the policy denied the payment")
	case "needs_review":
		return fail(review, "allow", "needs_review", "the policy asked for a review")
	}
	return missing(review, "decision of the policy")
}

func responseStatus(p *purchase) said {
	r := p.bundle.Response
	if r == nil {
		return skipped("the response is absent")
	}
	if r.Status == nil {
		return missing(review, "status of the response")
	}
	switch status := *r.Status; {
	case status >= 200 && status < 300:
		return pass("the response says success")
	case status == 402:
		return fail(reject, "2xx", "402", "the seller still asks for payment")
	default:
		return fail(review, "2xx", strconv.Itoa(status), "the response does not say success")
	}
}

func bodyHash(p *purchase) said {
	r := p.bundle.Response
	switch {
	case r == nil:
		return skipped("the response is absent")
	case r.Body == nil && r.BodyHash == "":
		return missing(review, "body or its hash")
	case r.Body == nil:
		return pass("the hash of the body is given")
	case r.BodyHash == "":
		return pass("the body is given")
	}
	if got := canon.Hash([]byte(*r.Body)); got != strings.ToLower(r.BodyHash) {
		return fail(reject, r.BodyHash, got, "the body does not hash to what was said")
	}
	return pass("the body hashes to what was said")
}

func artifactHashes(p *purchase) said {
	h := p.bundle.Hashes
	if h == nil {
		return skipped("no hashes are given")
	}
	compared := 0
	for _, a := range p.artifacts(*h) {
		if a.want == "" || !a.there {
			continue // the rules with names in _present report absent artifacts
		}
		got, err := a.hash()
		if compared++; err != nil || got != strings.ToLower(a.want) {
			return fail(reject, a.want, got, "the "+a.name+" does not hash to what was said")
		}
	}
	if compared == 0 {
		return skipped("no hash of an artifact is given")
	}
	return pass("the artifacts hash to what was said")
}

// artifact is one artifact of the bundle with its stated hash; want is empty if none is stated.
type artifact struct {
	name, want string
	there      bool
	hash       func() (string, error)
}

func (p *purchase) artifacts(h Hashes) []artifact {
	b := p.bundle
	return []artifact{
		{"challenge", h.Challenge, b.Challenge != nil, func() (string, error) { return hashOf(b.Challenge.raw, b.Challenge) }},
		{"receipt", h.Receipt, b.Receipt != nil, func() (string, error) { return hashOf(b.Receipt.raw, b.Receipt) }},
		{"policy decision", h.PolicyDecision, b.PolicyDecision != nil, func() (string, error) { return hashOf(b.PolicyDecision.raw, b.PolicyDecision) }},
		{"response", h.Response, b.Response != nil, func() (string, error) { return hashOf(b.Response.raw, b.Response) }},
	}
}

func freshness(p *purchase) said {
	maxAge := defaultMaxAge
	if p.MaxAgeSeconds != nil {
		maxAge = *p.MaxAgeSeconds
	}
	switch {
	case !p.receipt.there:
		return skipped("the receipt is absent")
	case p.bundle.Receipt.SettledAt == "":
		return missing(insufficient, "time of settlement")
	case p.AsOf == "":
		return said{"skipped", review, "asOf", "absent", "without asOf the age is unknown"}
	}
	switch age := p.asOf.Sub(p.settledAt); {
	case age > time.Duration(maxAge)*time.Second:
		return fail(review, fmt.Sprintf("at most %d s", maxAge), seconds(age), "the settlement is too old")
	case -age > futureSlack:
		return fail(reject, "not in the future", seconds(-age)+" ahead", "the settlement is in the future")
	}
	return pass("the settlement is fresh")
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + " s" }

func timeOrder(p *purchase) said {
	if len(p.steps) < 2 {
		return skipped("fewer than two times are given")
	}
	for i := 1; i < len(p.steps); i++ {
		before, after := p.steps[i-1], p.steps[i]
		if before.at.Sub(after.at) > orderSlack {
			return fail(review, before.name+" before "+after.name, seconds(before.at.Sub(after.at))+" the other way round", "the steps did not happen in their order")
		}
	}
	return pass("the steps happened in their order")
}

func sourceKind(p *purchase) said {
	s := p.bundle.Source
	if s == nil {
		return missing(review, "source")
	}
	switch s.Kind {
	case "live":
		return pass("the evidence was collected live")
	case "synthetic", "test":
		return fail(reject, "live", s.Kind, "the evidence is made up")
	}
	return fail(review, "live", s.Kind, "the evidence was not collected live")
}

var madeUpWords = normal.Pattern(`(?i)test|mock|fake|dummy|sample|example`)

// syntheticProof finds identifiers that no real system produces: zero, a repeated pattern, or a
// word such as "test".
func syntheticProof(p *purchase) said {
	type identifier struct{ name, value string }
	var all []identifier
	if r := p.bundle.Receipt; r != nil {
		all = append(all, identifier{"transaction", r.Transaction}, identifier{"payer", r.Payer}, identifier{"recipient", r.PayTo})
		if madeUpHex(r.Transaction) {
			return fail(reject, "a real transaction", "a pattern", "the transaction hash is a pattern")
		}
	}
	if d := p.bundle.PolicyDecision; d != nil {
		all = append(all, identifier{"decision id", d.DecisionID})
	}
	if c := p.bundle.Challenge; c != nil {
		all = append(all, identifier{"recipient", c.PayTo})
	}
	found := false
	for _, id := range all {
		found = found || id.value != ""
		switch {
		case strings.HasPrefix(id.value, "0x") && len(id.value) > 2 && strings.Trim(id.value[2:], "0") == "":
			return fail(reject, "a real "+id.name, "zero", "the "+id.name+" is zero")
		case !isRandom(id.value) && madeUpWords(id.value):
			return fail(reject, "a real "+id.name, "a word of tests", "the "+id.name+" names itself a test")
		}
	}
	if !found {
		return skipped("no identifiers are given")
	}
	return pass("the identifiers look real")
}

// isRandom reports whether a text is base58 of at least 32 bytes. Such a text may contain a short
// word by chance.
func isRandom(text string) bool {
	b, ok := normal.Base58(text)
	return ok && len(b) >= 32
}

// madeUpHex reports whether a hash has at most two different digits or repeats a block of four or
// eight digits.
func madeUpHex(text string) bool {
	digits, ok := strings.CutPrefix(strings.ToLower(text), "0x")
	if !ok || len(digits) < 16 || strings.Trim(digits, "0123456789abcdef") != "" {
		return false
	}
	different := map[rune]bool{}
	for _, d := range digits {
		different[d] = true
	}
	if len(different) <= fewDigits {
		return true
	}
	for _, block := range []int{4, 8} {
		if len(digits)%block == 0 && strings.Repeat(digits[:block], len(digits)/block) == digits {
			return true
		}
	}
	return false
}

func secretLeakage(p *purchase) said {
	text := p.bundle.raw
	if text == nil {
		marshalled, err := canon.Marshal(p.Bundle)
		if err != nil {
			return skipped("the bundle has no canonical form")
		}
		text = marshalled
	}
	for leaf := range normal.Leaves(text) {
		if kind := secrets.Kind(leaf.Name, leaf.Text); kind != "" {
			return fail(review, "no secret", kind, "the bundle holds a secret")
		}
	}
	return pass("no secret was found")
}
