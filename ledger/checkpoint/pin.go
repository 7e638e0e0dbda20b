package checkpoint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Pin is what a verifier keeps of a ledger: the newest note it has seen, of each tenant whose
// events it has checked the last one, and of each series the newest number that was claimed.
// The note alone does not show where a tenant's history or a series ends.
//
// As a file it is the note; then, if it knows tenants, an empty line and a line for each
// tenant and series: its name, the sequence or number, and the event's hash in hex, separated
// by spaces. The name is the tenant, or the tenant and the series, or these and the agent. A
// note alone is a pin that knows no tenant.
type Pin struct {
	Note    []byte
	Tenants map[string]Seen // by name; SeriesName is that of a series
}

// Seen is an event of a tenant or series that a verifier has checked.
type Seen struct {
	Sequence int64  // or the number in the series
	Hash     string // in hex
}

// SeriesName is the name of a series in a pin. agent is empty for the series of a tenant.
func SeriesName(tenant, series, agent string) string {
	if agent == "" {
		return tenant + " " + series
	}
	return tenant + " " + series + " " + agent
}

// SplitName returns the parts of a name in a pin. series is empty for a tenant, and agent for a
// series of a tenant.
func SplitName(name string) (tenant, series, agent string) {
	tenant, rest, _ := strings.Cut(name, " ")
	series, agent, _ = strings.Cut(rest, " ")
	return tenant, series, agent
}

var pinLine = regexp.MustCompile(`^([^ ]+(?: [^ ]+){0,2}) ([1-9][0-9]{0,15}) ([0-9a-f]{64})$`)

// ParsePin reads a pin. It does not check who signed the note; Open does.
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

// Text formats the pin as ParsePin reads it.
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
