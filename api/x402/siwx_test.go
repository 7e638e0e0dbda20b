package x402_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
)

// proofOf returns a proof for an address, signed by a wallet.
func proofOf(t *testing.T, address string, signer *x402test.Wallet, asked x402.SignIn) x402.SignInProof {
	t.Helper()
	text := fmt.Sprintf("%s wants you to sign in with your Ethereum account:\n%s\n\n%s\n\nURI: %s\nVersion: 1\nChain ID: 84532\nNonce: %s\nIssued At: %s\nExpiration Time: %s",
		asked.Domain, address, asked.Statement, asked.URI, asked.Nonce, asked.IssuedAt, asked.ExpirationTime)
	header, err := json.Marshal(map[string]any{"domain": asked.Domain, "address": address, "statement": asked.Statement, "uri": asked.URI, "version": "1",
		"chainId": x402.DevNetwork, "type": "eip191", "nonce": asked.Nonce, "issuedAt": asked.IssuedAt, "expirationTime": asked.ExpirationTime, "signature": signer.SignText(text)})
	if err != nil {
		t.Fatal(err)
	}
	proof, ok := x402.ReadSignIn(base64.StdEncoding.EncodeToString(header))
	if !ok {
		t.Fatal("the proof is not read")
	}
	return proof
}

// TestWhoSignedIn checks that a message can be signed by the key of an address or, if the chain is
// asked, by the contract at the address.
func TestWhoSignedIn(t *testing.T) {
	asked := x402.NewSignIn("https://countersign.example/api/downloads/pur_1", "countersign.example", "Download what this address has bought", "0123456789abcdef0123456789abcdef", now)
	payer, owner, thief := x402test.NewWallet("payer"), x402test.NewWallet("owner"), x402test.NewWallet("thief")
	for _, tc := range []struct {
		name           string
		asks, contract bool
		signer         *x402test.Wallet
		want           bool
	}{
		{"the key", false, false, payer, true},
		{"a thief", false, false, thief, false},
		{"a thief, chain asked", true, false, thief, false},
		{"the owner of a contract, chain not asked", false, true, owner, false},
		{"the owner of a contract", true, true, owner, true},
		{"a thief before a contract", true, true, thief, false},
	} {
		m := openMarket(t, tc.asks, nil)
		if tc.contract {
			m.chain.Deploy(payer.Address, owner.Address)
		}
		proof := proofOf(t, payer.Address.String(), tc.signer, asked)
		if got := proof.By(t.Context(), payer.Address.String(), m.facilitator); got != tc.want || !proof.Fresh(asked, x402.DevNetwork, now) {
			t.Errorf("%s: %v", tc.name, got)
		}
		if proof.By(t.Context(), thief.Address.String(), m.facilitator) {
			t.Errorf("%s: it is somebody else's, too", tc.name)
		}
	}
	proof := proofOf(t, payer.Address.String(), payer, asked)
	for at, want := range map[time.Duration]bool{-time.Second: false, 0: true, 299 * time.Second: true, 300 * time.Second: false} {
		if got := proof.Fresh(asked, x402.DevNetwork, now.Add(at)); got != want {
			t.Errorf("after %v: %v", at, got)
		}
	}
}
