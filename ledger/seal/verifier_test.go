package seal_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/countersign/countersign/ledger/seal"
)

const testType = "application/vnd.svc.test.v1+json"

// A Verifier gives the same result for every signature as a single verification, whichever byte is
// changed, for any number of signatures and keys.
func TestAVerifierSaysWhatCheckingAloneSays(t *testing.T) {
	var signers []*seal.Signer
	for i := range 3 {
		signer, err := seal.NewSigner(append(make([]byte, 31), byte(i)))
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, signer)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var verifier seal.Verifier
	for i := range 3000 {
		signer := signers[random.IntN(3)]
		record := fmt.Appendf(nil, `{"n":%d}`, i)
		envelope, err := signer.SignCanonical(testType, record)
		if err != nil {
			t.Fatal(err)
		}
		signature, key := envelope.Integrity.Signature, signer.Public()
		switch random.IntN(12) {
		case 0:
			octets, _ := base64.StdEncoding.DecodeString(signature)
			octets[random.IntN(64)] ^= 1 << random.IntN(8)
			signature = base64.StdEncoding.EncodeToString(octets)
		case 1:
			record = fmt.Appendf(nil, `{"n":%d}`, i+1)
		case 2:
			key = signers[2].Public()
		case 3:
			signature = signature[:80]
		case 4:
			signature += "="
		}
		if got, want := verifier.Signed(key, testType, record, signature), seal.Signed(key, testType, record, signature); got != want {
			t.Fatalf("signature %d: %t, alone %t", i, got, want)
		}
	}
}

// crafted is a signature that the holder of a key makes on purpose, to make verifiers disagree.
type crafted struct {
	name           string
	key, signature []byte
}

// craft makes signatures over a text with every point of small order added to R, to the key or to
// both, and with numbers and points in a non-canonical encoding.
func craft(t *testing.T, text []byte) []crafted {
	t.Helper()
	seed := sha512.Sum512([]byte("the holder of the key"))
	a, err := edwards25519.NewScalar().SetBytesWithClamping(seed[:32])
	if err != nil {
		t.Fatal(err)
	}
	r, err := edwards25519.NewScalar().SetUniformBytes(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	sign := func(name string, key, R []byte, r *edwards25519.Scalar) crafted {
		h := sha512.Sum512(slices.Concat(R, key, text))
		k, err := edwards25519.NewScalar().SetUniformBytes(h[:])
		if err != nil {
			t.Fatal(err)
		}
		return crafted{name, key, slices.Concat(R, edwards25519.NewScalar().MultiplyAdd(k, a, r).Bytes())}
	}
	A, R := new(edwards25519.Point).ScalarBaseMult(a), new(edwards25519.Point).ScalarBaseMult(r)
	var list []crafted
	for i, small := range smallOrder(t) {
		with := func(p *edwards25519.Point) []byte { return new(edwards25519.Point).Add(p, small).Bytes() }
		list = append(list,
			sign(fmt.Sprint("R with small ", i), A.Bytes(), with(R), r),
			sign(fmt.Sprint("key with small ", i), with(A), R.Bytes(), r),
			sign(fmt.Sprint("both with small ", i), with(A), with(R), r),
			sign(fmt.Sprint("R small ", i), A.Bytes(), small.Bytes(), edwards25519.NewScalar()))
	}
	identity := append([]byte{0xee}, bytes.Repeat([]byte{0xff}, 31)...) // y = p+1, a non-canonical encoding of 1
	identity[31] = 0x7f
	negative := append([]byte{1}, make([]byte, 31)...) // x = 0 with the sign bit set
	negative[31] = 0x80
	list = append(list, sign("R above p", A.Bytes(), identity, edwards25519.NewScalar()), sign("R negative zero", A.Bytes(), negative, edwards25519.NewScalar()))
	above := sign("s above the order", A.Bytes(), R.Bytes(), r)
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i := range order {
		carry += int(above.signature[32+i]) + int(order[i])
		above.signature[32+i], carry = byte(carry), carry>>8
	}
	return append(list, above)
}

// smallOrder returns the eight points of small order: the multiples of a point of order 8.
func smallOrder(t *testing.T) []*edwards25519.Point {
	octets := []byte{0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
		0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a}
	eighth, err := new(edwards25519.Point).SetBytes(octets)
	if err != nil {
		t.Fatal(err)
	}
	list := []*edwards25519.Point{edwards25519.NewIdentityPoint()}
	for len(list) < 8 {
		list = append(list, new(edwards25519.Point).Add(list[len(list)-1], eighth))
	}
	return list
}

// All verifiers agree on every crafted signature: the audit of a database, crypto/ed25519, the
// verify.py of a bundle and the Python client. The last two contain their own code for the curve,
// so that each can be used alone.
func TestNoSignatureIsRightForOneVerifierAlone(t *testing.T) {
	record := []byte(`{}`)
	text := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(testType), testType, len(record), record)
	list := craft(t, text)
	byVerify := python(t, "../bundle", "from verify import ed25519 as verify", text, list)
	byClient := python(t, "../../api/clients/python", "from countersign._ed25519 import verify", text, list)
	right := 0
	for i, c := range list {
		alone := ed25519.Verify(c.key, text, c.signature)
		if alone {
			right++
		}
		var verifier seal.Verifier
		for range 66 { // enough signatures for the verifier to compute the multiples of the key
			if got := verifier.Signed(c.key, testType, record, base64.StdEncoding.EncodeToString(c.signature)); got != alone {
				t.Fatalf("%s: %t, crypto/ed25519 says %t", c.name, got, alone)
			}
		}
		if byVerify != nil && byVerify[i] != alone {
			t.Errorf("%s: verify.py says %t, crypto/ed25519 %t", c.name, byVerify[i], alone)
		}
		if byClient != nil && byClient[i] != alone {
			t.Errorf("%s: the Python client says %t, crypto/ed25519 %t", c.name, byClient[i], alone)
		}
	}
	if right == 0 || right == len(list) {
		t.Errorf("%d of %d are right: they show nothing", right, len(list))
	}
}

// python calls a Python function that is imported from a folder. It returns nil if Python is
// missing.
func python(t *testing.T, folder, imported string, text []byte, list []crafted) (answers []bool) {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Log("no python3: it is not asked")
		return nil
	}
	ask := [][3]string{}
	for _, c := range list {
		ask = append(ask, [3]string{fmt.Sprintf("%x", c.key), fmt.Sprintf("%x", text), fmt.Sprintf("%x", c.signature)})
	}
	input, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "-c", `import json, sys
sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True
`+imported+`
print(json.dumps([verify(*map(bytes.fromhex, one)) for one in json.load(sys.stdin)]))`, folder)
	command.Stdin = bytes.NewReader(input)
	output, err := command.Output()
	if err == nil {
		err = json.Unmarshal(output, &answers)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func BenchmarkSigned(b *testing.B) {
	signer, _ := seal.NewSigner(make([]byte, 32))
	record := fmt.Appendf(nil, `{"pad":"%01500d"}`, 1)
	envelope, err := signer.SignCanonical("t", record)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			seal.Signed(signer.Public(), "t", record, envelope.Integrity.Signature)
		}
	})
	b.Run("of a key that signed much", func(b *testing.B) {
		var verifier seal.Verifier
		for b.Loop() {
			verifier.Signed(signer.Public(), "t", record, envelope.Integrity.Signature)
		}
	})
}
