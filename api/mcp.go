package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	invopop "github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/canon"
)

// tool is an operation under the name by which a model calls it.
type tool struct {
	op                       *op.Operation
	name, title, description string
	readOnly                 bool
	arguments                reflect.Type // what over HTTP stands in path and query; nil: the body
	split                    func(canonical []byte) (op.ToolCall, error)
	malformed                error // what the operation says over HTTP of a value of another form; nil: what the schema says
}

// workflowArguments are those of get_action_safety_workflow_status.
type workflowArguments struct {
	WorkflowID string `json:"workflowId" jsonschema:"pattern=^asw_[0-9a-f-]{36}$" jsonschema_description:"As agent_action_safety_loop answered it."`
}

// historyArguments are those of list_assurance_history.
type historyArguments struct {
	Limit  pageLimit `json:"limit,omitzero"`
	Cursor string    `json:"cursor,omitempty" jsonschema_description:"nextCursor of the page before."`
}

// pageLimit is a whole number as it was written: what it may be is for the
// operation to say, and over HTTP it clamps.
type pageLimit string

// JSONSchema bounds nothing, since nothing is refused.
func (pageLimit) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Type: "integer", Default: 25, Description: "Clamped to 1 to 100."}
}

// UnmarshalJSON keeps the text.
func (l *pageLimit) UnmarshalJSON(text []byte) error {
	if *l = pageLimit(text); *l == "null" {
		*l = ""
	}
	return nil
}

// noArguments are those of tools that take none.
type noArguments struct{}

// tools is every tool: each listed service from its one declaration, and what else of the
// operations an agent needs to use them.
func (s *Server) tools() []tool {
	var table []tool
	for _, o := range s.operations {
		if o.Service != nil && !o.Service.Unlisted {
			table = append(table, s.serviceTool(o))
		}
	}
	return append(table,
		tool{op: s.operation(workflowStatus.ID), name: workflowStatus.ID, title: "Workflow status", readOnly: true,
			description: "The status record of an action-safety workflow, kept for 30 days. Call it to see what became of a workflow, or to show it to a person. Free.",
			arguments:   reflect.TypeFor[workflowArguments](), split: workflowCall, malformed: errWorkflowID},
		tool{op: s.operation(verifyRecord.ID), name: verifyRecord.ID, title: "Verify a record", readOnly: true,
			description: "Checks a signed decision, receipt or attestation, or a whole answer: form, hash, key, signature, place in the ledger, and every member beside the record. Call it before you rely on what somebody hands you. Free."},
		tool{op: s.operation(listProducts.ID), name: listProducts.ID, title: "Products", readOnly: true,
			description: "What can be bought here once or by subscription, with prices and where to pay. Free.",
			arguments:   reflect.TypeFor[noArguments](), split: plainCall},
		tool{op: s.operation(showPricing.ID), name: showPricing.ID, title: "Prices", readOnly: true,
			description: "The price of every tool, the free calls of a key and what the monthly pass adds. Free.",
			arguments:   reflect.TypeFor[noArguments](), split: plainCall},
		tool{op: s.operation(decide.ID), name: toolAuthorize, title: "Authorize a purchase",
			description: "A signed allow, deny or needs_review about one exact x402 purchase or MCP tool call, under your organization's active policy. " +
				"Call it before you pay or act, and act only on allow. On needs_review read countersign://approvals/{decisionId} until a person has said approved. Needs an organization token. " + oneKey},
		tool{op: s.operation(bindReceipt.ID), name: toolRecord, title: "Record a receipt",
			description: "Binds what was observed of an execution to its decision, in a signed receipt, once per decision. Call it after the purchase or call, whatever came of it. Needs an organization token."},
		tool{op: s.operation(assuranceHistory.ID), name: toolHistory, title: "Decisions and receipts", readOnly: true,
			description: "Your organization's decisions and receipts, the newest first. Needs an organization token.",
			arguments:   reflect.TypeFor[historyArguments](), split: historyCall},
	)
}

// Names of tools that differ from their operations'.
const (
	toolAuthorize = "authorize_purchase_intent"
	toolRecord    = "record_execution_receipt"
	toolHistory   = "list_assurance_history"
)

// oneKey is what whoever calls with a key must know.
const oneKey = "One key per purchase you intend; on a retry send the same key; never invent a new one after a time-out."

// serviceTool is a service as a tool. What leaves no signed receipt changes
// nothing but the count of calls.
func (s *Server) serviceTool(o *op.Operation) tool {
	description := fmt.Sprintf("%s $%s per call.", o.Service.Summary, usd(o.Service.PriceCents))
	if !o.KeyBeside() { // else the instructions say it once for all
		description += " " + oneKey
	}
	return tool{op: o, name: o.ID, title: o.Service.Title, description: description, readOnly: !o.Service.Signed}
}

// meansOfPayment is what a call may be paid with here.
func (s *Server) meansOfPayment() string {
	if s.app.Settler == nil {
		return "an API key in X-API-Key"
	}
	return "an API key in X-API-Key or an x402 payment in _meta[\"x402/payment\"]"
}

// usd is an amount in cents as dollars.
func usd(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// check is the schema of a tool's arguments.
func (t tool) check() (*schema.Schema, error) {
	if t.arguments == nil {
		return t.op.Schema, nil
	}
	return schema.New(t.arguments)
}

// declare is the tool as the door shows and calls it.
func (s *Server) declare(t tool) (mcp.Tool, error) {
	output, err := answerSchema(t.op)
	if err != nil {
		return mcp.Tool{}, err
	}
	declared := mcp.Tool{Name: t.name, Title: t.title, Description: t.description, ReadOnly: t.readOnly}
	check, err := t.check()
	if err != nil {
		return mcp.Tool{}, err
	}
	if t.op.Service != nil {
		declared.PriceUSD, declared.TakesNUL = usd(t.op.Service.PriceCents), t.op.Service.TakesNUL
	}
	input := toolInput
	if t.op.KeyBeside() {
		input = keyedInput
	}
	if declared.Input, err = input(check.Type); err != nil {
		return mcp.Tool{}, err
	}
	if declared.Output, err = canon.Marshal(toolOutput(output, t.op.Priced())); err != nil {
		return mcp.Tool{}, err
	}
	declared.Call = func(_ context.Context, c mcp.Call) mcp.Result {
		order := op.ToolCall{Arguments: c.Arguments, Payment: c.Payment}
		var err error
		if t.split != nil {
			err = s.app.Within(c.Request.Context(), len(c.Arguments), func() (err error) {
				order, err = split(t, check, c.Arguments)
				return err
			})
		}
		var answer op.Reply
		if err == nil {
			answer, err = s.tool(c.Request, t.op, order)
		}
		return s.toolResult(c.Request, t, answer, err)
	}
	return declared, nil
}

// split reads arguments that over HTTP would stand in path and query.
func split(t tool, check *schema.Schema, arguments []byte) (op.ToolCall, error) {
	canonical, err := canon.Canonical(arguments)
	if err != nil {
		return op.ToolCall{}, err
	}
	if err := check.Validate(arguments); err != nil {
		var refused *policy.Error
		if t.malformed != nil && errors.As(err, &refused) && refused.Code == "out_of_range" {
			err = t.malformed
		}
		return op.ToolCall{}, err
	}
	return t.split(canonical)
}

func plainCall([]byte) (op.ToolCall, error) { return op.ToolCall{}, nil }

func workflowCall(canonical []byte) (op.ToolCall, error) {
	var in workflowArguments
	err := canon.DecodeChecked(canonical, &in)
	return op.ToolCall{Vars: map[string]string{"workflowId": in.WorkflowID}}, err
}

func historyCall(canonical []byte) (op.ToolCall, error) {
	var in historyArguments
	err := canon.DecodeChecked(canonical, &in)
	query := url.Values{}
	if in.Cursor != "" {
		query.Set("cursor", in.Cursor)
	}
	if in.Limit != "" {
		query.Set("limit", string(in.Limit))
	}
	return op.ToolCall{Query: query}, err
}

// toolResult is the answer over HTTP as a tool's result: the body of success as
// text and structured, that of an error as text alone. Only the demand for a
// payment is structured too, since a client reads it to pay.
func (s *Server) toolResult(r *http.Request, t tool, answer op.Reply, err error) mcp.Result {
	if err == nil && answer.Body == nil {
		answer.Body, err = canon.Marshal(answer.Value)
	}
	result := mcp.Result{Structured: true}
	if err != nil {
		answer = s.refused(r, t.op.BareErrors, err)
		result.Failed, result.Structured = true, answer.Status == http.StatusPaymentRequired
	}
	result.Body = answer.Body
	if header := answer.Header.Get(x402.HeaderResponse); header != "" {
		if ended, err := x402.ReadResponse(header); err == nil {
			result.Meta = map[string]any{"x402/payment-response": ended}
		}
	}
	return result
}

// mcpDoor is one address of the Model Context Protocol.
type mcpDoor struct {
	path  string
	tools []string // nil: all
}

// doors are the addresses of the Model Context Protocol: the whole, and what suits
// one purpose, so that a model reads no more tools than it needs.
var doors = []mcpDoor{
	{mcpPath, nil},
	{mcpPath + "/safety", []string{actionrisk.Quick.Operation, actionrisk.Score.Operation, actionsafety.Run.Operation, workflowStatus.ID, verifyRecord.ID}},
	{mcpPath + "/assurance", []string{toolAuthorize, toolRecord, toolHistory, verifyRecord.ID}},
}

// doorAt is the door with a path; nil for none.
func doorAt(path string) *mcpDoor {
	if i := slices.IndexFunc(doors, func(d mcpDoor) bool { return d.path == path }); i >= 0 {
		return &doors[i]
	}
	return nil
}

// doorDocuments are the metadata of the doors beside the whole, each where RFC 9728
// puts it: a client takes none whose resource is another address than the one it uses.
func (s *Server) doorDocuments() (list []*op.Operation) {
	for _, d := range doors[1:] {
		o := *mcpResourceDocument
		o.ID, o.Path = mcpResourceDocument.ID+strings.ReplaceAll(strings.TrimPrefix(d.path, mcpPath), "/", "_"), credential.ProtectedResourcePath+d.path
		o.Run = func(c *op.Call) (op.Reply, error) {
			return op.DocumentOf(c, s.protectedResource(d.path, []string{accounts.ScopeCatalog, accounts.ScopeCheckout}))
		}
		list = append(list, &o)
	}
	return list
}

// newDoors opens the doors for the Model Context Protocol.
func newDoors(s *Server, c Config) (map[string]*mcp.Door, error) {
	config := mcp.Config{
		Name: s.mcpName(), Title: serviceName, Version: policy.Version, Website: s.app.BaseURL,
		Instructions: "This tool does not stop you by itself: call action_safety_quick_gate before each consequential action, with the exact command trimmed, " +
			"go on only if its risk is low. At medium, " + site.AtMedium + "; at high and critical a person decides. Any error means stop and ask. " +
			"Pay by " + s.meansOfPayment() + "; POST " + s.app.BaseURL + "/api/keys/free issues a key. " +
			"After a time-out or 503 repeat the same call with the same idempotencyKey or the same payment; never make a new one for it.",
		BaseURL: s.app.BaseURL, Loopback: c.Loopback, Origins: c.MCPOrigins,
		Admit: s.admitMessage, Compute: s.app.Compute, Unread: unreadMessage,
		Panicked: func(ctx context.Context, value any) {
			s.metrics.panics.Inc()
			s.log.Error("internal error", "requestId", requestID(ctx), "error", fmt.Errorf("panic: %v", value))
		},
		Resources: s.resources(), Prompts: prompts(),
	}
	declared := map[string]mcp.Tool{}
	for _, t := range s.tools() {
		var err error
		if declared[t.name], err = s.declare(t); err != nil {
			return nil, fmt.Errorf("MCP tool %s: %w", t.name, err)
		}
		config.Tools = append(config.Tools, declared[t.name])
	}
	opened := map[string]*mcp.Door{}
	for _, d := range doors {
		own := config
		if d.tools != nil {
			own.Tools = nil
			for _, name := range d.tools {
				own.Tools = append(own.Tools, declared[name])
			}
		}
		var err error
		if opened[d.path], err = mcp.New(own); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// asResource takes access tokens that were made for the address of a door.
func (s *Server) asResource(path string, door http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		door.ServeHTTP(w, r.WithContext(credential.At(r.Context(), s.app.BaseURL+path)))
	})
}

// unreadMessage is the answer to a message that could not be read.
func unreadMessage(h http.Header, err error) (status int, text string) {
	refused := unreadBecause(err)
	if status = statusOfCode(refused.Code); status == http.StatusBadRequest {
		return status, refused.Message
	}
	h.Set("Retry-After", op.RetrySoon)
	return status, refused.Message
}

// admitMessage refuses a message whose credential is bad, whatever it asks for:
// so a client learns that it must get another one. None is fine.
func (s *Server) admitMessage(w http.ResponseWriter, r *http.Request) bool {
	caller, err := s.checkCredential(r)
	if !s.mayWork(r, caller, 1+int(max(0, r.ContentLength))/op.BodyCountsAs) {
		err = policy.Refuse(op.CodeRateLimited, "", "too many messages, try again in a minute")
	}
	if err == nil {
		return true
	}
	var known *policy.Error
	wrongKey := credential.IsKey(r.Header) && errors.As(err, &known) && known.Code == ground.CodeUnauthorized
	if wrongKey {
		err = policy.Refuse(known.Code, "", known.Message+": correct it in the client's settings, or make a key at "+s.app.BaseURL+"/account")
	}
	refused := s.refused(r, false, err)
	refused.Header.Del("Connection") // the body has been read
	if refused.Status == http.StatusUnauthorized {
		challenge := credential.Challenge(s.app.BaseURL, r.URL.Path, "invalid_token", accounts.ScopeCatalog)
		if wrongKey { // no OAuth log-in makes it good, and clients would begin one
			challenge = `ApiKey realm="countersign"`
		}
		refused.Header.Set("WWW-Authenticate", challenge)
	}
	for name, values := range refused.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(refused.Status)
	_, _ = w.Write(refused.Body)
	return false
}

// checkCredential looks at a credential as a priced call does.
func (s *Server) checkCredential(r *http.Request) (credential.Caller, error) {
	text, present, err := credential.Key(r.Header)
	if err != nil || !present {
		return credential.Caller{}, err
	}
	return s.credentials.ReadKey(r.Context(), s.operation(actionrisk.Quick.Operation).Access, text)
}
