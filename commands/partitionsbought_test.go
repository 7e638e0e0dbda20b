package commands_test

import (
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// market has the API keys, agents and payments of a world.
type market struct {
	bank   *bank
	keys   []string // API keys
	tokens []string // access tokens of agents
	calls  []string // how each call was paid: free, pass, credit or x402
}

// equip sets the fields of an app that calls and payments need.
func (w *world) equip(a *commands.App) *commands.App {
	a.Settler, a.TokenKeys = w.market.bank, []ed25519.PrivateKey{tokenKey}
	a.Products = []store.Product{
		{Slug: "kit", Kind: store.OneTime, PriceCents: 100, FileName: "kit.txt", Content: []byte("kit")},
		{Slug: "pass", Kind: store.Subscription, PriceCents: 2900, CreditCents: 60},
	}
	return a
}

// trade makes one random step as a caller, a buyer or the card provider.
func (w *world) trade(seed uint64, r *rand.Rand) {
	ctx, a := w.t.Context(), w.app
	address := fmt.Sprintf("u%d@example.com", r.IntN(2))
	customer := func() string { return newCustomer(w.t, a, address) }
	switch n := r.IntN(9); {
	case n == 0 || len(w.market.keys) == 0:
		var issued accounts.IssuedKey
		var err error
		if r.IntN(2) == 0 {
			issued, err = a.IssueAccountKey(ctx, customer())
		} else {
			issued, err = a.IssueFreeKey(ctx, address, "")
		}
		if w.say(fmt.Sprintf("%+v", issued), err); err == nil {
			w.market.keys = append(w.market.keys, issued.APIKey)
		}
	case n == 1 || len(w.market.tokens) == 0:
		order := accounts.AgentOrder{Name: "buyer"}
		if r.IntN(2) == 0 {
			order.IdentityType, order.Email = accounts.IdentityVerifiedEmail, address
		}
		registered, err := a.RegisterAgent(ctx, order)
		if w.say(fmt.Sprintf("%+v", registered), err); err != nil {
			return
		}
		client, err := a.AuthenticateClient(ctx, registered.ClientID, registered.Secret)
		if err != nil {
			w.t.Fatal(err)
		}
		w.market.tokens = append(w.market.tokens, newAccessToken(w.t, a, client, ""))
	case n == 2:
		agent := w.agent(r)
		scopes, err := a.ClaimAgent(ctx, agent, customer())
		w.say(fmt.Sprint("claim ", scopes), err)
	case n == 3:
		p := paymentOf(int(seed))
		if r.IntN(2) == 0 {
			p.Identifier = fmt.Sprintf("identifier-%06d", r.IntN(3))
		}
		w.answer(a.RunPaidService(ctx, runCall(w.t, accounts.Caller{}, "", fmt.Sprint("ls ", r.IntN(2))), p))
	case n == 4:
		kit, _ := a.Product("kit")
		done, err := a.PurchaseProduct(ctx, store.Order{Product: kit, Email: address}, paymentOf(int(seed)))
		w.say(fmt.Sprintf("%s %s %s %s %s", done.PurchaseID, done.Product, done.Link.Token, done.ClaimSecret, done.Payment.Transaction), err)
	case n == 5:
		from := store.ProviderEvent{ID: fmt.Sprint("evt_", seed), At: w.clock.Now().Unix()}
		provider, subscription := "cus_p"+address[1:2], fmt.Sprint("sub_p", address[1:2])
		err := a.RecordSubscription(ctx, from, provider, events.SubscriptionUpdated{Subscription: subscription, Product: "pass", Status: "active",
			Change: []string{"created", "updated"}[r.IntN(2)], PeriodStart: from.At - 5, PeriodEnd: from.At + 100_000})
		w.say("subscription", err)
		from.ID += "b"
		w.say("checkout", a.FulfilCheckout(ctx, from, store.CompletedCheckout{Session: "cs_" + provider, Customer: provider, Subscription: subscription, Product: "pass", Email: address}))
		list, err := a.Entitlements(ctx, customer())
		for _, e := range list {
			w.say(fmt.Sprint(e.Product, " ", e.Status, " ", e.Source, " ", e.ValidUntil != nil), err)
		}
	case n == 6:
		caller, err := a.Authenticate(ctx, w.market.keys[r.IntN(len(w.market.keys))])
		if err != nil {
			w.t.Fatal(err)
		}
		w.answer(a.RunService(ctx, runCall(w.t, caller, []string{"", "again"}[r.IntN(2)], "rm -rf /")))
	default:
		agent := w.agent(r)
		call := runCall(w.t, accounts.Caller{}, []string{"", "again"}[r.IntN(2)], "rm -rf /")
		call.Agent = &agent
		w.answer(a.RunService(ctx, call))
		credit, err := a.Credit(ctx, agent)
		w.say(fmt.Sprintf("credit %+v", credit), err)
		pass, err := a.Pass(ctx, agent.CustomerID)
		w.say(fmt.Sprintf("pass %+v", pass), err)
	}
}

func (w *world) agent(r *rand.Rand) accounts.Agent {
	agent, err := w.app.AuthenticateAgent(w.t.Context(), w.market.tokens[r.IntN(len(w.market.tokens))])
	if err != nil {
		w.t.Fatal(err)
	}
	return agent
}

var (
	inLedger  = regexp.MustCompile(`"ledger":\{[^}]*\}`)
	dataKeyID = regexp.MustCompile(`sub_[0-9A-Z]{26}`)
)

// answer notes a reply, without the position of its receipt.
func (w *world) answer(r services.Reply, err error) {
	w.say(fmt.Sprintf("%s %v %s %d", inLedger.ReplaceAllString(string(r.Body), ""), r.Replayed, r.Charge, r.Remaining), err)
	if err == nil {
		w.market.calls = append(w.market.calls, r.Charge)
	}
}

// streams returns the events of the service's own tenants by stream, decrypted and without
// positions. It leaves out what differs with the number of partitions: ids of data keys, salts,
// the credit in an agent's stream, the answer that a payment has prepared, and reservations of
// identifiers.
func (w *world) streams() map[string][]string {
	all := map[string][]string{}
	for _, e := range everything(w.t, w.app) {
		if !ledger.IsService(e.Tenant) || e.Type == events.TypeIdentifierReserved || e.Stream == ledger.SigningKeyStream ||
			e.Type == events.TypeCreditGranted && strings.HasPrefix(e.Stream, "agent/") {
			continue
		}
		members, err := canon.Members(e.Payload)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, sealed := members["sealed"]; sealed {
			openings, err := w.app.Vault.Openings(w.t.Context(), e)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, o := range openings {
				members[o.Pointer[1:]] = o.Value
			}
		}
		for _, apart := range []string{"sealed", "prepared", "creditCents"} {
			delete(members, apart)
		}
		text := fmt.Sprint(e.Version, " ", e.Type, " ", e.SchemaVersion, " ", e.Actor, " ", e.OccurredUS, " ", string(canon.Object(members)))
		all[e.Stream] = append(all[e.Stream], dataKeyID.ReplaceAllString(text, "sub"))
	}
	return all
}
