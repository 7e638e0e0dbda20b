package checkpoint

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/ledger/tree"
)

// Witness is another party's service that signs our checkpoints if each extends the previous one,
// by C2SP tlog-witness: POST <url>/add-checkpoint.
type Witness struct {
	url      string
	verifier note.Verifier
	client   *http.Client
}

const outsideTimeout = 10 * time.Second

// outside returns a client for addresses that the operator has configured. It follows no redirect,
// so it sends requests to no other address.
func outside(within time.Duration) *http.Client {
	return &http.Client{Timeout: within, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ErrInconsistent means that the witness has seen a history that ours does not extend.
var ErrInconsistent = errors.New("the witness has seen another history")

// SizeError means that the witness has seen another size last than the caller assumed. Its value
// is the size that the witness has seen.
type SizeError int64

// Error returns a text with the size.
func (e SizeError) Error() string { return fmt.Sprintf("the witness is at size %d", int64(e)) }

// ParseWitness parses a verifier key (name+hash+base64) and, after a space, the address of a
// witness.
func ParseWitness(text string) (Witness, error) {
	key, url, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok || !strings.HasPrefix(url, "http") {
		return Witness{}, errors.New("a witness must be written as KEY URL, where KEY is name+hash+base64")
	}
	verifier, err := newCosigner(key)
	if err != nil {
		return Witness{}, err
	}
	return Witness{strings.TrimSuffix(strings.TrimSpace(url), "/"), verifier, outside(outsideTimeout)}, nil
}

// cosigner verifies signature lines of C2SP tlog-cosignature: 8 bytes of time, then an Ed25519
// signature over "cosignature/v1\ntime <seconds>\n" and the note's text. Its key has the algorithm
// byte 4.
type cosigner struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
}

const algCosignature = 4

func newCosigner(vkey string) (cosigner, error) {
	bad := errors.New("the witness's key must be a cosigner's key of the form name+hash+base64, as the witness publishes it")
	name, rest, _ := strings.Cut(vkey, "+")
	digits, key64, _ := strings.Cut(rest, "+")
	hash, err1 := strconv.ParseUint(digits, 16, 32)
	key, err2 := base64.StdEncoding.DecodeString(key64)
	if err1 != nil || err2 != nil || name == "" || len(key) != 1+ed25519.PublicKeySize || key[0] != algCosignature {
		return cosigner{}, bad
	}
	if sum := sha256.Sum256(append([]byte(name+"\n"), key...)); binary.BigEndian.Uint32(sum[:4]) != uint32(hash) {
		return cosigner{}, bad
	}
	return cosigner{name, uint32(hash), ed25519.PublicKey(key[1:])}, nil
}

// Name implements note.Verifier.
func (c cosigner) Name() string { return c.name }

// KeyHash implements note.Verifier.
func (c cosigner) KeyHash() uint32 { return c.hash }

// Verify implements note.Verifier.
func (c cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(signature)
	return ed25519.Verify(c.public, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text), signature[8:])
}

// Name returns the name of the witness.
func (w Witness) Name() string { return w.verifier.Name() }

// Signed reports whether a note has the witness's signature line.
func (w Witness) Signed(text []byte) bool {
	_, err := note.Open(text, note.VerifierList(w.verifier))
	return err == nil
}

// Add sends a note to the witness, with a proof that its tree extends the tree of size old, and
// returns the note with the witness's signature line. Callers branch on SizeError and
// ErrInconsistent.
func (w Witness) Add(ctx context.Context, old int64, proof []tree.Hash, text []byte) ([]byte, error) {
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	for _, h := range proof {
		body.WriteString(base64.StdEncoding.EncodeToString(h[:]) + "\n")
	}
	body.WriteString("\n")
	body.Write(text)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/add-checkpoint", &body)
	if err != nil {
		return nil, err
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxNote))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusConflict && answer.Header.Get("Content-Type") == "text/x.tlog.size":
		size, err := strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64)
		if err != nil || size < 0 {
			return nil, errors.New("the witness answered 409 without a size")
		}
		return nil, SizeError(size)
	case answer.StatusCode == http.StatusConflict, answer.StatusCode == http.StatusUnprocessableEntity:
		return nil, ErrInconsistent
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the witness answered %s", answer.Status)
	}
	cosigned := append(bytes.Clone(text), said...)
	if !w.Signed(cosigned) {
		return nil, errors.New("the witness's signature does not match its key")
	}
	return cosigned, nil
}
