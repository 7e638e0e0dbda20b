package bundle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/bundle"
)

// A statement about an agent contains exact sums over its events, and the verifiers recount them.
func TestLiesInAStatement(t *testing.T) {
	cases := liesInAStatement()
	bothSay(t, cases)
	r := verified(t, cases["as it is"].files, nil)
	const text = "statement, counted again from these events: 4 allow, 1 deny, 2 needs_review; 1 approved, 1 rejected; receipts 1 conforming, 0 inconclusive, 1 violation; " +
		"authorized 5, largest 100 USD, total 100.3 USD (2 without an amount in USD); settled, as reported, 2, largest 1000 USD, total 1000.2 USD"
	if last := r.Proven[len(r.Proven)-1]; last != text {
		t.Errorf("%q", last)
	}
	r = verified(t, cases["of a period"].files, nil)
	if last := r.Proven[len(r.Proven)-1]; !strings.Contains(last, "settled, as reported, 2, largest 0 USD, total 0 USD (2 without an amount in USD)") {
		t.Errorf("%q", last)
	}
}

func liesInAStatement() map[string]altered {
	history := []drawnEvent{
		{"decision", "allow", "k", 0, "0.1"}, {"decision", "allow", "k", 0, "0.20"}, {"decision", "deny", "k", 0, "1000"}, {"decision", "needs_review", "k", 0, "100"},
		{"approval", "approved", "k", 3, ""}, {"receipt", "conforming", "k", 1, ""}, {"decision", "allow", "k", 0, ""}, {"receipt", "violation", "k", 2, ""},
		{"decision", "allow", "j", 0, "7"}, {"decision", "needs_review", "k", 0, "5"}, {"approval", "rejected", "k", 9, ""}, {"decision", "allow", "k", 0, "x"}, {"member", "", "", 0, ""},
	}
	all := bundle.Filters{Agent: "a-k", Receipts: true}
	late := all
	late.From, late.To = onTheDay("15:00:05"), onTheDay("15:00:30")
	honest := func(*bundle.Statement) {}
	states := func(f bundle.Filters, lie func(*bundle.Statement)) map[string][]byte {
		prior := func(m *bundle.Manifest) { // for receipts whose decisions are before the period
			for _, i := range []int{1, 2} {
				_, _, decision := payloadOf(i, history[i], nil)
				m.PriorDecisions[fmt.Sprint("asd_", i)] = decision.Integrity.RecordHash
			}
		}
		return told{history: history, filters: f, state: lie, say: prior}.draw()
	}
	const says = `{"approvals":{"approved":1,"rejected":1},"authorized":{"count":5,"largestUsd":"100","totalUsd":"100.3","unknownUsd":2},"decisions":{"allow":4,"deny":1,"needs_review":2},` +
		`"receipts":{"conforming":1,"inconclusive":0,"violation":1},"settled":{"count":2,"largestUsd":"1000","totalUsd":"1000.2","unknownUsd":0}}`
	cases := map[string]altered{
		"as it is":                         {files: states(all, honest)},
		"of a period":                      {files: states(late, honest)},
		"about some of the decisions":      {files: states(bundle.Filters{Agent: "a-k", Receipts: true, Decision: "allow"}, honest), reason: "manifest.json: statement"},
		"about decisions without receipts": {files: states(bundle.Filters{Agent: "a-k"}, honest), reason: "manifest.json: statement"},
		"about a tenant":                   {files: states(bundle.Filters{Decision: "deny", Receipts: true}, honest), reason: "manifest.json: statement"},
	}
	for name, lie := range map[string]func(*bundle.Statement){
		"a denial less":         func(s *bundle.Statement) { s.Decisions["deny"]-- },
		"a violation less":      func(s *bundle.Statement) { s.Receipts["violation"], s.Receipts["conforming"] = 0, 2 },
		"an outcome left out":   func(s *bundle.Statement) { delete(s.Receipts, "inconclusive") },
		"another outcome":       func(s *bundle.Statement) { s.Approvals["waived"] = 1 },
		"a smaller total":       func(s *bundle.Statement) { s.Authorized.TotalUSD = "100.2" },
		"a smaller largest":     func(s *bundle.Statement) { s.Authorized.LargestUSD = "0.2" },
		"a settlement less":     func(s *bundle.Statement) { s.Settled.Count-- },
		"another form":          func(s *bundle.Statement) { s.Settled.TotalUSD = "1000.20" },
		"nothing is unknown":    func(s *bundle.Statement) { s.Authorized.UnknownUSD = 0 },
		"a settled sum too big": func(s *bundle.Statement) { s.Settled.TotalUSD = "1e9" },
	} {
		cases[name] = altered{files: states(all, lie), reason: "statement: the events say " + says}
	}
	return cases
}
