package api_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
)

var secretPattern = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]{44}`)

// TestWebhookPages checks that an owner can create a webhook, sees its secret once, finds messages
// that could not be delivered, sends them again, rotates the secret and removes the webhook, all
// with plain forms.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	s, views := telling(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner, r := c.people["owner"], newReceiver(t)
	r.status.Store(http.StatusGone) // messages are dead at once
	owner.want(owner.get("/webhooks"), 200, "No webhook yet.")
	owner.want(owner.get("/overview"), 200, `<a href="/webhooks">Webhooks</a>`)
	owner.want(owner.form("/webhooks", url.Values{"url": {"http://example.com/in"}, "topic": {"reviews"}}), 400, "url must be an https address")
	owner.want(owner.form("/webhooks", url.Values{"url": {r.URL + "/in"}}), 400, "tick at least one topic for the webhook")
	owner.want(owner.get("/webhooks"), 200, "No webhook yet.")
	made := owner.follow(owner.form("/webhooks", url.Values{"url": {r.URL + "/in?key=theirs-alone"}, "name": {"siem"}, "topic": {"decisions"}}))
	owner.want(made, 200, "It is shown only once")
	secret := secretPattern.FindString(html.UnescapeString(made.body))
	list := owner.get("/webhooks")
	place := regexp.MustCompile(`/webhooks/whk_[0-9A-Z]+`).FindString(list.body)
	if secret == "" || place == "" || strings.Contains(list.body, "whsec_") || strings.Contains(list.body, "theirs-alone") {
		t.Fatalf("secret %q, place %q: %s", secret, place, list.body)
	}

	c.decide(t, decisionBody("k1", weather)).want(t, 201, "")
	first := r.next(t)
	for len(deliveriesOf(t, c.tenant, views, strings.TrimPrefix(place, "/webhooks/"), "dead")) != 1 {
	}
	owner.want(owner.get("/webhooks"), 200, "1 dead message")
	for _, path := range []string{place, place + "?state=dead"} {
		owner.want(owner.get(path), 200, "the receiver answered 410")
	}
	owner.want(owner.get(place+"?state=sent"), 200, "No message is sent.")
	owner.want(owner.get(place+"?state=lost"), 400, "state must be due, sent or dead")
	r.status.Store(http.StatusNoContent)
	owner.want(owner.form(place+"/again", url.Values{"messageId": {"0:1:decisions"}}), 404, "message not found")
	owner.want(owner.form(place+"/again", url.Values{"messageId": {first.id}}), 303, "")
	if again := r.next(t); again.id != first.id {
		t.Errorf("another message: %s", again.id)
	}

	rotated := owner.follow(owner.form(place+"/rotate", url.Values{}))
	owner.want(rotated, 200, "Messages are also signed with the previous secret")
	if found := secretPattern.FindString(html.UnescapeString(rotated.body)); found == "" || found == secret {
		t.Errorf("rotated to %q", found)
	}
	if secretPattern.MatchString(html.UnescapeString(owner.get(place).body)) {
		t.Error("a secret is shown a second time")
	}
	owner.want(owner.form(place+"/remove", url.Values{}), 400, "reason must be given")
	owner.want(owner.form(place+"/remove", url.Values{"reason": {"not used any more"}}), 303, "")
	owner.want(owner.get(place), 404, "webhook not found")
}

// TestWebhookPagesByRole checks that a member without the right to manage can at most read.
func TestWebhookPagesByRole(t *testing.T) {
	t.Parallel()
	s, _ := telling(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	place := "/webhooks/" + c.webhook(t, newReceiver(t)).WebhookID
	auditor, developer := c.people["auditor"], c.people["developer"]
	for _, path := range []string{"/webhooks", place} {
		page := auditor.get(path)
		auditor.want(page, 200, "Webhook")
		if strings.Contains(page.body, `action="/webhooks`) {
			t.Errorf("%s offers an auditor what they may not do", path)
		}
		developer.want(developer.get(path), 403, "missing role")
	}
	if strings.Contains(developer.get("/overview").body, `href="/webhooks"`) {
		t.Error("a developer is led where they may not look")
	}
	for _, b := range []*browser{auditor, developer} {
		for _, path := range []string{"/webhooks", place + "/again", place + "/rotate", place + "/remove"} {
			b.want(b.form(path, url.Values{"url": {"https://example.com"}, "sure": {"yes"}}), 403, "missing role")
		}
	}
}
