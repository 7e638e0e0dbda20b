package migrations_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
)

// code returns the SQLSTATE of an error, or an empty text for nil.
func code(t *testing.T, err error) string {
	t.Helper()
	var pg *pgconn.PgError
	if err != nil && !errors.As(err, &pg) {
		t.Fatal(err)
	}
	if pg == nil {
		return ""
	}
	return pg.Code
}

const (
	forbidden   = "42501"
	violates    = "23514" // a check constraint
	duplicate   = "23505"
	isNull      = "23502"
	noPartition = "22004" // Citus: the column that distributes a row is null
)

// TestGenesis checks the worked example of package ledger.
func TestGenesis(t *testing.T) {
	got := migrations.Genesis("ledger.example.com/countersign/0", "org_01JD3Z8W5T0000000000000000")
	if hex.EncodeToString(got[:]) != "df0975c0c960b4f593cbe938dd4069d13ca2424d2932ce0f140816b9c1555b5d" {
		t.Errorf("got %x", got)
	}
}

func TestUpWritesTheFirstHead(t *testing.T) {
	db := ledgertest.New(t)
	genesis := migrations.Genesis(ledgertest.Origin+"/0", "")
	want := fmt.Sprintf("ledger.example.com/countersign/0 1 0 %x", genesis)
	if got := ask(t, db.URL, `select origin || ' ' || epoch || ' ' || pos || ' ' || encode(last_hash, 'hex') from ledger_head where p = 0`); got != want {
		t.Errorf("head %s\nwant %s", got, want)
	}
	const empty = "0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0" // RFC 6962 section 2.1
	if got := ask(t, db.URL, `select size || ' ' || encode(root, 'hex') || ' ' || octet_length(edge) from tree_head where p = 0`); got != empty {
		t.Errorf("tree head %s, want %s", got, empty)
	}
}

func TestTheOriginIsForEver(t *testing.T) {
	db := ledgertest.New(t)
	for _, same := range []string{"", ledgertest.Origin} {
		if err := migrations.Up(t.Context(), db.OwnerURL, same); err != nil {
			t.Errorf("origin %q: %v", same, err)
		}
	}
	err := migrations.Up(t.Context(), db.OwnerURL, "other.example.com")
	if err == nil || !strings.Contains(err.Error(), ledgertest.Origin) {
		t.Errorf("another origin: %v", err)
	}
	for _, bad := range []string{"https://a.example.com", "a.example.com/", "/a", "a b", "a+b", "ä.example.com", "a\nb", strings.Repeat("a", 257)} {
		if err := migrations.Up(t.Context(), db.OwnerURL, bad); err == nil {
			t.Errorf("origin %q was taken", bad)
		}
	}
}

func TestAnEmptyOriginBecomesALocalOne(t *testing.T) {
	ledgertest.Plain(t) // a distributed ledger is never migrated down
	db := ledgertest.New(t)
	downAll(t, db.OwnerURL)
	if err := migrations.Up(t.Context(), db.OwnerURL, ""); err != nil {
		t.Fatal(err)
	}
	origin := ask(t, db.URL, `select origin from ledger_head`)
	if !regexp.MustCompile(`^countersign\.local/[0-9A-HJKMNP-TV-Z]{26}/0$`).MatchString(origin) {
		t.Errorf("origin %q", origin)
	}
}

func TestEventsAreAppendOnlyForEverybody(t *testing.T) {
	ledgertest.Plain(t) // a cluster has no triggers on this table; TestADistributedLedger tests the rights there
	db := ledgertest.New(t)
	exec(t, db.URL, insertEvent)
	for _, statement := range []string{
		`update events set actor = 'me'`, `delete from events`, `truncate events`,
		`update events set actor = 'me' where false`,
	} {
		for role, url := range map[string]string{"app": db.URL, "owner": db.OwnerURL, "superuser": db.SuperURL} {
			if got := code(t, try(t, url, statement)); got != forbidden {
				t.Errorf("%s as %s: %q", statement, role, got)
			}
		}
	}
	if got := ask(t, db.URL, `select count(*)::text from events where actor = 'system'`); got != "1" {
		t.Errorf("%s events are left", got)
	}
}

func TestRightsOfTheService(t *testing.T) {
	ledgertest.Plain(t) // the roles of a cluster in a test have no login of their own
	db := ledgertest.New(t)
	for statement, want := range map[string]string{
		insertEvent: "",
		`update ledger_head set pos = 1, last_hash = sha256('x'), epoch = 2`:          "",
		`select from ledger_head for update`:                                          "",
		`update ledger_head set origin = 'mine'`:                                      forbidden,
		`update ledger_head set p = 1`:                                                forbidden,
		`insert into ledger_head (p, origin, last_hash) values (1, 'x', sha256('x'))`: forbidden,
		`delete from ledger_head`:                                                     forbidden,
		`delete from directory`:                                                       forbidden,
		`update directory set value = 'x'`:                                            forbidden,
		`delete from subject_keys`:                                                    forbidden,
		`update subject_keys set wrapped_key = null`:                                  forbidden,
		`truncate tiles, tree_head, checkpoints`:                                      "",
		`delete from projection_checkpoint`:                                           "",
		`delete from projection_dead`:                                                 "",
		`select from schema_migrations`:                                               "",
		`delete from schema_migrations`:                                               forbidden,
		`create table public.mine (n int)`:                                            forbidden,
		`alter table events disable trigger all`:                                      forbidden,
		`drop table tiles`:                                                            forbidden,
		`create table readmodels.mine (n int)`:                                        "",
		`create schema scratch create table mine (n int)`:                             "",
		`create role mine`:                                                            forbidden,
		`set role countersign_owner`:                                                  forbidden,
	} {
		if got := code(t, try(t, db.URL, statement)); got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
}

// row is a valid row of a table, with its values as SQL. Each check constraint is tested by
// changing one value.
type row struct{ columns, values []string }

func rowOf(pairs ...string) row {
	var r row
	for i := 0; i < len(pairs); i += 2 {
		r.columns, r.values = append(r.columns, pairs[i]), append(r.values, pairs[i+1])
	}
	return r
}

func (r row) insert(table string, changes map[string]string) string {
	values := append([]string{}, r.values...)
	for i, column := range r.columns {
		if value, ok := changes[column]; ok {
			values[i] = value
		}
	}
	return fmt.Sprintf("insert into %s (%s) values (%s)", table, strings.Join(r.columns, ", "), strings.Join(values, ", "))
}

var validRows = map[string]row{
	"ledger_head": rowOf("p", "300", "origin", "'x/300'", "epoch", "1", "pos", "0", "last_hash", "sha256('x')"),
	"events": rowOf("p", "0", "pos", "1", "tenant", "'service'", "tseq", "1", "stream", "'policy'", "version", "1",
		"event_id", "'evt_1'", "type", "'policy.drafted'", "schema_version", "0", "more", "0", "occurred_us", "1",
		"actor", "'system'", "key_id", "''", "idem_key", "sha256('k')", "content_hash", "sha256('c')", "payload", "'{}'",
		"payload_hash", "sha256('{}')", "prev", "sha256('p')", "hash", "sha256('h')"),
	"tiles":                 rowOf("p", "0", "level", "0", "n", "0", "data", "sha256('d')"),
	"tree_head":             rowOf("p", "300", "size", "0", "root", "sha256('r')", "edge", "''"),
	"checkpoints":           rowOf("p", "0", "size", "0", "root", "sha256('r')", "note", "'n'"),
	"subject_keys":          rowOf("p", "0", "tenant", "'t'", "key_id", "'k'", "subject_ref", "sha256('s')", "kek_id", "'k'", "wrapped_key", "'w'", "destroyed_us", "null"),
	"projection_checkpoint": rowOf("name", "'n'", "p", "0", "version", "0", "pos", "0", "hash", "sha256('h')", "state", "'live'"),
	"sessions":              rowOf("p", "0", "token_hash", "'h'", "customer", "'c'", "data", "'d'", "expires_at", "now()"),
	"signin_links":          rowOf("p", "0", "subject_ref", "sha256('s')", "token_hash", "sha256('t')", "box", "'b'", "expires_at", "now()"),
	"projection_dead":       rowOf("name", "'n'", "p", "0", "pos", "1", "tenant", "'t'", "stream", "'s'", "attempts", "0", "error", "'e'", "parked_us", "1"),
	"directory":             rowOf("p", "0", "name", "'n'", "value", "'v'", "pos", "1"),
	"archives":              rowOf("p", "0", "first", "1", "last", "1", "object", "'o'"),
	"webhook_deliveries":    rowOf("p", "0", "webhook_id", "'w'", "pos", "1", "topic", "'t'", "tenant", "'o'", "state", "'due'", "attempts", "0", "due_at", "now()", "status", "0", "error", "''"),
}

func TestChecks(t *testing.T) {
	db := ledgertest.New(t)
	const short, long = `'\x00'::bytea`, `sha256('x') || '\x00'::bytea`
	refused := map[string]map[string][]string{
		"ledger_head": {}, "events": {}, // these tables have no constraints; verification finds the wrong values
		"tiles":                 {"p": {"-1"}, "level": {"-1"}, "n": {"-1"}, "data": {"''", long, "convert_to(repeat('x', 8224), 'UTF8')"}},
		"tree_head":             {"p": {"-1"}, "size": {"-1"}, "root": {short, long}, "edge": {short}},
		"checkpoints":           {"p": {"-1"}, "size": {"-1"}, "root": {short, long}, "note": {"''"}},
		"subject_keys":          {"p": {"-1"}, "subject_ref": {short, "''"}, "kek_id": {"''"}, "wrapped_key": {"''"}, "destroyed_us": {"0", "1"}},
		"projection_checkpoint": {"p": {"-1"}, "version": {"-1"}, "pos": {"-1"}, "hash": {short, long}},
		"sessions":              {"p": {"-1"}, "token_hash": {"''"}, "customer": {"''"}},
		"signin_links":          {"p": {"-1"}, "subject_ref": {short, long}, "token_hash": {short, long}, "box": {"''"}},
		"projection_dead":       {"p": {"-1"}, "pos": {"0"}, "attempts": {"-1"}, "parked_us": {"0"}},
		"directory":             {"p": {"-1"}, "name": {"''"}, "value": {"''"}, "pos": {"0"}},
		"archives":              {"p": {"-1"}, "first": {"0", "2"}, "last": {"0"}, "object": {"''"}},
		"webhook_deliveries": {"p": {"-1"}, "webhook_id": {"''"}, "pos": {"0"}, "topic": {"''"}, "tenant": {"''"}, "state": {"'lost'"},
			"attempts": {"-1"}, "status": {"-1", "1000"}, "error": {"repeat('x', 201)"}},
	}
	conn := connect(t, db.SuperURL)
	for table, columns := range refused {
		for column, values := range columns {
			for _, value := range values {
				statement := validRows[table].insert(table, map[string]string{column: value})
				if got := code(t, tryIn(t, conn, statement)); got != violates {
					t.Errorf("%s.%s = %s: %q, want a violated check", table, column, value, got)
				}
			}
		}
		for _, column := range validRows[table].columns {
			if column == "idem_key" || column == "content_hash" || column == "destroyed_us" || column == "payload" {
				continue // may be null
			}
			statement := validRows[table].insert(table, map[string]string{column: "null"})
			// Citus refuses a row without a partition before it asks the table.
			if got := code(t, tryIn(t, conn, statement)); got != isNull && !(column == "p" && got == noPartition) {
				t.Errorf("%s.%s = null: %q", table, column, got)
			}
		}
		if got := code(t, tryIn(t, conn, validRows[table].insert(table, nil))); got != "" {
			t.Errorf("a valid row of %s: %q", table, got)
		}
	}
	// Rows in which both values are missing or both are empty are valid.
	for table, changes := range map[string]map[string]string{
		"events":       {"idem_key": "null", "content_hash": "null", "payload": "convert_to(repeat('x', 2097152), 'UTF8')", "more": "63"},
		"subject_keys": {"subject_ref": "''", "kek_id": "''", "wrapped_key": "''", "destroyed_us": "1"},
	} {
		if got := code(t, tryIn(t, conn, validRows[table].insert(table, changes))); got != "" {
			t.Errorf("a valid row of %s with %v: %q", table, changes, got)
		}
	}
}

// A number in a series cannot be used twice.
func TestNumbersOfSeries(t *testing.T) {
	db := ledgertest.New(t)
	conn := connect(t, db.SuperURL)
	insert := func(position, series, n, prev, agent, agentN, agentPrev string) string {
		r := validRows["events"]
		with := row{append(append([]string{}, r.columns...), "series", "series_n", "series_prev", "agent", "agent_n", "agent_prev"),
			append(append([]string{}, r.values...), series, n, prev, agent, agentN, agentPrev)}
		return with.insert("events", map[string]string{"pos": position, "tseq": position, "version": position, "idem_key": "sha256('" + position + "')"})
	}
	const h, null = "sha256('h')", "null"
	for _, good := range []string{
		insert("1", null, null, null, null, null, null),
		insert("1", "'s'", "1", null, null, null, null),
		insert("1", "'s'", "2", h, null, null, null),
		insert("1", "'s'", "2", h, "'a'", "1", null),
		insert("1", "'s'", "1", null, "'a'", "2", h),
		insert("1", "'s'", "2", h, null, null, null) + ";" + insert("2", "'s'", "3", h, null, null, null) + ";" + insert("3", "'other'", "2", h, null, null, null),
		insert("1", "'s'", "2", h, "'a'", "2", h) + ";" + insert("2", "'s'", "3", h, "'b'", "2", h) + ";" + insert("3", "'other'", "2", h, "'a'", "2", h),
	} {
		if got := code(t, tryIn(t, conn, good)); got != "" {
			t.Errorf("%s: %q", good, got)
		}
	}
	for _, twice := range []string{
		insert("1", "'s'", "2", h, null, null, null) + ";" + insert("2", "'s'", "2", h, null, null, null),
		insert("1", "'s'", "2", h, "'a'", "2", h) + ";" + insert("2", "'s'", "3", h, "'a'", "2", h),
	} {
		if got := code(t, tryIn(t, conn, twice)); got != duplicate {
			t.Errorf("%s: %q, want a duplicate", twice, got)
		}
	}
	if ledgertest.OnCluster() { // a cluster has no triggers on this table
		return
	}
	if got := code(t, try(t, db.SuperURL, `update events set series_n = 2 where false`)); got != forbidden {
		t.Errorf("an update of a number: %q", got)
	}
}

func TestKeys(t *testing.T) {
	db := ledgertest.New(t)
	conn := connect(t, db.SuperURL)
	// Each second row conflicts with the first in exactly one key.
	events := []map[string]string{
		{"tseq": "2", "version": "2", "idem_key": "sha256('k2')"},               // (p, pos)
		{"pos": "2", "version": "2", "idem_key": "sha256('k2')"},                // (p, tenant, tseq)
		{"pos": "2", "tseq": "2", "idem_key": "sha256('k2')"},                   // (p, tenant, stream, version)
		{"pos": "2", "tseq": "2", "version": "2", "content_hash": "sha256('')"}, // (p, tenant, idem_key)
	}
	for _, changes := range events {
		both := validRows["events"].insert("events", nil) + "; " + validRows["events"].insert("events", changes)
		if got := code(t, tryIn(t, conn, both)); got != duplicate {
			t.Errorf("a second event with %v: %q", changes, got)
		}
	}
	none := map[string]string{"idem_key": "null", "content_hash": "null"}
	second := map[string]string{"pos": "2", "tseq": "2", "version": "2", "idem_key": "null", "content_hash": "null"}
	if got := code(t, tryIn(t, conn, validRows["events"].insert("events", none)+"; "+validRows["events"].insert("events", second))); got != "" {
		t.Errorf("two events without a key: %q", got)
	}
	keys := validRows["subject_keys"]
	if got := code(t, tryIn(t, conn, keys.insert("subject_keys", nil)+"; "+keys.insert("subject_keys", map[string]string{"key_id": "'k2'"}))); got != duplicate {
		t.Errorf("two living keys of one subject: %q", got)
	}
	gone := map[string]string{"subject_ref": "''", "kek_id": "''", "wrapped_key": "''", "destroyed_us": "1"}
	gone2 := map[string]string{"key_id": "'k2'", "subject_ref": "''", "kek_id": "''", "wrapped_key": "''", "destroyed_us": "1"}
	if got := code(t, tryIn(t, conn, keys.insert("subject_keys", gone)+"; "+keys.insert("subject_keys", gone2))); got != "" {
		t.Errorf("two destroyed keys: %q", got)
	}
}

func TestEveryKeyContainsThePartitionAndTextHasNoLocale(t *testing.T) {
	db := ledgertest.New(t)
	if got := ask(t, db.SuperURL, `select coalesce(string_agg(c.relname, ' '), '') from pg_index i join pg_class c on c.oid = i.indexrelid
		join pg_class r on r.oid = i.indrelid where r.relnamespace = 'public'::regnamespace and r.relname <> 'schema_migrations' and i.indisunique
		and not exists (select from pg_attribute a where a.attrelid = r.oid and a.attname = 'p' and a.attnum = any (i.indkey))`); got != "" {
		t.Errorf("keys without p: %s", got)
	}
	if got := ask(t, db.SuperURL, `select coalesce(string_agg(table_name || '.' || column_name, ' '), '') from information_schema.columns
		where table_schema = 'public' and table_name not like 'citus%' and data_type = 'text' and (collation_name is distinct from 'C'
			or is_nullable = 'YES' and (table_name, column_name) not in (('events', 'series'), ('events', 'agent')))`); got != "" {
		t.Errorf("text columns with a locale, or nullable: %s", got)
	}
	if got := ask(t, db.SuperURL, `select string_agg(distinct tableowner, ' ') from pg_tables where schemaname = 'public'`); got != migrations.OwnerRole {
		t.Errorf("tables belong to %s", got)
	}
	if got := ask(t, db.SuperURL, `select array_to_string(reloptions, ' ') from pg_class where relname = 'ledger_head'`); got != "fillfactor=50" {
		t.Errorf("ledger_head has %s", got)
	}
}

func TestForceAndDirty(t *testing.T) {
	db := ledgertest.New(t)
	ctx := t.Context()
	exec(t, db.OwnerURL, `update schema_migrations set dirty = true`)
	if _, _, dirty, err := migrations.Status(ctx, db.URL); !dirty || err != nil {
		t.Errorf("a half-done migration: dirty %v, %v", dirty, err)
	}
	if err := migrations.Up(ctx, db.OwnerURL, ""); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Dirty database version %d", migrations.Latest())) {
		t.Errorf("up on a half-done migration: %v", err)
	}
	if err := migrations.Force(ctx, db.OwnerURL, migrations.Latest()); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, db.OwnerURL, ""); err != nil {
		t.Errorf("up after force: %v", err)
	}
	if err := migrations.Force(ctx, db.OwnerURL, 0); err != nil {
		t.Fatal(err)
	}
	if current, _, dirty, err := migrations.Status(ctx, db.OwnerURL); current != 0 || dirty || err != nil {
		t.Errorf("after force 0: %d, %v, %v", current, dirty, err)
	}
	if err := migrations.Up(ctx, db.OwnerURL, ""); err == nil || strings.Contains(err.Error(), "create table") {
		t.Errorf("up over the tables that are there: %v", err) // the error must be short and must not repeat the file
	}
	if err := migrations.Force(ctx, db.OwnerURL, migrations.Latest()+1); err == nil {
		t.Error("forced to a migration that does not exist")
	}
}

// bare creates an empty database that the login owns, and returns its URL.
func bare(t *testing.T, db *ledgertest.DB, login, rights string) string {
	t.Helper()
	u, err := url.Parse(db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_bare"
	exec(t, db.SuperURL, "create role "+login+" login "+rights)
	exec(t, db.SuperURL, "create database "+name+" owner "+login)
	t.Cleanup(func() { // runs before db itself is dropped
		conn, err := pgx.Connect(context.Background(), db.SuperURL)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		for _, statement := range []string{"drop database " + name + " with (force)", "drop role " + login} {
			if _, err := conn.Exec(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	u.Path = "/" + name
	query := u.Query()
	query.Set("user", login)
	u.RawQuery = query.Encode()
	return u.String()
}

func TestLoginThatMayNotPrepareGetsTheStatements(t *testing.T) {
	db := ledgertest.New(t)
	login := strings.ToLower("plain_" + strings.TrimPrefix(mustURL(t, db.URL).Path, "/"))
	u := bare(t, db, login, "")
	err := migrations.Up(t.Context(), u, ledgertest.Origin)
	if err == nil {
		t.Fatal("a login without rights migrated")
	}
	_, list, _ := strings.Cut(err.Error(), "try again:\n")
	name := strings.TrimPrefix(mustURL(t, u).Path, "/")
	want := "  grant countersign_app to countersign_owner;\n"
	if strings.Contains(list, "countersign_app to countersign_owner") {
		list = strings.Replace(list, want, "", 1) // listed only if no earlier test on this server has granted it
	}
	want = "  grant countersign_owner to " + login + ";\n" +
		"  grant connect, create on database " + name + " to countersign_owner;\n" +
		"  grant connect, create on database " + name + " to countersign_app;\n" +
		"  grant usage, create on schema public to countersign_owner;"
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("the statements differ (-want +got):\n%s", diff)
	}
	if left := tables(t, asSuper(t, u)); left != 0 {
		t.Errorf("%d tables were made all the same", left)
	}
	for statement := range strings.SplitSeq(want, ";") { // run the statements as an administrator would
		exec(t, asSuper(t, u), statement)
	}
	if err := migrations.Up(t.Context(), u, ledgertest.Origin); err != nil {
		t.Errorf("after the statements: %v", err)
	}
	if got := ask(t, asSuper(t, u), `select string_agg(distinct tableowner, ' ') from pg_tables where schemaname = 'public'`); got != migrations.OwnerRole {
		t.Errorf("tables belong to %s", got)
	}
}

func TestTheServicesRoleMayNotMigrate(t *testing.T) {
	ledgertest.Plain(t) // the roles of a cluster in a test have no login of their own
	db := ledgertest.New(t)
	if err := migrations.Up(t.Context(), db.URL, ""); err == nil || !strings.Contains(err.Error(), "is the service's role and may not migrate") {
		t.Errorf("got %v", err)
	}
	if err := migrations.Down(t.Context(), db.URL); err == nil {
		t.Error("the service migrated down")
	}
}

func TestManyUpsAtOnce(t *testing.T) {
	ledgertest.Plain(t) // a distributed ledger is never migrated down
	db := ledgertest.New(t)
	downAll(t, db.OwnerURL)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := migrations.Up(t.Context(), db.SuperURL, ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := ask(t, db.URL, `select count(*)::text from ledger_head`); got != "1" {
		t.Errorf("%s heads", got)
	}
}

func TestReadModelsHaveFiles(t *testing.T) {
	for _, name := range migrations.ReadModels() {
		if text, err := migrations.ReadModel(name); err != nil || text == "" {
			t.Errorf("%s: %d octets, %v", name, len(text), err)
		}
	}
	if _, err := migrations.ReadModel("../0001_ledger.up"); err == nil {
		t.Error("a read model was read from elsewhere")
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// asSuper returns the URL of the same database for the superuser.
func asSuper(t *testing.T, s string) string {
	t.Helper()
	u := mustURL(t, s)
	query := u.Query()
	query.Set("user", "postgres")
	u.RawQuery = query.Encode()
	return u.String()
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// tryIn runs statements in a transaction that is always rolled back.
func tryIn(t *testing.T, conn *pgx.Conn, statements string) error {
	t.Helper()
	_, err := conn.PgConn().Exec(t.Context(), "begin; "+statements).ReadAll()
	if _, rollback := conn.Exec(t.Context(), "rollback"); rollback != nil {
		t.Fatal(rollback)
	}
	return err
}

func ask(t *testing.T, url, query string) (answer string) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// TestUpMakesMissingRoles starts a separate server, because it needs one without the roles.
func TestUpMakesMissingRoles(t *testing.T) {
	ledgertest.New(t) // skips the test if there is no PostgreSQL
	dir, err := os.MkdirTemp("", "migrations-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the system user of the server must be able to enter the folder
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := localpg.Start(t.Context(), localpg.Options{DataDir: filepath.Join(dir, "data"), Settings: []string{"fsync=off",
		"hba_file=" + filepath.Join(dir, "data", "pg", "pg_hba.conf")}}) // lets the roles of this test log in
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // its own test
	super := s.DatabaseURL(localpg.Superuser, "postgres")
	for _, statement := range []string{
		"drop database countersign", "drop role countersign_owner", "drop role countersign_app",
		"create role plain login", "create database plain owner plain",
		"create role maker login createrole", "create database made owner maker",
	} {
		exec(t, super, statement)
	}
	err = migrations.Up(t.Context(), s.DatabaseURL("plain", "plain"), "")
	want := "the login plain may not prepare the database; have an administrator run this in the database, then try again:\n" +
		"  create role countersign_owner nologin;\n" +
		"  create role countersign_app nologin;\n" +
		"  grant countersign_app to countersign_owner;\n" +
		"  grant countersign_owner to plain;\n" +
		"  grant connect, create on database plain to countersign_owner;\n" +
		"  grant connect, create on database plain to countersign_app;\n" +
		"  grant usage, create on schema public to countersign_owner;"
	if err == nil || err.Error() != want {
		t.Errorf("without the right to make roles:\n%v\nwant\n%s", err, want)
	}
	if err := migrations.Up(t.Context(), s.DatabaseURL("maker", "made"), ""); err != nil {
		t.Errorf("with the right to make roles: %v", err)
	}
	if err := migrations.Up(t.Context(), s.DatabaseURL("maker", "made"), ""); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if got := ask(t, s.DatabaseURL(localpg.Superuser, "made"), `select count(*)::text from pg_roles where rolname like 'countersign%' and not rolcanlogin and not rolsuper`); got != "2" {
		t.Errorf("%s roles were made", got)
	}
}
