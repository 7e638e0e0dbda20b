package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
)

// mailbox returns a function that waits until the e-mails of one kind are sent, and returns the
// e-mails since its last call, newest first. sent waits for them: it is ReviewMessages or
// DraftMessages.
func (s *site) mailbox(sent func(now bool)) func(now bool) []mail.Message {
	seen := len(s.outbox.Messages())
	return func(now bool) []mail.Message {
		sent(now)
		all := s.outbox.Messages()
		messages := all[:len(all)-seen]
		seen = len(all)
		return messages
	}
}

// recipients returns the addresses to which messages were sent, sorted.
func recipients(messages []mail.Message) (addresses []string) {
	for _, m := range messages {
		addresses = append(addresses, m.To)
	}
	slices.Sort(addresses)
	return addresses
}

// TestReviewersAreTold checks that each member who may resolve a decision gets an e-mail with the
// exact action and who requested it, and that many decisions lead to few e-mails.
func TestReviewersAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	fresh := s.mailbox(s.server.ReviewMessages)
	unclear := strings.Replace(weather, `"network":"base",`, "", 1)
	both := []string{"admin@acme.example", "owner@acme.example"}

	id := c.decide(t, decisionBody("k1", unclear)).decision(t).Record.DecisionID
	t.Run("each reviewer gets an e-mail with the action", func(t *testing.T) {
		messages := fresh(false)
		if !slices.Equal(recipients(messages), both) {
			t.Fatalf("e-mails to %s", recipients(messages))
		}
		for _, part := range []string{id, "resourceUrl: “https://api.weather.example/v1/forecast?city=Oslo”", "amountUnits: “250000”",
			"needs review (x402.network.missing, network):", "Approve or reject it: " + s.app.BaseURL + "/reviews/" + id + "?org=" + c.orgID} {
			if !strings.Contains(messages[0].Text, part) {
				t.Errorf("the e-mail lacks %q:\n%s", part, messages[0].Text)
			}
		}
		if !strings.Contains(messages[0].Text, "“agent-7” wants to pay 250000 units of an unknown token to “api.weather.example”.\nThe policy requires that a person approves it:") || !strings.Contains(messages[0].Text, "Run: “run-1”") {
			t.Errorf("the e-mail does not say who asks: %s", messages[0].Text)
		}
		if messages[0].Link != s.app.BaseURL+"/reviews/"+id+"?org="+c.orgID {
			t.Errorf("link %s, text %s", messages[0].Link, messages[0].Text)
		}
	})

	t.Run("many decisions lead to few e-mails", func(t *testing.T) {
		c.decide(t, decisionBody("k1", unclear)) // a repeated request
		c.decide(t, decisionBody("allowed", weather))
		for n := range 3 {
			c.decide(t, decisionBody(fmt.Sprint("more", n), unclear))
		}
		if messages := fresh(false); len(messages) != 0 {
			t.Errorf("%d e-mails too early", len(messages))
		}
		if messages := fresh(true); !slices.Equal(recipients(messages), both) || !strings.Contains(messages[0].Text, "\n4 decisions in total wait for a review: "+s.app.BaseURL+"/reviews?org="+c.orgID) {
			t.Errorf("the later e-mails: %+v", messages)
		}
		if messages := fresh(true); len(messages) != 0 {
			t.Errorf("%d e-mails about nothing", len(messages))
		}
	})
	admin := c.people["admin"]
	resolve := func(t *testing.T, id string) {
		admin := admin.in(t)
		admin.want(admin.post("/api/assurance/decisions/"+id+"/approval", `{"verdict":"rejected","reason":"no"}`), 201, "rejected")
	}
	t.Run("the e-mail describes the newest decision that still waits", func(t *testing.T) {
		// The e-mail describes the newest decision that still waits, and states how many wait. It
		// omits decisions that were resolved in the meantime.
		c.decide(t, decisionBody("n0", unclear))
		fresh(false)
		n1, n2 := c.decide(t, decisionBody("n1", unclear)).decision(t).Record.DecisionID, c.decide(t, decisionBody("n2", unclear)).decision(t).Record.DecisionID
		resolve(t, n2)
		resolve(t, id)
		if messages := fresh(true); len(messages) != 2 || !strings.Contains(messages[0].Text, n1) || !strings.Contains(messages[0].Text, "\n5 decisions in total wait for a review: ") {
			t.Errorf("the e-mail about what still waits: %+v", messages)
		}
	})
	t.Run("nobody is told about a resolved decision", func(t *testing.T) {
		n3 := c.decide(t, decisionBody("n3", unclear)).decision(t).Record.DecisionID
		resolve(t, n3)
		if messages := fresh(true); len(messages) != 0 {
			t.Errorf("%d e-mails about what was resolved", len(messages))
		}
	})
	t.Run("an admin is not told about an own request", func(t *testing.T) {
		admin := admin.in(t)
		fresh(true) // simulates the end of the pause
		admin.want(admin.post("/api/assurance/decisions", decisionBody("mine", unclear)), 201, "needs_review")
		if messages := fresh(false); !slices.Equal(recipients(messages), []string{"owner@acme.example"}) {
			t.Errorf("of an admin's own decision: %s", recipients(messages))
		}
	})
	t.Run("the log holds no address", func(t *testing.T) {
		if strings.Contains(s.logs.String(), "acme.example") {
			t.Error("the log holds an address")
		}
	})
	clean(t, s)
}

// TestATeamsOnlyAdminIsTold checks that the only admin gets the e-mail about their own request,
// because there is no other reviewer.
func TestATeamsOnlyAdminIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	newTenant(t, s, "team", "ada@example.com")
	ada := s.browser(t)
	ada.signIn("ada@example.com")
	ada.want(ada.post("/api/assurance/decisions", decisionBody("k", strings.Replace(weather, `"network":"base",`, "", 1))), 201, "needs_review")
	s.server.ReviewMessages(false)
	if l := s.outbox.Messages()[0]; l.To != "ada@example.com" || !strings.Contains(l.Subject, "Payment of 250000 units of an unknown token waits for your review: asd_") {
		t.Errorf("%+v", l)
	}
}

// refusing is a mail server that refuses everything. Its errors contain the address.
type refusing struct{}

func (refusing) Send(_ context.Context, l mail.Message) error {
	return errors.New("550 no such mailbox")
}

// TestDecisionsDoNotWaitForTheMail checks that an e-mail that cannot be sent is logged, that none
// is sent after Close, and that the decision is recorded nevertheless.
func TestDecisionsDoNotWaitForTheMail(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", nil, func(c *api.Config) { c.Mail = refusing{} })
	n := newTenant(t, s, "team", "ada@example.com")
	unclear := strings.Replace(weather, `"network":"base",`, "", 1)
	n.decide(t, decisionBody("k1", unclear)).decision(t)
	s.server.ReviewMessages(false)
	if log := s.logs.String(); !strings.Contains(log, "reviewers could not be notified") || strings.Contains(log, "ada@") {
		t.Errorf("log %s", log)
	}
	s.server.Close(t.Context())
	s.server.Close(t.Context())
	told := strings.Count(s.logs.String(), "reviewers could not be notified")
	n.decide(t, decisionBody("k2", unclear)).decision(t)
	s.server.ReviewMessages(true)
	if again := strings.Count(s.logs.String(), "reviewers could not be notified"); again != told {
		t.Error("an e-mail after the closing")
	}
	clean(t, s)
}
