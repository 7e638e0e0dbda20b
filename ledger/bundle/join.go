package bundle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/tree"
)

// Joint is what two exports of one organization say together. Each text begins with the name
// of a series, or of the organization's history where both exports are whole.
type Joint struct {
	Joined []string `json:"joined"` // the second export goes on where the first one ends, or overlaps it
	Apart  []string `json:"apart"`  // it does not: numbers are in neither export, or the order is another
	False  []string `json:"false"`  // the exports contradict each other
}

// extent holds the results of a verification that Join reads.
type extent struct {
	relied
	selection *Selection
	head      tree.Hash // root of the checkpoint; zero without one

	from, until int64 // positions of the first and the last event; chains sets them
}

// chainName names a series: that of an agent, that of the tenant if agent is empty, or the
// tenant's chain if both are empty.
type chainName struct{ series, agent string }

// chain is what an export has of a series, by its numbers.
type chain struct {
	first, last int64  // numbers of the period; none if last is below first
	low         int64  // number of the first event here, which may be that before the period
	prev        []byte // hash that this event has of the number before; nil for none
	events      []linked
	newest      *Range // what the claim says; nil in a whole history
}

// linked is an event of a chain. Its own hash is enough: it covers that of the event before.
type linked struct {
	hash     ledger.Hash
	position int64
}

// high is the number of the last event here, below low if there is none.
func (c *chain) high() int64 { return c.low + int64(len(c.events)) - 1 }

// at is the event with a number that is here.
func (c *chain) at(n int64) linked { return c.events[n-c.low] }

// Join says how two valid exports fit together. The error says what could not be read. It is
// Unchecked if the exports are not of one organization.
func Join(ctx context.Context, a, b *Bundle, first, second Result) (Joint, error) {
	j, x, y := Joint{Joined: []string{}, Apart: []string{}, False: []string{}}, first.extent, second.extent
	if x == nil || y == nil {
		return j, Unchecked("a dispute pack is about one purchase, so nothing can be joined to it")
	}
	if x.Origin != y.Origin || x.Partition != y.Partition || x.Tenant != y.Tenant {
		return j, Unchecked("the exports are not of one organization of one ledger, so they cannot be joined")
	}
	if x.CheckpointSize > 0 && x.CheckpointSize == y.CheckpointSize && x.head != y.head {
		j.False = append(j.False, fmt.Sprintf("history of %s: the checkpoints of %d events have two roots", x.Tenant, x.CheckpointSize))
	}
	names := namesOf(x, y)
	before, err := a.chains(ctx, x, names)
	if err != nil {
		return j, err
	}
	after, err := b.chains(ctx, y, names)
	if err != nil {
		return j, err
	}
	none := true
	for _, name := range names {
		c, d := before[name], after[name]
		text := seriesIn(name.series, name.agent)
		if name == (chainName{}) {
			text = "history of " + x.Tenant
		}
		no, both := "", c != nil && d != nil
		if both {
			no = contradicts(c, d, x.selection, y.selection)
		}
		no = cmp.Or(no, lacks(x, c, d), lacks(y, d, c))
		none = none && no == "" && !both
		switch {
		case no != "":
			j.False = append(j.False, text+": "+no)
		case !both:
		default:
			if gap := apart(c, d); gap != "" {
				j.Apart = append(j.Apart, text+": "+gap)
			} else {
				j.Joined = append(j.Joined, text+": "+together(c, d))
			}
		}
	}
	if none {
		j.Apart = append(j.Apart, "no series is in both exports")
	}
	return j, nil
}

// namesOf are the series that both exports can have. A whole history has every series.
func namesOf(x, y *extent) (names []chainName) {
	if x.selection == nil && y.selection == nil {
		return []chainName{{}}
	}
	of := func(s *Selection) (names []chainName) {
		for _, r := range s.Series {
			names = append(names, chainName{r.Series, s.Agent})
		}
		return names
	}
	switch {
	case x.selection == nil:
		return of(y.selection)
	case y.selection == nil:
		return of(x.selection)
	}
	in := of(y.selection)
	return slices.DeleteFunc(of(x.selection), func(n chainName) bool { return !slices.Contains(in, n) })
}

// chains reads the events of a verified bundle a second time, and returns what it has of some
// series.
func (b *Bundle) chains(ctx context.Context, x *extent, names []chainName) (map[chainName]*chain, error) {
	found := map[chainName]*chain{}
	if x.selection != nil {
		for i, r := range x.selection.Series {
			found[chainName{r.Series, x.selection.Agent}] = &chain{first: r.First, last: r.Last, newest: &x.selection.Series[i]}
		}
	}
	_, err := b.lines(ctx, eventsFile, func(_ int, text []byte) error {
		l, e, _ := parseLine(text)
		x.from, x.until = cmp.Or(x.from, l.Position), l.Position
		for _, name := range names {
			n, prev := numberOf(name, &e)
			if n == 0 {
				continue
			}
			c := found[name]
			if c == nil {
				c = &chain{}
				found[name] = c
			}
			if len(c.events) == 0 {
				c.low, c.prev = n, prev
			}
			if n != c.high()+1 {
				return fmt.Errorf("%s was changed while it was read", eventsFile)
			}
			c.events = append(c.events, linked{e.Hash, l.Position})
			if c.newest == nil {
				c.first, c.last = c.low, n
			}
		}
		return nil
	})
	return found, err
}

// numberOf returns the number of an event in a series, 0 if it has none, and the hash that it
// has of the number before.
func numberOf(name chainName, e *ledger.Event) (n int64, prev []byte) {
	switch {
	case name == chainName{}:
		return e.Sequence, e.Prev[:]
	case e.Series != name.series, name.agent != "" && e.Agent != name.agent:
		return 0, nil
	}
	return e.Number(name.agent)
}

// lacks says which number of a selection is not in a whole history, x, although the history
// covers its position. whole is what the history has of the series, or nil.
func lacks(x *extent, whole, selected *chain) string {
	if x.selection != nil || selected == nil || selected.newest == nil {
		return ""
	}
	for i, e := range selected.events {
		n := selected.low + int64(i)
		if e.position >= x.from && e.position <= x.until && (whole == nil || n < whole.low || n > whole.high()) {
			return fmt.Sprintf("%d is not in the whole history", n)
		}
	}
	return ""
}

// contradicts says what two exports say differently of one series. s and r are the selections
// that they are; nil is a whole history.
func contradicts(c, d *chain, s, r *Selection) string {
	if len(c.events) > 0 && len(d.events) > 0 {
		// Each event has the hash of the one before: where the last number in both is the same
		// event, so are all before it.
		low, high := max(c.low, d.low), min(c.high(), d.high())
		if low <= high && c.at(high).hash != d.at(high).hash {
			for c.at(low).hash == d.at(low).hash {
				low++
			}
			return fmt.Sprintf("%d is not the same event in both", low)
		}
		for _, pair := range [][2]*chain{{c, d}, {d, c}} {
			before, after := pair[0], pair[1]
			last := before.high()
			if hash := before.at(last).hash; after.low == last+1 && !bytes.Equal(after.prev, hash[:]) {
				return fmt.Sprintf("%d does not follow %d", after.low, last)
			}
		}
	}
	if c.newest != nil && d.newest != nil {
		less, more, through, other := c.newest, d.newest, s.Through, r.Through
		if less.Newest > more.Newest {
			less, more, through, other = more, less, other, through
		}
		switch {
		case less.Newest < more.Newest && through >= other:
			return fmt.Sprintf("%d is the newest up to position %d in one export, and %d up to position %d in the other", less.Newest, through, more.Newest, other)
		case less.Newest == more.Newest && less.NewestHash != more.NewestHash:
			return fmt.Sprintf("%d is not the same event in both", less.Newest)
		}
	}
	for _, of := range []struct {
		claim *Selection
		*Range
		shown *chain
	}{{s, c.newest, d}, {r, d.newest, c}} {
		if n := of.shown.high(); of.Range != nil && n > of.Newest {
			if n = max(of.Newest+1, of.shown.low); of.shown.at(n).position <= of.claim.Through {
				return fmt.Sprintf("%d is the newest up to position %d in one export, and %d has the position %d in the other", of.Newest, of.claim.Through, n, of.shown.at(n).position)
			}
		}
	}
	return ""
}

// apart says why the second export does not go on where the first one ends.
func apart(c, d *chain) string {
	switch {
	case d.first > c.last+2:
		return fmt.Sprintf("%d to %d are in neither", c.last+1, d.first-1)
	case d.first > c.last+1:
		return fmt.Sprintf("%d is in neither", c.last+1)
	case d.first < c.first:
		return fmt.Sprintf("the second export begins at %d, before the first one: name the earlier export first", d.first)
	case d.last < c.last:
		return fmt.Sprintf("the second export ends at %d, before the first one", d.last)
	}
	return ""
}

// together says which numbers two exports have.
func together(c, d *chain) string {
	if c.last < c.first && d.last < d.first && c.last == 0 {
		return "no number in either"
	}
	return c.numbers() + ", then " + d.numbers()
}

func (c *chain) numbers() string {
	if c.last < c.first {
		return fmt.Sprintf("none after %d", c.last)
	}
	return fmt.Sprintf("%d to %d", c.first, c.last)
}
