package setting

import (
	"crypto/ed25519"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"

	"github.com/countersign/countersign/ledger/seal"
)

// A key in an SSH agent can sign records. This program never has its seed.
func TestARecordIsSignedByAnAgent(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	keyring := sshagent.NewKeyring()
	if err := keyring.Add(sshagent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = sshagent.ServeAgent(keyring, conn); _ = conn.Close() }()
		}
	}()
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	signer, err := ParseSigner(string(ssh.MarshalAuthorizedKey(public)))
	if err != nil || signer.KeyID() != seal.KeyID(key.Public().(ed25519.PublicKey)) {
		t.Fatal(err)
	}
	envelope, err := signer.Sign(seal.TypeReceipt, map[string]string{"a": "x"})
	if err != nil || !seal.Signed(signer.Public(), seal.TypeReceipt, envelope.Record, envelope.Integrity.Signature) {
		t.Errorf("%+v, %v", envelope, err)
	}
	_ = listener.Close()
	if _, err := signer.Sign(seal.TypeReceipt, map[string]string{"a": "x"}); err == nil {
		t.Error("signed without the agent")
	}
}
