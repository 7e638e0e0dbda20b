package proof

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
)

// Pin stores the newest checkpoint of a ledger that the user has seen, and refuses one that does
// not extend it. A user who runs it from time to time is a witness of the ledger.
type Pin struct {
	Source string `arg:"" help:"A service (https://…), an export (folder or .tar.gz) or a file with a checkpoint; - for standard input."`
	Keys   string `help:"File with the keys that you trust, saved from /.well-known/jwks.json. Default: the keys that the service published at your first pin." placeholder:"FILE"`
	Pin    string `help:"File that stores the checkpoint. Default: one file for each ledger in your configuration folder." placeholder:"FILE"`
}

// pinnedHead is the result of pin.
type pinnedHead struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	Before int64  `json:"before"` // size of the checkpoint stored before; 0 if there was none
	Pin    string `json:"pin"`    // path of the pin file
}

const pinTimeout = 10 * time.Second

// Run compares the source's checkpoint with the pin and stores it. The exit code is 1 for ROLLBACK
// and FORK.
func (c *Pin) Run(ctx context.Context, o *screen.Output) error {
	text, proofs, err := c.read(ctx, o)
	if err != nil {
		return err
	}
	// Without --pin, each ledger has a file in the user's configuration folder.
	origin, _, _ := strings.Cut(string(text), "\n")
	if c.Pin == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return errors.New("there is no configuration folder: name a file with --pin")
		}
		c.Pin = filepath.Join(folder, "countersign", "pins", url.PathEscape(origin)+".note")
		if err := os.MkdirAll(filepath.Dir(c.Pin), 0o700); err != nil {
			return err
		}
	}
	// A trusted key must have signed the checkpoint.
	keys, first, err := c.trusted(ctx)
	if err != nil {
		return err
	}
	claimed, _ := checkpoint.Parse(text) // no error here: Open reports it
	head, err := checkpoint.Open(text, origin, keys.at(checkpoint.Partition(text), claimed.Size)...)
	if err != nil {
		return fmt.Errorf("the checkpoint: %w; if the ledger has a new checkpoint key, give its keys with --keys", err)
	}
	found := pinnedHead{Origin: origin, Size: head.Size, Root: hex.EncodeToString(head.Root[:]), Pin: c.Pin}
	// The checkpoint must extend the one in the pin file, if there is one.
	kept, err := os.ReadFile(c.Pin)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	said := fmt.Sprintf("PINNED      %s at %d events, in %s\n", origin, head.Size, c.Pin)
	if kept != nil {
		pin, err := checkpoint.ParsePin(kept)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Pin, err)
		}
		before, err := checkpoint.Open(pin.Note, origin, keys.all()...) // accept retired and compromised keys, too: the note was checked when it was stored
		if err != nil {
			return fmt.Errorf("%s: %w; if it is of another ledger, name another file", c.Pin, err)
		}
		found.Before = before.Size
		if no, err := refuses(before, head, proofs); err != nil || no != "" {
			return errors.Join(err, refusePin(o, found, no))
		}
		said = fmt.Sprintf("PINNED      %s at %d events, which continue the %d you had seen, in %s\n", origin, head.Size, before.Size, c.Pin)
	}
	if first {
		said += "TRUSTED     the keys, which the service gave when you first asked it: give keys from another source with --keys\n"
	}
	if err := replacePin(c.Pin, text); err != nil {
		return err
	}
	return o.Result(found, o.Wrapped("%s", said))
}

func refusePin(o *screen.Output, found pinnedHead, no string) error {
	if no == "" {
		return nil
	}
	if err := o.Result(map[string]any{"origin": found.Origin, "size": found.Size, "before": found.Before, "refused": no}, o.Wrapped("%s", inWords(no))); err != nil {
		return err
	}
	return screen.ErrNo
}

// refuses returns the reason why a new checkpoint, "head", does not extend the stored one, "before".
// It returns "" if it does.
func refuses(before, head checkpoint.Checkpoint, proofs consistencyProofs) (string, error) {
	switch {
	case before.Size > head.Size:
		return "pin: ROLLBACK", nil
	case before.Size == head.Size && before.Root != head.Root:
		return "pin: FORK", nil
	case before.Size == head.Size:
		return "", nil
	}
	hashes, err := proofs(before.Size, head.Size)
	if err != nil {
		return "", err
	}
	if tree.CheckConsistency(hashes, head.Size, head.Root, before.Size, before.Root) != nil {
		return "pin: FORK", nil
	}
	return "", nil
}

// consistencyProofs returns the proof that the larger of two trees extends the smaller one.
// The parameters are the sizes of the two trees.
type consistencyProofs func(from, to int64) ([]tree.Hash, error)

// read returns the checkpoint of a service, an export or a file, and a function that gets
// consistency proofs from the same source.
func (c *Pin) read(ctx context.Context, o *screen.Output) (text []byte, proofs consistencyProofs, err error) {
	if strings.HasPrefix(c.Source, "https://") || strings.HasPrefix(c.Source, "http://") {
		base := strings.TrimSuffix(c.Source, "/")
		text, err = fetch(ctx, base+"/api/ledger/checkpoint")
		return text, func(from, to int64) ([]tree.Hash, error) {
			answer, err := fetch(ctx, fmt.Sprintf("%s/api/ledger/consistency?from=%d&to=%d", base, from, to))
			if err != nil {
				return nil, err
			}
			return readHashes(answer)
		}, err
	}
	export, text, err := openNamed(ctx, o, c.Source)
	if err != nil {
		return nil, nil, err
	}
	if export == nil {
		if pin, err := checkpoint.ParsePin(text); err == nil {
			text = pin.Note // the file may be a pin, whose tenants are not used
		}
		return text, func(from, to int64) ([]tree.Hash, error) {
			return nil, fmt.Errorf("a checkpoint alone cannot show that its %d events continue the %d you have seen: ask the service itself (countersign pin https://…)", to, from)
		}, nil
	}
	defer export.Close()
	text, err = export.Text("checkpoint.txt")
	proven, err2 := export.Text(bundle.ConsistencyFile)
	if err := errors.Join(err, err2); err != nil {
		return nil, nil, err
	}
	if text == nil {
		return nil, nil, errors.New("no checkpoint covers the events of this export")
	}
	return text, func(from, to int64) ([]tree.Hash, error) {
		if line := consistencyLine(proven, from); line != nil {
			return readHashes(line)
		}
		return nil, fmt.Errorf("this export has no proof that its %d events continue the %d you have seen: ask the service itself (countersign pin https://…)", to, from)
	}, nil
}

// consistencyLine returns the line of an export's ConsistencyFile with the proof from a size, or
// nil.
func consistencyLine(text []byte, from int64) []byte {
	for line := range bytes.Lines(text) {
		var p bundle.Proof
		if json.Unmarshal(line, &p) == nil && p.From == from {
			return line
		}
	}
	return nil
}

// readHashes parses the hexadecimal hashes of a proof.
func readHashes(text []byte) ([]tree.Hash, error) {
	var p struct {
		Hashes []string `json:"hashes"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, errors.New("the answer does not contain a proof")
	}
	var hashes []tree.Hash
	for _, h := range p.Hashes {
		octets, err := hex.DecodeString(h)
		if err != nil || len(octets) != len(tree.Hash{}) {
			return nil, errors.New("the answer does not contain a proof")
		}
		hashes = append(hashes, tree.Hash(octets))
	}
	return hashes, nil
}

// trusted returns the checkpoint keys that the user trusts: those in the file of --keys, else
// those that an earlier run has stored next to the pin, else those that the service returns now.
// It stores new keys next to the pin. first is true if the service was asked.
func (c *Pin) trusted(ctx context.Context) (keys headKeys, first bool, err error) {
	kept := c.Pin + ".keys.json"
	name := c.Keys
	if name == "" {
		name = kept
	}
	text, err := os.ReadFile(name)
	if c.Keys == "" && errors.Is(err, fs.ErrNotExist) {
		if !strings.HasPrefix(c.Source, "http") {
			return nil, false, errors.New("give the ledger's keys with --keys: a file cannot prove that it is genuine")
		}
		first = true
		text, err = fetch(ctx, strings.TrimSuffix(c.Source, "/")+"/.well-known/jwks.json")
	}
	if err != nil {
		return nil, false, err
	}
	set, err := bundle.ReadKeySet(text)
	if err != nil {
		return nil, false, err
	}
	if c.Keys != "" || first {
		err = files.Replace(kept, text)
	}
	return headKeysOf(set), first, err
}

// headKeys are keys that may sign checkpoints.
type headKeys []bundle.Key

// headKeysOf returns the keys of a set that may sign checkpoints.
func headKeysOf(set []bundle.Key) (keys headKeys) {
	for _, key := range set {
		if key.Purpose == ledger.PurposeCheckpoint {
			keys = append(keys, key)
		}
	}
	return keys
}

// at returns the keys whose signature of a tree of this size is valid in a partition.
func (k headKeys) at(partition int, size int64) (public []ed25519.PublicKey) {
	for _, key := range k {
		if (key.Partition == partition || key.Partition == bundle.AnyPartition) && !key.CompromisedAt(size) && !key.RetiredBy(size) {
			public = append(public, key.Public)
		}
	}
	return public
}

// all returns all keys, including retired and compromised ones.
func (k headKeys) all() (public []ed25519.PublicKey) {
	for _, key := range k {
		public = append(public, key.Public)
	}
	return public
}

// fetch returns the body of a service's answer, and an error if it is too large or the status is
// not 200.
func fetch(ctx context.Context, address string) ([]byte, error) {
	const most = 4 << 20
	ctx, cancel := context.WithTimeout(ctx, pinTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is not a URL")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	defer answer.Body.Close()
	text, err := files.ReadAtMost(answer.Body, most)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s: %s", r.URL.Path, answer.Status, strings.TrimSpace(string(text[:min(len(text), 200)])))
	}
	return text, err
}
