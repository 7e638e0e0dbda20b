package audit_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy/canon"
)

// The test changes every value of every column of every proven table in turn. The audit finds each
// change and names table and row.
func TestAuditFindsEveryChangedValue(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	changed, found := 0, 0
	for _, table := range fixture.AuditedTables {
		a.Exec(`alter table ` + table + ` drop constraint if exists ` + table + `_pkey cascade`)
		columns, err := pgx.CollectRows(fixture.Must(a.Super.Query(t.Context(), `select attname, format_type(atttypid, null), attnotnull from pg_attribute
			where attrelid = $1::regclass and attnum > 0 and not attisdropped`, table)), pgx.RowToStructByPos[struct {
			Name, Type string
			NotNull    bool
		}])
		if err != nil {
			t.Fatal(err)
		}
		places := fixture.Must(pgx.CollectRows(fixture.Must(a.Super.Query(t.Context(), `select ctid::text from `+table)), pgx.RowTo[string]))
		for _, constraint := range fixture.Must(pgx.CollectRows(fixture.Must(a.Super.Query(t.Context(), `select conname from pg_constraint where conrelid = $1::regclass and contype = 'c'`, table)), pgx.RowTo[string])) {
			a.Exec(`alter table ` + table + ` drop constraint ` + constraint)
		}
		for _, column := range columns {
			values := map[string][]string{
				"smallint": {column.Name + " + 1"}, "integer": {column.Name + " + 1"}, "bigint": {"coalesce(" + column.Name + ", 0) + 1"},
				"text": {column.Name + " || 'x'"}, "bytea": {`case when ` + column.Name + ` is null or ` + column.Name + ` = '' then '\x00' else set_byte(` + column.Name + `, 0, (get_byte(` + column.Name + `, 0) + 1) % 256) end`},
			}[column.Type]
			if values == nil {
				t.Fatalf("%s.%s: no change for type %s", table, column.Name, column.Type)
			}
			for n := range places {
				for _, value := range values {
					a.Exec(`delete from ` + table + `; insert into ` + table + ` select * from kept.` + table)
					place := fixture.Must(pgx.CollectRows(fixture.Must(a.Super.Query(t.Context(), `select ctid::text from `+table+` order by ctid`)), pgx.RowTo[string]))[n]
					var differs bool
					if err := a.Super.QueryRow(t.Context(), `select (`+value+`) is distinct from `+column.Name+` from `+table+` where ctid = '`+place+`'`).Scan(&differs); err != nil || !differs {
						continue // the row has this value already
					}
					if _, err := a.Super.Exec(t.Context(), `update `+table+` set `+column.Name+` = `+value+` where ctid = '`+place+`'`); err != nil {
						continue // the schema refuses this value
					}
					changed++
					report, err := audit.On(t.Context(), a.Pool, a.Audit)
					named := slices.ContainsFunc(report.Faults, func(f audit.Fault) bool { return f.Table == table && f.Row != "" && f.Column != "" })
					switch {
					case err != nil:
						t.Errorf("%s.%s = %s, row %d: %v", table, column.Name, value, n, err)
					case named:
						found++
					default:
						t.Errorf("%s.%s = %s, row %d: %v", table, column.Name, value, n, report.Faults)
					}
				}
			}
		}
		a.Restore()
	}
	t.Logf("%d of %d changed values were found", found, changed)
}

// The attacker has every right in the database but no signing key. Some attacks repair the chain
// afterwards (rehash).
func TestAuditFindsEveryAttack(t *testing.T) {
	t.Parallel()
	ledgertest.Plain(t) // the planner of a Citus cluster refuses the statements of the attacks
	a := fixture.NewAudited(t)
	a.Unpack()
	forgetTree := `delete from tiles; delete from checkpoints; update tree_head set size = 0, root = sha256(''), edge = '';
		delete from directory; insert into directory select p, stream, tenant, pos from events where type = 'organization_token.issued'
		union all select p, tenant || '/tokens', stream, pos from events where type = 'organization_token.issued';`
	fixHead := `update ledger_head set (pos, last_hash) = (select pos, hash from events order by pos desc limit 1);`
	renumber := `update events e set pos = 1000000 + n from (select pos, row_number() over (order by pos) n from events) r where r.pos = e.pos;
		update events set pos = pos - 1000000;`
	for _, attack := range []struct {
		name, statement string
		rehash, pin     bool // pin: only a note from outside reveals the attack
	}{
		{"an organization deleted and renumbered", `delete from events where tenant = 'org_b'; delete from subject_keys where tenant = 'org_b';` + renumber + fixHead + forgetTree, false, true},
		{"the tail cut and the head mended", `delete from events where pos > (select max(pos) - 2 from events);` + fixHead + forgetTree, false, true},
		{"groups of two tenants reordered", `update events set pos = case when tenant = 'org_a' then 2000 + pos else 1000 + pos end where tenant in ('org_a', 'org_b');` + renumber + fixHead + forgetTree, false, true},
		{"a data key destroyed", `update subject_keys set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = 5 where key_id = 'sub_org_a_0'`, false, false},
		{"the epoch", `update ledger_head set epoch = 7`, false, false},
		{"a policy rewritten", `update events set payload = convert_to(replace(convert_from(payload, 'UTF8'), '"version":1', '"version":2'), 'UTF8') where type = 'policy.activated' and tenant = 'org_a'`, true, false},
		{"a token's actor", `update events set actor = 'cus_9' where type = 'organization_token.issued'`, true, true},
		{"a price", `update events set payload = convert_to(replace(convert_from(payload, 'UTF8'), '"price":5', '"price":6'), 'UTF8') where type = 'organization_token.issued'`, true, true},
		{"a decision removed and its receipt left", `delete from events where event_id = 'evt_2'; update events set version = version - 1 where stream = 'decision/org_a_0';` + renumber, true, false},
		{"a signed decision moved to another organization", `update events set tenant = 'org_b', tseq = tseq + 500 where stream = 'decision/org_a_1'`, true, false},
		{"recordHash and signature of sealed decisions zeroed", `update events set payload = convert_to(regexp_replace(convert_from(payload, 'UTF8'), '"recordHash":"[0-9a-f]{64}"', '"recordHash":"' || repeat('0', 64) || '"'), 'UTF8') where type = 'decision.recorded'`, true, false},
		{"a decision without its signature", `update events set key_id = '', payload = convert_to(regexp_replace(convert_from(payload, 'UTF8'), '"integrity":\{[^}]*\},', ''), 'UTF8') where stream = 'decision/org_a_1'`, true, false},
		{"all times an hour earlier", `update events set occurred_us = occurred_us - 3600000000`, true, false},
		{"all times an hour later", `update events set occurred_us = occurred_us + 3600000000; update subject_keys set destroyed_us = destroyed_us + 3600000000 where destroyed_us is not null`, true, true},
	} {
		a.Restore()
		a.Exec(attack.statement)
		if attack.rehash {
			rehash(a, true)
			a.Exec(fixHead + forgetTree)
		}
		without := a.Audit
		without.Pins = nil
		if report := a.Run(without); (len(report.Faults) == 0) != attack.pin {
			t.Errorf("%s, without a pin: %v", attack.name, report.Faults)
		}
		report := a.Run(a.Audit)
		if len(report.Faults) == 0 {
			t.Errorf("%s: not found", attack.name)
		}
		if attack.pin && !strings.Contains(fmt.Sprint(report.Faults), "ROLLBACK") && !strings.Contains(fmt.Sprint(report.Faults), "FORK") {
			t.Errorf("%s: the pin says %v", attack.name, report.Faults)
		}
		// An auditor who has only the folder of checkpoints finds the attack too.
		if report := a.Run(audit.Options{Outside: []checkpoint.Store{a.Folder}}); attack.pin && len(report.Faults) == 0 {
			t.Errorf("%s: not found with the folder of checkpoints alone", attack.name)
		}
	}
	a.Restore()
	if report := a.Run(audit.Options{Outside: []checkpoint.Store{a.Folder}}); len(report.Faults) > 0 || strings.Contains(fmt.Sprint(report.Gaps), "--pin") {
		t.Errorf("untouched, with the folder of checkpoints alone: %v, %v", report.Faults, report.Gaps)
	}
	a.Exec(`update ledger_head set origin = 'ledger.example.com/another/0'`)
	a.Audit.Origin = "ledger.example.com/another"
	rehash(a, true)
	a.Exec(fixHead + forgetTree)
	if report := a.Run(audit.Options{Outside: []checkpoint.Store{a.Folder}}); !strings.Contains(fmt.Sprint(report.Gaps), "has no checkpoint of it, but has checkpoints of ") {
		t.Errorf("all of it rewritten under another origin: %v, %v", report.Faults, report.Gaps)
	}
}

// A pin names the last event seen of each tenant. The audit finds such events that are missing or
// were replaced.
func TestAnAuditHoldsTheEventsThatAPinHasSeen(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	var last int64
	var hash []byte
	if err := a.Super.QueryRow(t.Context(), `select tseq, hash from events where tenant = 'org_a' order by tseq desc limit 1`).Scan(&last, &hash); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		seen checkpoint.Seen
		want string
	}{
		{checkpoint.Seen{Sequence: last, Hash: hex.EncodeToString(hash)}, "[]"},
		{checkpoint.Seen{Sequence: last + 1, Hash: hex.EncodeToString(hash)}, "ROLLBACK: the event is missing"},
		{checkpoint.Seen{Sequence: last - 1, Hash: hex.EncodeToString(hash)}, "FORK: the pin a file contains another event"},
	} {
		pin := checkpoint.Pin{Note: a.Audit.Pins[0].Note, Tenants: map[string]checkpoint.Seen{"org_a": c.seen}}
		o := a.Audit
		o.Pins = []audit.Pin{{Name: "a file", Note: pin.Text()}}
		if got := fmt.Sprint(a.Run(o).Faults); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.seen, got)
		}
	}
}

// The attacker has every key: chain, hashes and signatures are right, and only the numbers in the
// series are false.
func TestAuditFindsFalseNumbers(t *testing.T) {
	t.Parallel()
	ledgertest.Plain(t)
	a := fixture.NewAudited(t)
	a.Unpack()
	const forgetTree = `delete from tiles; delete from checkpoints; update tree_head set size = 0, root = sha256(''), edge = '';
		update ledger_head set (pos, last_hash) = (select pos, hash from events order by pos desc limit 1)`
	numbers := `series = null, series_n = null, series_prev = null, agent = null, agent_n = null, agent_prev = null`
	for _, lie := range []struct {
		name, statement string
		renumber        bool
		column, want    string
	}{
		{"untouched", `select`, true, "", ""},
		{"in another series", `update events set series = 'decision/allow' where stream = 'decision/org_a_1' and type = 'decision.recorded'`, true, "series", `must be "decision/deny", according to its payload`},
		{"in no series", `update events set ` + numbers + ` where stream = 'decision/org_a_1' and type = 'decision.recorded'`, true, "series", `must be "decision/deny", according to its payload`},
		{"for another agent", `update events set agent = 'sub_org_a_0' where stream = 'decision/org_a_1'`, true, "agent", `must be "sub_org_a_1", according to its payload`},
		{"for no agent", `update events set agent = null, agent_n = null, agent_prev = null where stream = 'decision/org_a_1' and type = 'decision.recorded'`, true, "agent", `must be "sub_org_a_1", according to its payload`},
		{"for an agent without a data key", `update events set agent = null, agent_n = null, agent_prev = null, payload = convert_to(replace(convert_from(payload, 'UTF8'), '"keyId":"sub_org_a_1"', '"keyId":""'), 'UTF8')
			where stream = 'decision/org_a_1' and type = 'decision.recorded'`, true, "agent", "must be the data key of record.subject.agentId"},
		{"a receipt for another agent", `update events set agent = 'sub_org_a_1' where type = 'receipt.recorded' and tenant = 'org_a'`, true, "agent", "must be the agent of the decision in its stream"},
		{"a receipt for no agent", `update events set agent = null, agent_n = null, agent_prev = null where type = 'receipt.recorded' and tenant = 'org_a'`, true, "agent", "must be the agent of the decision in its stream"},
		{"an event of a kind that has none", `update events set series = 'decision/deny', series_n = 3 where type = 'organization_token.issued' and tenant = 'org_a'`, true, "series", `must be "", according to its payload`},
		{"a gap", `update events set series_n = 3 where stream = 'decision/org_a_1'`, false, "series_n", "the previous number is missing"},
		{"a number twice", `update events set series_n = 1 where stream = 'decision/org_a_1'`, false, "series_n", "has the same number"},
		{"a link to another event", `update events set series_prev = sha256('x') where stream = 'decision/org_a_1'`, false, "series_prev", "must be the hash of the event with the previous number"},
		{"a gap of the agent", `update events set agent_n = 2, agent_prev = sha256('x') where stream = 'decision/org_a_1'`, false, "agent_n", "the previous number is missing"},
		{"half a number", `update events set series = null where stream = 'decision/org_a_1'`, false, "series_n", "a number must have all its columns or none"},
	} {
		a.Restore()
		dropNumberRules(a)
		a.Exec(lie.statement)
		rehash(a, lie.renumber)
		a.Exec(forgetTree)
		o := a.Audit
		o.Pins = nil
		faults := a.Run(o).Faults
		if found := slices.ContainsFunc(faults, func(f audit.Fault) bool { return f.Column == lie.column && strings.Contains(f.Detail, lie.want) }); found != (lie.want != "") || !found && len(faults) > 0 {
			t.Errorf("%s: %v, want %s: %s", lie.name, faults, lie.column, lie.want)
		}
	}
}

// Each agent has one data key. An auditor with the key-encryption key finds an agent with two
// keys, and a key of two agents.
func TestAuditFindsASecondDataKeyOfAnAgent(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	l := fixture.Open(t, a.DB)
	v := fixture.Must(vault.Open(t.Context(), l, a.Audit.KEK))
	record := fixture.Must(seal.NewSigner(make([]byte, 32)))
	decide := func(id, key string) {
		history := fixture.Must(l.Read(t.Context(), "org_a", "policy"))
		var active struct{ PolicyHash string }
		if err := json.Unmarshal(history.Events[0].Payload, &active, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		envelope := fixture.Must(record.Sign("application/vnd.svc.decision.v1+json", map[string]any{"decision": "deny", "decisionId": id, "orgId": "org_a",
			"policy": map[string]any{"policyHash": active.PolicyHash}, "subject": map[string]any{"agentId": "org_a_0"}}))
		payload := fixture.Must(v.SealRecord(t.Context(), "org_a", "evt_"+id, key, record, map[string]jsontext.Value{
			"record": envelope.Record, "integrity": fixture.Must(canon.Marshal(envelope.Integrity))}, "/record/subject/agentId"))
		fixture.Must(l.Append(t.Context(), ledger.Append{Tenant: "org_a", Events: []ledger.Pending{{Stream: "decision/" + id, Expect: ledger.New(), ID: "evt_" + id,
			Type: "decision.recorded", SchemaVersion: 1, Actor: "cus_1", KeyID: record.KeyID(), Payload: payload, Agent: key}}}))
	}
	decide("again", "sub_org_a_0")
	if faults := a.Run(a.Audit).Faults; len(faults) > 0 {
		t.Fatal(faults)
	}
	decide("split", fixture.Must(v.Subject(t.Context(), "org_a", "agent:org_a_0 by another name", "sub_second")))
	if faults := a.Run(a.Audit).Faults; len(faults) != 1 || faults[0].Column != "agent" || !strings.Contains(faults[0].Detail, "the same agent has another data key") {
		t.Errorf("one agent under two keys: %v", faults)
	}
	decide("shared", "sub_org_a_1")
	if faults := a.Run(a.Audit).Faults; !strings.Contains(fmt.Sprint(faults), "the data key belongs to another agent") {
		t.Errorf("one key of two agents: %v", faults)
	}
	without := a.Audit
	without.KEK = nil
	if report := a.Run(without); len(report.Faults) > 0 || !strings.Contains(fmt.Sprint(report.Gaps), "DATA_KEK is not given") {
		t.Errorf("without DATA_KEK: %+v", report)
	}
}

// dropNumberRules drops the indexes and constraints that would refuse false numbers.
func dropNumberRules(a *fixture.Audited) {
	a.T.Helper()
	a.Exec(`drop index if exists events_series_key, events_agent_key`)
}

// rehash recomputes sequences, hashes and links, as an attacker would. If renumber is set, it also
// recomputes the numbers in each series; otherwise it keeps those in the rows.
func rehash(a *fixture.Audited, renumber bool) {
	a.T.Helper()
	dropNumberRules(a)
	rows := fixture.Must(a.Super.Query(context.Background(), `select pos, tenant, stream, version, event_id, type, schema_version, more, occurred_us, actor, key_id,
		coalesce(idem_key, ''), coalesce(content_hash, ''), payload, coalesce(series, ''), coalesce(series_n, 0), coalesce(series_prev, ''),
		coalesce(agent, ''), coalesce(agent_n, 0), coalesce(agent_prev, '') from events order by pos`))
	type row struct {
		Pos                    int64
		Tenant, Stream         string
		Version                int64
		ID, Type               string
		Schema                 int32
		More                   int16
		Occurred               int64
		Actor, KeyID           string
		Idem, Content, Payload []byte
		Series                 string
		SeriesN                int64
		SeriesPrev             []byte
		Agent                  string
		AgentN                 int64
		AgentPrev              []byte
	}
	events := fixture.Must(pgx.CollectRows(rows, pgx.RowToStructByPos[row]))
	type head struct {
		seq  int64
		hash [32]byte
	}
	heads := map[string]head{}
	places := map[string]head{}
	number := func(name string, n *int64, prev *[]byte) {
		h, known := places[name]
		if renumber {
			if *n, *prev = h.seq+1, nil; known {
				*prev = h.hash[:]
			}
		}
	}
	S := func(b []byte, x string) []byte { return append(binary.BigEndian.AppendUint32(b, uint32(len(x))), x...) }
	U := func(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }
	batch := &pgx.Batch{}
	for _, e := range events {
		h, ok := heads[e.Tenant]
		if !ok {
			h.hash = ledger.Genesis(a.Audit.Origin+"/0", e.Tenant)
		}
		prev := h.hash
		h.seq++
		payloadHash := sha256.Sum256(e.Payload)
		b := S([]byte("svc-ledger-event-v1\x00"), string(prev[:]))
		b = U(S(U(S(b, e.Tenant), h.seq), e.Stream), e.Version)
		b = U(U(S(S(b, e.ID), e.Type), int64(e.Schema)), int64(e.More))
		b = S(S(U(b, e.Occurred), e.Actor), e.KeyID)
		b = S(S(S(b, string(e.Idem)), string(e.Content)), string(payloadHash[:]))
		ofKind, ofAgent := e.Tenant+"\x00"+e.Series, e.Tenant+"\x00"+e.Series+"\x00"+e.Agent
		if e.Series != "" {
			number(ofKind, &e.SeriesN, &e.SeriesPrev)
		}
		if e.Agent != "" {
			number(ofAgent, &e.AgentN, &e.AgentPrev)
		}
		if e.Series != "" || e.SeriesN > 0 {
			b = S(U(S(b, e.Series), e.SeriesN), string(e.SeriesPrev))
		}
		if e.Agent != "" {
			b = S(U(S(b, e.Agent), e.AgentN), string(e.AgentPrev))
		}
		h.hash = sha256.Sum256(b)
		heads[e.Tenant] = h
		places[ofKind], places[ofAgent] = head{e.SeriesN, h.hash}, head{e.AgentN, h.hash}
		batch.Queue(`update events set tseq = $2, payload_hash = $3, prev = $4, hash = $5, series_n = nullif($6::bigint, 0), series_prev = nullif($7::bytea, ''),
			agent_n = nullif($8::bigint, 0), agent_prev = nullif($9::bytea, '') where pos = $1`,
			e.Pos, h.seq+1_000_000, payloadHash[:], prev[:], h.hash[:], e.SeriesN, append([]byte{}, e.SeriesPrev...), e.AgentN, append([]byte{}, e.AgentPrev...))
	}
	batch.Queue(`update events set tseq = tseq - 1000000`)
	if err := a.Super.SendBatch(context.Background(), batch).Close(); err != nil {
		a.T.Fatal(err)
	}
}

// The faults do not depend on the length of ranges, the number of workers, or the use of temporary
// files.
func TestAuditInRangesIsTheSame(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	a.Unpack()
	for name, statement := range map[string]string{
		"untouched": `select`, "a link": `update events set prev = sha256('x') where pos = 7`, "a version": `update events set version = 9 where pos = 6`,
		"a policy": `update events set payload = decode(replace(encode(payload, 'escape'), '"version":1', '"version":2'), 'escape') where pos = 4`,
	} {
		a.Restore()
		a.Exec(statement)
		want := a.Run(a.Audit)
		for _, span := range []int64{1, 2, 5} {
			ranged := a.Audit.InRanges(span, 70)
			ranged.Workers = 3
			got := a.Run(ranged)
			if fmt.Sprint(placesOf(got)) != fmt.Sprint(placesOf(want)) || got.Events != want.Events {
				t.Errorf("%s in ranges of %d:\n%v\nwant\n%v", name, span, got.Faults, want.Faults)
			}
		}
	}
}

func placesOf(r audit.Report) []string {
	places := map[string]bool{}
	for _, f := range r.Faults {
		places[f.Table+" "+f.Row+" "+f.Column] = true
	}
	return slices.Sorted(maps.Keys(places))
}

// A subject that is erased during an audit is not a fault.
func TestAnErasureDuringAnAuditIsNoFault(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	l := fixture.Open(t, a.DB)
	v := fixture.Must(vault.Open(t.Context(), l, a.Audit.KEK))
	during, erased := a.Audit, false
	during.Progress = func(int64, int64) {
		if !erased {
			erased = true
			fixture.Erase(t, v, "org_a", "sub_org_a_1")
		}
	}
	if report := a.Run(during); len(report.Faults) > 0 || !erased {
		t.Errorf("%t, %+v", erased, report.Faults)
	}
	a.Exec(`update subject_keys set destroyed_us = destroyed_us + 1 where key_id = 'sub_org_a_1'`)
	if report := a.Run(a.Audit); len(report.Faults) != 1 || report.Faults[0].Column != "destroyed_us" {
		t.Errorf("another time: %+v", report.Faults)
	}
}

// growing is a tracer that makes the tree grow after each statement that has read from the tree.
type growing struct {
	grow  func()
	times int
}

// TraceQueryStart keeps the statement for TraceQueryEnd.
func (g *growing) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, g, data.SQL)
}

// TraceQueryEnd makes the tree grow.
func (g *growing) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if statement, _ := ctx.Value(g).(string); strings.Contains(statement, "tree_head") || strings.Contains(statement, "tiles") {
		g.times++
		g.grow()
	}
}

// A tree that grows by more than a tile during an audit is not a fault, whichever statement of the
// audit it follows.
func TestATreeThatGrowsDuringAnAuditIsNoFault(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	l := fixture.Open(t, a.DB)
	fixture.Keep(t, l, t.TempDir())
	home, round := l.Home("org_a"), 0
	grows := &growing{}
	grows.grow = func() {
		var last ledger.Result
		for i := range 5 {
			var pending []ledger.Pending
			for j := range ledger.MaxEvents {
				id := fmt.Sprint("grown", round, "_", i, "_", j)
				pending = append(pending, fixture.Pending(id, ledger.New(), id))
			}
			last = fixture.Must(l.Append(context.Background(), ledger.Append{Tenant: "org_a", Events: pending}))
		}
		round++
		keeper.Covered(context.Background(), home, last.Events[0].Position)
	}
	cfg := fixture.Must(pgxpool.ParseConfig(a.DB.SuperURL))
	cfg.ConnConfig.Tracer = grows
	pool := fixture.Must(pgxpool.NewWithConfig(t.Context(), cfg))
	defer pool.Close()
	report, err := audit.On(t.Context(), pool, a.Audit)
	if err != nil || len(report.Faults) > 0 || grows.times == 0 {
		t.Errorf("grown %d times: %+v, %v", grows.times, report.Faults, err)
	}
}

// The right to select is enough to verify. The audit writes nothing, and the report lists what it
// has taken from the database without proof.
func TestAuditNeedsOnlyToSelect(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	role := strings.ReplaceAll(strings.ToLower(t.Name()), "/", "_")
	a.Exec(`drop role if exists ` + role)
	a.Exec(`create role ` + role + ` login; grant usage on schema public to ` + role + `; grant select on ` + strings.Join(fixture.AuditedTables, ", ") + ` to ` + role)
	t.Cleanup(func() { a.Exec(`drop owned by ` + role + `; drop role ` + role) })
	a.Exec(`set role ` + role)
	a.Exec(`reset role`)
	url := strings.Replace(a.DB.URL, "countersign_app", role, 1)
	report, err := audit.Database(t.Context(), url, a.Audit)
	if err != nil || len(report.Faults) > 0 || len(report.Trusted) > 0 || report.Events != a.Events {
		t.Errorf("%+v, %v", report, err)
	}
	report, err = audit.Database(t.Context(), url, audit.Options{})
	if err != nil || len(report.Trusted) != 2 || len(report.Gaps) < 2 {
		t.Errorf("%+v, %v", report, err)
	}
	stranger := a.Audit
	stranger.Origin = "other.example.com"
	if report, err := audit.Database(t.Context(), url, stranger); err != nil || len(report.Faults) == 0 {
		t.Errorf("another origin: %+v, %v", report, err)
	}
	stranger = a.Audit
	stranger.Keys = map[string]ed25519.PublicKey{}
	if report, err := audit.Database(t.Context(), url, stranger); err != nil || len(report.Faults) == 0 {
		t.Errorf("other keys: %+v, %v", report, err)
	}
}
