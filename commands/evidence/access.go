package evidence

import (
	"context"
	"crypto/sha256"
	"math"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// NotePersonalOpened records that personal members were decrypted for a member or token of an
// organization. place is one word, such as "decisions" or "reviews". It appends one event for
// each actor, place and day; further calls of the day append nothing. A caller that shows
// personal members calls it before it shows them.
func (a *Evidence) NotePersonalOpened(ctx context.Context, p organizations.Principal, place string) error {
	day := a.Now().UTC().Format(time.DateOnly)
	return a.note(ctx, p.OrgID, p.ActorID, "opened/"+p.ActorID, events.TypePersonalOpened, ledger.IdemKey("opened", p.ActorID+" "+place+" "+day),
		events.PersonalOpened{Day: day, Place: place})
}

// NoteVerified records the result of a verification of an export of the tenant.
func (a *Evidence) NoteVerified(ctx context.Context, tenant, actor string, verified events.ExportVerified) error {
	return a.note(ctx, tenant, actor, "verification/"+verified.ExportID, events.TypeExportVerified, ledger.Hash{}, verified)
}

// note appends one event, unless its key was used before. The zero key is new each time.
func (a *Evidence) note(ctx context.Context, tenant, actor, stream, eventType string, key ledger.Hash, stored any) error {
	payload, err := canon.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, ContentHash: sha256.Sum256(payload), NotBefore: a.Now(),
		Events: []ledger.Pending{{Stream: stream, Expect: ledger.Any(math.MaxInt64), ID: a.NewID("evt_"), Type: eventType, SchemaVersion: 1, Actor: actor, Payload: payload}}})
	return ground.Refusal(err)
}
