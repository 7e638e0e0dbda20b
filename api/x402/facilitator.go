package x402

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/payments"
)

// FacilitatorConfig configures a facilitator. The comments name the settings.
type FacilitatorConfig struct {
	URL           string // X402_FACILITATOR_URL
	Bearer        string // X402_FACILITATOR_BEARER; empty means none
	KeyID         string // X402_FACILITATOR_KEY_ID; with Secret, each request has its own token (cdp.go)
	Secret        string // X402_FACILITATOR_SECRET
	Minimal       bool   // X402_FACILITATOR_MINIMAL: send only members that every facilitator supports
	RPCURL        string // X402_RPC_URL; empty means that the chain is not asked
	Confirmations int    // X402_CONFIRMATIONS, including the block of the transaction; 0 means 1
	Network       string
	Log           *slog.Logger
}

// Facilitator settles payments on a chain through an external server, the facilitator, which
// broadcasts the transfer. If that server does not report the outcome of a payment, the chain
// proves it.
type Facilitator struct {
	client  client
	minimal bool
	network string
	chain   *chain // nil means that the chain is not asked
	log     *slog.Logger
	slots   chan struct{} // one element per call in progress

	// During a settle call, the chain is asked after chainAfter, and then every chainEvery.
	chainAfter, chainEvery time.Duration

	configured atomic.Bool
	mu         sync.Mutex
	misses     int    // consecutive clear answers that do not list our kind of payment; protected by mu
	problem    string // why the last check did not find our kind of payment; protected by mu
}

// NewFacilitator returns a facilitator, or an error that names the invalid setting.
func NewFacilitator(c FacilitatorConfig) (*Facilitator, error) {
	f := &Facilitator{
		minimal: c.Minimal, network: c.Network, log: c.Log, slots: make(chan struct{}, maxInFlight),
		chainAfter: chainAfter, chainEvery: chainEvery,
	}
	var err error
	if strings.Contains(c.URL, "?") {
		return nil, errors.New("X402_FACILITATOR_URL must be a URL to which /verify can be appended")
	}
	if f.client, err = newClient(strings.TrimRight(c.URL, "/")); err != nil {
		return nil, fmt.Errorf("X402_FACILITATOR_URL: %w", err)
	}
	switch {
	case c.KeyID == "" && c.Secret == "":
		f.client.authorize = bearer(c.Bearer)
	case c.Bearer != "":
		return nil, errors.New("X402_FACILITATOR_BEARER, X402_FACILITATOR_KEY_ID: set only one of them")
	default:
		if f.client.authorize, err = newKeyTokens(c.KeyID, c.Secret, c.URL, time.Now); err != nil {
			return nil, err
		}
	}
	if c.Confirmations < 0 || c.Confirmations > maxConfirmations {
		return nil, fmt.Errorf("X402_CONFIRMATIONS must be from 1 to %d", maxConfirmations)
	}
	if c.RPCURL == "" {
		return f, nil
	}
	f.chain, err = newChain(c.RPCURL, c.Network, max(c.Confirmations, 1))
	return f, err
}

// Mode returns "facilitator".
func (f *Facilitator) Mode() string { return payments.ModeFacilitator }

// Configured reports whether the facilitator has confirmed that it settles our kind of payment.
func (f *Facilitator) Configured() bool { return f.configured.Load() }

// Problem explains why the last check did not find our kind of payment. It returns "" if the check
// found it.
func (f *Facilitator) Problem() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

func (f *Facilitator) state(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problem = problem
}

// Proves reports whether the chain can prove the outcome of a payment.
func (f *Facilitator) Proves() bool { return f.chain != nil }

// Head returns the number of the chain's last block, or 0 if it is unknown.
func (f *Facilitator) Head(ctx context.Context) int64 {
	if f.chain == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	head, err := f.chain.latest(ctx)
	if err != nil {
		return 0
	}
	return head.number
}

// Start checks the facilitator and the chain for the first time. It returns an error if the chain
// is not the configured network. If one of them does not answer, it is checked again later.
func (f *Facilitator) Start(ctx context.Context) error {
	if f.chain != nil {
		err := f.chain.check(ctx)
		if errors.Is(err, errOtherChain) {
			return fmt.Errorf("X402_RPC_URL: %w", err)
		}
		if err != nil {
			f.log.Warn("the node of the chain does not answer; until it does, the outcome of a payment stays unknown if the facilitator does not report it", "error", err)
		}
	}
	f.recheck(ctx)
	return nil
}

// Run checks at intervals what the facilitator supports, until ctx ends.
func (f *Facilitator) Run(ctx context.Context) {
	wait := firstRecheck
	for {
		if f.Configured() {
			wait = recheckEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, recheckEvery)
		f.recheck(ctx)
	}
}

// recheck turns x402 on if the facilitator supports our kind of payment, and off after several
// clear answers that it does not. An outage changes nothing, because pending payments need the
// facilitator when it is back.
func (f *Facilitator) recheck(ctx context.Context) {
	supported, kinds, err := f.supported(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.state("it does not answer /supported")
			f.log.Warn("the payment facilitator does not answer /supported", "error", err)
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if supported {
		f.misses, f.problem = 0, ""
		if !f.configured.Swap(true) {
			f.log.Info("x402 is configured", "network", f.network)
		}
		return
	}
	f.misses++
	f.problem = fmt.Sprintf("it does not support %s, scheme %s, version %d", f.network, Scheme, Version)
	switch {
	case f.misses >= missesUntilOff && f.configured.Swap(false):
		f.log.Error("the payment facilitator no longer supports our network: x402 is off", "network", f.network, "supports", kinds)
	case f.misses == 1 && !f.Configured():
		f.log.Error("the payment facilitator does not support our network: x402 is off", "network", f.network, "supports", kinds)
	}
}

// supported reports whether the facilitator settles our kind of payment. If not, kinds lists the
// kinds that it settles. It returns an error if there was no clear answer.
func (f *Facilitator) supported(ctx context.Context) (ours bool, kinds string, err error) {
	ctx, cancel := context.WithTimeout(ctx, supportTimeout)
	defer cancel()
	said, err := f.client.call(ctx, "/supported", nil)
	if err != nil {
		return false, "", err
	}
	var list struct {
		Kinds []struct {
			Version int    `json:"x402Version"`
			Scheme  string `json:"scheme"`
			Network string `json:"network"`
		} `json:"kinds"`
	}
	if err := json.Unmarshal(said.text, &list, lenient); err != nil || !said.ok() || list.Kinds == nil {
		return false, "", fmt.Errorf("the answer with status %d has no list of kinds", said.status)
	}
	var others []string
	for _, k := range list.Kinds {
		if k.Version == Version && k.Scheme == Scheme && k.Network == f.network {
			return true, "", nil
		}
		others = append(others, fmt.Sprintf("%s %s v%d", k.Scheme, k.Network, k.Version))
	}
	return false, shorten(strings.Join(others, ", ")), nil
}

var errBusy = errors.New("too many payments are under way")

// Verify asks the facilitator to verify a payment. If all slots are taken it refuses at once,
// because nothing is claimed yet.
func (f *Facilitator) Verify(ctx context.Context, p payments.Payment) error {
	select {
	case f.slots <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-f.slots }()
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if err := f.maySign(ctx, p); err != nil {
		return err
	}
	said, err := f.client.call(ctx, "/verify", f.request(p))
	if err != nil {
		return fmt.Errorf("ask the facilitator: %w", err)
	}
	read, err := said.members("isValid", "invalidReason", "invalidMessage", "errorMessage", "correlationId")
	if err != nil {
		return fmt.Errorf("ask the facilitator: %w", err)
	}
	switch valid, clear := flagOf(read["isValid"]); {
	case clear && valid && said.ok():
		return nil
	case clear && !valid && said.refuses():
		f.log.Info("the facilitator refused a payment", append(explained(read), "payment", p.ID, "status", said.status, "reason", textOf(read["invalidReason"]))...)
		return refuse(passOn(textOf(read["invalidReason"]), ReasonVerifyError))
	}
	f.log.Warn("the facilitator returned no verdict about a payment", append(explained(read), "payment", p.ID, "status", said.status)...)
	return fmt.Errorf("ask the facilitator: the answer with status %d has no verdict", said.status)
}

// maySign refuses a payment that is not signed by the payer's own key, if the chain reports that
// there is no contract at the payer's address. If the chain is not asked or does not answer, the
// facilitator decides. The facilitator also decides on signatures of other lengths, because they
// may contain the contract (ERC-6492).
func (f *Facilitator) maySign(ctx context.Context, p payments.Payment) error {
	payment, err := Read(p.Payload)
	if err != nil {
		return err
	}
	if f.chain == nil || len(payment.signature) != walletSignature || payment.signedByPayer() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	contract, err := f.chain.hasCode(ctx, p.Payer)
	if err == nil && !contract {
		return refuse(ReasonSignature)
	}
	return nil
}

// explained returns log attributes with the facilitator's explanation of an answer. Its operator
// can find the call by the correlation id. Addresses and signatures in the texts are replaced,
// because a payer's address is personal data.
func explained(read map[string]jsontext.Value) []any {
	var attributes []any
	for _, name := range []string{"invalidMessage", "errorMessage", "correlationId"} {
		if text := textOf(read[name]); text != "" {
			attributes = append(attributes, name, shorten(longHex.ReplaceAllString(text, "0x…")))
		}
	}
	return attributes
}

var longHex = regexp.MustCompile(`(0x)?[0-9a-fA-F]{40,}`)

// shorten cuts an external text to the largest length in a log line.
func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxExplanation {
		return string(runes[:maxExplanation]) + "…"
	}
	return text
}

// request returns the body of /verify and /settle. It contains the terms that the buyer accepted,
// even if ours have changed since then.
func (f *Facilitator) request(p payments.Payment) []byte {
	payload := p.Payload
	if f.minimal {
		var wire wirePayment
		if err := json.Unmarshal(p.Payload, &wire); err == nil {
			payload = encode(map[string]any{"x402Version": Version, "accepted": wire.Accepted, "payload": wire.Payload})
		}
	}
	return encode(struct {
		Version      int            `json:"x402Version"`
		Payload      jsontext.Value `json:"paymentPayload"`
		Requirements jsontext.Value `json:"paymentRequirements"`
	}{Version, payload, p.Accepted})
}

// Settle asks the facilitator to broadcast the transfer. If that takes long, the chain is asked in
// parallel, and the first proof counts. From the second attempt on, the chain is asked before,
// because the transfer may already have happened.
func (f *Facilitator) Settle(ctx context.Context, p payments.Payment, attempt int) payments.Settlement {
	if attempt > 1 && f.chain != nil {
		if s, proven := f.prove(ctx, p); proven {
			return s
		}
	}
	// Both goroutines end with this call, because it cancels their context and the channels are
	// buffered.
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	answered, proven := make(chan payments.Settlement, 1), make(chan payments.Settlement, 1)
	go func() { answered <- f.settle(ctx, p, attempt) }()
	if f.chain != nil {
		go f.watch(ctx, p, proven)
	}
	select {
	case s := <-answered:
		return s
	case s := <-proven:
		return s
	}
}

// watch searches the chain for the transfer until it is found or ctx ends.
func (f *Facilitator) watch(ctx context.Context, p payments.Payment, proven chan<- payments.Settlement) {
	wait := f.chainAfter
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = f.chainEvery
		if s, ok := f.prove(ctx, p); ok {
			proven <- s
			return
		}
	}
}

func (f *Facilitator) prove(ctx context.Context, p payments.Payment) (payments.Settlement, bool) {
	ctx, cancel := context.WithTimeout(ctx, chainTimeout)
	defer cancel()
	s, proven, err := f.chain.prove(ctx, p)
	if err != nil && ctx.Err() == nil {
		f.log.Warn("the outcome of a payment was not found on the chain", "payment", p.ID, "error", err)
	}
	return s, proven
}

// settle asks the facilitator once. It waits for a free slot, because the payment is already
// claimed.
func (f *Facilitator) settle(ctx context.Context, p payments.Payment, attempt int) payments.Settlement {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return unknown(ReasonSettleError)
	}
	defer func() { <-f.slots }()
	said, err := f.client.call(ctx, "/settle", f.request(p))
	if err != nil {
		f.log.Warn("the facilitator did not return the result of a payment", "payment", p.ID, "attempt", attempt, "error", err)
		return unknown(ReasonSettleError)
	}
	read, err := said.members("success", "errorReason", "transaction", "network", "payer", "errorMessage", "correlationId")
	if err != nil {
		f.log.Warn("the facilitator did not return the result of a payment", "payment", p.ID, "attempt", attempt, "error", err)
		return unknown(ReasonSettleError)
	}
	s := outcome(said, read, p, attempt)
	if s.State != payments.Settled {
		f.log.Warn("the facilitator did not settle a payment", append(explained(read), "payment", p.ID, "attempt", attempt,
			"status", said.status, "state", string(s.State), "reason", s.Reason)...)
	}
	s.Extensions = f.extensions(said)
	return s
}

// extensions returns the header EXTENSION-RESPONSES of a settlement: base64 of a JSON object with
// the result of each extension, such as the listing in an index. It logs a rejection for the
// operator.
func (f *Facilitator) extensions(said answer) string {
	header := said.header.Get(HeaderExtensions)
	text, err := base64.StdEncoding.DecodeString(header)
	if header == "" || len(header) > maxExtensions || err != nil || !jsontext.Value(text).IsValid(lenient) {
		return ""
	}
	if bytes.Contains(text, []byte("reject")) {
		f.log.Warn("the facilitator rejected an extension of a payment", "extensions", shorten(longHex.ReplaceAllString(string(text), "0x…")))
	}
	return header
}

// ContractSigned asks the contract at an address whether it has signed a digest (ERC-1271). It
// returns false if the chain is not asked or does not answer.
func (f *Facilitator) ContractSigned(ctx context.Context, address string, digest Hash, signature []byte) bool {
	if f.chain == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	signed, err := f.chain.signedByContract(ctx, address, digest, signature)
	return err == nil && signed
}

func unknown(reason string) payments.Settlement {
	return payments.Settlement{State: payments.Unknown, Reason: reason}
}

// outcome returns the settlement that an answer to /settle proves. Only two answers are proof. The
// first is a success with a transaction, which names no other network or payer. The second, only
// on the first attempt, is a reason with which nothing can have been broadcast. In other cases the
// outcome is unknown; a transaction in the answer is kept, so that an operator can look it up.
func outcome(said answer, read map[string]jsontext.Value, p payments.Payment, attempt int) payments.Settlement {
	reason, transaction := passOn(textOf(read["errorReason"]), ReasonSettleError), textOf(read["transaction"])
	open := unknown(reason)
	if goodTransaction(transaction) {
		open.Transaction = transaction
	}
	switch success, clear := flagOf(read["success"]); {
	case clear && success:
		if said.ok() && isNetwork(read["network"], p.Network) && isPayer(read["payer"], p.Payer) && open.Transaction != "" {
			return payments.Settlement{State: payments.Settled, Transaction: transaction, Payer: p.Payer, Evidence: "facilitator"}
		}
		open.Reason = ReasonSettleError
	case clear && attempt == 1 && said.refuses() && transaction == "" && beforeBroadcast(textOf(read["errorReason"])):
		return payments.Settlement{State: payments.Refused, Reason: reason}
	}
	return open
}

// isNetwork reports whether a settlement names our network, by its name in version 2 or 1 of the
// protocol, or names none.
func isNetwork(named jsontext.Value, ours string) bool {
	switch named.Kind() {
	case 0, 'n':
		return true
	case '"':
		name := textOf(named)
		return name == "" || name == ours || name == namesV1[ours]
	}
	return false
}

// isPayer reports whether a settlement names our payer or none.
func isPayer(named jsontext.Value, ours string) bool {
	address, named20 := parseAddress(textOf(named))
	return !named20 || strings.EqualFold(address.String(), ours)
}

// goodTransaction reports whether a text has the form of a transaction id and can be recorded.
func goodTransaction(text string) bool {
	return text != "" && len(text) <= maxTransaction && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:-") == ""
}

// beforeBroadcast reports whether a reason proves that nothing was broadcast. A used nonce or a
// failed transaction proves nothing, because this payment may have caused it.
func beforeBroadcast(reason string) bool {
	for _, late := range []string{suffixNonceUsed, suffixFailed, suffixSimulationFails, suffixOtherTransfer} {
		if strings.HasSuffix(reason, late) {
			return false
		}
	}
	return reason != reasonInvalidState &&
		(strings.HasPrefix(reason, "insufficient_") || strings.HasPrefix(reason, "invalid_") || reason == reasonUnsupported)
}
