package public

import (
	"cmp"
	"errors"
	"slices"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
)

// ledgerPage is the data of the page about the ledger's state.
type ledgerPage struct {
	Head       int64
	Checkpoint *web.Checkpoint
	Check      ledger.SelfCheck // last self-check of the ledger
	State      ledger.Condition
	Keys       []ledgerKey
}

// ledgerKey is a public key with the ledger positions for which it is valid.
type ledgerKey struct {
	ID       string
	From, To int64 // To is 0 while the key is active
}

func (r *Room) showLedger(v *web.Visit) (web.View, error) {
	ctx := v.Request.Context()
	page := ledgerPage{Checkpoint: web.NewestCheckpoint(r.Ledger)}
	var err error
	if page.Head, err = r.Ledger.Total(ctx); err != nil {
		return web.View{}, ground.Unreadable(err)
	}
	rings, err := r.Ledger.Keyrings(ctx)
	page.Check, page.State = r.Ledger.LastCheck(), r.Ledger.Condition()
	switch {
	case errors.Is(err, ledger.ErrTampered): // the page reports that the ledger was altered
		return web.View{Template: "ledger.html", Data: page}, nil
	case err != nil:
		return web.View{}, ground.Unreadable(err)
	}
	for id, k := range rings[0] { // The other partitions have the same keys, at other positions.
		if k.Purpose == ledger.PurposeRecord {
			page.Keys = append(page.Keys, ledgerKey{id, k.From, k.To})
		}
	}
	slices.SortFunc(page.Keys, func(a, b ledgerKey) int { return cmp.Compare(b.From, a.From) })
	return web.View{Template: "ledger.html", Data: page}, nil
}
