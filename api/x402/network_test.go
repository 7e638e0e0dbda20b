package x402_test

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/api/x402"
)

// TestDomainSeparatorsOfUSDC compares with the separators that the contracts return. This checks
// names, versions, chain ids and addresses.
func TestDomainSeparatorsOfUSDC(t *testing.T) {
	for network, want := range map[string]string{
		"eip155:8453":  "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f",
		"eip155:84532": "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818",
		"eip155:1":     "0x06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335",
		"eip155:43114": "0xbbea200329a938bc3438984a49cb0732e66d66d7bd59c127abacc1710e77f7b3",
	} {
		terms := terms(t, x402.Settings{Network: network, PayTo: x402.DevPayTo})
		if got := terms.Domain().Separator().String(); got != want {
			t.Errorf("%s: %s", network, got)
		}
		if terms.Symbol() != "USDC" {
			t.Errorf("%s: people call it %s", network, terms.Symbol())
		}
	}
}

func TestAmountIsTenThousandUnitsPerCent(t *testing.T) {
	for cents, want := range map[int]string{1: "10000", 25: "250000", 2900: "29000000", 1<<31 - 1: "21474836470000"} {
		if got := devTerms(t).Offer(cents).Amount; got != want {
			t.Errorf("%d cents are %s", cents, got)
		}
	}
}

func TestSettingsAreCheckedAndNamed(t *testing.T) {
	const payee = "0x329EdA9C18561571bA257177847A993E354e81b7"
	for _, tc := range []struct {
		name    string
		s       x402.Settings
		setting string // setting that the error must name; empty if the settings are valid
	}{
		{"dev without anything", x402.Settings{Dev: true}, ""},
		{"dev on a network of real money", x402.Settings{Dev: true, Network: "eip155:8453"}, "X402_NETWORK"},
		{"dev on a local chain with a token", x402.Settings{Dev: true, Network: "eip155:31337", Asset: payee, AssetName: "Test", AssetVersion: "1"}, ""},
		{"Base", x402.Settings{Network: "eip155:8453", PayTo: payee}, ""},
		{"address in lower case", x402.Settings{Network: "eip155:8453", PayTo: strings.ToLower(payee)}, ""},
		{"wrong checksum", x402.Settings{Network: "eip155:8453", PayTo: strings.Replace(payee, "EdA", "eDA", 1)}, "X402_PAY_TO"},
		{"zero address", x402.Settings{Network: "eip155:8453", PayTo: "0x" + strings.Repeat("0", 40)}, "X402_PAY_TO"},
		{"no address", x402.Settings{Network: "eip155:8453"}, "X402_PAY_TO"},
		{"half an address", x402.Settings{Network: "eip155:8453", PayTo: payee[:40]}, "X402_PAY_TO"},
		{"no network", x402.Settings{PayTo: payee}, "X402_NETWORK"},
		{"name of a network", x402.Settings{Network: "base", PayTo: payee}, "X402_NETWORK"},
		{"another family", x402.Settings{Network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", PayTo: payee}, "X402_NETWORK"},
		{"leading zero", x402.Settings{Network: "eip155:08453", PayTo: payee}, "X402_NETWORK"},
		{"network without known asset", x402.Settings{Network: "eip155:137", PayTo: payee}, "X402_ASSET"},
		{"asset without name", x402.Settings{Network: "eip155:137", PayTo: payee, Asset: payee}, "X402_ASSET_NAME"},
		{"asset without version", x402.Settings{Network: "eip155:137", PayTo: payee, Asset: payee, AssetName: "X"}, "X402_ASSET_VERSION"},
		{"USDC under a wrong name", x402.Settings{Network: "eip155:8453", PayTo: payee, AssetName: "USDC"}, "X402_ASSET_NAME"},
		{"another token on Base needs a name", x402.Settings{Network: "eip155:8453", PayTo: payee, Asset: payee}, "X402_ASSET_NAME"},
		{"too short", x402.Settings{Dev: true, MaxTimeoutSeconds: 59}, "X402_MAX_TIMEOUT_SECONDS"},
		{"too long", x402.Settings{Dev: true, MaxTimeoutSeconds: 601}, "X402_MAX_TIMEOUT_SECONDS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := x402.NewTerms(tc.s)
			switch {
			case tc.setting == "" && err != nil:
				t.Error(err)
			case tc.setting != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.setting)):
				t.Errorf("said %v, want %s named", err, tc.setting)
			}
		})
	}
}

func TestAddressesShowTheirChecksum(t *testing.T) {
	// Examples of EIP-55.
	for _, want := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	} {
		a, err := x402.ParseAddress(strings.ToLower(want))
		if err != nil || a.String() != want {
			t.Errorf("%s, %v", a, err)
		}
	}
}
