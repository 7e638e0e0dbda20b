package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
)

// world is a ledger with a history that a test writes step by step. Each step starts with a fixed
// random source and an app with empty caches, so two worlds with the same steps have the same
// history.
type world struct {
	t     *testing.T
	app   *commands.App
	clock *ledgertest.Clock
	orgs  []string
	owner map[string]string // member ids of developers, by organization
	said  []string          // all answers, without the members that depend on the number of partitions

	market market

	decided  map[string][]signedDecision
	receipts int
	chains   map[string][]ledger.Event      // by tenant, set at the end
	exports  map[string]map[string][]string // files of two tenants' exports, by tenant and file name, set at the end
}

func newWorld(t *testing.T, partitions int) *world {
	c := newClock()
	cryptotest.SetGlobalRandom(t, 1)
	return &world{t: t, app: openApp(t, ledgertest.NewPartitioned(t, partitions), c), clock: c, owner: map[string]string{}, decided: map[string][]signedDecision{},
		market: market{bank: newBank("facilitator")}}
}

// again returns an app with empty caches on the same ledger. It draws ids for 48 partitions: ids
// that belong together in 48 partitions also do in 1, 3 and 16, so worlds with different numbers
// of partitions get the same ids.
func (w *world) again() *commands.App {
	a := commands.New(&ground.Ground{Ledger: w.app.Ledger, Vault: w.app.Vault, Signer: w.app.Signer, Clock: w.clock.Now, BaseURL: w.app.BaseURL})
	a.DrawFor = 48
	return w.equip(a)
}

// step makes one random step; seed alone determines it.
func (w *world) step(seed uint64) {
	w.clock.Add(1300 * time.Millisecond)
	cryptotest.SetGlobalRandom(w.t, seed)
	w.app = w.again()
	r := rand.New(rand.NewPCG(seed, 0))
	if len(w.orgs) < 6 || r.IntN(40) == 0 {
		w.newOrganization(r)
		return
	}
	if r.IntN(2) == 0 {
		w.trade(seed, r)
		return
	}
	org := w.orgs[r.IntN(len(w.orgs))]
	p := operatorOf(w.t, w.app, org)
	switch n := r.IntN(10); {
	case n == 0:
		v, err := w.app.DraftAndActivate(w.t.Context(), p, fmt.Appendf(nil, `{"policyId":"default","maxUsdPerTransaction":%d,"allowedNetworks":["base"],"requireHttps":true}`, 1+r.IntN(3)), "test")
		w.say(v.Version, err)
	case n == 1:
		_, err := w.app.AddMember(w.t.Context(), p, fmt.Sprintf("m%d@example.com", r.IntN(9)), "developer")
		w.say("member", err)
	case n == 2 && len(w.decided[org]) > 0:
		d := w.decided[org][r.IntN(len(w.decided[org]))]
		recorded, err := w.app.BindReceipt(w.t.Context(), session(w.t, w.app, org, w.owner[org]), outcomeOf(w.t, d, "fulfilled", w.clock.Now()))
		if w.answered(recorded, err); err == nil {
			w.receipts++
		}
	case n == 3: // these requests share one idempotency key; the content is that of the first request, or another one
		w.decide(org, "again", []string{"allow", "deny"}[r.IntN(2)])
	default:
		w.decide(org, fmt.Sprint("k", seed), []string{"allow", "deny", "needs_review"}[r.IntN(3)])
	}
}

func (w *world) newOrganization(r *rand.Rand) {
	o, err := w.app.CreateOrganization(w.t.Context(), "operator", "Acme", "business", fmt.Sprintf("ada%d@example.com", r.IntN(9)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.orgs = append(w.orgs, o.OrgID)
	m, err := w.app.AddMember(w.t.Context(), operatorOf(w.t, w.app, o.OrgID), "dev@example.com", "developer")
	if err != nil {
		w.t.Fatal(err)
	}
	w.owner[o.OrgID] = m.MemberID
	withPolicy(w.t, w.app, operatorOf(w.t, w.app, o.OrgID))
	w.say(o, nil)
}

func (w *world) decide(org, key, want string) {
	recorded, err := w.app.Decide(w.t.Context(), session(w.t, w.app, org, w.owner[org]), decisionRequest(w.t, key, want))
	w.answered(recorded, err)
	if err == nil && !recorded.Replayed {
		if record, err := assurance.ReadDecision(recorded.Envelope.Record); err == nil {
			w.decided[org] = append(w.decided[org], signedDecision{record, recorded.Envelope.Integrity.RecordHash})
		}
	}
}

// answered notes an answer. It keeps the sequence number, which counts within the tenant, and
// drops the positions, which depend on the partition.
func (w *world) answered(recorded decisions.Recorded, err error) {
	position := seal.LedgerPosition{}
	if recorded.Envelope.Ledger != nil {
		position = seal.LedgerPosition{Tenant: recorded.Envelope.Ledger.Tenant, Sequence: recorded.Envelope.Ledger.Sequence}
		recorded.Envelope.Ledger = &position
	}
	w.say(fmt.Sprintf("%v %s %v %+v", recorded.Replayed, recorded.Envelope.Record, recorded.Envelope.Integrity, position), err)
}

func (w *world) say(answer any, err error) {
	w.said = append(w.said, fmt.Sprintf("%+v %v", answer, err))
}

// chain returns a tenant's events as they would be in partition 0. It replaces what depends on the
// partition: the partition's number, the events' positions, and all hashes, which begin with the
// origin.
func (w *world) chain(tenant string) []ledger.Event {
	list, err := w.app.Ledger.Tenant(context.WithoutCancel(w.t.Context()), tenant, 1, 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	prev := ledger.Genesis(ledgertest.Origin+"/0", tenant)
	series := map[[2]string][]byte{}
	for i := range list {
		e := &list[i]
		e.Partition, e.Position, e.Prev = 0, 0, prev
		ofKind, ofAgent := [2]string{e.Series}, [2]string{e.Series, e.Agent}
		if e.SeriesN > 1 {
			e.SeriesPrev = series[ofKind]
		}
		if e.AgentN > 1 {
			e.AgentPrev = series[ofAgent]
		}
		e.Hash = e.Sum()
		prev = e.Hash
		if e.Agent != "" {
			series[ofAgent] = bytes.Clone(prev[:])
		}
		series[ofKind] = bytes.Clone(prev[:])
	}
	return list
}

// export exports a tenant and returns the lines of each file, without positions and hashes.
func (w *world) export(tenant string) map[string][]string {
	cryptotest.SetGlobalRandom(w.t, 2)
	w.app = w.again()
	folder := w.t.TempDir()
	if _, err := w.app.ExportHistory(w.t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder, FullSpeed: true}); err != nil {
		w.t.Fatal(err)
	}
	files := map[string][]string{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if err != nil || d.IsDir() || name == "manifest.json" || name == "keys.jsonl" || strings.HasPrefix(name, "views/") {
			return err // these files contain positions, hashes or keys of the partition
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			files[name] = append(files[name], withoutPlace(line))
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

func withoutPlace(line string) string {
	for _, member := range []string{`"hash":"`, `"prev":"`, `"series_prev":"`, `"agent_prev":"`, `"pos":`, `"p":`, `"position":`} {
		for from := 0; ; {
			at := strings.Index(line[from:], member)
			if at < 0 {
				break
			}
			start := from + at + len(member)
			end := start + strings.IndexAny(line[start:], `",}`)
			line = line[:start] + line[end:]
			from = start
		}
	}
	return line
}

// Random histories in ledgers with 3 and 16 partitions give the same events, answers and exports
// as in a ledger with one partition, byte for byte, except for positions and partition numbers.
func TestHistoriesAreTheSameInAnyNumberOfPartitions(t *testing.T) {
	var paid []string
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run := func(partitions int) *world {
				w := newWorld(t, partitions)
				for i := range uint64(120) {
					w.step(seed*1000 + i)
				}
				clean(t, w.app)
				w.chains, w.exports = map[string][]ledger.Event{}, map[string]map[string][]string{}
				for _, tenant := range w.orgs {
					w.chains[tenant] = w.chain(tenant)
				}
				for _, tenant := range w.orgs[:2] {
					w.exports[tenant] = w.export(tenant)
				}
				return w
			}
			one := run(1)
			streams := one.streams()
			paid = append(paid, one.market.calls...)
			for _, n := range []int{3, 16} {
				many := run(n)
				if diff := cmp.Diff(one.said, many.said); diff != "" {
					t.Fatalf("answers at %d:\n%s", n, diff)
				}
				if diff := cmp.Diff(streams, many.streams()); diff != "" {
					t.Fatalf("streams at %d:\n%s", n, diff)
				}
				if diff := cmp.Diff(one.chains, many.chains); diff != "" {
					t.Fatalf("events at %d:\n%s", n, diff)
				}
				if diff := cmp.Diff(one.exports, many.exports); diff != "" {
					t.Fatalf("exports at %d:\n%s", n, diff)
				}
				homes := map[*ledger.Partition]bool{}
				for _, tenant := range one.orgs {
					homes[many.app.Ledger.Home(tenant)] = true
				}
				if len(one.decided) == 0 || one.receipts == 0 {
					t.Errorf("organizations with decisions: %d, receipts: %d", len(one.decided), one.receipts)
				}
				if len(homes) < 2 {
					t.Errorf("every organization is at home in one partition of %d", n)
				}
			}
		})
	}
	for _, charge := range []string{"free", "pass", "credit", "x402"} {
		if !slices.Contains(paid, charge) {
			t.Errorf("no call was paid for by %s: %v", charge, paid)
		}
	}
}

// In a ledger with 1, 3 or 16 partitions, a key is found by its id, the keys of an address are
// counted, and the keys are stored in several partitions.
func TestKeysAreFoundByTheirIDInAnyNumberOfPartitions(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a := openApp(t, ledgertest.NewPartitioned(t, n), newClock())
			ctx := t.Context()
			tenants := map[string]bool{}
			for i := range 24 {
				address := fmt.Sprintf("u%d@example.com", i)
				issued, err := a.IssueFreeKey(ctx, address, "")
				if err != nil {
					t.Fatal(err)
				}
				caller, err := a.Authenticate(ctx, issued.APIKey)
				if err != nil || caller.KeyID != issued.KeyID {
					t.Fatalf("authenticate: %+v, %v", caller, err)
				}
				if usage, err := a.Usage(ctx, caller); err != nil || usage.Used != 0 {
					t.Errorf("usage %+v, %v", usage, err)
				}
				var tried int
				for tried = 1; tried < 5; tried++ {
					if _, err := a.IssueFreeKey(ctx, address, ""); err != nil {
						break
					}
				}
				if tried != 3 {
					t.Errorf("%d keys of one address in a month", tried)
				}
			}
			rows, err := a.Ledger.Pool().Query(ctx, `select distinct tenant from events where type = $1`, events.TypeKeyIssued)
			if err != nil {
				t.Fatal(err)
			}
			list, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			for _, tenant := range list {
				tenants[tenant] = true
				if !ledger.IsService(tenant) {
					t.Errorf("a key in tenant %s", tenant)
				}
			}
			if want := min(n, 5); len(tenants) < want {
				t.Errorf("keys in %d tenants, want at least %d", len(tenants), want)
			}
			clean(t, a)
		})
	}
}

// A token contains no organization id, but belongs to the organization's partition, so it is found
// there.
func TestTokensAreFoundInAnyNumberOfPartitions(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.NewPartitioned(t, 16), newClock())
	for range 5 {
		orgID, operator := newOrganization(t, a, "business")
		withPolicy(t, a, operator)
		issued := newToken(t, a, operator)
		p, err := a.AuthenticateOrganization(t.Context(), issued.Token)
		if err != nil || p.OrgID != orgID {
			t.Fatalf("%+v, %v", p, err)
		}
		decided(t, a, p, "k", "allow")
	}
	clean(t, a)
}

// Erasing an address erases its data in all partitions.
func TestErasureReachesEveryPartition(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.NewPartitioned(t, 16), newClock())
	ctx := t.Context()
	const address = "ada@example.com"
	if _, err := a.IssueFreeKey(ctx, address, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.EnsureCustomer(ctx, address); err != nil {
		t.Fatal(err)
	}
	_, err := a.EraseSubject(ctx, evidence.Erasure{Tenant: ledger.ServiceTenant, Subject: "email:" + address, Reason: "asked", RequestedBy: "a", ApprovedBy: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range a.Ledger.Partitions() {
		if id, err := a.Vault.Find(ctx, p.Service(), "email:"+address); err != nil || id != "" {
			t.Errorf("partition %d still knows the address: %q, %v", p.Number(), id, err)
		}
	}
	clean(t, a)
}

// A key rotation activates the new key and retires the old key in all partitions. A second
// rotation to the same key is refused.
func TestARotationReachesEveryPartition(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.NewPartitioned(t, 3), newClock())
	ctx := t.Context()
	next, err := seal.NewSigner(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	rotation := ledger.Rotation{Purpose: ledger.PurposeRecord, From: a.Signer, To: next, Actor: "operator", EventIDs: [2]string{"evt_n1", "evt_n2"}}
	if err := a.Ledger.Rotate(ctx, rotation); err != nil {
		t.Fatal(err)
	}
	rings, err := a.Ledger.Keyrings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for p, ring := range rings {
		if ring[a.Signer.KeyID()].To == 0 || ring[next.KeyID()].To != 0 || ring[next.KeyID()].From == 0 {
			t.Errorf("partition %d: %+v", p, ring)
		}
	}
	if err := a.Ledger.Rotate(ctx, rotation); err == nil {
		t.Error("a rotation twice")
	}
	clean(t, a)
}
