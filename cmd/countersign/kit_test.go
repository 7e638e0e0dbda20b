package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/catalog"
	"github.com/countersign/countersign/commands/store"
)

// audited is a service, and an auditor who reviews it with the verification kit, unpacked into a
// folder.
type audited struct {
	*testing.T
	base, data, work string
	org              string
}

// auditedService starts a service with an organization of two members: ada, its owner, and bob, an
// admin.
func auditedService(t *testing.T) *audited {
	for _, needed := range []string{"node", "python3"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(needed + " is not installed")
		}
	}
	a := &audited{T: t, data: dataDir(t), work: t.TempDir()}
	a.base = serveIn(t, a.data).base
	unpackKit(t, a.work)
	var made struct{ OrgID string }
	a.read(a.countersign("org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com", "--json"), &made)
	a.org = made.OrgID
	a.countersign("org", "member", "add", "--org", a.org, "--email", "bob@example.com", "--role", "admin")
	return a
}

// unpackKit unpacks the archive that is sold.
func unpackKit(t *testing.T, folder string) {
	t.Helper()
	list, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	kit := slices.IndexFunc(list, func(p store.Product) bool { return p.Slug == "verification-kit" })
	archive, err := zip.NewReader(bytes.NewReader(list[kit].Content), int64(len(list[kit].Content)))
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(archive, "verification-kit")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, files); err != nil {
		t.Fatal(err)
	}
}

// countersign runs a command of the operator, which must succeed, and returns its output.
func (a *audited) countersign(args ...string) string {
	a.Helper()
	cmd := program(append(args, "--data", a.data)...)
	cmd.Dir = a.work
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		a.Fatalf("countersign %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// run runs a command of the auditor in the kit's folder, checks the exit code and returns the
// output.
func (a *audited) run(code int, args ...string) string {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), args[0], args[1:]...)
	cmd.Dir = a.work
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		a.Errorf("%s: exit %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

func (a *audited) read(text string, into any) {
	a.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		a.Fatalf("%v: %s", err, text)
	}
}

func (a *audited) file(name string) string {
	a.Helper()
	text, err := os.ReadFile(filepath.Join(a.work, name))
	if err != nil {
		a.Fatal(err)
	}
	return string(text)
}

func (a *audited) keep(name, text string) {
	a.Helper()
	if err := os.WriteFile(filepath.Join(a.work, name), []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
}

// send sends a request to the service. credential is a complete header line.
func (a *audited) send(method, path, credential, media, body string) (string, *http.Response) {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), method, a.base+path, strings.NewReader(body))
	if err != nil {
		a.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	r.Header.Set("Origin", a.base)
	if name, value, ok := strings.Cut(credential, ": "); ok {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		a.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 400 {
		a.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, text, err)
	}
	return string(text), answer
}

func (a *audited) get(path, credential string) string {
	a.Helper()
	text, _ := a.send(http.MethodGet, path, credential, "application/json", "")
	return text
}

func (a *audited) post(path, credential, body string) string {
	a.Helper()
	text, _ := a.send(http.MethodPost, path, credential, "application/json", body)
	return text
}

var signInLink = regexp.MustCompile(`/sign-in/confirm\?token=([A-Za-z0-9_-]+)`)

// signIn signs a member in and returns the session's cookie.
func (a *audited) signIn(email string) string {
	a.Helper()
	a.post("/api/auth/sign-in", "", fmt.Sprintf(`{"email":%q}`, email))
	letters, err := os.ReadFile(filepath.Join(a.data, "letters.txt"))
	if err != nil {
		a.Fatal(err)
	}
	links := signInLink.FindAllStringSubmatch(string(letters), -1)
	form := url.Values{"token": {links[len(links)-1][1]}}
	_, answer := a.send(http.MethodPost, "/sign-in/confirm", "", "application/x-www-form-urlencoded", form.Encode())
	cookie := answer.Cookies()[0]
	session := "Cookie: " + cookie.Name + "=" + cookie.Value
	a.post("/api/assurance/organization", session, fmt.Sprintf(`{"orgId":%q}`, a.org))
	return session
}

// signed has the members of a decision that a receipt must repeat.
type signed struct {
	Record    struct{ DecisionID, BindingHash, Decision string }
	Integrity struct{ RecordHash string }
}

// decide requests a decision on a purchase, checks the result and returns it.
func (a *audited) decide(token, key, method, usd, decision string) (d signed) {
	a.Helper()
	a.read(a.post(decisionsPath, token, fmt.Sprintf(`{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run","agentId":"agent"},
		"intent":{"resourceUrl":"https://api.example/","method":%q,"amountUsd":%s}}`, key, method, usd)), &d)
	if d.Record.Decision != decision {
		a.Fatalf("%s is %s, want %s", key, d.Record.Decision, decision)
	}
	return d
}

// fulfil records a receipt for an executed decision.
func (a *audited) fulfil(token string, d signed, settlement string) {
	a.Helper()
	a.post(receiptsPath, token, fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled",
		"settlementId":%q,"observedAt":%q,"responseStatus":200,"responseBodyHash":%q}`, d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash,
		settlement, time.Now().UTC().Format(time.RFC3339), strings.Repeat("ab", 32)))
}

// export runs the export command of the kit's section REQUESTS 2 and unpacks the bundle.
func (a *audited) export(name, org string) {
	a.Helper()
	from, to := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339), time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	a.countersign("export", "--org", org, "--from", from, "--to", to, "--out", filepath.Join(a.work, name+".tar.gz"))
	a.run(0, "mkdir", name)
	a.run(0, "tar", "-xzf", name+".tar.gz", "--strip-components", "1", "-C", name)
}

func holds(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile("(?m)^" + line).MatchString(text) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// The kit describes how to review a service. This test follows its requests and the steps of its
// worksheet literally: on a history without faults, and on one with all faults that a review
// should find.
func TestTheVerificationKitStepByStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long")
	}
	a := auditedService(t)
	ada, bob := a.signIn("ada@example.com"), a.signIn("bob@example.com")
	a.activate(ada, bob, `{"policyId":"default","maxUsdPerTransaction":1,"allowedHosts":["api.example"]}`)
	var issued struct{ Token string }
	a.read(a.countersign("org", "token", "issue", "--org", a.org, "--json"), &issued)
	token := "Authorization: Bearer " + issued.Token

	allowed := a.decide(token, "allowed", "GET", "0.5", "allow")
	a.fulfil(token, allowed, "settlement-1")
	a.activate(ada, bob, `{"policyId":"default","maxUsdPerTransaction":2,"allowedHosts":["api.example"]}`)
	reviewed := a.decide(token, "reviewed", "BREW", "0.5", "needs_review")
	a.post(decisionsPath+"/"+reviewed.Record.DecisionID+"/approval", ada, `{"verdict":"approved","reason":"asked for by the kitchen"}`)
	a.fulfil(token, reviewed, "settlement-2")
	a.decide(token, "denied", "GET", "5", "deny")

	a.keep("jwks.json", a.get("/.well-known/jwks.json", ""))                                                         // steps A1 and REQUESTS 1
	a.export("first", a.org)                                                                                         // REQUESTS 2
	if got := a.run(0, "python3", "verify.py", "--keys", "jwks.json", "first"); !strings.HasPrefix(got, "VALID\n") { // step A2
		t.Errorf("the export: %s", got)
	}
	a.records(token)
	a.honest()
	a.pinned()
	a.operator(ada)

	a.fulfil(token, a.decide(token, "unreviewed", "BREW", "0.5", "needs_review"), "settlement-3")
	a.fulfil(token, a.decide(token, "against", "GET", "6", "deny"), "settlement-3")
	a.export("third", a.org)
	a.run(0, "python3", "verify.py", "--keys", "jwks.json", "third") // the signatures verify, but the review must find faults
	holds(t, a.run(1, "node", "review.mjs", "--keys", "jwks.json", "third"),
		"C2  EXPLAIN  asd_.* was carried out without an approval", "C3  EXPLAIN  asd_.* was carried out",
		"D4  EXPLAIN  settlement settlement-3 is named by receipts at", "D5  EXPLAIN  .*violation", "A4  OK", "B3  OK", "D2  OK")
	a.forged()
}

// activate drafts a policy as one member and activates it as another.
func (a *audited) activate(author, activator, policy string) {
	a.Helper()
	var draft struct{ DraftID string }
	a.read(a.post("/api/assurance/policies", author, policy), &draft)
	a.post("/api/assurance/policies/"+draft.DraftID+"/activate", activator, `{"reason":"agreed with the board"}`)
}

// records follows the alternative in REQUESTS 2: it reads the pages of the history and all records
// that they list (steps A2 and A5).
func (a *audited) records(token string) {
	a.Helper()
	var page struct {
		Items []struct {
			Kind, DecisionID, ReceiptID string
			Integrity                   struct{ RecordHash string }
		}
	}
	a.read(a.get("/api/assurance/history?limit=100", token), &page)
	if len(page.Items) != 5 {
		a.Errorf("%d items in the history", len(page.Items))
	}
	verify := []string{"node", "verify.mjs", "--keys", "jwks.json"}
	for i, item := range page.Items {
		path := decisionsPath + "/" + item.DecisionID
		if item.Kind == "receipt" {
			path = receiptsPath + "/" + item.ReceiptID
		}
		record := a.get(path, token)
		if !strings.Contains(record, item.Integrity.RecordHash) {
			a.Errorf("%s does not have the recordHash of the page", path)
		}
		a.keep(fmt.Sprintf("record%d.json", i), record)
		verify = append(verify, fmt.Sprintf("record%d.json", i))
	}
	if got := a.run(0, verify...); strings.Count(got, "VALID  ") != 5 {
		a.Errorf("verify.mjs: %s", got)
	}
	a.keep("changed.json", strings.Replace(a.file("record0.json"), `"decision":"`, `"decision":"x`, 1)) // step A5
	holds(a.T, a.run(1, "node", "verify.mjs", "--keys", "jwks.json", "changed.json"), "INVALID")
}

// honest follows the worksheet on a history without faults.
func (a *audited) honest() {
	a.Helper()
	review := a.run(0, "node", "review.mjs", "--keys", "jwks.json", "first")
	holds(a.T, review, "A1  READ     SHA-256 of the keys.* [0-9a-f]{64}$", `A3  OK       6 records, by 1 keys`,
		"A4  OK       .* without a gap", "B1  READ     version 1 .* written by cus_.*: agreed with the board", "B1  READ     version 2 .*changed: maxUsdPerTransaction",
		"B2  OK", "B3  OK       3 decisions", "C1  READ     1 allowed of 3", "C2  OK       1 needed", "C3  OK       1 denied", "D1  READ", "D2  OK       2 receipts",
		"D3  READ     2 settlements", "D4  OK", "D5  OK")
	for _, policy := range regexp.MustCompile(`policies/[0-9a-f]+\.json`).FindAllString(review, -1) { // step B4
		if text := a.file("first/" + policy); !strings.Contains(text, `"maxUsdPerTransaction":`) {
			a.Errorf("%s: %s", policy, text)
		}
	}
	for _, table := range []string{"views/decisions.csv", "views/receipts.csv"} { // steps C1 and D1
		if text := a.file("first/" + table); !strings.Contains(text, "asd_") {
			a.Errorf("%s: %s", table, text)
		}
	}
}

// pinned follows step A6: the next export must extend the stored checkpoint.
func (a *audited) pinned() {
	a.Helper()
	a.export("second", a.org)
	if got := a.run(0, "python3", "verify.py", "--keys", "jwks.json", "--pin", "first/checkpoint.txt", "second"); strings.Contains(got, "--pin") {
		a.Errorf("with a pin: %s", got)
	}
	if got := a.run(1, "python3", "verify.py", "--keys", "jwks.json", "--pin", "second/checkpoint.txt", "first"); !strings.Contains(got, "ROLLBACK") {
		a.Errorf("an export from before the pin: %s", got)
	}
	for _, text := range []string{a.file("second/checkpoint.txt"), a.get("/api/ledger/checkpoint", "")} { // REQUESTS 7
		if !strings.Contains(text, "\n\n— ") {
			a.Errorf("a checkpoint: %s", text)
		}
	}
}

// operator follows the requests to the operator: REQUESTS 3, 4 and 8.
func (a *audited) operator(session string) {
	a.Helper()
	for path, want := range map[string]string{
		"/api/assurance/policies": "agreed with the board",
		"/api/assurance/members":  "bob@example.com",
		"/api/assurance/tokens":   "assurance:decide",
	} {
		if text := a.get(path, session); !strings.Contains(text, want) {
			a.Errorf("%s lacks %s: %s", path, want, text)
		}
	}
	if show := a.countersign("org", "show", a.org); !strings.Contains(show, "bob@example.com") {
		a.Errorf("org show: %s", show)
	}
	if list := a.countersign("org", "token", "list", "--org", a.org, "--json"); !strings.Contains(list, "assurance:decide") {
		a.Errorf("token list: %s", list)
	}
	a.export("service", "service")
	a.run(0, "python3", "verify.py", "--keys", "jwks.json", "service")
	if strings.Contains(a.file("service/events.jsonl"), "ledger.rollback_declared") {
		a.Error("a rollback that never was")
	}
}

// forged changes the export in ways that hide a fault. verify.py refuses each changed export, and
// review.mjs names the failed step.
func (a *audited) forged() {
	a.Helper()
	honest := a.file("third/events.jsonl")
	lines := strings.SplitAfter(honest, "\n")
	for step, change := range map[string]func() string{
		"A3  EXPLAIN": func() string { return strings.ReplaceAll(honest, `\"keyId\":\"`, `\"keyId\":\"0`) },
		"A4  EXPLAIN": func() string { return strings.Join(append(append([]string{}, lines[:3]...), lines[4:]...), "") },
		"B2  EXPLAIN": func() string {
			return regexp.MustCompile(`\\"author\\":\\"cus_\w+\\"`).ReplaceAllString(regexp.MustCompile(`\\"activator\\":\\"cus_\w+\\"`).
				ReplaceAllString(honest, `\"activator\":\"cus_1\"`), `\"author\":\"cus_1\"`)
		},
		"B3  EXPLAIN": func() string { return strings.ReplaceAll(honest, `\"activatedSequence\":`, `\"activatedSequence\":1`) },
		"D2  EXPLAIN": func() string {
			return strings.ReplaceAll(honest, `\"decisionRecordHash\":\"`, `\"decisionRecordHash\":\"0`)
		},
	} {
		a.keep("third/events.jsonl", change())
		holds(a.T, a.run(1, "python3", "verify.py", "--keys", "jwks.json", "third"), "NOT VALID")
		holds(a.T, a.run(1, "node", "review.mjs", "--keys", "jwks.json", "third"), step)
	}
	a.keep("third/events.jsonl", honest)
}
