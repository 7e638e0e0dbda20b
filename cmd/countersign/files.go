package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// readOwnSecret reads a file that a setting names, which nobody else may read or
// change. The files of a data folder belong to whoever owns that.
func readOwnSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", files.WithoutPath(err)
	}
	if !ownedByUs(info) {
		return "", fmt.Errorf("the file belongs to another user, who can change it: run this as that user, or chown %s", path)
	}
	return readSecret(path)
}

// readSecret reads a file that nobody else may read.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", files.WithoutPath(err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the file is open to others: chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", files.WithoutPath(err)
	}
	return strings.TrimSpace(string(text)), nil
}

// keepSecret writes a secret that nobody else may read, and returns it, or the one
// that is there already: of two starts at once one writes and the other reads.
func keepSecret(path, text string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readSecret(path)
	}
	if err != nil {
		return "", fmt.Errorf("keep the development key %s: %w", filepath.Base(path), err)
	}
	_, err = f.WriteString(text + "\n")
	return text, errors.Join(err, f.Sync(), f.Close())
}

// newSecret is 32 random octets in hex: a seed of Ed25519, or a key that wraps others.
func newSecret() string {
	octets := make([]byte, 32)
	rand.Read(octets)
	return hex.EncodeToString(octets)
}
