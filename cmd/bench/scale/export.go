package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/stored"
	"github.com/countersign/countersign/policy/assurance"
)

// Export measures the export of an organization's history.
type Export struct {
	Signed []int         `help:"Numbers of signed decisions to export; memory should not grow with them." default:"2000,20000"`
	Runs   int           `help:"Number of runs of each measurement. Medians are printed, and percentiles of all latencies." default:"3"`
	During time.Duration `help:"Length of each run with appends." default:"5s"`
}

// decided starts a service with one organization that has made this number of decisions.
func decided(ctx context.Context, decisions, agents int) (*decidedService, error) {
	service, token, err := rig.StartOrganization(ctx)
	if err != nil {
		return nil, err
	}
	d := &decidedService{Service: service, token: token, agents: agents}
	if err := d.until(decisions); err != nil {
		service.Close()
		return nil, err
	}
	return d, nil
}

type decidedService struct {
	*rig.Service
	token  string
	agents int
	made   int
}

// until requests decisions, and stops when the service has this number of them.
func (d *decidedService) until(decisions int) error {
	for d.made < decisions {
		s, err := d.Decide(d.token, 32, d.agents, time.Second)
		if err != nil {
			return err
		}
		d.made += len(s.Latencies)
		rig.Progress("decided", int64(d.made), int64(decisions))
	}
	return nil
}

// errFull ends the load in everyday when every decision has a receipt.
var errFull = errors.New("the ledger has enough events")

// everyday appends one receipt and one workflow for each decision, so that the ledger has the
// event types of a ledger in use.
func (d *decidedService) everyday(ctx context.Context) error {
	p, err := d.App.AuthenticateOrganization(ctx, d.token)
	if err != nil {
		return err
	}
	// Read the decisions.
	rows, err := d.App.Ledger.Pool().Query(ctx, `select payload from events where p = 0 and tenant = $1 and type = $2 order by tseq`, p.OrgID, events.TypeDecisionRecorded)
	if err != nil {
		return err
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return err
	}
	// Append the receipts and workflows with 32 concurrent callers.
	f := &rig.Filler{App: d.App}
	var next atomic.Int64
	_, err = rig.Load(32, time.Hour, func(int, int) error {
		n := int(next.Add(1)) - 1
		if n >= len(payloads) {
			return errFull
		}
		var read events.DecisionRecorded
		if err := json.Unmarshal(stored.Payload(payloads[n]), &read); err != nil {
			return err
		}
		var decision struct{ DecisionID, BindingHash string }
		if err := json.Unmarshal(read.Record, &decision, json.MatchCaseInsensitiveNames(true)); err != nil {
			return err
		}
		receipt, err := assurance.ParseReceipt(fmt.Appendf(nil, `{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"rejected","settlementId":"bench-%d"}`,
			decision.DecisionID, read.Integrity.RecordHash, decision.BindingHash, n))
		if err == nil {
			_, err = d.App.BindReceipt(ctx, p, receipt)
		}
		if err != nil {
			return err
		}
		workflow, err := f.Workflow()
		if err == nil {
			_, err = d.App.Ledger.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{workflow}})
		}
		if made := int64(n) + 1; made%1000 == 0 || made == int64(len(payloads)) {
			rig.Progress("receipts and workflows", made, int64(len(payloads)))
		}
		return err
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return err
}

// Run prints one line for each size, and how much an export slows appends down.
func (c *Export) Run(ctx context.Context) error {
	service, err := decided(ctx, 1, 100)
	if err != nil {
		return err
	}
	defer service.Close()
	var org string
	if err := service.App.Ledger.Pool().QueryRow(ctx, `select tenant from events where p = 0 and type = 'decision.recorded' limit 1`).Scan(&org); err != nil {
		return err
	}
	fmt.Printf("%-12s %14s %14s %8s %24s %14s\n", "events", "bare read/s", "exported/s", "ratio", "us of CPU, program + db", "peak MB")
	for _, size := range c.Signed {
		if err := service.until(size); err != nil {
			return err
		}
		var reads, exports []run
		for range c.Runs {
			r, err := onCores(ctx, service.Scratch, 1, "read", service.Scratch.App)
			if err != nil {
				return err
			}
			e, err := onCores(ctx, service.Scratch, 1, "make-export", service.Scratch.App, "--org", org)
			if err != nil {
				return err
			}
			reads, exports = append(reads, r), append(exports, e)
		}
		printCompared(middle(reads), middle(exports))
	}
	if err := c.verified(ctx, service, org); err != nil {
		return err
	}
	return appendsWhile(ctx, service.Scratch, "export", c.Runs, c.During, "make-export", service.Scratch.App, "--org", org, "--repeat")
}

// verified exports the complete history and verifies the export offline.
func (c *Export) verified(ctx context.Context, service *decidedService, org string) error {
	folder, err := os.MkdirTemp("", "countersign-bench-export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := service.App.ExportHistory(ctx, evidence.Export{Tenant: org, Actor: "operator", Folder: folder}); err != nil {
		return err
	}
	r, err := onCores(ctx, service.Scratch, 1, "check-export", folder)
	if err != nil {
		return err
	}
	fmt.Printf("verification of the export of %d events, offline: %.0f/s, us of CPU %.1f, peak MB %d\n", r.Events, r.perSecond(), r.perEvent(r.cpu.Process), r.PeakMB)
	return nil
}
