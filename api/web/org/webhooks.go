package org

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// webhooksPage is the data of the page that lists webhooks.
type webhooksPage struct {
	Webhooks  []webhookShown
	Topics    []topicShown
	MayManage bool
	Fresh     bool // the person signed in recently enough for changes
}

// webhookShown is a webhook with the number of its messages that were given up.
type webhookShown struct {
	webhooks.WebhookInfo
	Dead int
}

// webhookPage is the data of the page of one webhook, with its messages.
type webhookPage struct {
	webhooks.WebhookInfo
	Secret     string // new secret, which only this answer shows
	State      string // state of the listed messages; empty means all states
	States     []string
	Deliveries []projections.Delivery
	Most       int // largest number of listed messages
	Dead       int // number of messages that were given up
	MayManage  bool
	Fresh      bool
}

// topicShown is a topic with a description of its messages.
type topicShown struct {
	Name, About string
	Usual       bool
}

var webhookTopics = []topicShown{
	{webhooks.TopicReviews, "decisions that wait for a person", true},
	{webhooks.TopicViolations, "receipts that contradict their decision", true},
	{webhooks.TopicDecisions, "every decision", true},
	{webhooks.TopicCheckpoints, "every signed checkpoint of the ledger", false},
}

// deliveryStates are the states of a message to a webhook.
var deliveryStates = []string{"due", "sent", "dead"}

func (r *Room) showWebhooks(v *web.Visit) (web.View, error) {
	ctx, p := v.Request.Context(), v.Principal
	page := webhooksPage{Topics: webhookTopics, MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	list, err := r.Webhooks.ListWebhooks(ctx, p)
	if err != nil {
		return web.View{}, err
	}
	for _, hook := range list {
		dead, err := r.Projections.Deliveries(ctx, p.OrgID, hook.WebhookID, "dead", query.MostDelivered)
		if err != nil {
			return web.View{}, query.Error(err)
		}
		page.Webhooks = append(page.Webhooks, webhookShown{hook, len(dead)})
	}
	return web.View{Template: "webhooks.html", Data: page}, nil
}

// postWebhook creates a webhook and redirects to the page that shows its secret once.
func (r *Room) postWebhook(v *web.Visit) (web.View, error) {
	if len(v.Form["topic"]) == 0 { // the API takes an empty list as the usual topics; on the page it means that no box was ticked
		return web.View{}, policy.Refuse("missing_field", "/topic", "tick at least one topic for the webhook")
	}
	created, err := r.Webhooks.CreateWebhook(v.Request.Context(), v.Principal, webhooks.WebhookOrder{
		URL: strings.TrimSpace(v.Form.Get("url")), Topics: v.Form["topic"], Name: strings.TrimSpace(v.Form.Get("name"))})
	if err != nil {
		return web.View{}, err
	}
	return v.ShowOnce("/webhooks/"+created.WebhookID, created.Secret)
}

func (r *Room) postRotateWebhook(v *web.Visit) (web.View, error) {
	rotated, err := r.Webhooks.RotateWebhook(v.Request.Context(), v.Principal, v.Vars["id"])
	if err != nil {
		return web.View{}, err
	}
	return v.ShowOnce("/webhooks/"+rotated.WebhookID, rotated.Secret)
}

func (r *Room) showWebhook(v *web.Visit) (web.View, error) {
	state := v.Request.URL.Query().Get("state")
	if state != "" && !slices.Contains(deliveryStates, state) {
		return web.View{}, policy.Refuse("invalid_enum", "/state", "state must be due, sent or dead")
	}
	page, err := r.webhookPage(v.Request.Context(), v.Principal, v.Vars["id"], state)
	if err != nil {
		return web.View{}, err
	}
	shows := web.View{Template: "webhook.html"}
	page.Secret, shows.Cookie = v.ShownOnce()
	shows.Data = page
	return shows, nil
}

func (r *Room) webhookPage(ctx context.Context, p organizations.Principal, id, state string) (webhookPage, error) {
	page := webhookPage{State: state, States: deliveryStates, Most: query.MostDelivered,
		MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	var err error
	if page.Deliveries, err = r.deliveries().List(ctx, p, id, state); err != nil {
		return page, err
	}
	dead, err := r.Projections.Deliveries(ctx, p.OrgID, id, "dead", query.MostDelivered)
	if err != nil {
		return page, query.Error(err)
	}
	page.Dead = len(dead)
	list, err := r.Webhooks.ListWebhooks(ctx, p)
	if err != nil {
		return page, err
	}
	i := slices.IndexFunc(list, func(hook webhooks.WebhookInfo) bool { return hook.WebhookID == id })
	if i < 0 { // the webhook was removed a moment ago
		return page, policy.Refuse(ground.CodeNotFound, "", "webhook not found")
	}
	page.WebhookInfo = list[i]
	return page, nil
}

// Called returns the name of the webhook on pages.
func (w webhookPage) Called() string { return calledWebhook(w.WebhookInfo) }

// Called returns the name of the webhook on pages.
func (w webhookShown) Called() string { return calledWebhook(w.WebhookInfo) }

func calledWebhook(w webhooks.WebhookInfo) string { return cmp.Or(w.Name, w.Origin, w.WebhookID) }

func (r *Room) postSendAgain(v *web.Visit) (web.View, error) {
	_, err := r.deliveries().SendAgain(v.Request.Context(), v.Principal, v.Vars["id"], v.Form.Get("messageId"))
	return web.View{Location: "/webhooks/" + v.Vars["id"], Done: "The messages will be sent again."}, err
}

func (r *Room) postRemoveWebhook(v *web.Visit) (web.View, error) {
	reason, err := reasonIn(v)
	if err != nil {
		return web.View{}, err
	}
	err = r.Webhooks.RemoveWebhook(v.Request.Context(), v.Principal, v.Vars["id"], reason)
	return web.View{Location: "/webhooks", Done: "Webhook removed. Its messages that were not sent are dropped."}, err
}
