// Package webhooks exchanges messages with the machines of an organization. It manages webhooks,
// sends their messages, and receives the logs that guards of coding agents report.
package webhooks

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Webhooks manages an organization's webhooks and receives guard logs. Deliveries sends the
// messages.
type Webhooks struct {
	Commands    *webhooks.Webhooks
	Projections *projections.Projections
}

// queries returns the queries about messages that pages share with the API.
func (s *Webhooks) queries() query.Deliveries {
	return query.Deliveries{Commands: s.Commands, Projections: s.Projections}
}

// Operations lists the operations on webhooks.
func (s *Webhooks) Operations() []*op.Operation {
	return []*op.Operation{listWebhooks.Does(s.listWebhooks), createWebhook.Does(s.createWebhook), rotateWebhook.Does(s.rotateWebhook),
		removeWebhook.Does(s.removeWebhook), listDeliveries.Does(s.listDeliveries), sendAgain.Does(s.sendAgain)}
}

type webhookList struct {
	Webhooks []webhooks.WebhookInfo `json:"webhooks"`
}

var listWebhooks = &op.Operation{
	ID: "list_webhooks", Method: http.MethodGet, Path: "/api/assurance/webhooks",
	Summary: "The organization's webhooks, without their secrets.",
	Access:  credential.WithRight(organizations.RightMembers), Output: reflect.TypeFor[webhookList](), Errors: []int{401, 403, 503},
}

func (s *Webhooks) listWebhooks(c *op.Call) (op.Reply, error) {
	list, err := s.Commands.ListWebhooks(c.Request.Context(), c.Principal)
	return op.Reply{Value: webhookList{list}}, err
}

type webhookOrder struct {
	URL    string   `json:"url" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"https address that accepts POST. It is stored encrypted."`
	Topics []string `json:"topics,omitempty" jsonschema:"minItems=1,maxItems=4,uniqueItems=true,enum=checkpoints,enum=decisions,enum=reviews,enum=violations" jsonschema_description:"Topics of the messages; decisions, reviews and violations by default."`
	Name   string   `json:"name,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// RefusesNull makes the parser refuse null for a member. Null would silently mean the usual
// topics.
func (webhookOrder) RefusesNull() {}

var createWebhook = &op.Operation{
	Creates: true, ID: "create_webhook", Method: http.MethodPost, Path: "/api/assurance/webhooks",
	Summary: "Create a webhook that receives decisions, violations, waiting reviews and checkpoints as CloudEvents, signed as in Standard Webhooks. The secret is shown once. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[webhookOrder](), Output: reflect.TypeFor[webhooks.CreatedWebhook](),
	Example: `{"url":"https://siem.example.com/countersign","topics":["reviews","violations"]}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 409, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Webhooks) createWebhook(c *op.Call) (op.Reply, error) {
	var in webhookOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	created, err := s.Commands.CreateWebhook(c.Request.Context(), c.Principal, webhooks.WebhookOrder{URL: in.URL, Topics: in.Topics, Name: in.Name})
	return op.Reply{Value: created}, err
}

var rotateWebhook = &op.Operation{
	Creates: true, ID: "rotate_webhook", Method: http.MethodPost, Path: "/api/assurance/webhooks/{id}/rotate",
	Summary: "Give a webhook a new secret, which is shown once. For 24 hours the old secret also signs. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Output: reflect.TypeFor[webhooks.CreatedWebhook](),
	Success: http.StatusCreated, Errors: []int{401, 403, 404, 409, 503},
}

func (s *Webhooks) rotateWebhook(c *op.Call) (op.Reply, error) {
	rotated, err := s.Commands.RotateWebhook(c.Request.Context(), c.Principal, c.Vars["id"])
	return op.Reply{Value: rotated}, err
}

var removeWebhook = &op.Operation{
	ID: "remove_webhook", Method: http.MethodDelete, Path: "/api/assurance/webhooks/{id}",
	Summary: "Remove a webhook and drop its unsent messages. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Output: reflect.TypeFor[op.Ended](), Errors: []int{401, 403, 404, 503},
}

func (s *Webhooks) removeWebhook(c *op.Call) (op.Reply, error) {
	err := s.Commands.RemoveWebhook(c.Request.Context(), c.Principal, c.Vars["id"], "")
	return op.Reply{Value: op.Ended{ID: c.Vars["id"], State: "removed"}}, err
}

type deliveryList struct {
	Deliveries []projections.Delivery `json:"deliveries"`
}

var listDeliveries = &op.Operation{
	ID: "list_webhook_deliveries", Method: http.MethodGet, Path: "/api/assurance/webhooks/{id}/deliveries",
	Summary: "The newest 100 messages to a webhook, with their state; ?state=dead lists the messages that were given up.",
	Access:  credential.WithRight(organizations.RightMembers), Output: reflect.TypeFor[deliveryList](), Errors: []int{401, 403, 404, 503},
}

func (s *Webhooks) listDeliveries(c *op.Call) (op.Reply, error) {
	list, err := s.queries().List(c.Request.Context(), c.Principal, c.Vars["id"], c.Request.URL.Query().Get("state"))
	return op.Reply{Value: deliveryList{list}}, err
}

type sendAgainOrder struct {
	MessageID string `json:"messageId,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Id of one message, sent or dead; by default all dead messages are sent again."`
}

// RefusesNull makes the parser refuse null for a member. Null would silently mean every message.
func (sendAgainOrder) RefusesNull() {}

type sentAgain struct {
	Due int `json:"due" jsonschema_description:"Messages that will be sent again."`
}

var sendAgain = &op.Operation{
	ID: "send_webhook_again", Method: http.MethodPost, Path: "/api/assurance/webhooks/{id}/deliveries",
	Summary: "Send one message of a webhook again, or all dead messages. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[sendAgainOrder](), Output: reflect.TypeFor[sentAgain](),
	Example: `{"messageId":"0:4711:decisions"}`, Errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Webhooks) sendAgain(c *op.Call) (op.Reply, error) {
	var in sendAgainOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	n, err := s.queries().SendAgain(c.Request.Context(), c.Principal, c.Vars["id"], in.MessageID)
	return op.Reply{Value: sentAgain{n}}, err
}
