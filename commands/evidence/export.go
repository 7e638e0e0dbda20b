// Package evidence implements the commands that export, replay and erase history.
package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/pace"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/ledger/views"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Evidence implements the commands for exports, replays and erasures.
type Evidence struct {
	*ground.Ground
	*organizations.Organizations
	*services.Services
	*decisions.Decisions

	// KeepErased stores the id of a data key outside the database before the key is destroyed. A
	// database that is restored from an older backup then does not decrypt with that key. If
	// KeepErased is nil, the id is stored only in the database.
	KeepErased func(tenant, keyID string) error
}

// Export describes a bundle to write.
type Export struct {
	Tenant   string
	Filters  bundle.Filters
	Actor    string
	Folder   string                  // an empty folder for the files
	Progress func(done, total int64) // called with the number of events written and of all events; may be nil
	Most     int64                   // refuse if there are more events; 0 means no limit
	Ready    func() error            // called when all files are written, before the export is recorded; may be nil

	FullSpeed bool    // do not slow down for concurrent appends
	Statement bool    // add a statement with counts to the manifest; requires the filter Agent and sets Receipts
	Dispute   string  // id of a decision of the tenant: export only the events about it; empty for other exports
	Pack      Pack    // writes additional files; may be nil
	Recall    *Recall // evaluates the exported events again; may be nil
}

// Pack writes the files of an evidence pack before the manifest is signed. put stores a file in
// the folder pack/ of the bundle, and the manifest lists it with its hash.
type Pack func(ctx context.Context, m bundle.Manifest, found Found, put func(name string, text []byte) error) error

// Found summarizes the events of the exported period.
type Found struct {
	Agents []string // ids of agents that requested decisions, sorted, at most MostAgents
	More   bool     // true if there were more than MostAgents agents
	Totals bundle.Statement
}

// MostAgents is the number of agents that Found can list.
const MostAgents = 100

const (
	exportPage       = 500
	exportedHeads    = 32 // number of earlier checkpoints for which the bundle has a consistency proof
	exportCheckpoint = 3 * time.Second
)

// Exported is the manifest of an export, and the number of decisions that the bundle shows with
// their payload. The number is not signed; it tells the caller whether the filters match anything.
type Exported struct {
	bundle.Manifest
	Decisions int64 `json:"decisions"`
}

// exporting is the state of an export while its files are written.
type exporting struct {
	app      *Evidence
	e        Export
	folder   *bundle.Folder
	manifest bundle.Manifest
	within   int64                 // number of events in the period
	from, to int64                 // bounds of the period in microseconds since 1970; 0 means no bound
	agentKey string                // id of the data key of the agent that is exported; empty if the export is not limited to an agent
	head     *checkpoint.Published // nil if no checkpoint covers the events
	proofs   *tree.Proofs
	pace     *pace.Pace
	stamped  int64 // size of the note with a time stamp; 0 if there is none

	lines, openings, redactions, inclusion *bundle.File
	views                                  *views.Set
	policies, rules                        map[string][]byte // file contents, by SHA-256
	requested                              ledger.History    // the stream of a selection, with export.requested
	decisions                              nameSet           // ids of the exported decisions
	showing                                int64             // number of decisions whose payload the bundle shows
	tally                                  *bundle.Tally     // counts for a statement or a pack; nil if neither is made
	agents                                 map[string]bool   // ids of agents, for a pack
}

func (a *Evidence) exporting(e Export) *exporting {
	home, slow := a.Ledger.Home(e.Tenant), a.Ledger.Pace()
	if e.FullSpeed {
		slow = &pace.Pace{}
	}
	return &exporting{app: a, e: e, pace: slow, folder: bundle.NewFolder(e.Folder), policies: map[string][]byte{}, rules: map[string][]byte{}, decisions: nameSet{},
		manifest: bundle.Manifest{Schema: bundle.Schema, ExportID: a.NewID("exp_"), Tenant: e.Tenant, Origin: home.Origin(), Partition: int(home.Number()),
			PriorDecisions: map[string]string{}, Filters: e.Filters, Generator: "countersign " + policy.Version}}
}

// nameSet is a set of names that can have millions of elements. It stores 16 bytes of each name's
// hash, and no pointers, which the garbage collector would have to follow.
type nameSet map[[16]byte]struct{}

func (s nameSet) add(name string) { s[shortHash(name)] = struct{}{} }

func (s nameSet) has(name string) bool {
	_, has := s[shortHash(name)]
	return has
}

func shortHash(name string) [16]byte {
	sum := sha256.Sum256([]byte(name))
	return [16]byte(sum[:16])
}

// ExportHistory writes a bundle into a folder and records export.created; the signed record in
// this event is the bundle's manifest. Exporting the same range under the same checkpoint again
// gives the same files, except manifest.json.
func (a *Evidence) ExportHistory(ctx context.Context, e Export) (Exported, error) {
	if e.Filters.Selects() && e.Dispute == "" {
		list, err := a.ExportSelections(ctx, []Export{e})
		if err != nil {
			return Exported{}, err
		}
		return list[0], nil
	}
	if err := e.check(); err != nil {
		return Exported{}, err
	}
	x := a.exporting(e)
	if e.Dispute != "" {
		return x.run(ctx, []func(context.Context) error{x.decisionStream, x.writeDispute, x.writeRest, x.record})
	}
	return x.run(ctx, []func(context.Context) error{x.rangeOf, x.readHead, x.writeEvents, x.writeRest, x.pack, x.record})
}

// ExportSelections writes a bundle for each of several selections, like ExportHistory. It records
// all requests before it writes the first bundle, so that one checkpoint covers all of them.
// Otherwise each bundle would have to wait for the next checkpoint.
func (a *Evidence) ExportSelections(ctx context.Context, exports []Export) ([]Exported, error) {
	var requested []*exporting
	for _, e := range exports {
		if err := e.check(); err != nil {
			return nil, err
		}
		e.Filters.Receipts = e.Filters.Receipts || e.Statement
		x := a.exporting(e)
		if len(requested) > 0 {
			x.pace = requested[0].pace // one pace for all, since each pace may use half of the remaining time of a request
		}
		if _, err := x.run(ctx, []func(context.Context) error{x.ask}); err != nil {
			return nil, err
		}
		requested = append(requested, x)
	}
	var list []Exported
	for _, x := range requested {
		made, err := x.run(ctx, []func(context.Context) error{x.coverClaim, x.writeSelection, x.writeRest, x.pack, x.record})
		if err != nil {
			return nil, err
		}
		list = append(list, made)
	}
	return list, nil
}

// check refuses parts of an export that exclude or require each other. The operation
// create_export publishes the same conditions.
func (e Export) check() error {
	f := e.Filters
	switch {
	case bundle.Reversed(f.From, f.To):
		return policy.Refuse("invalid_value", "/to", "to must be later than from")
	case e.Dispute != "" && (e.Statement || f != bundle.Filters{NoPersonal: f.NoPersonal}):
		return policy.Refuse("mutually_exclusive", "/dispute", "dispute excludes every other member except noPersonal")
	case e.Statement && f.Agent == "":
		return policy.Refuse("missing_field", "/agent", "a statement requires agent")
	case e.Statement && (f.Protocol != "" || f.Decision != "" || f.Run != ""):
		return policy.Refuse("mutually_exclusive", "/statement", "statement excludes protocol, decision and run")
	}
	return nil
}

// run takes the steps of an export in order, until one fails.
func (x *exporting) run(ctx context.Context, steps []func(context.Context) error) (Exported, error) {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Exported{}, ground.Refusal(err)
		}
	}
	return Exported{x.manifest, x.showing}, nil
}

var errErasedSince = policy.Refuse(organizations.CodeConflict, "", "the files of this export cannot be built again, because a person was erased since or the program has another version; make a new export")

// ExportAgain writes the files of an earlier export again, with the same bytes. It refuses if a
// file would differ, for example because a person was erased since.
func (a *Evidence) ExportAgain(ctx context.Context, tenant, exportID, folder string) (bundle.Manifest, error) {
	history, err := a.Ledger.Read(ctx, tenant, "export/"+exportID)
	if err != nil {
		return bundle.Manifest{}, ground.Refusal(err)
	}
	created := slices.IndexFunc(history.Events, func(e ledger.Event) bool { return e.Type == events.TypeExportCreated })
	if created < 0 {
		return bundle.Manifest{}, policy.Refuse(ground.CodeNotFound, "", "export not found")
	}
	// Read the signed manifest of the export.
	var stored events.ExportCreated
	x := a.exporting(Export{Tenant: tenant, Folder: folder})
	x.manifest = bundle.Manifest{}
	if err := a.OpenInto(ctx, history.Events[created], &stored); errors.Is(err, vault.ErrErased) {
		return x.manifest, errErasedSince
	} else if err != nil {
		return x.manifest, err
	}
	if err := canon.Decode(stored.Record, &x.manifest); err != nil {
		return x.manifest, err
	}
	signed := x.manifest
	if hasPack(signed) {
		return signed, errPack
	}
	// Write the files again, with the filters and the checkpoint that the manifest names.
	x.e.Filters, x.manifest.Withheld, x.manifest.PriorDecisions, x.manifest.RuleSets = signed.Filters, 0, map[string]string{}, nil
	write := x.writeEvents
	switch {
	case signed.Selection != nil:
		write, x.manifest.Count, x.e.Statement = x.writeSelection, 0, signed.Statement != nil
	case signed.Dispute != nil:
		write, x.manifest.Count = x.writeDispute, 0
	}
	for _, step := range []func(context.Context) error{x.sameHead, write, x.writeRest} {
		if err := step(ctx); err != nil {
			return signed, ground.Refusal(err)
		}
	}
	// The files must have the hashes of the manifest.
	if !maps.Equal(x.folder.Files, signed.Files) {
		return signed, errErasedSince
	}
	manifest, err := canon.Marshal(map[string]any{"integrity": stored.Integrity, "record": stored.Record})
	if err != nil {
		return signed, err
	}
	return signed, x.folder.Put("manifest.json", append(manifest, '\n'))
}

// home returns the tenant's partition. Its checkpoints and keys prove the tenant's events.
func (x *exporting) home() *ledger.Partition { return x.app.Ledger.Home(x.e.Tenant) }

// sameHead reads the checkpoint that the earlier export used.
func (x *exporting) sameHead(ctx context.Context) (err error) {
	if x.manifest.CheckpointSize == 0 {
		return nil
	}
	if x.head, err = keeper.At(ctx, x.home(), x.manifest.CheckpointSize); err != nil {
		return err
	}
	x.head.Note = noteOf(x.head.Note, x.manifest.Files["checkpoint.txt"])
	x.proofs, _, err = keeper.Proofs(ctx, x.home())
	return err
}

// noteOf returns the stored note without the lines that witnesses have added after the export: the
// beginning of the note that has this hash. If there is none, noteOf returns the stored note.
func noteOf(stored []byte, hash string) []byte {
	for end := len(stored); end > 0; end = bytes.LastIndexByte(stored[:end-1], '\n') + 1 {
		if canon.Hash(stored[:end]) == hash {
			return stored[:end]
		}
	}
	return stored
}

// rangeOf computes the first and last sequence number. The range includes the event before the
// period and the append after it, without payloads; they prove that no event of the period is
// missing at its bounds. If no event is after the period, the range ends with the tenant's last
// event, and the manifest's filter "to" is removed.
func (x *exporting) rangeOf(ctx context.Context) error {
	m, f := &x.manifest, &x.e.Filters
	last, err := x.lastSequence(ctx)
	if err != nil {
		return err
	}
	start, err := x.before(ctx, "from", &f.From, 0, last)
	if err != nil {
		return err
	}
	end, err := x.before(ctx, "to", &f.To, last, last)
	if err != nil {
		return err
	}
	if last == 0 { // only the tenant of the service
		return policy.Refuse(ground.CodeNotFound, "/from", "there are no events yet")
	}
	end = max(end, start) // in an empty period, only the events around it are in the range
	x.within = end - start
	if x.e.Most > 0 && x.within > x.e.Most {
		return policy.Refuse("invalid_value", "/from", fmt.Sprintf("the period has more than %d events; choose a shorter period, or ask the operator to run countersign export", x.e.Most))
	}
	if start > 0 {
		start--
	}
	if end == last {
		f.To = ""
	} else {
		end++
	}
	found, err := x.app.Ledger.BySequence(ctx, x.e.Tenant, []int64{start, end})
	if err != nil {
		return err
	}
	end += int64(found[end].More)
	m.Filters, m.FirstSequence, m.Count, m.PrevBeforeFirst = *f, start+1, end-start, ledger.Hash(ledger.Genesis(m.Origin, m.Tenant)).String()
	if start > 0 {
		m.PrevBeforeFirst = found[start].Hash.String()
	}
	return nil
}

// lastSequence returns the sequence number of the tenant's last event. An organization without
// events does not exist, so for it lastSequence returns the refusal not_found.
func (x *exporting) lastSequence(ctx context.Context) (int64, error) {
	last, err := x.app.Ledger.LastSequence(ctx, x.e.Tenant)
	if err == nil && last == 0 && !ledger.IsService(x.e.Tenant) {
		err = organizations.ErrNoOrganization
	}
	return last, err
}

// before returns the number of events before a bound of the period. If there is no bound, it
// returns the argument `otherwise`. It rewrites the bound in UTC with microseconds, the form that
// verifiers read. It uses binary search, since times do not decrease within a tenant.
func (x *exporting) before(ctx context.Context, name string, bound *string, otherwise, last int64) (int64, error) {
	if *bound == "" {
		return otherwise, nil
	}
	at, err := instant(name, bound)
	if err != nil || at == 0 { // no event is before 1970
		return 0, err
	}
	var failed error
	n := sort.Search(int(last), func(i int) bool {
		found, err := x.app.Ledger.BySequence(ctx, x.e.Tenant, []int64{int64(i) + 1})
		failed = errors.Join(failed, err)
		e, ok := found[int64(i)+1]
		return ok && e.OccurredUS >= at
	})
	return int64(n), failed
}

// readHead waits for a checkpoint that covers the last event of the range.
func (x *exporting) readHead(ctx context.Context) error {
	last := x.manifest.FirstSequence + x.manifest.Count - 1
	found, err := x.app.Ledger.BySequence(ctx, x.e.Tenant, []int64{last})
	if err != nil {
		return err
	}
	x.manifest.LastHash = found[last].Hash.String()
	return x.cover(ctx, found[last].Position)
}

// createFiles creates the files that events are written to.
func (x *exporting) createFiles() (err error) {
	x.beginCounting()
	if x.views, err = views.New(views.Source{Origin: x.manifest.Origin}, views.Exported(x.manifest), func(name string) (io.WriteCloser, error) { return x.folder.Create("views/" + name) }); err != nil {
		return err
	}
	for name, file := range map[string]**bundle.File{"events.jsonl": &x.lines, "openings.jsonl": &x.openings,
		"redactions.jsonl": &x.redactions, "proofs/inclusion.jsonl": &x.inclusion} {
		if *file, err = x.folder.Create(name); err != nil {
			return err
		}
	}
	return nil
}

// closeFiles closes the files of createFiles.
func (x *exporting) closeFiles() error {
	return errors.Join(x.lines.Close(), x.openings.Close(), x.redactions.Close(), x.inclusion.Close(), x.views.Close(x.manifest))
}

func (x *exporting) writeEvents(ctx context.Context) error {
	if err := x.createFiles(); err != nil {
		return err
	}
	x.from, x.to, _ = x.e.Filters.Period() // no error: rangeOf has rewritten the bounds
	next, end := x.manifest.FirstSequence, x.manifest.FirstSequence+x.manifest.Count
	for next < end {
		if err := x.pace.Rest(ctx); err != nil {
			return err
		}
		page, err := x.app.Ledger.Tenant(ctx, x.e.Tenant, next, int(x.pace.Part(min(exportPage, end-next))))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("%w: sequence %d is missing", ledger.ErrTampered, next)
		}
		for _, e := range page {
			if err := x.event(ctx, e, e.Sequence == end-1); err != nil {
				return err
			}
		}
		next += int64(len(page))
		if x.e.Progress != nil {
			x.e.Progress(next-x.manifest.FirstSequence, x.manifest.Count)
		}
	}
	return x.closeFiles()
}

// event writes one event of a history, without its payload if it is outside the period.
func (x *exporting) event(ctx context.Context, e ledger.Event, last bool) error {
	show := e.OccurredUS >= x.from && (x.to == 0 || e.OccurredUS < x.to)
	return x.write(ctx, e, show, x.manifest.Count <= bundle.AllProofs || last || e.Sequence == x.manifest.FirstSequence)
}

// write writes one event to the files of the bundle. Its line is always written, and its inclusion
// proof if prove is true. If show is true, the line has the payload, and write adds the event's
// openings or a redaction, and its lines in the views.
func (x *exporting) write(ctx context.Context, e ledger.Event, show, prove bool) error {
	line := ledger.NewLine(e)
	if !show {
		line.Payload = nil
		x.manifest.Withheld++
	}
	if err := writeLine(x.lines, line); err != nil {
		return err
	}
	if x.proofs != nil && prove {
		hashes, err := x.proofs.Inclusion(x.head.Size, e.Position)
		if err != nil {
			return err
		}
		if err := writeLine(x.inclusion, bundle.NewProof(bundle.Proof{Position: e.Position}, hashes)); err != nil {
			return err
		}
	}
	if !show {
		return nil
	}
	openings, erased, err := x.open(ctx, e)
	if err != nil {
		return err
	}
	shown := bundle.Shows{Event: e}
	if erased || len(openings) > 0 && !x.handsOut(e) {
		if err := writeLine(x.redactions, map[string]any{"eventId": e.ID, "erased": erased}); err != nil {
			return err
		}
	} else {
		for _, o := range openings {
			opening := bundle.Opening{EventID: e.ID, Pointer: o.Pointer, Salt: hex.EncodeToString(o.Salt), Value: string(o.Value)}
			if err := writeLine(x.openings, opening); err != nil {
				return err
			}
			shown.Openings = append(shown.Openings, opening)
		}
	}
	if err := x.count(shown); err != nil {
		return err
	}
	read, err := x.views.Add(shown)
	if err != nil {
		return err
	}
	return x.remember(ctx, read)
}

// handsOut reports whether the bundle may contain the personal data of an event. An export for one
// agent contains only the personal data of that agent.
func (x *exporting) handsOut(e ledger.Event) bool {
	if x.e.Filters.NoPersonal || x.e.Filters.Agent == "" {
		return !x.e.Filters.NoPersonal
	}
	return vault.DataKey(e) == x.agentKey
}

// open decrypts an event's personal data. erased reports that the data cannot be decrypted.
func (x *exporting) open(ctx context.Context, e ledger.Event) (openings []vault.Opening, erased bool, err error) {
	if x.app.Vault != nil {
		openings, err = x.app.Vault.Openings(ctx, e)
	} else if vault.Sealed(e) {
		err = vault.ErrErased // without a vault, treat personal data as erased
	}
	if errors.Is(err, vault.ErrErased) {
		erased, err = true, nil
	}
	return openings, erased, err
}

// remember collects the policies, rule sets and decision ids for the other files of the bundle.
func (x *exporting) remember(ctx context.Context, e forms.Event) error {
	switch e.Type {
	case events.TypePolicyActivated:
		stored, err := events.As[events.PolicyActivated](e.Event)
		if err != nil {
			return err
		}
		x.policies[canon.Hash(stored.Policy)] = stored.Policy
	case events.TypeDecisionRecorded:
		x.showing++
		x.decisions.add(e.Record.DecisionID)
		if rules, hash := assurance.Catalogue(); hash == e.Record.RulesetHash && x.rules[hash] == nil {
			text, err := canon.Marshal(rules)
			if err != nil {
				return err
			}
			x.rules[hash] = text
		}
		return x.policyOf(ctx, e.Record.Policy.PolicyHash, e.Event)
	case events.TypeCallCompleted:
		stored, err := events.As[events.CallCompleted](e.Event)
		if err != nil {
			return err
		}
		x.ruleset(stored.RulesetVersion, stored.RulesetHash)
	case events.TypeReceiptRecorded, events.TypeApprovalRecorded:
		if !x.decisions.has(e.Record.DecisionID) {
			x.manifest.PriorDecisions[e.Record.DecisionID] = e.Record.DecisionRecordHash
		}
	}
	return nil
}

// ruleset adds to the bundle the rule set that a gate verdict names. If this program does not have
// it, only the manifest names its version and hash.
func (x *exporting) ruleset(version, hash string) {
	if _, seen := x.manifest.RuleSets[hash]; seen || hash == "" {
		return
	}
	if x.manifest.RuleSets == nil {
		x.manifest.RuleSets = map[string]string{}
	}
	x.manifest.RuleSets[hash] = version
	if text, err := actionrisk.RulesetText(version); err == nil && canon.Hash(text) == hash {
		x.rules[hash] = text
	}
}

// policyOf adds a decision's policy to the bundle, if the range does not contain its activation.
func (x *exporting) policyOf(ctx context.Context, hash string, e ledger.Event) error {
	if hash == "" || x.policies[hash] != nil {
		return nil
	}
	history, err := x.app.Ledger.Read(ctx, x.e.Tenant, "policy")
	if err != nil {
		return err
	}
	for _, p := range history.Events {
		if p.Type != events.TypePolicyActivated || p.Sequence > e.Sequence {
			continue
		}
		stored, err := events.As[events.PolicyActivated](p)
		if err != nil {
			return err
		}
		if canon.Hash(stored.Policy) == hash {
			x.policies[hash] = stored.Policy
		}
	}
	return nil
}

func writeLine(to *bundle.File, value any) error {
	line, err := canon.Marshal(value)
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

// writeRest writes the files that contain no events of the tenant: keys, policies, rules,
// checkpoint, consistency proofs and the verifier.
func (x *exporting) writeRest(ctx context.Context) error {
	_, keys, err := x.home().Keyring(ctx)
	if err != nil {
		return err
	}
	var lines []ledger.Line
	for _, e := range keys.Events {
		if x.head == nil || e.Position <= x.head.Size {
			lines = append(lines, ledger.NewLine(e))
		}
	}
	text, err := bundle.Lines(lines)
	if err == nil {
		err = x.folder.Put("keys.jsonl", text)
	}
	for hash, text := range x.policies {
		err = errors.Join(err, x.folder.Put("policies/"+hash+".json", text))
	}
	for hash, text := range x.rules {
		err = errors.Join(err, x.folder.Put("rules/"+hash+".json", text))
	}
	err = errors.Join(err, x.folder.Put("VERIFY.md", bundle.Format), x.folder.Put("verify.py", bundle.VerifierPy))
	if x.head != nil {
		err = errors.Join(err, x.folder.Put("checkpoint.txt", x.head.Note), x.stamp(ctx), x.consistency(ctx))
	}
	return err
}

// stamp writes the newest note that a time-stamp authority has signed, with its answer. If an
// earlier export is written again, it is the note that this export has.
func (x *exporting) stamp(ctx context.Context) error {
	var accept func(keeper.StampedNote) bool
	if signed := x.manifest.Files; signed != nil {
		if signed[bundle.StampFile] == "" {
			return nil
		}
		accept = func(n keeper.StampedNote) bool { return canon.Hash(n.Stamp) == signed[bundle.StampFile] }
	}
	stamped, err := keeper.Stamped(ctx, x.home(), x.head.Size, accept)
	if err != nil || stamped == nil {
		return err
	}
	x.stamped = stamped.Size
	return errors.Join(x.folder.Put(bundle.StampedFile, stamped.Note), x.folder.Put(bundle.StampFile, stamped.Stamp))
}

func (x *exporting) consistency(ctx context.Context) error {
	sizes, err := keeper.Sizes(ctx, x.home(), x.head.Size, exportedHeads)
	if err != nil {
		return err
	}
	if at, has := slices.BinarySearch(sizes, x.stamped); x.stamped > 0 && x.stamped < x.head.Size && !has {
		sizes = slices.Insert(sizes, at, x.stamped)
	}
	var lines []bundle.Proof
	for _, size := range sizes {
		hashes, err := x.proofs.Consistency(size, x.head.Size)
		if err != nil {
			return err
		}
		lines = append(lines, bundle.NewProof(bundle.Proof{From: size}, hashes))
	}
	text, err := bundle.Lines(lines)
	if err != nil {
		return err
	}
	return x.folder.Put(bundle.ConsistencyFile, text)
}

// record signs the manifest, writes it, and appends export.created.
func (x *exporting) record(ctx context.Context) error {
	signer, precondition, err := x.app.ActiveSigner(ctx, x.e.Tenant)
	if err != nil {
		return err
	}
	now := x.app.Now()
	x.manifest.Files, x.manifest.IssuedAt = x.folder.Files, canon.Stamp(now)
	envelope, err := signer.Sign(bundle.PayloadType, x.manifest)
	if err != nil {
		return err
	}
	// All files must be stored before the ledger records the export.
	manifest, err := canon.Marshal(map[string]any{"integrity": envelope.Integrity, "record": envelope.Record})
	if err == nil {
		err = x.folder.Put("manifest.json", append(manifest, '\n'))
	}
	if err == nil && x.e.Ready != nil {
		err = x.e.Ready()
	}
	if err != nil {
		return err
	}
	pending, err := x.pending(ctx, events.TypeExportCreated, signer, events.ExportCreated{Record: envelope.Record, Integrity: envelope.Integrity, VerifyURL: x.app.VerifyURL()})
	if err != nil {
		return err
	}
	pending.Expect = x.requested.At()
	_, err = x.app.Ledger.Append(ctx, ledger.Append{Tenant: x.e.Tenant, Preconditions: []ledger.Precondition{precondition}, NotBefore: now, Events: []ledger.Pending{pending}})
	return err
}

// pending returns an event of the export's stream with a signed record. The id of an exported
// agent is encrypted with that agent's data key, as in its decisions. The manifest in the bundle
// shows the id; after an erasure of the agent, no later export contains it.
func (x *exporting) pending(ctx context.Context, eventType string, signer *seal.Signer, stored any) (ledger.Pending, error) {
	d := ledger.Pending{Stream: "export/" + x.manifest.ExportID, ID: x.app.NewID("evt_"), Type: eventType, SchemaVersion: 1, Actor: x.e.Actor, KeyID: signer.KeyID()}
	text, err := canon.Marshal(stored)
	if d.Payload = text; err != nil || x.agentKey == "" {
		return d, err
	}
	members, err := canon.Members(text)
	if err == nil {
		d.Payload, err = x.app.Vault.SealRecord(ctx, x.e.Tenant, d.ID, x.agentKey, signer, members, events.PersonalInRecord(eventType)...)
	}
	return d, err
}
