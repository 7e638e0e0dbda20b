package events

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/canon"
)

// numbered says how the events of one type are numbered. A new outcome is a new schema
// version: an event whose outcome is not in its type's row cannot be appended.
type numbered struct {
	name     string   // of the series, or its first part if the type has outcomes
	member   string   // of the record; its value is the outcome
	outcomes []string // that the member can have
	agent    agentOf
}

// agentOf says which agent an event is about.
type agentOf int

const (
	noAgent         agentOf = iota
	agentOfRecord           // the data key of the record's subject.agentId, if it has one
	agentOfDecision         // that of the decision in the event's stream
)

// SeriesOf returns the series of an event by its type and payload, or an empty name for a
// type whose events are not numbered. An event whose outcome is not known is an error.
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

// SeriesBy is SeriesOf for a payload of which the caller reads the members. member returns a
// text of the record, or an empty one. known is false if the outcome is not in the table.
func SeriesBy(eventType string, member func(name string) string) (name string, known bool) {
	n := kinds[eventType].series
	if n.member == "" {
		return n.name, true
	}
	outcome := member(n.member)
	return n.name + "/" + outcome, slices.Contains(n.outcomes, outcome)
}

// SeriesNames lists the series of a type of events, in the order of the table.
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

// IsSeries says whether events of a type can be in a series. The name is empty for an event
// without one.
func IsSeries(eventType, series string) bool {
	n := kinds[eventType].series
	if n.member == "" {
		return series == n.name
	}
	outcome, ok := strings.CutPrefix(series, n.name+"/")
	return ok && slices.Contains(n.outcomes, outcome)
}

// AgentOf returns the agent that an event must be numbered for. If ofDecision is true, the
// payload does not name the agent: it is that of the decision in the event's stream.
func AgentOf(eventType string, payload []byte) (agent string, ofDecision bool) {
	switch kinds[eventType].series.agent {
	case agentOfDecision:
		return "", true
	case agentOfRecord:
		if _, _, named := canon.Find(payload, "record", "subject", "agentId"); !named {
			return "", false
		}
		if start, end, found := canon.Find(payload, "sealed", "keyId"); found && end-start > 2 {
			return string(payload[start+1 : end-1]), false
		}
	}
	return "", false
}
