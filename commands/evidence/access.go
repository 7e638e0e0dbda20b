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

// NotePersonalOpened records that personal data is about to be decrypted for a member or token. A
// page calls it before it shows the data. place names the page in one word, such as "decisions" or
// "reviews". It appends one event per actor, place and day; later calls on that day append
// nothing.
func (a *Evidence) NotePersonalOpened(ctx context.Context, p organizations.Principal, place string) error {
	day := a.Now().UTC().Format(time.DateOnly)
	return a.note(ctx, p.OrgID, p.ActorID, "opened/"+p.ActorID, events.TypePersonalOpened, ledger.IdemKey("opened", p.ActorID+" "+place+" "+day),
		events.PersonalOpened{Day: day, Place: place})
}

// NoteVerified records that an export of the tenant was verified, with the result.
func (a *Evidence) NoteVerified(ctx context.Context, tenant, actor string, verified events.ExportVerified) error {
	return a.note(ctx, tenant, actor, "verification/"+verified.ExportID, events.TypeExportVerified, ledger.Hash{}, verified)
}

// note appends one event, unless an event with the same key exists. With the zero key it always
// appends.
func (a *Evidence) note(ctx context.Context, tenant, actor, stream, eventType string, key ledger.Hash, stored any) error {
	payload, err := canon.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, ContentHash: sha256.Sum256(payload), NotBefore: a.Now(),
		Events: []ledger.Pending{{Stream: stream, Expect: ledger.Any(math.MaxInt64), ID: a.NewID("evt_"), Type: eventType, SchemaVersion: 1, Actor: actor, Payload: payload}}})
	return ground.Refusal(err)
}
