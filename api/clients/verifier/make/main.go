// Command make compiles the verifier of the page /verify to WebAssembly and compresses it. A
// program that is built afterwards includes the module:
//
//	go run ./api/clients/verifier/make [FILE]       default: api/web/assets/verify.wasm.gz
//
// The same commit and Go version give the same bytes on every machine.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

func main() {
	file := "api/web/assets/verify.wasm.gz"
	if len(os.Args) > 1 {
		file = os.Args[1]
	}
	if err := run(file); err != nil {
		fmt.Fprintln(os.Stderr, "make the verifier:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	folder, err := os.MkdirTemp("", "countersign-verifier-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	compiled := filepath.Join(folder, "verify.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w -buildid=", "-o", compiled,
		"github.com/countersign/countersign/api/clients/verifier")
	build.Env = slices.Concat(os.Environ(), []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"})
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	module, err := os.ReadFile(compiled)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := to.Write(module); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	fmt.Printf("the verifier has %d bytes, %d compressed\n", len(module), packed.Len())
	return os.WriteFile(file, packed.Bytes(), 0o644)
}
