package timestamp_test

import (
	"bytes"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/ledger/timestamp/timestamptest"
)

func roots(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(file)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	return pool
}

// An answer is a time stamp of only this text, and OpenSSL finds it valid, too. A changed answer
// is refused.
func TestATimeStamp(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]string{"EC": nil, "RSA": {"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"}, "P-384": {"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, text := timestamptest.Start(t, key...), []byte("a note\n")
			before := time.Now().Add(-time.Second)
			answer, err := timestamp.Authority{URL: a.URL}.Ask(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			stamp, err := timestamp.Parse(answer, text)
			if err != nil || stamp.Authority != "CN=Test authority" || stamp.Time.Before(before) || stamp.Time.After(time.Now().Add(time.Minute)) {
				t.Fatalf("%+v, %v", stamp, err)
			}
			if err := stamp.Chain(roots(t, a.CA)); err != nil {
				t.Error(err)
			}
			if err := stamp.Chain(roots(t, timestamptest.Start(t).CA)); err == nil {
				t.Error("the root of another authority is taken")
			}
			if _, err := timestamp.Parse(answer, []byte("another note\n")); err == nil || !strings.Contains(err.Error(), "of another text") {
				t.Error(err)
			}
			// A change of any byte makes the answer invalid, except in parts that are not signed,
			// such as versions and the names of algorithms.
			accepted := 0
			for i := range answer {
				changed := bytes.Clone(answer)
				changed[i] ^= 1
				if other, err := timestamp.Parse(changed, text); err == nil {
					if accepted++; !other.Time.Equal(stamp.Time) {
						t.Errorf("byte %d of %d changes the time", i, len(answer))
					}
				}
			}
			if accepted > 100 {
				t.Errorf("%d of %d changed answers are taken", accepted, len(answer))
			}
			folder := t.TempDir()
			for file, content := range map[string][]byte{"text": text, "answer": answer} {
				if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), "openssl", "ts", "-verify", "-data", filepath.Join(folder, "text"), "-in", filepath.Join(folder, "answer"), "-CAfile", a.CA).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Verification: OK") {
				t.Errorf("%s %v", out, err)
			}
		})
	}
}

// An authority that is down, redirects or answers with something else gives an error.
func TestNoTimeStamp(t *testing.T) {
	t.Parallel()
	a := timestamptest.Start(t)
	a.Down.Store(true)
	if _, err := (timestamp.Authority{URL: a.URL}).Ask(t.Context(), []byte("a")); err == nil || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
	redirecting := httptest.NewServer(http.RedirectHandler(a.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	a.Down.Store(false)
	if _, err := (timestamp.Authority{URL: redirecting.URL}).Ask(t.Context(), []byte("a")); err == nil || len(a.Asked) != 1 {
		t.Errorf("a redirect was followed: %v", err)
	}
	if _, err := timestamp.Parse([]byte{0x30, 0x03, 0x02, 0x01, 0x02}, nil); err == nil {
		t.Error("a malformed answer is taken")
	}
}

// FuzzParse checks that no answer makes Parse panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x30, 0x05, 0x30, 0x03, 0x02, 0x01, 0x02})
	f.Fuzz(func(_ *testing.T, answer []byte) { _, _ = timestamp.Parse(answer, nil) })
}
