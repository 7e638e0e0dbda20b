// Package decisions serves Agent Commerce Assurance over HTTP: decisions, approvals and receipts
// with their history, and the policies that the decisions follow. The rules are in
// policy/assurance, and commands/decisions records the decisions.
package decisions

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/shape"
	"github.com/countersign/countersign/projections"
)

// Decisions serves decisions, approvals and receipts. Package policy/assurance parses the requests
// itself, because it needs amounts exactly as they were written, and its error texts are part of
// the contract.
type Decisions struct {
	Commands    *decisions.Decisions
	Projections *projections.Projections
	Reviews     *mail.Reviews
	Telemetry   *request.Telemetry
}

// Operations lists the operations on decisions, approvals and receipts.
func (s *Decisions) Operations() []*op.Operation {
	return []*op.Operation{
		Decide.Does(s.decide), listDecisions.Does(s.listDecisions), BindReceipt.Does(s.bindReceipt), AssuranceHistory.Does(s.assuranceHistory),
		GetDecision.Does(s.showRecord(events.TypeDecisionRecorded)), GetStanding.Does(s.getStanding), GetReceipt.Does(s.getReceipt),
		GetApproval.Does(s.showRecord(events.TypeApprovalRecorded)), approve.Does(s.approve),
	}
}

// signedDecision, signedReceipt and signedApproval describe the answers for the contract. Each
// answer is a signed envelope (seal.Envelope).
type signedDecision struct {
	Record    assurance.DecisionRecord `json:"record"`
	Integrity seal.Integrity           `json:"integrity"`
	Ledger    seal.LedgerPosition      `json:"ledger"`
	Verify    seal.VerifyAt            `json:"verify"`
}

type signedReceipt struct {
	Record    assurance.ReceiptRecord `json:"record"`
	Integrity seal.Integrity          `json:"integrity"`
	Ledger    seal.LedgerPosition     `json:"ledger"`
	Verify    seal.VerifyAt           `json:"verify"`
}

type signedApproval struct {
	Record    assurance.ApprovalRecord `json:"record"`
	Integrity seal.Integrity           `json:"integrity"`
	Ledger    seal.LedgerPosition      `json:"ledger"`
	Verify    seal.VerifyAt            `json:"verify"`
}

// Decide is the operation that decides on one action.
var Decide = &op.Operation{
	ID: "assurance_decide", Method: http.MethodPost, Path: "/api/assurance/decisions",
	Summary: "Decide one exact x402 purchase or MCP tool call under the organization's active policy: a signed allow, deny or needs_review. " +
		"needs_review waits for a person: GET /api/assurance/decisions/{decisionId}/approval is 404 until one has said approved or rejected; act on approved before its validUntil. " +
		"One idempotencyKey per purchase you intend. On every retry, also after a timeout or a 503, send the SAME key; never make a new key for the same purchase.",
	Access: credential.WithRight(organizations.RightDecide), Input: reflect.TypeFor[assurance.DecisionInput](), Parses: true, Output: reflect.TypeFor[signedDecision](),
	Example: `{"protocol":"x402","idempotencyKey":"purchase-1","subject":{"runId":"run-1"},"intent":{"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact","network":"base","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`,
	Success: http.StatusCreated, Replays: true, Limit: assurance.MaxDecisionBody, Errors: []int{400, 401, 403, 409, 413, 503},
	Refuses: []string{"out_of_range"}, Conditions: shape.Intent(),
}

func (s *Decisions) decide(c *op.Call) (op.Reply, error) {
	asked, err := assurance.ParseDecision(c.Text)
	if err != nil {
		return op.Reply{}, err
	}
	if c.IdempotencyKey != "" && c.IdempotencyKey != asked.IdempotencyKey {
		return op.Reply{}, policy.Refuse("inconsistent_input", "/idempotencyKey", "idempotencyKey and the Idempotency-Key header differ")
	}
	decided, err := s.Commands.Decide(c.Request.Context(), c.Principal, asked)
	if decided.Decision == assurance.NeedsReview {
		s.Reviews.Tell(c.Principal, decided.Envelope)
	}
	return signed(request.Recorded(s.Telemetry.Decisions, "decision", decided, err))
}

// signed answers with a signed record: 201 for a new one, or 200 with the same bytes for a stored
// one.
func signed(r decisions.Recorded, err error) (op.Reply, error) {
	if err != nil {
		return op.Reply{}, err
	}
	answer, err := enveloped(r.Envelope)
	if r.Replayed {
		answer.Status = http.StatusOK
		answer.Header.Set("Idempotent-Replayed", "true")
	}
	return answer, err
}

// enveloped returns an answer with a signed record.
func enveloped(e seal.Envelope) (op.Reply, error) {
	text, err := e.Canonical()
	return op.Reply{Body: text, Header: op.Private()}, err
}

// BindReceipt is the operation that records the observed outcome of an execution.
var BindReceipt = &op.Operation{
	ID: "assurance_bind_receipt", Method: http.MethodPost, Path: "/api/assurance/receipts",
	Summary: "Record the observed result of an execution in a signed receipt, one per decision. A receipt that contradicts its decision is recorded with that finding, not refused.",
	Access:  credential.WithRight(organizations.RightReceipt), Input: reflect.TypeFor[assurance.ReceiptInput](), Parses: true, Output: reflect.TypeFor[signedReceipt](),
	Example: `{"decisionId":"asd_01JD3Z8W5T0000000000000000","decisionRecordHash":"156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf","bindingHash":"8a1632e12f297cb347be32c679594af321227936049d1812b0b16da77a86cd2d","protocol":"x402","outcome":"fulfilled","responseStatus":200}`,
	Success: http.StatusCreated, Replays: true, Limit: assurance.MaxReceiptBody, Errors: []int{400, 401, 403, 409, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Decisions) bindReceipt(c *op.Call) (op.Reply, error) {
	asked, err := assurance.ParseReceipt(c.Text)
	if err != nil {
		return op.Reply{}, err
	}
	bound, err := s.Commands.BindReceipt(c.Request.Context(), c.Principal, asked)
	return signed(request.Recorded(s.Telemetry.Receipts, "conformance", bound, err))
}

var approve = &op.Operation{
	ID: "assurance_approve", Method: http.MethodPost, Path: "/api/assurance/decisions/{decisionId}/approval",
	Summary: "Approve or reject a decision that needs a review, as a signed record: once per decision, not by the person who requested it. An approval is valid for 15 minutes.",
	Access:  credential.WithRight(organizations.RightApprove), Input: reflect.TypeFor[assurance.ApprovalInput](), Parses: true, Output: reflect.TypeFor[signedApproval](),
	Example: `{"verdict":"approved","reason":"Known supplier, amount agreed."}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 404, 409, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Decisions) approve(c *op.Call) (op.Reply, error) {
	in, err := assurance.ParseApproval(c.Text)
	if err != nil {
		return op.Reply{}, err
	}
	said, err := s.Commands.Approve(c.Request.Context(), c.Principal, c.Vars["decisionId"], in)
	return signed(request.Recorded(s.Telemetry.Approvals, "verdict", said, err))
}

// GetDecision is the operation that returns the record of a decision.
var GetDecision = recordOperation("assurance_get_decision", "/api/assurance/decisions/{decisionId}",
	"A recorded decision with its signature.", reflect.TypeFor[signedDecision]())

// GetApproval is the operation that returns a person's verdict on a decision.
var GetApproval = recordOperation("assurance_get_approval", "/api/assurance/decisions/{decisionId}/approval",
	"The signed approval or rejection of a decision that needs a review: 404 until a person has reviewed it. Act only on verdict approved, before validUntil. The decision's own record does not change.", reflect.TypeFor[signedApproval]())

// GetStanding is the operation that returns whether a decision is still in effect.
var GetStanding = &op.Operation{
	ID: "assurance_get_standing", Method: http.MethodGet, Path: "/api/assurance/decisions/{decisionId}/standing",
	Summary: "Report whether a decision may still be acted on. An emergency stop, or a new policy that denies the action, ends earlier allows and approvals. Ask just before executing.",
	Access:  credential.WithRight(organizations.RightRead), Output: reflect.TypeFor[decisions.Standing](), Errors: []int{401, 403, 404, 503},
}

func (s *Decisions) getStanding(c *op.Call) (op.Reply, error) {
	standing, err := s.Commands.Standing(c.Request.Context(), c.Principal, c.Vars["decisionId"])
	return op.Reply{Value: standing, Header: op.Private()}, err
}

func recordOperation(id, path, summary string, output reflect.Type) *op.Operation {
	return &op.Operation{
		ID: id, Method: http.MethodGet, Path: path, Summary: summary,
		Access: credential.WithRight(organizations.RightRead), Output: output, Errors: []int{401, 403, 404, 503},
	}
}

// showRecord returns a handler that answers with the record that is stored in the decision's
// event of type eventType.
func (s *Decisions) showRecord(eventType string) func(*op.Call) (op.Reply, error) {
	return func(c *op.Call) (op.Reply, error) { return s.record(c, c.Vars["decisionId"], eventType) }
}

func (s *Decisions) record(c *op.Call, decisionID, eventType string) (op.Reply, error) {
	envelope, err := s.Commands.Record(c.Request.Context(), c.Principal, decisionID, eventType)
	if err != nil {
		return op.Reply{}, err
	}
	return enveloped(envelope)
}

// GetReceipt is the operation that returns a receipt.
var GetReceipt = &op.Operation{
	ID: "assurance_get_receipt", Method: http.MethodGet, Path: "/api/assurance/receipts/{receiptId}",
	Summary: "A recorded receipt with its signature.",
	Access:  credential.WithRight(organizations.RightRead), Output: reflect.TypeFor[signedReceipt](), Errors: []int{401, 403, 404, 503},
}

func (s *Decisions) getReceipt(c *op.Call) (op.Reply, error) {
	decisionID, err := s.Projections.DecisionOfReceipt(c.Request.Context(), c.Principal.OrgID, c.Vars["receiptId"])
	if err != nil {
		return op.Reply{}, query.Error(err)
	}
	return s.record(c, decisionID, events.TypeReceiptRecorded)
}

// AssuranceHistory is the operation that lists an organization's decisions and receipts.
var AssuranceHistory = &op.Operation{
	ID: "assurance_history", Method: http.MethodGet, Path: "/api/assurance/history",
	Summary: "The organization's decisions and receipts, the newest first. Query: limit (default 25, clamped to 1 to 100), cursor (nextCursor of the page before). Other parameters are ignored and named in warnings.",
	Query: []op.Parameter{
		{Name: "limit", Description: "Largest number of items in a page, clamped to 1 to 100; 25 if missing or malformed.", Schema: op.Object{"type": "integer", "minimum": 1, "maximum": 100, "default": 25}},
		{Name: "cursor", Description: "nextCursor of the page before.", Schema: op.Object{"type": "string", "maxLength": 200}},
	},
	Access: credential.WithRight(organizations.RightRead), Output: reflect.TypeFor[projections.HistoryPage](), Errors: []int{401, 403, 503},
}

func (s *Decisions) assuranceHistory(c *op.Call) (op.Reply, error) {
	var actors []string
	if c.Principal.OwnOnly() {
		var err error
		if actors, err = s.Commands.OwnActors(c.Request.Context(), c.Principal); err != nil {
			return op.Reply{}, err
		}
	}
	asked, warnings := op.Understood(c.Request.URL.RawQuery, "limit", "cursor")
	if _, is := op.ReadLimit(asked.Get("limit")); !is && asked.Get("limit") != "" {
		warnings = append(warnings, "limit is not a whole number: 25 is used")
	}
	page, err := s.Projections.History(c.Request.Context(), c.Principal.OrgID, actors, op.PageLimit(asked.Get("limit")), asked.Get("cursor"))
	if err != nil {
		return op.Reply{}, query.Error(err)
	}
	page.Warnings = append(page.Warnings, warnings...)
	body, err := canon.Marshal(page)
	return op.Reply{Body: body, Header: op.Private()}, err
}
