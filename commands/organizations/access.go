package organizations

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// NotePersonalOpened records that personal data was decrypted for a member, a token or the
// operator. Every command that returns such data to a principal calls it first. place names the
// kind of data in one word, such as "decisions". It appends one event per actor, place and day;
// later calls on that day append nothing. If the ledger takes no appends, it records nothing and
// returns no error, so the data can still be read.
func (a *Organizations) NotePersonalOpened(ctx context.Context, p Principal, place string) error {
	day, id := a.Now().UTC().Format(time.DateOnly), p.OrgID+" "+p.ActorID+" "+place
	if noted, _ := a.opened.Get(id); noted == day {
		return nil
	}
	err := a.note(ctx, p.OrgID, p.ActorID, "opened/"+p.ActorID, events.TypePersonalOpened, ledger.IdemKey("opened", p.ActorID+" "+place+" "+day),
		events.PersonalOpened{Day: day, Place: place})
	if errors.Is(err, ledger.ErrStopped) || errors.Is(err, ledger.ErrRefused) {
		return nil
	}
	if err != nil {
		return ground.Refusal(err)
	}
	a.opened.Put(id, day)
	return nil
}

// NoteVerified records that an export of the tenant was verified, with the result.
func (a *Organizations) NoteVerified(ctx context.Context, tenant, actor string, verified events.ExportVerified) error {
	return ground.Refusal(a.note(ctx, tenant, actor, "verification/"+verified.ExportID, events.TypeExportVerified, ledger.Hash{}, verified))
}

// note appends one event, unless an event with the same key exists. With the zero key it always
// appends.
func (a *Organizations) note(ctx context.Context, tenant, actor, stream, eventType string, key ledger.Hash, stored any) error {
	payload, err := canon.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, ContentHash: sha256.Sum256(payload), NotBefore: a.Now(),
		Events: []ledger.Pending{{Stream: stream, Expect: ledger.Any(math.MaxInt64), ID: a.NewID("evt_"), Type: eventType, SchemaVersion: 1, Actor: actor, Payload: payload}}})
	return err
}
