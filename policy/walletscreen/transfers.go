package walletscreen

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// movement is a transfer with its time parsed.
type movement struct {
	Transfer
	at    time.Time
	index int // index in the request
}

// transfers adds the signals of three patterns of money laundering that the transfers show.
func (e *evidence) transfers(transfers []Transfer) error {
	moves := make([]movement, len(transfers))
	for i, t := range transfers {
		at, err := normal.Timestamp(t.Timestamp)
		if err != nil {
			return policy.Refuse("invalid_date", "/transfers/"+strconv.Itoa(i)+"/timestamp", "transfers."+strconv.Itoa(i)+".timestamp must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z")
		}
		moves[i] = movement{t, at, i}
	}
	slices.SortStableFunc(moves, func(a, b movement) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.index, b.index)) })
	const path = "/transfers"
	if structuring(moves, "incoming") || structuring(moves, "outgoing") {
		e.add("structuring", path, "", nil, .35)
		e.find("structuring_pattern", "high", path, "several transfers stay just below the reporting threshold within a day")
	}
	if found, _ := passThrough(moves); found {
		e.add("rapid_pass_through", path, "", nil, .30)
		e.find("rapid_pass_through", "high", path, "money leaves within the hour in which it came")
	}
	if fanIn(moves) {
		e.add("fan_in", path, "", nil, .20)
		e.find("fan_in_pattern", "medium", path, "many different senders pay in within a day")
	}
	return nil
}

// structuring reports whether one day contains three transfers in the same direction of at least
// 9,000 and below 10,000 USD.
func structuring(moves []movement, direction string) bool {
	var times []time.Time
	for _, m := range moves {
		if m.Direction == direction && m.AmountUSD >= structuringFrom && m.AmountUSD < structuringBelow {
			times = append(times, m.at)
		}
	}
	for i := structuringCount - 1; i < len(times); i++ {
		if times[i].Sub(times[i-structuringCount+1]) <= patternWindow {
			return true
		}
	}
	return false
}

// passThrough reports whether money passes through the wallet: there are two pairs of an incoming
// transfer a and an outgoing transfer b, at most an hour later, with 0.9a <= b <= a. For each
// incoming transfer it takes the earliest outgoing one that no other pair uses.
//
// Of n transfers it compares at most (n/2)^2 pairs of numbers, if all are within one hour and no
// pair matches: a million for the 2,000 transfers that a request may have. compared is the number
// of comparisons.
func passThrough(moves []movement) (found bool, compared int) {
	out := outgoing(moves)
	used, pairs, first := make([]bool, len(out)), 0, 0
	for i := range moves {
		a := &moves[i]
		if a.Direction != "incoming" || a.AmountUSD == 0 {
			continue
		}
		from := a.at.UnixNano()
		for first < len(out) && out[first].at < from {
			first++
		}
		least, until := policy.Sig12(passThroughShare*a.AmountUSD), from+int64(passThroughTime)
		for j := first; j < len(out) && out[j].at <= until; j++ {
			compared++
			if b := out[j].amount; b <= a.AmountUSD && b >= least && !used[j] {
				used[j] = true
				pairs++
				break
			}
		}
		if pairs >= passThroughPairs {
			return true, compared
		}
	}
	return false, compared
}

// payment contains the values of an outgoing transfer that passThrough compares.
type payment struct {
	at     int64 // nanoseconds since 1970
	amount float64
}

func outgoing(moves []movement) (list []payment) {
	for i := range moves {
		if m := &moves[i]; m.Direction == "outgoing" {
			list = append(list, payment{m.at.UnixNano(), m.AmountUSD})
		}
	}
	return list
}

// fanIn reports whether one day contains payments from ten different senders.
func fanIn(moves []movement) bool {
	var in []movement
	for _, m := range moves {
		if m.Direction == "incoming" && m.Counterparty != "" {
			in = append(in, m)
		}
	}
	count := map[string]int{} // transfers of each sender in the current window of one day
	start := 0
	for _, m := range in {
		count[normal.FoldAddress(m.Counterparty)]++
		for m.at.Sub(in[start].at) > patternWindow {
			sender := normal.FoldAddress(in[start].Counterparty)
			if count[sender]--; count[sender] == 0 {
				delete(count, sender)
			}
			start++
		}
		if len(count) >= fanInSenders {
			return true
		}
	}
	return false
}
