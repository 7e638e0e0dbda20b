package bundle_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/tree"
)

// proofsPy prints the proofs for which verify.py gives a wrong answer. It also changes each proof
// and its roots in several ways.
const proofsPy = `
import json, sys
sys.path.insert(0, sys.argv[1])
import verify
h = bytes.fromhex
other = bytes(32)
for p in json.load(sys.stdin):
    first, second, proof = p["first"], p["second"], [h(x) for x in p["proof"]]
    if p["leaf"]:
        holds = lambda proof, first=first, second=second, leaf=h(p["leaf"]): verify.root_of_inclusion(leaf, first, second, proof) == h(p["root"])
        wrong = [holds(proof, leaf=other), holds(proof, first=first + 1), holds(proof, first=first + second)]
    else:
        holds = lambda proof, first=first, second=second, old=h(p["old"]), root=h(p["root"]): verify.consistent(first, second, old, root, proof)
        wrong = [holds(proof, old=other), holds(proof, root=other), first > 1 and holds(proof, first=first - 1)]
    wrong += [holds(proof + [other])] + [holds(proof[:i] + [other] + proof[i + 1:]) for i in range(len(proof))]
    wrong += [holds(proof[:i] + proof[i + 1:]) for i in range(len(proof))]
    if not holds(proof) or any(wrong):
        print("inclusion" if p["leaf"] else "consistency", first, second, holds(proof), wrong)
`

// verify.py accepts every inclusion proof and consistency proof of small trees, and none that was
// changed.
func TestVerifyPyChecksEveryProof(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; .ci/bundle/run has one")
	}
	text := func(hash tree.Hash) string { return hex.EncodeToString(hash[:]) }
	texts := func(hashes []tree.Hash) []string {
		list := []string{}
		for _, hash := range hashes {
			list = append(list, text(hash))
		}
		return list
	}
	var leaves []tree.Hash
	var proofs []map[string]any
	for size := 1; size <= 20; size++ {
		leaves = append(leaves, tree.Leaf([32]byte{byte(size)}))
		for i := range size {
			proofs = append(proofs, map[string]any{"first": i, "second": size, "leaf": text(leaves[i]), "root": text(root(leaves)), "proof": texts(inclusion(leaves, i))})
			if old := i + 1; old < size {
				proofs = append(proofs, map[string]any{"first": old, "second": size, "leaf": "", "old": text(root(leaves[:old])), "root": text(root(leaves)), "proof": texts(consistency(leaves, old, true))})
			}
		}
	}
	tool := t.TempDir()
	write(t, tool, map[string][]byte{"verify.py": bundle.VerifierPy})
	command := exec.CommandContext(t.Context(), python, "-c", proofsPy, tool)
	command.Stdin, command.Stderr = bytes.NewReader(must(json.Marshal(proofs))), t.Output()
	if out, err := command.Output(); err != nil || len(out) > 0 {
		t.Errorf("wrong answers for %d proofs: %v\n%s", len(proofs), err, out)
	}
}
