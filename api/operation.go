// Package api is countersign over HTTP: a table of operations and the one path
// every request takes through it.
//
//	serve   who is calling: package credential reads what the request shows, and a payment is held against its price
//	admit   may this caller make this call, and what pays for it
//	decode  the body: limit, content type, one strict parse, the schema
//	run     the command or query; a command appends before it answers
//	settle  what a payment still owes (x402 only)
//	reply   one function writes answers, one function writes errors
//
// An operation is one line of a table; the route, the validation, the OpenAPI
// document and the metrics all follow from it.
package api

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/countersign/countersign/api/schema"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/policy"
)

// object is a JSON object: a schema, or a document that is made of them.
type object = schema.Object

// operation is one endpoint.
type operation struct {
	id, method, path string
	summary          string
	service          *policy.Service           // priced; nil for what is free
	sells            func(*call) (sale, error) // what is for sale otherwise: priced, and only payments pay
	access           credential.Access         // who may call; anybody, if it says nothing
	tries            *limit                    // how often a network may try, before its credentials are looked at
	cors             bool                      // free, and pages of every origin may call it
	query            []parameter               // what may stand behind the question mark
	needs            []string                  // those of query without which the call is refused
	input, output    reflect.Type              // nil: no JSON body
	optional         bool                      // the body may be absent, which is {}
	parses           bool                      // run reads the text as it was sent; input only describes it
	anew             bool                      // creates something anew each time: an Idempotency-Key is refused
	oauth            string                    // an OAuth endpoint: its code for bad input; errors are in its form
	form             bool                      // the body may be a form; of an OAuth endpoint
	example          string                    // of the input
	success          int
	replays          bool   // the same request again is answered 200 with what is stored
	media            string // of the answer; empty: application/json
	errors           []int  // statuses beside success; refusals adds those that are of every operation
	bareErrors       bool   // bodies of errors are exactly {error}
	limit            int64  // octets of body
	run              func(*call) (reply, error)

	schema *schema.Schema // of the input, compiled once
}

// operations is every endpoint of the service, in the order of the documents.
func (s *Server) table() []*operation {
	table := slices.Concat(
		s.serviceOperations(),
		s.assuranceOperations(),
		s.organizationOperations(),
		[]*operation{workflowStatus.does(s.workflowStatus), verifyRecord.does(s.verifyRecord),
			issueFreeKey.does(s.issueFreeKey), freeKeyStatus.does(s.freeKeyStatus), health.does(s.health),
			registerAgent.does(s.registerAgent), requestAccessToken.does(s.requestAccessToken), revokeAccessToken.does(s.revokeAccessToken),
			introspectAccessToken.does(s.introspectAccessToken), claimAgent.does(s.claimAgent)},
		[]*operation{purchaseProduct.sellsOf(s.sellProduct).does(s.purchaseProduct), probePurchase.sellsOf(s.sellProduct).does(s.probePurchase),
			getCheckout.does(s.getCheckout), createCheckout.does(s.createCheckout), listProducts.does(s.listProducts),
			getBillingPortal.does(s.getBillingPortal), openBillingPortal.does(s.openBillingPortal),
			getEntitlement.does(s.getEntitlement), createDownload.does(s.createDownload), supportEntitlements.does(s.supportEntitlements),
			issueAccountKey.does(s.issueAccountKey), listAccountKeys.does(s.listAccountKeys), revokeAccountKey.does(s.revokeAccountKey)},
		[]*operation{requestRefund.does(s.requestRefund)},
		s.ledgerOperations(),
		forEveryOrigin(slices.Concat([]*operation{
			listRules.does(s.listRules), getRule.does(s.getRule), policySchema.does(s.policySchema),
			openAPI.does(s.answerOpenAPI), openAPIFull.does(s.answerOpenAPIFull), jwks.does(s.jwks),
			oauthServer.does(s.oauthServer), openIDDocument.does(s.openIDDocument),
			resourceDocument.does(s.resourceDocument), mcpResourceDocument.does(s.mcpResourceDocument),
			// auth.md tells an agent in words what the metadata tells a client; llms.txt tells a
			// model what is here and what it costs (llmstxt.org).
			s.madeOf("get_auth_md", authPath, "text/markdown; charset=utf-8", "How an agent registers, gets tokens and is claimed, step by step.", textOf("auth.md")),
			s.madeOf("get_llms_txt", llmsPath, textMedia, "What is here, what it costs and where to begin, for language models.", textOf("llms.txt")),
			showPricing.does(s.showPricing),
			x402Manifest.does(s.showManifest), x402ManifestJSON.does(s.showManifest),
		}, s.doorDocuments(), s.discoveryOperations())),
	)
	for _, op := range table {
		if op.limit == 0 {
			op.limit = limitOther
		}
		if op.success == 0 {
			op.success = http.StatusOK
		}
		op.errors = op.refusals()
		if op.media == "" {
			op.media = "application/json"
		}
	}
	return table
}

// refusals are the statuses that an operation publishes beside its success. What limits
// every call (see mayCall) may refuse it, so those are of every operation but health,
// which is not limited: 503, and 429 where the contract knows it.
func (op *operation) refusals() []int {
	if op.id == health.id {
		return op.errors
	}
	list := append(slices.Clone(op.errors), http.StatusServiceUnavailable)
	if op.knows429() {
		list = append(list, http.StatusTooManyRequests)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// knows429 says whether an operation may answer 429: not where the contract fixes the
// statuses as it fixes the bodies of errors.
func (op *operation) knows429() bool { return !op.bareErrors }

// does returns a copy of a declared operation with the function that runs it. The
// declaration itself is shared and never changed.
func (op *operation) does(run func(*call) (reply, error)) *operation {
	bound := *op
	bound.run = run
	return &bound
}

// sellsOf returns a copy of a declared operation with the function that says what it sells.
func (op *operation) sellsOf(sells func(*call) (sale, error)) *operation {
	bound := *op
	bound.sells = sells
	return &bound
}

// forEveryOrigin lets pages of every origin read documents.
func forEveryOrigin(documents []*operation) []*operation {
	for _, op := range documents {
		op.cors = true
	}
	return documents
}

// parameter is one member of a query.
type parameter struct {
	name, description string
	schema            object
}

// sale is what a priced call sells. The error of an operation's sells is that of
// what is not for sale, before anybody is asked to pay.
type sale struct {
	cents       int
	description string
}

// call is one request on its way through an operation. It may come over HTTP or
// from an MCP tool call: then request is the one that carried the message, whose
// credential counts and whose body does not.
type call struct {
	credential.Caller
	op             *operation
	request        *http.Request
	tool           *toolCall // nil over HTTP
	sale           sale      // of a priced operation
	idempotencyKey string
	body           []byte // canonical JSON, nil where the operation takes none
	text           []byte // as it was sent, where the operation parses it itself
	vars           map[string]string
}

// reply is an answer: a value to be written as canonical JSON, or text that is.
type reply struct {
	value  any    // marshalled, unless body is set
	body   []byte // canonical JSON, or whatever contentType says
	header http.Header
	media  string // empty: application/json
	status int    // 0: the operation's success
}
