package commands_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/mcprisk"
)

func refusedAs(err error, code string) bool {
	var refused *policy.Error
	return errors.As(err, &refused) && refused.Code == code
}

func TestHeavyComputationsLeaveAPlaceToSmallOnes(t *testing.T) {
	t.Parallel()
	var app ground.Ground
	var leave []func()
	heavy := max(1, runtime.GOMAXPROCS(0)-1)
	for range heavy {
		done, err := app.Compute(t.Context(), ground.HeavyBody)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, done)
	}
	done, err := app.Compute(t.Context(), ground.HeavyBody-1)
	if err != nil {
		t.Fatal("a small computation waits for heavy ones:", err)
	}
	done()
	leave[0]()
	if done, err = app.Compute(t.Context(), ground.HeavyBody); err != nil {
		t.Fatal("a place that was left is not free:", err)
	}
	done()
}

// takeHeavyPlaces takes all slots for heavy requests. leave frees them.
func takeHeavyPlaces(t *testing.T, a *commands.App) (leave func()) {
	t.Helper()
	var taken []func()
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		done, err := a.Compute(t.Context(), ground.HeavyBody)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, done)
	}
	return func() {
		for _, done := range taken {
			done()
		}
	}
}

// A heavy call that gets no slot is refused before anything is claimed or charged. A later call
// can use its idempotency key.
func TestARefusedComputationChargesNothing(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	_, caller := newKey(t, a, "ada@example.com")
	call := services.Call{Service: mcprisk.Service, Caller: caller, IdempotencyKey: "k",
		Body: []byte(`{"manifest":{"command":"npx","description":"` + strings.Repeat("a ", ground.HeavyBody/2) + `"}}`)}
	leave := takeHeavyPlaces(t, a)
	before := len(everything(t, a))
	if _, err := a.RunService(t.Context(), call); !refusedAs(err, ground.CodeUnavailable) {
		t.Errorf("refused with %v", err)
	}
	if after := len(everything(t, a)); after != before {
		t.Errorf("%d events", after-before)
	}
	leave()
	if r, err := a.RunService(t.Context(), call); err != nil || r.Remaining != accounts.FreeCallsPerMonth-1 {
		t.Errorf("%d calls remain, %v", r.Remaining, err)
	}
}

// Different spellings of one mailbox count as one mailbox.
func TestFreeKeysAreCountedByMailbox(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	for _, email := range []string{"ada.lovelace@gmail.com", "adalovelace+a@gmail.com", "a.d.a.lovelace+b@googlemail.com"} {
		if _, err := a.IssueFreeKey(t.Context(), email, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.IssueFreeKey(t.Context(), "AdaLovelace+c@gmail.com", ""); err == nil || !strings.Contains(err.Error(), "keys of this month") {
		t.Errorf("the fourth key of one mailbox: %v", err)
	}
	if _, err := a.IssueFreeKey(t.Context(), "ada.lovelace@example.com", ""); err != nil {
		t.Errorf("another mailbox: %v", err)
	}
	// After a stranger on another network has used up the keys of an address there, its owner
	// still gets keys.
	for range 3 {
		if _, err := a.IssueFreeKey(t.Context(), "grace@example.com", "203.0.113.9"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.IssueFreeKey(t.Context(), "grace@example.com", "203.0.113.9"); err == nil {
		t.Error("a fourth key for one network")
	}
	if _, err := a.IssueFreeKey(t.Context(), "grace@example.com", "198.51.100.7"); err != nil {
		t.Errorf("the owner, from another network: %v", err)
	}
}

// One mailbox gets one of the hundred credits, although each spelling of its address is a customer
// who vouches for an agent.
func TestOneMailboxHasOneCredit(t *testing.T) {
	t.Parallel()
	a := openTokens(t, ledgertest.New(t), newClock())
	var cents int
	for i, email := range []string{"farm+0@gmail.com", "farm+1@gmail.com", "f.arm@gmail.com", "farm@googlemail.com"} {
		registered, _ := newAgent(t, a)
		if i%2 == 0 {
			link, err := a.RequestAgentLink(t.Context(), email, registered.ClientID)
			if err == nil {
				_, err = a.ConfirmAgent(t.Context(), link.Token)
			}
			if err != nil {
				t.Fatal(err)
			}
		} else if _, err := a.ClaimAgent(t.Context(), accounts.Agent{ClientID: registered.ClientID}, newCustomer(t, a, email)); err != nil {
			t.Fatal(err)
		}
		got, verified := creditOf(t, a, registered.ClientID)
		if cents += got; !verified {
			t.Errorf("%s: the agent is not verified", email)
		}
	}
	if cents != 100 || len(credited(t, a)) != 1 {
		t.Errorf("%d cents for one mailbox, %d grants", cents, len(credited(t, a)))
	}
	if cents, _ := creditOf(t, a, creditedAgent(t, a, "another@gmail.com").ClientID); cents != 100 {
		t.Errorf("another mailbox: %d cents", cents)
	}
}

func TestThreeLinksOfAnAddressAreGoodAtOnce(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	var links []accounts.SignInLink
	for range 4 {
		link, err := a.RequestSignIn(t.Context(), "ada@example.com", "")
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, link)
		a.Clock = func(at time.Time) func() time.Time { return func() time.Time { return at } }(a.Clock().Add(time.Second))
	}
	if _, err := a.ConfirmSignIn(t.Context(), links[0].Token); !refusedAs(err, accounts.CodeGone) {
		t.Errorf("the fourth link does not make room: %v", err)
	}
	for _, link := range links[1:] {
		if _, err := a.ConfirmSignIn(t.Context(), link.Token); err != nil {
			t.Errorf("a link that somebody else's later request must not end: %v", err)
		}
	}
}
