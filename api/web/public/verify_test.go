package public

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/canon"
)

// The script of the verify page must treat a text like the Go package canon: print it in canonical
// form with every digit of its integers, or refuse it.
func TestTheBrowserKeepsTheDigitsOfIntegers(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	script, err := filepath.Abs("../assets/verify.js")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "canonical.js")
	if err := os.WriteFile(program, []byte(`
const vm = require("node:vm"), fs = require("node:fs");
const page = vm.createContext({ TextEncoder, document: { getElementById: () => ({ dataset: {} }) }, fetch: () => Promise.reject(new Error("offline")) });
vm.runInContext(fs.readFileSync(process.argv[2], "utf8"), page);
page.text = fs.readFileSync(0, "utf8");
process.stdout.write(vm.runInContext("canonical(read(text))", page));
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"message_id": 1308129394817110129, "n": 1e2}`,
		`[-9223372036854775808, 18446744073709551615, 9007199254740991, 9999999999999999999999999999999999999999, -0, 1e17, 1e21, 9007199254740993.0, 0.1234567890123456789]`,
		`{"text":"1308129394817110129 \"1308129394817110129\" \\","1308129394817110129":[1308129394817110129]}`,
	} {
		want, err := canon.Canonical([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), node, program, script)
		command.Stdin = strings.NewReader(text)
		if got, err := command.CombinedOutput(); err != nil || string(got) != string(want) {
			t.Errorf("%s becomes %s, want %s, %v", text, got, want, err)
		}
	}
	for _, text := range []string{"{\"a\":\"\\u00001308129394817110129\"}", `{"a":1308129394817110129,"a":1}`, `{"a":01308129394817110129}`, `{"a":1308129394817110129x}`} {
		command := exec.CommandContext(t.Context(), node, program, script)
		command.Stdin = strings.NewReader(text)
		if got, err := command.CombinedOutput(); err == nil {
			t.Errorf("%s is read as %s", text, got)
		}
	}
}
