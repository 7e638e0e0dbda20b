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

// Joint is the result of comparing two exports of one organization. Each text about events begins
// with the name of their series, or of the organization's history if both exports contain the
// whole history.
type Joint struct {
	Joined []string `json:"joined"` // the second export continues or overlaps the first one
	Apart  []string `json:"apart"`  // numbers are missing between the exports, or they are in the wrong order
	False  []string `json:"false"`  // the exports contradict each other
}

// extent contains the results of a verification that Join needs.
type extent struct {
	relied
	selection *Selection
	head      tree.Hash // root of the checkpoint; zero if there is none

	from, until int64 // positions of the first and the last event; set by chains
}

// chainName names a chain: the series of an agent, the series of the tenant if agent is empty, or
// the tenant's history if both are empty.
type chainName struct{ series, agent string }

// chain contains the events of a series in an export, by their numbers.
type chain struct {
	first, last int64  // numbers in the period; none if last is below first
	low         int64  // number of events[0], which may be the one before the period
	prev        []byte // hash of the previous number that events[0] names; nil if there is none
	events      []linked
	newest      *Range // range in the manifest; nil for a whole history
}

// linked is an event of a chain. Its hash is enough, because it covers the hash of the previous
// event.
type linked struct {
	hash     ledger.Hash
	position int64
}

// high returns the number of the last event, or low-1 if there are no events.
func (c *chain) high() int64 { return c.low + int64(len(c.events)) - 1 }

// at returns the event with number n, which must be between low and high.
func (c *chain) at(n int64) linked { return c.events[n-c.low] }

// Join compares two valid exports and reports whether the second continues the first. The result
// is Unchecked if the exports cannot be joined: they are not of one organization, or one of them
// is a dispute pack. The error says what could not be read.
func Join(ctx context.Context, a, b *Bundle, first, second Result) (Joint, error) {
	j, x, y := Joint{Joined: []string{}, Apart: []string{}, False: []string{}}, first.extent, second.extent
	// The exports must be of the same organization, and two checkpoints of one size must agree.
	if x == nil || y == nil {
		return j, Unchecked("a dispute pack is about one purchase, so nothing can be joined to it")
	}
	if x.Origin != y.Origin || x.Partition != y.Partition || x.Tenant != y.Tenant {
		return j, Unchecked("the exports are not of one organization of one ledger, so they cannot be joined")
	}
	if x.CheckpointSize > 0 && x.CheckpointSize == y.CheckpointSize && x.head != y.head {
		j.False = append(j.False, fmt.Sprintf("history of %s: the checkpoints of %d events have two roots", x.Tenant, x.CheckpointSize))
	}
	// Read the chains that both exports can contain.
	names := namesOf(x, y)
	before, err := a.chains(ctx, x, names)
	if err != nil {
		return j, err
	}
	after, err := b.chains(ctx, y, names)
	if err != nil {
		return j, err
	}
	// Compare the two chains of each name: do they contradict each other, and does the second
	// continue the first?
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

// namesOf lists the series that both exports can contain. A whole history contains every series.
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

// chains reads the events of a verified bundle again and returns the chains with these names.
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

// numberOf returns the number of an event in a chain, or 0 if it has none, and the hash of the
// event with the previous number.
func numberOf(name chainName, e *ledger.Event) (n int64, prev []byte) {
	switch {
	case name == chainName{}:
		return e.Sequence, e.Prev[:]
	case e.Series != name.series, name.agent != "" && e.Agent != name.agent:
		return 0, nil
	}
	return e.Number(name.agent)
}

// lacks returns an explanation if the whole history x covers the position of an event of a
// selection, but does not contain the event. Otherwise the text is empty. whole is the chain of
// that series in the history, or nil.
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

// contradicts returns an explanation if two exports contradict each other in one series, otherwise
// an empty text. s and r are their selections, or nil for a whole history.
func contradicts(c, d *chain, s, r *Selection) string {
	if len(c.events) > 0 && len(d.events) > 0 {
		// Each event names the hash of the previous one. So if the last common number is the same
		// event in both, all earlier ones are too.
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

// apart returns the reason why the second export does not continue the first, or an empty text.
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

// together lists the numbers of two exports.
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
