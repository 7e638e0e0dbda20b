package operate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
)

// Tail prints new events.
type Tail struct {
	Last  int      `help:"Begin with this many of the newest events." short:"n" default:"10" placeholder:"N"`
	Once  bool     `help:"Stop after the newest event instead of waiting for more."`
	Type  []string `help:"Only events whose type begins with this text, such as decision or payment.settled." placeholder:"TYPE"`
	Org   string   `help:"Only events of this organization; the word service selects the service's own events." placeholder:"ORG"`
	Match string   `help:"Only events with this text in their type, stream, actor or summary." placeholder:"TEXT"`

	Position string `help:"Only the event at this position, in full, as the program fanout publishes it; if the ledger has several partitions, PARTITION:N." placeholder:"N"`
	setting.Ledger
}

const (
	tailBatch = 500
	tailEvery = time.Second // polling interval if the database sends no notifications
)

// Run prints events until a signal.
func (c *Tail) Run(ctx context.Context, o *screen.Output) error {
	c.Unsigned = true
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	if c.Position != "" {
		return c.showWhole(ctx, o, n.Ledger)
	}
	if c.Org != "" && !ledger.IsService(c.Org) {
		if c.Org, err = n.Organization(ctx, c.Org); err != nil {
			return err
		}
	}
	return c.follow(ctx, o, n.Ledger)
}

// follow prints the newest stored events, and then each new one.
func (c *Tail) follow(ctx context.Context, o *screen.Output, l *ledger.Ledger) error {
	after, err := l.Heads(ctx)
	if err != nil {
		return err
	}
	for p := range after {
		after[p] = max(after[p]-int64(c.Last), 0)
	}
	for {
		changed := l.Changed() // get the channel first, so that it also reports an event that is appended after the read
		events, err := newest(ctx, l, after)
		switch {
		case ctx.Err() != nil: // a signal ends the command
			return nil
		case err != nil:
			return err
		}
		if err := c.showAll(o, events); err != nil {
			return err
		}
		if len(events) > 0 {
			continue
		}
		if c.Once {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(tailEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// showWhole prints an event in the form in which the fan-out publishes its data. The message's
// datahash is the hash of these bytes.
func (c *Tail) showWhole(ctx context.Context, o *screen.Output, l *ledger.Ledger) error {
	at, err := parsePosition(c.Position)
	if err == nil {
		err = at.in(len(l.Partitions()))
	}
	if err != nil {
		return err
	}
	events, err := l.Partition(at.partition).After(ctx, at.position-1, 1)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf("partition %d ends before position %d", at.partition, at.position)
	}
	text, err := canon.Marshal(forms.DataOf(events[0]))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Stdout, "%s\n", text)
	return err
}

// newest returns the events after these positions, one position per partition, ordered by time. It
// advances the positions.
func newest(ctx context.Context, l *ledger.Ledger, after []int64) ([]ledger.Event, error) {
	var all []ledger.Event
	for p, position := range after {
		events, err := l.Partition(int16(p)).After(ctx, position, tailBatch)
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			after[p] = events[len(events)-1].Position
		}
		all = append(all, events...)
	}
	if len(after) > 1 {
		slices.SortStableFunc(all, func(a, b ledger.Event) int { return cmp.Compare(a.OccurredUS, b.OccurredUS) })
	}
	return all, nil
}

// tailedEvent is an event in the output of --json.
type tailedEvent struct {
	Partition int16          `json:"partition,omitzero"`
	Position  int64          `json:"position"`
	At        string         `json:"occurredAt"`
	Tenant    string         `json:"tenant"`
	Sequence  int64          `json:"sequence"`
	Stream    string         `json:"stream"`
	ID        string         `json:"eventId"`
	Type      string         `json:"type"`
	Actor     string         `json:"actor"`
	Payload   jsontext.Value `json:"payload"`
}

func (c *Tail) showAll(o *screen.Output, events []ledger.Event) error {
	for _, e := range events {
		if err := c.show(o, e); err != nil {
			return err
		}
	}
	return nil
}

// show prints an event if it matches the filters.
func (c *Tail) show(o *screen.Output, e ledger.Event) error {
	said, state := summary(told(e.Payload))
	if !c.takes(e, said) {
		return nil
	}
	at := canon.Stamp(e.Occurred())
	if o.JSON {
		line, err := canon.Marshal(tailedEvent{e.Partition, e.Position, at, e.Tenant, e.Sequence, e.Stream, e.ID, e.Type, e.Actor, jsontext.Value(e.Payload)})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Stdout, "%s\n", line)
		return err
	}
	cells := []string{at, fmt.Sprint(e.Position), e.Type, e.Tenant, e.Actor, said}
	if !o.Terminal {
		rows := screen.Table{Rows: [][]string{cells}}
		_, err := io.WriteString(o.Stdout, o.Table(rows))
		return err
	}
	_, err := fmt.Fprintf(o.Stdout, "%s  %6s  %s  %s  %s\n", o.Styled(screen.Faint, e.Occurred().Local().Format("15:04:05")), cells[1],
		o.Styled(screen.StateStyles[state], fmt.Sprintf("%-22s", e.Type)), fmt.Sprintf("%-30s", e.Tenant), screen.Printable(said))
	return err
}

func (c *Tail) takes(e ledger.Event, said string) bool {
	typed := len(c.Type) == 0
	for _, t := range c.Type {
		typed = typed || strings.HasPrefix(e.Type, t)
	}
	text := strings.ToLower(strings.Join([]string{e.Type, e.Stream, e.Actor, said}, " "))
	return typed && (c.Org == "" || e.Tenant == c.Org) && strings.Contains(text, strings.ToLower(c.Match))
}

// telling lists the members of payloads that a summary shows, the most important first. Encrypted
// members are not text, so they are left out.
var telling = []string{"decision", "verdict", "conformance", "outcome", "risk", "state", "status", "protocol", "service", "operation", "product", "charge",
	"plan", "role", "purpose", "version", "decisionId", "paymentId", "workflowId", "changed", "reason"}

// word is the name and value of a member in telling.
type word struct{ name, text string }

// told returns those members of a payload whose names are in the list "telling".
func told(payload []byte) (words []word) {
	var members map[string]jsontext.Value
	if json.Unmarshal(payload, &members) != nil {
		return nil
	}
	places := []map[string]jsontext.Value{members}
	for _, inner := range []string{"record", "workflow"} {
		var below map[string]jsontext.Value
		if json.Unmarshal(members[inner], &below) == nil {
			places = append(places, below)
		}
	}
	for _, name := range telling {
		for _, place := range places {
			if text := scalar(place[name]); text != "" {
				words = append(words, word{name, text})
				break
			}
		}
	}
	return words
}

// summary returns one line about an event, and the value that determines its colour.
func summary(words []word) (said, state string) {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.name + "=" + w.text
		if state == "" && screen.StateStyles[w.text] != "" {
			state = w.text
		}
	}
	return strings.Join(parts, " "), state
}

// scalar returns a string, a number or a list of strings as text, and "" for other values.
func scalar(value jsontext.Value) string {
	var text string
	var list []string
	switch value.Kind() {
	case '"':
		_ = json.Unmarshal(value, &text) // no error: stored events are valid JSON
	case '0':
		text = string(value)
	case '[':
		if json.Unmarshal(value, &list) == nil {
			text = strings.Join(list, ",")
		}
	}
	return text
}
