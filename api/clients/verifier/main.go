//go:build wasip1

// Command verifier is the WebAssembly module of the page /verify. It contains the gate's engine
// and the assurance policy, which compute recorded verdicts again, and the verifier of exports. It
// is a WASI reactor like api/clients/engine: the host calls take(length), writes a JSON text to
// the returned address, and calls one of the functions, which returns the address of the answer.
package main

import (
	"bytes"
	"context"
	"unsafe"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/clients/recompute"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/actionrisk"
)

var (
	given  []byte
	answer []byte // kept until the next call, because the host reads it
)

// refused is the bit of a result that marks the answer as the text of an error.
const refused = 1 << 31

//go:wasmexport take
func take(length int32) uint32 {
	given = make([]byte, length+1) // one byte longer, so that it always has an address
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

// verdicts computes the verdicts in documents again. The argument is an array of their texts, and
// the answer an array of recompute.Result.
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

// exported verifies an export. The argument is a line of JSON with the keys and the pin, followed
// by the archive. The answer is a verification.
//
//go:wasmexport exported
func exported() uint64 {
	line, archive, _ := bytes.Cut(given, []byte("\n"))
	var trust struct {
		Keys string `json:"keys"` // a JSON Web Key Set
		Pin  string `json:"pin"`  // a checkpoint that the user kept; empty means none
	}
	if err := json.Unmarshal(line, &trust); err != nil {
		return say(nil, err)
	}
	keys, err := bundle.ReadKeySet([]byte(trust.Keys))
	if err != nil {
		return say(nil, err)
	}
	opened, err := bundle.UnpackInMemory(context.Background(), bytes.NewReader(archive), nil)
	if err != nil {
		return say(nil, err)
	}
	defer opened.Close()
	with := bundle.Trust{Keys: keys}
	if trust.Pin != "" {
		with.Pin = []byte(trust.Pin)
	}
	result, err := bundle.Verify(context.Background(), opened, with, nil)
	if err != nil {
		return say(nil, err)
	}
	return say(json.Marshal(verification{result, bundle.Unprovable}))
}

// verification is the result, with a list of what no verification can prove.
type verification struct {
	bundle.Result
	Unprovable []string `json:"unprovable"`
}

func say(text []byte, err error) uint64 {
	flag := uint64(0)
	if answer = text; err != nil {
		answer, flag = []byte(err.Error()), refused
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(answer))))<<32 | uint64(len(answer)) | flag
}

func main() {}
