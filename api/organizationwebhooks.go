package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// webhookOperations are the addresses an organization is told at. What is sent to
// them is in deliveries.go.
func (s *Server) webhookOperations() []*op.Operation {
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

func (s *Server) listWebhooks(c *op.Call) (op.Reply, error) {
	list, err := s.app.ListWebhooks(c.Request.Context(), c.Principal)
	return op.Reply{Value: webhookList{list}}, err
}

type webhookOrder struct {
	URL    string   `json:"url" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"https address that takes POST; it is stored sealed."`
	Topics []string `json:"topics,omitempty" jsonschema:"minItems=1,maxItems=4,uniqueItems=true,enum=checkpoints,enum=decisions,enum=reviews,enum=violations" jsonschema_description:"decisions, reviews and violations by default."`
	Name   string   `json:"name,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// RefusesNull marks what chooses what is told to whom: null would mean the usual topics.
func (webhookOrder) RefusesNull() {}

var createWebhook = &op.Operation{
	Anew: true, ID: "create_webhook", Method: http.MethodPost, Path: "/api/assurance/webhooks",
	Summary: "Be told of decisions, violations, waiting reviews and checkpoints by CloudEvents, signed as Standard Webhooks. The secret is shown once. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[webhookOrder](), Output: reflect.TypeFor[webhooks.CreatedWebhook](),
	Example: `{"url":"https://siem.example.com/countersign","topics":["reviews","violations"]}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 409, 413, 503},
}

func (s *Server) createWebhook(c *op.Call) (op.Reply, error) {
	var in webhookOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	created, err := s.app.CreateWebhook(c.Request.Context(), c.Principal, webhooks.WebhookOrder{URL: in.URL, Topics: in.Topics, Name: in.Name})
	return op.Reply{Value: created}, err
}

var rotateWebhook = &op.Operation{
	Anew: true, ID: "rotate_webhook", Method: http.MethodPost, Path: "/api/assurance/webhooks/{id}/rotate",
	Summary: "Give a webhook a new secret, shown once; the old one signs beside it for 24 hours. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Output: reflect.TypeFor[webhooks.CreatedWebhook](),
	Success: http.StatusCreated, Errors: []int{401, 403, 404, 409, 503},
}

func (s *Server) rotateWebhook(c *op.Call) (op.Reply, error) {
	rotated, err := s.app.RotateWebhook(c.Request.Context(), c.Principal, c.Vars["id"])
	return op.Reply{Value: rotated}, err
}

var removeWebhook = &op.Operation{
	ID: "remove_webhook", Method: http.MethodDelete, Path: "/api/assurance/webhooks/{id}",
	Summary: "End a webhook; what waits for it is dropped. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Output: reflect.TypeFor[state](), Errors: []int{401, 403, 404, 503},
}

func (s *Server) removeWebhook(c *op.Call) (op.Reply, error) {
	err := s.app.RemoveWebhook(c.Request.Context(), c.Principal, c.Vars["id"], "")
	return op.Reply{Value: state{c.Vars["id"], "removed"}}, err
}

type deliveryList struct {
	Deliveries []projections.Delivery `json:"deliveries"`
}

var listDeliveries = &op.Operation{
	ID: "list_webhook_deliveries", Method: http.MethodGet, Path: "/api/assurance/webhooks/{id}/deliveries",
	Summary: "The newest 100 messages to a webhook and what became of them; ?state=dead lists those that are given up.",
	Access:  credential.WithRight(organizations.RightMembers), Output: reflect.TypeFor[deliveryList](), Errors: []int{401, 403, 404, 503},
}

func (s *Server) listDeliveries(c *op.Call) (op.Reply, error) {
	list, err := s.deliveryQueries().List(c.Request.Context(), c.Principal, c.Vars["id"], c.Request.URL.Query().Get("state"))
	return op.Reply{Value: deliveryList{list}}, err
}

type sendAgainOrder struct {
	MessageID string `json:"messageId,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"One message, sent or dead; without it every dead one."`
}

// RefusesNull marks what chooses messages: null would mean every one.
func (sendAgainOrder) RefusesNull() {}

type sentAgain struct {
	Due int `json:"due" jsonschema_description:"Messages that will be sent again."`
}

var sendAgain = &op.Operation{
	ID: "send_webhook_again", Method: http.MethodPost, Path: "/api/assurance/webhooks/{id}/deliveries",
	Summary: "Send dead messages of a webhook again, or one message. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[sendAgainOrder](), Output: reflect.TypeFor[sentAgain](),
	Example: `{"messageId":"0:4711:decisions"}`, Errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Server) sendAgain(c *op.Call) (op.Reply, error) {
	var in sendAgainOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	n, err := s.deliveryQueries().SendAgain(c.Request.Context(), c.Principal, c.Vars["id"], in.MessageID)
	return op.Reply{Value: sentAgain{n}}, err
}
