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
	"slices"
	"strings"

	"github.com/countersign/countersign/api/op"
)

// operations is every endpoint of the service, in the order of the documents, each bound to
// the method that answers it.
func (s *Server) operations() []*op.Operation {
	table := slices.Concat(
		s.services.Operations(),
		s.decisions.Operations(),
		s.organizations.Operations(),
		s.policies.Operations(),
		s.signIn.Operations(),
		s.exports.Operations(),
		s.webhooks.GuardLogs(),
		s.webhooks.Operations(),
		s.services.Workflows(),
		s.verifier.Operations(),
		s.keys.Operations(),
		[]*op.Operation{health.Does(s.health)},
		s.oauth.Operations(),
		s.shop.Operations(),
		s.keys.AccountOperations(),
		s.refunds.Operations(),
		s.proofs.Operations(),
		op.ForEveryOrigin(slices.Concat(
			Rules{}.Operations(),
			s.policies.Schema(),
			s.contract.Operations(),
			s.publicKeys.Operations(),
			s.oauth.Documents(),
			s.discovery.First(),
			s.prices.Operations(),
			s.manifests.Operations(),
			s.oauth.MCPDocuments(),
			s.discovery.Operations(),
		)),
	)
	for _, o := range table {
		o.BareErrors = o.BareErrors || strings.HasPrefix(o.Path, "/api/assurance/")
		o.Complete()
	}
	return table
}
