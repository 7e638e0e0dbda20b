// Package timestamptest runs a time-stamp authority (RFC 3161) for tests, with OpenSSL.
package timestamptest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// Authority is a running authority.
type Authority struct {
	URL string
	CA  string // file with the root certificate

	Asked chan struct{} // receives a value for each request, up to 99
	Down  atomic.Bool   // if true, the authority answers 503
}

const config = `
[tsa]
serial = serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1, millisecs:500
ordering = yes
clock_precision_digits = 3
tsa_name = yes
ess_cert_id_chain = yes
[stamps]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
`

// Start starts an authority whose key has these options of "openssl genpkey". It skips the test if
// OpenSSL is not installed.
func Start(t *testing.T, key ...string) *Authority {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed; .ci/evidence/run needs it")
	}
	folder := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "openssl", args...)
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(key) == 0 {
		key = []string{"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"}
	}
	write("tsa.cnf", config)
	write("serial", "01\n")
	run(append([]string{"genpkey", "-out", "ca.key"}, key...)...)
	run(append([]string{"genpkey", "-out", "tsa.key"}, key...)...)
	run("req", "-x509", "-key", "ca.key", "-subj", "/CN=Test root", "-days", "30", "-out", "ca.pem")
	run("req", "-new", "-key", "tsa.key", "-subj", "/CN=Test authority", "-out", "tsa.csr")
	run("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", "tsa.cnf", "-extensions", "stamps", "-out", "tsa.pem")

	a := &Authority{CA: filepath.Join(folder, "ca.pem"), Asked: make(chan struct{}, 99)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Asked <- struct{}{}
		if a.Down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		answer, err := reply(r, folder)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/timestamp-reply")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

func reply(r *http.Request, folder string) ([]byte, error) {
	query, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	in, err := os.CreateTemp(folder, "query")
	if err == nil {
		_, err = in.Write(query)
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out := in.Name() + ".reply"
	command := exec.CommandContext(r.Context(), "openssl", "ts", "-reply", "-config", "tsa.cnf", "-section", "tsa", "-queryfile", in.Name(), "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", out)
	command.Dir = folder
	if _, err := command.Output(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}
