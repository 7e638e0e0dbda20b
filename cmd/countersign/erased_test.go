package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/localpg"
)

// erasedPerson has the values that the test sends about an agent and the person who uses it. No other
// data contains these values.
var erasedPerson = map[string]string{
	"agent": "agent-of-erasure-4711", "purpose": "books-for-the-lady-of-4712", "argument": "argument-of-4713",
	"e-mail": "lady4714@example.com", "command": "git-push-of-4715", "paid command": "git-push-of-4716",
}

// search looks for secrets in texts, and records the places in which it found them.
type search struct {
	secrets map[string][]byte
	found   map[string]map[string]bool // what was found, by place
	places  int
}

// in looks for the secrets in a text, and in its compressed parts.
func (s *search) in(place string, text []byte) {
	s.places++
	for what, secret := range s.secrets {
		if bytes.Contains(text, secret) {
			if s.found[place] == nil {
				s.found[place] = map[string]bool{}
			}
			s.found[place][what] = true
		}
	}
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return
	}
	if text, err = io.ReadAll(packed); err != nil {
		return
	}
	s.in(place, text)
	for archive := tar.NewReader(bytes.NewReader(text)); ; {
		if _, err := archive.Next(); err != nil {
			return
		}
		if file, err := io.ReadAll(archive); err == nil {
			s.in(place, file)
		}
	}
}

// files searches every file below a folder.
func (s *search) files(t *testing.T, folder, place string) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		s.in(place+filepath.ToSlash(name), text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// tables searches every row of every table, as text.
func (s *search) tables(t *testing.T, url string) {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	rows, err := owner.Query(t.Context(), `select format('%I.%I', schemaname, tablename) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		rows, err := owner.Query(t.Context(), `select t::text from `+name+` t`)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		text := []byte(strings.Join(lines, "\n"))
		s.in("table "+name, text)
		for _, secret := range s.secrets { // a bytea is shown in hex
			if bytes.Contains(text, []byte(hex.EncodeToString(secret))) {
				s.in("table "+name, secret)
			}
		}
	}
}

// After an erasure and a vacuum, the test searches tables, files of the database, write-ahead log,
// data folder, logs, exports, webhook messages, archive and read models. It finds only those data
// of the erased person that the documentation names.
func TestWhatIsLeftOfAnErasedPerson(t *testing.T) {
	t.Parallel()
	dir, files, store := dataDir(t), t.TempDir(), filepath.Join(reachable(t), "archive")
	var taken, refused atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/takes" {
			taken.Add(1)
			return
		}
		refused.Add(1)
		w.WriteHeader(http.StatusInternalServerError) // the message stays to be sent again
	}))
	defer receiver.Close()
	log, err := os.Create(filepath.Join(files, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	facilitator := x402test.NewFacilitator(t, x402test.NewChain(t, time.Now), time.Now)
	settings := []string{"X402_MODE=facilitator", "X402_FACILITATOR_URL=" + facilitator.URL, "X402_NETWORK=" + x402.DevNetwork, "X402_PAY_TO=" + x402.DevPayTo}
	cmd := program("serve", "--listen", "127.0.0.1:0", "--data", dir, "--webhook-networks", "127.0.0.0/8", "--archive-store", store)
	cmd.Env = append(cmd.Env, settings...)
	cmd.Stdout, cmd.Stderr = log, log
	base := startAndWait(t, cmd, log.Name())
	o := &operator{t, []string{"--data", dir}}
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	o.run(0, "policy", "activate", "--org", org, "--file", o.file(`{"policyId":"default","maxUsdPerTransaction":1,"allowedNetworks":["base"]}`), "--reason", "test")
	token := o.value("token", "org", "token", "issue", "--org", org)
	key := o.value("apiKey", "key", "issue", "--email", erasedPerson["e-mail"])
	if status, answer, err := post(base+runPath, key, `{"command":"`+erasedPerson["command"]+`"}`); err != nil || status != http.StatusOK {
		t.Fatal(status, answer, err)
	}
	payer, paid := payAs(t, base)
	o.run(0, "org", "member", "add", "--org", org, "--email", erasedPerson["e-mail"], "--role", "admin")
	for _, path := range []string{"/takes", "/refuses"} {
		o.run(0, "webhooks", "create", "--org", org, "--url", receiver.URL+path, "--webhook-networks", "127.0.0.0/8", "--topics", "decisions,reviews")
	}
	decide := func(key, protocol, intent string) {
		t.Helper()
		body := fmt.Sprintf(`{"protocol":%q,"idempotencyKey":%q,"subject":{"runId":"run","agentId":%q,"purpose":%q},"intent":%s}`, protocol, key, erasedPerson["agent"], erasedPerson["purpose"], intent)
		if status, answer, err := post(base+decisionsPath, token, body); err != nil || status != http.StatusCreated {
			t.Fatal(status, answer, err)
		}
	}
	decide("review", "x402", `{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}`)
	decide("tool", "mcp", `{"serverId":"files","toolName":"read","toolArguments":{"path":"`+erasedPerson["argument"]+`"}}`)
	for i := range 1100 { // an object of the archive has 1,024 events
		decide(fmt.Sprint("k", i), "x402", `{"resourceUrl":"https://api.example/","method":"GET","network":"base","amountUsd":0.5}`)
	}
	ledgertest.Until(t, "a message is taken and one is refused", func() bool {
		return taken.Load() > 0 && refused.Load() > 0
	})
	ledgertest.Until(t, "1,024 events are moved", func() bool {
		said, _ := program("archive", "move", "--older-than", "0h", "--archive-store", store, "--data", dir).CombinedOutput() // refused until a checkpoint covers the events
		return strings.Contains(string(said), "moved 1024 events")
	})
	o.run(0, "export", "--org", org, "--agent", erasedPerson["agent"], "--out", filepath.Join(files, "before.tar.gz"), "--archive-store", store)
	o.run(0, "export", "--org", "service", "--out", filepath.Join(files, "payments before.tar.gz"), "--archive-store", store)
	recipient, identityFile := identity(t)
	backup := filepath.Join(t.TempDir(), "backup")
	o.run(0, "backup", backup, "--recipient", recipient)

	server, err := localpg.Start(t.Context(), localpg.Options{DataDir: dir}) // uses the server that serve has started
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	s := &search{map[string][]byte{}, map[string]map[string]bool{}, 0}
	for what, value := range erasedPerson {
		s.secrets[what] = []byte(value)
	}
	maps.Copy(s.secrets, paid)
	owner, err := pgx.Connect(t.Context(), server.URL(localpg.Superuser))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	wrappedKeys := func(t *testing.T) map[string][]byte {
		t.Helper()
		rows, err := owner.Query(t.Context(), `select key_id, wrapped_key from subject_keys where destroyed_us is null`)
		if err != nil {
			t.Fatal(err)
		}
		var id string
		var wrapped []byte
		keys := map[string][]byte{}
		if _, err := pgx.ForEachRow(rows, []any{&id, &wrapped}, func() error {
			keys[id] = wrapped
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	const erased = 4 // data keys, one for each erasure
	why := []string{"--reason", "asked for", "--requested-by", "ada", "--approved-by", "bob"}
	if !t.Run("four erasures destroy four data keys", func(t *testing.T) {
		o := o.in(t)
		lost := wrappedKeys(t)
		o.run(0, append([]string{"erase", "--org", org, "--agent", erasedPerson["agent"]}, why...)...)
		o.run(0, append([]string{"erase", "--org", org, "--email", erasedPerson["e-mail"]}, why...)...)
		o.run(0, append([]string{"erase", "--payer", payer}, why...)...)
		said := o.run(0, append([]string{"erase", "--vacuum", "--email", erasedPerson["e-mail"]}, why...)...)
		for id := range wrappedKeys(t) {
			delete(lost, id)
		}
		if len(lost) != erased {
			t.Fatalf("%d data keys were erased: %s", len(lost), said)
		}
		for id, wrapped := range lost {
			s.secrets["wrapped key "+id] = wrapped
		}
	}) {
		return
	}

	// Search what a caller can still get.
	if !t.Run("what a caller can get is searched", func(t *testing.T) {
		o := o.in(t)
		for _, tenant := range []string{org, "service"} {
			out := filepath.Join(files, tenant+".tar.gz")
			o.run(0, "export", "--org", tenant, "--out", out, "--archive-store", store)
			s.in("export", read(t, out))
		}
		s.in("tail", []byte(o.run(0, "--json", "tail", "--once", "--archive-store", store)))
		s.in("org show", []byte(o.run(0, "org", "show", org)))
		s.tables(t, server.URL(localpg.Superuser))
		if _, err := owner.Exec(t.Context(), `checkpoint`); err != nil {
			t.Fatal(err)
		}
	}) {
		return
	}

	// Search the disks after everything has stopped. Without a mail server, the service also
	// prints e-mail to its log.
	if !t.Run("the disks are searched", func(t *testing.T) {
		owner.Close(t.Context())
		if err := errors.Join(server.Stop(), cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Fatal(err)
		}
		s.files(t, dir, "")
		s.files(t, store, "archive ")
		s.files(t, backup, "backup ")
		s.in("backup keys", read(t, backup+".keys.age"))
		logged := string(read(t, log.Name()))
		s.in("log", []byte(logged))
		for _, message := range strings.Split(string(read(t, filepath.Join(dir, "letters.txt"))), "\nTo: ") {
			logged = strings.ReplaceAll(logged, message, "")
		}
		s.in("log without e-mail", []byte(logged))
	}) {
		return
	}

	t.Run("only what the documentation names is left", func(t *testing.T) {
		want := map[string][]string{"letters.txt": {"agent", "e-mail", "purpose"}, "log": {"agent", "e-mail", "purpose"}}
		found := map[string][]string{}
		for place, what := range s.found {
			if strings.HasPrefix(place, "pg/pg_wal/") { // a segment of the write-ahead log may contain wrapped keys until it is recycled
				maps.DeleteFunc(what, func(what string, _ bool) bool { return strings.HasPrefix(what, "wrapped key ") })
			}
			if len(what) > 0 {
				found[place] = slices.Sorted(maps.Keys(what))
			}
		}
		if diff := cmp.Diff(want, found); diff != "" || s.places < 1000 {
			t.Errorf("searched %d places (-what the documentation names, +found):\n%s", s.places, diff)
		}
	})
	s = &search{s.secrets, map[string]map[string]bool{}, 0}
	t.Run("the search finds agent and payer in older exports", func(t *testing.T) {
		const place = "exports before the erasures"
		for _, name := range []string{"before.tar.gz", "payments before.tar.gz"} {
			s.in(place, read(t, filepath.Join(files, name)))
		}
		want := []string{"agent", "command", "e-mail", "nonce", "paid command", "payer", "purpose", "signature of the payment", "transaction"}
		for _, what := range want {
			if !s.found[place][what] && !s.found[place][what+" in lower case"] {
				t.Errorf("the search does not find the %s where it is: %v", what, s.found[place])
			}
		}
		delete(s.found, place)
	})

	// The disk is lost, and a backup from before the erasures is restored. The folder of the
	// checkpoints, which is on another disk, lists the erased keys.
	again := &operator{t, []string{"--data", filepath.Join(reachable(t), "data"), "--checkpoint-dir", filepath.Join(dir, "checkpoints"), "--archive-store", store}}
	again.run(0, "restore", backup, "--identity", identityFile)
	restored, err := os.Create(filepath.Join(files, "restored.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	cmd = program(append([]string{"serve", "--listen", "127.0.0.1:0", "--accept-rollback"}, again.base...)...)
	cmd.Env = append(cmd.Env, settings...)
	cmd.Stdout, cmd.Stderr = restored, restored
	startAndWait(t, cmd, restored.Name())
	if !t.Run("the restored ledger opens nothing that was erased", func(t *testing.T) {
		again := again.in(t)
		out := filepath.Join(files, "again.tar.gz")
		again.run(0, "export", "--org", org, "--out", out)
		s.in("export of the restored ledger", read(t, out))
		s.in("org show of the restored ledger", []byte(again.run(0, "org", "show", org)))
		s.in("tail of the restored ledger", []byte(again.run(0, "--json", "tail", "--once")))
		if len(s.found) > 0 {
			t.Errorf("the restored ledger opens what was erased: %v", s.found)
		}
	}) {
		return
	}
	t.Run("the log names the erasures to repeat", func(t *testing.T) {
		again := again.in(t)
		repeat := regexp.MustCompile(`countersign (erase --org \S+ --data-key sub_\w+)`).FindAllStringSubmatch(string(read(t, restored.Name())), -1)
		for _, command := range repeat {
			again.run(0, append(strings.Fields(command[1]), why...)...)
		}
		if len(repeat) != erased {
			t.Errorf("the log names %d of the %d erasures to repeat", len(repeat), erased)
		}
	})
	t.Run("the restored ledger verifies", func(t *testing.T) {
		again := again.in(t)
		again.run(0, "verify")
	})
}

// payAs pays for a call with the command of the erased person. It returns the payer as erase takes
// it, and the values that identify the payer and the payment.
func payAs(t *testing.T, base string) (payer string, secrets map[string][]byte) {
	t.Helper()
	wallet, payment := x402test.NewWallet("payer"), callUnpaid(t, base, t.Name())
	status, header, answer := callPaid(t, base, payment, `{"command":"`+erasedPerson["paid command"]+`"}`)
	settled, err := x402.ReadResponse(header.Get(x402.HeaderResponse))
	if status != http.StatusOK || err != nil {
		t.Fatal(status, answer, err)
	}
	var sent struct {
		Payload struct {
			Signature     string
			Authorization struct{ Nonce string }
		}
	}
	text, err := base64.StdEncoding.DecodeString(payment)
	if err := errors.Join(err, json.Unmarshal(text, &sent)); err != nil {
		t.Fatal(err)
	}
	secrets = map[string][]byte{}
	for what, value := range map[string]string{"payer": wallet.Address.String(), "nonce": sent.Payload.Authorization.Nonce, "signature of the payment": sent.Payload.Signature, "transaction": settled.Transaction} {
		digits := strings.TrimPrefix(value, "0x")
		octets, err := hex.DecodeString(digits)
		if err != nil || len(octets) < 20 {
			t.Fatal(what, value, err)
		}
		secrets[what], secrets[what+" in lower case"], secrets[what+" in binary"] = []byte(digits), []byte(strings.ToLower(digits)), octets
	}
	return x402.DevNetwork + ":" + wallet.Address.String(), secrets
}

// startAndWait starts serve, whose output goes to a file, and returns its address.
func startAndWait(t *testing.T, cmd *exec.Cmd, log string) (base string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ledgertest.Until(t, "the service answers", func() bool {
		_, rest, _ := strings.Cut(string(read(t, log)), "countersign answers at ")
		base, _, _ = strings.Cut(rest, "\n")
		return base != ""
	})
	return base
}
