package api

import (
	"sync"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy/shape"
)

// conditionsOf are JSON Schemas that say which members of a request need or exclude each
// other. They are published in the schema of the request beside what the struct's tags say.
// TestConditionsAreThoseOfTheService holds schema and service to the same verdict.
func conditionsOf(o *op.Operation) []any {
	switch {
	case o.Service != nil && o.Service.Conditions != nil:
		return o.Service.Conditions()
	case o.ID == decide.ID:
		return shape.Intent()
	case o.ID == registerAgent.ID:
		return []any{shape.When(shape.Given("email"), shape.Is("identity_type", "verified_email"))}
	}
	return nil
}

// reasonsOf are the codes with which an operation refuses a body of the published shape,
// since JSON Schema cannot say why. The description of the operation names them.
func reasonsOf(o *op.Operation) []string {
	if o.Service != nil {
		return o.Service.Reasons
	}
	return refusals()[o.ID]
}

// refusals are those codes of the operations that are no services. They are made once and
// shared.
var refusals = sync.OnceValue(func() map[string][]string {
	const sums = "out_of_range"
	return map[string][]string{
		issueFreeKey.ID:          {"invalid_email"},
		requestSignIn.ID:         {"invalid_email"},
		registerAgent.ID:         {codeInvalidMetadata},
		requestAccessToken.ID:    {codeInvalidRequest, codeGrantType, accounts.CodeInvalidScope, codeInvalidTarget},
		revokeAccessToken.ID:     {codeInvalidRequest},
		introspectAccessToken.ID: {codeInvalidRequest},
		requestRefund.ID:         {"unknown_operation"},
		verifyRecord.ID:          {"missing_field", "wrong_type", "too_many_items", sums},
		addMember.ID:             {"invalid_email"},
		decide.ID:                {sums}, // text that does not show
		bindReceipt.ID:           {sums},
		approve.ID:               {sums},
		renameOrganization.ID:    {sums},
		issueToken.ID:            {sums},
		activatePolicy.ID:        {sums},
		freezePolicy.ID:          {sums},
		draftPolicy.ID:           {"missing_field", "wrong_type", "unknown_field", "invalid_enum", "invalid_format", "too_many_items", sums},
		createWebhook.ID:         {sums},
	}
})
