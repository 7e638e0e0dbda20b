package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/countersign/countersign/commands"
)

// exportCmd measures the export of an organization's history.
type exportCmd struct {
	Signed []int         `help:"Signed decisions that are exported; memory should not grow with them." default:"2000,20000"`
	Runs   int           `help:"Runs of each; the median counts." default:"3"`
	During time.Duration `help:"Length of each run with appends." default:"5s"`
}

// decided is a service whose only organization has made a number of decisions.
func decided(ctx context.Context, decisions, agents int) (*decidedService, error) {
	service, err := startService(ctx)
	if err != nil {
		return nil, err
	}
	d := &decidedService{benchService: service, agents: agents}
	if d.token, err = service.organization(ctx); err == nil {
		err = d.until(ctx, decisions)
	}
	if err != nil {
		service.close()
		return nil, err
	}
	return d, nil
}

type decidedService struct {
	*benchService
	token  string
	agents int
	made   int
}

// until decides until there are so many decisions.
func (d *decidedService) until(ctx context.Context, decisions int) error {
	for d.made < decisions {
		s, err := d.decide(ctx, d.token, 32, d.agents, time.Second)
		if err != nil {
			return err
		}
		d.made += len(s.latencies)
		progress("decided", int64(d.made), int64(decisions))
	}
	return nil
}

// Run prints a line per size, and what appends lose to an export.
func (c *exportCmd) Run(ctx context.Context) error {
	service, err := decided(ctx, 1, 100)
	if err != nil {
		return err
	}
	defer service.close()
	var org string
	if err := service.app.Ledger.Pool().QueryRow(ctx, `select tenant from events where p = 0 and type = 'decision.recorded' limit 1`).Scan(&org); err != nil {
		return err
	}
	fmt.Printf("%-12s %14s %14s %8s %24s %14s\n", "events", "bare read/s", "exported/s", "ratio", "us of CPU, program + db", "peak MB")
	for _, size := range c.Signed {
		if err := service.until(ctx, size); err != nil {
			return err
		}
		var reads, exports []run
		for range c.Runs {
			r, err := onCores(ctx, service.scratch, 1, "read", service.scratch.app)
			if err != nil {
				return err
			}
			e, err := onCores(ctx, service.scratch, 1, "make-export", service.scratch.app, "--org", org)
			if err != nil {
				return err
			}
			reads, exports = append(reads, r), append(exports, e)
		}
		read, export := middle(reads), middle(exports)
		fmt.Printf("%-12d %14.0f %14.0f %8.2f %24s %14d\n", export.Events, read.perSecond(), export.perSecond(), export.perSecond()/read.perSecond(),
			fmt.Sprintf("%.1f + %.1f", export.perEvent(export.cpu.process), export.perEvent(export.cpu.database)), export.PeakMB)
	}
	if err := c.verified(ctx, service, org); err != nil {
		return err
	}
	return besideAppends(ctx, service.scratch, "export", c.Runs, c.During, "make-export", service.scratch.app, "--org", org, "--repeat")
}

// verified verifies an export of everything, offline.
func (c *exportCmd) verified(ctx context.Context, service *decidedService, org string) error {
	folder, err := os.MkdirTemp("", "countersign-bench-export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := service.app.ExportHistory(ctx, commands.Export{Tenant: org, Actor: "operator", Folder: folder}); err != nil {
		return err
	}
	r, err := onCores(ctx, service.scratch, 1, "check-export", folder)
	if err != nil {
		return err
	}
	fmt.Printf("verification of the export of %d events, offline: %.0f/s, us of CPU %.1f, peak MB %d\n", r.Events, r.perSecond(), r.perEvent(r.cpu.process), r.PeakMB)
	return nil
}
