package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
)

// cold is the ledger of fixture.Audited with the options for moving it to an archive.
type cold struct {
	*fixture.Audited
	l      *ledger.Ledger
	files  checkpoint.Files
	all    []ledger.Event // events as read before any payload was moved
	moving archive.Options
}

const perObject = 4

func newCold(t *testing.T, files checkpoint.Files) *cold {
	c := &cold{Audited: fixture.NewAudited(t), files: files}
	c.Audit.Archive = files
	c.moving = archive.Options{OwnerURL: c.DB.OwnerURL, Files: files, Before: time.Now().Add(time.Hour), Signer: fixture.Must(seal.NewSigner(make([]byte, 32))), Events: perObject}
	c.l = c.node(files)
	c.all = fixture.Must(c.l.Partition(0).After(t.Context(), 0, 1000))
	return c
}

// node opens another node on the same database.
func (c *cold) node(files checkpoint.Files) *ledger.Ledger {
	c.T.Helper()
	l, err := ledger.Open(c.T.Context(), c.DB.URL, ledger.Options{Log: slog.New(slog.DiscardHandler), Archive: archive.NewReader(files)})
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(l.Close)
	return l
}

func (c *cold) ask(query string, args ...any) (n int) {
	c.T.Helper()
	if err := c.Super.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		c.T.Fatal(err)
	}
	return n
}

// same fails the test unless every event reads as before and the whole ledger verifies.
func (c *cold) same(l *ledger.Ledger) {
	c.T.Helper()
	got, err := l.Partition(0).After(c.T.Context(), 0, 1000)
	if diff := cmp.Diff(c.all, got); diff != "" || err != nil {
		c.T.Errorf("events are not as they were, %v: %s", err, diff)
	}
	if report, err := audit.On(c.T.Context(), c.Pool, c.Audit); err != nil || len(report.Faults) > 0 || report.Events != c.Events {
		c.T.Errorf("%+v, %v", report, err)
	}
}

func places(t *testing.T) map[string]checkpoint.Files {
	return map[string]checkpoint.Files{
		"folder": checkpoint.Folder{Path: filepath.Join(t.TempDir(), "archive")},
		"s3":     &checkpoint.S3{Endpoint: ledgertest.Bucket(t), Region: "us-east-1", Bucket: "b", Prefix: "p", AccessKey: "AK", SecretKey: "SK"},
	}
}

// Old payloads leave the database, and every way to read still finds them. BringBack restores them
// unchanged.
func TestOldPayloadsMoveToTheArchiveAndBack(t *testing.T) {
	t.Parallel()
	for name, files := range places(t) {
		t.Run(name, func(t *testing.T) {
			c := newCold(t, files)
			ctx := t.Context()
			young := c.moving
			young.Before = time.Now().Add(-time.Hour)
			if moved, err := archive.Move(ctx, c.l, young); moved != 0 || err != nil {
				t.Errorf("%d events moved that are younger, %v", moved, err)
			}
			full := c.Events / perObject * perObject
			for _, want := range []int64{full, 0} { // the second run moves nothing, because the remaining events do not fill an object
				if moved, err := archive.Move(ctx, c.l, c.moving); moved != want || err != nil {
					t.Fatalf("%d events moved, want %d, %v", moved, want, err)
				}
			}
			for _, e := range c.all {
				gone := c.ask(`select count(*) from events where pos = $1 and payload is null`, e.Position) == 1
				if want := slices.Contains(events.Archived, e.Type) && e.Position <= full; gone != want {
					t.Errorf("%s at %d: left the database %v", e.Type, e.Position, gone)
				}
			}
			c.same(c.l)
			archived, err := archive.Count(ctx, c.l)
			if err != nil || archived.Objects != full/perObject || archived.Events != full || archived.Incomplete != 0 {
				t.Errorf("%+v, %v", archived, err)
			}
			if err := archive.ReadNewest(ctx, c.l); err != nil {
				t.Error(err)
			}
			if reads, failures := archive.Of(c.l).Reads(); reads == 0 || failures != 0 {
				t.Errorf("%d objects were read, %d could not be", reads, failures)
			}
			for _, e := range c.all {
				h, err := c.l.Read(ctx, e.Tenant, e.Stream)
				if err != nil || !slices.ContainsFunc(h.Events, func(got ledger.Event) bool { return bytes.Equal(got.Payload, e.Payload) }) {
					t.Errorf("stream %s: %v", e.Stream, err)
				}
				if e.IdemKey != nil {
					if again, err := c.l.ByKey(ctx, e.Tenant, ledger.Hash(e.IdemKey), ledger.Hash(e.ContentHash)); err != nil || !bytes.Equal(again[0].Payload, e.Payload) {
						t.Errorf("by key of %s: %v", e.ID, err)
					}
				}
			}
			// A node starts and appends without the archive.
			if _, _, err := keeper.CheckOutside(ctx, c.node(nil), keeper.Options{Folder: checkpoint.Folder{Path: t.TempDir()}}); err != nil {
				t.Error(err)
			}
			if _, err := c.l.Append(ctx, fixture.One("later", ledger.New(), "later")); err != nil {
				t.Fatal(err)
			}
			c.all, c.Events = fixture.Must(c.l.Partition(0).After(ctx, 0, 1000)), c.Events+1
			c.Audit.Pins = nil
			c.same(c.l)

			if brought, err := archive.BringBack(ctx, c.l, c.moving, full); brought != perObject || err != nil {
				t.Errorf("%d events came back from one object, %v", brought, err)
			}
			c.same(c.l)
			if brought, err := archive.BringBack(ctx, c.l, c.moving, 1); brought != full-perObject || err != nil {
				t.Errorf("%d events came back, %v", brought, err)
			}
			c.same(c.node(nil))
			if n := c.ask(`select (select count(*) from archives) + (select count(*) from events where payload is null)`); n != 0 {
				t.Errorf("%d rows are still archived", n)
			}
			c.Audit.Archive = nil
			c.same(c.l)
		})
	}
}

// The data of an erased person cannot be decrypted, even in a payload that was archived before the
// erasure. Chain and signatures still verify.
func TestErasureReachesTheArchive(t *testing.T) {
	t.Parallel()
	c := newCold(t, checkpoint.Folder{Path: t.TempDir()})
	ctx := t.Context()
	if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
		t.Fatal(err)
	}
	v := fixture.Must(vault.Open(ctx, c.l, bytes.Repeat([]byte{7}, 32)))
	of := slices.IndexFunc(c.all, func(e ledger.Event) bool { return e.Stream == "decision/org_a_0" })
	read := func() error {
		h, err := c.l.Read(ctx, "org_a", "decision/org_a_0")
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Openings(ctx, h.Events[0])
		return err
	}
	if c.ask(`select count(*) from events where pos = $1 and payload is null`, c.all[of].Position) != 1 {
		t.Fatal("the decision is not archived")
	}
	if err := read(); err != nil {
		t.Errorf("before: %v", err)
	}
	fixture.Erase(t, v, "org_a", "sub_org_a_0")
	if err := read(); !errors.Is(err, vault.ErrErased) {
		t.Errorf("after: %v", err)
	}
	if report := c.Run(c.Audit); len(report.Faults) > 0 {
		t.Errorf("%+v", report.Faults)
	}
}

// failing is a store in which one call fails, either before or after it has done its work.
type failing struct {
	checkpoint.Files
	at, after int // numbers of the calls that fail before (at) and after (after) their work, from 1; 0 means none
	calls     int
}

var errPlace = errors.New("the place is away")

func (f *failing) call(do func() error) error {
	f.calls++
	if f.calls == f.at {
		return errPlace
	}
	err := do()
	if f.calls == f.after {
		return errPlace
	}
	return err
}

func (f *failing) Write(ctx context.Context, name string, octets []byte) error {
	return f.call(func() error { return f.Files.Write(ctx, name, octets) })
}

func (f *failing) Read(ctx context.Context, name string, most int64) (octets []byte, err error) {
	err = f.call(func() error { octets, err = f.Files.Read(ctx, name, most); return err })
	return octets, err
}

// If a run is interrupted at any step, no payload is lost, and the next run gives the same result
// as a run without interruption.
func TestArchivingCanEndAtAnyStep(t *testing.T) {
	t.Parallel()
	c := newCold(t, checkpoint.Folder{Path: t.TempDir()})
	ctx := t.Context()
	full := int(c.Events / perObject * perObject)
	back := func() {
		if _, err := archive.BringBack(ctx, c.l, c.moving, 1); err != nil {
			t.Fatal(err)
		}
	}
	finish := func(what string) {
		t.Helper()
		c.same(c.l)
		if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := c.ask(`select count(*) from archives where complete`); n != full/perObject {
			t.Errorf("%s: %d objects are complete, want %d", what, n, full/perObject)
		}
		c.same(c.l)
		back()
	}
	for call := 1; call <= 6; call++ { // each object is written once and read once
		for _, after := range []bool{false, true} {
			f := &failing{Files: c.files, at: call}
			if after {
				f.at, f.after = 0, call
			}
			broken := c.moving
			broken.Files = f
			if _, err := archive.Move(ctx, c.l, broken); !errors.Is(err, errPlace) {
				t.Fatalf("call %d, after %v: %v", call, after, err)
			}
			finish(fmt.Sprintf("call %d, after %v", call, after))
		}
	}
	// Interrupt the run once after each statement that changes a table.
	for _, table := range []string{"archives", "events"} {
		for _, operation := range []string{"insert", "update"} {
			for n := range 3 {
				if table+operation == "eventsinsert" || table == "events" && ledgertest.OnCluster() { // Citus allows no trigger on a distributed table
					continue
				}
				c.Exec(`create sequence steps; grant all on sequence steps to public;
					create function stop() returns trigger language plpgsql as $$ begin
						if nextval('public.steps') > ` + fmt.Sprint(n) + ` then raise exception 'the machine stops'; end if; return null; end $$;
					create trigger stop after ` + operation + ` on ` + table + ` for each statement execute function stop()`)
				if _, err := archive.Move(ctx, c.l, c.moving); err == nil || !strings.Contains(err.Error(), "the machine stops") {
					t.Errorf("%s of %s, %d: %v", operation, table, n, err)
				}
				c.Exec(`drop trigger stop on ` + table + `; drop function stop; drop sequence steps`)
				finish(fmt.Sprintf("%s of %s, %d", operation, table, n))
			}
		}
	}
	// Interrupt BringBack, too.
	if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
		t.Fatal(err)
	}
	broken := c.moving
	broken.Files = &failing{Files: c.files, at: 2}
	if _, err := archive.BringBack(ctx, c.l, broken, 1); !errors.Is(err, errPlace) {
		t.Error(err)
	}
	finish("coming back")
}

// An unreachable store is not reported as tampering. The error names the object, and events in the
// database can still be read.
func TestAnArchiveThatIsAwayIsNoTampering(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: t.TempDir()}
	c := newCold(t, folder)
	ctx := t.Context()
	if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
		t.Fatal(err)
	}
	const object = "ledger.example.com_countersign_0/0000000000000000005-0000000000000000008.jsonl.gz"
	elsewhere := checkpoint.Folder{Path: t.TempDir()}
	for name, files := range map[string]checkpoint.Files{"not named": nil, "empty": elsewhere} {
		l := c.node(files)
		cold := slices.IndexFunc(c.all, func(e ledger.Event) bool {
			return e.Position > 4 && e.Position <= 8 && slices.Contains(events.Archived, e.Type)
		})
		_, err := l.Read(ctx, c.all[cold].Tenant, c.all[cold].Stream)
		var away *archive.Error
		if !errors.As(err, &away) || away.Object != object || !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
		if err := archive.ReadNewest(ctx, l); !errors.As(err, &away) {
			t.Errorf("%s: %v", name, err)
		}
		if _, failures := archive.Of(l).Reads(); failures == 0 {
			t.Errorf("%s: no failure was counted", name)
		}
		if h, err := l.Read(ctx, "org_a", "policy"); err != nil || len(h.Events) == 0 {
			t.Errorf("%s: a policy: %v", name, err)
		}
		o := c.Audit
		o.Archive = files
		if _, err := audit.On(ctx, c.Pool, o); !errors.As(err, &away) {
			t.Errorf("%s: audit: %v", name, err)
		}
		o.Unarchived = true
		if report, err := audit.On(ctx, c.Pool, o); err != nil || len(report.Faults) > 0 || !strings.Contains(strings.Join(report.Gaps, "\n"), "archived events") {
			t.Errorf("%s: without the archive: %+v, %v", name, report, err)
		}
		if check := audit.SelfCheck(ctx, l, nil); check.Failed() {
			t.Errorf("%s: %+v", name, check)
		}
	}
	// Restore the object from a copy; then the same node reads it.
	l := c.node(elsewhere)
	for _, s := range fixture.Must(pgx.CollectRows(fixture.Must(c.Super.Query(ctx, `select object from archives`)), pgx.RowTo[string])) {
		if err := elsewhere.Write(ctx, s, fixture.Must(folder.Read(ctx, s, 1<<30))); err != nil {
			t.Fatal(err)
		}
	}
	c.same(l)
}

// The audit finds a changed object, and a payload that was removed but is in no object.
func TestFalseArchivesAreFound(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: t.TempDir()}
	c := newCold(t, folder)
	ctx := t.Context()
	if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
		t.Fatal(err)
	}
	objects := fixture.Must(pgx.CollectRows(fixture.Must(c.Super.Query(ctx, `select object from archives order by first`)), pgx.RowTo[string]))
	original := fixture.Must(folder.Read(ctx, objects[1], 1<<30))
	for name, octets := range map[string][]byte{"another object": fixture.Must(folder.Read(ctx, objects[0], 1<<30)), "nothing": {}, "cut": original[:len(original)/2]} {
		if err := folder.Write(ctx, objects[1], octets); err != nil {
			t.Fatal(err)
		}
		report := c.Run(c.Audit)
		if len(report.Faults) == 0 || report.Faults[0].Table != "archives" || !strings.Contains(report.Faults[0].Row, objects[1]) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
		if _, err := c.node(folder).Partition(0).After(ctx, 4, 4); !errors.Is(err, ledger.ErrTampered) || !strings.Contains(err.Error(), objects[1]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := folder.Write(ctx, objects[1], original); err != nil {
		t.Fatal(err)
	}
	c.Exec(`delete from archives where first = 5`)
	for _, audit := range []audit.Options{c.Audit, {Origin: c.Audit.Origin, Unarchived: true}} {
		report := c.Run(audit)
		if len(report.Faults) == 0 || report.Faults[0].Table != "events" || report.Faults[0].Column != "payload" {
			t.Errorf("a payload without an archive: %+v", report.Faults)
		}
	}
	if _, err := c.node(folder).Partition(0).After(ctx, 4, 4); !errors.Is(err, ledger.ErrTampered) {
		t.Error(err)
	}
}

// The database lets a payload be removed only if an archive contains it, and restored only if it
// has the hash of its event. The service's role may do neither.
func TestOnlyArchivedPayloadsMayGo(t *testing.T) {
	t.Parallel()
	if ledgertest.OnCluster() {
		t.Skip("a cluster takes no table with triggers")
	}
	c := newCold(t, checkpoint.Folder{Path: t.TempDir()})
	ctx := t.Context()
	owner := fixture.Must(pgx.Connect(ctx, c.DB.OwnerURL))
	defer owner.Close(context.WithoutCancel(ctx))
	refused := func(conn *pgx.Conn, statement string) {
		t.Helper()
		if _, err := conn.Exec(ctx, statement); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	refused(owner, `update events set payload = null where pos = 2`)
	if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
		t.Fatal(err)
	}
	cold := c.ask(`select min(pos) from events where payload is null`)
	refused(owner, fmt.Sprintf(`update events set payload = '{}' where pos = %d`, cold))
	refused(owner, fmt.Sprintf(`update events set payload = null, actor = 'me' where pos = %d`, cold))
	refused(owner, `update events set payload = '{}' where pos = 1`)
	refused(owner, `delete from events`)
	app := fixture.Must(pgx.Connect(ctx, c.DB.URL))
	defer app.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{`update events set payload = null where pos = 1`, `update archives set complete = true`,
		`insert into archives (p, first, last, object) values (0, 900, 901, 'x')`, `delete from archives`} {
		refused(app, statement)
	}
	// No role may change any other column of the table.
	if n := c.ask(`select count(*) from pg_attribute a where attrelid = 'events'::regclass and attnum > 0 and not attisdropped and attname <> 'payload'
		and not exists (select from pg_trigger g where g.tgrelid = a.attrelid and g.tgname = 'events_append_only' and a.attnum = any(g.tgattr))`); n != 0 {
		t.Errorf("the trigger leaves %d columns out", n)
	}
}

// A second program that moves payloads at the same time is refused, because both would write the
// same objects.
func TestOneArchivesAtATime(t *testing.T) {
	t.Parallel()
	c := newCold(t, checkpoint.Folder{Path: t.TempDir()})
	asked := c.moving
	asked.Progress = func(string, int64) {
		if _, err := archive.Move(t.Context(), c.l, c.moving); !errors.Is(err, archive.ErrBusy) {
			t.Errorf("beside another one: %v", err)
		}
	}
	if _, err := archive.Move(t.Context(), c.l, asked); err != nil {
		t.Fatal(err)
	}
}

// Check verifies an object without the database, with keys that the auditor has.
func TestAnObjectProvesItself(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: t.TempDir()}
	c := newCold(t, folder)
	ctx := t.Context()
	if _, err := archive.Move(ctx, c.l, c.moving); err != nil {
		t.Fatal(err)
	}
	objects := fixture.Must(pgx.CollectRows(fixture.Must(c.Super.Query(ctx, `select object from archives order by first`)), pgx.RowTo[string]))
	packed := fixture.Must(folder.Read(ctx, objects[1], 1<<30))
	record, heads := c.moving.Signer.Public(), fixture.CheckpointSigner(t).Public()
	r, err := archive.Check(packed, keysOf(record), keysOf(heads))
	if err != nil || r.First != 5 || r.Last != 8 {
		t.Errorf("%+v, %v", r, err)
	}
	text := gunzip(t, packed)
	head, lines, _ := bytes.Cut(text, []byte("\n"))
	rest := bytes.SplitAfter(lines, []byte("\n"))
	for name, changed := range map[string][]byte{
		"an event less": bytes.Join([][]byte{head, rest[0]}, []byte("\n")),
		"an event":      bytes.Replace(text, []byte("cus_1"), []byte("cus_2"), 1),
		"the range":     bytes.Replace(text, []byte(`"first":5`), []byte(`"first":4`), 1),
		"the note":      bytes.Replace(text, []byte("— "), []byte("—  "), 1),
		"not an object": []byte("x"),
	} {
		if _, err := archive.Check(gzipped(t, changed), keysOf(record), keysOf(heads)); !errors.Is(err, archive.ErrUnsound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := archive.Check(packed, keysOf(heads), keysOf(heads)); !errors.Is(err, archive.ErrUnsound) {
		t.Errorf("another record key: %v", err)
	}
	if _, err := archive.Check(packed, keysOf(record), keysOf(record)); !errors.Is(err, archive.ErrUnsound) {
		t.Errorf("another checkpoint key: %v", err)
	}
}

func keysOf(key ed25519.PublicKey) []ed25519.PublicKey { return []ed25519.PublicKey{key} }

func gunzip(t *testing.T, packed []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	return fixture.Must(io.ReadAll(zip))
}

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
