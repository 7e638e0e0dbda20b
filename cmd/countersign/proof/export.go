package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/pace"
)

// packed has the flags of commands that write a bundle to a file.
type packed struct {
	setting.Ledger
	Org        string `help:"Organization, or the word service for the operator's own tenant. Default: the one that you set with countersign org use, or the only one." env:"COUNTERSIGN_ORG" placeholder:"ORG"`
	Out        string `help:"File to write (.tar.gz), or - for standard output." required:"" placeholder:"FILE"`
	NoPersonal bool   `help:"Leave out personal data." name:"no-personal"`
	FullSpeed  bool   `help:"Do not slow down while the service appends events." name:"full-speed"`
}

// howToCheck returns a line that explains how to verify the file.
func (c *packed) howToCheck() string {
	return fmt.Sprintf("check it: countersign verify %s --keys jwks.json, or unpack it and run python3 export/verify.py --keys jwks.json export\n", c.Out)
}

// notEnded returns a line that says that the period had not ended when the bundle was issued. It
// returns "" if the period had ended, or has no end. The parameter "to" is the end of the period.
func notEnded(to, issuedAt string) string {
	if to == "" || bundle.Reversed(issuedAt, to) {
		return ""
	}
	return "the period had not ended: this is only the first part of it; make another file after " + to + "\n"
}

// exporter writes a bundle into the folder of e.
type exporter func(n *node.Node, e evidence.Export) (evidence.Exported, error)

// Export writes the signed history of an organization, for an auditor who trusts neither the
// operator nor our programs.
type Export struct {
	packed
	From     string `help:"Only events from this time on, given as RFC 3339 or a date." placeholder:"TIME"`
	To       string `help:"Only events before this time, given as RFC 3339 or a date." placeholder:"TIME"`
	Period   string `help:"Instead of two times: a quarter, month or year, such as 2026Q3, 2026-09 or 2026." placeholder:"PERIOD"`
	Protocol string `help:"Show only decisions of this protocol." enum:",x402,mcp" default:""`
	Decision string `help:"Show only decisions with this verdict." enum:",allow,deny,needs_review" default:""`
	Agent    string `help:"Show only decisions of this agent." placeholder:"ID"`
	RunID    string `help:"Show only decisions of this run." name:"run" placeholder:"ID"`
	Receipts bool   `help:"With --agent, --decision, --protocol or --run: also include the numbered series of approvals and receipts, so that a missing one is noticed."`
}

// Run writes the export.
func (c *Export) Run(ctx context.Context, o *screen.Output) (err error) {
	filters := bundle.Filters{From: c.From, To: c.To, Protocol: c.Protocol, Decision: c.Decision, Agent: c.Agent, Run: c.RunID, NoPersonal: c.NoPersonal, Receipts: c.Receipts}
	if c.Receipts && !filters.Selects() {
		return errors.New("--receipts needs --agent, --decision, --protocol or --run: an export of the whole history has all receipts anyway")
	}
	if filters.From, filters.To, err = span(c.Period, bound{"--from", c.From}, bound{"--to", c.To}); err != nil {
		return err
	}
	manifest, err := c.write(ctx, o, true, func(n *node.Node, e evidence.Export) (evidence.Exported, error) {
		e.Filters = filters
		return n.App.ExportHistory(ctx, e)
	})
	if err != nil || c.Out == "-" {
		return err
	}
	if manifest.Selection != nil {
		return o.Made(manifest, c.Out, o.Wrapped("%d events of %s, checkpoint of %d events\n%s\n%s%s",
			manifest.Count, manifest.Tenant, manifest.CheckpointSize, showing(manifest), numbers(manifest), c.howToCheck()))
	}
	end := ""
	if filters.To != "" && manifest.Filters.To == "" {
		end = "there is no event at or after " + filters.To + ": the export goes to the end of the history\n"
	}
	return o.Made(manifest, c.Out, o.Wrapped("%d events (sequences %d to %d) of %s, checkpoint of %d events\n%s\n%s%s",
		manifest.Count, manifest.FirstSequence, manifest.FirstSequence+manifest.Count-1, manifest.Tenant, manifest.CheckpointSize, showing(manifest), c.howToCheck(), end))
}

// numbers returns a line for each series of a selection, with its numbers in the period.
func numbers(m evidence.Exported) string {
	var text strings.Builder
	for _, r := range m.Selection.Series {
		if r.Last < r.First {
			fmt.Fprintf(&text, "%s: none of %d\n", r.Series, r.Newest)
		} else {
			fmt.Fprintf(&text, "%s: numbers %d to %d of %d\n", r.Series, r.First, r.Last, r.Newest)
		}
	}
	return text.String()
}

// showing returns how many decisions the export shows, so that the user notices filters that match
// nothing.
func showing(m evidence.Exported) string {
	switch {
	case m.Decisions == 0 && m.Filters.Selects():
		return "shows NO decision: none in this period matches the filters. Agent and run ids must be exactly those that were sent"
	case m.Decisions == 0:
		return "shows no decision: there is none in this period"
	case m.Decisions == 1:
		return "shows 1 decision"
	}
	return fmt.Sprintf("shows %d decisions", m.Decisions)
}

// write makes a bundle and packs it into the file of --out. named is true if the bundle is about
// the organization of --org, or the default organization.
func (c *packed) write(ctx context.Context, o *screen.Output, named bool, export exporter) (m evidence.Exported, err error) {
	if c.Out == "-" {
		return c.pack(ctx, o, named, o.Stdout, true, export)
	}
	file, err := files.Create(c.Out) // create the file before the export is recorded, so that no export is recorded if this fails
	if err != nil {
		return m, err
	}
	m, err = c.pack(ctx, o, named, file, file.Direct, export)
	return m, file.Close(err)
}

// pack makes the bundle and writes it, packed, to the writer `to`. direct means that this writer
// is standard output, a pipe or a device, which passes the data on at once. Then pack writes only
// after the export is recorded in the ledger, so that no data leaves without a record. Otherwise
// it writes first, so that no export is recorded if the disk is full.
func (c *packed) pack(ctx context.Context, o *screen.Output, named bool, to io.Writer, direct bool, export exporter) (m evidence.Exported, err error) {
	n, err := node.Start(ctx, &c.Ledger, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return m, err
	}
	defer n.Close()
	if named && !ledger.IsService(c.Org) {
		if c.Org, err = n.Organization(ctx, c.Org); err != nil {
			return m, err
		}
	}
	if _, err := n.KeepCheckpoints(ctx); err != nil { // so that a checkpoint covers the newest events, too
		return m, err
	}
	folder, err := os.MkdirTemp("", "countersign-export-*")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(folder)
	progress := func(done, total int64) { o.Progress.Say("exported %d of %d events", done, total) }
	rests := n.Ledger.Pace()
	if c.FullSpeed {
		rests = &pace.Pace{}
	}
	pack := func() error { return bundle.NewFolder(folder).Pack(rests.Writer(ctx, to)) }
	e := evidence.Export{Tenant: c.Org, Actor: "operator", Folder: folder, Progress: progress, FullSpeed: c.FullSpeed}
	if !direct {
		e.Ready = pack
	}
	if m, err = export(n, e); err == nil && direct {
		err = pack()
	}
	return m, err
}

// bound is a time that the user gives, with the name of its flag or argument.
type bound struct{ name, text string }

// span returns start and end of the time that the user selects, as RFC 3339. If named is a period
// such as 2026Q3, these are its bounds, otherwise first and next. Each may be empty.
func span(named string, first, next bound) (from, to string, err error) {
	if named != "" {
		if first.text != "" || next.text != "" {
			return "", "", fmt.Errorf("give --period, or %s and %s, not both", first.name, next.name)
		}
		start, end, err := period(named)
		if err != nil {
			return "", "", err
		}
		return start.Format(time.RFC3339), end.Format(time.RFC3339), nil
	}
	if from, err = first.moment(); err != nil {
		return "", "", err
	}
	if to, err = next.moment(); err != nil {
		return "", "", err
	}
	if bundle.Reversed(from, to) {
		return "", "", fmt.Errorf("%s must be later than %s", next.name, first.name)
	}
	return from, to, nil
}

// moment parses a time, or a date, which means its beginning in UTC. It returns RFC 3339, or "" if
// the user gave none.
func (b bound) moment() (string, error) {
	if day, err := time.Parse(time.DateOnly, b.text); err == nil {
		return day.Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, b.text); b.text != "" && err != nil {
		return "", fmt.Errorf("%s must be a time such as 2026-07-01T00:00:00Z, or a date such as 2026-07-01", b.name)
	}
	return b.text, nil
}

// period returns the bounds of the flag --period.
func period(text string) (from, to time.Time, err error) {
	from, to, ok := query.Period(text)
	if !ok {
		err = errors.New("--" + query.WrongPeriod)
	}
	return from, to, err
}
