package setting

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"

	"github.com/countersign/countersign/ledger/seal"
)

// ParseSigner parses a signing key: an Ed25519 seed, or a line "ssh-ed25519 AAAA…". The latter
// is the public key of a key in the SSH agent at SSH_AUTH_SOCK. The agent never reveals the
// private key; it may be in hardware, or in a key management service behind a bridge.
func ParseSigner(text string) (*seal.Signer, error) {
	if strings.HasPrefix(text, ssh.KeyAlgoED25519+" ") {
		return agentSigner(text)
	}
	seed, err := ParseSeed(text)
	if err != nil {
		return nil, err
	}
	return seal.NewSigner(seed)
}

// agentKey is a key in an SSH agent. It opens a connection for each signature, so that it still
// works after the agent was restarted.
type agentKey struct {
	socket string
	public ssh.PublicKey
	raw    ed25519.PublicKey
}

func agentSigner(line string) (*seal.Signer, error) {
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, errors.New("the value must be a public key as ssh-add -L prints it")
	}
	holder, ok := public.(ssh.CryptoPublicKey)
	if !ok {
		return nil, errors.New("the value must be an ssh-ed25519 key")
	}
	raw, ok := holder.CryptoPublicKey().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the value must be an ssh-ed25519 key")
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, errors.New("the key is in an SSH agent, but SSH_AUTH_SOCK is not set")
	}
	return seal.Using(agentKey{socket, public, raw})
}

// Public implements crypto.Signer.
func (k agentKey) Public() crypto.PublicKey { return k.raw }

// Sign implements crypto.Signer: it signs the message itself, not a digest.
func (k agentKey) Sign(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	conn, err := net.Dial("unix", k.socket)
	if err != nil {
		return nil, fmt.Errorf("the SSH agent does not answer: %w", err)
	}
	defer conn.Close()
	signature, err := sshagent.NewClient(conn).Sign(k.public, message)
	if err != nil {
		return nil, fmt.Errorf("the SSH agent does not sign: %w", err)
	}
	if signature.Format != ssh.KeyAlgoED25519 || !ed25519.Verify(k.raw, message, signature.Blob) {
		return nil, errors.New("the SSH agent returned no Ed25519 signature")
	}
	return bytes.Clone(signature.Blob), nil
}
