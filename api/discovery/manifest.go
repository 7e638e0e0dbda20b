package discovery

import (
	"net/http"
	"reflect"
	"sync"

	"github.com/countersign/countersign/api/op"
	apipayments "github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy/canon"
)

// Offered is one paid resource in the manifest.
type Offered struct {
	Resource x402.Resource       `json:"resource"`
	Type     string              `json:"type" jsonschema:"enum=http"`
	Method   string              `json:"method"`
	Accepts  []x402.Requirements `json:"accepts"`
	Input    map[string]any      `json:"input,omitempty"`
	Updated  string              `json:"lastUpdated" jsonschema:"format=date-time" jsonschema_description:"The date of the newest entry of the changelog."`
}

// Manifest describes for indexers which resources can be paid for, and how.
type Manifest struct {
	Configured   bool      `json:"configured"`
	Version      int       `json:"version"`
	X402Version  int       `json:"x402Version"`
	Resources    []string  `json:"resources"`
	Items        []Offered `json:"items"`
	Network      string    `json:"network,omitempty"`
	Asset        string    `json:"asset,omitempty"`
	AssetSymbol  string    `json:"assetSymbol,omitempty"`
	PayTo        string    `json:"payTo,omitempty"`
	Settlement   string    `json:"settlement,omitempty" jsonschema:"enum=dev,enum=facilitator"`
	Instructions string    `json:"instructions"`

	Introductory services.Introductory `json:"introductoryCredit"`
}

func manifestAt(id, path string) *op.Operation {
	return &op.Operation{
		ID: id, Method: http.MethodGet, Path: path,
		Summary: "The operations that can be paid over x402, and the terms. Payments are accepted only if configured is true.",
		Output:  reflect.TypeFor[Manifest](),
	}
}

var (
	x402Manifest     = manifestAt("get_x402_manifest", "/.well-known/x402")
	x402ManifestJSON = manifestAt("get_x402_manifest_json", "/.well-known/x402.json")
)

// Manifests serves the manifest with and without x402, because a facilitator may become available
// or unavailable while the service runs.
type Manifests struct {
	Payments *apipayments.Payments
	Store    *store.Store
	Table    *op.Table

	documents func() (map[bool]op.Document, error) // generates both documents at the first request
}

// Operations lists the operations that return the manifest.
func (s *Manifests) Operations() []*op.Operation {
	return []*op.Operation{x402Manifest.Does(s.show), x402ManifestJSON.Does(s.show)}
}

// NewManifests returns the manifests of the operations in a table.
func NewManifests(p *apipayments.Payments, s *store.Store, table *op.Table) *Manifests {
	m := &Manifests{Payments: p, Store: s, Table: table}
	m.documents = sync.OnceValues(m.make)
	return m
}

func (s *Manifests) show(c *op.Call) (op.Reply, error) {
	documents, err := s.documents()
	return documents[apipayments.Taken(s.Payments.Commands.Settler)].Answer(c), err
}

func (s *Manifests) make() (map[bool]op.Document, error) {
	documents := map[bool]op.Document{}
	for _, configured := range []bool{false, s.Payments.Commands.Settler != nil} {
		body, err := canon.Marshal(s.manifest(configured))
		if err != nil {
			return nil, err
		}
		documents[configured] = op.NewDocument(body, "application/json")
	}
	return documents, nil
}

func (s *Manifests) manifest(configured bool) Manifest {
	m := Manifest{Version: 1, X402Version: x402.Version, Resources: []string{}, Items: []Offered{},
		Introductory: services.NewIntroductory(s.Store.BaseURL), Instructions: "Payments are off: use an API key in X-API-Key (POST " + s.Store.BaseURL + "/api/keys/free issues one)."}
	if !configured {
		return m
	}
	m.Configured, m.Settlement = true, apipayments.Mode(s.Payments.Commands.Settler)
	m.Network, m.Asset, m.AssetSymbol, m.PayTo = s.Payments.Terms.Network, s.Payments.Terms.Asset, s.Payments.Terms.Symbol(), s.Payments.Terms.PayTo
	m.Instructions = "Send the request. Sign one of the offers of its 402 answer and send the same request again with PAYMENT-SIGNATURE. " +
		"On a time-out or 503 send the same PAYMENT-SIGNATURE again; do not sign a new payment."
	if m.Settlement == payments.ModeDev {
		m.Instructions = "Development: signatures are checked and no money moves. " + m.Instructions
	}
	for _, o := range s.Table.Services() {
		d := s.Payments.Demands[o.ID]
		m.add(Offered{Resource: d.Resource, Type: "http", Method: o.Method, Accepts: d.Accepts, Input: o.Schema.Document})
	}
	for _, p := range s.Store.Products {
		if p.Kind != store.OneTime {
			continue
		}
		m.add(Offered{Type: "http", Method: http.MethodPost, Accepts: []x402.Requirements{s.Payments.Terms.Offer(int(p.PriceCents))},
			Resource: s.Payments.Sold("/api/purchase/"+p.Slug, p.Description, "download")})
	}
	return m
}

func (m *Manifest) add(o Offered) {
	o.Updated = canon.Stamp(site.LastChange())
	m.Resources, m.Items = append(m.Resources, o.Resource.URL), append(m.Items, o)
}
