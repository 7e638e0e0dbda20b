// Command evidence checks the forms of countersign's evidence with libraries that others wrote. It
// reads files and imports nothing of the project.
//
//	go run . VIEWS KEYS EVENTS     the folder of countersign views, the key set, events.jsonl
//	go run . authority FOLDER      serve a time-stamp authority
package main

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/fxamacker/cbor/v2"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/transparency-dev/formats/proof"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/veraison/go-cose"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("evidence: ")
	if os.Args[1] == "authority" {
		serveAuthority(os.Args[2])
	}
	views, keys, events := os.Args[1], readKeys(os.Args[2]), readEvents(os.Args[3])
	for _, check := range []struct {
		name string
		run  func() (int, error)
	}{
		{"CloudEvents by the CloudEvents SDK", func() (int, error) { return checkCloudEvents(filepath.Join(views, "cloudevents.jsonl")) }},
		{"DSSE by go-securesystemslib", func() (int, error) { return checkDSSE(filepath.Join(views, "dsse.jsonl"), keys) }},
		{"tlog-proof by transparency-dev", func() (int, error) { return checkTLogProofs(views, events) }},
		{"COSE receipts by go-cose", func() (int, error) { return checkReceipts(views, keys, events) }},
	} {
		n, err := check.run()
		if err == nil && n == 0 {
			err = errors.New("there is nothing to check")
		}
		if err != nil {
			log.Fatalf("%s: %v", check.name, err)
		}
		fmt.Printf("evidence: %s: %d accepted\n", check.name, n)
	}
}

type key struct {
	id, purpose string
	public      ed25519.PublicKey
}

func readKeys(name string) (keys []key) {
	var set struct {
		Keys []struct {
			KID, X  string
			Purpose string `json:"svc_purpose"`
		}
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range set.Keys {
		public, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil {
			log.Fatal(err)
		}
		keys = append(keys, key{k.KID, k.Purpose, public})
	}
	return keys
}

type event struct {
	Pos  uint64 `json:"pos"`
	Hash string `json:"hash"`
}

func readEvents(name string) map[uint64]event {
	found := map[uint64]event{}
	if err := lines(name, func(line []byte) error {
		var e event
		err := json.Unmarshal(line, &e)
		found[e.Pos] = e
		return err
	}); err != nil {
		log.Fatal(err)
	}
	return found
}

func lines(name string, each func([]byte) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		if err := each(scanner.Bytes()); err != nil {
			return fmt.Errorf("%w in %.300s", err, scanner.Text())
		}
	}
	return scanner.Err()
}

func checkCloudEvents(name string) (n int, _ error) {
	return n, lines(name, func(line []byte) error {
		var e cloudevents.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if err := e.Validate(); err != nil {
			return err
		}
		var data struct{ EventID string }
		if err := e.DataAs(&data); err != nil || data.EventID != e.ID() {
			return fmt.Errorf("the data are of %s: %w", data.EventID, err)
		}
		n++
		return nil
	})
}

// recordKey is a key that verifies the Ed25519 signatures of DSSE envelopes.
type recordKey key

// KeyID returns the id of the key.
func (k recordKey) KeyID() (string, error) { return k.id, nil }

// Public returns the public key.
func (k recordKey) Public() crypto.PublicKey { return k.public }

// Verify returns an error if sig is not the signature of data under this key.
func (k recordKey) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(k.public, data, sig) {
		return errors.New("the signature is false")
	}
	return nil
}

func checkDSSE(name string, keys []key) (n int, _ error) {
	var verifiers []dsse.Verifier
	for _, k := range keys {
		if k.purpose != "checkpoint" {
			verifiers = append(verifiers, recordKey(k))
		}
	}
	verifier, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return 0, err
	}
	return n, lines(name, func(line []byte) error {
		var e dsse.Envelope
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		accepted, err := verifier.Verify(context.Background(), &e)
		if err != nil || len(accepted) != 1 {
			return fmt.Errorf("%d keys accept it: %w", len(accepted), err)
		}
		e.PayloadType += "x"
		if _, err := verifier.Verify(context.Background(), &e); err == nil {
			return errors.New("it is accepted with another payload type")
		}
		n++
		return nil
	})
}

// logs reads the keys of a tlog-policy.
func logs(name string) (list []note.Verifier, _ error) {
	return list, lines(name, func(line []byte) error {
		key, is := strings.CutPrefix(string(line), "log ")
		if !is {
			return nil
		}
		v, err := note.NewVerifier(key)
		list = append(list, v)
		return err
	})
}

func checkTLogProofs(views string, events map[uint64]event) (n int, _ error) {
	known, err := logs(filepath.Join(views, "tlog-policy.txt"))
	if err != nil {
		return 0, err
	}
	names, err := filepath.Glob(filepath.Join(views, "*.tlog-proof"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return n, err
		}
		var p proof.TLogProof
		if err := p.Unmarshal(text); err != nil {
			return n, err
		}
		head, err := note.Open(p.Checkpoint, note.VerifierList(known...))
		if err != nil {
			return n, err
		}
		var origin string
		var size uint64
		var root64 string
		if _, err := fmt.Sscanf(head.Text, "%s\n%d\n%s\n", &origin, &size, &root64); err != nil {
			return n, err
		}
		root, err := base64.StdEncoding.DecodeString(root64)
		if err != nil {
			return n, err
		}
		var path [][]byte
		for _, h := range p.Hashes {
			path = append(path, h[:])
		}
		hash, err := hex.DecodeString(events[p.Index+1].Hash)
		if err != nil {
			return n, err
		}
		if err := merkle.VerifyInclusion(rfc6962.DefaultHasher, p.Index, size, rfc6962.DefaultHasher.HashLeaf(hash), path, root); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}

func checkReceipts(views string, keys []key, events map[uint64]event) (n int, _ error) {
	names, err := filepath.Glob(filepath.Join(views, "*.cose"))
	for _, name := range names {
		if err := checkReceipt(name, keys, events); err != nil {
			return n, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		n++
	}
	return n, err
}

func checkReceipt(name string, keys []key, events map[uint64]event) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var message cose.Sign1Message
	if err := message.UnmarshalCBOR(text); err != nil {
		return err
	}
	if vds, _ := message.Headers.Protected[int64(395)].(int64); vds != 1 {
		return fmt.Errorf("the data structure is %v", message.Headers.Protected[int64(395)])
	}
	proofs, _ := message.Headers.Unprotected[int64(396)].(map[any]any)
	inclusion, _ := proofs[int64(-1)].([]any)
	if len(inclusion) != 1 {
		return fmt.Errorf("the proofs are %v", message.Headers.Unprotected)
	}
	encoded, _ := inclusion[0].([]byte)
	size, index, path, err := readInclusion(encoded)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(events[index+1].Hash)
	if err != nil {
		return err
	}
	root, err := merkle.RootFromInclusionProof(rfc6962.DefaultHasher, index, size, rfc6962.DefaultHasher.HashLeaf(hash), path)
	if err != nil {
		return err
	}
	message.Payload = root
	for _, k := range keys {
		id := sha256.Sum256(k.public)
		if kid, _ := message.Headers.Protected[int64(4)].([]byte); k.purpose != "checkpoint" || string(kid) != string(id[:8]) {
			continue
		}
		verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, k.public)
		if err != nil {
			return err
		}
		return message.Verify(nil, verifier)
	}
	return errors.New("the key set does not have the key")
}

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
