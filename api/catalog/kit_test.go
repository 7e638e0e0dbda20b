package catalog_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/canon"
)

// TestTheKitsVerifierKeepsTheDigitsOfIntegers checks that the kit's verifier prints an integer
// with all of its digits, as the canonical form requires.
func TestTheKitsVerifierKeepsTheDigitsOfIntegers(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	module, err := filepath.Abs("files/verification-kit/verify.mjs")
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string) (string, error) {
		command := exec.CommandContext(t.Context(), node, "--input-type=module", "-e",
			`import { readFileSync } from "node:fs"; const { canonical, readJSON } = await import("file://`+module+`"); process.stdout.write(canonical(readJSON(readFileSync(0, "utf8"))))`)
		command.Stdin = strings.NewReader(text)
		out, err := command.Output()
		return string(out), err
	}
	const text = `{"list":[-9223372036854775808, 18446744073709551615, 1e17, -0], "text":"\"1308129394817110129\\", "1308129394817110129":1308129394817110129}`
	want, err := canon.Canonical([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := run(text); err != nil || got != string(want) {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
	if got, err := run("{\"a\":\"\\u00001308129394817110129\"}"); err == nil {
		t.Errorf("a string with NUL is read as %s", got)
	}
}
