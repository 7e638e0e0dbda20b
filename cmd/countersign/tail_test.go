package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// An operator can print any event by its position, in the same form as the program fanout
// publishes it. In a ledger with several partitions, the position needs the partition.
func TestEventsByTheirPositions(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		o := &operator{t, []string{"--database-url", ledgertest.NewPartitioned(t, n).URL, "--signing-key", strings.Repeat("07", 32), "--data-kek", strings.Repeat("08", 32)}}
		o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
		lines := strings.Split(strings.TrimSpace(o.run(0, "--json", "tail", "--once")), "\n")
		for _, line := range lines {
			var listed struct {
				Partition, Position int64
				ID                  string `json:"eventId"`
				Payload             json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &listed); err != nil {
				t.Fatal(err)
			}
			var whole forms.EventData
			text := o.run(0, "tail", "--position", fmt.Sprint(listed.Partition, ":", listed.Position))
			if err := json.Unmarshal([]byte(text), &whole); err != nil || whole.EventID != listed.ID || string(whole.Payload) != string(listed.Payload) || whole.Hash == "" {
				t.Errorf("%s: %s, %v", listed.ID, text, err)
			}
		}
		if len(lines) < 2 {
			t.Errorf("only %d events", len(lines))
		}
		for _, bad := range []string{"0:9999", fmt.Sprint(n, ":1"), "x"} {
			o.run(2, "tail", "--position", bad)
		}
		o.run(map[bool]int{true: 0, false: 2}[n == 1], "tail", "--position", "1")
	}
}
