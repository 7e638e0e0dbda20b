package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/canon"
)

var openAPI = &operation{
	id: "get_openapi", method: http.MethodGet, path: "/openapi.json",
	summary: "This document.",
	run:     func(s *Server, c *call) (reply, error) { return s.openAPI.answer(c), nil },
}

type object = map[string]any

// newOpenAPI writes the OpenAPI 3.1 document from the operations table. It is a
// pure function of table and configuration: the same bytes until one changes.
func newOpenAPI(s *Server) (document, error) {
	paths := object{}
	for _, op := range s.operations {
		described, err := op.describe()
		if err != nil {
			return document{}, fmt.Errorf("describe %s: %w", op.id, err)
		}
		item, _ := paths[op.path].(object)
		if item == nil {
			item = object{}
			paths[op.path] = item
		}
		item[strings.ToLower(op.method)] = described
	}
	problems, err := schemaOf(reflect.TypeFor[problem]())
	if err != nil {
		return document{}, err
	}
	demands, err := schemaOf(reflect.TypeFor[x402.PaymentRequired]())
	if err != nil {
		return document{}, err
	}
	oauthProblems, err := schemaOf(reflect.TypeFor[oauthProblem]())
	if err != nil {
		return document{}, err
	}
	body, err := canon.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Countersign", "version": policy.Version,
			"summary":     "Deterministic verdicts on what AI agents are about to do, signed and kept in a verifiable ledger.",
			"description": "Ask before a consequential action, act on the verdict, verify the record without trusting the server.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"contact":     object{"email": s.contact},
			"x-guidance": "Call action-safety/quick first and follow its nextRecommendedCall. Send X-API-Key (POST /api/keys/free issues one). " +
				"On a time-out or 503 repeat the request with the same Idempotency-Key.",
		},
		"servers": []any{object{"url": s.app.BaseURL}},
		"paths":   paths,
		"components": object{
			"schemas": object{"Error": problems, "PaymentRequired": demands, "OAuthError": oauthProblems},
			"securitySchemes": object{
				"apiKey": object{"type": "apiKey", "in": "header", "name": "X-API-Key"},
				"bearer": object{"type": "http", "scheme": "bearer"},
				"oauth2": s.describeOAuth(),
				"client": object{"type": "http", "scheme": "basic", "description": "client_id and client_secret, each form-encoded; they may stand in the body instead."},
				"organizationToken": object{"type": "http", "scheme": "bearer",
					"description": "svco_…, issued by POST /api/assurance/tokens or countersign org token issue."},
				"session": object{"type": "apiKey", "in": "cookie", "name": s.sessions.cookie.Name,
					"description": "A signed-in member; what changes something comes from the same origin, as application/json."},
			},
		},
	})
	if err != nil {
		return document{}, err
	}
	return newDocument(body, "application/json"), nil
}

// describe is one operation of the document.
func (op *operation) describe() (object, error) {
	responses := object{"default": op.problemResponse("Any other refusal.")}
	for _, status := range op.errors {
		responses[strconv.Itoa(status)] = op.problemResponse(http.StatusText(status))
	}
	answer, err := op.answerSchema()
	if err != nil {
		return nil, err
	}
	responses[strconv.Itoa(op.success)] = object{
		"description": "The answer.",
		"content":     object{op.media: object{"schema": answer}},
	}
	o := object{"operationId": op.id, "summary": op.summary, "responses": responses}
	if op.input != nil {
		media := object{"schema": op.schema.document}
		if op.example != "" {
			media["example"] = jsontext.Value(op.example)
		}
		content := object{"application/json": media}
		if op.form {
			content["application/x-www-form-urlencoded"] = object{"schema": op.schema.document}
		}
		o["requestBody"] = object{"required": !op.optional, "content": content}
	}
	var parameters []any
	for _, name := range pathParameters(op.path) {
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, q := range op.query {
		parameters = append(parameters, object{"name": q.name, "in": "query", "required": false, "description": q.description, "schema": q.schema})
	}
	if op.priced() {
		op.describePayment(responses)
	}
	if op.service != nil {
		parameters = append(parameters, object{"name": "Idempotency-Key", "in": "header", "required": false,
			"description": "The same key and body give the stored answer, unmetered; the same key with another body is 409.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": maxIdempotencyKey}})
		op.describePrice(o, responses)
	}
	if op.key {
		o["security"] = []any{object{"apiKey": []any{}}, object{"bearer": []any{}}}
	}
	if op.right != "" || op.signedIn || op.scope != "" {
		o["security"] = op.describeSecurity()
	}
	if op.security != nil {
		o["security"] = op.security
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	return o, nil
}

// describeSecurity is a session, or a token with the right's scope if one is
// enough.
func (op *operation) describeSecurity() []any {
	session := object{"session": []any{}}
	if op.scope != "" {
		ways := []any{object{"oauth2": []any{op.scope}}}
		if op.scope != commands.ScopeSupport {
			ways = append(ways, session)
		}
		if op.open {
			ways = append([]any{object{}}, ways...)
		}
		return ways
	}
	if scope := commands.ScopeOf(op.right); scope != "" {
		return []any{object{"organizationToken": []any{scope}}, session}
	}
	return []any{session}
}

func (op *operation) describePrice(o, responses object) {
	o["x-payment-info"] = object{
		"price":     object{"mode": "fixed", "currency": "USD", "amount": usd(op.service.PriceCents)},
		"protocols": []any{object{"x402": object{}}},
	}
	o["security"] = []any{object{}, object{"apiKey": []any{}}, object{"bearer": []any{}}}
	responses["429"].(object)["headers"] = object{"Link": requiredHeader("Where to get more calls, rel=upgrade.")}
}

func requiredHeader(description string) object {
	return object{"description": description, "required": true, "schema": object{"type": "string"}}
}

// describePayment is the 402 of every call that costs something: its price stands
// in the answer, also where it depends on what is bought.
func (op *operation) describePayment(responses object) {
	responses["402"] = object{
		"description": "Payment required: what to sign, or why a payment was refused.",
		"headers":     object{"PAYMENT-REQUIRED": requiredHeader("Base64 of the body.")},
		"content":     object{"application/json": object{"schema": object{"$ref": "#/components/schemas/PaymentRequired"}}},
	}
	responses[strconv.Itoa(op.success)].(object)["headers"] = object{"PAYMENT-RESPONSE": object{
		"description": "Base64 of the x402 SettleResponse, where a payment paid.", "schema": object{"type": "string"}}}
}

func (op *operation) problemResponse(description string) object {
	name := "Error"
	if op.oauth != "" {
		name = "OAuthError"
	}
	return object{"description": description, "content": object{"application/json": object{
		"schema": object{"$ref": "#/components/schemas/" + name}}}}
}

// answerSchema is the schema of a 200: the output, for an enveloped service with
// the members that every answer carries.
func (op *operation) answerSchema() (object, error) {
	if op.output == nil {
		return object{"type": "object"}, nil
	}
	own, err := schemaOf(op.output)
	if err != nil || op.service == nil || op.service.Bare {
		return own, err
	}
	common, err := schemaOf(reflect.TypeFor[envelope]())
	if err != nil {
		return nil, err
	}
	properties, required := own["properties"].(object), own["required"].([]any)
	ownStatus := properties["status"] != nil
	for name, property := range common["properties"].(object) {
		if _, has := properties[name]; !has {
			properties[name] = property
		}
	}
	for _, name := range common["required"].([]any) {
		if name != "status" || !ownStatus {
			required = append(required, name)
		}
	}
	if op.service.Signed {
		receipt, err := schemaOf(reflect.TypeFor[seal.Envelope]())
		if err != nil {
			return nil, err
		}
		properties["receipt"] = receipt
		required = append(required, "receipt")
	}
	if more := recordedMembers[op.id]; more != nil {
		added, err := schemaOf(more)
		if err != nil {
			return nil, err
		}
		maps.Copy(properties, added["properties"].(object))
		required = append(required, added["required"].([]any)...)
	}
	own["required"] = unique(required)
	return own, nil
}

// recordedMembers are what some answers carry beside the service's own part and
// the receipt, once they are recorded. They depend on time and place, and so stand
// outside outputHash.
var recordedMembers = map[string]reflect.Type{
	actionsafety.Run.Operation: reflect.TypeFor[struct {
		WorkflowID string `json:"workflowId" jsonschema:"pattern=^asw_[0-9a-f-]{36}$"`
		StatusURL  string `json:"statusUrl" jsonschema:"format=uri"`
		CreatedAt  string `json:"createdAt" jsonschema:"format=date-time"`
		ExpiresAt  string `json:"expiresAt" jsonschema:"format=date-time"`
	}](),
	attest.Service.Operation: reflect.TypeFor[struct {
		Record    attest.Record  `json:"record"`
		Integrity seal.Integrity `json:"integrity"`
		VerifyURL string         `json:"verifyUrl" jsonschema:"format=uri"`
	}](),
}

// envelope is what every enveloped answer carries beside the service's own part.
type envelope struct {
	Status     string `json:"status"`
	Service    string `json:"service"`
	Version    string `json:"version"`
	InputHash  string `json:"inputHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	OutputHash string `json:"outputHash" jsonschema:"pattern=^[a-f0-9]{64}$"`
	Reference  string `json:"reference,omitempty"`
}

func unique(names []any) []any {
	seen := map[any]bool{}
	var kept []any
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			kept = append(kept, name)
		}
	}
	return kept
}

// pathParameters are the names in braces.
func pathParameters(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}
