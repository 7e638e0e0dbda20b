package query

import (
	"context"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/projections"
)

// Audit answers queries of an organization's auditors.
type Audit struct {
	Projections *projections.Projections
	Clock       func() time.Time
}

// Oversight returns the statistics about reviews of the principal's organization, for the
// decisions recorded in the period that includes from and excludes to. It requires the right to
// export.
func (s Audit) Oversight(ctx context.Context, p organizations.Principal, from, to time.Time) (projections.Oversight, error) {
	if err := p.May(organizations.RightExport); err != nil {
		return projections.Oversight{}, err
	}
	o, err := s.Projections.Oversight(ctx, p.OrgID, from, to, s.Clock())
	return o, Error(err)
}

// Access lists the access history of the principal's organization, newest first: exports,
// verifications, changes of members, tokens, policies and webhooks, erasures, and decryptions of
// personal data. It requires the right to export. For the next page, set AccessFilter.Before to
// the sequence number of the last row.
func (s Audit) Access(ctx context.Context, p organizations.Principal, f projections.AccessFilter, limit int) ([]projections.AccessRow, error) {
	if err := p.May(organizations.RightExport); err != nil {
		return nil, err
	}
	rows, err := s.Projections.Access(ctx, p.OrgID, f, limit)
	return rows, Error(err)
}
