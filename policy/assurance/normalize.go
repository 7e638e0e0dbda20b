package assurance

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

var paymentIdentifier = normal.Pattern(`^[A-Za-z0-9_-]{16,128}$`)

func (r *intentReader) finishX402() error {
	n := &r.n
	n.Method = strings.ToUpper(n.Method)
	n.ResourceURL, n.ResourceHasUserinfo, n.ResourceHasFragment = r.resource.String(), r.resource.UserInfo, r.resource.Fragment
	if err := r.keep("resourceUrl", r.resource); err != nil {
		return err
	}
	if n.FacilitatorURL != "" {
		n.FacilitatorURL, n.FacilitatorHasUserinfo = r.facilitator.String(), r.facilitator.UserInfo
		if err := r.keep("facilitatorUrl", r.facilitator); err != nil {
			return err
		}
	}
	n.Network = normal.Network(n.Network)
	n.PaymentIdentifierBad = n.PaymentIdentifier != "" && !paymentIdentifier(n.PaymentIdentifier)
	if isToken(n.PaymentPayloadMethod) { // only tokens (RFC 9110), which are ASCII: other characters may have several upper-case forms
		n.PaymentPayloadMethod = strings.ToUpper(n.PaymentPayloadMethod)
	}
	r.accounts()
	r.amounts()
	return r.payload()
}

// accounts normalizes the addresses of recipient and asset by the rules of the network.
func (r *intentReader) accounts() {
	n := &r.n
	if n.PayTo != "" {
		if form, err := normal.Address(n.Network, n.PayTo); err == nil {
			n.PayTo = form
		} else {
			n.PayToInvalid = true
		}
	}
	if form, err := normal.Address(n.Network, n.Asset); err == nil {
		n.Asset = form
	}
}

// amounts reads amountUnits and amountUsd exactly. It converts the units to US dollars if the
// asset is known.
func (r *intentReader) amounts() {
	n := &r.n
	if n.AmountUnits != "" {
		units, err := normal.Units(n.AmountUnits)
		n.AmountUnitsInvalid = err != nil
		if usdc, known := normal.USDC(n.Network); err == nil && known && usdc == n.Asset {
			// The decimal has finitely many digits, because the divisor is a power of ten.
			n.AmountUnitsInUSD, _ = normal.DecimalString(normal.Scale(units, normal.USDCDecimals))
		}
	}
	if r.amountUSD == "" {
		return
	}
	usd, err := normal.Decimal(r.amountUSD)
	if err != nil {
		n.AmountUSDInvalid = true
		return
	}
	n.AmountUSDInvalid = usd.Sign() < 0
	n.AmountUSD, _ = normal.DecimalString(usd)
}

// payload normalizes the URL in paymentPayloadResource. It marks text that is not a URL, or that
// contains credentials, as invalid.
func (r *intentReader) payload() error {
	n := &r.n
	if n.PaymentPayloadResource == "" {
		return nil
	}
	u, err := normal.ParseURL(n.PaymentPayloadResource)
	if err != nil {
		n.PaymentPayloadBad = true
		// The text may contain credentials in a place that another parser would read as userinfo.
		// Do not store it.
		if strings.Contains(n.PaymentPayloadResource, "@") {
			n.PaymentPayloadResource = "not a URL"
			r.members["paymentPayloadResource"] = jsontext.Value(`"not a URL"`)
		}
		return nil
	}
	n.PaymentPayloadResource, n.PaymentPayloadBad = u.String(), u.UserInfo
	return r.keep("paymentPayloadResource", u)
}

// memberText returns the text of a member of a checked object, or "" if the member is absent or
// not a string.
func memberText(object []byte, name string) string {
	found := value{}
	_ = canon.Walk(object, func(n string, raw jsontext.Value) error {
		if n == name {
			found.raw = raw
		}
		return nil
	})
	text, _ := found.text() // text returns "" with its error if the value is not a string
	return text
}
