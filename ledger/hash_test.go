package ledger

import (
	"crypto/sha256"
	"testing"
)

// goldenEvents returns the worked example of the package comment.
func goldenEvents() (first, second Event) {
	const origin, tenant, actor = "ledger.example.com/countersign/0", "org_01JD3Z8W5T0000000000000000", "cus_01JD3Z8W5T0000000000000002"
	key := IdemKey("organization", "acme-1")
	content := sha256.Sum256([]byte(`{"name":"Acme","owner":"ada@example.com","plan":"team"}`))
	first = Event{
		Position: 1, Tenant: tenant, Sequence: 1, Stream: "organization", Version: 1,
		ID: "evt_01JD3Z8W5T0000000000000001", Type: "organization.created", SchemaVersion: 1,
		OccurredUS: 1795186800000000, Actor: actor, IdemKey: key[:], ContentHash: content[:],
		Payload: []byte(`{"name":"Acme","plan":"team"}`), Prev: Genesis(origin, tenant),
	}
	first.PayloadHash = sha256.Sum256(first.Payload)
	first.Hash = first.Sum()
	second = Event{
		Position: 2, Tenant: tenant, Sequence: 2, Stream: "policy", Version: 1,
		ID: "evt_01JD3Z8W5T0000000000000003", Type: "policy.drafted", SchemaVersion: 1,
		OccurredUS: 1795186801000000, Actor: actor,
		Payload: []byte(`{"policyId":"default","version":1}`), Prev: first.Hash,
	}
	second.PayloadHash = sha256.Sum256(second.Payload)
	second.Hash = second.Sum()
	return first, second
}

func goldenNumbered() (third, fourth Event) {
	_, second := goldenEvents()
	third = Event{
		Position: 3, Tenant: second.Tenant, Sequence: 3, Stream: "decision/asd_01JD3Z8W5T0000000000000004", Version: 1,
		ID: "evt_01JD3Z8W5T0000000000000005", Type: "decision.recorded", SchemaVersion: 1,
		OccurredUS: 1795186802000000, Actor: second.Actor, Payload: []byte(`{"decision":"deny"}`), Prev: second.Hash,
		Series: "decision/deny", SeriesN: 1, Agent: "sub_01JD3Z8W5T0000000000000006", AgentN: 1,
	}
	third.PayloadHash = sha256.Sum256(third.Payload)
	third.Hash = third.Sum()
	fourth = third
	fourth.Position, fourth.Sequence, fourth.Stream, fourth.ID = 4, 4, "decision/asd_01JD3Z8W5T0000000000000007", "evt_01JD3Z8W5T0000000000000008"
	fourth.OccurredUS, fourth.Prev = 1795186803000000, third.Hash
	fourth.SeriesN, fourth.SeriesPrev, fourth.AgentN, fourth.AgentPrev = 2, third.Hash[:], 2, third.Hash[:]
	fourth.Hash = fourth.Sum()
	return third, fourth
}

func TestGoldenVector(t *testing.T) {
	t.Parallel()
	first, second := goldenEvents()
	for _, tc := range []struct{ name, got, want string }{
		{"payload_hash 1", first.PayloadHash.String(), "3977b79b8bdcc40f5313c025b4c0898c4f1b8bdb7988b1d2efbc5b334e91a98b"},
		{"payload_hash 2", second.PayloadHash.String(), "f6fb59e2cf19be3835a9bb129fc1f065c0854d85f43cf500fb8fba33fddaca05"},
		{"idem_key", Hash(first.IdemKey).String(), "a90cdf7a4e18856c2f6e82d360c2759237d01df8e19e3057a5c15a2127ad5b8f"},
		{"content_hash", Hash(first.ContentHash).String(), "76e5ebcf97e1e725478e6b0abee31255a9b7b02bc1345110ad82c64ef6f5f6a7"},
		{"genesis", first.Prev.String(), "df0975c0c960b4f593cbe938dd4069d13ca2424d2932ce0f140816b9c1555b5d"},
		{"hash 1", first.Hash.String(), "fc3623f93e30aab3876faaa6fb2d252b9e59dc74f0e25337243d44b2ee8f991d"},
		{"hash 2", second.Hash.String(), "ad3dc2483add25f130d6888ca5692a6397179547310af6833e8ebefa46ba6558"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, tc.got, tc.want)
		}
	}
	if a, b := len(first.Preimage(nil)), len(second.Preimage(nil)); a != 350 || b != 274 {
		t.Errorf("preimages of %d and %d octets, want 350 and 274", a, b)
	}
}

// The worked example continues with two numbered decisions.
func TestGoldenVectorOfNumberedEvents(t *testing.T) {
	t.Parallel()
	third, fourth := goldenNumbered()
	for _, tc := range []struct {
		e      Event
		octets int
		want   string
	}{
		{third, 385, "2c1cdf105daa85fb6f0231c9e56643f4721d5548efcf3b91ef5d42c615d1e6e9"},
		{fourth, 449, "5ae67e9f6af5474fc81c21c38fc7efc85b2ed0e461b38ab6cf46de4a17c088df"},
	} {
		if got := tc.e.Hash.String(); got != tc.want || len(tc.e.Preimage(nil)) != tc.octets {
			t.Errorf("%s: got %s of %d octets, want %s of %d", tc.e.ID, got, len(tc.e.Preimage(nil)), tc.want, tc.octets)
		}
	}
	third.Series, third.SeriesN, third.Agent, third.AgentN = "", 0, "", 0
	if got := len(third.Preimage(nil)); got != 310 {
		t.Errorf("a preimage of %d octets without the numbers, want 310", got)
	}
}

// Every column is in the preimage or is determined by the chain, so a verifier finds each change.
func TestVerifierFindsEveryChange(t *testing.T) {
	t.Parallel()
	const origin = "ledger.example.com/countersign/0"
	first, second := goldenEvents()
	// The second event of the example has no idempotency key, and only the first event of an
	// append must have one. So make both events one append and hash them again.
	first.More = 1
	first.Hash = first.Sum()
	second.Prev = first.Hash
	second.Hash = second.Sum()
	verify := func(events ...Event) []string {
		w := newWalk(origin)
		for _, e := range events {
			w.next(e)
		}
		return w.end()
	}
	if faults := verify(first, second); len(faults) > 0 {
		t.Fatalf("the untouched ledger has faults: %v", faults)
	}
	for name, change := range map[string]func(*Event){
		"p":              func(e *Event) { e.Partition++ },
		"pos":            func(e *Event) { e.Position++ },
		"tenant":         func(e *Event) { e.Tenant += "x" },
		"tseq":           func(e *Event) { e.Sequence++ },
		"stream":         func(e *Event) { e.Stream += "x" },
		"version":        func(e *Event) { e.Version++ },
		"event_id":       func(e *Event) { e.ID += "x" },
		"type":           func(e *Event) { e.Type += "x" },
		"schema_version": func(e *Event) { e.SchemaVersion++ },
		"more":           func(e *Event) { e.More++ },
		"occurred_us":    func(e *Event) { e.OccurredUS++ },
		"actor":          func(e *Event) { e.Actor += "x" },
		"key_id":         func(e *Event) { e.KeyID += "x" },
		"payload":        func(e *Event) { e.Payload = []byte(`{}`) },
		"payload_hash":   func(e *Event) { e.PayloadHash[0]++ },
		"prev":           func(e *Event) { e.Prev[0]++ },
		"hash":           func(e *Event) { e.Hash[0]++ },
		"idem_key":       func(e *Event) { e.IdemKey = make([]byte, 32) },
		"content_hash":   func(e *Event) { e.ContentHash = make([]byte, 32) },
	} {
		for i := range 2 {
			changed := []Event{first, second}
			change(&changed[i])
			if len(verify(changed...)) == 0 {
				t.Errorf("%s of event %d changed unnoticed", name, i+1)
			}
		}
	}
	for name, events := range map[string][]Event{
		"first deleted": {second}, "tail cut within an append": {first},
		"swapped": {second, first}, "doubled": {first, second, second},
	} {
		if len(verify(events...)) == 0 {
			t.Errorf("%s: unnoticed", name)
		}
	}
}
