package x402

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/payments"
)

// Topics of the events of an EIP-3009 token: the end of an authorization, and the transfer that
// follows.
const (
	topicUsed     = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5" // AuthorizationUsed(address,bytes32)
	topicCanceled = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81" // AuthorizationCanceled(address,bytes32)
	topicTransfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef" // Transfer(address,address,uint256)

	selectorState  = "0xe94a0102" // authorizationState(address,bytes32)
	selectorSigned = "0x1626ba7e" // isValidSignature(bytes32,bytes)
)

// chain asks an Ethereum node for the outcome of a payment. Only a complete answer counts as
// evidence. The answers of a node that is behind, fails or contradicts itself do not count.
type chain struct {
	client        client
	id            int64
	confirmations int64
	checked       atomic.Bool // the node was verified to belong to this chain
}

var errOtherChain = errors.New("the node belongs to another chain than X402_NETWORK")

func newChain(address, network string, confirmations int) (*chain, error) {
	id, ok := chainID(network)
	if !ok {
		return nil, errors.New("X402_NETWORK must be a network such as eip155:8453")
	}
	c, err := newClient(address)
	if err != nil {
		return nil, fmt.Errorf("X402_RPC_URL: %w", err)
	}
	return &chain{client: c, id: id, confirmations: int64(confirmations)}, nil
}

// check verifies once that the node belongs to the configured chain.
func (c *chain) check(ctx context.Context) error {
	if c.checked.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, chainTimeout)
	defer cancel()
	var id quantity
	if err := c.ask(ctx, &id, "eth_chainId"); err != nil {
		return err
	}
	if int64(id) != c.id {
		return errOtherChain
	}
	c.checked.Store(true)
	return nil
}

// quantity is a number of JSON-RPC: 0x and hex digits.
type quantity int64

// UnmarshalJSON parses the quoted text of a quantity.
func (q *quantity) UnmarshalJSON(text []byte) error {
	var digits string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}
	digits, prefixed := strings.CutPrefix(digits, "0x")
	n, err := strconv.ParseUint(digits, 16, 63)
	if err != nil || !prefixed {
		return errors.New("a number of the node is not 0x and up to 16 hex digits")
	}
	*q = quantity(n)
	return nil
}

func (q quantity) text() string { return "0x" + strconv.FormatInt(int64(q), 16) }

// ask calls a method of the node and decodes the result into the variable `into`. A null result
// does not change the variable.
func (c *chain) ask(ctx context.Context, into any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	said, err := c.client.call(ctx, "", encode(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var answer struct {
		Result jsontext.Value `json:"result"`
		Error  *struct {
			Code int64 `json:"code"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(said.text, &answer); {
	case err != nil || said.status != 200 && answer.Error == nil:
		return fmt.Errorf("%s: the answer with status %d has no result", method, said.status)
	case answer.Error != nil:
		return fmt.Errorf("%s: error %d", method, answer.Error.Code)
	case answer.Result == nil:
		return fmt.Errorf("%s: the answer has no result", method)
	case answer.Result.Kind() == 'n':
		return nil
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		return fmt.Errorf("%s: the result does not have the documented form", method)
	}
	return nil
}

// hasCode reports whether the account at an address has code: it is a contract, or a wallet that
// delegates to one (EIP-7702).
func (c *chain) hasCode(ctx context.Context, address string) (bool, error) {
	if err := c.check(ctx); err != nil {
		return false, err
	}
	var code string
	if err := c.ask(ctx, &code, "eth_getCode", address, "latest"); err != nil {
		return false, err
	}
	digits, prefixed := strings.CutPrefix(code, "0x")
	if !prefixed {
		return false, errors.New("eth_getCode: the result does not have the documented form")
	}
	return digits != "", nil
}

// signedByContract calls isValidSignature(bytes32,bytes) of the contract at an address. If the
// signature is valid, the contract returns the selector of this function.
func (c *chain) signedByContract(ctx context.Context, address string, digest Hash, signature []byte) (bool, error) {
	if err := c.check(ctx); err != nil {
		return false, err
	}
	padded := append(signature, make([]byte, (32-len(signature)%32)%32)...)
	data := selectorSigned + hex.EncodeToString(digest[:]) + fmt.Sprintf("%064x%064x", 64, len(signature)) + hex.EncodeToString(padded)
	var said string
	err := c.ask(ctx, &said, "eth_call", map[string]any{"to": address, "data": data}, "latest")
	return said == selectorSigned+strings.Repeat("0", 56), err
}

type block struct {
	number int64
	at     time.Time
}

// latest returns the newest block that the node knows.
func (c *chain) latest(ctx context.Context) (block, error) { return c.block(ctx, "latest") }

func (c *chain) at(ctx context.Context, number int64) (block, error) {
	return c.block(ctx, quantity(number).text())
}

func (c *chain) block(ctx context.Context, tag string) (block, error) {
	if err := c.check(ctx); err != nil {
		return block{}, err
	}
	var b *struct {
		Number    quantity `json:"number"`
		Timestamp quantity `json:"timestamp"`
	}
	if err := c.ask(ctx, &b, "eth_getBlockByNumber", tag, false); err != nil {
		return block{}, err
	}
	if b == nil {
		return block{}, errors.New("eth_getBlockByNumber: the node does not have the block")
	}
	return block{int64(b.Number), time.Unix(int64(b.Timestamp), 0)}, nil
}

// first returns the block from which to search for the outcome of a payment: some blocks before
// the claim. Earlier blocks need no search, because the payment was verified to be unused before
// it was claimed.
func (c *chain) first(ctx context.Context, p payments.Payment, head block) (int64, error) {
	if p.HeadBlock > 0 {
		return max(p.HeadBlock-blocksBefore, 0), nil
	}
	since := p.ClaimedAt
	if since.IsZero() { // use the earliest possible claim
		since = time.Unix(p.ValidBefore, 0).Add(-windowLimit)
	}
	var failed error
	later := sort.Search(int(head.number), func(n int) bool {
		if failed != nil {
			return false
		}
		b, err := c.at(ctx, int64(n))
		failed = err
		return b.at.After(since)
	})
	return max(int64(later)-blocksBefore, 0), failed
}

// prove searches the chain for the outcome of a payment. If there is no proof, the error explains
// why; it is nil if nothing has happened yet.
func (c *chain) prove(ctx context.Context, p payments.Payment) (_ payments.Settlement, proven bool, err error) {
	head, err := c.latest(ctx)
	if err != nil {
		return payments.Settlement{}, false, err
	}
	if c.confirmations > 1 {
		if head, err = c.at(ctx, max(head.number-c.confirmations+1, 0)); err != nil {
			return payments.Settlement{}, false, err
		}
	}
	from, err := c.first(ctx, p, head)
	if err != nil {
		return payments.Settlement{}, false, err
	}
	over := time.Unix(p.ValidBefore, 0).Add(expiredFor)
	for ; from <= head.number; from += blocksPerQuery {
		last := min(from+blocksPerQuery-1, head.number)
		log, err := c.find(ctx, p, from, last)
		if err != nil {
			return payments.Settlement{}, false, err
		}
		if log != nil {
			s, err := c.judge(ctx, p, *log)
			return s, err == nil, err
		}
		// No token accepts an authorization after its expiry.
		if b, err := c.at(ctx, last); err != nil || b.at.After(over) {
			return c.expired(ctx, p, head, err)
		}
	}
	return payments.Settlement{}, false, nil
}

// expired proves that a payment can never settle, if its authorization expired without an event.
// Nodes may answer before they have indexed their events, so it also asks the token contract.
func (c *chain) expired(ctx context.Context, p payments.Payment, head block, err error) (payments.Settlement, bool, error) {
	if err != nil {
		return payments.Settlement{}, false, err
	}
	var state string
	payer, nonce := topicOf(p.Payer), strings.ToLower(p.Nonce)
	call := map[string]any{"to": p.Asset, "data": selectorState + payer[2:] + strings.TrimPrefix(nonce, "0x")}
	if err := c.ask(ctx, &state, "eth_call", call, quantity(head.number).text()); err != nil {
		return payments.Settlement{}, false, err
	}
	if state != (Hash{}).String() {
		return payments.Settlement{}, false, errors.New("the token contract reports the authorization as used, but the node returns no transaction that used it")
	}
	return payments.Settlement{State: payments.Refused, Reason: ReasonExpiredUnused, Evidence: "chain"}, true, nil
}

// event is a log entry of a transaction.
type event struct {
	Address     string   `json:"address"`
	Topics      []string `json:"topics"`
	Data        string   `json:"data"`
	Block       quantity `json:"blockNumber"`
	Transaction string   `json:"transactionHash"`
}

// topicOf returns an address as a topic: a 32-byte word in lower case.
func topicOf(address string) string {
	return "0x" + strings.Repeat("0", 24) + strings.ToLower(strings.TrimPrefix(address, "0x"))
}

// of reports whether the event was emitted by the asset and has these topics.
func (e event) of(asset string, topics ...string) bool {
	if !strings.EqualFold(e.Address, asset) || len(e.Topics) < len(topics) {
		return false
	}
	for i, topic := range topics {
		if !strings.EqualFold(e.Topics[i], topic) {
			return false
		}
	}
	return true
}

// find searches blocks for the event that used or canceled the authorization. It returns nil if
// there is none.
func (c *chain) find(ctx context.Context, p payments.Payment, from, to int64) (*event, error) {
	var found []event
	filter := map[string]any{
		"address": p.Asset, "fromBlock": quantity(from).text(), "toBlock": quantity(to).text(),
		"topics": []any{[]string{topicUsed, topicCanceled}, topicOf(p.Payer), strings.ToLower(p.Nonce)},
	}
	if err := c.ask(ctx, &found, "eth_getLogs", filter); err != nil {
		return nil, err
	}
	for _, e := range found {
		used, canceled := e.of(p.Asset, topicUsed, topicOf(p.Payer), p.Nonce), e.of(p.Asset, topicCanceled, topicOf(p.Payer), p.Nonce)
		if (used || canceled) && int64(e.Block) >= from && int64(e.Block) <= to {
			return &e, nil
		}
	}
	return nil, nil
}

// judge checks whether the transaction that used the authorization paid us. If so, the next event
// of the asset is the transfer. The payer may have signed the same nonce for another payee.
func (c *chain) judge(ctx context.Context, p payments.Payment, end event) (payments.Settlement, error) {
	elsewhere := payments.Settlement{State: payments.Refused, Reason: ReasonUsedElsewhere, Evidence: "chain"}
	if end.of(p.Asset, topicCanceled) {
		return elsewhere, nil
	}
	var receipt *struct {
		Status quantity `json:"status"`
		Block  quantity `json:"blockNumber"`
		Logs   []event  `json:"logs"`
	}
	if err := c.ask(ctx, &receipt, "eth_getTransactionReceipt", end.Transaction); err != nil {
		return payments.Settlement{}, err
	}
	if receipt == nil || receipt.Status != 1 || receipt.Block != end.Block || !goodTransaction(end.Transaction) {
		return payments.Settlement{}, errors.New("two answers of the node about the transaction contradict each other")
	}
	used := false
	for _, e := range receipt.Logs {
		switch {
		case !used:
			used = e.of(p.Asset, topicUsed, topicOf(p.Payer), p.Nonce)
		case e.of(p.Asset):
			if e.of(p.Asset, topicTransfer, topicOf(p.Payer), topicOf(p.PayTo)) && sameAmount(e.Data, p.Amount) {
				return payments.Settlement{State: payments.Settled, Transaction: end.Transaction, Payer: p.Payer, Evidence: "chain"}, nil
			}
			return elsewhere, nil
		}
	}
	if !used {
		return payments.Settlement{}, errors.New("two answers of the node about the events of the transaction contradict each other")
	}
	return elsewhere, nil
}

// sameAmount reports whether the data of a transfer event equals a decimal amount.
func sameAmount(data, amount string) bool {
	n, ok := parseUint(amount)
	if !ok {
		return false
	}
	var want Hash
	n.FillBytes(want[:])
	return strings.EqualFold(data, want.String())
}
