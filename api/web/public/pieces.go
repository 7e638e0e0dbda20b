package public

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/policy/actionrisk"
)

// Piece is a part of a command. Found reports whether a rule matched it.
type Piece struct {
	Text  string
	Found bool
}

// Pieces cuts a command at the start and end of each match. The pieces in order are the whole
// command.
func Pieces(command string, rules []actionrisk.MatchedRule) []Piece {
	found := make([]actionrisk.Evidence, 0, len(rules))
	for _, r := range rules {
		if e := r.Evidence; 0 <= e.Start && e.Start < e.End && e.End <= len(command) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b actionrisk.Evidence) int { return cmp.Compare(a.Start, b.Start) })
	var pieces []Piece
	at := 0
	for _, e := range found {
		if e.End <= at {
			continue
		}
		if e.Start > at {
			pieces = append(pieces, Piece{command[at:e.Start], false})
		}
		pieces = append(pieces, Piece{command[max(at, e.Start):e.End], true})
		at = e.End
	}
	if at < len(command) {
		pieces = append(pieces, Piece{command[at:], false})
	}
	return pieces
}
