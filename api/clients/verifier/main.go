//go:build wasip1

// Command verifier is the WebAssembly module of the page /verify: the gate's engine and the
// assurance policy, which compute recorded verdicts again. It is a reactor like
// api/clients/engine: the host calls take(length), writes a JSON text to the address that it
// returns, and calls one of the functions, which returns where the answer is.
package main

import (
	"unsafe"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/clients/recompute"
	"github.com/countersign/countersign/policy/actionrisk"
)

var (
	given  []byte
	answer []byte // kept until the next call, while the host reads it
)

// refused is the bit of a result that says that the answer is the text of an error.
const refused = 1 << 31

//go:wasmexport take
func take(length int32) uint32 {
	given = make([]byte, length+1) // never empty, so that it has an address
	given = given[:length]
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(given))))
}

// judge answers a request of the quick gate.
//
//go:wasmexport judge
func judge() uint64 {
	verdict, err := actionrisk.Quick.Evaluate(given)
	return say(verdict.Body, err)
}

// verdicts computes the verdicts in documents again. It is given an array of their texts, and
// answers with an array of recompute.Result.
//
//go:wasmexport verdicts
func verdicts() uint64 {
	var texts []string
	if err := json.Unmarshal(given, &texts); err != nil {
		return say(nil, err)
	}
	documents := make([][]byte, len(texts))
	for i, text := range texts {
		documents[i] = []byte(text)
	}
	results, err := recompute.Verdicts(documents...)
	if err != nil {
		return say(nil, err)
	}
	return say(json.Marshal(results))
}

func say(text []byte, err error) uint64 {
	flag := uint64(0)
	if answer = text; err != nil {
		answer, flag = []byte(err.Error()), refused
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(answer))))<<32 | uint64(len(answer)) | flag
}

func main() {}
