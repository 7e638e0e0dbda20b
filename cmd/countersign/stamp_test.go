package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/timestamp/timestamptest"
)

// An export has the newest note that a time-stamp authority has signed. verify says that the events
// existed before, checks the certificate if the root is given, and does not refuse an export whose
// stamp shows nothing.
func TestAnExportWithATimeStamp(t *testing.T) {
	t.Parallel()
	authority, dir, files := timestamptest.Start(t), dataDir(t), t.TempDir()
	s := serveIn(t, dir, "TIMESTAMP_URL="+authority.URL)
	in := func(name string) string { return filepath.Join(files, name) }
	a, bare := &auditor{t, []string{"--data", dir}}, &auditor{t, nil}
	if status, answer, err := post(s.base+decisionsPath, organizationToken(t, dir), purchase("k1")); err != nil || status != 201 {
		t.Fatal(status, answer, err)
	}
	set, err := fetched(s.base + "/.well-known/jwks.json")
	if err := errors.Join(err, os.WriteFile(in("jwks.json"), set, 0o600)); err != nil {
		t.Fatal(err)
	}
	<-authority.Asked
	for err := fs.ErrNotExist; errors.Is(err, fs.ErrNotExist); { // the answer may not be stored yet
		a.run(0, "check it", "export", "--out", in("e.tar.gz"))
		untar(t, in("e.tar.gz"), files)
		_, err = os.Stat(in("export/timestamp/answer.tsr"))
	}
	for _, c := range [][]string{
		{"according to the time-stamp authority CN=Test authority (its certificate is not checked"},
		{"(a root certificate of --tsa-ca has issued its certificate)", "--tsa-ca", authority.CA},
		{"NOT PROVEN  anything by the time stamp: its certificate", "--tsa-ca", timestamptest.Start(t).CA},
	} {
		text := bare.run(0, c[0], append([]string{"verify", in("e.tar.gz"), "--keys", in("jwks.json")}, c[1:]...)...)
		if !strings.HasPrefix(text, "VALID\n") {
			t.Error(text)
		}
	}
	bare.run(2, "must be a file with certificates", "verify", in("e.tar.gz"), "--keys", in("jwks.json"), "--tsa-ca", in("jwks.json"))
}
