// Package setting has the settings of our programs, and reads secrets and keys. A setting comes
// from a flag or an environment variable. A secret may also come from a file that only its owner
// can read.
package setting

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// SecretsFromFiles reads the value of a flag with the tag "secret" from a file, if the environment
// variable NAME_FILE names one. It refuses a file that users other than its owner can read.
var SecretsFromFiles = kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !flag.Tag.Has("secret") || len(flag.Envs) == 0 {
		return nil, nil
	}
	name := flag.Envs[0] + "_FILE"
	path := os.Getenv(name)
	if path == "" {
		return nil, nil
	}
	if os.Getenv(flag.Envs[0]) != "" {
		return nil, fmt.Errorf("%s and %s are both set: unset one", flag.Envs[0], name)
	}
	text, err := ReadOwnSecret(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}))

// ReadOwnSecret reads a secret from a file that a setting names. It refuses a file that others can
// read, or that belongs to another user, who could change it.
func ReadOwnSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", files.WithoutPath(err)
	}
	if !ownedByUs(info) {
		return "", fmt.Errorf("the file belongs to another user, who can change it: run this as that user, or chown %s", path)
	}
	return ReadSecret(path)
}

// ReadSecret reads a secret from a file in the data folder. The file may belong to another user,
// but ReadSecret refuses it if others can read it.
func ReadSecret(path string) (string, error) {
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

// KeepSecret writes a secret to a new file that only its owner can read, and returns the secret.
// If the file exists, it returns the secret in the file. So if two programs start at the same
// time, one creates the secret and the other reads it.
func KeepSecret(path, text string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return ReadSecret(path)
	}
	if err != nil {
		return "", fmt.Errorf("keep the development key %s: %w", filepath.Base(path), err)
	}
	_, err = f.WriteString(text + "\n")
	return text, errors.Join(err, f.Sync(), f.Close())
}

// NewSecret returns 32 random bytes in hex, for an Ed25519 seed or a key that encrypts other keys.
func NewSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return hex.EncodeToString(secret)
}
