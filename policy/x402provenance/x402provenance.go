// Package x402provenance judges whether payments to a service show external demand. It drops
// repeated transactions, separates the payments from the owner's own wallets, and measures how the
// rest is distributed over payers and how much evidence the records contain. The caller sends
// records and wallets. The package reads no chain, and two wallets may belong to the same person.
//
// Amounts are exact integers in an asset's smallest units. Shares, coverages and the
// Herfindahl-Hirschman index (the sum of squared shares) are numbers from 0 to 1.
package x402provenance

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Service is the declaration of x402-provenance/check.
var Service = policy.Declare(policy.Service{
	Name:       "x402-provenance/check",
	PriceCents: 5,
	Group:      policy.GroupPayments,
	Title:      "x402 provenance",
	Summary:    "Analyzes x402 payment records that the caller sends: duplicates, the owner's own payments, concentration of external payers, and missing members. It does not read the chain.",
	Example: `{"records":[{"txHash":"0xa1","network":"eip155:8453","asset":"USDC","payer":"0x01","payTo":"0x99","amountUnits":"10000"},` +
		`{"txHash":"0xa2","network":"eip155:8453","asset":"USDC","payer":"0x02","payTo":"0x99","amountUnits":"10000"},` +
		`{"txHash":"0xA1","network":"eip155:8453","asset":"USDC","payer":"0x01","payTo":"0x99","amountUnits":"10000"}],"ownerWallets":["0x77"]}`,
	Rules: documented,
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Input contains the payment records and the wallets that the owner declares.
type Input struct {
	policy.Common
	Records       []Record       `json:"records" jsonschema:"minItems=1,maxItems=5000" jsonschema_description:"The payments to analyze."`
	OwnerWallets  []string       `json:"ownerWallets,omitempty" jsonschema:"maxItems=500,minLength=1,maxLength=128" jsonschema_description:"Wallets of the seller: payments from them are the seller's own."`
	AssetDecimals map[string]int `json:"assetDecimals,omitempty" jsonschema_description:"Number of decimals of each asset, from 0 to 36; default 6. The answer has amounts in smallest units, so no number in it depends on this member."`
	AsOf          string         `json:"asOf,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"Time to which the caller's request applies, RFC 3339 with zone. No result depends on it."`
}

// Record is one payment, as the caller reports it.
type Record struct {
	TxHash      string `json:"txHash" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Hash or signature of the transaction."`
	Network     string `json:"network" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"CAIP-2 name of the network, for example eip155:8453."`
	Asset       string `json:"asset" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Contract of the token, or its symbol, for example USDC."`
	Payer       string `json:"payer" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Address of the payer."`
	PayTo       string `json:"payTo" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"Address of the recipient."`
	AmountUnits string `json:"amountUnits" jsonschema:"minLength=1,maxLength=78,pattern=^(0|[1-9][0-9]{0\\,77})$" jsonschema_description:"Amount in the asset's smallest units, in decimal digits."`
	Timestamp   string `json:"timestamp,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"When the payment was settled, RFC 3339."`
	Resource    string `json:"resource,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"URL of the purchased resource."`
	Facilitator string `json:"facilitator,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Facilitator that settled the payment."`
	LogIndex    *int   `json:"logIndex,omitempty" jsonschema:"minimum=0,maximum=9007199254740991" jsonschema_description:"Index of the log entry, if one transaction contains several payments."`
	Success     *bool  `json:"success,omitempty" jsonschema_description:"Whether the payment succeeded. Default true. Failed payments are counted, but not analyzed."`
}

// Output contains the figures, the verdict and the findings.
type Output struct {
	RecordsTotal            int              `json:"recordsTotal" jsonschema_description:"Number of records sent."`
	RecordsKept             int              `json:"recordsKept" jsonschema_description:"Number of records without duplicates and failed payments."`
	DuplicatesDropped       int              `json:"duplicatesDropped" jsonschema_description:"Number of repeated records."`
	FailedExcluded          int              `json:"failedExcluded" jsonschema_description:"Number of failed payments."`
	SelfCount               int              `json:"selfCount" jsonschema_description:"Number of payments in which payer and recipient are the same."`
	OwnerCount              int              `json:"ownerCount" jsonschema_description:"Number of payments by ownerWallets."`
	ExternalCount           int              `json:"externalCount" jsonschema_description:"Number of payments by other payers."`
	ExternalPayerCount      int              `json:"externalPayerCount" jsonschema_description:"Number of other payers."`
	Totals                  []Total          `json:"totals" jsonschema_description:"Sums of each asset, in its smallest units."`
	CandidateExternalPayers []Payer          `json:"candidateExternalPayers" jsonschema_description:"Payers of the asset with the most external records, the largest first; at most 50."`
	Concentration           *Concentration   `json:"concentration" jsonschema:"nullable" jsonschema_description:"Distribution of the external payments over payers; null if there are none."`
	Coverage                Coverage         `json:"coverage" jsonschema_description:"Share of the records that have each member, from 0 to 1."`
	FirstTimestamp          *string          `json:"firstTimestamp" jsonschema:"nullable" jsonschema_description:"The earliest time, RFC 3339."`
	LastTimestamp           *string          `json:"lastTimestamp" jsonschema:"nullable" jsonschema_description:"The latest time, RFC 3339."`
	ActiveDays              int              `json:"activeDays" jsonschema_description:"Number of days (UTC) with a record that was kept."`
	Verdict                 string           `json:"verdict" jsonschema:"enum=external_demand_supported,enum=concentrated,enum=self_dealing_suspected,enum=insufficient_evidence" jsonschema_description:"Judgement of the demand by the records."`
	Limitations             []string         `json:"limitations" jsonschema_description:"Checks that were not made."`
	Findings                []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
	FindingsTruncated       bool             `json:"findingsTruncated,omitzero" jsonschema_description:"True if there were more than 500 findings; the most severe are kept."`
}

// Total contains the sums of one asset by class of payer, in decimal digits. A sum may exceed
// 2^256.
type Total struct {
	Asset         string `json:"asset" jsonschema_description:"Contract or symbol of the asset."`
	OwnerUnits    string `json:"ownerUnits" jsonschema_description:"Amount paid by ownerWallets, in smallest units."`
	SelfUnits     string `json:"selfUnits" jsonschema_description:"Amount of payments in which payer and recipient are the same, in smallest units."`
	ExternalUnits string `json:"externalUnits" jsonschema_description:"Amount paid by other payers, in smallest units."`
}

// Payer is one external payer, with its payments in the asset that concentration measures.
type Payer struct {
	Payer string   `json:"payer" jsonschema_description:"Address of the payer."`
	Count int      `json:"count" jsonschema_description:"Number of payments."`
	Units string   `json:"units" jsonschema_description:"Sum of the payments in smallest units."`
	Share *float64 `json:"share" jsonschema:"nullable" jsonschema_description:"Share of the asset's external amount; null if that amount is zero."`
}

// Concentration states how the external amount is distributed over payers. The figures about
// amounts are null if every amount is zero.
type Concentration struct {
	TopPayerShare              *float64 `json:"topPayerShare" jsonschema:"nullable" jsonschema_description:"Share of the largest payer, from 0 to 1."`
	Top3Share                  *float64 `json:"top3Share" jsonschema:"nullable" jsonschema_description:"Share of the three largest payers, from 0 to 1."`
	HHI                        *float64 `json:"hhi" jsonschema:"nullable" jsonschema_description:"Herfindahl-Hirschman index of the amounts, 0 to 1."`
	EffectivePayers            *float64 `json:"effectivePayers" jsonschema:"nullable" jsonschema_description:"1 / hhi."`
	CountHHI                   float64  `json:"countHhi" jsonschema_description:"Herfindahl-Hirschman index of the numbers of payments, 0 to 1."`
	PayersWithMultiplePayments int      `json:"payersWithMultiplePayments" jsonschema_description:"Number of payers who paid more than once."`
}

// Coverage contains, for each kind of evidence, the share of the kept records that have it.
type Coverage struct {
	Timestamp        float64 `json:"timestamp" jsonschema_description:"Part with a timestamp, 0 to 1."`
	Resource         float64 `json:"resource" jsonschema_description:"Part with a resource, 0 to 1."`
	Facilitator      float64 `json:"facilitator" jsonschema_description:"Part with a facilitator, 0 to 1."`
	WellFormedHash   float64 `json:"wellFormedHash" jsonschema_description:"Part whose txHash has the form of its network, 0 to 1."`
	EvidenceCoverage float64 `json:"evidenceCoverage" jsonschema_description:"Mean of the four."`
}

// Classes of kept records: paid from another wallet, from a wallet of the owner, or from the
// wallet that receives the payment.
const (
	external = iota
	owner
	self
)

// kept is a record that is neither failed nor repeated.
type kept struct {
	Record
	index      int // index in the records of the request
	class      int
	payer, to  string // in the form of normal.FoldAddress
	asset      string // in the form of normal.FoldAddress
	units      *big.Int
	at         time.Time // zero without a timestamp
	wellFormed bool
}

// Evaluate analyzes the records. It refuses a request that violates its schema, and an invalid
// amount or time.
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	if len(in.AssetDecimals) > maxAssets {
		return Output{}, policy.Refuse("too_many_items", "/assetDecimals", fmt.Sprintf("assetDecimals must have at most %d members", maxAssets))
	}
	for _, decimals := range in.AssetDecimals {
		if decimals < 0 || decimals > maxDecimals {
			return Output{}, policy.Refuse("out_of_range", "/assetDecimals", "assetDecimals "+policy.MustBeWithin(0, maxDecimals, false, false, true))
		}
	}
	a := analysis{out: Output{RecordsTotal: len(in.Records)}}
	if err := a.keep(in); err != nil {
		return Output{}, err
	}
	a.totals()
	a.concentration()
	a.coverage()
	a.times()
	a.patterns(len(in.OwnerWallets) > 0)
	a.out.Verdict = a.verdict()
	a.out.Limitations = []string{"caller_supplied_records", "no_chain_lookup", "wallets_are_not_identities"}
	a.out.Findings = policy.SortFindings(a.findings)
	if len(a.out.Findings) > maxFindings {
		a.out.Findings, a.out.FindingsTruncated = a.out.Findings[:maxFindings], true
	}
	return a.out, nil
}

// analysis collects the figures of one request.
type analysis struct {
	records   []kept
	externals []*kept // pointers into records
	out       Output
	findings  []policy.Finding
}

func (a *analysis) find(id, severity, path, message string) {
	a.findings = append(a.findings, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
}

// keep drops failed and repeated records, and assigns a class to each other record. A record is
// repeated if an earlier one has the same network, transaction and log entry.
func (a *analysis) keep(in Input) error {
	owners := map[string]bool{}
	for _, wallet := range in.OwnerWallets {
		owners[normal.FoldAddress(wallet)] = true
	}
	first := make(map[[3]string]int, len(in.Records)) // index in a.records of each transaction
	a.records = make([]kept, 0, len(in.Records))
	for i, r := range in.Records {
		k, err := read(r, i)
		if err != nil {
			return err
		}
		if r.Success != nil && !*r.Success {
			a.out.FailedExcluded++
			continue
		}
		// Drop a repeated record. It is a finding if the record differs from the first one.
		entry := "-"
		if r.LogIndex != nil {
			entry = strconv.Itoa(*r.LogIndex)
		}
		key := [3]string{normal.Network(r.Network), normal.FoldAddress(r.TxHash), entry}
		if earlier, repeated := first[key]; repeated {
			a.out.DuplicatesDropped++
			if e := a.records[earlier]; e.payer != k.payer || e.to != k.to || e.asset != k.asset || e.units.Cmp(k.units) != 0 {
				a.find("conflicting_duplicate", "high", recordPath(i), "a repeated transaction differs from its first record")
			}
			continue
		}
		first[key] = len(a.records)
		// Assign the class by the payer.
		switch {
		case k.payer == k.to:
			k.class = self
			a.out.SelfCount++
		case owners[k.payer]:
			k.class = owner
			a.out.OwnerCount++
		default:
			a.out.ExternalCount++
		}
		a.records = append(a.records, k)
	}
	for i := range a.records {
		if a.records[i].class == external {
			a.externals = append(a.externals, &a.records[i])
		}
	}
	a.out.RecordsKept = len(a.records)
	if a.out.DuplicatesDropped > 0 {
		a.find("duplicates_dropped", "low", "/records", "repeated transactions were dropped")
	}
	return nil
}

func recordPath(i int) string { return "/records/" + strconv.Itoa(i) }

func read(r Record, i int) (kept, error) {
	units, err := normal.Units(r.AmountUnits)
	if err != nil {
		return kept{}, policy.Refuse("out_of_range", recordPath(i)+"/amountUnits", fmt.Sprintf("records.%d.amountUnits %s", i, normal.UnitsAllowed))
	}
	k := kept{Record: r, index: i, payer: normal.FoldAddress(r.Payer), to: normal.FoldAddress(r.PayTo), asset: normal.FoldAddress(r.Asset), units: units, wellFormed: wellFormed(r)}
	if r.Timestamp != "" {
		if k.at, err = normal.Timestamp(r.Timestamp); err != nil {
			return kept{}, policy.Refuse("invalid_date", recordPath(i)+"/timestamp", fmt.Sprintf("records.%d.timestamp must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z", i))
		}
	}
	return k, nil
}

var solanaHash = normal.Pattern(`^[1-9A-HJ-NP-Za-km-z]{64,88}$`)

// evmHash reports whether a hash is 0x and 64 hexadecimal digits.
func evmHash(hash string) bool {
	if len(hash) != 66 || hash[0] != '0' || hash[1] != 'x' && hash[1] != 'X' {
		return false
	}
	for i := 2; i < len(hash); i++ {
		c := hash[i] | 0x20
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// wellFormed reports whether the transaction hash has the form that its network uses.
func wellFormed(r Record) bool {
	if normal.IsSolana(r.Network) {
		return solanaHash(r.TxHash)
	}
	return evmHash(r.TxHash)
}

// totals sums the amounts of each asset by class, sorted by asset.
func (a *analysis) totals() {
	sums := map[string]*[3]big.Int{}
	var assets []string
	for i := range a.records {
		k := &a.records[i]
		of := sums[k.asset]
		if of == nil {
			of = new([3]big.Int)
			sums[k.asset] = of
			assets = append(assets, k.asset)
		}
		of[k.class].Add(&of[k.class], k.units)
	}
	slices.Sort(assets)
	a.out.Totals = []Total{}
	for _, asset := range assets {
		sum := sums[asset]
		a.out.Totals = append(a.out.Totals, Total{asset, sum[owner].String(), sum[self].String(), sum[external].String()})
	}
}

// largestAsset returns the asset with the most external records; of several, the first by name.
func (a *analysis) largestAsset() string {
	counts := map[string]int{}
	best := ""
	for _, k := range a.externals {
		counts[k.asset]++
	}
	for _, k := range a.externals {
		if n, most := counts[k.asset], counts[best]; n > most || n == most && k.asset < best {
			best = k.asset
		}
	}
	return best
}

// concentration measures how external payments are distributed over payers. Amounts are those of
// the largest asset; counts are of all assets.
func (a *analysis) concentration() {
	a.out.CandidateExternalPayers = []Payer{}
	if len(a.externals) == 0 {
		return
	}
	asset := a.largestAsset()
	payments := map[string]int{} // payments of each payer, in all assets
	units := map[string]*big.Int{}
	counts := map[string]int{} // payments of each payer, in the largest asset
	sum := new(big.Int)
	for _, k := range a.externals {
		payments[k.payer]++
		if k.asset == asset {
			if units[k.payer] == nil {
				units[k.payer] = new(big.Int)
			}
			units[k.payer].Add(units[k.payer], k.units)
			sum.Add(sum, k.units)
			counts[k.payer]++
		}
	}
	payers := make([]string, 0, len(units))
	for payer := range units {
		payers = append(payers, payer)
	}
	slices.SortFunc(payers, func(x, y string) int { return cmp.Or(units[y].Cmp(units[x]), cmp.Compare(x, y)) })
	c := &Concentration{CountHHI: countHHI(payments, len(a.externals))}
	for _, n := range payments {
		if n > 1 {
			c.PayersWithMultiplePayments++
		}
	}
	if sum.Sign() > 0 {
		c.amounts(payers, units, sum)
	}
	for _, payer := range payers[:min(topPayers, len(payers))] {
		p := Payer{Payer: payer, Count: counts[payer], Units: units[payer].String()}
		if sum.Sign() > 0 {
			p.Share = ratio(units[payer], sum)
		}
		a.out.CandidateExternalPayers = append(a.out.CandidateExternalPayers, p)
	}
	a.out.ExternalPayerCount = len(payments)
	a.out.Concentration = c
}

// amounts sets the figures about amounts. payers must be sorted, the largest first. The squares
// are summed as exact integers.
func (c *Concentration) amounts(payers []string, units map[string]*big.Int, sum *big.Int) {
	top3, squares := new(big.Int), new(big.Int)
	for i, payer := range payers {
		if i < 3 {
			top3.Add(top3, units[payer])
		}
		squares.Add(squares, new(big.Int).Mul(units[payer], units[payer]))
	}
	square := new(big.Int).Mul(sum, sum)
	c.TopPayerShare, c.Top3Share = ratio(units[payers[0]], sum), ratio(top3, sum)
	c.HHI, c.EffectivePayers = ratio(squares, square), ratio(square, squares)
}

func countHHI(payments map[string]int, total int) float64 {
	squares := 0
	for _, n := range payments {
		squares += n * n
	}
	return policy.Sig12(float64(squares) / float64(total*total))
}

func ratio(part, whole *big.Int) *float64 {
	f, _ := new(big.Rat).SetFrac(part, whole).Float64()
	f = policy.Sig12(f)
	return &f
}

// coverage computes the share of kept records with each kind of evidence.
func (a *analysis) coverage() {
	var timestamps, resources, facilitators, hashes int
	for i := range a.records {
		k := &a.records[i]
		timestamps += count(k.Timestamp != "")
		resources += count(k.Resource != "")
		facilitators += count(k.Facilitator != "")
		hashes += count(k.wellFormed)
		if !k.wellFormed {
			a.find("malformed_hash", "medium", recordPath(k.index)+"/txHash", "the transaction hash does not have the form of its network")
		}
	}
	n := len(a.records)
	if n == 0 {
		return
	}
	share := func(of, parts int) float64 { return policy.Sig12(float64(of) / float64(parts*n)) }
	a.out.Coverage = Coverage{share(timestamps, 1), share(resources, 1), share(facilitators, 1), share(hashes, 1),
		share(timestamps+resources+facilitators+hashes, 4)}
	if timestamps < n {
		a.find("missing_timestamps", "low", "/records", "some records have no timestamp")
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (a *analysis) times() {
	var first, last *kept
	days := map[string]bool{}
	for i := range a.records {
		k := &a.records[i]
		if k.Timestamp == "" {
			continue
		}
		days[k.at.Format(time.DateOnly)] = true
		if first == nil || k.at.Before(first.at) {
			first = k
		}
		if last == nil || k.at.After(last.at) {
			last = k
		}
	}
	a.out.ActiveDays = len(days)
	if first != nil {
		a.out.FirstTimestamp, a.out.LastTimestamp = &first.Timestamp, &last.Timestamp
	}
}

// patterns adds the findings that make external demand doubtful. declared is true if the owner
// declared wallets.
func (a *analysis) patterns(declared bool) {
	if a.out.SelfCount > 0 {
		a.find("self_payments", "medium", "/records", "some payments go from a wallet to itself")
	}
	if a.ownDominates() {
		a.find("owner_dominated", "high", "/records", "more than half of the payments are the owner's own")
	}
	if a.out.ExternalCount > 0 && a.out.ExternalPayerCount == 1 {
		a.find("single_payer", "high", "/records", "one wallet made every external payment")
	}
	if a.topShareHigh() {
		a.find("high_concentration", "medium", "/records", "one payer made more than half of the external amount")
	}
	if !declared {
		a.find("owner_wallets_not_declared", "medium", "/ownerWallets", "no owner wallets were declared, so own payments may count as external")
	}
	if a.burst() {
		a.find("burst_activity", "medium", "/records", "most external payments fall into one minute")
	}
	a.roundTrips()
}

func (a *analysis) ownDominates() bool {
	return len(a.records) > 0 && float64(a.out.OwnerCount+a.out.SelfCount) > ownShare*float64(len(a.records))
}

func (a *analysis) topShareHigh() bool {
	c := a.out.Concentration
	return c != nil && c.TopPayerShare != nil && *c.TopPayerShare > topShare
}

// burst reports whether more than half of the external records are within one minute. It returns
// false for fewer than ten records.
func (a *analysis) burst() bool {
	if len(a.externals) < burstRecords {
		return false
	}
	var times []time.Time
	for _, k := range a.externals {
		if k.Timestamp != "" {
			times = append(times, k.at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	start := 0
	for end, at := range times {
		for at.Sub(times[start]) > burstWindow {
			start++
		}
		if (end-start+1)*burstFraction > len(a.externals) {
			return true
		}
	}
	return false
}

// roundTrips reports payments that return money: a wallet that received an external payment later
// pays an external payer in the same asset, after that payer's first payment. The order is that of
// the timestamps, or that of the records if one has no timestamp.
func (a *analysis) roundTrips() {
	type holder struct{ wallet, asset string }
	payees, payers := map[holder]bool{}, map[holder]*kept{}
	for i := range a.externals {
		k := a.externals[i]
		payees[holder{k.to, k.asset}] = true
		payer := holder{k.payer, k.asset}
		if earliest := payers[payer]; earliest == nil || later(earliest, k) {
			payers[payer] = k
		}
	}
	for i := range a.records {
		k := &a.records[i]
		paid := payers[holder{k.to, k.asset}]
		if k.class != self && payees[holder{k.payer, k.asset}] && paid != nil && later(k, paid) {
			a.find("round_trip", "high", recordPath(k.index), "a recipient later pays an external payer in the same asset")
		}
	}
}

// later reports whether payment x was made after payment y.
func later(x, y *kept) bool {
	if x.Timestamp != "" && y.Timestamp != "" && !x.at.Equal(y.at) {
		return x.at.After(y.at)
	}
	return x.index > y.index
}

func (a *analysis) verdict() string {
	switch {
	case a.out.ExternalCount == 0 || a.out.Coverage.EvidenceCoverage < minCoverage:
		return "insufficient_evidence"
	case a.ownDominates():
		return "self_dealing_suspected"
	case a.topShareHigh() || a.out.ExternalPayerCount < minPayers:
		return "concentrated"
	}
	return "external_demand_supported"
}
