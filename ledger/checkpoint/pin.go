package checkpoint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Pin is the record that a verifier keeps of a ledger: the newest note that it has seen, the last
// event that it has checked of each tenant, and the highest number of each series. The note alone
// does not show where a tenant's history or a series ends.
//
// A pin file contains the note. If the pin has tenants, an empty line follows, and then a line for
// each tenant and series: its name, the sequence or number, and the event's hash in hex, separated
// by spaces. The name is the tenant, or tenant and series, or tenant, series and agent. A file
// with a note alone is a pin without tenants.
type Pin struct {
	Note    []byte
	Tenants map[string]Seen // by name; SeriesName returns the name of a series
}

// Seen identifies the last event of a tenant or series that a verifier has checked.
type Seen struct {
	Sequence int64  // sequence of the tenant, or number in the series
	Hash     string // hash of the event in hex
}

// SeriesName returns the name of a series in a pin. agent is empty for the series of a tenant.
func SeriesName(tenant, series, agent string) string {
	if agent == "" {
		return tenant + " " + series
	}
	return tenant + " " + series + " " + agent
}

// SplitName splits a name in a pin. series is empty if the name is a tenant, and agent is empty if
// it is the series of a tenant.
func SplitName(name string) (tenant, series, agent string) {
	tenant, rest, _ := strings.Cut(name, " ")
	series, agent, _ = strings.Cut(rest, " ")
	return tenant, series, agent
}

var pinLine = regexp.MustCompile(`^([^ ]+(?: [^ ]+){0,2}) ([1-9][0-9]{0,15}) ([0-9a-f]{64})$`)

// ParsePin parses a pin file. It does not check the signatures of the note; Open does.
func ParsePin(text []byte) (Pin, error) {
	body, rest, _ := strings.Cut(string(text), "\n\n")
	signatures, tenants, more := strings.Cut(rest, "\n\n")
	if !more {
		return Pin{text, map[string]Seen{}}, nil
	}
	pin := Pin{[]byte(body + "\n\n" + signatures + "\n"), map[string]Seen{}}
	lines, ended := strings.CutSuffix(tenants, "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		m := pinLine.FindStringSubmatch(line)
		if m == nil || !ended || pin.Tenants[m[1]].Sequence > 0 {
			return pin, fmt.Errorf("%w: after the note, each tenant needs one line with tenant, sequence and hash", ErrNote)
		}
		sequence, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return pin, fmt.Errorf("%w: %w", ErrNote, err)
		}
		pin.Tenants[m[1]] = Seen{sequence, m[3]}
	}
	return pin, nil
}

// Text returns the pin as a file that ParsePin can parse.
func (p Pin) Text() []byte {
	text := string(p.Note)
	if len(p.Tenants) > 0 {
		text += "\n"
	}
	for _, tenant := range slices.Sorted(maps.Keys(p.Tenants)) {
		text += fmt.Sprintf("%s %d %s\n", tenant, p.Tenants[tenant].Sequence, p.Tenants[tenant].Hash)
	}
	return []byte(text)
}
