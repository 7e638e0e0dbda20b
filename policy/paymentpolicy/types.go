package paymentpolicy

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Input is one proposed payment, with what the buyer expects, allows and has spent.
type Input struct {
	policy.Common
	Payment     Payment      `json:"payment" jsonschema_description:"The x402 payment to judge before it is signed."`
	Expected    *Expected    `json:"expected,omitempty" jsonschema_description:"What the buyer expects to pay for, known before the challenge arrived."`
	Policy      *Policy      `json:"policy,omitempty" jsonschema_description:"The buyer's policy. Without one the decision is at least needs_review."`
	Spend       *Spend       `json:"spend,omitempty" jsonschema_description:"Amounts spent before this payment, for the daily and monthly limits."`
	Replay      *Replay      `json:"replay,omitempty" jsonschema_description:"Nonces and payment identifiers already used."`
	ServiceRisk *ServiceRisk `json:"serviceRisk,omitempty" jsonschema_description:"What the buyer knows about the seller's risk."`
}

// Payment is the x402 intent with further members of the seller's challenge.
type Payment struct {
	Intent
	MaxTimeoutSeconds *int           `json:"maxTimeoutSeconds,omitempty" jsonschema:"minimum=-9007199254740991,maximum=9007199254740991" jsonschema_description:"Validity of the authorization in seconds, from the challenge."`
	Nonce             string         `json:"nonce,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The nonce of the authorization."`
	Description       string         `json:"description,omitempty" jsonschema:"minLength=1,maxLength=8192" jsonschema_description:"The seller's text; scanned for secrets and personal data."`
	Metadata          jsontext.Value `json:"metadata,omitempty" jsonschema_description:"Free-form members that travel with the payment; scanned for secrets and personal data."`
}

// Intent has the members of an x402 intent.
type Intent struct {
	ResourceURL            string   `json:"resourceUrl" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Absolute http or https URL of the paid resource."`
	Method                 string   `json:"method" jsonschema:"minLength=1,maxLength=32,pattern=^[-!#$%&'*+.^_\x60|~0-9A-Za-z]+$" jsonschema_description:"HTTP method, compared without regard to case."`
	Scheme                 string   `json:"scheme,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"x402 scheme: exact, upto or batch-settlement."`
	Network                string   `json:"network,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"CAIP-2 name (eip155:8453) or alias (base)."`
	Asset                  string   `json:"asset,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Token contract, or the symbol USDC."`
	PayTo                  string   `json:"payTo,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Address that receives the money."`
	AmountUnits            string   `json:"amountUnits,omitempty" jsonschema:"minLength=1,maxLength=78,pattern=^(0|[1-9][0-9]{0\\,77})$" jsonschema_description:"Amount in the token's smallest units, decimal digits."`
	AmountUSD              *float64 `json:"amountUsd,omitempty" jsonschema:"minimum=0,maximum=1e9" jsonschema_description:"Amount in US dollars."`
	FacilitatorURL         string   `json:"facilitatorUrl,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"URL of the facilitator that settles."`
	PaymentIdentifier      string   `json:"paymentIdentifier,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Identifier of the purchase; a retry has the same one."`
	PaymentPayloadResource string   `json:"paymentPayloadResource,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The resource URL inside the payload that will be signed."`
	PaymentPayloadMethod   string   `json:"paymentPayloadMethod,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The method inside the payload that will be signed."`
}

// Expected contains the terms that the buyer expects. They must not come from the challenge.
type Expected struct {
	ResourceURL  string   `json:"resourceUrl,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The URL the buyer wanted."`
	Method       string   `json:"method,omitempty" jsonschema:"minLength=1,maxLength=32" jsonschema_description:"The method the buyer wanted."`
	Network      string   `json:"network,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The network the buyer expected."`
	Asset        string   `json:"asset,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The asset the buyer expected."`
	PayTo        string   `json:"payTo,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"The recipient the buyer expected."`
	AmountUnits  string   `json:"amountUnits,omitempty" jsonschema:"minLength=1,maxLength=78,pattern=^(0|[1-9][0-9]{0\\,77})$" jsonschema_description:"The highest amount the buyer expected, in the smallest units of the asset, in decimal digits."`
	AmountUSD    *float64 `json:"amountUsd,omitempty" jsonschema:"minimum=0,maximum=1e9" jsonschema_description:"The highest amount the buyer expected, in US dollars."`
	ToleranceBps int      `json:"toleranceBps,omitempty" jsonschema:"minimum=0,maximum=10000" jsonschema_description:"Accepted excess over the expected amount, in hundredths of a percent."`
}

// Policy is the buyer's policy for payments. An absent list does not restrict; an empty list
// allows nothing.
type Policy struct {
	PolicyID             string   `json:"policyId" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Name of the policy."`
	Version              int      `json:"version" jsonschema:"minimum=1,maximum=9007199254740991" jsonschema_description:"Version of the policy, counted from 1."`
	MaxUSDPerTransaction *float64 `json:"maxUsdPerTransaction,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"Maximum of one transaction in US dollars; an equal amount passes."`
	AllowedNetworks      []string `json:"allowedNetworks,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed networks; absent: any, empty: none."`
	AllowedPayTo         []string `json:"allowedPayTo,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed recipients; absent: any, empty: none."`
	AllowedHosts         []string `json:"allowedHosts,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed hosts; *.domain allows every host below a domain."`
	BlockedHosts         []string `json:"blockedHosts,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Blocked hosts, in the forms of allowedHosts; overrides allowedHosts."`

	RequireExactScheme       bool  `json:"requireExactScheme,omitempty" jsonschema_description:"Only the scheme exact is allowed. Default false."`
	RequireHTTPS             *bool `json:"requireHttps,omitempty" jsonschema_description:"Only https is allowed, except to this machine. Default true."`
	RequireResourceBinding   bool  `json:"requireResourceBinding,omitempty" jsonschema_description:"paymentPayloadResource must be given. Default false."`
	RequirePaymentIdentifier bool  `json:"requirePaymentIdentifier,omitempty" jsonschema_description:"paymentIdentifier must be given. Default false."`

	AllowedAssets              []string `json:"allowedAssets,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Allowed assets; absent: any, empty: none."`
	AllowedMethods             []string `json:"allowedMethods,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=32" jsonschema_description:"Allowed HTTP methods; absent: any, empty: none."`
	AllowedFacilitators        []string `json:"allowedFacilitators,omitzero" jsonschema:"maxItems=1000,minLength=1,maxLength=2048" jsonschema_description:"Hosts of allowed facilitators, in the forms of allowedHosts."`
	MaxTimeoutSeconds          *int     `json:"maxTimeoutSeconds,omitempty" jsonschema:"minimum=1,maximum=31536000" jsonschema_description:"Maximum validity of the authorization in seconds. Default 300."`
	DailyLimitUSD              *float64 `json:"dailyLimitUsd,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"Largest sum of the payments of a day, including this payment, in US dollars."`
	MonthlyLimitUSD            *float64 `json:"monthlyLimitUsd,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"Largest sum of the payments of a month, including this payment, in US dollars."`
	ReviewAboveUSD             *float64 `json:"reviewAboveUsd,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"An amount above this one, in US dollars, needs a review by a person."`
	ReviewServiceRiskAtOrAbove string   `json:"reviewServiceRiskAtOrAbove,omitempty" jsonschema:"enum=medium,enum=high,enum=critical" jsonschema_description:"A serviceRisk.level at or above this one needs a review. Default high."`
}

// RefusesNull is a marker: a schema that is made from a type with this method does not allow null
// for any member, because many programs write null for an empty list.
func (Policy) RefusesNull() {}

// Spend has the amounts spent before this payment, in US dollars.
type Spend struct {
	TodayUSD float64 `json:"todayUsd,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"Spent today before this payment, in US dollars. Default 0."`
	MonthUSD float64 `json:"monthUsd,omitempty" jsonschema:"minimum=0,maximum=1e12" jsonschema_description:"Spent this month before this payment, in US dollars. Default 0."`
}

// Replay lists the nonces and identifiers of earlier payments.
type Replay struct {
	UsedNonces             []string `json:"usedNonces,omitempty" jsonschema:"maxItems=10000,minLength=1,maxLength=2048" jsonschema_description:"Nonces of earlier payments."`
	UsedPaymentIdentifiers []string `json:"usedPaymentIdentifiers,omitempty" jsonschema:"maxItems=10000,minLength=1,maxLength=2048" jsonschema_description:"Payment identifiers of earlier payments."`
}

// ServiceRisk is a risk rating of the seller that the buyer has.
type ServiceRisk struct {
	Level  string `json:"level" jsonschema:"minLength=1,enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Risk level of the seller's service."`
	Source string `json:"source,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Source of the rating."`
}

// Output is the decision with its reasons.
type Output struct {
	Decision          string         `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"The strictest result: deny, then needs_review, then allow."`
	PolicyID          *string        `json:"policyId" jsonschema:"nullable" jsonschema_description:"The policy that was applied."`
	PolicyVersion     *int           `json:"policyVersion" jsonschema:"nullable" jsonschema_description:"Version of the policy."`
	AmountUSD         *float64       `json:"amountUsd" jsonschema:"nullable" jsonschema_description:"Amount in US dollars, as given or derived from USDC units; null if neither is possible."`
	Findings          []Finding      `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
	FindingsTruncated bool           `json:"findingsTruncated,omitzero" jsonschema_description:"True if there were more than 500 findings; the most severe are kept."`
	Checks            []Check        `json:"checks" jsonschema_description:"Result of every rule, in the order of the catalogue."`
	RedactedRecord    RedactedRecord `json:"redactedRecord" jsonschema_description:"Log entry without query string, metadata values and secrets."`
}

// ReceiptDecision returns the decision that the signed receipt repeats.
func (o Output) ReceiptDecision() string { return o.Decision }

// Finding is one rule that did not pass. Expected and Actual never contain a secret, a nonce,
// an identifier, a query string or a complete address.
type Finding struct {
	ID       string `json:"id" jsonschema_description:"Name of the rule."`
	Effect   string `json:"effect" jsonschema:"enum=deny,enum=review,enum=none" jsonschema_description:"Effect on the decision."`
	Severity string `json:"severity" jsonschema:"enum=info,enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Severity of the finding."`
	Path     string `json:"path" jsonschema_description:"JSON pointer of the member concerned."`
	Expected string `json:"expected" jsonschema_description:"What was expected."`
	Actual   string `json:"actual" jsonschema_description:"What was found; never a secret."`
	Message  string `json:"message" jsonschema_description:"What was found, in one sentence."`
	DocPath  string `json:"docPath" jsonschema_description:"Path of the rule's page on this service."`
}

// Check is the outcome of one rule: pass, fail, or skipped if there was nothing to compare.
type Check struct {
	ID      string `json:"id" jsonschema_description:"Name of the rule."`
	Outcome string `json:"outcome" jsonschema:"enum=pass,enum=fail,enum=skipped" jsonschema_description:"skipped: there was nothing to compare."`
}

// RedactedRecord is an entry for a log of payments, without secrets. Each hash is the SHA-256 of
// the UTF-8 text, as 64 lower-case hex digits.
type RedactedRecord struct {
	ResourceHost          string   `json:"resourceHost" jsonschema_description:"Host of the resource."`
	ResourcePathHash      string   `json:"resourcePathHash" jsonschema_description:"SHA-256 of the path of the resource."`
	Method                string   `json:"method" jsonschema_description:"HTTP method."`
	Scheme                *string  `json:"scheme" jsonschema:"nullable" jsonschema_description:"x402 scheme."`
	Network               *string  `json:"network" jsonschema:"nullable" jsonschema_description:"CAIP-2 name, if known."`
	Asset                 *string  `json:"asset" jsonschema:"nullable" jsonschema_description:"The asset as sent."`
	PayTo                 *string  `json:"payTo" jsonschema:"nullable" jsonschema_description:"First six and last four characters of the recipient."`
	AmountUnits           *string  `json:"amountUnits" jsonschema:"nullable" jsonschema_description:"The amount in the smallest units of the asset."`
	AmountUSD             *float64 `json:"amountUsd" jsonschema:"nullable" jsonschema_description:"The amount in US dollars, if known."`
	PaymentIdentifierHash *string  `json:"paymentIdentifierHash" jsonschema:"nullable" jsonschema_description:"SHA-256 of the payment identifier."`
	NonceHash             *string  `json:"nonceHash" jsonschema:"nullable" jsonschema_description:"SHA-256 of the nonce."`
	MetadataKeys          []string `json:"metadataKeys" jsonschema_description:"Names of the members of metadata, except names that contain a secret."`
	Decision              string   `json:"decision" jsonschema_description:"allow, deny or needs_review."`
	FindingIDs            []string `json:"findingIds" jsonschema_description:"Ids of the findings."`
}
