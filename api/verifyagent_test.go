package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
)

// agentLink registers an agent with an e-mail address, and returns its id and the secret in the
// e-mail.
func (b *browser) agentLink(email string) (clientID, token string) {
	b.t.Helper()
	got := b.post("/api/auth/register", `{"client_name":"free money at evil.example","identity_type":"verified_email","email":"`+email+`"}`)
	b.want(got, http.StatusCreated, `"identity_type":"verified_email"`)
	var made struct {
		ClientID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(got.body), &made); err != nil {
		b.t.Fatal(err)
	}
	message := b.site.outbox.Messages()[0]
	if message.To != strings.ToLower(email) || !strings.Contains(message.Text, made.ClientID) || strings.Contains(message.Subject+message.Text, "evil.example") {
		b.t.Errorf("the e-mail: %+v", message)
	}
	found := linkPattern.FindStringSubmatch(message.Text)
	if found == nil || !strings.HasPrefix(message.Link, b.site.app.BaseURL+"/agents/confirm?token=") {
		b.t.Fatalf("the link: %s", message.Link)
	}
	return made.ClientID, found[1]
}

// TestMailedLinkVerifiesAnAgent checks that an agent with verified_email is verified when its
// owner confirms the link in the e-mail. Opening the link, as scanners do, verifies nothing.
func TestMailedLinkVerifiesAnAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	clientID, token := b.agentLink("Ada@example.com")
	head := func() int64 { return api.Total(t, s.app) }
	before := head()
	for range 3 {
		b.want(b.get("/agents/confirm?token="+token), 200, `value="`+token+`"`)
		b.want(b.do(http.MethodHead, "/agents/confirm?token="+token, "", ""), 200, "")
	}
	b.want(b.form("/agents/confirm?token="+token, url.Values{}), 410, "was used or has expired")
	b.want(b.form("/agents/confirm", url.Values{"token": {token}}, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403, "cross-origin")
	if head() != before {
		t.Error("looking at the link verified the agent")
	}
	b.want(b.form("/agents/confirm", url.Values{"token": {token}}), 200, "<code>"+clientID+"</code> is verified")
	added := int64(3) // customer.created, agent.verified, credit.granted
	if s.app.Ledger.Home(clientID).Number() != 0 {
		added++ // another credit.granted, if the agent is not in the partition that counts these
	}
	if head() != before+added {
		t.Errorf("%d events", head()-before)
	}
	b.want(b.form("/agents/confirm", url.Values{"token": {token}}), 410, "was used or has expired")
	if b.cookie() != "" {
		t.Error("verifying an agent signed somebody in")
	}
	_, old := b.agentLink("ada@example.com")
	s.clock.Add(10 * time.Minute)
	b.want(b.form("/agents/confirm", url.Values{"token": {old}}), 410, "was used or has expired")
	if strings.Contains(s.logs.String(), token) || strings.Contains(strings.ToLower(s.logs.String()), "ada@example.com") {
		t.Error("the log holds a secret or an address")
	}
}

// TestVerifiedEmailNeedsMail checks that an agent with verified_email is not registered without a
// mail server, because its owner cannot be asked. An agent without an address needs no mail
// server: it is verified when it is claimed.
func TestVerifiedEmailNeedsMail(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", nil)
	b := s.browser(t)
	before := api.Total(t, s.app)
	b.want(b.post("/api/auth/register", `{"client_name":"buyer","identity_type":"verified_email","email":"ada@example.com"}`), 503,
		`{"error":"temporarily_unavailable","error_description":"mail is not configured: the operator must set SMTP_URL"}`)
	if after := api.Total(t, s.app); after != before {
		t.Errorf("%d events", after-before)
	}
	b.want(b.post("/api/auth/register", `{"client_name":"buyer","identity_type":"verified_email"}`), 201, "verified_email")
	broken := newSiteWith(t, api.Databases.New(t), "", nil, func(c *api.Config) { c.Mail = brokenMail{} })
	b = broken.browser(t)
	b.want(b.post("/api/auth/register", `{"client_name":"buyer","identity_type":"verified_email","email":"ada@example.com"}`), 503,
		`{"error":"temporarily_unavailable","error_description":"the e-mail could not be sent: try again"}`)
	if strings.Contains(broken.logs.String(), "ada@example.com") {
		t.Error("the log holds the address that the mail server repeated")
	}
}
