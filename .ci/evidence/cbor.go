package main

import "github.com/fxamacker/cbor/v2"

// readInclusion reads an inclusion proof of RFC 9942: [size, index, path].
func readInclusion(text []byte) (size, index uint64, path [][]byte, err error) {
	var p struct {
		_     struct{} `cbor:",toarray"`
		Size  uint64
		Index uint64
		Path  [][]byte
	}
	err = cbor.Unmarshal(text, &p)
	return p.Size, p.Index, p.Path, err
}
