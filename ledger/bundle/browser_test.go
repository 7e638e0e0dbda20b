package bundle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign/countersign/ledger/bundle"
)

// verifierModule is the environment variable with the path of the compressed WebAssembly verifier.
// .ci/clients/run and .ci/bundle/run set it.
const verifierModule = "COUNTERSIGN_VERIFIER"

// inPage is a Node program that calls the module as the page /verify does, with the code of that
// page.
const inPage = `
const vm = require("node:vm"), fs = require("node:fs"), { Readable } = require("node:stream");
const fetch = async (path) => ({ ok: true, body: Readable.toWeb(fs.createReadStream(path)) });
const page = vm.createContext({ TextEncoder, TextDecoder, DecompressionStream, Response, WebAssembly, fetch, Uint8Array, document: { getElementById: () => ({ dataset: { keys: "/dev/null" } }) } });
vm.runInContext(fs.readFileSync(process.argv[2], "utf8"), page);
const exported = vm.runInContext("(verifier, trust, archive) => exportedBy(verifier, trust, archive)", page);
vm.runInContext("loadVerifier", page)(process.argv[3]).then((verifier) => {
  const answers = JSON.parse(fs.readFileSync(0, "utf8")).map(({ keys, pin, archive }) => {
    try {
      return { says: exported(verifier, { keys, pin }, fs.readFileSync(archive)) };
    } catch (lacks) {
      return { lacks: lacks.message };
    }
  });
  console.log(JSON.stringify(answers));
});
`

// asked is an export with the keys and the pin for its verification. Archive is a path.
type asked struct {
	Keys    string `json:"keys"`
	Pin     string `json:"pin"`
	Archive string `json:"archive"`
}

// answered is a bundle.Result as JSON, or why the export could not be checked.
type answered struct{ Says, Lacks string }

// moduleSays verifies exports in the WebAssembly module, under Node.
func moduleSays(t *testing.T, module string, asks []asked) (answers []answered) {
	t.Helper()
	driver := filepath.Join(t.TempDir(), "driver.cjs")
	if err := os.WriteFile(driver, []byte(inPage), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", driver, "../../api/web/assets/verify.js", module)
	command.Stdin, command.Stderr = bytes.NewReader(must(json.Marshal(asks))), t.Output()
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &answers)
	}
	if err != nil || len(answers) != len(asks) {
		t.Fatalf("the module answered %d of %d times: %v", len(answers), len(asks), err)
	}
	return answers
}

// browserSays checks that the bundles get the same verdict from an archive in memory, and from the
// WebAssembly module that the page /verify loads.
func browserSays(t *testing.T, names []string, cases map[string]altered) {
	t.Helper()
	var asks []asked
	var checked []string
	folder := t.TempDir()
	for _, name := range names {
		c := cases[name]
		if c.lay != nil || c.pin != nil && len(c.pin) == 0 {
			continue // skip cases with additional files in the folder or with an empty pin, which the page does not accept
		}
		bundled := t.TempDir()
		write(t, bundled, c.files)
		var packed bytes.Buffer
		if err := bundle.NewFolder(bundled).Pack(&packed); err != nil {
			t.Fatal(err)
		}
		opened, err := bundle.UnpackInMemory(t.Context(), bytes.NewReader(packed.Bytes()), nil)
		var r bundle.Result
		if err == nil {
			r, err = bundle.Verify(t.Context(), opened, bundle.Trust{Keys: trusted(), Pin: c.pin}, nil)
		}
		if !said(c, r.Reason, err) {
			t.Errorf("%s: in memory it is %+v, %v; want %q%q", name, r, err, c.reason, c.lacks)
		}
		archive := filepath.Join(folder, "archive"+filepath.Base(bundled)+filepath.Base(filepath.Dir(bundled)))
		if err := os.WriteFile(archive, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		asks, checked = append(asks, asked{string(jwks(trusted())), string(c.pin), archive}), append(checked, name)
	}
	module := os.Getenv(verifierModule)
	if module == "" {
		return
	}
	answers := moduleSays(t, module, asks)
	for i, answer := range answers {
		var r bundle.Result
		var lacks error
		if answer.Lacks != "" {
			lacks = bundle.Unchecked(answer.Lacks)
		} else if err := json.Unmarshal([]byte(answer.Says), &r); err != nil {
			t.Fatal(err)
		}
		if c := cases[checked[i]]; !said(c, r.Reason, lacks) || r.Valid != (c.reason == "" && c.lacks == "") {
			t.Errorf("%s: the module says %+v, %v; want %q%q", checked[i], r, lacks, c.reason, c.lacks)
		}
	}
	t.Logf("%d bundles have the same verdict in the module of the page", len(answers))
}
