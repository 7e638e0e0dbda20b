package query

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/projections"
)

// Limits of lists and searches.
const (
	MostSearched  = 4000 // records that a search decrypts for one page
	searchBatch   = 200  // records that are decrypted at once
	MostDelivered = 100  // newest messages to a webhook that a list shows
	MostMachines  = 50   // machines whose guards a list shows, most recent report first
)

// IsText reports whether a text can be searched for: PostgreSQL refuses a NUL and invalid UTF-8.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// Error converts an error of a projection into the error for callers.
func Error(err error) error {
	switch {
	case errors.Is(err, projections.ErrNotFound):
		return ground.ErrNotFound
	case errors.Is(err, projections.ErrBehind):
		return &ground.Unavailable{Cause: err}
	}
	return err
}
