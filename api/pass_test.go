package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/events"
)

// subscriber is a customer with a pass and with a key of the account.
type subscriber struct {
	*browser
	site *site
	fake *stripeFake
	key  string
	from time.Time
}

func newSubscriber(t *testing.T) *subscriber {
	t.Helper()
	s, f := newStorefront(t)
	ada := s.signedIn(t, "ada@example.com")
	u := &subscriber{browser: ada, site: s, fake: f, from: s.app.Clock()}
	f.checkout(ada, "monthly-pass")
	f.deliver(f.notice("customer.subscription.created", u.from, f.subscription("cus_p", "active", u.from, u.from.Add(30*day), false)),
		f.notice("checkout.session.completed", u.from, f.paid("cus_p", "ada@example.com", nil)))
	u.key = u.newKey()
	return u
}

func (u *subscriber) newKey() string {
	u.t.Helper()
	got := u.post("/api/account/keys", ``)
	u.want(got, 201, `"callsPerMonth":250`)
	var issued struct{ APIKey string }
	if err := json.Unmarshal([]byte(got.body), &issued); err != nil {
		u.t.Fatal(err)
	}
	return issued.APIKey
}

// call makes a call. It costs 25 cents, or one cent for the quick gate.
func (u *subscriber) call(key, path, body string) answer {
	u.t.Helper()
	return u.site.browser(u.t).post("/api/agent-services/"+path, body, "X-API-Key", key)
}

func (u *subscriber) quick(key string) answer {
	u.t.Helper()
	return u.call(key, "action-safety/quick", `{"command":"ls"}`)
}

// useMonth uses all free calls of the account in this month.
func (u *subscriber) useMonth() {
	u.t.Helper()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range accounts.FreeCallsPerMonth / 10 {
				u.quick(u.key)
			}
		})
	}
	all.Wait()
}

func (u *subscriber) status(says string) {
	u.t.Helper()
	u.want(u.site.browser(u.t).get("/api/keys/free/status", "X-API-Key", u.key), 200, says)
}

// TestPassPaysForWhatIsNotFree checks that the keys of an account share its free calls. After
// these, each call is charged to the pass, until a call costs more than what is left.
func TestPassPaysForWhatIsNotFree(t *testing.T) {
	t.Parallel()
	u := newSubscriber(t)
	second := u.newKey()
	u.status(`"pass":{"endsAt":"` + ground.Stamp(time.Unix(u.from.Add(30*day).Unix(), 0)) + `","name":"`)
	u.status(`","product":"monthly-pass"}`)
	u.status(`"credits":{"periodEndsAt":"` + ground.Stamp(time.Unix(u.from.Add(30*day).Unix(), 0)) + `","remainingCents":3500,"totalCents":3500,"usedCents":0}`)
	u.useMonth()
	u.status(`"callsRemaining":0`)
	u.status(`"usedCents":0`)
	if got := u.quick(second); got.status != 200 || !strings.HasPrefix(got.header.Get("RateLimit"), `"month";r=0;`) {
		t.Errorf("a call of the pass: %d %v", got.status, got.header)
	}
	u.status(`"remainingCents":3499,"totalCents":3500,"usedCents":1`)
	u.want(u.call(u.key, "action-safety/run", `{"command":"ls"}`), 200, `"receipt"`)
	u.status(`"usedCents":26`)
	// A refused call is not charged, and a repeated one is charged once.
	u.want(u.call(u.key, "action-safety/quick", `{}`), 400, "command")
	for range 3 {
		got := u.site.browser(t).post("/api/agent-services/action-safety/quick", `{"command":"ls"}`, "X-API-Key", u.key, "Idempotency-Key", "once")
		u.want(got, 200, "scored")
	}
	u.status(`"usedCents":27`)
	// A key that was issued without an account cannot use a pass, even if it has the buyer's
	// address.
	free, err := u.site.app.IssueFreeKey(t.Context(), "ada@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	u.want(u.site.browser(t).get("/api/keys/free/status", "X-API-Key", free.APIKey), 200, `"credits":null`)
}

// TestPassAtItsLastUnit checks that concurrent calls can use exactly what is left.
func TestPassAtItsLastUnit(t *testing.T) {
	t.Parallel()
	u := newSubscriber(t)
	u.useMonth()
	for i := range u.site.app.Products { // 30 cents are enough for one call of 25 cents and five of one cent
		if u.site.app.Products[i].Slug == "monthly-pass" {
			u.site.app.Products[i].CreditCents = 30
		}
	}
	u.want(u.call(u.key, "action-safety/run", `{"command":"ls"}`), 200, "")
	u.want(u.call(u.key, "action-safety/run", `{"command":"ls"}`), 429, `"code":"quota_exhausted"`)
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			got := u.quick(u.key)
			mu.Lock()
			defer mu.Unlock()
			statuses[got.status]++
		})
	}
	all.Wait()
	if statuses[200] != 5 || statuses[429] != 7 {
		t.Errorf("%v, want 5 answers and 7 times 429", statuses)
	}
	got := u.quick(u.key)
	upgrade := u.site.app.BaseURL + "/pricing#monthly-pass"
	if got.status != 429 || got.header.Get("Link") != "<"+upgrade+`>; rel="upgrade"` || got.header.Get("Retry-After") != "" || !strings.Contains(got.body, `"upgradeUrl":"`+upgrade+`"`) {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	u.status(`"remainingCents":0,"totalCents":30,"usedCents":30`)
}

// TestPassFollowsTheSubscription checks that a new period has new credit, that the rest of the
// previous one expires, and that there is no pass while the subscription is not active.
func TestPassFollowsTheSubscription(t *testing.T) {
	t.Parallel()
	u := newSubscriber(t)
	u.useMonth()
	u.want(u.quick(u.key), 200, "scored")
	tell := func(kind, status string, from, to time.Time, after time.Duration) {
		u.fake.deliver(u.fake.notice("customer.subscription."+kind, u.from.Add(after), u.fake.subscription("cus_p", status, from, to, false)))
	}
	tell("updated", "past_due", u.from, u.from.Add(30*day), time.Second)
	u.want(u.quick(u.key), 429, "quota")
	u.status(`"credits":null`)
	u.status(`"pass":null`)
	tell("updated", "active", u.from.Add(time.Hour), u.from.Add(31*day), 2*time.Second)
	u.status(`"remainingCents":3500`)
	u.want(u.quick(u.key), 200, "scored")
	// The operator revokes the entitlement and restores it.
	customer := u.customer()
	if _, err := u.site.app.RevokeEntitlement(t.Context(), customer, "monthly-pass", "abuse"); err != nil {
		t.Fatal(err)
	}
	u.entitled("monthly-pass", "revoked")
	u.want(u.quick(u.key), 429, "quota")
	if _, err := u.site.app.GrantEntitlement(t.Context(), customer, "monthly-pass", time.Time{}, "it was a mistake"); err != nil {
		t.Fatal(err)
	}
	u.entitled("monthly-pass", "active")
	u.want(u.quick(u.key), 200, "scored")
	tell("deleted", "canceled", u.from, u.from.Add(31*day), 3*time.Second)
	u.want(u.quick(u.key), 429, "quota")
}

// TestPassWhoseRenewalNobodyTold checks a period that was renewed without a notice: the next call
// that needs the pass reads the renewal from the provider.
func TestPassWhoseRenewalNobodyTold(t *testing.T) {
	t.Parallel()
	u := newSubscriber(t)
	u.site.clock.Add(31 * day)
	u.useMonth()
	u.want(u.quick(u.key), 429, "quota")
	u.fake.subscription("cus_p", "active", u.from.Add(30*day), u.from.Add(60*day), false)
	u.want(u.quick(u.key), 429, "quota") // the provider was asked a moment ago and is not asked again
	u.site.clock.Add(time.Minute)
	u.want(u.quick(u.key), 200, "scored")
}

func (u *subscriber) customer() string {
	u.t.Helper()
	id, err := u.site.app.CustomerByEmail(u.t.Context(), "ada@example.com")
	if err != nil {
		u.t.Fatal(err)
	}
	return id
}

// TestPassStream checks which stream of the ledger contains a call that was charged to the pass.
func TestPassStream(t *testing.T) {
	t.Parallel()
	u := newSubscriber(t)
	u.useMonth()
	for range 3 {
		u.want(u.quick(u.key), 200, "scored")
	}
	stream := fmt.Sprintf("pass/sub_%s/%d", u.fake.last, u.from.Unix())
	history, err := u.site.app.Ledger.Read(t.Context(), u.site.app.Ledger.Service(u.customer()), stream)
	if err != nil || len(history.Events) != 3 {
		t.Fatalf("%s has %d events, %v", stream, len(history.Events), err)
	}
	for i, e := range history.Events {
		var call events.CallCompleted
		if err := u.site.app.Vault.Open(t.Context(), e, &call); err != nil || call.Charge != "pass" || call.UsedCents != i+1 || call.PriceCents != 1 {
			t.Errorf("%d: %+v, %v", i, call, err)
		}
	}
	usage, err := u.site.app.Ledger.Version(t.Context(), u.site.app.Ledger.Service(u.customer()), "usage/"+u.customer()+"/"+u.from.UTC().Format("2006-01"))
	if err != nil || usage != accounts.FreeCallsPerMonth {
		t.Errorf("%d free calls of the account, %v", usage, err)
	}
}

func TestAccountKeys(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	ada, eve := s.signedIn(t, "ada@example.com"), s.signedIn(t, "eve@example.com")
	ada.want(s.browser(t).post("/api/account/keys", ``), 401, "authentication required")
	ada.want(ada.post("/api/account/keys", `{"email":"x@example.com"}`), 400, "unknown member")
	ada.want(ada.post("/api/account/keys", ``, "Origin", "https://evil.example"), 403, "cross-origin")
	u := &subscriber{browser: ada, site: s}
	first, second := u.newKey(), u.newKey()
	var list struct {
		Keys []struct{ KeyID, Prefix, State string }
	}
	read := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(ada.get("/api/account/keys").body), &list); err != nil || len(list.Keys) != 2 {
			t.Fatalf("%v in %s", err, ada.get("/api/account/keys").body)
		}
	}
	read()
	if strings.Contains(ada.get("/api/account/keys").body, first[18:61]) || list.Keys[0].Prefix != first[:17] || list.Keys[1].Prefix != second[:17] {
		t.Errorf("%+v", list)
	}
	eve.want(eve.get("/api/account/keys"), 200, `{"keys":[],"nextCursor":null}`)
	eve.want(eve.do("DELETE", "/api/account/keys/"+list.Keys[0].KeyID, "", ""), 404, "key not found")
	u.want(u.quick(first), 200, "scored")
	ada.want(ada.do("DELETE", "/api/account/keys/"+list.Keys[0].KeyID, "", ""), 200, "revoked")
	ada.want(ada.do("DELETE", "/api/account/keys/"+list.Keys[0].KeyID, "", ""), 200, "revoked")
	u.want(u.quick(first), 401, "API key is not valid")
	u.want(u.quick(second), 200, "scored")
	u.want(s.browser(t).get("/api/keys/free/status", "X-API-Key", second), 200, `"callsUsed":2`) // calls of the account, not of this key
	if read(); list.Keys[0].State != "revoked" || list.Keys[1].State != "active" {
		t.Errorf("%+v", list)
	}
}

// TestAccountKeysOnThePage checks that a customer can issue and revoke a key on the account page,
// and that no other customer can revoke it.
func TestAccountKeysOnThePage(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	ada := s.signedIn(t, "ada@example.com")
	got := ada.follow(ada.form("/account/keys", nil))
	key := regexp.MustCompile(`svck_[A-Za-z0-9_-]{63}`).FindString(got.body)
	if got.status != 200 || key == "" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	u := &subscriber{browser: ada, site: s}
	u.want(u.quick(key), 200, "scored")
	used := s.clock.Now().UTC().Format("2 January 2006, 15:04:05 UTC")
	s.clock.Add(9 * time.Minute)
	ada.form("/account/keys", nil)
	page := ada.get("/account")
	ada.want(page, 200, `title="`+used+`"><span class="ago">9 minutes ago`)
	ada.want(page, 200, `data-label="Last use">never`)
	ada.want(page, 200, `<code>`+key[:17]+`</code></td><td data-label="State"><span class="badge active">active</span>`)
	id := regexp.MustCompile(`name="keyId" value="(key_[0-9A-Z]{26})"`).FindStringSubmatch(page.body)
	if id == nil || strings.Contains(page.body, key) {
		t.Fatalf("%s", page.body)
	}
	eve := s.signedIn(t, "eve@example.com")
	eve.want(eve.form("/account/keys/revoke", url.Values{"keyId": {id[1]}, "reason": {"leaked"}}), 404, "key not found")
	ada.want(ada.form("/account/keys/revoke", url.Values{"keyId": {id[1]}, "reason": {"leaked"}}, "Origin", "https://evil.example"), 403, "cross-origin")
	ada.want(ada.form("/account/keys/revoke", url.Values{"keyId": {id[1]}, "reason": {"leaked"}}), 303, "")
	ada.want(ada.get("/account"), 200, `<code>`+key[:17]+`</code></td><td data-label="State"><span class="badge revoked">revoked</span>`)
	u.want(u.quick(key), 401, "API key is not valid")
	s.browser(t).want(s.browser(t).form("/account/keys", nil), 401, "nothing recorded")
}
