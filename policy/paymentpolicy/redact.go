package paymentpolicy

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

func orAbsent(text string) string {
	if text == "" {
		return "absent"
	}
	return normal.Shown(text)
}

func (c *call) redacted(out Output) RedactedRecord {
	p := c.Payment
	record := RedactedRecord{
		ResourceHost:          c.url.Host,
		ResourcePathHash:      canon.Hash([]byte(c.url.Path)),
		Method:                normal.Shown(p.Method),
		Scheme:                optional(p.Scheme, normal.Shown),
		Network:               optional(c.network, normal.Shown),
		Asset:                 optional(p.Asset, normal.Shown),
		PayTo:                 optional(p.PayTo, normal.MaskAddress),
		AmountUnits:           optional(p.AmountUnits, func(s string) string { return s }),
		AmountUSD:             out.AmountUSD,
		PaymentIdentifierHash: optional(p.PaymentIdentifier, hashed),
		NonceHash:             optional(p.Nonce, hashed),
		MetadataKeys:          []string{},
		Decision:              out.Decision,
		FindingIDs:            []string{},
	}
	if p.Metadata != nil {
		_ = canon.Walk(p.Metadata, func(key string, _ jsontext.Value) error { // the error, for metadata that is not an object, does not matter here
			record.MetadataKeys = append(record.MetadataKeys, normal.Shown(key))
			return nil
		})
	}
	slices.Sort(record.MetadataKeys)
	for _, f := range out.Findings {
		if !slices.Contains(record.FindingIDs, f.ID) {
			record.FindingIDs = append(record.FindingIDs, f.ID)
		}
	}
	slices.Sort(record.FindingIDs)
	return record
}

func optional(text string, show func(string) string) *string {
	if text == "" {
		return nil
	}
	text = show(text)
	return &text
}

func hashed(text string) string { return canon.Hash([]byte(text)) }
