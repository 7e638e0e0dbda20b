package assurance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/assurance"
)

// The executor's recipe in two other languages gives the same hashes, whatever
// spelling the pending call has.
func TestTheRecipeInOtherLanguages(t *testing.T) {
	module := filepath.Join(t.TempDir(), "actionHash.mjs") // an older node does not take types off
	text, err := os.ReadFile("testdata/recipe/actionHash.ts")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(module, text, 0o600); err != nil {
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
			for _, call := range []string{
				`{"protocol":"x402","intent":` + weather + `}`,
				`{"protocol":"mcp","intent":` + readFile + `}`,
				`{"protocol":"x402","intent":{"resourceUrl":"HTTPS://API.Weather.example.:443/v1/forecast?city=Oslo#now","method":"get","network":"base","scheme":"exact",
					"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000","amountUsd":0.25,"facilitatorUrl":"https://pay.example/"}}`,
				`{"protocol":"x402","intent":{"resourceUrl":"https://user:secret@api.example:8443","method":"POST","amountUsd":0.5,"network":"solana","payTo":"EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"}}`,
				`{"protocol":"x402","intent":{"resourceUrl":"http://[2001:DB8::1]:80/a?","method":"GET","paymentIdentifier":"pay_0123456789abcdef"}}`,
				`{"protocol":"mcp","intent":{"serverId":"files","serverUrl":"https://MCP.example","toolName":"schreibe","toolArguments":{"z":[3,{"ü":"ä\n","a":null}],"b":true,"a":""},"declaredRisk":"low"}}`,
				`{"protocol":"mcp","intent":{"serverId":"s","toolName":"t","toolArguments":null}}`,
			} {
				want, err := assurance.ParseCall([]byte(call))
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), recipe[0], recipe[1:]...)
				cmd.Stdin = strings.NewReader(call)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				got, err := cmd.Output()
				if err != nil || strings.TrimSpace(string(got)) != want.ActionHash {
					t.Errorf("%s\ngot  %s%v %s\nwant %s", call, got, err, stderr.String(), want.ActionHash)
				}
			}
		})
	}
}
