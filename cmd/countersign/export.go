package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
)

// exportCmd writes the signed history of an organization for somebody who trusts
// neither us nor our programs.
type exportCmd struct {
	data
	Org        string `help:"Organization, or service for the operator's own tenant; default: the one of org use, or the only one there is." env:"COUNTERSIGN_ORG" placeholder:"ORG"`
	Out        string `help:"File to write (.tar.gz), or - for standard output." required:"" placeholder:"FILE"`
	From       string `help:"Only events from this time on, RFC 3339 or a date." placeholder:"TIME"`
	To         string `help:"Only events before this time." placeholder:"TIME"`
	Period     string `help:"A quarter, month or year instead: 2026Q3, 2026-09 or 2026." placeholder:"PERIOD"`
	Protocol   string `help:"Show only decisions of this protocol." enum:",x402,mcp" default:""`
	Decision   string `help:"Show only such decisions." enum:",allow,deny,needs_review" default:""`
	Agent      string `help:"Show only decisions of this agent." placeholder:"ID"`
	RunID      string `help:"Show only decisions of this run." name:"run" placeholder:"ID"`
	NoPersonal bool   `help:"Leave personal members out." name:"no-personal"`
	FullSpeed  bool   `help:"Do not go slower while others append." name:"full-speed"`
}

// Run exports.
func (c *exportCmd) Run(ctx context.Context, o *output) error {
	filters := bundle.Filters{From: c.From, To: c.To, Protocol: c.Protocol, Decision: c.Decision, Agent: c.Agent, Run: c.RunID, NoPersonal: c.NoPersonal}
	var err error
	if c.Period != "" {
		if filters.From, filters.To, err = period(c.Period); err != nil {
			return err
		}
	}
	for _, text := range []*string{&filters.From, &filters.To} {
		if day, err := time.Parse(time.DateOnly, *text); err == nil {
			*text = day.Format(time.RFC3339)
		}
	}
	n, err := openNode(ctx, &c.data, false, true, "", newLog(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.close()
	if !ledger.IsService(c.Org) {
		if c.Org, err = n.organization(ctx, c.Org); err != nil {
			return err
		}
	}
	if _, err := n.keepCheckpoints(ctx); err != nil { // the newest events are covered, too
		return err
	}
	folder, err := os.MkdirTemp("", "countersign-export-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	progress := func(done, total int64) { o.progress.say("exported %d of %d events", done, total) }
	manifest, err := n.app.ExportHistory(ctx, commands.Export{Tenant: c.Org, Filters: filters, Actor: "operator", Folder: folder, Progress: progress, FullSpeed: c.FullSpeed})
	if err != nil {
		return err
	}
	pace := n.ledger.Pace()
	if c.FullSpeed {
		pace = &ledger.Pace{}
	}
	if c.Out == "-" {
		return bundle.NewFolder(folder).Pack(pace.Writer(ctx, o.stdout))
	}
	if err := packFile(ctx, pace, folder, c.Out); err != nil {
		return err
	}
	return o.result(manifest, o.wrapped("%s: %d events (sequences %d to %d) of %s, checkpoint of %d events\ncheck it: countersign verify %s --keys jwks.json, or unpack it and python3 export/verify.py --keys jwks.json export\n",
		c.Out, manifest.Count, manifest.FirstSequence, manifest.FirstSequence+manifest.Count-1, manifest.Tenant, manifest.CheckpointSize, c.Out))
}

// packFile writes the archive whole or not at all.
func packFile(ctx context.Context, pace *ledger.Pace, folder, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".export-*")
	if err != nil {
		return err
	}
	err = errors.Join(bundle.NewFolder(folder).Pack(pace.Writer(ctx, file)), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

var periodForm = regexp.MustCompile(`^(\d{4})(?:Q([1-4])|-(0[1-9]|1[0-2]))?$`)

// period is the first moment of a year, quarter or month, and that of the next, in
// UTC.
func period(text string) (from, to string, err error) {
	parts := periodForm.FindStringSubmatch(text)
	if parts == nil {
		return "", "", errors.New("--period: want 2026Q3, 2026-09 or 2026")
	}
	year, _ := strconv.Atoi(parts[1]) // the pattern has digits only
	month, months := 1, 12
	if q, err := strconv.Atoi(parts[2]); err == nil {
		month, months = 3*q-2, 3
	}
	if m, err := strconv.Atoi(parts[3]); err == nil {
		month, months = m, 1
	}
	start := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	return start.Format(time.RFC3339), start.AddDate(0, months, 0).Format(time.RFC3339), nil
}
