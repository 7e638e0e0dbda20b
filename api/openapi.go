package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/api/schema"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/canon"
)

// openAPI is the contract that is read first, by agents and indexers that have only
// the address: openAPIFull without what they do not call.
var openAPI = &operation{
	id: "get_openapi", method: http.MethodGet, path: "/openapi.json",
	summary: "The contract of what an agent calls: services, assurance, storefront, credentials. /openapi-full.json has everything.",
	output:  reflect.TypeFor[map[string]any](),
}

func (s *Server) answerOpenAPI(c *call) (reply, error) { return answerContract(s.openAPI, c) }

var openAPIFull = &operation{
	id: "get_openapi_full", method: http.MethodGet, path: "/openapi-full.json",
	summary: "The contract of every operation, also of organizations, accounts and documents.",
	output:  reflect.TypeFor[map[string]any](),
}

func (s *Server) answerOpenAPIFull(c *call) (reply, error) { return answerContract(s.openAPIFull, c) }

func answerContract(contract func() (document, error), c *call) (reply, error) {
	d, err := contract()
	if err != nil {
		return reply{}, err
	}
	return d.answer(c), nil
}

// agentOperations are those of /openapi.json beside the services: what the
// specification names, and the verification of what was signed. An agent reads that
// document whole, and indexers take a contract of more than forty operations for too
// many to read.
var agentOperations = []string{
	"get_action_safety_workflow_status", "verify_record",
	"assurance_decide", "assurance_bind_receipt", "assurance_history",
	"get_health", "list_products", "list_content", "get_checkout", "create_checkout", "probe_purchase", "purchase_product",
	"get_billing_portal", "open_billing_portal", "get_entitlement", "list_customer_entitlements",
	"issue_free_key", "get_free_key_status", "register_agent", "request_access_token", "claim_agent",
}

// forAgents says whether an operation is in /openapi.json.
func (op *operation) forAgents() bool {
	return op.service != nil || slices.Contains(agentOperations, op.id)
}

func (*operation) forAll() bool { return true }

// newOpenAPI writes the OpenAPI 3.1 document of the operations that are in it. It is
// a pure function of table and configuration: the same bytes until one changes. What
// is off is absent.
func newOpenAPI(s *Server, in func(*operation) bool) (document, error) {
	answers, err := examples(s.app.BaseURL)
	if err != nil {
		return document{}, fmt.Errorf("read the examples: %w", err)
	}
	d := describing{s, schema.NewComponents(), answers}
	paths := object{}
	shown := map[string]bool{} // tags
	for _, op := range s.operations {
		described, err := d.operation(op) // also where it is left out: schemas have the same names in every document
		if err != nil {
			return document{}, fmt.Errorf("describe %s: %w", op.id, err)
		}
		if !in(op) {
			continue
		}
		shown[op.tag()] = true
		item, _ := paths[op.path].(object)
		if item == nil {
			item = object{}
			paths[op.path] = item
		}
		item[strings.ToLower(op.method)] = described
	}
	for name, t := range map[string]reflect.Type{"Error": reflect.TypeFor[problem](), "BareError": reflect.TypeFor[bareProblem](),
		"PaymentRequired": reflect.TypeFor[x402.PaymentRequired](), "OAuthError": reflect.TypeFor[oauthProblem]()} {
		described, err := schema.Of(t)
		if err != nil {
			return document{}, err
		}
		d.components.Add(name, described)
	}
	schemas, err := d.components.Document()
	if err != nil {
		return document{}, err
	}
	body, err := canon.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": serviceName, "version": policy.Version,
			"summary": shortDescription,
			"description": "Ask before a consequential action, act on the verdict, verify the record without trusting the server. Guides, rules and errors: " + s.app.BaseURL + "/docs. " +
				"What an agent calls is in " + s.app.BaseURL + openAPI.path + ", every operation in " + s.app.BaseURL + openAPIFull.path + ".",
			"termsOfService": s.app.BaseURL + "/terms",
			"license":        object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"contact":        object{"name": serviceName, "url": s.app.BaseURL + "/docs", "email": s.contact},
			"x-guidance":     s.guidance(),
			"x-rate-limits":  rateLimits(),
		},
		"servers":      []any{object{"url": s.app.BaseURL}},
		"tags":         describedTags(shown),
		"externalDocs": object{"url": s.app.BaseURL + "/docs", "description": "Guides, concepts, rules, errors"},
		"x-discovery":  object{"ownershipProofs": s.ownershipProofs()},
		"paths":        paths,
		"components":   object{"schemas": schema.Used(schemas, paths), "securitySchemes": s.securitySchemes()},
	})
	if err != nil {
		return document{}, err
	}
	return newDocument(body, "application/json"), nil
}

// guidance tells a program that has only this document how to begin.
func (s *Server) guidance() string {
	text := "Call action-safety/quick first and follow its nextRecommendedCall. Send X-API-Key (POST /api/keys/free issues one)"
	if s.app.Settler != nil {
		text += ", or pay the 402 over x402"
	}
	return text + ". On a time-out or 503 repeat the request with the same Idempotency-Key or PAYMENT-SIGNATURE; never sign a new payment for it. " +
		"Any answer but 200 means stop."
}

// ownershipProofs show indexers that whoever is paid runs the service.
func (s *Server) ownershipProofs() []string {
	if s.proofs == nil {
		return []string{}
	}
	return s.proofs
}

func (s *Server) securitySchemes() object {
	return object{
		"apiKey": object{"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "svck_…, issued by POST /api/keys/free."},
		"bearer": object{"type": "http", "scheme": "bearer", "description": "An API key, or an access token of POST /api/auth/token."},
		"oauth2": s.describeOAuth(),
		"accessToken": object{"type": "apiKey", "in": "header", "name": "Authorization",
			"description": "The token of oauth2, for readers that know keys and no OAuth: Bearer, a space and an access token of POST /api/auth/token."},
		"organizationToken": object{"type": "http", "scheme": "bearer",
			"description": "svco_…, issued by POST /api/assurance/tokens or countersign org token issue."},
		"session": object{"type": "apiKey", "in": "cookie", "name": s.sessions.Cookie(),
			"description": "A signed-in member; what changes something comes from the same origin, as application/json."},
	}
}

// Tags of operations, in the order of the document.
var tags = []struct{ name, description string }{
	{site.GroupSafety, "Ask before an agent runs a command."},
	{site.GroupPayments, "Decide, screen and prove what agents buy."},
	{site.GroupFinance, "Analytics that a model should not do in its head."},
	{"assurance", "Decisions, approvals and receipts under an organization's policy."},
	{"verification", "Check records and statuses. Free."},
	{"storefront", "Products, checkout, purchases, access and refunds."},
	{"credentials", "Keys, agents, tokens, sessions."},
	{"discovery", "Documents by which everything else is found."},
}

// describedTags are the tags of the operations that are shown.
func describedTags(shown map[string]bool) (list []any) {
	for _, t := range tags {
		if shown[t.name] {
			list = append(list, object{"name": t.name, "description": t.description})
		}
	}
	return list
}

// tag is the group an operation is shown in.
func (op *operation) tag() string {
	starts := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(op.path, p) })
	}
	switch {
	case op.service != nil:
		return serviceGroup(op.service.Name)
	case starts("/api/assurance/"):
		return "assurance"
	case starts("/api/verify", "/api/ledger/", "/api/agent-workflows/", "/.well-known/jwks.json"):
		return "verification"
	case starts("/api/keys/", "/api/auth/", "/api/account/"):
		return "credentials"
	case starts("/api/catalog", "/api/pricing", "/api/checkout", "/api/purchase/", "/api/billing-portal", "/api/entitlements/", "/api/support/", "/api/refunds"):
		return "storefront"
	}
	return "discovery"
}

// describing is one run through the table.
type describing struct {
	*Server
	components *schema.Components
	examples   map[string]jsontext.Value // of answers, by operation
}

// operation is one operation of the document.
func (d describing) operation(op *operation) (object, error) {
	responses, err := d.responses(op)
	if err != nil {
		return nil, err
	}
	o := object{"operationId": op.id, "summary": op.title(), "description": d.description(op), "tags": []any{op.tag()},
		"responses": responses, "security": d.security(op)}
	if op.input != nil {
		o["requestBody"] = d.requestBody(op)
	}
	if parameters := d.parameters(op); len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if op.service != nil && d.app.Settler != nil {
		o["x-payment-info"] = object{
			"price":     object{"mode": "fixed", "currency": "USD", "amount": usd(op.service.PriceCents)},
			"protocols": []any{object{"x402": object{}}},
		}
	}
	return o, nil
}

// title is a few words about an operation.
func (op *operation) title() string {
	if op.service != nil {
		return op.service.Title + "."
	}
	return op.summary
}

// description says what an operation does, what it costs, and how to call it again.
func (d describing) description(op *operation) string {
	text := op.summary
	if op.service != nil {
		text += fmt.Sprintf(" Costs $%s for an answer of 200; nothing else is charged. %s/tools/%s has a worked example.", usd(op.service.PriceCents), d.app.BaseURL, op.id)
	}
	if len(op.reasons()) > 0 {
		text += " A body of strict JSON that has this shape is refused only with: " + strings.Join(op.reasons(), ", ") + "."
	}
	return text
}

func (d describing) requestBody(op *operation) object {
	d.components.AddTypes(op.input, true)
	media := object{"schema": d.components.Add(schema.TypeName(op.id)+"Request", op.schema.Published())}
	if op.example != "" {
		media["example"] = jsontext.Value(op.example)
	}
	content := object{"application/json": media}
	if op.form {
		content["application/x-www-form-urlencoded"] = object{"schema": media["schema"]}
	}
	return object{"required": !op.optional, "content": content}
}

// parameters are those of path, query and headers.
func (d describing) parameters(op *operation) (list []any) {
	for _, name := range pathParameters(op.path) {
		schema := object{"type": "string", "minLength": 1}
		if pattern := pathPatterns[name]; pattern != "" {
			schema["pattern"] = pattern
		}
		if name == "name" {
			schema["enum"] = []any{"authorize-purchases", "preflight-actions", "verify-receipts"}
		}
		list = append(list, object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	for _, q := range op.query {
		list = append(list, object{"name": q.name, "in": "query", "required": slices.Contains(op.needs, q.name), "description": q.description, "schema": q.schema})
	}
	if op.priced() {
		list = append(list, object{"name": "Idempotency-Key", "in": "header", "required": false,
			"description": "The same key and body give the stored answer, unmetered; the same key with another body is 409. It belongs to the API key, the agent or the payer: a new payment of the same payer with the same key is not taken.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": maxIdempotencyKey}})
	}
	if op.priced() && d.app.Settler != nil {
		list = append(list, object{"name": x402.HeaderSignature, "in": "header", "required": false,
			"description": "An x402 v2 payment: base64 of the signed offer of the 402. The same payment sent again gets the same answer.",
			"schema":      object{"type": "string", "maxLength": x402.MaxHeader}})
	}
	return list
}

// pathPatterns are the forms of what stands in paths.
var pathPatterns = map[string]string{"workflowId": "^asw_[0-9a-f-]{36}$"}

// responses are the success, every refusal that is named, and the shape of all
// others.
func (d describing) responses(op *operation) (object, error) {
	responses := object{"default": op.problemResponse("Any other refusal.")}
	for _, status := range op.errors {
		responses[strconv.Itoa(status)] = op.problemResponse(http.StatusText(status))
	}
	limited, is := responses["429"].(object)
	if is {
		limited["headers"] = object{"Retry-After": object{"description": "Seconds to wait. A monthly quota has none: resetsAt says when it is over.", "schema": object{"type": "string"}}}
	}
	answer, err := d.answer(op)
	if err != nil {
		return nil, err
	}
	responses[strconv.Itoa(op.success)] = answer
	if op.replays {
		again := maps.Clone(answer)
		again["description"] = "The stored answer of the same request, again."
		responses[strconv.Itoa(http.StatusOK)] = again
	}
	if !op.priced() {
		return responses, nil
	}
	if d.app.Settler == nil {
		delete(responses, strconv.Itoa(http.StatusPaymentRequired))
	} else {
		describePayment(op, responses)
	}
	if is {
		limited["headers"].(object)["Link"] = object{"description": "Of a quota: where to get more calls, rel=upgrade.", "schema": object{"type": "string"}}
	}
	if op.service != nil {
		headers, _ := responses[strconv.Itoa(op.success)].(object)["headers"].(object)
		if headers == nil {
			headers = object{}
			responses[strconv.Itoa(op.success)].(object)["headers"] = headers
		}
		headers["RateLimit"] = object{"description": "Of a key: free calls left this month, and seconds until it ends.", "schema": object{"type": "string"}}
	}
	return responses, nil
}

// answer is the response of a success, for services with the answer to the
// request's example.
func (d describing) answer(op *operation) (object, error) {
	shape, err := op.answerSchema()
	if err != nil {
		return nil, err
	}
	media := object{"schema": shape}
	if shapes, is := shape["oneOf"].([]any); is && op.id == workflowStatus.id {
		d.components.AddTypes(op.output, false)
		for i, one := range shapes {
			shapes[i] = d.components.Add(shapeNames[i], one.(object))
		}
	}
	if op.output != nil && shape["properties"] != nil {
		d.components.AddTypes(op.output, false)
		if op.service != nil {
			d.components.AddTypes(reflect.TypeFor[seal.Envelope](), false)
		}
		media["schema"] = d.components.Add(schema.TypeName(op.id)+"Answer", shape)
	}
	if op.service != nil && !op.service.Signed { // a signature would be another one each time
		if media["example"], err = op.exampleAnswer(); err != nil {
			return nil, err
		}
	}
	if example, has := d.examples[op.id]; has {
		media["example"] = example
	}
	description := "The answer."
	if op.success == http.StatusCreated {
		description = "Made, and the answer."
	}
	return object{"description": description, "content": object{op.media: media}}, nil
}

// security says who may call: nobody in particular is an empty list, and so is a client
// of the token endpoints, who shows itself in the request itself (RFC 6749, 2.3.1).
func (d describing) security(op *operation) []any {
	byKey := []any{object{"apiKey": []any{}}, object{"bearer": []any{}}}
	session, anybody := object{"session": []any{}}, object{}
	agent := []any{object{"oauth2": []any{op.access.Scope}}, object{"accessToken": []any{}}}
	switch op.access.Kind {
	case credential.Payer:
		switch {
		case op.service == nil: // a payment alone pays, and is no scheme of this document
			return []any{}
		case d.app.Settler != nil:
			return append([]any{anybody}, byKey...)
		}
		return byKey
	case credential.KeyHolder:
		return byKey
	case credential.Member:
		if scope := organizations.ScopeOf(op.access.Right); scope != "" {
			return []any{object{"organizationToken": []any{scope}}, session}
		}
		return []any{session}
	case credential.Person:
		return []any{session}
	case credential.Customer:
		if op.access.Scope == accounts.ScopeSupport { // which no customer has
			return agent
		}
		return append(agent, session)
	case credential.AnyCustomer:
		return append([]any{anybody, session}, agent...)
	case credential.Claimant:
		return []any{object{"oauth2": []any{}, "session": []any{}}}
	}
	return []any{}
}

func requiredHeader(description string) object {
	return object{"description": description, "required": true, "schema": object{"type": "string"}}
}

// describePayment is the 402 of every call that costs something: its price stands
// in the answer, also where it depends on what is bought.
func describePayment(op *operation, responses object) {
	responses["402"] = object{
		"description": "Payment required: what to sign, or why a payment was refused. freeKey says how to call without one.",
		"headers":     object{"PAYMENT-REQUIRED": requiredHeader("Base64 of the body.")},
		"content":     object{"application/json": object{"schema": object{"$ref": "#/components/schemas/PaymentRequired"}}},
	}
	responses[strconv.Itoa(op.success)].(object)["headers"] = object{"PAYMENT-RESPONSE": object{
		"description": "Base64 of the x402 SettleResponse, where a payment paid.", "schema": object{"type": "string"}}}
}

// problemResponse is a refusal in the shape that the operation has for it.
func (op *operation) problemResponse(description string) object {
	name := "Error"
	switch {
	case op.oauth != "":
		name = "OAuthError"
	case op.bareErrors:
		name = "BareError"
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
	own, err := schema.Of(op.output)
	if op.id == workflowStatus.id && err == nil {
		return statusShapes(own), nil
	}
	if err != nil || op.service == nil || op.service.Bare {
		return own, err
	}
	common, err := schema.Of(reflect.TypeFor[envelope]())
	if err != nil {
		return nil, err
	}
	properties, required := own["properties"].(object), own["required"].([]any)
	for name, property := range common["properties"].(object) {
		if _, has := properties[name]; !has {
			properties[name] = property
		}
	}
	required = append(required, common["required"].([]any)...)
	if op.service.Signed {
		receipt, err := schema.Of(reflect.TypeFor[seal.Envelope]())
		if err != nil {
			return nil, err
		}
		receipt["description"] = "The signed receipt: that this answer was given to this request."
		properties["receipt"] = receipt
		required = append(required, "receipt")
	}
	if more := recordedMembers[op.id]; more != nil {
		added, err := schema.Of(more)
		if err != nil {
			return nil, err
		}
		maps.Copy(properties, added["properties"].(object))
		required = append(required, added["required"].([]any)...)
	}
	own["required"] = unique(required)
	return own, nil
}

// shapeNames name the two shapes of a workflow's status: A of new records, B of
// those from before actions were bound.
var shapeNames = []string{"WorkflowStatus", "LegacyWorkflowStatus"}

// statusShapes makes one schema for each shape of the status record.
func statusShapes(all object) object {
	shape := func(has []string, hasNot ...string) object {
		made, _ := schema.Copy(all).(object)
		properties, _ := made["properties"].(object)
		for _, name := range hasNot {
			delete(properties, name)
		}
		required, _ := made["required"].([]any)
		for _, name := range has {
			required = append(required, name)
		}
		made["required"] = required
		return made
	}
	bound, unbound := []string{"actionBindingVersion", "actionHash"}, []string{"binding"}
	return object{"oneOf": []any{shape(bound, unbound...), shape(unbound, bound...)}}
}

// recordedMembers are what some answers carry beside the service's own part and
// the receipt, once they are recorded. They depend on time and place, and so stand
// outside outputHash.
var recordedMembers = map[string]reflect.Type{
	actionsafety.Run.Operation: reflect.TypeFor[struct {
		WorkflowID string `json:"workflowId" jsonschema:"pattern=^asw_[0-9a-f-]{36}$" jsonschema_description:"Id of the workflow, for its status."`
		StatusURL  string `json:"statusUrl" jsonschema:"format=uri" jsonschema_description:"Where the status record can be read."`
		CreatedAt  string `json:"createdAt" jsonschema:"format=date-time" jsonschema_description:"When the workflow ran, RFC 3339 UTC."`
		ExpiresAt  string `json:"expiresAt" jsonschema:"format=date-time" jsonschema_description:"When the status record is gone: 30 days later, RFC 3339 UTC."`
	}](),
	attest.Service.Operation: reflect.TypeFor[struct {
		Record    attest.Record  `json:"record" jsonschema_description:"The attestation: what is signed."`
		Integrity seal.Integrity `json:"integrity" jsonschema_description:"Hash and signature of record."`
		VerifyURL string         `json:"verifyUrl" jsonschema:"format=uri" jsonschema_description:"Where record and integrity can be checked, free of charge."`
	}](),
}

// envelope is what every enveloped answer carries beside the service's own part.
type envelope struct {
	Status     string `json:"status" jsonschema_description:"Always ok for an answer."`
	Service    string `json:"service" jsonschema_description:"Name of the service with dashes, for example bond-analyze."`
	Version    string `json:"version" jsonschema_description:"Version of the interface."`
	InputHash  string `json:"inputHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical request."`
	OutputHash string `json:"outputHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical answer without outputHash and the signed members: the same request gives the same hash."`
	Reference  string `json:"reference,omitempty" jsonschema_description:"The reference of the request, echoed."`
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
