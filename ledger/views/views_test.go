package views_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/views"
	"github.com/countersign/countersign/policy/canon"
)

const origin = "ledger.example.com/countersign/0"

var signer = must(seal.NewSigner(bytes.Repeat([]byte{1}, 32)))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// draw writes a bundle with events of every numbered type and outcome, and one event of each other
// type. The first decision has an opening for its agent, the second one has none. The manifest is
// not signed.
func draw(t *testing.T) (folder string) {
	t.Helper()
	var lines []ledger.Line
	var openings []bundle.Opening
	add := func(kind, stream string, payload []byte) {
		n := int64(len(lines)) + 1
		e := ledger.Event{Position: n, Tenant: "org_1", Sequence: n, Stream: stream, Version: 1, ID: fmt.Sprintf("evt_%02d", n), Type: kind, SchemaVersion: 1,
			OccurredUS: 1_795_186_800_000_000 + n, Actor: "cus_1", Payload: payload}
		e.PayloadHash = sha256.Sum256(payload)
		e.Hash = e.Sum()
		lines = append(lines, ledger.NewLine(e))
	}
	record := func(kind, stream string, record map[string]any, agent string) {
		if agent == "" {
			signed := must(signer.Sign("application/vnd.svc.test.v1+json", record))
			add(kind, stream, must(canon.Marshal(map[string]any{"record": signed.Record, "integrity": signed.Integrity})))
			return
		}
		o := bundle.Opening{EventID: fmt.Sprintf("evt_%02d", len(lines)+1), Pointer: "/record/subject/agentId", Salt: strings.Repeat("05", 32), Value: string(must(canon.Marshal(agent)))}
		record["subject"] = map[string]any{"agentId": agent, "runId": "run-1"}
		signed := must(signer.Sign("application/vnd.svc.test.v1+json", record))
		record["subject"] = map[string]any{"agentId": jsontext.Value(must(o.Commitment())), "runId": "run-1"}
		stored := must(signer.Sign(seal.TypeCommitted, record))
		add(kind, stream, must(canon.Marshal(map[string]any{"record": stored.Record, "integrity": signed.Integrity, "sealed": map[string]any{"keyId": "sub_1", "signature": stored.Integrity.Signature}})))
		if agent != "agent-2" {
			openings = append(openings, o)
		}
	}
	for i, decision := range []string{"allow", "deny", "needs_review"} {
		stream := fmt.Sprintf("decision/asd_%d", i)
		record(events.TypeDecisionRecorded, stream, map[string]any{"decisionId": fmt.Sprintf("asd_%d", i), "decision": decision, "protocol": "x402",
			"policy": map[string]any{"policyId": "default", "version": 3, "policyHash": "h"}, "findings": []any{map[string]any{"ruleId": "x402.amount", "effect": "deny"}}}, fmt.Sprintf("agent-%d", i+1))
		record(events.TypeReceiptRecorded, stream, map[string]any{"decisionId": fmt.Sprintf("asd_%d", i), "receiptId": fmt.Sprintf("asr_%d", i), "decision": decision, "protocol": "=x402",
			"outcome": []string{"fulfilled", "failed", "rejected"}[i], "conformance": []string{"conforming", "violation", "inconclusive"}[i]}, "")
	}
	for _, verdict := range []string{"approved", "rejected"} {
		record(events.TypeApprovalRecorded, "decision/asd_2", map[string]any{"decisionId": "asd_2", "verdict": verdict}, "")
	}
	for _, kind := range events.Types {
		if !strings.HasSuffix(kind, ".recorded") {
			add(kind, "stream", []byte(`{}`))
		}
	}
	folder = t.TempDir()
	files := map[string][]byte{"events.jsonl": must(bundle.Lines(lines)), "openings.jsonl": must(bundle.Lines(openings))}
	m := bundle.Manifest{Schema: bundle.Schema, ExportID: "exp_1", Origin: origin, Tenant: "org_1", FirstSequence: 1, Count: int64(len(lines)), LastHash: lines[len(lines)-1].Hash, Files: map[string]string{}}
	write(t, folder, files, m)
	made := makeAll(t, folder, views.Exported(m))
	for name, text := range made {
		sum := sha256.Sum256(text)
		files["views/"+name], m.Files["views/"+name] = text, hex.EncodeToString(sum[:])
	}
	write(t, folder, files, m)
	return folder
}

func write(t *testing.T, folder string, files map[string][]byte, m bundle.Manifest) {
	t.Helper()
	files["manifest.json"] = must(canon.Marshal(map[string]any{"record": m}))
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

func makeAll(t *testing.T, folder string, names []string) map[string][]byte {
	t.Helper()
	b := must(bundle.Open(t.Context(), folder, nil))
	defer b.Close()
	made := map[string]*buffer{}
	if err := views.Make(t.Context(), b, nil, names, func(name string) (io.WriteCloser, error) {
		made[name] = &buffer{}
		return made[name], nil
	}); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for name, text := range made {
		files[name] = text.Bytes()
	}
	return files
}

func linesOf(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Every line is valid against the released schema of its class.
func TestEveryLineIsOCSF(t *testing.T) {
	file := must(os.Open(filepath.FromSlash("../forms/testdata/ocsf-" + forms.OCSFVersion + "-api_activity.json")))
	defer file.Close()
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("ocsf.json", must(jsonschema.UnmarshalJSON(file))); err != nil {
		t.Fatal(err)
	}
	schema := must(compiler.Compile("ocsf.json"))
	list := linesOf(makeAll(t, draw(t), []string{"ocsf"})["ocsf.jsonl"])
	for _, line := range list {
		if err := schema.Validate(must(jsonschema.UnmarshalJSON(strings.NewReader(line)))); err != nil {
			t.Errorf("%s\n%v", line, err)
		}
	}
	if len(list) != len(events.Types)+5 {
		t.Errorf("%d lines of %d types", len(list), len(events.Types))
	}
	var got []string
	for _, text := range list[:4] {
		var line struct {
			Activity    string         `json:"activity_name"`
			Severity    string         `json:"severity"`
			Disposition string         `json:"disposition"`
			Actor       map[string]any `json:"actor"`
			Policy      struct {
				UID string `json:"uid"`
			} `json:"policy"`
			Metadata struct {
				UID string `json:"uid"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		agent, _ := line.Actor["app_uid"].(string)
		got = append(got, strings.Join([]string{line.Metadata.UID, line.Activity, line.Severity, line.Disposition, line.Policy.UID, agent}, ","))
	}
	want := []string{"evt_01,Decide,Informational,Allowed,default,agent-1", "evt_02,Report,Informational,Logged,,", "evt_03,Decide,Low,Blocked,default,", "evt_04,Report,High,Detected,,"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// Every signed record of a bundle gives an envelope with a valid signature, even if a personal
// member is not shown.
func TestEveryRecordIsADSSEEnvelope(t *testing.T) {
	list := linesOf(makeAll(t, draw(t), []string{"dsse"})["dsse.jsonl"])
	committed := 0
	for _, line := range list {
		var e forms.DSSEEnvelope
		if err := json.Unmarshal([]byte(line), &e, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
		var payload []byte
		if err := json.Unmarshal([]byte(`"`+e.Payload+`"`), &payload); err != nil || len(e.Signatures) != 1 || e.Signatures[0].KeyID != signer.KeyID() {
			t.Fatalf("%s: %v", line, err)
		}
		if !seal.Signed(ed25519.PublicKey(signer.Public()), e.PayloadType, payload, e.Signatures[0].Sig) {
			t.Errorf("the signature is false: %s", payload)
		}
		if e.PayloadType == seal.TypeCommitted {
			committed++
		}
	}
	if len(list) != 8 || committed != 1 {
		t.Errorf("%d envelopes, %d with commitments", len(list), committed)
	}
}

// The tables contain the members that the bundle shows, and no cell is a formula.
func TestTables(t *testing.T) {
	made := makeAll(t, draw(t), []string{"csv", "report"})
	rows := must(csv.NewReader(bytes.NewReader(made["decisions.csv"])).ReadAll())
	if len(rows) != 4 || rows[1][8] != "agent-1" || rows[2][8] != "" || rows[2][4] != "deny" {
		t.Errorf("decisions: %v", rows)
	}
	rows = must(csv.NewReader(bytes.NewReader(made["receipts.csv"])).ReadAll())
	if len(rows) != 4 || rows[1][4] != "'=x402" {
		t.Errorf("receipts: %v", rows)
	}
	if rows = must(csv.NewReader(bytes.NewReader(made["population.csv"])).ReadAll()); len(rows) != 7 {
		t.Errorf("population: %v", rows)
	}
	if report := string(made["report.html"]); !strings.Contains(report, "<td>needs_review</td><td>1</td>") {
		t.Errorf("report: %s", report)
	}
}

// TestPrintOfAReport checks that the report has exact times with their zone, complete ids and
// hashes and the organization, and that it contains no link, control or script.
func TestPrintOfAReport(t *testing.T) {
	folder := draw(t)
	b := must(bundle.Open(t.Context(), folder, nil))
	defer b.Close()
	m := must(b.Manifest())
	made := makeAll(t, folder, []string{"report"})
	report := string(made["report.html"])
	for _, part := range []string{"<code>org_1</code>", "exp_1", origin, "evt_01", "2026-11-20T15:00:00.000001Z", "All times are UTC", m.LastHash} {
		if part == "" || !strings.Contains(report, part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
	if n := len(regexp.MustCompile(`<code>[0-9a-f]{64}</code>`).FindAllString(report, -1)); n != 3 {
		t.Errorf("the report has %d hashes, want those of the first, the last and the newest event", n)
	}
	for name, page := range made {
		if control := regexp.MustCompile(`<(a|button|input|select|textarea|details|nav|script)\b`).FindString(string(page)); control != "" {
			t.Errorf("%s has %s", name, control)
		}
	}
}

// The CloudEvent in an export is the same as the one that a sink publishes.
func TestCloudEventsAreThoseOfASink(t *testing.T) {
	folder := draw(t)
	list := linesOf(makeAll(t, folder, []string{"cloudevents"})["cloudevents.jsonl"])
	b := must(bundle.Open(t.Context(), folder, nil))
	defer b.Close()
	i := 0
	for e, err := range b.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if want := must(canon.Marshal(forms.NewCloudEvent(origin, e.Event, forms.DataOf(e.Event)))); list[i] != string(want) {
			t.Errorf("%s\nwant %s", list[i], want)
		}
		i++
	}
	if i != len(list) {
		t.Errorf("%d lines of %d events", len(list), i)
	}
}

// A view that was changed, removed or added is reported.
func TestAViewThatDiffersIsNamed(t *testing.T) {
	for _, c := range []struct {
		change func(m *bundle.Manifest)
		want   []string
	}{
		{func(*bundle.Manifest) {}, nil},
		{func(m *bundle.Manifest) { m.Files["views/receipts.csv"] = strings.Repeat("0", 64) }, []string{"views/receipts.csv"}},
		{func(m *bundle.Manifest) { delete(m.Files, "views/report.html") }, []string{"views/report.html"}},
		{func(m *bundle.Manifest) { m.Files["views/notes.txt"] = strings.Repeat("0", 64) }, []string{"views/notes.txt"}},
	} {
		folder := draw(t)
		b := must(bundle.Open(t.Context(), folder, nil))
		m := must(b.Manifest())
		c.change(&m)
		write(t, folder, map[string][]byte{}, m)
		got, err := views.Different(t.Context(), b)
		b.Close()
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v, %v, want %v", got, err, c.want)
		}
	}
}

// closing counts the files that are still open.
type closing struct {
	io.Writer
	open *int
}

func (c closing) Close() error { *c.open--; return nil }

// If New fails, for an unknown view or for proofs without keys, it leaves no file open.
func TestViewsThatCannotBeginCloseTheirFiles(t *testing.T) {
	for _, name := range []string{"unknown", "cose"} {
		open, made := 0, 0
		if _, err := views.New(views.Source{}, []string{"csv", name}, func(string) (io.WriteCloser, error) {
			open, made = open+1, made+1
			return closing{io.Discard, &open}, nil
		}); err == nil || made == 0 || open != 0 {
			t.Errorf("%s: %v; %d of %d files are open", name, err, open, made)
		}
	}
}
