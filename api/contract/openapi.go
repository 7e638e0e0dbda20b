// Package contract describes the operations for programs. It generates two OpenAPI documents from
// the table of operations: one with the operations that agents call, and one with all of them. It
// also contains example answers, and the table of error codes with status and explanation. The
// description of a single operation belongs in its declaration. What all operations have in common
// belongs here.
package contract

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Contract generates the OpenAPI documents.
type Contract struct {
	Table   *op.Table
	BaseURL string
	Contact string   // e-mail address
	Cookie  string   // name of the session cookie
	Proofs  []string // proofs of ownership, for indexers of paid services
	X402    bool     // whether the documents describe x402 payments

	ForAgents, ForAll func() (op.Document, error) // set by New; each document is generated at the first request
}

// New returns the contract of the operations in a table.
func New(c Contract) *Contract {
	c.ForAgents = sync.OnceValues(func() (op.Document, error) { return c.write(forAgents) })
	c.ForAll = sync.OnceValues(func() (op.Document, error) { return c.write(forAll) })
	return &c
}

// Operations lists the operations that return the two documents.
func (s *Contract) Operations() []*op.Operation {
	return []*op.Operation{
		OpenAPI.Does(func(c *op.Call) (op.Reply, error) { return answerContract(s.ForAgents, c) }),
		OpenAPIFull.Does(func(c *op.Call) (op.Reply, error) { return answerContract(s.ForAll, c) }),
	}
}

// OpenAPI is the operation that returns the document which agents and indexers read first.
var OpenAPI = &op.Operation{
	ID: "get_openapi", Method: http.MethodGet, Path: "/openapi.json",
	Summary: "The OpenAPI document of the operations for agents: services, assurance, storefront, credentials. /openapi-full.json has every operation.",
	Output:  reflect.TypeFor[map[string]any](),
}

// OpenAPIFull is the operation that returns the document with every operation.
var OpenAPIFull = &op.Operation{
	ID: "get_openapi_full", Method: http.MethodGet, Path: "/openapi-full.json",
	Summary: "The OpenAPI document of every operation, including organizations, accounts and documents.",
	Output:  reflect.TypeFor[map[string]any](),
}

func answerContract(contract func() (op.Document, error), c *op.Call) (op.Reply, error) {
	d, err := contract()
	if err != nil {
		return op.Reply{}, err
	}
	return d.Answer(c), nil
}

// AgentOperations are the operations in /openapi.json other than the services: those that the
// specification requires, and the verification of records. The list is short because agents read
// the whole document, and indexers ignore documents with more than forty operations.
var AgentOperations = []string{
	"get_action_safety_workflow_status", "verify_record",
	"assurance_decide", "assurance_bind_receipt", "assurance_history",
	"get_health", "list_products", "list_content", "get_checkout", "create_checkout", "probe_purchase", "purchase_product",
	"get_billing_portal", "open_billing_portal", "get_entitlement", "list_customer_entitlements",
	"issue_free_key", "get_free_key_status", "register_agent", "request_access_token", "claim_agent",
}

// forAgents reports whether an operation is in /openapi.json.
func forAgents(o *op.Operation) bool {
	return o.Service != nil && !o.Service.Unlisted || slices.Contains(AgentOperations, o.ID)
}

func forAll(*op.Operation) bool { return true }

// write generates the OpenAPI 3.1 document of the operations for which the function `in` returns
// true. The same table and configuration give the same bytes. Features that are not configured are
// omitted.
func (s *Contract) write(in func(*op.Operation) bool) (op.Document, error) {
	answers, err := Examples(s.BaseURL)
	if err != nil {
		return op.Document{}, fmt.Errorf("read the examples: %w", err)
	}
	d := describing{s, schema.NewComponents(), answers}
	paths := op.Object{}
	shown := map[string]bool{} // used tags
	for _, o := range *s.Table {
		described, err := d.operation(o) // Describe omitted operations, too, so that schemas have the same names in every document.
		if err != nil {
			return op.Document{}, fmt.Errorf("describe %s: %w", o.ID, err)
		}
		if !in(o) {
			continue
		}
		shown[tagOf(o)] = true
		item, _ := paths[o.Path].(op.Object)
		if item == nil {
			item = op.Object{}
			paths[o.Path] = item
		}
		item[strings.ToLower(o.Method)] = described
	}
	// Add the schemas of the errors, which no operation declares.
	for name, t := range map[string]reflect.Type{"Error": reflect.TypeFor[op.Problem](), "BareError": reflect.TypeFor[op.BareProblem](),
		"PaymentRequired": reflect.TypeFor[x402.PaymentRequired](), "OAuthError": reflect.TypeFor[op.OAuthProblem]()} {
		described, err := schema.Of(t)
		if err != nil {
			return op.Document{}, err
		}
		d.components.Add(name, described)
	}
	schemas, err := d.components.Document()
	if err != nil {
		return op.Document{}, err
	}
	body, err := canon.Marshal(op.Object{
		"openapi": "3.1.0",
		"info": op.Object{
			"title": op.Name, "version": policy.Version,
			"summary": op.ShortDescription,
			"description": "Ask before a consequential action, act on the verdict, verify the record without trusting the server. Guides, rules and errors: " + s.BaseURL + "/docs. " +
				"The operations for agents are in " + s.BaseURL + OpenAPI.Path + ", all operations in " + s.BaseURL + OpenAPIFull.Path + ".",
			"termsOfService": s.BaseURL + "/terms",
			"license":        op.Object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"contact":        op.Object{"name": op.Name, "url": s.BaseURL + "/docs", "email": s.Contact},
			"x-guidance":     s.guidance(),
			"x-rate-limits":  op.RateLimits(),
		},
		"servers":      []any{op.Object{"url": s.BaseURL}},
		"tags":         describedTags(shown),
		"externalDocs": op.Object{"url": s.BaseURL + "/docs", "description": "Guides, concepts, rules, errors"},
		"x-discovery":  op.Object{"ownershipProofs": s.ownershipProofs()},
		"paths":        paths,
		"components":   op.Object{"schemas": schema.Used(schemas, paths), "securitySchemes": s.securitySchemes()},
	})
	if err != nil {
		return op.Document{}, err
	}
	return op.NewDocument(body, "application/json"), nil
}

// guidance explains the first steps to a program that has only this document.
func (s *Contract) guidance() string {
	text := "Call action-safety/quick first and follow its nextRecommendedCall. Send X-API-Key (POST /api/keys/free issues one)"
	if s.X402 {
		text += ", or pay the 402 over x402"
	}
	return text + ". On a time-out or 503 repeat the request with the same Idempotency-Key or PAYMENT-SIGNATURE; never sign a new payment for it. " +
		"Any answer but 200 means stop."
}

// ownershipProofs returns the proofs that show indexers that the payee runs the service.
func (s *Contract) ownershipProofs() []string {
	if s.Proofs == nil {
		return []string{}
	}
	return s.Proofs
}

func (s *Contract) securitySchemes() op.Object {
	return op.Object{
		"apiKey": op.Object{"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "svck_…, issued by POST /api/keys/free."},
		"bearer": op.Object{"type": "http", "scheme": "bearer", "description": "An API key, or an access token of POST /api/auth/token."},
		"oauth2": s.oauth(),
		"accessToken": op.Object{"type": "apiKey", "in": "header", "name": "Authorization",
			"description": "The same access token as oauth2, for clients that support API keys but not OAuth: Bearer, a space and an access token of POST /api/auth/token."},
		"organizationToken": op.Object{"type": "http", "scheme": "bearer",
			"description": "svco_…, issued by POST /api/assurance/tokens or countersign org token issue."},
		"session": op.Object{"type": "apiKey", "in": "cookie", "name": s.Cookie,
			"description": "The session of a signed-in member. A request that changes something must come from the same origin, as application/json."},
	}
}

// Tags of operations, in the order of the document.
var tags = []struct{ name, description string }{
	{site.GroupSafety, "Ask before an agent runs a command."},
	{site.GroupPayments, "Decide, screen and prove what agents buy."},
	{site.GroupFinance, "Exact financial figures that a model should not compute itself."},
	{"assurance", "Decisions, approvals and receipts under an organization's policy."},
	{"verification", "Check records and statuses. Free."},
	{"storefront", "Products, checkout, purchases, access and refunds."},
	{"credentials", "Keys, agents, tokens, sessions."},
	{"discovery", "Documents that list the operations, pages and endpoints."},
}

// describedTags returns the tags that the document's operations use.
func describedTags(shown map[string]bool) (list []any) {
	for _, t := range tags {
		if shown[t.name] {
			list = append(list, op.Object{"name": t.name, "description": t.description})
		}
	}
	return list
}

// tagOf returns the tag of an operation.
func tagOf(o *op.Operation) string {
	starts := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(o.Path, p) })
	}
	switch {
	case o.Service != nil:
		return o.Service.Group
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

// describing contains the state while one document is generated.
type describing struct {
	*Contract
	components *schema.Components
	examples   map[string]jsontext.Value // answers, by operation id
}

// operation returns the OpenAPI description of one operation.
func (d describing) operation(endpoint *op.Operation) (op.Object, error) {
	responses, err := d.responses(endpoint)
	if err != nil {
		return nil, err
	}
	o := op.Object{"operationId": endpoint.ID, "summary": titleOf(endpoint), "description": d.description(endpoint), "tags": []any{tagOf(endpoint)},
		"responses": responses, "security": d.security(endpoint)}
	if endpoint.Input != nil {
		o["requestBody"] = d.requestBody(endpoint)
	}
	if parameters := d.parameters(endpoint); len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if endpoint.Service != nil && d.X402 {
		o["x-payment-info"] = op.Object{
			"price":     op.Object{"mode": "fixed", "currency": "USD", "amount": op.USD(endpoint.Service.PriceCents)},
			"protocols": []any{op.Object{"x402": op.Object{}}},
		}
	}
	return o, nil
}

func titleOf(o *op.Operation) string {
	if o.Service != nil {
		return o.Service.Title + "."
	}
	return o.Summary
}

// description returns text that explains what an operation does, what it costs, and how to retry
// it.
func (d describing) description(o *op.Operation) string {
	text := o.Summary
	if o.Service != nil {
		text += fmt.Sprintf(" Costs $%s for an answer of 200; other answers are not charged. %s/tools/%s has a worked example.", op.USD(o.Service.PriceCents), d.BaseURL, o.ID)
	}
	if len(o.Refuses) > 0 {
		text += " A body of strict JSON that matches this schema is refused only with these codes: " + strings.Join(o.Refuses, ", ") + "."
	}
	return text
}

func (d describing) requestBody(o *op.Operation) op.Object {
	d.components.AddTypes(o.Input, true)
	media := op.Object{"schema": d.components.Add(schema.TypeName(o.ID)+"Request", o.Schema.Published())}
	if o.Example != "" {
		media["example"] = jsontext.Value(o.Example)
	}
	content := op.Object{"application/json": media}
	if o.Form {
		content["application/x-www-form-urlencoded"] = op.Object{"schema": media["schema"]}
	}
	return op.Object{"required": !o.Optional, "content": content}
}

// parameters returns the parameters of an operation in path, query and headers.
func (d describing) parameters(o *op.Operation) (list []any) {
	for _, name := range o.PathParameters() {
		schema := op.Object{"type": "string", "minLength": 1}
		if pattern := pathPatterns[name]; pattern != "" {
			schema["pattern"] = pattern
		}
		if name == "name" {
			schema["enum"] = []any{"authorize-purchases", "preflight-actions", "verify-receipts"}
		}
		list = append(list, op.Object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	for _, q := range o.Query {
		list = append(list, op.Object{"name": q.Name, "in": "query", "required": slices.Contains(o.Needs, q.Name), "description": q.Description, "schema": q.Schema})
	}
	if o.Priced() {
		list = append(list, op.Object{"name": "Idempotency-Key", "in": "header", "required": false,
			"description": "A repeated key with the same body returns the stored answer and is not metered; with another body the answer is 409. The key belongs to the API key, the agent or the payer: a second payment of the same payer with the same key is not charged.",
			"schema":      op.Object{"type": "string", "minLength": 1, "maxLength": op.MaxIdempotencyKey}})
	}
	if o.Priced() && d.X402 {
		list = append(list, op.Object{"name": x402.HeaderSignature, "in": "header", "required": false,
			"description": "An x402 v2 payment: base64 of the signed offer of the 402 answer. The same payment sent again returns the same answer.",
			"schema":      op.Object{"type": "string", "maxLength": x402.MaxHeader}})
	}
	return list
}

// pathPatterns gives the regular expressions of path parameters.
var pathPatterns = map[string]string{"workflowId": "^asw_[0-9a-f-]{36}$"}

// responses describes the success, the errors that the operation declares, and the shape of all
// other errors.
func (d describing) responses(o *op.Operation) (op.Object, error) {
	responses := op.Object{"default": problemResponse(o, "Any other refusal.")}
	for _, status := range o.Errors {
		responses[strconv.Itoa(status)] = problemResponse(o, http.StatusText(status))
	}
	limited, is := responses["429"].(op.Object)
	if is {
		limited["headers"] = op.Object{"Retry-After": op.Object{"description": "Seconds to wait. An answer about a used-up monthly quota lacks this header: its member resetsAt is the start of the next month.", "schema": op.Object{"type": "string"}}}
	}
	answer, err := d.answer(o)
	if err != nil {
		return nil, err
	}
	responses[strconv.Itoa(o.Success)] = answer
	if o.Replays {
		again := maps.Clone(answer)
		again["description"] = "true if this is the stored answer of an earlier request with the same key or payment."
		responses[strconv.Itoa(http.StatusOK)] = again
	}
	if !o.Priced() {
		return responses, nil
	}
	if !d.X402 {
		delete(responses, strconv.Itoa(http.StatusPaymentRequired))
	} else {
		describePayment(o, responses)
	}
	if is {
		limited["headers"].(op.Object)["Link"] = op.Object{"description": "If a quota is used up: where to get more calls, rel=upgrade.", "schema": op.Object{"type": "string"}}
	}
	if o.Service != nil {
		headers, _ := responses[strconv.Itoa(o.Success)].(op.Object)["headers"].(op.Object)
		if headers == nil {
			headers = op.Object{}
			responses[strconv.Itoa(o.Success)].(op.Object)["headers"] = headers
		}
		headers["RateLimit"] = op.Object{"description": "With an API key: free calls left this month, and seconds until the month ends.", "schema": op.Object{"type": "string"}}
	}
	return responses, nil
}

// answer describes the success. For a service it includes the answer to the example request.
func (d describing) answer(o *op.Operation) (op.Object, error) {
	shape, err := AnswerSchema(o)
	if err != nil {
		return nil, err
	}
	media := op.Object{"schema": shape}
	if shapes, is := shape["oneOf"].([]any); is && o.Output == statusRecord {
		d.components.AddTypes(o.Output, false)
		for i, one := range shapes {
			shapes[i] = d.components.Add(shapeNames[i], one.(op.Object))
		}
	}
	if o.Output != nil && shape["properties"] != nil {
		d.components.AddTypes(o.Output, false)
		if o.Service != nil {
			d.components.AddTypes(reflect.TypeFor[seal.Envelope](), false)
		}
		media["schema"] = d.components.Add(schema.TypeName(o.ID)+"Answer", shape)
	}
	if o.Service != nil && !o.Service.Signed { // the answers of other services contain a signature, which differs each time
		if media["example"], err = o.ExampleAnswer(); err != nil {
			return nil, err
		}
	}
	if example, has := d.examples[o.ID]; has {
		media["example"] = example
	}
	description := "The answer."
	if o.Success == http.StatusCreated {
		description = "Created."
	}
	return op.Object{"description": description, "content": op.Object{o.Media: media}}, nil
}

// security lists the credentials that an operation accepts. The list is empty if no credential is
// required, and for the token endpoints, where the client authenticates in the body or by Basic
// authorization (RFC 6749, 2.3.1).
func (d describing) security(o *op.Operation) []any {
	byKey := []any{op.Object{"apiKey": []any{}}, op.Object{"bearer": []any{}}}
	session, anybody := op.Object{"session": []any{}}, op.Object{}
	agent := []any{op.Object{"oauth2": []any{o.Access.Scope}}, op.Object{"accessToken": []any{}}}
	switch o.Access.Kind {
	case credential.Payer:
		switch {
		case o.Service == nil: // accepts payments only, which are not a security scheme of the document
			return []any{}
		case d.X402:
			return append([]any{anybody}, byKey...)
		}
		return byKey
	case credential.KeyHolder:
		return byKey
	case credential.Member:
		if scope := organizations.ScopeOf(o.Access.Right); scope != "" {
			return []any{op.Object{"organizationToken": []any{scope}}, session}
		}
		return []any{session}
	case credential.Person:
		return []any{session}
	case credential.Customer:
		if o.Access.Scope == accounts.ScopeSupport { // no customer has this scope, so a session does not suffice
			return agent
		}
		return append(agent, session)
	case credential.AnyCustomer:
		return append([]any{anybody, session}, agent...)
	case credential.Claimant:
		return []any{op.Object{"oauth2": []any{}, "session": []any{}}}
	}
	return []any{}
}

func requiredHeader(description string) op.Object {
	return op.Object{"description": description, "required": true, "schema": op.Object{"type": "string"}}
}

// describePayment adds the 402 response to an operation that costs something. The price is in the
// answer, because it may depend on the product.
func describePayment(o *op.Operation, responses op.Object) {
	responses["402"] = op.Object{
		"description": "Payment required: the offers to sign, or why a payment was refused. freeKey says how to call without a payment.",
		"headers":     op.Object{"PAYMENT-REQUIRED": requiredHeader("The body in base64.")},
		"content":     op.Object{"application/json": op.Object{"schema": op.Object{"$ref": "#/components/schemas/PaymentRequired"}}},
	}
	responses[strconv.Itoa(o.Success)].(op.Object)["headers"] = op.Object{"PAYMENT-RESPONSE": op.Object{
		"description": "The x402 SettleResponse in base64, if a payment paid for the call.", "schema": op.Object{"type": "string"}}}
}

// problemResponse describes an error response, in the shape that the operation uses for errors.
func problemResponse(o *op.Operation, description string) op.Object {
	name := "Error"
	switch {
	case o.OAuth != "":
		name = "OAuthError"
	case o.BareErrors:
		name = "BareError"
	}
	return op.Object{"description": description, "content": op.Object{"application/json": op.Object{
		"schema": op.Object{"$ref": "#/components/schemas/" + name}}}}
}

// AnswerSchema returns the schema of a success. For a service with an envelope it includes the
// members that all such answers have.
func AnswerSchema(o *op.Operation) (op.Object, error) {
	if o.Output == nil {
		return op.Object{"type": "object"}, nil
	}
	own, err := schema.Of(o.Output)
	if o.Output == statusRecord && err == nil {
		return statusShapes(own), nil
	}
	if err != nil || o.Service == nil || o.Service.Bare {
		return own, err
	}
	common, err := schema.Of(reflect.TypeFor[envelope]())
	if err != nil {
		return nil, err
	}
	properties, required := own["properties"].(op.Object), own["required"].([]any)
	for name, property := range common["properties"].(op.Object) {
		if _, has := properties[name]; !has {
			properties[name] = property
		}
	}
	required = append(required, common["required"].([]any)...)
	if o.Service.Signed {
		receipt, err := schema.Of(reflect.TypeFor[seal.Envelope]())
		if err != nil {
			return nil, err
		}
		receipt["description"] = "The signed receipt, which proves that this request got this answer."
		properties["receipt"] = receipt
		required = append(required, "receipt")
	}
	if more := recordedMembers[o.ID]; more != nil {
		added, err := schema.Of(more)
		if err != nil {
			return nil, err
		}
		maps.Copy(properties, added["properties"].(op.Object))
		required = append(required, added["required"].([]any)...)
	}
	own["required"] = unique(required)
	return own, nil
}

// statusRecord is the type of the answer about a workflow.
var statusRecord = reflect.TypeFor[projections.StatusRecord]()

// shapeNames are the names of the two shapes of a workflow's status. The first shape is that of
// new records. The second is that of old records, which do not contain the hash of the action.
var shapeNames = []string{"WorkflowStatus", "LegacyWorkflowStatus"}

// statusShapes returns a schema with one alternative for each shape of the status record.
func statusShapes(all op.Object) op.Object {
	shape := func(has []string, hasNot ...string) op.Object {
		made, _ := schema.Copy(all).(op.Object)
		properties, _ := made["properties"].(op.Object)
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
	return op.Object{"oneOf": []any{shape(bound, unbound...), shape(unbound, bound...)}}
}

// recordedMembers are additional members in the answers of some services. Their values depend on
// when and where the call was recorded, so outputHash does not cover them.
var recordedMembers = map[string]reflect.Type{
	actionsafety.Run.Operation: reflect.TypeFor[struct {
		WorkflowID string `json:"workflowId" jsonschema:"pattern=^asw_[0-9a-f-]{36}$" jsonschema_description:"Id of the workflow; statusUrl contains it."`
		StatusURL  string `json:"statusUrl" jsonschema:"format=uri" jsonschema_description:"Where the status record can be read."`
		CreatedAt  string `json:"createdAt" jsonschema:"format=date-time" jsonschema_description:"When the workflow ran, RFC 3339 UTC."`
		ExpiresAt  string `json:"expiresAt" jsonschema:"format=date-time" jsonschema_description:"When the status record is deleted: 30 days after createdAt, RFC 3339 UTC."`
	}](),
	attest.Service.Operation: reflect.TypeFor[struct {
		Record    attest.Record  `json:"record" jsonschema_description:"The attestation, which integrity signs."`
		Integrity seal.Integrity `json:"integrity" jsonschema_description:"Hash and signature of record."`
		VerifyURL string         `json:"verifyUrl" jsonschema:"format=uri" jsonschema_description:"Address that checks record and integrity, free of charge."`
	}](),
}

// envelope contains the members that every answer of a service has in addition to its own.
type envelope struct {
	Status     string `json:"status" jsonschema_description:"Always ok."`
	Service    string `json:"service" jsonschema_description:"Name of the service with dashes, for example bond-analyze."`
	Version    string `json:"version" jsonschema_description:"Version of the interface."`
	InputHash  string `json:"inputHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical request."`
	OutputHash string `json:"outputHash" jsonschema:"pattern=^[a-f0-9]{64}$" jsonschema_description:"SHA-256 of the canonical answer without outputHash and the signed members. The same request gives the same hash."`
	Reference  string `json:"reference,omitempty" jsonschema_description:"The reference of the request, unchanged."`
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

// oauth returns the security scheme for access tokens.
func (s *Contract) oauth() op.Object {
	return op.Object{"type": "oauth2", "flows": op.Object{"clientCredentials": op.Object{
		"tokenUrl": s.BaseURL + "/api/auth/token", "scopes": ScopeMeanings}}}
}

// ScopeMeanings describes what each scope grants.
var ScopeMeanings = map[string]string{
	accounts.ScopeCatalog:      "read the product catalog",
	accounts.ScopeCheckout:     "start checkout sessions",
	accounts.ScopeBilling:      "open the billing portal for subscribers",
	accounts.ScopeEntitlements: "inspect the claimed customer's live product access",
	accounts.ScopeSupport:      "operator-approved clients only; inspect customer entitlements",
}
