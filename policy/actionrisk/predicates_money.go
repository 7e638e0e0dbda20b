package actionrisk

import (
	"math/big"
	"slices"
	"strings"
)

// moneyPredicates are the predicates of the wallet, x402 and mcp tables.
var moneyPredicates = map[string]predicate{
	"literal-key": func(e *engine, it *item, _ []string) (Word, bool) {
		return Word{}, it.inv != nil && e.literalKey(it.inv)
	},
	"pinned-mcp": pinnedMCP,   // the server that is added has an exact version
	"mcp-server": addsAServer, // an argument tells which server is added
}

// loopRules: a payment or transfer inside a loop is made as often as it runs.
// How often is read from seq N or {1..N}; a loop without a number still counts.
func loopRules(sh *shell, v *invocation, ids []string) []string {
	e := sh.e
	moves := false
	for _, id := range ids {
		moves = moves || strings.HasPrefix(id, "x402.pay") || strings.HasPrefix(id, "wallet.transfer") || id == "x402.unknown-amount"
	}
	text := e.action.Command
	if !moves || !slices.ContainsFunc(loopWords, func(w string) bool { return strings.Contains(text, w) }) && !slices.Contains(v.src.via, "xargs") && !callsItself(sh) {
		return nil
	}
	out := []string{"x402.loop"}
	if n := loopCount(text); n != nil && slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "x402.pay") }) {
		p := readPhrase(argvText(v))
		if p.amount.value != nil && p.amount.asset != nil {
			total := amount{value: new(big.Rat).Mul(p.amount.value, n), asset: p.amount.asset}
			out = append(out, total.payRule(true))
		}
	}
	return out
}

// callsItself: one of the functions that run is running already.
func callsItself(sh *shell) bool {
	for i, name := range sh.calls {
		if slices.Contains(sh.calls[:i], name) {
			return true
		}
	}
	return false
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
