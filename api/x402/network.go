package x402

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// asset is a token that clients support by default: 6 decimals, pegged to the US dollar, EIP-3009.
type asset struct {
	network       string
	address       string
	name, version string // EIP-712 domain of the asset; with a wrong name every signature is invalid
}

// assets lists the known contracts of USDC. The settings must describe any other asset.
var assets = []asset{
	{"eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin", "2"},
	{"eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "2"},
	{"eip155:1", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USD Coin", "2"},
	{"eip155:43114", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USD Coin", "2"},
}

// namesV1 maps networks to their names in version 1 of the protocol. Some facilitators use these
// in answers to payments of version 2.
var namesV1 = map[string]string{
	"eip155:8453": "base", "eip155:84532": "base-sepolia", "eip155:1": "ethereum", "eip155:11155111": "sepolia",
	"eip155:43114": "avalanche", "eip155:43113": "avalanche-fuji", "eip155:137": "polygon", "eip155:80002": "polygon-amoy",
}

// testNetworks are the networks whose money has no value. Only on these may payments settle only
// in the ledger.
var testNetworks = []string{"eip155:84532", "eip155:11155111", "eip155:31337"}

// DevNetwork and DevPayTo are the defaults of the development mode. Do not send money to that
// address.
const (
	DevNetwork = "eip155:84532"
	DevPayTo   = "0x329EdA9C18561571bA257177847A993E354e81b7"
)

// chainID returns the chain id in the name of an EVM network such as eip155:84532.
func chainID(network string) (int64, bool) {
	digits, evm := strings.CutPrefix(network, "eip155:")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, evm && err == nil && n > 0 && strconv.FormatInt(n, 10) == digits
}

// Settings are the terms of payment that an operator configures. The errors of NewTerms name the
// setting.
type Settings struct {
	Network           string // X402_NETWORK, such as "eip155:8453"
	PayTo             string // X402_PAY_TO
	Asset             string // X402_ASSET; empty means USDC, if it is known on the network
	AssetName         string // X402_ASSET_NAME
	AssetVersion      string // X402_ASSET_VERSION
	MaxTimeoutSeconds int    // X402_MAX_TIMEOUT_SECONDS; 0 means 300
	Dev               bool   // development mode, only on test networks; Network and PayTo then have defaults
}

// Terms are the validated terms of payment, without the price.
type Terms struct {
	Network, Asset, PayTo string
	AssetName             string // EIP-712 domain of the asset
	AssetVersion          string
	MaxTimeoutSeconds     int
	FreeKey               *FreeKey // how to call without a payment; nil if that is not possible
	chainID               int64
}

// NewTerms validates the settings.
func NewTerms(s Settings) (Terms, error) {
	if s.Dev {
		s.Network, s.PayTo = cmp.Or(s.Network, DevNetwork), cmp.Or(s.PayTo, DevPayTo)
	}
	t := Terms{Network: s.Network, AssetName: s.AssetName, AssetVersion: s.AssetVersion, MaxTimeoutSeconds: s.MaxTimeoutSeconds}
	var ok bool
	if t.chainID, ok = chainID(s.Network); !ok {
		return Terms{}, errors.New("X402_NETWORK must be a network such as eip155:8453")
	}
	if s.Dev && !slices.Contains(testNetworks, s.Network) {
		return Terms{}, fmt.Errorf("X402_NETWORK: X402_MODE=dev moves no money, so it needs a test network: %s", strings.Join(testNetworks, ", "))
	}
	payTo, err := ParseAddress(s.PayTo)
	if err != nil {
		return Terms{}, fmt.Errorf("X402_PAY_TO: %w", err)
	}
	t.PayTo = payTo.String()
	if err := t.setAsset(s); err != nil {
		return Terms{}, err
	}
	if t.MaxTimeoutSeconds == 0 {
		t.MaxTimeoutSeconds = defaultTimeout
	}
	if t.MaxTimeoutSeconds < minTimeout || t.MaxTimeoutSeconds > maxTimeout {
		return Terms{}, fmt.Errorf("X402_MAX_TIMEOUT_SECONDS must be from %d to %d", minTimeout, maxTimeout)
	}
	return t, nil
}

// setAsset sets the configured asset, or USDC. Settings that contradict the domain of a known
// asset are refused, because every payment would fail.
func (t *Terms) setAsset(s Settings) error {
	known := asset{}
	for _, a := range assets {
		if a.network == s.Network && (s.Asset == "" || strings.EqualFold(a.address, s.Asset)) {
			known = a
		}
	}
	address, err := ParseAddress(cmp.Or(s.Asset, known.address))
	if err != nil {
		return fmt.Errorf("X402_ASSET: %w", err)
	}
	t.Asset = address.String()
	t.AssetName, t.AssetVersion = cmp.Or(s.AssetName, known.name), cmp.Or(s.AssetVersion, known.version)
	switch {
	case t.AssetName == "":
		return errors.New("X402_ASSET_NAME must be the EIP-712 name of the asset")
	case t.AssetVersion == "":
		return errors.New("X402_ASSET_VERSION must be the EIP-712 version of the asset")
	case known.name != "" && (t.AssetName != known.name || t.AssetVersion != known.version):
		return fmt.Errorf("X402_ASSET_NAME and X402_ASSET_VERSION must be %q and %q for this asset", known.name, known.version)
	}
	return nil
}

// Symbol returns the symbol of the asset if it is known, else its name.
func (t Terms) Symbol() string {
	for _, a := range assets {
		if a.network == t.Network && a.address == t.Asset {
			return "USDC"
		}
	}
	return t.AssetName
}

// Domain returns the EIP-712 domain for signatures of buyers.
func (t Terms) Domain() Domain {
	address, _ := parseAddress(t.Asset)
	return Domain{Name: t.AssetName, Version: t.AssetVersion, ChainID: t.chainID, Asset: address}
}

// Offer returns our requirements for a price in US cents. Amounts of the asset are in millionths.
func (t Terms) Offer(cents int) Requirements {
	return Requirements{
		Scheme: Scheme, Network: t.Network, Amount: strconv.FormatInt(int64(cents)*10_000, 10),
		Asset: t.Asset, PayTo: t.PayTo, MaxTimeoutSeconds: t.MaxTimeoutSeconds,
		Extra: Extra{Name: t.AssetName, Version: t.AssetVersion},
	}
}
