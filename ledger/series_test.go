package ledger

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// numberedEvents returns decisions of two agents as the planner numbers them: two denied ones of
// sub_1, an allowed one of sub_1, and a denied one of sub_2.
func numberedEvents(t *testing.T) []Event {
	t.Helper()
	decision := func(id byte, outcome, agent string) *Append {
		return numbered(&Append{Tenant: "t", IdemKey: Hash{id}, Events: []Pending{{Stream: fmt.Sprint("decision/", id), Expect: New(), ID: fmt.Sprint("evt_", id)}}}, outcome, agent, false)
	}
	p, err := planned(0, "o/0", 1, (&table{origin: "o/0"}).heads(), []*Append{
		decision(1, "deny", "sub_1"), decision(2, "allow", "sub_1"), decision(3, "deny", "sub_2"), decision(4, "deny", "sub_1")})
	if err != nil {
		t.Fatal(err)
	}
	return p.events
}

func TestNumbersAreDenseAndLinked(t *testing.T) {
	t.Parallel()
	list := numberedEvents(t)
	for i, want := range []struct {
		series   string
		n        int64
		prev     []byte
		agent    string
		ofAgent  int64
		agentPrv []byte
	}{
		{"decision/deny", 1, nil, "sub_1", 1, nil},
		{"decision/allow", 1, nil, "sub_1", 1, nil},
		{"decision/deny", 2, list[0].Hash[:], "sub_2", 1, nil},
		{"decision/deny", 3, list[2].Hash[:], "sub_1", 2, list[0].Hash[:]},
	} {
		e := list[i]
		if e.Series != want.series || e.SeriesN != want.n || !bytes.Equal(e.SeriesPrev, want.prev) ||
			e.Agent != want.agent || e.AgentN != want.ofAgent || !bytes.Equal(e.AgentPrev, want.agentPrv) {
			t.Errorf("event %d: %+v, want %+v", i+1, e, want)
		}
	}
}

// A changed number, link, series or agent is detected, even if the event's hash was recomputed, as
// an attacker with all keys could do.
func TestVerifierFindsEveryChangeOfANumber(t *testing.T) {
	t.Parallel()
	walkOf := func(list []Event) string {
		w := newWalk("o/0")
		for _, e := range list {
			w.next(e)
		}
		return strings.Join(w.end(), "; ")
	}
	if faults := walkOf(numberedEvents(t)); faults != "" {
		t.Fatalf("the untouched ledger has faults: %s", faults)
	}
	for name, change := range map[string]func(*Event){
		"series": func(e *Event) { e.Series = "decision/allow" },
		"no series": func(e *Event) {
			e.Series, e.SeriesN, e.SeriesPrev, e.Agent, e.AgentN, e.AgentPrev = "", 0, nil, "", 0, nil
		},
		"series_n":           func(e *Event) { e.SeriesN++ },
		"series_n twice":     func(e *Event) { e.SeriesN-- },
		"series_prev":        func(e *Event) { e.SeriesPrev = bytes.Repeat([]byte{1}, 32) },
		"series_prev absent": func(e *Event) { e.SeriesPrev = nil },
		"agent":              func(e *Event) { e.Agent = "sub_2" },
		"no agent":           func(e *Event) { e.Agent, e.AgentN, e.AgentPrev = "", 0, nil },
		"agent_n":            func(e *Event) { e.AgentN++ },
		"agent_prev":         func(e *Event) { e.AgentPrev = bytes.Repeat([]byte{1}, 32) },
		"half a number":      func(e *Event) { e.Series = "" },
	} {
		for _, hashed := range []bool{false, true} {
			list := numberedEvents(t)
			last := &list[len(list)-1]
			change(last)
			if hashed {
				last.Hash = last.Sum()
			} else if last.Hash == last.Sum() {
				t.Errorf("%s is not in the preimage", name)
			}
			if walkOf(list) == "" {
				t.Errorf("%s changed unnoticed, hashed again: %v", name, hashed)
			}
		}
	}
}

// An append is refused if the outcome of an event has no series, if a decision is to be numbered
// for another agent than its payload names, or if an event without a series has an agent.
func TestAppendRefusesWhatHasNoSeries(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]*Append{
		"an unknown outcome": numbered(&Append{Events: make([]Pending, 1)}, "maybe", "sub_1", false),
		"another agent": func() *Append {
			a := numbered(&Append{Events: make([]Pending, 1)}, "deny", "sub_1", false)
			a.Events[0].Agent = "sub_2"
			return a
		}(),
		"an agent without a series": {Events: []Pending{{Type: "x", Payload: []byte(`{}`), Agent: "sub_1"}}},
	} {
		if err := a.makeReady(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// A node that has appended the first event of an agent needs no look-up for the agent's other
// series.
func TestANewAgentNeedsNoLookUp(t *testing.T) {
	t.Parallel()
	plan := func(before *heads, outcome string, isNew bool) (plan, error) {
		return planned(0, "o/0", 1, before, []*Append{numbered(&Append{Tenant: "t", IdemKey: Hash{byte(len(outcome))}, Events: []Pending{{Stream: outcome, ID: outcome}}}, outcome, "sub_1", isNew)})
	}
	cached := newHeads(0, Genesis("o/0", ""), 1, keyMap{})
	cached.tenants["t"] = tenantHead{hash: Genesis("o/0", "t")}
	for _, outcome := range []string{"allow", "deny"} {
		cached.series[keyOfSeries("t", "", "decision/"+outcome)] = seriesHead{}
	}
	if _, err := plan(cached, "allow", false); err == nil {
		t.Error("an agent that is not known was given a number")
	}
	p, err := plan(cached, "allow", true)
	if err != nil {
		t.Fatal(err)
	}
	cached.advance(&p.head, nil)
	if p, err = plan(cached, "deny", false); err != nil || p.events[0].AgentN != 1 {
		t.Errorf("another series of the same agent: %v", err)
	}
}
