package web

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// webhooksPage is the addresses an organization is told at.
type webhooksPage struct {
	Webhooks  []webhookShown
	Topics    []topicShown
	MayManage bool
	Fresh     bool // signed in a moment ago, as changes need
}

// webhookShown is a webhook with the number of messages that are given up.
type webhookShown struct {
	webhooks.WebhookInfo
	Dead int
}

// webhookPage is one webhook with what was sent to it.
type webhookPage struct {
	webhooks.WebhookInfo
	Secret     string // a new one, this once
	State      string // of the messages that are listed; empty: any
	States     []string
	Deliveries []projections.Delivery
	Most       int // messages are listed
	Dead       int // messages that are given up
	MayManage  bool
	Fresh      bool
}

// topicShown is a topic and what a webhook is told of by it.
type topicShown struct {
	Name, About string
	Usual       bool
}

var webhookTopics = []topicShown{
	{webhooks.TopicReviews, "decisions that wait for a person", true},
	{webhooks.TopicViolations, "receipts that contradict their decision", true},
	{webhooks.TopicDecisions, "every decision", true},
	{webhooks.TopicCheckpoints, "every signed head of the ledger", false},
}

// deliveryStates are what may become of a message.
var deliveryStates = []string{"due", "sent", "dead"}

func showWebhooks(s *Handler, v *visit) (view, error) {
	p := v.principal
	ctx := v.request.Context()
	page := webhooksPage{Topics: webhookTopics, MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	list, err := s.app.ListWebhooks(ctx, p)
	if err != nil {
		return view{}, err
	}
	for _, hook := range list {
		dead, err := s.projections.Deliveries(ctx, p.OrgID, hook.WebhookID, "dead", query.MostDelivered)
		if err != nil {
			return view{}, query.Error(err)
		}
		page.Webhooks = append(page.Webhooks, webhookShown{hook, len(dead)})
	}
	return view{template: "webhooks.html", data: page}, nil
}

// postWebhook makes a webhook and leads to the page that shows its secret once.
func postWebhook(s *Handler, v *visit) (view, error) {
	if len(v.form["topic"]) == 0 { // a program that names none gets the usual ones; a person has seen the boxes
		return view{}, policy.Refuse("missing_field", "/topic", "tick what the webhook is told of: at least one box")
	}
	created, err := s.app.CreateWebhook(v.request.Context(), v.principal, webhooks.WebhookOrder{
		URL: strings.TrimSpace(v.form.Get("url")), Topics: v.form["topic"], Name: strings.TrimSpace(v.form.Get("name"))})
	if err != nil {
		return view{}, err
	}
	return s.showOnce(v, "/webhooks/"+created.WebhookID, created.Secret)
}

func postRotateWebhook(s *Handler, v *visit) (view, error) {
	rotated, err := s.app.RotateWebhook(v.request.Context(), v.principal, v.vars["id"])
	if err != nil {
		return view{}, err
	}
	return s.showOnce(v, "/webhooks/"+rotated.WebhookID, rotated.Secret)
}

func showWebhook(s *Handler, v *visit) (view, error) {
	state := v.request.URL.Query().Get("state")
	if state != "" && !slices.Contains(deliveryStates, state) {
		return view{}, policy.Refuse("invalid_enum", "/state", "state must be due, sent or dead")
	}
	page, err := s.webhookPage(v.request.Context(), v.principal, v.vars["id"], state)
	if err != nil {
		return view{}, err
	}
	shows := view{template: "webhook.html"}
	page.Secret, shows.cookie = s.shownOnce(v)
	shows.data = page
	return shows, nil
}

func (s *Handler) webhookPage(ctx context.Context, p organizations.Principal, id, state string) (webhookPage, error) {
	page := webhookPage{State: state, States: deliveryStates, Most: query.MostDelivered,
		MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	var err error
	if page.Deliveries, err = s.deliveries().List(ctx, p, id, state); err != nil {
		return page, err
	}
	dead, err := s.projections.Deliveries(ctx, p.OrgID, id, "dead", query.MostDelivered)
	if err != nil {
		return page, query.Error(err)
	}
	page.Dead = len(dead)
	list, err := s.app.ListWebhooks(ctx, p)
	if err != nil {
		return page, err
	}
	i := slices.IndexFunc(list, func(hook webhooks.WebhookInfo) bool { return hook.WebhookID == id })
	if i < 0 { // removed a moment ago
		return page, policy.Refuse(ground.CodeNotFound, "", "webhook not found")
	}
	page.WebhookInfo = list[i]
	return page, nil
}

// Called is what people call the webhook.
func (w webhookPage) Called() string { return calledWebhook(w.WebhookInfo) }

// Called is what people call the webhook.
func (w webhookShown) Called() string { return calledWebhook(w.WebhookInfo) }

func calledWebhook(w webhooks.WebhookInfo) string { return cmp.Or(w.Name, w.Origin, w.WebhookID) }

func postSendAgain(s *Handler, v *visit) (view, error) {
	_, err := s.deliveries().SendAgain(v.request.Context(), v.principal, v.vars["id"], v.form.Get("messageId"))
	return view{location: "/webhooks/" + v.vars["id"]}, err
}

func postRemoveWebhook(s *Handler, v *visit) (view, error) {
	if v.form.Get("sure") != "yes" {
		return view{}, policy.Refuse("missing_field", "/sure", "tick the box: what waits for the webhook is dropped")
	}
	err := s.app.RemoveWebhook(v.request.Context(), v.principal, v.vars["id"], "removed on its page")
	return view{location: "/webhooks"}, err
}
