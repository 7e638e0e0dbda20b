package events

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/canon"
)

// numbered says how the events of one type are numbered. A new outcome needs a new schema version:
// an event whose outcome is not listed cannot be appended.
type numbered struct {
	name     string   // name of the series, or its first part if the type has outcomes
	member   string   // member of the record whose value is the outcome; empty if the type has no outcomes
	outcomes []string // allowed outcomes
	agent    agentOf
}

// agentOf says how the agent of an event is determined.
type agentOf int

const (
	noAgent         agentOf = iota
	agentOfRecord           // the data key of the record's subject.agentId, if it has one
	agentOfDecision         // the agent of the decision in the event's stream
)

// SeriesOf returns the series of an event, given its type and payload. It is empty for a type
// whose events are not numbered. An unknown outcome is an error.
func SeriesOf(eventType string, payload []byte) (string, error) {
	name, known := SeriesBy(eventType, func(member string) string {
		start, end, found := canon.Find(payload, "record", member)
		if !found || end-start < 2 || payload[start] != '"' {
			return ""
		}
		return string(payload[start+1 : end-1])
	})
	if !known {
		return "", fmt.Errorf("%s: record.%s must be one of %v", eventType, kinds[eventType].series.member, kinds[eventType].series.outcomes)
	}
	return name, nil
}

// SeriesBy returns the series of an event, like SeriesOf. The caller's function member returns a
// text member of the record, or an empty text. known is false if the outcome is unknown.
func SeriesBy(eventType string, member func(name string) string) (name string, known bool) {
	n := kinds[eventType].series
	if n.member == "" {
		return n.name, true
	}
	outcome := member(n.member)
	return n.name + "/" + outcome, slices.Contains(n.outcomes, outcome)
}

// SeriesNames lists the series of a type, in the order of its outcomes.
func SeriesNames(eventType string) []string {
	n := kinds[eventType].series
	if n.member == "" && n.name != "" {
		return []string{n.name}
	}
	names := make([]string, len(n.outcomes))
	for i, outcome := range n.outcomes {
		names[i] = n.name + "/" + outcome
	}
	return names
}

// IsSeries reports whether events of a type can be in a series. series is empty for an event that
// is not numbered.
func IsSeries(eventType, series string) bool {
	n := kinds[eventType].series
	if n.member == "" {
		return series == n.name
	}
	outcome, ok := strings.CutPrefix(series, n.name+"/")
	return ok && slices.Contains(n.outcomes, outcome)
}

// OfAgent reports whether events of a type can be numbered for an agent.
func OfAgent(eventType string) bool { return kinds[eventType].series.agent != noAgent }

// NamesAgent reports whether an event is numbered for an agent that its record names.
func NamesAgent(eventType string, payload []byte) bool {
	_, _, named := canon.Find(payload, "record", "subject", "agentId")
	return named && kinds[eventType].series.agent == agentOfRecord
}

// AgentOf returns the id of the agent's data key for which an event must be numbered. If
// ofDecision is true, the payload does not determine the agent: it is the agent of the decision in
// the event's stream.
func AgentOf(eventType string, payload []byte) (agent string, ofDecision bool) {
	switch kinds[eventType].series.agent {
	case agentOfDecision:
		return "", true
	case agentOfRecord:
		if !NamesAgent(eventType, payload) {
			return "", false
		}
		if start, end, found := canon.Find(payload, "sealed", "keyId"); found && end-start > 2 {
			return string(payload[start+1 : end-1]), false
		}
	}
	return "", false
}
