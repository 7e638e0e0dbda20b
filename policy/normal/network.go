package normal

import (
	"strings"
)

// aliases maps the names that x402 clients use to CAIP-2 names. It contains every network of x402
// version 1 (EVM_NETWORK_CHAIN_ID_MAP of @x402/evm), with the chain ids of chainlist, and Solana
// by its genesis hashes.
var aliases = map[string]string{
	"base":               "eip155:8453",
	"base-sepolia":       "eip155:84532",
	"ethereum":           "eip155:1",
	"polygon":            "eip155:137",
	"polygon-amoy":       "eip155:80002",
	"sepolia":            "eip155:11155111",
	"abstract":           "eip155:2741",
	"abstract-testnet":   "eip155:11124",
	"iotex":              "eip155:4689",
	"sei":                "eip155:1329",
	"sei-testnet":        "eip155:1328",
	"peaq":               "eip155:3338",
	"story":              "eip155:1514",
	"educhain":           "eip155:41923",
	"skale-base-sepolia": "eip155:324705682",
	"megaeth":            "eip155:4326",
	"monad":              "eip155:143",
	"stable":             "eip155:988",
	"stable-testnet":     "eip155:2201",
	"celo":               "eip155:42220",
	"flare":              "eip155:14",
	"arbitrum":           "eip155:42161",
	"optimism":           "eip155:10",
	"avalanche":          "eip155:43114",
	"avalanche-fuji":     "eip155:43113",
	"solana":             "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
	"solana-devnet":      "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
}

// usdc maps networks to Circle's native USDC contract, in normal form. Each contract has 6
// decimals and is pegged to the US dollar.
var usdc = map[string]string{
	"eip155:8453":  "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
	"eip155:84532": "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
	"eip155:1":     "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
	"eip155:137":   "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359",
	"eip155:42161": "0xaf88d065e77c8cc2239327c5edb3a432268e5831",
	"eip155:10":    "0x0b2c639c533813f4aa9d7837caf62653d097ff85",
	"eip155:43114": "0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e",
	"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp": "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
}

// USDCDecimals is the number of decimals of every contract in usdc.
const USDCDecimals = 6

var testnets = map[string]bool{
	"eip155:84532": true, "eip155:43113": true, "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1": true,
	// test networks that x402 facilitators serve and that have no alias
	"eip155:1328": true, "eip155:11124": true, "eip155:2201": true, "eip155:324705682": true,
	"eip155:11155111": true, "eip155:80002": true, "eip155:421614": true, "eip155:11155420": true,
	"solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z": true,
}

var caip2 = Pattern(`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$`)

// Network returns the CAIP-2 name for an alias, whose case matters, and any other text unchanged.
func Network(name string) string {
	if id, ok := aliases[name]; ok {
		return id
	}
	return name
}

// IsNetwork reports whether a text is an alias, or has the form of a CAIP-2 name. An eip155 chain
// id must not have leading zeros.
func IsNetwork(name string) bool {
	id := Network(name)
	if len(id) > MaxCAIP2 || !caip2(id) {
		return false
	}
	chain, evm := strings.CutPrefix(id, "eip155:")
	return !evm || chain[0] != '0' && strings.Trim(chain, "0123456789") == ""
}

// IsTestnet reports whether a network is a known test network, whose assets have no value.
func IsTestnet(name string) bool { return testnets[Network(name)] }

// IsEVM reports whether a network, given by alias or CAIP-2 name, belongs to the EVM family.
func IsEVM(network string) bool { return strings.HasPrefix(Network(network), "eip155:") }

// IsSolana reports whether a network, given by alias or CAIP-2 name, belongs to the Solana family.
func IsSolana(network string) bool { return strings.HasPrefix(Network(network), "solana:") }

// USDC returns the normal form of the address of the network's USDC contract. ok is false if none
// is known.
func USDC(network string) (string, bool) {
	address, ok := usdc[Network(network)]
	return address, ok
}

// IsUSDC reports whether an asset is USDC on a network: the known contract, or the symbol "USDC".
// If network is empty, it accepts the contract of any network.
func IsUSDC(network, asset string) bool {
	if asset == "USDC" {
		return true
	}
	if network != "" {
		contract, ok := USDC(network)
		return ok && SameAddress(contract, asset)
	}
	for _, contract := range usdc {
		if SameAddress(contract, asset) {
			return true
		}
	}
	return false
}

// NetworkName returns the alias of a CAIP-2 network, or "" if it has none.
func NetworkName(caip2 string) string {
	name := ""
	for alias, id := range aliases {
		if id == caip2 && (name == "" || alias < name) { // of several aliases, use the first in alphabetical order
			name = alias
		}
	}
	return name
}
