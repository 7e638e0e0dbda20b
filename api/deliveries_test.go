package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/webhook"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/projections"
)

// heard is one attempt that reached a receiver.
type heard struct {
	id, signature string
	input         string // Signature-Input header of the signature with the published key
	at            time.Time
	body          []byte
	event         forms.CloudEvent
}

// receiver is a customer's endpoint. It answers with status.
type receiver struct {
	*httptest.Server
	status atomic.Int32
	got    chan heard
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan heard, 1000)}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		seconds, err2 := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64)
		h := heard{id: req.Header.Get("webhook-id"), signature: req.Header.Get("webhook-signature"), input: req.Header.Get("Signature-Input"), at: time.Unix(seconds, 0), body: body}
		if err3 := json.Unmarshal(body, &h.event); err != nil || err2 != nil || err3 != nil || req.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" {
			t.Errorf("a message: %v, %v, %v, %v", err, err2, err3, req.Header)
		}
		w.WriteHeader(int(r.status.Load()))
		r.got <- h
	}))
	t.Cleanup(r.Close)
	return r
}

// next returns the next attempt. It waits long enough for a busy machine.
func (r *receiver) next(t *testing.T) heard {
	t.Helper()
	select {
	case h := <-r.got:
		return h
	case <-time.After(time.Minute):
		t.Fatal("no message came")
	}
	return heard{}
}

// telling returns a node that sends messages to webhooks on this machine.
func telling(t *testing.T, db *ledgertest.DB) (s *site, views *projections.Projections) {
	t.Helper()
	s = newSiteWith(t, db, "", mail.NewOutbox(slog.New(slog.DiscardHandler)), func(c *api.Config) {
		c.App.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		views = c.Projections
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() { s.server.Deliver(ctx) })
	t.Cleanup(func() { stop(); done.Wait() })
	return s, views
}

func (n *tenant) webhook(t *testing.T, r *receiver, topics ...string) webhooks.CreatedWebhook {
	t.Helper()
	created, err := n.site.app.CreateWebhook(t.Context(), n.operator, webhooks.WebhookOrder{URL: r.URL + "/in", Topics: topics})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func secretOf(t *testing.T, shown string) []byte {
	t.Helper()
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(shown, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// dueNow makes all waiting messages due.
func dueNow(t *testing.T, s *site) {
	t.Helper()
	if _, err := s.app.Ledger.Pool().Exec(t.Context(), `update webhook_deliveries set due_at = now() where state = 'due'`); err != nil {
		t.Fatal(err)
	}
}

// TestWebhooksTellWhatHappened checks that decisions, violations and waiting reviews are sent
// signed, with their position and a unique id. An organization does not receive topics that it did
// not choose, or events of other organizations.
func TestWebhooksTellWhatHappened(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	s, shown := telling(t, db)
	n, other := newTenant(t, s, "team", "ada@example.com"), newTenant(t, s, "team", "bob@example.com")
	all, reviews, foreign := newReceiver(t), newReceiver(t), newReceiver(t)
	created := n.webhook(t, all)
	n.webhook(t, reviews, "reviews")
	other.webhook(t, foreign)
	n.decide(t, decisionBody("k1", weather)).want(t, 201, "")
	d := n.decide(t, decisionBody("k2", strings.Replace(weather, `"network":"base",`, "", 1))).decision(t)
	n.send(t, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled"}`,
		d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash)).want(t, 201, "")

	topics, ids := map[string]int{}, map[string]bool{}
	for range 4 {
		h := all.next(t)
		topics[h.event.Topic]++
		ids[h.id] = true
		if want := webhook.Sign([][]byte{secretOf(t, created.Secret)}, h.id, h.at, h.body); h.signature != want {
			t.Errorf("signature %s, want %s", h.signature, want)
		}
		if signer, _, err := s.app.ActiveSigner(t.Context(), n.orgID); err != nil || !strings.Contains(h.input, `;keyid="`+signer.KeyID()+`";`) {
			t.Errorf("signature input %s, %v", h.input, err)
		}
		partition, place, _ := strings.Cut(h.id, ":")
		position, topic, _ := strings.Cut(place, ":")
		at, err := strconv.ParseInt(position, 10, 64)
		e, err2 := shown.Event(t.Context(), n.orgID, at)
		if err != nil || err2 != nil || h.event.ID != e.EventID || h.event.Type != "countersign."+e.Type || h.event.Subject != e.Stream ||
			h.event.Position != position || h.event.Topic != topic || h.event.Source != ledgertest.Origin+"/"+partition ||
			partition != fmt.Sprint(s.app.Ledger.Home(n.orgID).Number()) ||
			h.event.PartitionKey != n.orgID || h.event.SpecVersion != "1.0" {
			t.Errorf("%s: %+v, %v, %v", h.id, h.event, err, err2)
		}
	}
	want := map[string]int{"decisions": 2, "reviews": 1, "violations": 1}
	if fmt.Sprint(topics) != fmt.Sprint(want) || len(ids) != 4 {
		t.Errorf("messages %v with %d ids, want %v", topics, len(ids), want)
	}
	h := reviews.next(t)
	data, _ := h.event.Data.(map[string]any)
	if h.event.Type != "countersign.decision.recorded" || data["decisionId"] != d.Record.DecisionID || data["decision"] != "needs_review" {
		t.Errorf("review: %s", h.body)
	}
	if len(all.got)+len(reviews.got)+len(foreign.got) > 0 {
		t.Error("more messages than wanted")
	}
}

// TestDeadMessagesAreKeptAndSentAgain checks that a message that failed is sent again with the
// same id, and that a dead message is kept, and sent again if a member asks for it.
func TestDeadMessagesAreKeptAndSentAgain(t *testing.T) {
	t.Parallel()
	s, views := telling(t, api.Databases.New(t))
	n, r := newTenant(t, s, "team", "ada@example.com"), newReceiver(t)
	created := n.webhook(t, r)
	r.status.Store(http.StatusInternalServerError)
	n.decide(t, decisionBody("k1", weather)).want(t, 201, "")
	first := r.next(t)
	for len(deliveriesOf(t, n, views, created.WebhookID, "due")) != 1 || deliveriesOf(t, n, views, created.WebhookID, "due")[0].Status == 0 {
	}
	if _, err := s.app.Ledger.Pool().Exec(t.Context(), `update webhook_deliveries set attempts = 9`); err != nil {
		t.Fatal(err)
	}
	dueNow(t, s)
	if last := r.next(t); last.id != first.id || string(last.body) != string(first.body) {
		t.Fatalf("the last attempt is another message: %s", last.body)
	}
	var dead []projections.Delivery
	for len(dead) == 0 {
		dead = deliveriesOf(t, n, views, created.WebhookID, "dead")
	}
	if d := dead[0]; d.MessageID != first.id || d.Attempts != 10 || d.Status != 500 || d.Error != "the receiver answered 500" {
		t.Errorf("dead: %+v", d)
	}
	r.status.Store(http.StatusOK)
	if sent, err := views.SendAgain(t.Context(), n.orgID, created.WebhookID, ""); err != nil || sent != 1 {
		t.Errorf("%d sent again, %v", sent, err)
	}
	if again := r.next(t); again.id != first.id {
		t.Errorf("another message: %s", again.id)
	}
}

func deliveriesOf(t *testing.T, n *tenant, views *projections.Projections, id, state string) []projections.Delivery {
	t.Helper()
	list, err := views.Deliveries(t.Context(), n.orgID, id, state, 100)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestGoneIsDeadAtOnce checks that a message is not retried if the receiver answers 410 (Gone).
func TestGoneIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	s, views := telling(t, api.Databases.New(t))
	n, r := newTenant(t, s, "team", "ada@example.com"), newReceiver(t)
	created := n.webhook(t, r)
	r.status.Store(http.StatusGone)
	n.decide(t, decisionBody("k1", weather)).want(t, 201, "")
	r.next(t)
	for len(deliveriesOf(t, n, views, created.WebhookID, "dead")) != 1 {
	}
}

// TestMessagesOutliveTheirNode checks that another node sends a message if its node dies. If two
// nodes try to take a message at once, the receiver gets it once.
func TestMessagesOutliveTheirNode(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	dying := newSiteWith(t, db, "", nil, func(c *api.Config) {
		c.App.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	n, r := newTenant(t, dying, "team", "ada@example.com"), newReceiver(t)
	n.webhook(t, r)
	n.decide(t, decisionBody("k1", weather)).want(t, 201, "")
	taker, err := projections.Start(t.Context(), dying.app.Ledger, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	var taken []projections.Delivery
	for len(taken) == 0 {
		if taken, err = taker.Take(t.Context(), time.Hour, nil, 10); err != nil {
			t.Fatal(err)
		}
	}
	one, _ := telling(t, db)
	telling(t, db)
	if len(r.got) > 0 {
		t.Fatal("sent by one who had not taken it")
	}
	dueNow(t, one) // simulates the end of the lease
	if h := r.next(t); h.id != taken[0].MessageID {
		t.Errorf("message %s, want %s", h.id, taken[0].MessageID)
	}
	for i := range 20 {
		n.decide(t, decisionBody(fmt.Sprint("more", i), weather)).want(t, 201, "")
	}
	ids := map[string]bool{}
	for range 20 {
		ids[r.next(t).id] = true
	}
	if len(ids) != 20 || len(r.got) > 0 {
		t.Errorf("%d messages, %d more than once", len(ids), len(r.got))
	}
}

// TestRemovedWebhookGetsNothing checks that a removed webhook gets no message, not even a waiting
// one.
func TestRemovedWebhookGetsNothing(t *testing.T) {
	t.Parallel()
	s, views := telling(t, api.Databases.New(t))
	n, r := newTenant(t, s, "team", "ada@example.com"), newReceiver(t)
	created := n.webhook(t, r)
	r.status.Store(http.StatusInternalServerError)
	n.decide(t, decisionBody("k1", weather)).want(t, 201, "")
	r.next(t)
	if err := s.app.RemoveWebhook(t.Context(), n.operator, created.WebhookID, "moved"); err != nil {
		t.Fatal(err)
	}
	n.decide(t, decisionBody("k2", weather)).want(t, 201, "")
	if left := deliveriesOf(t, n, views, created.WebhookID, ""); len(left) > 0 || len(r.got) > 0 {
		t.Errorf("left %+v, got %d more", left, len(r.got))
	}
}

// TestWebhookOperations checks that an owner can create, list, rotate and remove webhooks over
// HTTP.
func TestWebhookOperations(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", mail.NewOutbox(slog.New(slog.DiscardHandler)), func(c *api.Config) {
		c.App.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	newTenant(t, s, "team", "ada@example.com")
	ada := s.browser(t)
	ada.signIn("ada@example.com")
	got := ada.post("/api/assurance/webhooks", `{"url":"https://siem.example.com/in?k=S3CRET","topics":["reviews"]}`)
	got.want(t, 201, "")
	var created webhooks.CreatedWebhook
	if err := json.Unmarshal([]byte(got.body), &created); err != nil || !strings.HasPrefix(created.Secret, "whsec_") || strings.Contains(got.body, "S3CRET") {
		t.Fatalf("%s, %v", got.body, err)
	}
	path := "/api/assurance/webhooks/" + created.WebhookID
	if got := ada.get("/api/assurance/webhooks"); got.status != 200 || !strings.Contains(got.body, `"origin":"https://siem.example.com"`) || strings.Contains(got.body, "whsec_") {
		t.Errorf("list: %d %s", got.status, got.body)
	}
	if got := ada.post(path+"/rotate", ""); got.status != 201 || !strings.Contains(got.body, `"secret":"whsec_`) {
		t.Errorf("rotate: %d %s", got.status, got.body)
	}
	if got := ada.get(path + "/deliveries?state=dead"); got.body != `{"deliveries":[]}` {
		t.Errorf("deliveries: %d %s", got.status, got.body)
	}
	if got := ada.post(path+"/deliveries", `{}`); got.body != `{"due":0}` {
		t.Errorf("send again: %d %s", got.status, got.body)
	}
	ada.post(path+"/deliveries", `{"messageId":"0:1:decisions"}`).want(t, 404, "message not found")
	ada.post("/api/assurance/webhooks", `{"url":"https://10.0.0.1/"}`).want(t, 400, "url must not be a private address (the operator can allow networks with WEBHOOK_NETWORKS)")
	if got := ada.do("DELETE", path, "", ""); got.status != 200 || !strings.Contains(got.body, `"removed"`) {
		t.Errorf("remove: %d %s", got.status, got.body)
	}
	ada.get(path+"/deliveries").want(t, 404, "webhook not found")
}

// TestWebhooksTellOfCheckpoints checks that a webhook for checkpoints receives a signed note that
// covers all events. A copy that the service cannot change later proves a rollback of the history.
func TestWebhooksTellOfCheckpoints(t *testing.T) {
	t.Parallel()
	s, views := telling(t, api.Databases.New(t))
	n, r := newTenant(t, s, "team", "ada@example.com"), newReceiver(t)
	created := n.webhook(t, r, "checkpoints")
	d := n.decide(t, decisionBody("k1", weather)).decision(t)
	n.decide(t, decisionBody("k2", weather)).want(t, 201, "")
	if waiting := deliveriesOf(t, n, views, created.WebhookID, "due"); len(waiting) != 1 {
		t.Errorf("%d messages wait, want one for all that has happened", len(waiting))
	}
	s.keepCheckpoints(t)
	for len(r.got) == 0 { // a checkpoint will soon cover the decisions
		dueNow(t, s)
	}
	h := r.next(t)
	data, _ := h.event.Data.(map[string]any)
	note, _ := data["note"].(string)
	size, _ := data["size"].(float64)
	if h.event.Type != "countersign.checkpoint.signed" || !strings.HasPrefix(note, fmt.Sprintf("%s/%d\n", ledgertest.Origin, d.Ledger.Partition)) || int64(size) < d.Ledger.Position || h.event.Position != fmt.Sprint(int64(size)) {
		t.Errorf("checkpoint: %s", h.body)
	}
}
