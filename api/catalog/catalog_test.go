package catalog_test

import (
	"archive/zip"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/catalog"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

func defaults(t *testing.T) []store.Product {
	t.Helper()
	list, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// unpack returns the files in a product's archive, by name.
func unpack(t *testing.T, slug string) map[string][]byte {
	t.Helper()
	list := defaults(t)
	i := slices.IndexFunc(list, func(p store.Product) bool { return p.Slug == slug })
	if i < 0 {
		t.Fatalf("no product %s", slug)
	}
	archive, err := zip.NewReader(bytes.NewReader(list[i].Content), int64(len(list[i].Content)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range archive.File {
		if got := f.Modified.UTC().Format(time.DateOnly); got != "1980-01-01" {
			t.Errorf("%s is of %s", f.Name, got)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[strings.TrimPrefix(f.Name, slug+"/")], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestTheBuiltInCatalogue(t *testing.T) {
	list := defaults(t)
	kinds, plans := map[string]int{}, map[string]int{}
	for _, p := range list {
		kinds[p.Kind]++
		plans[p.Plan]++
		if p.Kind == store.OneTime && (len(p.Content) < 1000 || !strings.HasSuffix(p.FileName, ".zip") || len(p.FileHash()) != 64) {
			t.Errorf("%s has %d octets in %q", p.Slug, len(p.Content), p.FileName)
		}
	}
	if kinds[store.OneTime] < 2 || plans[organizations.PlanTeam] != 1 || plans[organizations.PlanBusiness] != 1 {
		t.Errorf("kinds %v, plans %v", kinds, plans)
	}
	i := slices.IndexFunc(list, func(p store.Product) bool { return p.Slug == "monthly-pass" })
	if i < 0 || list[i].PriceCents != 2900 || list[i].CreditCents != 3500 {
		t.Error("the monthly pass is $29 for $35 of credit")
	}
}

func TestAnArchiveHasTheSameOctetsEveryTime(t *testing.T) {
	first, second := defaults(t), defaults(t)
	for i := range first {
		if !bytes.Equal(first[i].Content, second[i].Content) {
			t.Errorf("%s differs", first[i].Slug)
		}
	}
}

// TestThePolicyStarterPackHolds checks that every policy of the starter pack is accepted
// unchanged, and that each example intent gets the decision that the pack promises.
func TestThePolicyStarterPackHolds(t *testing.T) {
	files := unpack(t, "policy-starter-pack")
	drafts := map[string]assurance.Draft{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".json") || name == "intents.json" {
			continue
		}
		draft, err := assurance.Lint(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Contains(files["README.md"], []byte("`"+name+"`")) {
			t.Errorf("README.md does not name %s", name)
		}
		drafts[name] = draft
	}
	var intents []struct {
		Policy, Protocol, Decision, Why string
		Intent                          jsontext.Value
	}
	if err := json.Unmarshal(files["intents.json"], &intents, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if len(drafts) != 6 || len(intents) < len(drafts) {
		t.Fatalf("%d policies, %d intents", len(drafts), len(intents))
	}
	for _, i := range intents {
		body, err := canon.Marshal(map[string]any{"protocol": i.Protocol, "idempotencyKey": "k", "subject": map[string]any{"runId": "r"}, "intent": i.Intent})
		if err != nil {
			t.Fatal(err)
		}
		request, err := assurance.ParseDecision(body)
		if err != nil {
			t.Errorf("%s: %v", i.Why, err)
			continue
		}
		text, _, err := assurance.WithVersion(drafts[i.Policy].Canonical, 1)
		if err != nil {
			t.Fatalf("%s: %v", i.Policy, err)
		}
		stored, err := assurance.ReadPolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := assurance.Evaluate(assurance.EngineVersion, i.Protocol, stored.Rules, nil, request.Normalized)
		if !ok || got.Decision != i.Decision {
			t.Errorf("%s (%s): %s, want %s: %+v", i.Policy, i.Why, got.Decision, i.Decision, got.Findings)
		}
	}
}

// TestTheVerificationKitChecksRecords checks that the kit's verify.mjs, which shares no code with
// this program, accepts the records that this program signed and refuses changed ones.
func TestTheVerificationKitChecksRecords(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed here; the script is what it checks")
	}
	dir := t.TempDir()
	write := func(name string, value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := filepath.Join(dir, "verify.mjs")
	if err := os.WriteFile(script, unpack(t, "verification-kit")["verify.mjs"], 0o600); err != nil {
		t.Fatal(err)
	}
	seed := bytes.Repeat([]byte{7}, 32)
	signer, err := seal.NewSigner(seed)
	if err != nil {
		t.Fatal(err)
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	key := func(members map[string]any) map[string]any {
		maps.Copy(members, map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(public), "kid": signer.KeyID(), "svc_purpose": "record"})
		return members
	}
	keys := write("jwks.json", map[string]any{"keys": []any{key(map[string]any{"svc_from_position": 3, "svc_to_position": nil}),
		key(map[string]any{"svc_partition": 1, "svc_from_position": 30, "svc_to_position": 50})}})
	envelope, err := signer.Sign(seal.TypeReceipt, map[string]any{"b": 0.000001, "a": "€ \u2028 \U0001F600", "z": []any{1e21, -0.5, 100.0, nil, true}, "\U0001F600": 1, "\ufb33": 2})
	if err != nil {
		t.Fatal(err)
	}
	envelope.Ledger = &seal.LedgerPosition{Position: 4}
	check := func(want int, name string, value any) {
		t.Helper()
		out, _ := exec.Command(node, script, "--keys", keys, write(name, value)).CombinedOutput()
		if lines := strings.Count(string(out), "VALID  ") - strings.Count(string(out), "INVALID"); lines != want {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	check(1, "good.json", envelope)
	check(2, "nested.json", map[string]any{"items": []any{envelope, map[string]any{"receipt": envelope}}})
	changed := envelope
	changed.Record = jsontext.Value(strings.Replace(string(envelope.Record), "100", "101", 1))
	check(0, "changed.json", changed)
	early := envelope
	early.Ledger = &seal.LedgerPosition{Position: 2}
	check(0, "early.json", early)
	elsewhere := envelope
	elsewhere.Ledger = &seal.LedgerPosition{Partition: 1, Position: 31}
	check(1, "elsewhere.json", elsewhere)
	elsewhere.Ledger = &seal.LedgerPosition{Partition: 1, Position: 50}
	check(0, "retired.json", elsewhere)
	placeless := envelope
	placeless.Ledger = nil
	check(1, "placeless.json", placeless)
	retyped := envelope
	retyped.Integrity.PayloadType = seal.TypeSigningKey
	check(0, "retyped.json", retyped)
	check(0, "none.json", map[string]any{"record": "no"})
	// The key is compromised from a position on. Records that it signed before that position
	// remain valid.
	keys = write("jwks.json", map[string]any{"keys": []any{key(map[string]any{"svc_from_position": 3, "svc_to_position": 9, "svc_void_from_position": 5})}})
	check(1, "good.json", envelope)
	check(0, "placeless.json", placeless)
	late := envelope
	late.Ledger = &seal.LedgerPosition{Position: 5}
	check(0, "late.json", late)
}

func TestACatalogueFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"kit.txt": "hello", "folder/a.txt": "a", "folder/b/c.txt": "c", "empty.txt": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(text string) ([]store.Product, error) {
		path := filepath.Join(dir, "own.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return catalog.Load(path)
	}
	const good = `{"slug":"kit","name":"Kit","description":"d","kind":"one_time","priceCents":50,"deliverable":"x","file":"kit.txt"}`
	list, err := load(`{"products":[` + good + `,` + strings.NewReplacer(`"kit"`, `"dir"`, "kit.txt", "folder").Replace(good) + `]}`)
	if err != nil || len(list) != 2 || string(list[0].Content) != "hello" || list[0].FileName != "kit.txt" || list[1].FileName != "folder.zip" {
		t.Fatalf("%+v, %v", list, err)
	}
	subscription := strings.NewReplacer("one_time", "subscription", `,"file":"kit.txt"`, `,"plan":"team","creditCents":10`).Replace(good)
	if list, err := load(`{"products":[` + subscription + `]}`); err != nil || list[0].Plan != "team" || list[0].CreditCents != 10 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, c := range []struct{ old, now, says string }{
		{`"priceCents":50`, `"priceCents":49`, "priceCents"},
		{`"priceCents":50`, `"priceCents":50.5`, "priceCents"},
		{`"priceCents":50`, `"pricecents":50`, "unknown"},
		{`"slug":"kit"`, `"slug":"Kit"`, "slug"},
		{`"slug":"kit"`, `"slug":"-kit"`, "slug"},
		{`"name":"Kit"`, `"name":""`, "name"},
		{`"description":"d"`, `"description":""`, "description"},
		{`"deliverable":"x"`, `"deliverable":""`, "deliverable"},
		{`one_time`, `rental`, "kind"},
		{`one_time`, `subscription`, "file"},
		{`,"file":"kit.txt"`, ``, "file"},
		{`kit.txt`, `../kit.txt`, "file"},
		{`kit.txt`, `/etc/passwd`, "file"},
		{`kit.txt`, `missing.txt`, "file"},
		{`kit.txt`, `empty.txt`, "file"},
		{`"file"`, `"plan":"team","file"`, "plan"},
		{`"file"`, `"creditCents":5,"file"`, "creditCents"},
		{`"kit","name"`, `"kit","slug":"kit","name"`, "duplicate"},
		{`}`, `},` + good, "slug"},
		{`}`, `}]} {`, "JSON"},
	} {
		_, err := load(`{"products":[` + strings.Replace(good, c.old, c.now, 1) + `]}`)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s -> %s: %v, want something about %s", c.old, c.now, err, c.says)
		}
	}
	if _, err := catalog.Load(filepath.Join(dir, "nowhere", "own.json")); err == nil {
		t.Error("a catalogue that is not there was read")
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := load(`{"products":[` + strings.Replace(good, "kit.txt", "link.txt", 1) + `]}`); err == nil {
		t.Error("a link out of the catalogue's folder was followed")
	}
}
