// Package pack writes evidence packs: the signed export of a period, with the files that an auditor
// reads. Maker.Export returns the export; running it (evidence.ExportHistory) writes the files into
// the folder pack/ of the bundle, so the signed manifest lists them with their hashes:
//
//	cover.html          what the pack contains, who requested it, and what it proves
//	statements/         a statement about each agent, which is a bundle of its own
//	oversight.json      figures about reviews
//	access.jsonl        the access history
//	policies.json       the versions of the policy
//	verification.json   the verification of the ledger
//
// The command line, the API and the console create packs with this package.
package pack

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Order describes a pack.
type Order struct {
	Framework   string // ID of one of Frameworks
	From, To    time.Time
	NoPersonal  bool
	RequestedBy string // text for the cover page

	Statements int           // largest number of agents with a statement; 0 means evidence.MostAgents
	Audit      *audit.Report // verification of the whole ledger for this pack; nil means that the pack states the last self-check of the node
}

// mostRequestedBy is the largest number of characters of Order.RequestedBy, so that the line fits
// the cover page.
const mostRequestedBy = 200

// Maker has what the files of a pack are made from.
type Maker struct {
	Commands    *evidence.Evidence
	Projections *projections.Projections
}

// Export adds the order to an export, which must have the members Tenant, Actor and Folder. The
// order sets its filters.
func (m Maker) Export(e evidence.Export, o Order) (evidence.Export, error) {
	framework, known := frameworkOf(o.Framework)
	switch {
	case !known:
		return e, policy.Refuse("invalid_enum", "/framework", "framework must be one of "+frameworkIDs())
	case o.From.IsZero() || o.To.IsZero():
		return e, policy.Refuse("missing_field", "/period", "a pack requires a period")
	case !o.To.After(o.From):
		return e, policy.Refuse("invalid_value", "/to", "to must be later than from")
	case utf8.RuneCountInString(o.RequestedBy) > mostRequestedBy:
		return e, policy.Refuse("invalid_value", "/requestedBy", fmt.Sprintf("requestedBy must have at most %d characters", mostRequestedBy))
	}
	e.Filters = bundle.Filters{From: o.From.Format(time.RFC3339), To: o.To.Format(time.RFC3339), NoPersonal: o.NoPersonal}
	base := e // for the statements
	e.Pack = func(ctx context.Context, manifest bundle.Manifest, found evidence.Found, put func(name string, text []byte) error) error {
		p := packing{Maker: m, Order: o, export: base, put: put, cover: cover{Manifest: manifest, RequestedBy: o.RequestedBy, Framework: framework,
			From: o.From, To: o.To, At: m.Commands.Now(), Totals: found.Totals, More: found.More, NoPersonal: o.NoPersonal}}
		return p.write(ctx, found.Agents)
	}
	return e, nil
}

// packing is the state of a pack that is being written.
type packing struct {
	Maker
	Order
	export evidence.Export // tenant, actor and filters of the pack
	put    func(name string, text []byte) error
	cover  cover
}

// write writes the files of the pack.
func (p *packing) write(ctx context.Context, agents []string) error {
	if most := cmp.Or(p.Statements, evidence.MostAgents); len(agents) > most {
		agents, p.cover.More = agents[:most], true
	}
	for _, step := range []func(context.Context) error{p.organization, p.oversight, p.access, p.policies,
		func(ctx context.Context) error { return p.statements(ctx, agents) }, p.verification} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	text, err := p.cover.html()
	if err != nil {
		return err
	}
	return p.put("cover.html", text)
}

// organization reads the name of the organization. The service tenant has none.
func (p *packing) organization(ctx context.Context) error {
	if p.NoPersonal || ledger.IsService(p.export.Tenant) {
		return nil
	}
	info, err := p.Commands.Organization(ctx, p.export.Tenant)
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

// oversight writes the figures about reviews.
func (p *packing) oversight(ctx context.Context) (err error) {
	if p.cover.Oversight, err = p.Projections.Oversight(ctx, p.export.Tenant, p.From, p.To, p.Commands.Now()); err != nil {
		return err
	}
	return p.asJSON("oversight.json", p.cover.Oversight)
}

// access writes the access history.
func (p *packing) access(ctx context.Context) error {
	entries, filter := []accessEntry{}, projections.AccessFilter{From: p.From, To: p.To}
	for {
		rows, err := p.Projections.Access(ctx, p.export.Tenant, filter, accessPage)
		if err != nil {
			return err
		}
		var sequences []int64
		for _, r := range rows {
			sequences = append(sequences, r.Sequence)
		}
		found, err := p.Commands.Ledger.BySequence(ctx, p.export.Tenant, sequences)
		if err != nil {
			return err
		}
		for _, r := range rows {
			subject := cmp.Or(events.About(r.Type, found[r.Sequence].Payload), p.export.Tenant)
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
	if ledger.IsService(p.export.Tenant) {
		return p.asJSON("policies.json", []policyEntry{})
	}
	operator, err := p.Commands.Operator(ctx, p.export.Tenant)
	if err != nil {
		return err
	}
	_, activations, err := p.Commands.Policies(ctx, operator)
	if err != nil {
		return err
	}
	versions := []policyEntry{}
	for _, a := range activations {
		at, err := time.Parse(time.RFC3339Nano, a.ActivatedAt)
		if err != nil {
			return err
		}
		if !at.Before(p.To) {
			continue
		}
		if !at.Before(p.From) {
			p.cover.Policies++
		}
		versions = append(versions, policyEntry{a.Version, a.PolicyID, a.Hash, a.ActivatedAt, a.Author, a.Activator, a.SelfActivated, a.Reason, append([]string{}, a.Changed...)})
	}
	return p.asJSON("policies.json", versions)
}

// statements writes a statement, with the events that it counts, for each agent of the period.
func (p *packing) statements(ctx context.Context, agents []string) error {
	folder, err := os.MkdirTemp("", "countersign-statements-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var list []evidence.Export
	for i, agent := range agents {
		e := p.export
		e.Progress, e.Ready, e.Statement = nil, nil, true
		e.Filters.Agent, e.Folder = agent, filepath.Join(folder, strconv.Itoa(i))
		if err := os.Mkdir(e.Folder, 0o700); err != nil {
			return err
		}
		list = append(list, e)
	}
	made, err := p.Commands.ExportSelections(ctx, list)
	if err != nil {
		return fmt.Errorf("state what the agents did: %w", err)
	}
	for i, e := range list {
		said := coverStatement{Agent: e.Filters.Agent, File: fmt.Sprintf("statements/agent-%03d.tar.gz", i+1), Says: made[i].Statement.Says()}
		var packed bytes.Buffer
		if err := bundle.NewFolder(e.Folder).Pack(&packed); err != nil {
			return err
		}
		if err := p.put(said.File, packed.Bytes()); err != nil {
			return err
		}
		p.cover.Statements = append(p.cover.Statements, said)
	}
	return nil
}

// selfCheck is verification.json of a pack that states the last self-check of the node.
type selfCheck struct {
	SelfCheckAt string `json:"selfCheckAt"` // start of the check; empty if the node has not verified the ledger since its start
	Events      int64  `json:"events"`
	Faults      int    `json:"faults"`
	First       string `json:"first"` // first fault, or the reason why the ledger could not be read
}

// verification writes the result of the verification of the ledger.
func (p *packing) verification(context.Context) error {
	if p.cover.Audit = p.Audit; p.Audit != nil {
		return p.asJSON("verification.json", p.Audit)
	}
	check := p.Commands.Ledger.LastCheck()
	p.cover.Check = check
	written := selfCheck{Events: check.Events, Faults: check.Faults, First: check.First}
	if !check.At.IsZero() {
		written.SelfCheckAt = canon.Stamp(check.At)
	}
	return p.asJSON("verification.json", written)
}
