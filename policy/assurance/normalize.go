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
	if isToken(n.PaymentPayloadMethod) { // other letters have upper cases of their own
		n.PaymentPayloadMethod = strings.ToUpper(n.PaymentPayloadMethod)
	}
	r.accounts()
	r.amounts()
	return r.payload()
}

// accounts brings recipient and asset into the form of their network.
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

// amounts reads both amounts exactly, and the units in US dollars if the asset
// is one whose units are known.
func (r *intentReader) amounts() {
	n := &r.n
	if n.AmountUnits != "" {
		units, err := normal.Units(n.AmountUnits)
		n.AmountUnitsInvalid = err != nil
		if usdc, known := normal.USDC(n.Network); err == nil && known && usdc == n.Asset {
			// A finite decimal: the divisor is a power of ten.
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

// payload brings the resource of the payment payload into the form of a URL; what
// is none, or holds credentials, can be no resource.
func (r *intentReader) payload() error {
	n := &r.n
	if n.PaymentPayloadResource == "" {
		return nil
	}
	u, err := normal.ParseURL(n.PaymentPayloadResource)
	if err != nil {
		n.PaymentPayloadBad = true
		// It may still hold credentials in a place that no parser agrees on.
		if strings.Contains(n.PaymentPayloadResource, "@") {
			n.PaymentPayloadResource = "not a URL"
			r.members["paymentPayloadResource"] = jsontext.Value(`"not a URL"`)
		}
		return nil
	}
	n.PaymentPayloadResource, n.PaymentPayloadBad = u.String(), u.UserInfo
	return r.keep("paymentPayloadResource", u)
}

// memberText is a member of a checked object if it is there and a text, else empty.
func memberText(object []byte, name string) string {
	found := value{}
	_ = canon.Walk(object, func(n string, raw jsontext.Value) error {
		if n == name {
			found.raw = raw
		}
		return nil
	})
	text, _ := found.text() // empty for what is no text
	return text
}
