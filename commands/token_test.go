package commands_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// wantToken checks that a token is accepted, or refused with the text for invalid tokens.
func wantToken(t *testing.T, a *commands.App, token string, good bool) {
	t.Helper()
	p, err := a.AuthenticateOrganization(t.Context(), token)
	if good && err == nil {
		_, err = a.Confirm(t.Context(), p)
	}
	if good && err != nil {
		t.Errorf("a good token: %v", err)
	}
	if !good && err == nil {
		_, err = a.Confirm(t.Context(), p)
	}
	if !good {
		wantRefusal(t, err, "unauthorized", organizations.ErrToken.Error())
	}
}

func TestBadTokensAreOneAnswer(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, operator := newOrganization(t, a, "team")
	good := newToken(t, a, operator).Token
	other := newToken(t, a, operator).Token
	for name, token := range map[string]string{
		"empty":            "",
		"prefix only":      "svco_",
		"not base64":       good[:20] + "!" + good[21:],
		"another secret":   good[:18] + other[18:],
		"unknown id":       "svco_000000000000" + good[17:],
		"wrong check":      good[:62] + "AAAAAA",
		"longer":           good + "a",
		"shorter":          good[:len(good)-1],
		"upper case":       strings.ToUpper(good),
		"another prefix":   "svcx_" + good[5:],
		"white space":      " " + good,
		"NUL":              good[:30] + "\x00" + good[31:],
		"unknown API key":  "svck_" + good[5:],
		"a thousand bytes": strings.Repeat("a", 1000),
	} {
		t.Run(name, func(t *testing.T) { wantToken(t, a, token, false) })
	}
	wantToken(t, a, good, true)
	key, err := a.IssueFreeKey(t.Context(), "ada@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.AuthenticateOrganization(t.Context(), key.APIKey)
	wantRefusal(t, err, "insufficient_scope", "organization credential required")
}

func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	a := openApp(t, db, newClock())
	_, operator := newOrganization(t, a, "team")
	issued := newToken(t, a, operator)
	secret := issued.Token[18:61]
	link, err := a.RequestSignIn(t.Context(), "ada@example.com", "/account")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range everything(t, a) {
		for what, text := range map[string]string{"secret": secret, "address": "ada@example.com"} {
			if bytes.Contains(e.Payload, []byte(text)) || strings.Contains(e.Stream+e.Actor, text) {
				t.Errorf("%s holds the %s in the clear", e.Type, what)
			}
		}
	}
	var row string
	if err := a.Ledger.Pool().QueryRow(t.Context(), `select row_to_json(l)::text from signin_links l`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(row, link.Token) || strings.Contains(row, "example.com") || strings.Contains(row, fmt.Sprintf("%x", "ada@example.com")) {
		t.Errorf("the table of links tells secret or address: %s", row)
	}
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	_, operator := newOrganization(t, a, "team")
	short, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{Days: 1})
	if err != nil {
		t.Fatal(err)
	}
	usual := newToken(t, a, operator)
	c.Add(24*time.Hour - time.Millisecond)
	wantToken(t, a, short.Token, true)
	c.Add(time.Millisecond)
	wantToken(t, a, short.Token, false)
	wantToken(t, a, usual.Token, true)
	c.Add(89 * 24 * time.Hour)
	wantToken(t, a, usual.Token, false)
	if _, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{Days: 366}); err == nil {
		t.Error("a token of more than a year")
	}
	list, err := a.Tokens(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range list {
		if token.State != "expired" {
			t.Errorf("token %s is %s", token.TokenID, token.State)
		}
	}
}

func TestRotationOverlapsADay(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	_, operator := newOrganization(t, a, "team")
	first := newToken(t, a, operator)
	second, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{Rotates: first.TokenID})
	if err != nil {
		t.Fatal(err)
	}
	states := func() (got []string) {
		t.Helper()
		list, err := a.Tokens(t.Context(), operator)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range list {
			got = append(got, token.State)
		}
		return got
	}
	if diff := cmp.Diff([]string{"rotating", "active"}, states()); diff != "" {
		t.Error(diff)
	}
	c.Add(24*time.Hour - time.Millisecond)
	wantToken(t, a, first.Token, true)
	wantToken(t, a, second.Token, true)
	c.Add(time.Millisecond)
	wantToken(t, a, first.Token, false)
	wantToken(t, a, second.Token, true)
	if diff := cmp.Diff([]string{"revoked", "active"}, states()); diff != "" {
		t.Error(diff)
	}
	_, err = a.IssueToken(t.Context(), operator, organizations.TokenOrder{Rotates: first.TokenID})
	wantRefusal(t, err, "not_found", "token not found")
	// A revocation of the old token ends the overlap of a rotation. The new token stays valid.
	third, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{Rotates: second.TokenID})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.RevokeToken(t.Context(), operator, second.TokenID, "leaked"); err != nil {
		t.Fatal(err)
	}
	wantToken(t, a, second.Token, false)
	wantToken(t, a, third.Token, true)
	clean(t, a)
}

// A token that is revoked on one node is refused on another node that has it in its cache.
func TestRevokedTokenEndsOnEveryNode(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	one, two := openApp(t, db, c), openApp(t, db, c)
	_, operator := newOrganization(t, one, "team")
	issued := newToken(t, one, operator)
	wantToken(t, two, issued.Token, true)
	for range 2 { // revoking a second time changes nothing
		if err := one.RevokeToken(t.Context(), operator, issued.TokenID, "left"); err != nil {
			t.Fatal(err)
		}
	}
	wantToken(t, two, issued.Token, false)
	wantToken(t, one, issued.Token, false)
	history, err := one.Ledger.Read(t.Context(), operator.OrgID, "organization_token/"+issued.TokenID)
	if err != nil || history.Version() != 2 {
		t.Errorf("version %d, %v; want issued and revoked", history.Version(), err)
	}
}

// A right is checked again at the append: a member who was removed and a token that was revoked,
// on another node, are refused.
func TestStalePrincipalCannotAppend(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	one, two := openApp(t, db, c), openApp(t, db, c)
	orgID, operator := newOrganization(t, one, "business")
	bob, err := one.AddMember(t.Context(), operator, "bob@example.com", "admin")
	if err != nil {
		t.Fatal(err)
	}
	stale, err := two.SessionPrincipal(t.Context(), orgID, bob.MemberID, c.Now())
	if err != nil {
		t.Fatal(err)
	}
	token := newToken(t, one, operatorOf(t, one, orgID), "policy:draft")
	drafts, err := two.AuthenticateOrganization(t.Context(), token.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.RemoveMember(t.Context(), operatorOf(t, one, orgID), bob.MemberID, ""); err != nil {
		t.Fatal(err)
	}
	if err := one.RevokeToken(t.Context(), operatorOf(t, one, orgID), token.TokenID, ""); err != nil {
		t.Fatal(err)
	}
	_, err = two.AddMember(t.Context(), stale, "eve@example.com", "admin")
	wantRefusal(t, err, "forbidden", "organization credential required")
	_, err = two.IssueToken(t.Context(), stale, organizations.TokenOrder{})
	wantRefusal(t, err, "forbidden", "organization credential required")
	_, err = two.DraftPolicy(t.Context(), drafts, []byte(`{"policyId":"default","requireHttps":true}`), "")
	wantRefusal(t, err, "unauthorized", organizations.ErrToken.Error())
	clean(t, one)
}

func TestTokenOrderIsChecked(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, operator := newOrganization(t, a, "team")
	for _, bad := range []struct {
		order         organizations.TokenOrder
		code, message string
	}{
		{organizations.TokenOrder{Scopes: []string{"assurance:everything"}}, "invalid_enum", "scopes must contain only assurance:decide, assurance:receipt, assurance:read, export:read and policy:draft"},
		{organizations.TokenOrder{Days: -1}, "out_of_range", "expiresInDays must be 1 to 365"},
		{organizations.TokenOrder{Addresses: []string{"example.com"}}, "out_of_range", "addresses must contain networks such as 192.0.2.0/24"},
		{organizations.TokenOrder{Addresses: make([]string, 101)}, "too_many_items", "addresses must have at most 100 items"},
		{organizations.TokenOrder{Name: "a\r\nb"}, "out_of_range", "name must be one line of 1 to 200 characters"},
		{organizations.TokenOrder{Member: "cus_01JD3Z8W5T0000000000000000"}, "not_found", "member not found"},
		{organizations.TokenOrder{Rotates: "000000000000"}, "not_found", "token not found"},
	} {
		_, err := a.IssueToken(t.Context(), operator, bad.order)
		wantRefusal(t, err, bad.code, bad.message)
	}
	issued, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{Addresses: []string{"192.0.2.77/24", "2001:db8::1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"192.0.2.0/24", "2001:db8::1/128"}, issued.Addresses); diff != "" {
		t.Error(diff)
	}
	p, err := a.AuthenticateOrganization(t.Context(), issued.Token)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"192.0.2.1": true, "::ffff:192.0.2.1": true, "192.0.3.1": false, "2001:db8::1": true, "2001:db8::2": false, "": false} {
		if p.Allows(address) != want {
			t.Errorf("from %q: %v", address, !want)
		}
	}
}

// A developer sees only own records: those of the member and of the tokens issued to the member.
func TestOwnActors(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	orgID, operator := newOrganization(t, a, "team")
	dev, err := a.AddMember(t.Context(), operator, "dev@example.com", "developer")
	if err != nil {
		t.Fatal(err)
	}
	operator = operatorOf(t, a, orgID)
	newToken(t, a, operator)
	own, err := a.IssueToken(t.Context(), operator, organizations.TokenOrder{Member: dev.MemberID})
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.SessionPrincipal(t.Context(), orgID, dev.MemberID, a.Clock())
	if err != nil || !p.OwnOnly() {
		t.Fatalf("own only %v, %v", p.OwnOnly(), err)
	}
	actors, err := a.OwnActors(t.Context(), p)
	if diff := cmp.Diff([]string{dev.MemberID, "svco_" + own.TokenID}, actors); diff != "" || err != nil {
		t.Error(diff, err)
	}
	byToken, err := a.AuthenticateOrganization(t.Context(), own.Token)
	if err != nil || byToken.Member != dev.MemberID || byToken.OwnOnly() {
		t.Errorf("token of the developer: %+v, %v", byToken, err)
	}
}

// If one token is revoked eight times at the same time on two nodes, one revocation is recorded.
func TestIssueAndRevokeRace(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	apps := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	_, operator := newOrganization(t, apps[0], "team")
	issued := newToken(t, apps[0], operator)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if err := apps[n%2].RevokeToken(t.Context(), operator, issued.TokenID, "race"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range apps {
		wantToken(t, a, issued.Token, false)
	}
	history, err := apps[0].Ledger.Read(t.Context(), operator.OrgID, "organization_token/"+issued.TokenID)
	if err != nil || history.Version() != 2 {
		t.Errorf("%d events, %v; want one issue and one revocation", history.Version(), err)
	}
	clean(t, apps[0])
}
