package proof

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/api/pack"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
)

// Evidence has the commands that collect evidence for an audit.
type Evidence struct {
	Pack Pack `cmd:"" help:"Write the export of a period with statements about its agents, figures about reviews, the histories of policies and of access, a verification report and a cover page, as one signed file."`
}

// Pack writes an export with the files of an evidence pack, all listed in the signed manifest.
type Pack struct {
	packed
	Framework   string `help:"Framework whose requirements the cover page lists: soc2, iso42001, eu-ai-act, nist-ai-rmf or sec17a4." enum:"soc2,iso42001,eu-ai-act,nist-ai-rmf,sec17a4" required:"" placeholder:"NAME"`
	Period      string `help:"A quarter, month or year: 2026Q4, 2026-11 or 2026." required:"" placeholder:"PERIOD"`
	RequestedBy string `help:"The person or organization that requested the pack, for its cover page." name:"requested-by" default:"the operator, on the command line" placeholder:"TEXT"`
}

// Run writes the pack, and verifies it with the ledger's keys.
func (c *Pack) Run(ctx context.Context, o *screen.Output) error {
	from, to, err := period(c.Period)
	if err != nil {
		return err
	}
	m, err := c.write(ctx, o, true, func(n *node.Node, e evidence.Export) (evidence.Exported, error) {
		models, err := node.ReadModels(ctx, n.Ledger, n.Log)
		if err != nil {
			return evidence.Exported{}, err
		}
		defer models.Close()
		whole, err := audit.Ledger(ctx, n.Ledger, nil)
		if err != nil {
			return evidence.Exported{}, err
		}
		e, err = pack.Maker{Commands: n.App.Evidence, Projections: models}.Export(e, pack.Order{Framework: c.Framework, From: from, To: to,
			NoPersonal: c.NoPersonal, RequestedBy: c.RequestedBy, Audit: &whole})
		if err != nil {
			return evidence.Exported{}, err
		}
		m, err := n.App.ExportHistory(ctx, e)
		if err == nil {
			err = verify(ctx, n, m, e.Folder)
		}
		return m, err
	})
	if err != nil || c.Out == "-" {
		return err
	}
	statements := 0
	for name := range m.Files {
		if strings.HasPrefix(name, "pack/statements/") {
			statements++
		}
	}
	end := to.Format(time.RFC3339)
	return o.Made(m, c.Out, o.Wrapped("%d events of %s, %s to %s, %d statements, verified with the keys of the ledger\nread it: unpack it and open export/pack/cover.html\n%s",
		m.Count, m.Tenant, from.Format(time.RFC3339), end, statements, c.howToCheck()+notEnded(end, m.IssuedAt)))
}

// verify verifies the export with the ledger's keys and records the result. Readers of the pack
// need not rely on this: they get the keys from the service and verify the pack themselves.
func verify(ctx context.Context, n *node.Node, m evidence.Exported, folder string) error {
	ring, _, err := n.Ledger.Home(m.Tenant).Keyring(ctx)
	if err != nil {
		return err
	}
	var keys []bundle.Key
	for _, k := range ring {
		keys = append(keys, bundle.Key{Purpose: k.Purpose, Public: k.Public, Partition: m.Partition, From: k.From, To: k.To, Void: k.Void})
	}
	opened, err := bundle.Open(ctx, folder, nil)
	if err != nil {
		return err
	}
	defer opened.Close()
	result, err := bundle.Verify(ctx, opened, bundle.Trust{Keys: keys}, nil)
	if err != nil {
		return err
	}
	if err := n.App.NoteVerified(ctx, m.Tenant, "operator", events.ExportVerified{ExportID: m.ExportID, Valid: result.Valid, Reason: result.Reason}); err != nil {
		return err
	}
	if !result.Valid {
		return fmt.Errorf("the pack does not verify: %s", result.Reason)
	}
	return nil
}
