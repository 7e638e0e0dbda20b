package api_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/policy/guardlog"
)

// guardLog returns the log of a machine with one line for each decision.
func guardLog(t *testing.T, decisions ...string) []guardlog.Line {
	t.Helper()
	var lines []guardlog.Line
	before := ""
	for i, d := range decisions {
		l := guardlog.Line{Number: int64(i + 1), At: "2026-11-22T10:00:00Z", Agent: "claude", Decision: d, Level: "high", Command: "command " + d, Cwd: "/home/ada/web", Before: before}
		var err error
		if l.Hash, err = l.Sum(); err != nil {
			t.Fatal(err)
		}
		before, lines = l.Hash, append(lines, l)
	}
	return lines
}

// TestGuardLogs checks that a team sees what its agents tried, that reported parts must continue
// each other, and that the same part sent again is stored once.
func TestGuardLogs(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	log := guardLog(t, "pass", "deny", "ask", "unseen")
	report := func(status int, says string, lines []guardlog.Line) {
		t.Helper()
		body, err := json.Marshal(guardlog.Sign(key, lines))
		if err != nil {
			t.Fatal(err)
		}
		b := s.browser(t)
		b.want(b.post("/api/assurance/guard-logs", string(body), "Authorization", "Bearer "+c.tokens["assurance:decide"]), status, says)
	}
	report(409, "must continue the last report", log[1:])
	report(200, `"counts":{"deny":1,"pass":1},"first":1`, log[:2])
	before := s.eventCount(t)
	report(200, `"last":2`, log[:2])
	if s.eventCount(t) != before {
		t.Error("the same part again is another event")
	}
	report(409, "must continue the last report", log[3:])
	report(200, `"last":4`, log[2:])
	edited := guardLog(t, "pass")
	edited[0].Command = "ls"
	report(400, "must be one chain", edited)
	owner := c.people["owner"]
	got := owner.get("/api/assurance/guard-logs")
	owner.want(got, 200, `"command ask"`)
	for _, hidden := range []string{"command pass", "command deny"} { // one is from a decision that passed, the other from an earlier part of the log
		if strings.Contains(got.body, hidden) {
			t.Errorf("%s: %s", hidden, got.body)
		}
	}
	owner.want(owner.get("/guard"), 200, "command unseen")
	b := s.browser(t)
	b.want(b.post("/api/assurance/guard-logs", `{}`, "Authorization", "Bearer "+c.tokens["assurance:read"]), 403, "scope")
}

// TestGuardsAreFound checks that the pages that newcomers open link to the page about guards, and
// that it explains how to report the log of a guard.
func TestGuardsAreFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	owner, developer := c.people["owner"], c.people["developer"]
	for _, place := range []string{"/overview", "/keys"} {
		page := owner.get(place)
		if _, main, _ := strings.Cut(page.body, "<main"); !strings.Contains(main, `<a href="/guard">`) {
			t.Errorf("%s does not lead to the guards", place)
		}
	}
	owner.want(owner.get("/guard"), 200, "countersign gate log push --url "+s.app.BaseURL)
	if strings.Contains(developer.get("/overview").body, `href="/guard"`) {
		t.Error("a developer is led where they may not look")
	}
}
