// Package accounts serves the endpoints for customers and their agents: API keys, sign-in by an
// e-mailed link, and OAuth for agents with its metadata documents.
package accounts

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/store"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// freeKeyRequest requests a key of the free plan.
type freeKeyRequest struct {
	Email string `json:"email" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"E-mail address of the key's owner. It is stored encrypted and not verified."`
}

// freeKey is a new key. Its secret is returned only in this answer.
type freeKey struct {
	APIKey        string `json:"apiKey"`
	KeyID         string `json:"keyId"`
	Plan          string `json:"plan"`
	CallsPerMonth int    `json:"callsPerMonth"`
	ResetsAt      string `json:"resetsAt" jsonschema:"format=date-time"`
	StatusURL     string `json:"statusUrl" jsonschema:"format=uri"`
}

// IssueFreeKey issues a key. It requires only an e-mail address.
var IssueFreeKey = &op.Operation{
	Creates: true, ID: "issue_free_key", Method: http.MethodPost, Path: "/api/keys/free",
	CORS:    true,
	Summary: "Issue a free key: 250 calls per calendar month (UTC) over all agent services. The key is shown once.",
	Input:   reflect.TypeFor[freeKeyRequest](), Output: reflect.TypeFor[freeKey](),
	Example: `{"email":"ada@example.com"}`,
	Success: http.StatusCreated, Errors: []int{400, 413, 429, 503},
	Refuses: []string{"invalid_email"},
}

// Keys issues API keys and reports their remaining calls and credit.
type Keys struct {
	Commands *services.Services // includes the accounts, and computes what pays for a call
	Shop     *store.Shop        // reads from the payment provider whether a pass was renewed
	Callers  *request.Callers
}

// Operations lists the operations that need no account.
func (s *Keys) Operations() []*op.Operation {
	return []*op.Operation{IssueFreeKey.Does(s.issueFreeKey), freeKeyStatus.Does(s.freeKeyStatus)}
}

// AccountOperations lists the operations with which a signed-in customer manages keys.
func (s *Keys) AccountOperations() []*op.Operation {
	return []*op.Operation{issueAccountKey.Does(s.issueAccountKey), listAccountKeys.Does(s.listAccountKeys), revokeAccountKey.Does(s.revokeAccountKey)}
}

func (s *Keys) issueFreeKey(c *op.Call) (op.Reply, error) {
	if !s.Callers.Allow(op.ToIssueKeys, c.Request) || !s.Callers.Allow(op.ToIssueAllDay, c.Request) {
		return op.Reply{}, policy.Refuse(op.CodeRateLimited, "", "too many keys were issued to this network, try again later")
	}
	var in freeKeyRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	issued, err := s.Commands.IssueFreeKey(c.Request.Context(), in.Email, s.Callers.Network(c.Request))
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Value: freeKey{
		APIKey: issued.APIKey, KeyID: issued.KeyID, Plan: "free", CallsPerMonth: accounts.FreeCallsPerMonth,
		ResetsAt: ground.Stamp(issued.ResetsAt), StatusURL: s.Commands.BaseURL + "/api/keys/free/status",
	}}, nil
}

// keyStatus reports how many calls a key has used this month, or how much credit an agent has
// left.
type keyStatus struct {
	Plan           string   `json:"plan" jsonschema:"enum=free,enum=agent"`
	CallsPerMonth  int      `json:"callsPerMonth"`
	CallsUsed      int64    `json:"callsUsed"`
	CallsRemaining int64    `json:"callsRemaining"`
	ResetsAt       string   `json:"resetsAt" jsonschema:"format=date-time"`
	Pass           *pass    `json:"pass" jsonschema:"nullable" jsonschema_description:"The active pass, which pays after the free calls are used."`
	Credits        *credits `json:"credits" jsonschema:"nullable"`
	Upgrade        upgrade  `json:"upgrade"`
}

// pass is an active subscription. If the customer has several, it is the one that ends first.
type pass struct {
	Product string `json:"product"`
	Name    string `json:"name"`
	EndsAt  string `json:"endsAt" jsonschema:"format=date-time"`
}

func (s *Keys) passOf(b *services.Balance) *pass {
	if b == nil || b.Product == "" {
		return nil
	}
	product, _ := s.Commands.Product(b.Product)
	return &pass{b.Product, product.Name, ground.Stamp(b.EndsAt)}
}

// credits reports how much of a pass, or of an agent's credit, is left. An agent's credit does not
// expire. A key that was issued without an account has neither.
type credits struct {
	TotalCents     int     `json:"totalCents"`
	UsedCents      int     `json:"usedCents"`
	RemainingCents int     `json:"remainingCents"`
	PeriodEndsAt   *string `json:"periodEndsAt" jsonschema:"nullable,format=date-time"`
}

func creditsOf(b *services.Balance) *credits {
	if b == nil {
		return nil
	}
	shown := &credits{TotalCents: b.TotalCents, UsedCents: b.UsedCents, RemainingCents: b.TotalCents - b.UsedCents}
	if !b.EndsAt.IsZero() {
		ends := ground.Stamp(b.EndsAt)
		shown.PeriodEndsAt = &ends
	}
	return shown
}

// upgrade describes the product that buys more calls.
type upgrade struct {
	URL         string `json:"url" jsonschema:"format=uri"`
	Product     string `json:"product"`
	PriceCents  int    `json:"priceCents"`
	CreditCents int    `json:"creditCents"`
}

var freeKeyStatus = &op.Operation{
	ID: "get_free_key_status", Method: http.MethodGet, Path: "/api/keys/free/status",
	Summary: "The plan, the calls used and remaining, and when the month ends; for an agent also its credit. This call is free and not counted.",
	Access:  credential.Access{Kind: credential.KeyHolder}, Output: reflect.TypeFor[keyStatus](), Errors: []int{401, 503},
}

func (s *Keys) freeKeyStatus(c *op.Call) (op.Reply, error) {
	if c.Means == credential.ByAgent {
		return s.agentStatus(c)
	}
	used, err := s.Commands.Usage(c.Request.Context(), c.Key)
	if err != nil {
		return op.Reply{}, err
	}
	s.Shop.Resync(c.Request.Context(), c.Key.CustomerID)
	balance, err := s.Commands.Pass(c.Request.Context(), c.Key.CustomerID)
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Value: keyStatus{
		Plan: "free", CallsPerMonth: accounts.FreeCallsPerMonth,
		CallsUsed: used.Used, CallsRemaining: used.Remaining, ResetsAt: ground.Stamp(used.ResetsAt),
		Pass: s.passOf(balance), Credits: creditsOf(balance), Upgrade: s.upgrade(),
	}}, nil
}

// upgrade returns the pass that the catalogue offers. If it offers none, the result has only the
// URL.
func (s *Keys) upgrade() upgrade {
	u := upgrade{URL: request.UpgradeURL(s.Commands)}
	if pass, sold := s.Commands.PassProduct(); sold {
		u.Product, u.PriceCents, u.CreditCents = pass.Slug, int(pass.PriceCents), int(pass.CreditCents)
	}
	return u
}

// agentStatus answers an agent. An agent has no free calls. Its own credit pays first, then the
// pass of the customer who claimed the agent.
func (s *Keys) agentStatus(c *op.Call) (op.Reply, error) {
	balance, err := s.Commands.Credit(c.Request.Context(), c.Agent)
	if err != nil {
		return op.Reply{}, err
	}
	if balance == nil || balance.UsedCents == balance.TotalCents {
		s.Shop.Resync(c.Request.Context(), c.Agent.CustomerID)
		subscribed, err := s.Commands.Pass(c.Request.Context(), c.Agent.CustomerID)
		if err != nil {
			return op.Reply{}, err
		}
		if subscribed != nil {
			balance = subscribed
		}
	}
	status := keyStatus{Plan: "agent", ResetsAt: ground.Stamp(s.Commands.MonthEnds()), Pass: s.passOf(balance), Credits: creditsOf(balance), Upgrade: s.upgrade()}
	if balance != nil {
		status.CallsUsed = balance.Calls
	}
	return op.Reply{Value: status}, nil
}
