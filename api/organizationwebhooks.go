package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// webhookOperations are the addresses an organization is told at. What is sent to
// them is in deliveries.go.
func (s *Server) webhookOperations() []*operation {
	return []*operation{listWebhooks.does(s.listWebhooks), createWebhook.does(s.createWebhook), rotateWebhook.does(s.rotateWebhook),
		removeWebhook.does(s.removeWebhook), listDeliveries.does(s.listDeliveries), sendAgain.does(s.sendAgain)}
}

type webhookList struct {
	Webhooks []webhooks.WebhookInfo `json:"webhooks"`
}

var listWebhooks = &operation{
	id: "list_webhooks", method: http.MethodGet, path: "/api/assurance/webhooks",
	summary: "The organization's webhooks, without their secrets.",
	access:  credential.WithRight(organizations.RightMembers), output: reflect.TypeFor[webhookList](), errors: []int{401, 403, 503},
}

func (s *Server) listWebhooks(c *call) (reply, error) {
	list, err := s.app.ListWebhooks(c.request.Context(), c.Principal)
	return reply{value: webhookList{list}}, err
}

type webhookOrder struct {
	URL    string   `json:"url" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"https address that takes POST; it is stored sealed."`
	Topics []string `json:"topics,omitempty" jsonschema:"minItems=1,maxItems=4,uniqueItems=true,enum=checkpoints,enum=decisions,enum=reviews,enum=violations" jsonschema_description:"decisions, reviews and violations by default."`
	Name   string   `json:"name,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// RefusesNull marks what chooses what is told to whom: null would mean the usual topics.
func (webhookOrder) RefusesNull() {}

var createWebhook = &operation{
	anew: true, id: "create_webhook", method: http.MethodPost, path: "/api/assurance/webhooks",
	summary: "Be told of decisions, violations, waiting reviews and checkpoints by CloudEvents, signed as Standard Webhooks. The secret is shown once. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), input: reflect.TypeFor[webhookOrder](), output: reflect.TypeFor[webhooks.CreatedWebhook](),
	example: `{"url":"https://siem.example.com/countersign","topics":["reviews","violations"]}`,
	success: http.StatusCreated, errors: []int{400, 401, 403, 409, 413, 503},
}

func (s *Server) createWebhook(c *call) (reply, error) {
	var in webhookOrder
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	created, err := s.app.CreateWebhook(c.request.Context(), c.Principal, webhooks.WebhookOrder{URL: in.URL, Topics: in.Topics, Name: in.Name})
	return reply{value: created}, err
}

var rotateWebhook = &operation{
	anew: true, id: "rotate_webhook", method: http.MethodPost, path: "/api/assurance/webhooks/{id}/rotate",
	summary: "Give a webhook a new secret, shown once; the old one signs beside it for 24 hours. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), output: reflect.TypeFor[webhooks.CreatedWebhook](),
	success: http.StatusCreated, errors: []int{401, 403, 404, 409, 503},
}

func (s *Server) rotateWebhook(c *call) (reply, error) {
	rotated, err := s.app.RotateWebhook(c.request.Context(), c.Principal, c.vars["id"])
	return reply{value: rotated}, err
}

var removeWebhook = &operation{
	id: "remove_webhook", method: http.MethodDelete, path: "/api/assurance/webhooks/{id}",
	summary: "End a webhook; what waits for it is dropped. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), output: reflect.TypeFor[state](), errors: []int{401, 403, 404, 503},
}

func (s *Server) removeWebhook(c *call) (reply, error) {
	err := s.app.RemoveWebhook(c.request.Context(), c.Principal, c.vars["id"], "")
	return reply{value: state{c.vars["id"], "removed"}}, err
}

type deliveryList struct {
	Deliveries []projections.Delivery `json:"deliveries"`
}

var listDeliveries = &operation{
	id: "list_webhook_deliveries", method: http.MethodGet, path: "/api/assurance/webhooks/{id}/deliveries",
	summary: "The newest 100 messages to a webhook and what became of them; ?state=dead lists those that are given up.",
	access:  credential.WithRight(organizations.RightMembers), output: reflect.TypeFor[deliveryList](), errors: []int{401, 403, 404, 503},
}

func (s *Server) listDeliveries(c *call) (reply, error) {
	list, err := s.web.Deliveries(c.request.Context(), c.Principal, c.vars["id"], c.request.URL.Query().Get("state"))
	return reply{value: deliveryList{list}}, err
}

type sendAgainOrder struct {
	MessageID string `json:"messageId,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"One message, sent or dead; without it every dead one."`
}

// RefusesNull marks what chooses messages: null would mean every one.
func (sendAgainOrder) RefusesNull() {}

type sentAgain struct {
	Due int `json:"due" jsonschema_description:"Messages that will be sent again."`
}

var sendAgain = &operation{
	id: "send_webhook_again", method: http.MethodPost, path: "/api/assurance/webhooks/{id}/deliveries",
	summary: "Send dead messages of a webhook again, or one message. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), input: reflect.TypeFor[sendAgainOrder](), output: reflect.TypeFor[sentAgain](),
	example: `{"messageId":"0:4711:decisions"}`, errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Server) sendAgain(c *call) (reply, error) {
	var in sendAgainOrder
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	n, err := s.web.SendAgain(c.request.Context(), c.Principal, c.vars["id"], in.MessageID)
	return reply{value: sentAgain{n}}, err
}
