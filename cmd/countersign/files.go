package main

import (
	"io"
	"os"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// maxInput is longer than any document of the service.
const maxInput = 8 << 20

// openInput opens what the user names, - for standard input.
func openInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

// readInput reads it, and refuses what is too long.
func readInput(name string) ([]byte, error) {
	in, err := openInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return files.ReadAtMost(in, maxInput)
}
