package audit

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// numbers checks the numbers of an event: they must be complete, and series and agent must follow
// from its type and payload. read reports whether the payload is available. The set checks that
// the numbers are dense and linked.
func (s *spanResult) numbers(r *run, e *ledger.Event, read bool) {
	fault := func(column, format string, args ...any) { s.fault(eventFault(e.Position, column, format, args...)) }
	if column := e.HalfNumber(); column != "" {
		fault(column, "a number must have all its columns or none, and from number 2 on the hash of the previous event")
	}
	agent, ofDecision := events.AgentOf(e.Type, e.Payload)
	if read {
		series, err := events.SeriesOf(e.Type, e.Payload)
		switch {
		case err != nil:
			fault("payload", "%s", err)
		case e.Series != series:
			fault("series", "must be %q, according to its payload", series)
		case !ofDecision && e.Agent != agent:
			fault("agent", "must be %q, according to its payload", agent)
		case agent == "" && events.NamesAgent(e.Type, e.Payload):
			fault("agent", "must be the data key of record.subject.agentId, which the payload does not name")
		}
	} else if !events.IsSeries(e.Type, e.Series) || e.Agent != "" && !events.OfAgent(e.Type) {
		fault("series", "must be one of %q", events.SeriesNames(e.Type))
	}
	if e.Series != "" {
		r.set.addNumber(kindNumber, e, "", e.SeriesN, e.SeriesPrev)
	}
	if e.Agent != "" {
		r.set.addNumber(kindAgentNumber, e, e.Agent, e.AgentN, e.AgentPrev)
	}
	switch {
	case ofDecision:
		r.set.add(kindAgentRepeated, r.set.fingerprint(e.Agent), e.Position, e.Tenant, e.Stream)
	case e.Type == events.TypeDecisionRecorded:
		r.set.add(kindAgentDecided, r.set.fingerprint(e.Agent), e.Position, e.Tenant, e.Stream)
	}
}

// addNumber adds the number of an event, and the hash that the event names for the previous
// number.
func (s *set) addNumber(kind byte, e *ledger.Event, agent string, n int64, prev []byte) {
	s.add(kind, s.fingerprint(string(e.Hash[:])), e.Position, e.Tenant, agent, e.Series, strconv.FormatInt(n, 10))
	if n > 1 {
		s.add(kind+1, s.fingerprint(string(prev)), e.Position, e.Tenant, agent, e.Series, strconv.FormatInt(n-1, 10))
	}
}

// addAgent adds the pair of an agent's name, which was decrypted, and its data key. Each agent has
// one data key, not counting destroyed ones, and each data key belongs to one agent.
func (s *set) addAgent(e *ledger.Event, record jsontext.Value) {
	start, end, named := canon.Find(record, "subject", "agentId")
	if !named || e.Agent == "" {
		return
	}
	name := string(record[start:end])
	s.add(kindAgentKey, s.fingerprint(e.Agent), e.Position, e.Tenant, name)
	s.add(kindAgentName, s.fingerprint(name), e.Position, e.Tenant, e.Agent)
}

// numberFault compares an entry about numbers or agents with the previous entry under the same
// name. first means that there is none.
func numberFault(before, e entry, first bool) (f Fault, found bool) {
	column := "series_n"
	if e.kind == kindAgentNumber || e.kind == kindAgentAfter {
		column = "agent_n"
	}
	switch e.kind {
	case kindNumber, kindAgentNumber:
		if !first {
			return eventFault(e.position, column, "position %d has the same number", before.position), true
		}
	case kindAfter, kindAgentAfter:
		switch {
		case first:
			return eventFault(e.position, column, "the previous number is missing"), true
		case e.a != before.a:
			return eventFault(e.position, column[:len(column)-1]+"prev", "must be the hash of the event with the previous number"), true
		}
	case kindAgentRepeated:
		if !first && e.a != before.a { // a receipt whose decision is missing is reported by its record
			return eventFault(e.position, "agent", "must be the agent of the decision in its stream"), true
		}
	case kindAgentKey:
		if !first && e.a != before.a {
			return eventFault(e.position, "agent", "the same agent has another data key at position %d", before.position), true
		}
	case kindAgentName:
		if !first && e.a != before.a {
			return eventFault(e.position, "agent", "the data key belongs to another agent at position %d", before.position), true
		}
	}
	return Fault{}, false
}
