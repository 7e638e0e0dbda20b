package evidence

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy/canon"
)

// Made is an export that was created earlier, as its event describes it.
type Made struct {
	At       time.Time
	Actor    string
	Erased   bool            // the manifest cannot be decrypted, because the agent that it names was erased
	Manifest bundle.Manifest // zero if Erased
}

// Made returns the exports that the events export.created with these sequence numbers record, in
// the same order. It requires the right to export. If a manifest names an agent, which is personal
// data, the access history records that the principal has read it.
func (a *Evidence) Made(ctx context.Context, p organizations.Principal, sequences []int64) ([]Made, error) {
	if err := p.May(organizations.RightExport); err != nil {
		return nil, err
	}
	found, err := a.Ledger.BySequence(ctx, p.OrgID, sequences)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	var list []Made
	names := false
	for _, sequence := range sequences {
		e := found[sequence]
		made := Made{At: e.Occurred(), Actor: e.Actor}
		var stored events.ExportCreated
		switch err := a.OpenInto(ctx, e, &stored); {
		case errors.Is(err, vault.ErrErased):
			made.Erased = true
		case err != nil:
			return nil, ground.Refusal(err)
		default:
			if err := canon.Decode(stored.Record, &made.Manifest); err != nil {
				return nil, err
			}
		}
		names = names || made.Manifest.Filters.Agent != ""
		list = append(list, made)
	}
	if names {
		err = a.NotePersonalOpened(ctx, p, "exports")
	}
	return list, err
}

// Kinds of exports.
const (
	KindHistory   = "history"   // everything in a period
	KindSelection = "selection" // decisions that match filters
	KindStatement = "statement" // what one agent did
	KindDispute   = "dispute"   // the events about one decision or payment
	KindPack      = "pack"      // an evidence pack
	KindRecall    = "recall"    // decisions under another policy
)

// Kind returns the kind of the export. It returns "" if the export is erased.
func (m Made) Kind() string {
	switch {
	case m.Erased:
		return ""
	case m.Manifest.Files[RecallFile] != "":
		return KindRecall
	case hasPack(m.Manifest):
		return KindPack
	case m.Manifest.Dispute != nil:
		return KindDispute
	case m.Manifest.Statement != nil:
		return KindStatement
	case m.Manifest.Selection != nil:
		return KindSelection
	}
	return KindHistory
}

// Again reports whether ExportAgain can build bundles of this kind again. ExportAgain may still
// refuse if a person was erased since, or if the program has another version.
func (m Made) Again() bool { return !m.Erased && !hasPack(m.Manifest) }

// hasPack reports whether a bundle contains the files of an evidence pack or a recall.
func hasPack(m bundle.Manifest) bool {
	for name := range m.Files {
		if strings.HasPrefix(name, packFolder) {
			return true
		}
	}
	return false
}
