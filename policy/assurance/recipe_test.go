package assurance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy/assurance"
)

// types matches the type annotations of the recipe. The test removes them, because old versions of
// node do not.
var types = regexp.MustCompile(`: (string|unknown|Record<string, unknown>)`)

// For a call in normal form, the recipes in Python and TypeScript compute the same hash as this
// package. For another spelling they compute another hash, so an executor that uses a recipe does
// not make that call.
func TestTheRecipeInOtherLanguages(t *testing.T) {
	module := filepath.Join(t.TempDir(), "actionHash.mjs")
	text, err := os.ReadFile("testdata/recipe/actionHash.ts")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(module, types.ReplaceAll(text, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, recipe := range [][]string{{"python3", "testdata/recipe/action_hash.py"}, {"node", module}} {
		t.Run(recipe[0], func(t *testing.T) {
			if _, err := exec.LookPath(recipe[0]); err != nil {
				if os.Getenv("REQUIRE_DB") == "1" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			hash := func(protocol, intent string) string {
				cmd := exec.CommandContext(t.Context(), recipe[0], recipe[1:]...)
				cmd.Stdin = strings.NewReader(`{"protocol":"` + protocol + `","intent":` + intent + `}`)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s: %v %s", intent, err, stderr.String())
				}
				return strings.TrimSpace(string(out))
			}
			for _, call := range []struct {
				protocol, intent string
				normal           bool
			}{
				{"x402", weather, true},
				{"mcp", readFile, true},
				{"x402", `{"resourceUrl":"https://api.weather.example/","method":"GET","network":"eip155:8453","payTo":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","amountUnits":"1","amountUsd":0.000001}`, true},
				{"x402", `{"resourceUrl":"HTTPS://API.Weather.example.:443/v1/forecast?city=Oslo#now","method":"get","network":"base","scheme":"exact",
					"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000","amountUsd":0.25,"facilitatorUrl":"https://pay.example/"}`, false},
				{"x402", `{"resourceUrl":"https://user:secret@api.example:8443","method":"POST","amountUsd":0.50,"network":"solana","payTo":"EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"}`, false},
				{"x402", `{"resourceUrl":"http://[2001:DB8::1]:80/a?","method":"GET","paymentIdentifier":"pay_0123456789abcdef"}`, false},
				{"mcp", `{"serverId":"files","serverUrl":"https://MCP.example","toolName":"schreibe","toolArguments":{"z":[3,{"ü":"ä\n","a":null}],"b":true,"a":""},"declaredRisk":"low"}`, false},
				{"mcp", `{"serverId":"s","toolName":"t","toolArguments":{"z":[3,{"ü":"ä\n\"\\","a":null}],"b":true,"a":"","B":-7}}`, true},
				{"mcp", `{"serverId":"s","toolName":"t","toolArguments":null}`, true},
				{"mcp", `{"serverId":"s","toolName":"t","toolArguments":{"message_id":1308129394817110129,"text":"\"1308129394817110129\"","list":[-9223372036854775808,18446744073709551615,9007199254740991]}}`, true},
			} {
				r, err := assurance.ParseDecision([]byte(`{"protocol":"` + call.protocol + `","idempotencyKey":"k","subject":{"runId":"r"},"intent":` + call.intent + `}`))
				if err != nil {
					t.Fatal(err)
				}
				if got := hash(call.protocol, call.intent); (got == r.ActionHash) != call.normal {
					t.Errorf("as written %s: %s, the decision has %s", call.intent, got, r.ActionHash)
				}
				normalized, err := json.Marshal(r.Normalized)
				if err != nil {
					t.Fatal(err)
				}
				if got := hash(call.protocol, string(normalized)); got != r.ActionHash {
					t.Errorf("normalized %s: %s, want %s", normalized, got, r.ActionHash)
				}
			}
		})
	}
}
