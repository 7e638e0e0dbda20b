package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Context is where the action runs, according to the members of the request.
type Context struct {
	Cwd         string
	Production  string // name of the member that names a production environment, or ""
	Development string
	Branch      string // "branch" if the branch is protected, otherwise ""
}

// testChainWords are texts that identify networks whose money is worthless or that run on this
// machine.
var testChainWords = []string{"sepolia", "goerli", "holesky", "testnet", "devnet", "mumbai", "amoy", "fuji", "eip155:84532", "eip155:11155111", "anvil", "localhost:8545", "127.0.0.1:8545",
	"network hardhat", "network=hardhat", "hardhat_", "hoodi", "regtest", "signet", "simnet", "localnet", "localterra", "ganache", "chiado", "alfajores", "futurenet", "ghostnet", "shadownet", "preprod", "westend", "paseo", "shasta", "localhost:8899", "127.0.0.1:8899", "surfpool",
	"--chain 31337", "--chain=31337", "--chain 1337", "--chain-id 31337", "--chain 11155111", "--chain 84532", "--chain-id 84532", "--chain 421614", "--chain 80002", "\"0x7a69\"", "\"0xaa36a7\"", "\"0x14a34\"", "chainid\":31337", "chainid\":11155111", "chainid\":84532", "chain_id\":84532", "chain_id\":11155111", "chainid\":\"84532", "chainid\":\"11155111", "chain_id\":\"84532", "chain_id\":\"11155111", "chainid\":421614", "chainid\":80002", "chainid\":1337", "chainid: 11155111", "chainid: 84532", "chainid: 31337", "chainid:11155111", "chainid:84532", "chainid:31337", "chainid\": 31337", "chainid\": 11155111", "chainid\": 84532",
	"-network local", "-network=local", "--network dev", "--url local", "-u local", "bcrt1"}

// TestChain reports whether the action names a test network and no other network.
func TestChain(e *Env, it *act.Item) bool {
	if it == nil {
		return false
	}
	lower := strings.ToLower(it.Src.Text)
	if strings.Contains(lower, "mainnet") || strings.Contains(lower, "\"eip155:1\"") || strings.Contains(lower, "\"eip155:8453\"") || !e.Budget.Spend(len(lower)/16) {
		return false
	}
	return scan.HasAny(lower, testChainWords...) && !namesLiveChain(lower)
}

// liveChains are the names and numbers of networks whose money has value.
var liveChains = scan.SetOf(`1 10 25 56 100 137 250 324 480 1101 5000 8453 34443 42161 42220 43114 57073 59144 81457 534352 7777777 0x1 0xa 0x38 0x64 0x89 0x2105 0xa4b1 0xa86a 0xe708
 eth ethereum base polygon matic arbitrum arbitrum-one arbitrumone optimism bsc bnb avalanche avax gnosis celo linea scroll zksync solana bitcoin mainnet-beta`)

// namesLiveChain reports whether a member, option or variable for the network names one of
// liveChains: "network":"eip155:1", --chain base. Addresses and paths do not count.
func namesLiveChain(lower string) bool {
	for _, key := range [...]string{"eip155", "network", "chain", "chainid", "chain_id", "chain-id"} {
		for rest := lower; ; {
			_, after, found := strings.Cut(rest, key)
			if !found {
				break
			}
			rest = after
			from := 0
			for from < min(len(after), 4) && strings.IndexByte("\"'\\:= ", after[from]) >= 0 {
				from++
			}
			end := from
			for end < len(after) && (scan.Alnum(after[end]) || after[end] == '-' || after[end] == '_') {
				end++
			}
			if from > 0 && liveChains.Has(after[from:end]) {
				return true
			}
		}
	}
	return false
}
