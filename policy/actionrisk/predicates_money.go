package actionrisk

import (
	"math/big"
	"slices"
	"strings"
)

// moneyPredicates are the predicates of the wallet, x402 and mcp tables.
var moneyPredicates = map[string]predicate{
	"moves":       movesMoney, // a wallet or payment client's call has one of these rule ids
	"literal-key": func(_ *engine, it *item, _ []string) (Word, bool) { return Word{}, it.inv != nil && literalKey(it.inv) },
	"pinned-mcp":  pinnedMCP,   // the server that is added has an exact version
	"mcp-server":  addsAServer, // an argument tells which server is added
}

// movesMoney judges the invocation once and remembers the answer in the item.
func movesMoney(e *engine, it *item, args []string) (Word, bool) {
	if it.inv == nil || it.inv.dry {
		return Word{}, false
	}
	ids, done := it.fact.([]string)
	if !done {
		ids = clientRules(it.inv)
		if ids == nil {
			ids = []string{}
		}
		if len(ids) > 0 {
			ids = append(ids, loopRules(e, it, ids)...)
		}
		it.fact = ids
		e.budget.spend(4 + len(it.inv.argv))
	}
	for _, a := range args {
		if slices.Contains(ids, a) {
			return Word{}, true
		}
	}
	return Word{}, false
}

// loopRules: a payment or transfer inside a loop is made as often as it runs.
// How often is read from seq N or {1..N}; a loop without a number still counts.
func loopRules(e *engine, it *item, ids []string) []string {
	moves := false
	for _, id := range ids {
		moves = moves || strings.HasPrefix(id, "x402.pay") || strings.HasPrefix(id, "wallet.transfer") || id == "x402.unknown-amount"
	}
	text := e.action.Command
	if !moves || !slices.ContainsFunc(loopWords, func(w string) bool { return strings.Contains(text, w) }) && !slices.Contains(it.src.via, "xargs") {
		return nil
	}
	out := []string{"x402.loop"}
	if n := loopCount(text); n != nil && slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "x402.pay") }) {
		p := readPhrase(argvText(it.inv))
		if p.amount.value != nil && p.amount.asset != nil {
			total := amount{value: new(big.Rat).Mul(p.amount.value, n), asset: p.amount.asset}
			out = append(out, total.payRule(true))
		}
	}
	return out
}

var loopWords = []string{"while ", "until ", "for ", "xargs ", "parallel ", "watch "}

// loopCount is the N of seq N, seq 1 N or {1..N}; nil if the text has none.
func loopCount(text string) *big.Rat {
	if _, rest, ok := strings.Cut(text, "seq "); ok {
		end := strings.IndexAny(rest, ");`|\n")
		if end < 0 {
			end = len(rest)
		}
		if fields := strings.Fields(rest[:end]); len(fields) > 0 {
			return parseNumber(fields[len(fields)-1])
		}
	}
	if _, rest, ok := strings.Cut(text, ".."); ok {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			return parseNumber(rest[:end])
		}
	}
	return nil
}
