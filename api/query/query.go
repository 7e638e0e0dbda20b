package query

import (
	"errors"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Bounds of lists and searches.
const (
	MostSearched  = 4000 // decisions whose records a search opens for one page
	searchBatch   = 200  // decisions whose records are opened at once
	MostDelivered = 100  // messages to a webhook that are listed, the newest
	MostMachines  = 50   // machines whose guards are listed, those that reported last
)

// Error turns an error of a projection into the refusal that callers read.
func Error(err error) error {
	switch {
	case errors.Is(err, projections.ErrNotFound):
		return policy.Refuse(ground.CodeNotFound, "", "not found")
	case errors.Is(err, projections.ErrBehind):
		return &ground.Unavailable{Cause: err}
	}
	return err
}
