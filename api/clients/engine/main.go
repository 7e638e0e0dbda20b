//go:build wasip1

// Command engine is the gate's engine as a WebAssembly module, for programs that evaluate actions
// in their own process. It is a WASI reactor. The host calls take(length), writes a request to the
// returned address, and calls judge, which returns the address of the answer.
package main

import (
	"unsafe"

	"github.com/countersign/countersign/policy/actionrisk"
)

var (
	request []byte
	answer  []byte // kept until the next call of judge, because the host reads it
)

// refused is the bit of judge's result that marks the answer as the text of a refusal.
const refused = 1 << 31

//go:wasmexport take
func take(length int32) uint32 {
	request = make([]byte, length+1) // one byte longer, so that it always has an address
	request = request[:length]
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(request))))
}

//go:wasmexport judge
func judge() uint64 {
	verdict, err := actionrisk.Quick.Evaluate(request)
	answer = verdict.Body
	flag := uint64(0)
	if err != nil {
		answer, flag = []byte(err.Error()), refused
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(answer))))<<32 | uint64(len(answer)) | flag
}

func main() {}
