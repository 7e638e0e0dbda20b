package api

import (
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// assuranceOperations are the endpoints of Agent Commerce Assurance. Requests are
// read by package assurance itself: its amounts must be seen as they were written
// and its texts are those of the contract.
func (s *Server) assuranceOperations() []*operation {
	table := []*operation{
		decide.does(s.decide), listDecisions.does(s.listDecisions), bindReceipt.does(s.bindReceipt), assuranceHistory.does(s.assuranceHistory),
		getDecision.does(s.showRecord(events.TypeDecisionRecorded)), getStanding.does(s.getStanding), getReceipt.does(s.getReceipt),
		getApproval.does(s.showRecord(events.TypeApprovalRecorded)), approve.does(s.approve),
	}
	for _, op := range table {
		op.bareErrors = true
	}
	return table
}

// signedDecision, signedReceipt and signedApproval describe the answers, which
// are signed envelopes (seal.Envelope) and nothing else.
type signedDecision struct {
	Record    assurance.DecisionRecord `json:"record"`
	Integrity seal.Integrity           `json:"integrity"`
	Ledger    seal.Place               `json:"ledger"`
	Verify    seal.VerifyAt            `json:"verify"`
}

type signedReceipt struct {
	Record    assurance.ReceiptRecord `json:"record"`
	Integrity seal.Integrity          `json:"integrity"`
	Ledger    seal.Place              `json:"ledger"`
	Verify    seal.VerifyAt           `json:"verify"`
}

type signedApproval struct {
	Record    assurance.ApprovalRecord `json:"record"`
	Integrity seal.Integrity           `json:"integrity"`
	Ledger    seal.Place               `json:"ledger"`
	Verify    seal.VerifyAt            `json:"verify"`
}

var decide = &operation{
	id: "assurance_decide", method: http.MethodPost, path: "/api/assurance/decisions",
	summary: "A signed allow, deny or needs_review about one exact x402 purchase or MCP tool call, under the organization's active policy. " +
		"needs_review waits for a person: GET /api/assurance/decisions/{decisionId}/approval is 404 until one has said approved or rejected; act on approved before its validUntil. " +
		"One idempotencyKey per purchase you intend. On every retry, also after a timeout or a 503, send the SAME key; never make a new key for the same purchase.",
	access: credential.WithRight(organizations.RightDecide), input: reflect.TypeFor[assurance.DecisionInput](), parses: true, output: reflect.TypeFor[signedDecision](),
	example: `{"protocol":"x402","idempotencyKey":"purchase-1","subject":{"runId":"run-1"},"intent":{"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact","network":"base","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`,
	success: http.StatusCreated, replays: true, limit: assurance.MaxDecisionBody, errors: []int{400, 401, 403, 409, 413, 503},
}

func (s *Server) decide(c *call) (reply, error) {
	request, err := assurance.ParseDecision(c.text)
	if err != nil {
		return reply{}, err
	}
	if c.idempotencyKey != "" && c.idempotencyKey != request.IdempotencyKey {
		return reply{}, policy.Refuse("inconsistent_input", "/idempotencyKey", "idempotencyKey and the Idempotency-Key header differ")
	}
	decided, err := s.app.Decide(c.request.Context(), c.Principal, request)
	if decided.Decision == assurance.NeedsReview {
		s.reviews.Tell(c.Principal, decided.Envelope)
	}
	return signed(recorded(s.metrics.decisions, "decision", decided, err))
}

// signed answers 201 for a new record and 200 for a stored one, with the same
// octets.
func signed(r decisions.Recorded, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	answer, err := enveloped(r.Envelope)
	if r.Replayed {
		answer.status = http.StatusOK
		answer.header.Set("Idempotent-Replayed", "true")
	}
	return answer, err
}

// enveloped is an envelope as it is answered.
func enveloped(e seal.Envelope) (reply, error) {
	text, err := e.Canonical()
	return reply{body: text, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}

var bindReceipt = &operation{
	id: "assurance_bind_receipt", method: http.MethodPost, path: "/api/assurance/receipts",
	summary: "Bind what was observed of an execution to its decision: a signed receipt, one per decision. What contradicts the decision is recorded, not refused.",
	access:  credential.WithRight(organizations.RightReceipt), input: reflect.TypeFor[assurance.ReceiptInput](), parses: true, output: reflect.TypeFor[signedReceipt](),
	example: `{"decisionId":"asd_01JD3Z8W5T0000000000000000","decisionRecordHash":"156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf","bindingHash":"8a1632e12f297cb347be32c679594af321227936049d1812b0b16da77a86cd2d","protocol":"x402","outcome":"fulfilled","responseStatus":200}`,
	success: http.StatusCreated, replays: true, limit: assurance.MaxReceiptBody, errors: []int{400, 401, 403, 409, 413, 503},
}

func (s *Server) bindReceipt(c *call) (reply, error) {
	request, err := assurance.ParseReceipt(c.text)
	if err != nil {
		return reply{}, err
	}
	bound, err := s.app.BindReceipt(c.request.Context(), c.Principal, request)
	return signed(recorded(s.metrics.receipts, "conformance", bound, err))
}

var approve = &operation{
	id: "assurance_approve", method: http.MethodPost, path: "/api/assurance/decisions/{decisionId}/approval",
	summary: "A person's signed verdict about a decision that needs a review: once per decision, not by who asked for it, valid for 15 minutes.",
	access:  credential.WithRight(organizations.RightApprove), input: reflect.TypeFor[assurance.ApprovalInput](), parses: true, output: reflect.TypeFor[signedApproval](),
	example: `{"verdict":"approved","reason":"Known supplier, amount agreed."}`,
	success: http.StatusCreated, errors: []int{400, 401, 403, 404, 409, 413, 503},
}

func (s *Server) approve(c *call) (reply, error) {
	in, err := assurance.ParseApproval(c.text)
	if err != nil {
		return reply{}, err
	}
	said, err := s.app.Approve(c.request.Context(), c.Principal, c.vars["decisionId"], in)
	return signed(recorded(s.metrics.approvals, "verdict", said, err))
}

var getDecision = recordOperation("assurance_get_decision", "/api/assurance/decisions/{decisionId}",
	"A recorded decision, as it was signed.", reflect.TypeFor[signedDecision]())

var getApproval = recordOperation("assurance_get_approval", "/api/assurance/decisions/{decisionId}/approval",
	"What a person said about a decision that needs a review, as it was signed: 404 until then. Act on verdict approved, before validUntil; the decision's own record stays as it is.", reflect.TypeFor[signedApproval]())

var getStanding = &operation{
	id: "assurance_get_standing", method: http.MethodGet, path: "/api/assurance/decisions/{decisionId}/standing",
	summary: "Whether a decision may be acted on now: an emergency stop, or another policy that denies the action, ends the allows and approvals that were given before it. Ask just before executing.",
	access:  credential.WithRight(organizations.RightRead), output: reflect.TypeFor[decisions.Standing](), errors: []int{401, 403, 404, 503},
}

func (s *Server) getStanding(c *call) (reply, error) {
	standing, err := s.app.Standing(c.request.Context(), c.Principal, c.vars["decisionId"])
	return reply{value: standing, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}

func recordOperation(id, path, summary string, output reflect.Type) *operation {
	return &operation{
		id: id, method: http.MethodGet, path: path, summary: summary,
		access: credential.WithRight(organizations.RightRead), output: output, errors: []int{401, 403, 404, 503},
	}
}

// showRecord answers with the record of a decision that an event of the type holds.
func (s *Server) showRecord(eventType string) func(*call) (reply, error) {
	return func(c *call) (reply, error) { return s.record(c, c.vars["decisionId"], eventType) }
}

func (s *Server) record(c *call, decisionID, eventType string) (reply, error) {
	envelope, err := s.app.Record(c.request.Context(), c.Principal, decisionID, eventType)
	if err != nil {
		return reply{}, err
	}
	return enveloped(envelope)
}

var getReceipt = &operation{
	id: "assurance_get_receipt", method: http.MethodGet, path: "/api/assurance/receipts/{receiptId}",
	summary: "A recorded receipt, as it was signed.",
	access:  credential.WithRight(organizations.RightRead), output: reflect.TypeFor[signedReceipt](), errors: []int{401, 403, 404, 503},
}

func (s *Server) getReceipt(c *call) (reply, error) {
	decisionID, err := s.projections.DecisionOfReceipt(c.request.Context(), c.Principal.OrgID, c.vars["receiptId"])
	if err != nil {
		return reply{}, web.HistoryError(err)
	}
	return s.record(c, decisionID, events.TypeReceiptRecorded)
}

var assuranceHistory = &operation{
	id: "assurance_history", method: http.MethodGet, path: "/api/assurance/history",
	summary: "The organization's decisions and receipts, the newest first. Query: limit (default 25, clamped to 1 to 100), cursor (nextCursor of the page before). What else a query holds is named in warnings: it filters nothing.",
	query: []parameter{
		{"limit", "How many at once; out of range it is clamped, malformed it is 25.", object{"type": "integer", "minimum": 1, "maximum": 100, "default": 25}},
		{"cursor", "nextCursor of the page before.", object{"type": "string", "maxLength": 200}},
	},
	access: credential.WithRight(organizations.RightRead), output: reflect.TypeFor[projections.HistoryPage](), errors: []int{401, 403, 503},
}

func (s *Server) assuranceHistory(c *call) (reply, error) {
	var actors []string
	if c.Principal.OwnOnly() {
		var err error
		if actors, err = s.app.OwnActors(c.request.Context(), c.Principal); err != nil {
			return reply{}, err
		}
	}
	query, warnings := understood(c.request.URL.RawQuery, "limit", "cursor")
	if _, is := readLimit(query.Get("limit")); !is && query.Get("limit") != "" {
		warnings = append(warnings, "limit is not a whole number: 25 is used")
	}
	page, err := s.projections.History(c.request.Context(), c.Principal.OrgID, actors, historyLimit(query.Get("limit")), query.Get("cursor"))
	if err != nil {
		return reply{}, web.HistoryError(err)
	}
	page.Warnings = append(page.Warnings, warnings...)
	body, err := canon.Marshal(page)
	return reply{body: body, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}

// understood reads a query of which nothing is refused, and names what is not one of
// the known parameters, or is there twice: a reader must not take an answer for
// filtered that is not.
func understood(raw string, known ...string) (query url.Values, warnings []string) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		warnings = append(warnings, "a part of the query could not be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(known, name):
			shown := "a parameter"
			if name != "" && canon.SafePointer("/"+name) == "/"+name {
				shown = name
			}
			warnings = append(warnings, shown+" is not a parameter of this list and filters nothing"+canon.Meant(name, known))
		case len(query[name]) > 1:
			warnings = append(warnings, name+" is given more than once: the first counts")
		}
	}
	return query, warnings[:min(len(warnings), maxWarnings)]
}

const maxWarnings = 20 // in one answer

// historyLimit never refuses: what is no integer is the default.
func historyLimit(text string) int {
	n, _ := readLimit(text)
	return n
}

// readLimit reads a limit; what is no integer is the default and not ok, what is out
// of range is the nearest bound, however many digits it has.
func readLimit(text string) (n int, ok bool) {
	const standard, least, most = 25, 1, 100
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return standard, false
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil && text[0] == '-':
		return least, true
	case err != nil:
		return most, true
	}
	return min(max(n, least), most), true
}
