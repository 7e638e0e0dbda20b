package api

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
)

// operations lists every operation of the service in the order of the documents, with its handler.
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
			services.Rules{}.Operations(),
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
