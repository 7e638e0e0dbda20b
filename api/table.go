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
	"slices"

	"github.com/countersign/countersign/api/op"
)

// table is every endpoint of the service, in the order of the documents, each bound to the
// method that answers it.
func (s *Server) table() []*op.Operation {
	table := slices.Concat(
		s.serviceOperations(),
		s.assuranceOperations(),
		s.organizationOperations(),
		[]*op.Operation{workflowStatus.Does(s.workflowStatus), verifyRecord.Does(s.verifyRecord),
			issueFreeKey.Does(s.issueFreeKey), freeKeyStatus.Does(s.freeKeyStatus), health.Does(s.health),
			registerAgent.Does(s.registerAgent), requestAccessToken.Does(s.requestAccessToken), revokeAccessToken.Does(s.revokeAccessToken),
			introspectAccessToken.Does(s.introspectAccessToken), claimAgent.Does(s.claimAgent)},
		[]*op.Operation{purchaseProduct.Selling(s.sellProduct).Does(s.purchaseProduct), probePurchase.Selling(s.sellProduct).Does(s.probePurchase),
			getCheckout.Does(s.getCheckout), createCheckout.Does(s.createCheckout), listProducts.Does(s.listProducts),
			getBillingPortal.Does(s.getBillingPortal), openBillingPortal.Does(s.openBillingPortal),
			getEntitlement.Does(s.getEntitlement), createDownload.Does(s.createDownload), supportEntitlements.Does(s.supportEntitlements),
			issueAccountKey.Does(s.issueAccountKey), listAccountKeys.Does(s.listAccountKeys), revokeAccountKey.Does(s.revokeAccountKey)},
		[]*op.Operation{requestRefund.Does(s.requestRefund)},
		s.ledgerOperations(),
		op.ForEveryOrigin(slices.Concat([]*op.Operation{
			listRules.Does(s.listRules), getRule.Does(s.getRule), policySchema.Does(s.policySchema),
			openAPI.Does(s.answerOpenAPI), openAPIFull.Does(s.answerOpenAPIFull), jwks.Does(s.jwks),
			oauthServer.Does(s.oauthServer), openIDDocument.Does(s.openIDDocument),
			resourceDocument.Does(s.resourceDocument), mcpResourceDocument.Does(s.mcpResourceDocument),
			// auth.md tells an agent in words what the metadata tells a client; llms.txt tells a
			// model what is here and what it costs (llmstxt.org).
			s.madeOf("get_auth_md", authPath, "text/markdown; charset=utf-8", "How an agent registers, gets tokens and is claimed, step by step.", textOf("auth.md")),
			s.madeOf("get_llms_txt", llmsPath, textMedia, "What is here, what it costs and where to begin, for language models.", textOf("llms.txt")),
			showPricing.Does(s.showPricing),
			x402Manifest.Does(s.showManifest), x402ManifestJSON.Does(s.showManifest),
		}, s.doorDocuments(), s.discoveryOperations())),
	)
	for _, o := range table {
		if o.Limit == 0 {
			o.Limit = op.LimitOther
		}
		if o.Success == 0 {
			o.Success = http.StatusOK
		}
		o.Errors = o.Refusals()
		if o.Media == "" {
			o.Media = "application/json"
		}
	}
	return table
}
