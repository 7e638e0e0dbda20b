package x402test

import (
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/x402"
)

// Topics of the events of an EIP-3009 token.
var (
	authorizationUsed     = x402.Keccak([]byte("AuthorizationUsed(address,bytes32)"))
	authorizationCanceled = x402.Keccak([]byte("AuthorizationCanceled(address,bytes32)"))
	transfer              = x402.Keccak([]byte("Transfer(address,address,uint256)"))
)

// maxRange is the largest number of blocks that public nodes search for logs in one request.
const maxRange = 2_000

// blockTime is the time between two blocks.
const blockTime = 2 * time.Second

// Log is one event of a transaction.
type Log struct {
	Address x402.Address
	Topics  []x402.Hash
	Data    []byte
}

// Used returns the event that a token emits when an authorization is used.
func Used(token, payer x402.Address, nonce x402.Hash) Log {
	return Log{token, []x402.Hash{authorizationUsed, word(payer), nonce}, nil}
}

// Canceled returns the event that a token emits when an authorization is canceled.
func Canceled(token, payer x402.Address, nonce x402.Hash) Log {
	return Log{token, []x402.Hash{authorizationCanceled, word(payer), nonce}, nil}
}

// Transferred returns the event of a transfer.
func Transferred(token, from, to x402.Address, value *big.Int) Log {
	return Log{token, []x402.Hash{transfer, word(from), word(to)}, value.FillBytes(make([]byte, 32))}
}

func word(a x402.Address) (w x402.Hash) {
	copy(w[12:], a[:])
	return w
}

type transaction struct {
	hash   x402.Hash
	block  int64
	status int
	logs   []Log
}

// Chain is a chain with a JSON-RPC node. Its blocks are two seconds apart.
type Chain struct {
	URL string

	mu           sync.Mutex // protects the fields below
	chainID      int64
	genesis      time.Time
	head         int64
	lag          int64
	down         bool
	hidden       bool
	confused     bool
	transactions []transaction
	spent        map[string]bool // keys of authorizations (token, payer, nonce) that were used or canceled
	transfers    int
	calls        map[string]int
	owners       map[x402.Address]x402.Address // owners of wallets that are contracts
}

// NewChain starts a chain with the id of Base Sepolia. The time of its head is the current time of
// the clock. The chain stops at the end of the test.
func NewChain(t testing.TB, clock func() time.Time) *Chain {
	c, end := StartChain(clock)
	t.Cleanup(end)
	return c
}

// StartChain starts a chain for a program that is not a test; end stops it.
func StartChain(clock func() time.Time) (c *Chain, end func()) {
	now := clock()
	c = &Chain{chainID: 84532, genesis: now.Add(-10_000 * blockTime), head: 10_000, spent: map[string]bool{}, calls: map[string]int{}, owners: map[x402.Address]x402.Address{}}
	server := httptest.NewServer(c)
	c.URL = server.URL
	return c, server.Close
}

// SetID changes the chain id that the node reports.
func (c *Chain) SetID(id int64) { c.do(func() { c.chainID = id }) }

// Deploy makes an address a wallet with code. The key of its owner signs for it.
func (c *Chain) Deploy(wallet, owner x402.Address) { c.do(func() { c.owners[wallet] = owner }) }

// owner returns the address whose key signs for a contract. contract is false for an account
// without code.
func (c *Chain) owner(payer string) (owner x402.Address, contract bool) {
	c.do(func() { owner, contract = c.owners[address(payer)] })
	return owner, contract
}

// code returns the code that the node reports for an address.
func (c *Chain) code(q request) (any, error) {
	var account string
	if err := json.Unmarshal(q.Params[0], &account); err != nil {
		return nil, err
	}
	if _, contract := c.owners[address(account)]; contract {
		return "0x6080", nil
	}
	return "0x", nil
}

// Advance mines empty blocks until the time of the head is t.
func (c *Chain) Advance(t time.Time) {
	c.do(func() { c.head = max(c.head, int64(t.Sub(c.genesis)/blockTime)) })
}

// Lag makes the node answer as if it did not know the newest blocks.
func (c *Chain) Lag(blocks int64) { c.do(func() { c.lag = blocks }) }

// Down makes the node answer 503. Down(false) ends that.
func (c *Chain) Down(down bool) { c.do(func() { c.down = down }) }

// HideLogs makes the node find no logs, like a node that has not indexed them.
func (c *Chain) HideLogs(hidden bool) { c.do(func() { c.hidden = hidden }) }

// Confuse makes the node contradict itself, as after a reorganization of the chain: it also
// returns logs of failed transactions, and its receipts name a later block than the logs.
func (c *Chain) Confuse(confused bool) { c.do(func() { c.confused = confused }) }

// Head returns the number of the last block.
func (c *Chain) Head() int64 {
	var n int64
	c.do(func() { n = c.head })
	return n
}

// Transfers returns the number of payments that were settled on the chain.
func (c *Chain) Transfers() int {
	var n int
	c.do(func() { n = c.transfers })
	return n
}

// Calls returns the number of calls of a JSON-RPC method.
func (c *Chain) Calls(method string) int {
	var n int
	c.do(func() { n = c.calls[method] })
	return n
}

// Settle mines a block that uses an authorization, for any payee. It fails if the nonce was used
// or canceled.
func (c *Chain) Settle(token x402.Address, a x402.Authorization) (x402.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent[spend(token, a.From, a.Nonce)] {
		return x402.Hash{}, fmt.Errorf("x402test: the authorization is used or canceled")
	}
	c.transfers++
	return c.mine(1, Used(token, a.From, a.Nonce), Transferred(token, a.From, a.To, a.Value)), nil
}

// Mine mines a block with one transaction that has these logs. The authorizations in the logs
// count as used or canceled.
func (c *Chain) Mine(logs ...Log) x402.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(1, logs...)
}

// MineReverted mines a block with a failed transaction, whose logs have no effect.
func (c *Chain) MineReverted(logs ...Log) x402.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(0, logs...)
}

func (c *Chain) mine(status int, logs ...Log) x402.Hash {
	c.head++
	hash := Word("transaction " + strconv.Itoa(len(c.transactions)))
	c.transactions = append(c.transactions, transaction{hash, c.head, status, logs})
	for _, l := range logs {
		if status == 1 && l.Topics[0] != transfer {
			c.spent[fmt.Sprint(l.Address, l.Topics[1], l.Topics[2])] = true
		}
	}
	return hash
}

func spend(token, payer x402.Address, nonce x402.Hash) string {
	return fmt.Sprint(token, word(payer), nonce)
}

func (c *Chain) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

type request struct {
	ID     jsontext.Value   `json:"id"`
	Method string           `json:"method"`
	Params []jsontext.Value `json:"params"`
}

// ServeHTTP answers one JSON-RPC request.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		http.Error(w, "bad gateway", http.StatusServiceUnavailable)
		return
	}
	text, _ := io.ReadAll(r.Body)
	var q request
	if err := json.Unmarshal(text, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.calls[q.Method]++
	answer := map[string]any{"jsonrpc": "2.0", "id": q.ID}
	if result, err := c.answer(q); err != nil {
		answer["error"] = map[string]any{"code": -32602, "message": err.Error()}
	} else {
		answer["result"] = result
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(must(json.Marshal(answer)))
}

func (c *Chain) answer(q request) (any, error) {
	switch q.Method {
	case "eth_chainId":
		return quantity(c.chainID), nil
	case "eth_blockNumber":
		return quantity(c.seen()), nil
	case "eth_getBlockByNumber":
		return c.block(q)
	case "eth_getLogs":
		return c.logs(q)
	case "eth_getTransactionReceipt":
		return c.receipt(q)
	case "eth_getCode":
		return c.code(q)
	case "eth_call":
		return c.authorizationState(q)
	}
	return nil, fmt.Errorf("the method %s does not exist", q.Method)
}

// seen returns the number of the head as the node reports it.
func (c *Chain) seen() int64 { return c.head - c.lag }

func (c *Chain) number(tag string) int64 {
	if tag == "latest" {
		return c.seen()
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(tag, "0x"), 16, 64)
	if err != nil {
		return -1
	}
	return n
}

func (c *Chain) block(q request) (any, error) {
	var tag string
	if err := param(q, 0, &tag); err != nil {
		return nil, err
	}
	n := c.number(tag)
	if n < 0 || n > c.seen() {
		return nil, nil
	}
	at := c.genesis.Add(time.Duration(n) * blockTime)
	return map[string]any{"number": quantity(n), "timestamp": quantity(at.Unix())}, nil
}

func (c *Chain) logs(q request) (any, error) {
	var filter struct {
		Address   string `json:"address"`
		Topics    []any  `json:"topics"`
		FromBlock string `json:"fromBlock"`
		ToBlock   string `json:"toBlock"`
	}
	if err := param(q, 0, &filter); err != nil {
		return nil, err
	}
	from, to := c.number(filter.FromBlock), c.number(filter.ToBlock)
	if to-from+1 > maxRange {
		return nil, fmt.Errorf("query exceeds max block range %d", maxRange)
	}
	found := []any{}
	for _, tx := range c.transactions {
		for i, l := range tx.logs {
			if !c.hidden && (tx.status == 1 || c.confused) && tx.block >= from && tx.block <= min(to, c.seen()) && strings.EqualFold(l.Address.String(), filter.Address) && matches(l.Topics, filter.Topics) {
				found = append(found, tx.log(i))
			}
		}
	}
	return found, nil
}

// matches compares topics with a filter. Each position of the filter is a text, a list of texts,
// or null.
func matches(topics []x402.Hash, filter []any) bool {
	for i, want := range filter {
		if i >= len(topics) {
			return false
		}
		alternatives, list := want.([]any)
		if !list {
			alternatives = []any{want}
		}
		matched := want == nil
		for _, text := range alternatives {
			matched = matched || text == topics[i].String()
		}
		if !matched {
			return false
		}
	}
	return true
}

func (t transaction) log(i int) map[string]any {
	l := t.logs[i]
	topics := []string{}
	for _, topic := range l.Topics {
		topics = append(topics, topic.String())
	}
	return map[string]any{
		"address": strings.ToLower(l.Address.String()), "topics": topics, "data": hexadecimal(l.Data), "removed": false,
		"blockNumber": quantity(t.block), "transactionHash": t.hash.String(), "logIndex": quantity(int64(i) + 7),
	}
}

func (c *Chain) receipt(q request) (any, error) {
	var hash string
	if err := param(q, 0, &hash); err != nil {
		return nil, err
	}
	for _, tx := range c.transactions {
		if tx.hash.String() != hash || tx.block > c.seen() {
			continue
		}
		logs := []any{}
		for i := range tx.logs {
			logs = append(logs, tx.log(i))
		}
		block := tx.block
		if c.confused && tx.status == 1 {
			block++
		}
		return map[string]any{"status": quantity(int64(tx.status)), "blockNumber": quantity(block), "transactionHash": hash, "logs": logs}, nil
	}
	return nil, nil
}

// isValidSignature answers this function of a wallet contract (ERC-1271): it accepts 65 bytes
// signed by the owner's key.
func (c *Chain) isValidSignature(to, data string, selector x402.Hash) (any, error) {
	text, err := hex.DecodeString(strings.TrimPrefix(data, "0x"))
	owner, contract := c.owners[address(to)]
	if err != nil || !contract || len(text) != 4+32+32+32+96 || text[4+32+31] != 64 || text[4+64+31] != 65 {
		return nil, fmt.Errorf("execution reverted")
	}
	digest, signature := text[4:36], text[100:165]
	key, _, err := ecdsa.RecoverCompact(append([]byte{signature[64]}, signature[:64]...), digest)
	if err != nil || x402.AddressOf(key) != owner {
		return hexadecimal(make([]byte, 32)), nil
	}
	return hexadecimal(append(selector[:4:4], make([]byte, 28)...)), nil
}

func (c *Chain) authorizationState(q request) (any, error) {
	var call struct {
		To   string `json:"to"`
		Data string `json:"data"`
	}
	var tag string
	if err := param(q, 0, &call); err != nil {
		return nil, err
	}
	if err := param(q, 1, &tag); err != nil {
		return nil, err
	}
	if signed := x402.Keccak([]byte("isValidSignature(bytes32,bytes)")); strings.HasPrefix(call.Data, hexadecimal(signed[:4])) {
		return c.isValidSignature(call.To, call.Data, signed)
	}
	selector := x402.Keccak([]byte("authorizationState(address,bytes32)"))
	if len(call.Data) != 2+8+128 || call.Data[:10] != hexadecimal(selector[:4]) {
		return nil, fmt.Errorf("execution reverted")
	}
	state := make([]byte, 32)
	for _, tx := range c.transactions {
		for _, l := range tx.logs {
			if tx.status == 1 && tx.block <= c.number(tag) && l.Topics[0] != transfer && strings.EqualFold(l.Address.String(), call.To) &&
				hex.EncodeToString(append(l.Topics[1][:], l.Topics[2][:]...)) == call.Data[10:] {
				state[31] = 1
			}
		}
	}
	return hexadecimal(state), nil
}

func param(q request, i int, into any) error {
	if i >= len(q.Params) {
		return fmt.Errorf("missing value for argument %d", i)
	}
	return json.Unmarshal(q.Params[i], into)
}

func quantity(n int64) string { return "0x" + strconv.FormatInt(n, 16) }

func hexadecimal(b []byte) string { return "0x" + hex.EncodeToString(b) }
