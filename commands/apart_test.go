package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// refusing adds a trigger that refuses events of streams with this prefix, so that the first
// append with such an event fails. allow removes the trigger.
func refusing(t *testing.T, db *ledgertest.DB, prefix string) (allow func()) {
	t.Helper()
	ledgertest.Plain(t) // Citus allows no trigger on a distributed table
	run := func(sql string) {
		t.Helper()
		owner, err := pgx.Connect(t.Context(), db.OwnerURL)
		if err == nil {
			_, err = owner.Exec(t.Context(), sql)
			owner.Close(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by a test'; end $$;
		create trigger refuse before insert on events for each row when (starts_with(new.stream, '` + prefix + `')) execute function refuse()`)
	return func() {
		t.Helper()
		run(`drop trigger refuse on events; drop function refuse`)
	}
}

// addressAt returns an e-mail address whose customer belongs to the same partition as name, or to
// another partition if together is false.
func addressAt(t *testing.T, a *commands.App, name string, together bool) string {
	t.Helper()
	for i := range 500 {
		address := fmt.Sprintf("u%d@example.com", i)
		customer := newCustomer(t, a, address)
		if (a.Ledger.Home(customer) == a.Ledger.Home(name)) == together {
			return address
		}
	}
	t.Fatal("no such address")
	return ""
}

// streamsOf counts events by the first part of their stream's name and by their type, for example
// "agent agent.claimed". It leaves out the events that create customers and agents.
func streamsOf(t *testing.T, a *commands.App, nouns ...string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, e := range everything(t, a) {
		noun, _, _ := strings.Cut(e.Stream, "/")
		if slices.Contains(nouns, noun) && e.Type != events.TypeCustomerCreated && e.Type != events.TypeAgentRegistered {
			count[noun+" "+e.Type]++
		}
	}
	return count
}

// pair is a command that appends to two or more partitions.
type pair struct {
	steps []string // prefixes of the streams that its appends write to, in the order of the appends
	do    func(ctx context.Context, a *commands.App) error
	nouns []string
	want  map[string]int // number of events at the end, as streamsOf counts them
}

// A command that writes to several partitions makes one append for each. If it fails before any of
// them, repeating the command on another node makes the missing appends. Repeating it once more
// adds nothing.
func TestWhatStandsApartIsMadeWhole(t *testing.T) {
	t.Parallel()
	const partitions = 16
	for name, begin := range map[string]func(t *testing.T, a *commands.App) pair{
		"a claim and its credit": func(t *testing.T, a *commands.App) pair {
			var agent accounts.Agent
			for agent.ClientID == "" || a.Ledger.Home(agent.ClientID).Number() == 0 {
				_, agent = tokenOf(t, a)
			}
			customer := newCustomer(t, a, "ada@example.com")
			return pair{[]string{"agent/", "verified_agents", "agent/"}, func(ctx context.Context, a *commands.App) error {
				_, err := a.ClaimAgent(ctx, agent, customer)
				return err
			}, []string{"agent", "verified_agents"}, map[string]int{"agent agent.claimed": 1, "agent agent.verified": 1, "agent credit.granted": 1, "verified_agents credit.granted": 1}}
		},
		"an agent's mail and its credit": func(t *testing.T, a *commands.App) pair {
			var registered accounts.RegisteredAgent
			for registered.ClientID == "" || a.Ledger.Home(registered.ClientID).Number() == 0 {
				registered, _ = newAgent(t, a)
			}
			link, err := a.RequestAgentLink(t.Context(), "ada@example.com", registered.ClientID)
			if err != nil {
				t.Fatal(err)
			}
			used := false
			return pair{[]string{"customer/", "agent/", "verified_agents", "agent/"}, func(ctx context.Context, a *commands.App) error {
				_, err := a.ConfirmAgent(ctx, link.Token)
				if used && err != nil {
					return nil // the link was deleted in the last step, so a repeated call is refused
				}
				used = err == nil
				return err
			}, []string{"agent", "verified_agents"}, map[string]int{"agent agent.verified": 1, "agent credit.granted": 1, "verified_agents credit.granted": 1}}
		},
		"a checkout and its customer": func(t *testing.T, a *commands.App) pair {
			kitOf(a)
			address := addressAt(t, a, "cus_stripe", false)
			return pair{[]string{"billing/", "customer/"}, func(ctx context.Context, a *commands.App) error {
				return a.FulfilCheckout(ctx, store.ProviderEvent{ID: "evt_1", At: 1}, store.CompletedCheckout{Session: "cs_1", Customer: "cus_stripe",
					Payment: "pi_1", Product: "kit", Email: address, AmountCents: 100, Currency: "usd"})
			}, []string{"billing", "customer"}, map[string]int{"billing purchase.fulfilled": 1, "billing customer.bound": 1, "customer customer.bound": 1}}
		},
		"a purchase and its customer": func(t *testing.T, a *commands.App) pair {
			kit, p := kitOf(a), paymentOf(7)
			address := addressAt(t, a, p.ID, false)
			return pair{[]string{"payment/", "customer/", "purchase/"}, func(ctx context.Context, a *commands.App) error {
				kitOf(a)
				_, err := a.PurchaseProduct(ctx, store.Order{Product: kit, Email: address}, p)
				return err
			}, []string{"payment", "purchase", "customer"}, map[string]int{"payment payment.claimed": 1, "payment payment.settled": 1,
				"purchase purchase.fulfilled": 1, "customer entitlement.granted": 1}}
		},
		"a payment and its Idempotency-Key": func(t *testing.T, a *commands.App) pair {
			p, call := paymentOf(9), quickCall(t, accounts.Caller{}, "", "ls")
			for i := 0; ; i++ {
				call.IdempotencyKey = fmt.Sprintf("key-%06d", i)
				name := "x402_key:" + call.Service.Operation + ":payer:" + p.Network + ":" + strings.ToLower(p.Payer) + ":" + call.IdempotencyKey
				if reference := a.Vault.Reference(ledger.ServiceTenant, name).String()[:32]; a.Ledger.Home(reference) != a.Ledger.Home(p.ID) {
					break
				}
			}
			return pair{[]string{"payment_key/", "payment/"}, func(ctx context.Context, a *commands.App) error {
				_, err := a.RunPaidService(ctx, call, p)
				return err
			}, []string{"payment", "payment_key"}, map[string]int{"payment_key identifier.reserved": 1,
				"payment payment.claimed": 1, "payment payment.settled": 1, "payment call.completed": 1}}
		},
		"a payment and its identifier": func(t *testing.T, a *commands.App) pair {
			p, call := paymentOf(8), quickCall(t, accounts.Caller{}, "", "ls")
			for i := 0; p.Identifier == "" || a.Ledger.Home(p.PayTo+"|"+p.Identifier) == a.Ledger.Home(p.ID); i++ {
				p.Identifier = fmt.Sprintf("identifier-%06d", i)
			}
			return pair{[]string{"payment_identifier/", "payment/"}, func(ctx context.Context, a *commands.App) error {
				_, err := a.RunPaidService(ctx, call, p)
				return err
			}, []string{"payment", "payment_identifier"}, map[string]int{"payment_identifier identifier.reserved": 1,
				"payment payment.claimed": 1, "payment payment.settled": 1, "payment call.completed": 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, c := ledgertest.NewPartitioned(t, partitions), newClock()
			b := newBank("facilitator")
			open := func() *commands.App {
				a := openTokens(t, db, c)
				a.Settler = b
				return a
			}
			first := open()
			defer clean(t, first)
			pair := begin(t, first)
			for _, step := range pair.steps {
				node := open()
				ctx, cancel := context.WithCancel(t.Context())
				b.during = cancel // the settler stops waiting while the database refuses
				allow := refusing(t, db, step)
				if err := pair.do(ctx, node); err == nil {
					t.Errorf("%s was refused, and nobody was told", step)
				}
				allow()
				cancel()
			}
			for range 2 {
				if err := pair.do(t.Context(), open()); err != nil {
					t.Fatal(err)
				}
				for what, n := range streamsOf(t, first, pair.nouns...) {
					if pair.want[what] != n && !strings.HasSuffix(what, events.TypePaymentUnknown) {
						t.Errorf("%d x %s, want %d", n, what, pair.want[what])
					}
				}
			}
			if got := streamsOf(t, first, pair.nouns...); len(got) < len(pair.want) {
				t.Errorf("%v, want %v", got, pair.want)
			}
			if b.transfers() > 1 {
				t.Errorf("the money moved %d times", b.transfers())
			}
		})
	}
}
