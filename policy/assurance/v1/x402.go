package v1

import (
	"math/big"
	"slices"

	"github.com/countersign/countersign/policy/normal"
)

// methods lists the HTTP methods that need no review.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func (e *evaluator) x402(r Rules, in Intent) {
	e.resource(r, in)
	e.request(r, in)
	e.recipient(r, in)
	e.amount(r, in)
	e.binding(r, in)
	e.facilitator(r, in)
}

// parse parses a URL in normal form. For other text it returns the zero URL; its scheme is empty,
// so a rule denies it.
func parse(text string) normal.URL {
	u, err := normal.ParseURL(text)
	if err != nil {
		return normal.URL{}
	}
	return u
}

func isWeb(u normal.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

func (e *evaluator) resource(r Rules, in Intent) {
	const field = "resourceUrl"
	u := parse(in.ResourceURL)
	if in.ResourceHasUserinfo {
		e.always(Deny, "x402.url.userinfo", field, "the URL holds credentials", "no userinfo", "userinfo")
	}
	if in.ResourceHasFragment {
		e.always(Info, "x402.url.fragment", field, "the fragment was dropped", "no fragment", "fragment")
	}
	if !isWeb(u) {
		e.always(Deny, "x402.url.scheme", field, "the URL is not http or https", "http or https", u.Scheme)
	}
	if r.RequireHTTPS && u.Scheme != "https" {
		e.say(Deny, "x402.https.required", field, "the policy requires https", "https", u.Scheme)
	}
	switch {
	case r.blocksHost(u):
		e.say(Deny, "x402.host.blocked", field, "the host is blocked", "not in blockedHosts", u.Host)
	case r.AllowedHosts != nil && !r.allowsHost(u):
		e.say(Deny, "x402.host.not_allowed", field, "the host is not allowed", "one of allowedHosts", hostAndPort(u))
	case r.AllowedHosts == nil && e.active && normal.IsPrivate(u.Host):
		e.always(NeedsReview, "x402.host.private", field, "the host is not on the public internet", "a public host, or one of allowedHosts", u.Host)
	}
}

// hostAndPort returns the host of a URL in the form of a host entry, with the port if it is not
// the default.
func hostAndPort(u normal.URL) string {
	shown := normal.URL{Scheme: u.Scheme, Host: u.Host, Port: u.Port}.String()
	return shown[min(len(u.Scheme)+len("://"), len(shown)):]
}

func (e *evaluator) request(r Rules, in Intent) {
	if !slices.Contains(methods, in.Method) {
		e.always(NeedsReview, "x402.method.unknown", "method", "the method is not a known one", "GET HEAD POST PUT PATCH DELETE OPTIONS", in.Method)
	}
	switch {
	case r.RequireExactScheme && in.Scheme != "exact":
		e.say(Deny, "x402.scheme.not_exact", "scheme", "the policy requires the payment scheme exact", "exact", orAbsent(in.Scheme))
	case !r.RequireExactScheme && in.Scheme != "" && in.Scheme != "exact" && in.Scheme != "upto":
		e.always(NeedsReview, "x402.scheme.unknown", "scheme", "the payment scheme is not a known one", "exact or upto", in.Scheme)
	}
	if r.AllowedNetworks == nil {
		return
	}
	switch {
	case in.Network == "":
		e.say(NeedsReview, "x402.network.missing", "network", "the network is not given", "one of allowedNetworks", "absent")
	case !slices.Contains(r.AllowedNetworks, in.Network):
		e.say(Deny, "x402.network.not_allowed", "network", "the network is not allowed", "one of allowedNetworks", in.Network)
	}
}

func orAbsent(text string) string {
	if text == "" {
		return "absent"
	}
	return text
}

func orUnreadable(text string) string {
	if text == "" {
		return "unreadable"
	}
	return text
}

func (e *evaluator) recipient(r Rules, in Intent) {
	switch {
	case in.PayToInvalid:
		e.always(Deny, "x402.payto.invalid", "payTo", "the address is not valid on its network", "a valid address", in.PayTo)
	case r.AllowedPayTo == nil:
	case in.PayTo == "":
		e.say(NeedsReview, "x402.payto.missing", "payTo", "the recipient is not given", "one of allowedPayTo", "absent")
	case !r.allowsPayTo(in.Network, in.PayTo):
		e.say(Deny, "x402.payto.not_allowed", "payTo", "the recipient is not allowed", "one of allowedPayTo", in.PayTo)
	}
}

func (e *evaluator) amount(r Rules, in Intent) {
	if in.AmountUnitsInvalid {
		e.always(Deny, "x402.amount.invalid", "amountUnits", "the amount is not a whole number of units", "0 to 2^256-1, in digits", in.AmountUnits)
	}
	if in.AmountUSDInvalid {
		e.always(Deny, "x402.amount.invalid", "amountUsd", "the amount is negative or cannot be read", "a decimal of at least 0", orUnreadable(in.AmountUSD))
	}
	converted, hasUnits := rational(in.AmountUnitsInUSD)
	usd, hasUSD := rational(in.AmountUSD)
	if hasUnits && hasUSD && converted.Cmp(usd) != 0 {
		e.always(Deny, "x402.amount.inconsistent", "amountUsd", "amountUnits and amountUsd are not the same amount", in.AmountUnitsInUSD, in.AmountUSD)
	}
	if in.AmountUnits == "" && in.AmountUSD != "" {
		e.always(Info, "x402.amount.units_missing", "amountUnits", "the amount is bound in US dollars only", "amountUnits", "amountUsd "+in.AmountUSD)
	}
	most, limited := rational(r.MaxUSDPerTransaction)
	if !limited {
		return
	}
	if in.AmountUnits == "" && in.AmountUSD == "" && !in.AmountUSDInvalid {
		e.say(NeedsReview, "x402.amount.missing", "amountUnits", "the amount is not given", "at most "+r.MaxUSDPerTransaction, "absent")
	}
	if in.AmountUnits != "" && !in.AmountUnitsInvalid && !hasUnits {
		e.say(NeedsReview, "x402.asset.unknown", "asset", "the units of this asset cannot be converted to US dollars", "USDC by its address on a known network", orAbsent(in.Asset))
	}
	effective := larger(converted, usd)
	if effective != nil && effective.Cmp(most) > 0 {
		e.say(Deny, "x402.amount.over_limit", "amountUsd", "the amount is above the maximum of one transaction", "at most "+r.MaxUSDPerTransaction, decimal(effective))
	}
}

// larger returns the larger of two amounts. A nil amount counts as the smaller one.
func larger(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) > 0 {
		return b
	}
	return a
}

func decimal(r *big.Rat) string {
	text, err := normal.DecimalString(r)
	if err != nil {
		return r.RatString()
	}
	return text
}

func (e *evaluator) binding(r Rules, in Intent) {
	bound := in.PaymentPayloadResource != ""
	if r.RequireResourceBinding && !bound {
		e.say(Deny, "x402.binding.missing", "paymentPayloadResource", "the policy requires the resource of the payment payload", "the resourceUrl", "absent")
	}
	if bound && (in.PaymentPayloadBad || in.PaymentPayloadResource != in.ResourceURL) {
		e.always(Deny, "x402.binding.mismatch", "paymentPayloadResource", "the payment is for another resource", in.ResourceURL, in.PaymentPayloadResource)
	}
	if in.PaymentPayloadMethod != "" && in.PaymentPayloadMethod != in.Method {
		e.always(Deny, "x402.binding.mismatch", "paymentPayloadMethod", "the payment is for another method", in.Method, in.PaymentPayloadMethod)
	}
	const form = "16 to 128 letters, digits, - or _"
	switch {
	case r.RequirePaymentIdentifier && in.PaymentIdentifier == "":
		e.say(Deny, "x402.payment_identifier.missing", "paymentIdentifier", "the policy requires a payment identifier", form, "absent")
	case r.RequirePaymentIdentifier && in.PaymentIdentifierBad:
		e.say(Deny, "x402.payment_identifier.invalid", "paymentIdentifier", "the payment identifier is malformed", form, in.PaymentIdentifier)
	case in.PaymentIdentifierBad:
		e.always(NeedsReview, "x402.payment_identifier.invalid", "paymentIdentifier", "the payment identifier is malformed", form, in.PaymentIdentifier)
	}
}

func (e *evaluator) facilitator(r Rules, in Intent) {
	if in.FacilitatorURL != "" {
		e.other(r, "x402.facilitator.not_allowed", "facilitatorUrl", in.FacilitatorURL, in.FacilitatorHasUserinfo)
	}
}

// other judges a URL other than the resource: it must contain no credentials, its host must not be
// blocked, and it must be https if the policy requires https.
func (e *evaluator) other(r Rules, ruleID, field, text string, userinfo bool) {
	u := parse(text)
	switch {
	case userinfo:
		e.always(Deny, ruleID, field, "the URL holds credentials", "no userinfo", "userinfo")
	case r.blocksHost(u):
		e.say(Deny, ruleID, field, "the host is blocked", "not in blockedHosts", u.Host)
	case r.RequireHTTPS && u.Scheme != "https":
		e.say(Deny, ruleID, field, "the policy requires https", "https", u.Scheme)
	}
}
