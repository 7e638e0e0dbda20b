// Package tools offers operations as tools and resources of the Model Context Protocol. A tool is
// an operation with a name and a short schema for models. Each call runs through package request.
// The protocol itself is in api/mcp.
package tools

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	invopop "github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/store"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/canon"
)

// Tool is an operation with a name and a description for models.
type Tool struct {
	op                       *op.Operation
	Name, Title, Description string
	readOnly                 bool
	arguments                reflect.Type // type of the arguments that are in path and query over HTTP; nil if the arguments are the body
	split                    func(canonical []byte) (op.ToolCall, error)
	malformed                error // the operation's error over HTTP for a malformed value; nil means the error of the schema
}

// workflowArguments are the arguments of get_action_safety_workflow_status.
type workflowArguments struct {
	WorkflowID string `json:"workflowId" jsonschema:"pattern=^asw_[0-9a-f-]{36}$" jsonschema_description:"The workflowId that agent_action_safety_loop returned."`
}

// historyArguments are the arguments of list_assurance_history.
type historyArguments struct {
	Limit  pageLimit `json:"limit,omitzero"`
	Cursor string    `json:"cursor,omitempty" jsonschema_description:"nextCursor of the page before."`
}

// pageLimit is an integer as text. As over HTTP, the operation clamps it instead of refusing it.
type pageLimit string

// JSONSchema sets no limits, because every integer is accepted.
func (pageLimit) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Type: "integer", Default: 25, Description: "Clamped to 1 to 100."}
}

// UnmarshalJSON stores the text of the number.
func (l *pageLimit) UnmarshalJSON(text []byte) error {
	if *l = pageLimit(text); *l == "null" {
		*l = ""
	}
	return nil
}

// noArguments is for tools without arguments.
type noArguments struct{}

// Tools serves operations as tools of the Model Context Protocol.
type Tools struct {
	Path  *request.Path
	Table *op.Table
	Rule  func(id string) (markdown string, known bool, err error) // returns the page of a rule
}

// All lists every tool: each listed service, and the other operations that an agent needs.
func (s *Tools) All() []Tool {
	var table []Tool
	for _, o := range s.Table.Services() {
		if !o.Service.Unlisted {
			table = append(table, serviceTool(o))
		}
	}
	return append(table,
		Tool{op: s.Table.Find(services.WorkflowStatus.ID), Name: services.WorkflowStatus.ID, Title: "Workflow status", readOnly: true,
			Description: "The status record of an action-safety workflow, kept for 30 days. Call it to see the result of a workflow, or to show it to a person. Free.",
			arguments:   reflect.TypeFor[workflowArguments](), split: workflowCall, malformed: services.ErrWorkflowID},
		Tool{op: s.Table.Find(evidence.VerifyRecord.ID), Name: evidence.VerifyRecord.ID, Title: "Verify a record", readOnly: true,
			Description: "Checks a signed decision, receipt or attestation, or a whole answer: format, hash, key, signature, position in the ledger, and every member besides the record. Call it before you rely on a record from another party. Free."},
		Tool{op: s.Table.Find(store.ListProducts.ID), Name: store.ListProducts.ID, Title: "Products", readOnly: true,
			Description: "The products and subscriptions of this service, with prices and payment addresses. Free.",
			arguments:   reflect.TypeFor[noArguments](), split: plainCall},
		Tool{op: s.Table.Find(services.ShowPricing.ID), Name: services.ShowPricing.ID, Title: "Prices", readOnly: true,
			Description: "The price of every tool, the free calls of a key and what the monthly pass adds. Free.",
			arguments:   reflect.TypeFor[noArguments](), split: plainCall},
		Tool{op: s.Table.Find(decisions.Decide.ID), Name: toolAuthorize, Title: "Authorize a purchase",
			Description: "Decides one exact x402 purchase or MCP tool call under your organization's active policy: a signed allow, deny or needs_review. " +
				"Call it before you pay or act, and act only on allow. On needs_review read countersign://approvals/{decisionId} until a person has approved it. Needs an organization token. " + oneKey},
		Tool{op: s.Table.Find(decisions.BindReceipt.ID), Name: toolRecord, Title: "Record a receipt",
			Description: "Records the observed result of an execution in a signed receipt, once per decision. Call it after the purchase or call, whether it succeeded or not. Needs an organization token."},
		Tool{op: s.Table.Find(decisions.AssuranceHistory.ID), Name: toolHistory, Title: "Decisions and receipts", readOnly: true,
			Description: "Your organization's decisions and receipts, the newest first. Needs an organization token.",
			arguments:   reflect.TypeFor[historyArguments](), split: historyCall},
	)
}

// Names of tools whose operations have other names.
const (
	toolAuthorize = "authorize_purchase_intent"
	toolRecord    = "record_execution_receipt"
	toolHistory   = "list_assurance_history"
)

// oneKey explains to a model how to use the idempotency key.
const oneKey = "One key per purchase you intend; on a retry send the same key; never invent a new one after a time-out."

// serviceTool returns a service as a tool. A service without a signed receipt is read-only,
// because it changes only the count of calls.
func serviceTool(o *op.Operation) Tool {
	description := fmt.Sprintf("%s $%s per call.", o.Service.Summary, op.USD(o.Service.PriceCents))
	if !o.KeyOutsideBody() { // for other tools, the instructions of the server explain it
		description += " " + oneKey
	}
	return Tool{op: o, Name: o.ID, Title: o.Service.Title, Description: description, readOnly: !o.Service.Signed}
}

// meansOfPayment describes what can pay for a call.
func (s *Tools) meansOfPayment() string {
	if s.Path.Commands.Settler == nil {
		return "an API key in X-API-Key"
	}
	return "an API key in X-API-Key or an x402 payment in _meta[\"x402/payment\"]"
}

// Check returns the schema that a tool's arguments must match.
func (t Tool) Check() (*schema.Schema, error) {
	if t.arguments == nil {
		return t.op.Schema, nil
	}
	return schema.New(t.arguments)
}

// declare returns the tool in the form that package mcp needs: its name, schemas and function.
func (s *Tools) declare(t Tool) (mcp.Tool, error) {
	output, err := contract.AnswerSchema(t.op)
	if err != nil {
		return mcp.Tool{}, err
	}
	declared := mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, ReadOnly: t.readOnly}
	check, err := t.Check()
	if err != nil {
		return mcp.Tool{}, err
	}
	if t.op.Service != nil {
		declared.PriceUSD, declared.TakesNUL = op.USD(t.op.Service.PriceCents), t.op.Service.TakesNUL
	}
	input := toolInput
	if t.op.KeyOutsideBody() {
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
			err = s.Path.Commands.Within(c.Request.Context(), len(c.Arguments), func() (err error) {
				order, err = split(t, check, c.Arguments)
				return err
			})
		}
		var answer op.Reply
		if err == nil {
			answer, err = s.Path.Do(nil, c.Request, t.op, &order)
		}
		return s.toolResult(c.Request, t, answer, err)
	}
	return declared, nil
}

// split validates arguments that are in path and query over HTTP, and returns them in these parts.
func split(t Tool, check *schema.Schema, arguments []byte) (op.ToolCall, error) {
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

// toolResult converts an answer into the result of a tool. The body of a success is sent as text
// and as structured content. The body of an error is sent only as text, except a demand for
// payment, which clients parse.
func (s *Tools) toolResult(r *http.Request, t Tool, answer op.Reply, err error) mcp.Result {
	if err == nil && answer.Body == nil {
		answer.Body, err = canon.Marshal(answer.Value)
	}
	result := mcp.Result{Structured: true}
	if err != nil {
		answer = s.Path.Answers.Refused(r, t.op.BareErrors, err)
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

// mcpDoor is one endpoint of the Model Context Protocol.
type mcpDoor struct {
	path  string
	tools []string // names of its tools; nil means all
}

// doors are the endpoints of the Model Context Protocol: one with every tool, and one for each
// purpose, so that a model has to read only the tools that it needs.
var doors = []mcpDoor{
	{op.MCPPath, nil},
	{op.MCPSafetyPath, []string{actionrisk.Quick.Operation, actionrisk.Score.Operation, actionsafety.Run.Operation, services.WorkflowStatus.ID, evidence.VerifyRecord.ID}},
	{op.MCPAssurancePath, []string{toolAuthorize, toolRecord, toolHistory, evidence.VerifyRecord.ID}},
}

// Open returns the handlers of the endpoints, by path. If loopback is set, the listener has a
// loopback address, and every loopback name is accepted as host. origins are the other origins
// whose pages may call.
func (s *Tools) Open(loopback bool, origins []string) (map[string]http.Handler, error) {
	resources, err := s.resources()
	if err != nil {
		return nil, err
	}
	config := mcp.Config{
		Name: ServerName(s.Path.Commands.BaseURL), Title: op.Name, Version: policy.Version, Website: s.Path.Commands.BaseURL,
		Instructions: "This tool does not block commands by itself: call action_safety_quick_gate before each consequential action, with the exact command without white space at the ends, " +
			"and continue only if its risk is low. At medium, " + site.AtMedium + "; at high and critical a person decides. Any error means stop and ask. " +
			"Pay by " + s.meansOfPayment() + "; POST " + s.Path.Commands.BaseURL + "/api/keys/free issues a key. " +
			"After a time-out or 503 repeat the same call with the same idempotencyKey or the same payment; never make a new one for it.",
		BaseURL: s.Path.Commands.BaseURL, Loopback: loopback, Origins: origins,
		Admit: s.admitMessage, Compute: s.Path.Commands.Compute, Unread: unreadMessage,
		Panicked: func(ctx context.Context, value any) {
			s.Path.Telemetry.Panics.Inc()
			s.Path.Answers.Log.Error("internal error", "requestId", request.RequestID(ctx), "error", fmt.Errorf("panic: %v", value))
		},
		Resources: resources, Prompts: prompts(),
	}
	declared := map[string]mcp.Tool{}
	for _, t := range s.All() {
		var err error
		if declared[t.Name], err = s.declare(t); err != nil {
			return nil, fmt.Errorf("MCP tool %s: %w", t.Name, err)
		}
		config.Tools = append(config.Tools, declared[t.Name])
	}
	opened := map[string]http.Handler{}
	for _, d := range doors {
		own := config
		if d.tools != nil {
			own.Tools = nil
			for _, name := range d.tools {
				own.Tools = append(own.Tools, declared[name])
			}
		}
		door, err := mcp.New(own)
		if err != nil {
			return nil, err
		}
		opened[d.path] = s.asResource(d.path, door)
	}
	return opened, nil
}

// asResource makes an MCP endpoint accept access tokens that were issued for its own address.
func (s *Tools) asResource(path string, door http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		door.ServeHTTP(w, r.WithContext(credential.At(r.Context(), s.Path.Commands.BaseURL+path)))
	})
}

// unreadMessage returns the answer to a message whose body could not be read.
func unreadMessage(h http.Header, err error) (status int, text string) {
	refused := request.UnreadBecause(err)
	if status = contract.StatusOf(refused.Code); status == http.StatusBadRequest {
		return status, refused.Message
	}
	h.Set("Retry-After", op.RetrySoon)
	return status, refused.Message
}

// admitMessage refuses every message with an invalid credential, so that the client replaces it. A
// message without a credential is admitted.
func (s *Tools) admitMessage(w http.ResponseWriter, r *http.Request) bool {
	caller, err := s.checkCredential(r)
	if !s.Path.Callers.MayWork(r, caller, 1+int(max(0, r.ContentLength))/op.BodyCountsAs) {
		err = policy.Refuse(op.CodeRateLimited, "", "too many messages, try again in a minute")
	}
	if err == nil {
		return true
	}
	var known *policy.Error
	wrongKey := credential.IsKey(r.Header) && errors.As(err, &known) && known.Code == ground.CodeUnauthorized
	if wrongKey {
		err = policy.Refuse(known.Code, "", known.Message+": correct it in the client's settings, or create a key at "+s.Path.Commands.BaseURL+"/account")
	}
	refused := s.Path.Answers.Refused(r, false, err)
	refused.Header.Del("Connection") // the body was read, so the connection can stay open
	if refused.Status == http.StatusUnauthorized {
		challenge := credential.Challenge(s.Path.Commands.BaseURL, r.URL.Path, "invalid_token", accounts.ScopeCatalog)
		if wrongKey { // omit the challenge: clients would start an OAuth log-in, which does not help
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

// checkCredential verifies a credential like a priced call.
func (s *Tools) checkCredential(r *http.Request) (credential.Caller, error) {
	text, present, err := credential.Key(r.Header)
	if err != nil || !present {
		return credential.Caller{}, err
	}
	return s.Path.Credentials.ReadKey(r.Context(), credential.Access{Kind: credential.Payer}, text)
}

// ServerName returns the name of the MCP server, on its card and in the protocol: the host of the
// base URL in reverse order, and "countersign".
func ServerName(base string) string { return reverseName(op.HostOf(base)) }

// reverseName returns this name for a host. A numeric address counts as localhost.
func reverseName(host string) string {
	labels := strings.Split(host, ".")
	if strings.Contains(host, ":") || strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return "localhost/countersign"
	}
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "/countersign"
}
