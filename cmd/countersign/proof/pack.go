package proof

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/projections"
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

// packing is the state of a pack that is being written.
type packing struct {
	*Pack
	n        *node.Node
	from, to time.Time
	filters  bundle.Filters // only From and To
	put      func(name string, text []byte) error
	cover    cover
}

// Run writes the pack, and verifies it with the ledger's keys.
func (c *Pack) Run(ctx context.Context, o *screen.Output) error {
	from, to, err := period(c.Period)
	if err != nil {
		return err
	}
	p := packing{Pack: c, from: from, to: to, filters: bundle.Filters{From: from.Format(time.RFC3339), To: to.Format(time.RFC3339)}}
	m, err := c.write(ctx, o, true, func(n *node.Node, e evidence.Export) (evidence.Exported, error) {
		p.n = n
		e.Filters, e.Pack = p.filters, p.write
		e.Filters.NoPersonal = c.NoPersonal
		m, err := n.App.ExportHistory(ctx, e)
		if err == nil {
			err = p.verify(ctx, m, e.Folder)
		}
		return m, err
	})
	if err != nil || c.Out == "-" {
		return err
	}
	return o.Made(m, c.Out, o.Wrapped("%d events of %s, %s to %s, %d statements, verified with the keys of the ledger\nread it: unpack it and open export/pack/cover.html\n%s",
		m.Count, m.Tenant, p.filters.From, p.filters.To, len(p.cover.Statements), c.howToCheck()+notEnded(p.filters.To, m.IssuedAt)))
}

// write writes the files of the pack.
func (p *packing) write(ctx context.Context, m bundle.Manifest, found evidence.Found, put func(name string, text []byte) error) error {
	p.put = put
	p.cover = cover{Manifest: m, RequestedBy: p.RequestedBy, Framework: frameworks[p.Framework], From: p.from, To: p.to, At: p.n.App.Now().UTC(), Totals: found.Totals, More: found.More, NoPersonal: p.NoPersonal}
	for _, step := range []func(context.Context) error{p.organization, p.figures, p.policies, func(ctx context.Context) error { return p.statements(ctx, found.Agents) }, p.report} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	text, err := p.cover.html()
	if err != nil {
		return err
	}
	return put("cover.html", text)
}

// organization reads the name of the organization. The service tenant has none.
func (p *packing) organization(ctx context.Context) error {
	if p.NoPersonal || ledger.IsService(p.Org) {
		return nil
	}
	info, err := p.n.App.Organization(ctx, p.Org)
	p.cover.Organization = info.Name
	return err
}

// asJSON writes a value to a file.
func (p *packing) asJSON(name string, value any) error {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return err
	}
	return p.put(name, append(text, '\n'))
}

// accessEntry is a line of access.jsonl.
type accessEntry struct {
	Sequence int64  `json:"sequence"` // sequence number of the event in events.jsonl
	At       string `json:"at"`
	Type     string `json:"type"`
	Actor    string `json:"actor"`
	Subject  string `json:"subject"` // id of what the event is about
}

const accessPage = 500

// figures writes the oversight figures and the access history.
func (p *packing) figures(ctx context.Context) error {
	models, err := node.ReadModels(ctx, p.n.Ledger, p.n.Log)
	if err != nil {
		return err
	}
	defer models.Close()
	if p.cover.Oversight, err = models.Oversight(ctx, p.Org, p.from, p.to, p.n.App.Now()); err != nil {
		return err
	}
	if err := p.asJSON("oversight.json", p.cover.Oversight); err != nil {
		return err
	}
	entries, filter := []accessEntry{}, projections.AccessFilter{From: p.from, To: p.to}
	for {
		rows, err := models.Access(ctx, p.Org, filter, accessPage)
		if err != nil {
			return err
		}
		var sequences []int64
		for _, r := range rows {
			sequences = append(sequences, r.Sequence)
		}
		found, err := p.n.Ledger.BySequence(ctx, p.Org, sequences)
		if err != nil {
			return err
		}
		for _, r := range rows {
			subject := cmp.Or(events.About(r.Type, found[r.Sequence].Payload), p.Org)
			entries = append(entries, accessEntry{r.Sequence, r.At.Format("2006-01-02T15:04:05.000000Z"), r.Type, r.Actor, subject})
			filter.Before = r.Sequence
		}
		if len(rows) < accessPage {
			break
		}
	}
	p.cover.Access = len(entries)
	text, err := bundle.Lines(entries)
	if err != nil {
		return err
	}
	return p.put("access.jsonl", text)
}

// policyEntry is a version of the policy in policies.json.
type policyEntry struct {
	Version       int      `json:"version"`
	PolicyID      string   `json:"policyId"`
	PolicyHash    string   `json:"policyHash"`
	ActivatedAt   string   `json:"activatedAt"`
	Author        string   `json:"author"`
	Activator     string   `json:"activator"`
	SelfActivated bool     `json:"selfActivated"`
	Reason        string   `json:"reason"`
	Changed       []string `json:"changed"`
}

// policies writes all versions of the policy that were activated before the end of the period. The
// service tenant has no policy.
func (p *packing) policies(ctx context.Context) error {
	if ledger.IsService(p.Org) {
		return p.asJSON("policies.json", []policyEntry{})
	}
	operator, err := p.n.App.Operator(ctx, p.Org)
	if err != nil {
		return err
	}
	_, activations, err := p.n.App.Policies(ctx, operator)
	if err != nil {
		return err
	}
	versions := []policyEntry{}
	for _, a := range activations {
		at, err := time.Parse(time.RFC3339Nano, a.ActivatedAt)
		if err != nil {
			return err
		}
		if !at.Before(p.to) {
			continue
		}
		if !at.Before(p.from) {
			p.cover.Policies++
		}
		versions = append(versions, policyEntry{a.Version, a.PolicyID, a.Hash, a.ActivatedAt, a.Author, a.Activator, a.SelfActivated, a.Reason, append([]string{}, a.Changed...)})
	}
	return p.asJSON("policies.json", versions)
}

// statements writes a statement, with the events that it counts, for each agent of the period.
func (p *packing) statements(ctx context.Context, agents []string) error {
	for i, agent := range agents {
		said := coverStatement{Agent: agent, File: fmt.Sprintf("statements/agent-%03d.tar.gz", i+1)}
		var err error
		if said.Says, err = p.statement(ctx, agent, said.File); err != nil {
			return fmt.Errorf("state what agent %d of %d did: %w", i+1, len(agents), err)
		}
		p.cover.Statements = append(p.cover.Statements, said)
	}
	return nil
}

// statement writes the statement about one agent to a file and returns its text.
func (p *packing) statement(ctx context.Context, agent, file string) (says string, err error) {
	folder, err := os.MkdirTemp("", "countersign-statement-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	e := evidence.Export{Tenant: p.Org, Actor: "operator", Folder: folder, FullSpeed: p.FullSpeed, Statement: true, Filters: p.filters}
	e.Filters.Agent = agent
	m, err := p.n.App.ExportHistory(ctx, e)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	if err := bundle.NewFolder(folder).Pack(&packed); err != nil {
		return "", err
	}
	return m.Statement.Says(), p.put(file, packed.Bytes())
}

// report verifies the complete ledger and writes the result.
func (p *packing) report(ctx context.Context) error {
	found, err := audit.Ledger(ctx, p.n.Ledger, nil)
	if err != nil {
		return err
	}
	p.cover.Verified = found
	return p.asJSON("verification.json", found)
}

// verify verifies the export with the ledger's keys and records the result. Readers of the pack
// need not rely on this: they get the keys from the service and verify the pack themselves.
func (p *packing) verify(ctx context.Context, m evidence.Exported, folder string) error {
	ring, _, err := p.n.Ledger.Home(m.Tenant).Keyring(ctx)
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
	if err := p.n.App.NoteVerified(ctx, m.Tenant, "operator", events.ExportVerified{ExportID: m.ExportID, Valid: result.Valid, Reason: result.Reason}); err != nil {
		return err
	}
	if !result.Valid {
		return fmt.Errorf("the pack does not verify: %s", result.Reason)
	}
	return nil
}
