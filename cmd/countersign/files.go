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
)

// readInput reads what the user names, - for standard input.
func readInput(name string) ([]byte, error) {
	const most = 8 << 20
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return text, nil
}

// replaceFile writes a file so that it is whole whatever happens.
func replaceFile(place string, text []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(place); err == nil {
		mode = info.Mode().Perm()
	}
	scratch := place + ".new"
	if err := os.WriteFile(scratch, text, mode); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	if err := os.Rename(scratch, place); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	return nil
}

// readOwnSecret reads a file that a setting names, which nobody else may read or
// change. The files of a data folder belong to whoever owns that.
func readOwnSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", withoutPath(err)
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
		return "", withoutPath(err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the file is open to others: chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", withoutPath(err)
	}
	return strings.TrimSpace(string(text)), nil
}

func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
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
