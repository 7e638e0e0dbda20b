package bundle

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// numbered is the last event of a series in a verification.
type numbered struct {
	n    int64
	hash ledger.Hash
}

// seriesIn returns the name of a series for a report.
func seriesIn(series, agent string) string {
	if agent == "" {
		return series
	}
	return series + " of agent " + agent
}

// numbers checks that an event's numbers follow the previous ones in its series, and that its type
// has this series. In a bundle that starts with the history, each series starts at 1.
func (v *verifier) numbers(e *ledger.Event) string {
	if !events.IsSeries(e.Type, e.Series) {
		return "series"
	}
	if e.Series == "" {
		return ""
	}
	if no := v.follows(e.Hash, e.Series, "", e.SeriesN, e.SeriesPrev); no != "" || e.Agent == "" {
		return no
	}
	return v.follows(e.Hash, e.Series, e.Agent, e.AgentN, e.AgentPrev)
}

// follows returns what is wrong with a number in a series, or an empty text.
func (v *verifier) follows(hash ledger.Hash, series, agent string, n int64, prev []byte) string {
	key := shortSum(series, agent)
	before, known := v.series[key]
	v.series[key] = numbered{n, hash}
	if !known && v.m.FirstSequence > 1 {
		return "" // the previous numbers are before the bundle
	}
	switch {
	case n > before.n+1:
		return fmt.Sprintf("%s: %d is missing", seriesIn(series, agent), before.n+1)
	case n <= before.n, known && string(prev) != string(before.hash[:]):
		return fmt.Sprintf("%s: %d does not follow %d", seriesIn(series, agent), n, before.n)
	}
	return ""
}

// isNumbered checks that series and agent of an event match its payload. record is empty if the
// payload has none.
func isNumbered(l ledger.Line, record, sealed map[string]jsontext.Value) string {
	series, ok := events.SeriesBy(l.Type, func(member string) string { return textOf(record[member]) })
	if !ok {
		return "series"
	}
	if series != l.Series {
		kind, outcome, _ := strings.Cut(series, "/")
		return fmt.Sprintf("%s: %d is %s %q", seriesIn(l.Series, ""), l.SeriesN, article(kind), outcome)
	}
	if l.Type != events.TypeDecisionRecorded {
		return ""
	}
	agent := ""
	subject, _ := canon.Members(record["subject"]) // empty if it is missing or not an object
	if subject["agentId"] != nil {
		agent = textOf(sealed["keyId"])
	}
	if agent != l.Agent || agent == "" && subject["agentId"] != nil {
		return "agent"
	}
	return ""
}

// hasAgent reports whether an event may be numbered for its agent. A receipt or approval has the
// agent of its decision, if that is in the bundle, and events of most types have none.
func (v *verifier) hasAgent(e *ledger.Event) bool {
	switch {
	case !events.OfAgent(e.Type):
		return e.Agent == ""
	case e.Type == events.TypeDecisionRecorded:
		v.agents[shortSum(e.Stream)] = shortSum(e.Agent)
		return true
	}
	agent, here := v.agents[shortSum(e.Stream)]
	return !here || agent == shortSum(e.Agent)
}

// article returns a kind of events with its indefinite article.
func article(kind string) string {
	if kind == "approval" {
		return "an " + kind
	}
	return "a " + kind
}
