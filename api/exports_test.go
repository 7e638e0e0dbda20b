package api

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger/bundle"
)

// An export over HTTP is an event, verifies with keys alone, is the same octets each
// time, and is refused once somebody in it was erased.
func TestExportOverHTTP(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	o, err := n.app.CreateOrganization(t.Context(), "operator", "Acme", "team", "owner@export.example.com")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := n.app.Operator(t.Context(), o.OrgID)
	if err != nil {
		t.Fatal(err)
	}
	token := func(scopes ...string) []string {
		issued, err := n.app.IssueToken(t.Context(), operator, commands.TokenOrder{Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return []string{"Content-Type", "application/json", "Authorization", "Bearer " + issued.Token}
	}
	exporter := token("export:read")
	created := n.send(http.MethodPost, exportsPath, `{}`, exporter...)
	var manifest createdExport
	if err := json.Unmarshal(created.body, &manifest); created.status != http.StatusCreated || err != nil || manifest.CheckpointSize == 0 || !strings.HasSuffix(manifest.URL, manifest.ExportID) {
		t.Fatalf("%v %v", created, err)
	}
	path := strings.TrimPrefix(manifest.URL, n.app.BaseURL)
	first, again := n.send(http.MethodGet, path, "", exporter...), n.send(http.MethodGet, path, "", exporter...)
	if first.status != http.StatusOK || !bytes.Equal(first.body, again.body) {
		t.Fatalf("%d, %d", first.status, again.status)
	}
	file := filepath.Join(t.TempDir(), "export.tar.gz")
	if err := os.WriteFile(file, first.body, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := bundle.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys []bundle.Key
	for purpose, public := range map[string]ed25519.PublicKey{"record": n.app.Signer.Public(),
		"checkpoint": ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0xc4}, 32)).Public().(ed25519.PublicKey)} {
		keys = append(keys, bundle.Key{Purpose: purpose, Public: public, Partition: bundle.AnyPartition})
	}
	defer files.Close()
	note, err := files.Text("checkpoint.txt")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := bundle.Verify(t.Context(), files, bundle.Trust{Keys: keys, Pin: note}, nil); err != nil || !r.Valid || r.Tenant != o.OrgID {
		t.Errorf("%+v, %v", r, err)
	}
	if second := n.send(http.MethodPost, exportsPath, `{}`, exporter...); second.status != http.StatusCreated {
		t.Error(second)
	} else if err := json.Unmarshal(second.body, &manifest); err != nil || manifest.Count < 2 {
		t.Errorf("the first export is an event: %+v, %v", manifest, err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, exportsPath, `{"from":"yesterday"}`, 400},
		{http.MethodPost, exportsPath, `{"from":"2090-01-01T00:00:00Z"}`, 404},
		{http.MethodPost, exportsPath, `{"secret":1}`, 400},
		{http.MethodGet, exportsPath + "/exp_unknown", "", 404},
	} {
		if a := n.send(c.method, c.path, c.body, exporter...); a.status != c.status {
			t.Errorf("%s %s: %v", c.path, c.body, a)
		}
	}
	if a := n.send(http.MethodPost, exportsPath, `{}`, token("assurance:read")...); a.status != http.StatusForbidden {
		t.Errorf("without the scope: %v", a)
	}
	held, err := n.app.Vault.Find(t.Context(), o.OrgID, "email:owner@export.example.com")
	if err != nil || held == "" {
		t.Fatal(held, err)
	}
	if _, err := n.app.EraseSubject(t.Context(), commands.Erasure{Tenant: o.OrgID, KeyID: held, Reason: "asked for", RequestedBy: "a", ApprovedBy: "b"}); err != nil {
		t.Fatal(err)
	}
	if a := n.send(http.MethodGet, path, "", exporter...); a.status != http.StatusConflict {
		t.Errorf("after an erasure: %v", a)
	}
}
