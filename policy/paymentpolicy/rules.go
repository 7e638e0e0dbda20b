package paymentpolicy

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/normal"
)

// one returns the result of a rule that can have only one violation: f if broken is true,
// otherwise none.
func one(broken bool, f fault) ([]fault, bool) {
	if broken {
		return []fault{f}, true
	}
	return nil, true
}

func skipped() ([]fault, bool) { return nil, false }

// Rules about the binding of the payment to a request.

func resourceBinding(c *call) (faults []fault, compared bool) {
	if raw := c.Payment.PaymentPayloadResource; raw != "" {
		compared = true
		if u, err := normal.ParseURLAnyHost(raw); err != nil || u.String() != c.url.String() {
			faults = append(faults, fault{path: "/payment/paymentPayloadResource", expected: c.url.Origin(),
				actual: difference(c.url, u, err), message: "the payload that will be signed names another resource"})
		}
	}
	if c.expectedURL != nil {
		compared = true
		if c.expectedURL.String() != c.url.String() {
			faults = append(faults, fault{path: "/payment/resourceUrl", expected: c.expectedURL.Origin(),
				actual: difference(*c.expectedURL, c.url, nil), message: "the payment is for another resource than expected"})
		}
	}
	return faults, compared
}

// difference states which part of got differs from want, without repeating path or query.
func difference(want, got normal.URL, err error) string {
	switch {
	case err != nil:
		return "not a valid URL"
	case want.Origin() != got.Origin():
		return got.Origin()
	case want.Path != got.Path:
		return "another path"
	}
	return "another query"
}

func resourceBound(c *call) ([]fault, bool) {
	if !c.policy.RequireResourceBinding {
		return skipped()
	}
	return one(c.Payment.PaymentPayloadResource == "", fault{path: "/payment/paymentPayloadResource", expected: "present", actual: "absent",
		message: "the policy requires the payload to name its resource"})
}

func method(c *call) (faults []fault, compared bool) {
	got := strings.ToUpper(c.Payment.Method)
	differs := func(path, want, message string) {
		compared = true
		if strings.ToUpper(want) != got {
			faults = append(faults, fault{path: path, expected: normal.Shown(strings.ToUpper(want)), actual: normal.Shown(got), message: message})
		}
	}
	if c.Payment.PaymentPayloadMethod != "" {
		differs("/payment/paymentPayloadMethod", c.Payment.PaymentPayloadMethod, "the payload that will be signed names another method")
	}
	if c.Expected != nil && c.Expected.Method != "" {
		differs("/expected/method", c.Expected.Method, "the payment is for another method than expected")
	}
	if allowed := c.policy.AllowedMethods; allowed != nil {
		compared = true
		if !slices.ContainsFunc(allowed, func(m string) bool { return strings.EqualFold(m, got) }) {
			faults = append(faults, fault{path: "/payment/method", expected: "a method of policy.allowedMethods", actual: normal.Shown(got), message: "the policy does not allow this method"})
		}
	}
	return faults, compared
}

func exactScheme(c *call) ([]fault, bool) {
	if !c.policy.RequireExactScheme {
		return skipped()
	}
	return one(c.Payment.Scheme != "exact", fault{path: "/payment/scheme", expected: "exact", actual: orAbsent(c.Payment.Scheme),
		message: "the policy requires the scheme exact"})
}

func knownScheme(c *call) ([]fault, bool) {
	if c.policy.RequireExactScheme {
		return skipped()
	}
	known := slices.Contains([]string{"exact", "upto", "batch-settlement"}, c.Payment.Scheme)
	return one(!known, fault{path: "/payment/scheme", expected: "exact, upto or batch-settlement", actual: orAbsent(c.Payment.Scheme),
		message: "the payment scheme is absent or unknown"})
}

// Rules about network and asset.

func allowedNetwork(c *call) (faults []fault, compared bool) {
	if c.Payment.Network == "" {
		return skipped() // the rule network_unknown reports it
	}
	if allowed := c.policy.AllowedNetworks; allowed != nil {
		compared = true
		if !slices.ContainsFunc(allowed, func(n string) bool { return normal.Network(n) == c.network }) {
			faults = append(faults, fault{path: "/payment/network", expected: "a network of policy.allowedNetworks", actual: normal.Shown(c.network), message: "the policy does not allow this network"})
		}
	}
	if c.Expected != nil && c.Expected.Network != "" {
		compared = true
		if want := normal.Network(c.Expected.Network); want != c.network {
			faults = append(faults, fault{path: "/expected/network", expected: normal.Shown(want), actual: normal.Shown(c.network), message: "the payment is on another network than expected"})
		}
	}
	return faults, compared
}

func knownNetwork(c *call) ([]fault, bool) {
	return one(!normal.IsNetwork(c.Payment.Network), fault{path: "/payment/network", expected: "a CAIP-2 name or a known alias",
		actual: orAbsent(c.Payment.Network), message: "the network is absent or unknown"})
}

func testnet(c *call) ([]fault, bool) {
	if c.Payment.Network == "" {
		return skipped()
	}
	return one(normal.IsTestnet(c.network), fault{path: "/payment/network", expected: "a network that carries value", actual: normal.Shown(c.network),
		message: "the network is a test network"})
}

// sameAsset reports whether two assets are the same contract. The symbol USDC means the USDC
// contract of the network.
func (c *call) sameAsset(a, b string) bool {
	return normal.SameAddress(a, b) ||
		c.network != "" && normal.IsUSDC(c.network, a) && normal.IsUSDC(c.network, b)
}

func (c *call) assetListed() bool {
	return slices.ContainsFunc(c.policy.AllowedAssets, func(a string) bool { return c.sameAsset(a, c.Payment.Asset) })
}

func allowedAsset(c *call) (faults []fault, compared bool) {
	if c.policy.AllowedAssets != nil {
		compared = true
		if !c.assetListed() {
			faults = append(faults, fault{path: "/payment/asset", expected: "an asset of policy.allowedAssets", actual: orAbsent(c.Payment.Asset), message: "the policy does not allow this asset"})
		}
	}
	if c.Expected != nil && c.Expected.Asset != "" {
		compared = true
		if !c.sameAsset(c.Expected.Asset, c.Payment.Asset) {
			faults = append(faults, fault{path: "/expected/asset", expected: normal.Shown(c.Expected.Asset), actual: orAbsent(c.Payment.Asset), message: "the payment is in another asset than expected"})
		}
	}
	return faults, compared
}

// canonicalAsset finds imitations of USDC: the asset is an address, but not the USDC contract of
// the network.
func canonicalAsset(c *call) ([]fault, bool) {
	contract, known := normal.USDC(c.network)
	_, err := normal.Address(c.network, c.Payment.Asset)
	isAddress := err == nil || strings.HasPrefix(c.Payment.Asset, "0x")
	if !known || !isAddress || c.assetListed() {
		return skipped()
	}
	return one(!normal.SameAddress(contract, c.Payment.Asset), fault{path: "/payment/asset", expected: contract, actual: normal.Shown(c.Payment.Asset),
		message: "the asset is not the USDC contract of this network"})
}

// Rules about the recipient.

func allowedPayTo(c *call) (faults []fault, compared bool) {
	got := c.Payment.PayTo
	if got == "" {
		return skipped() // the rule pay_to_missing reports it
	}
	if allowed := c.policy.AllowedPayTo; allowed != nil {
		compared = true
		if !slices.ContainsFunc(allowed, func(a string) bool { return normal.SameAddress(a, got) }) {
			faults = append(faults, fault{path: "/payment/payTo", expected: "an address of policy.allowedPayTo", actual: normal.MaskAddress(got), message: "the policy does not allow this recipient"})
		}
	}
	if c.Expected != nil && c.Expected.PayTo != "" {
		compared = true
		if !normal.SameAddress(c.Expected.PayTo, got) {
			faults = append(faults, fault{path: "/expected/payTo", expected: normal.MaskAddress(c.Expected.PayTo), actual: normal.MaskAddress(got), message: "the money goes to another recipient than expected"})
		}
	}
	return faults, compared
}

func validPayTo(c *call) ([]fault, bool) {
	if c.Payment.PayTo == "" {
		return skipped()
	}
	_, err := normal.Address(c.network, c.Payment.PayTo)
	// The zero address is invalid on every network, including unknown ones.
	zero := strings.HasPrefix(c.Payment.PayTo, "0x") && strings.Trim(c.Payment.PayTo[2:], "0") == ""
	return one(err != nil || zero, fault{path: "/payment/payTo", expected: "an address of the network, not zero, with a right checksum",
		actual: normal.MaskAddress(c.Payment.PayTo), message: "the recipient is not a valid address of this network"})
}

func payToGiven(c *call) ([]fault, bool) {
	return one(c.Payment.PayTo == "", fault{path: "/payment/payTo", expected: "present", actual: "absent", message: "the payment names no recipient"})
}

func allowedFacilitator(c *call) ([]fault, bool) {
	raw := c.Payment.FacilitatorURL
	if raw == "" {
		return skipped()
	}
	u, err := normal.ParseURLAnyHost(raw)
	if err != nil {
		return one(true, fault{path: "/payment/facilitatorUrl", expected: "a valid absolute URL", actual: "not a valid URL", message: "the facilitator has no valid URL"})
	}
	if c.policy.AllowedFacilitators == nil {
		return skipped()
	}
	return one(!anyMatches(c.allowedFacilitators, u), fault{path: "/payment/facilitatorUrl", expected: "a host of policy.allowedFacilitators",
		actual: u.Origin(), message: "the policy does not allow this facilitator"})
}

func anyMatches(entries []normal.HostEntry, u normal.URL) bool {
	return slices.ContainsFunc(entries, func(e normal.HostEntry) bool { return e.Matches(u) })
}

// Rules about host and transport.

func blockedHost(c *call) ([]fault, bool) {
	if c.policy.BlockedHosts == nil {
		return skipped()
	}
	return one(anyMatches(c.blockedHosts, c.url), fault{path: "/payment/resourceUrl", expected: "no host of policy.blockedHosts", actual: normal.Shown(c.url.Host),
		message: "the policy blocks this host"})
}

func allowedHost(c *call) ([]fault, bool) {
	if c.policy.AllowedHosts == nil {
		return skipped()
	}
	return one(!anyMatches(c.allowedHosts, c.url), fault{path: "/payment/resourceUrl", expected: "a host of policy.allowedHosts", actual: normal.Shown(c.url.Host),
		message: "the policy does not allow this host"})
}

func secureTransport(c *call) ([]fault, bool) {
	if c.policy.RequireHTTPS != nil && !*c.policy.RequireHTTPS {
		return skipped()
	}
	return one(c.url.Scheme == "http" && !normal.IsLoopback(c.url.Host), fault{path: "/payment/resourceUrl", expected: "https", actual: "http",
		message: "the resource is not served over https"})
}

func publicHost(c *call) ([]fault, bool) {
	listed := slices.ContainsFunc(c.allowedHosts, func(e normal.HostEntry) bool { return !e.Wildcard && e.Matches(c.url) })
	if listed {
		return skipped()
	}
	// A name with a single label resolves only with the search list of a private network.
	single := !strings.ContainsAny(c.url.Host, ".:")
	return one(single || normal.IsPrivate(c.url.Host), fault{path: "/payment/resourceUrl", expected: "a host on the public internet", actual: normal.Shown(c.url.Host),
		message: "the resource is on a private network"})
}

func noUserInfo(c *call) ([]fault, bool) {
	return one(c.url.UserInfo, fault{path: "/payment/resourceUrl", expected: "no user name or password", actual: "user information",
		message: "the URL carries user information, which also hides the real host"})
}

func asciiHost(c *call) ([]fault, bool) {
	return one(c.url.IDN, fault{path: "/payment/resourceUrl", expected: "an ASCII host name", actual: normal.Shown(c.url.Host),
		message: "the host name is international and may look like another"})
}

// Rules about time and replay.

func timeoutShort(c *call) ([]fault, bool) {
	if c.Payment.MaxTimeoutSeconds == nil {
		return skipped()
	}
	limit := maxTimeout
	if c.policy.MaxTimeoutSeconds != nil {
		limit = *c.policy.MaxTimeoutSeconds
	}
	return one(*c.Payment.MaxTimeoutSeconds > limit, fault{path: "/payment/maxTimeoutSeconds", expected: "at most " + integer(limit),
		actual: integer(*c.Payment.MaxTimeoutSeconds), message: "the authorization stays valid for too long"})
}

func timeoutPositive(c *call) ([]fault, bool) {
	if c.Payment.MaxTimeoutSeconds == nil {
		return skipped()
	}
	return one(*c.Payment.MaxTimeoutSeconds <= 0, fault{path: "/payment/maxTimeoutSeconds", expected: "above 0",
		actual: integer(*c.Payment.MaxTimeoutSeconds), message: "the authorization is never valid"})
}

func freshNonce(c *call) ([]fault, bool) {
	if c.Replay == nil || c.Payment.Nonce == "" {
		return skipped()
	}
	used := slices.ContainsFunc(c.Replay.UsedNonces, func(n string) bool { return normal.SameAddress(n, c.Payment.Nonce) })
	return one(used, fault{path: "/payment/nonce", expected: "unused", actual: "used before", message: "the nonce was used before"})
}

func freshIdentifier(c *call) ([]fault, bool) {
	if c.Replay == nil || c.Payment.PaymentIdentifier == "" {
		return skipped()
	}
	return one(slices.Contains(c.Replay.UsedPaymentIdentifiers, c.Payment.PaymentIdentifier), fault{path: "/payment/paymentIdentifier",
		expected: "unused", actual: "used before", message: "the payment identifier was used before"})
}

func identifierGiven(c *call) ([]fault, bool) {
	f := fault{path: "/payment/paymentIdentifier", expected: "present", actual: "absent", message: "a retry of this payment cannot be recognised"}
	if c.policy.RequirePaymentIdentifier {
		f.effect, f.severity = deny, "high"
	}
	return one(c.Payment.PaymentIdentifier == "", f)
}

// Rules about the seller.

var riskLevels = []string{"low", "medium", "high", "critical"}

func riskNotCritical(c *call) ([]fault, bool) {
	if c.ServiceRisk == nil {
		return skipped()
	}
	return one(c.ServiceRisk.Level == "critical", fault{path: "/serviceRisk/level", expected: "below critical", actual: "critical",
		message: "the service is known to be a critical risk"})
}

func riskNotElevated(c *call) ([]fault, bool) {
	if c.ServiceRisk == nil || c.ServiceRisk.Level == "critical" {
		return skipped() // the rule service_risk_critical reports it
	}
	threshold := "high"
	if c.policy.ReviewServiceRiskAtOrAbove != "" {
		threshold = c.policy.ReviewServiceRiskAtOrAbove
	}
	level := c.ServiceRisk.Level
	return one(slices.Index(riskLevels, level) >= slices.Index(riskLevels, threshold), fault{path: "/serviceRisk/level",
		expected: "below " + threshold, actual: level, message: "the service's risk is at or above the review threshold"})
}

func policyGiven(c *call) ([]fault, bool) {
	return one(c.Policy == nil, fault{path: "/policy", expected: "present", actual: "absent", message: "no buyer policy was given"})
}
