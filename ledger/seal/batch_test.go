package seal_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/seal"
)

// A batch says of every signature what checking it alone says, whichever octet is
// changed, however many there are and of however many keys.
func TestABatchIsEachSignatureAlone(t *testing.T) {
	var signers []*seal.Signer
	for i := range 3 {
		signer, err := seal.NewSigner(append(make([]byte, 31), byte(i)))
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, signer)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var batch seal.Batch
		var got, want []int
		for i := range random.IntN(300) {
			signer := signers[random.IntN(1+round%3)]
			record := fmt.Appendf(nil, `{"n":%d}`, i)
			envelope, err := signer.SignCanonical("application/vnd.svc.test.v1+json", record)
			if err != nil {
				t.Fatal(err)
			}
			signature, key := envelope.Integrity.Signature, signer.Public()
			switch random.IntN(40) {
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
			if !seal.Signed(key, "application/vnd.svc.test.v1+json", record, signature) {
				want = append(want, i)
			}
			batch.Add(key, "application/vnd.svc.test.v1+json", record, signature, func() { got = append(got, i) })
		}
		batch.Flush()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: wrong are %v, alone %v", round, got, want)
		}
	}
}

func BenchmarkSignatures(b *testing.B) {
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
	b.Run("batch", func(b *testing.B) {
		var batch seal.Batch
		for b.Loop() {
			batch.Add(signer.Public(), "t", record, envelope.Integrity.Signature, func() { b.Error("wrong") })
		}
		batch.Flush()
	})
}
