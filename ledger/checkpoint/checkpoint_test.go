package checkpoint_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	formats "github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/tree"
)

const origin = "ledger.example.com/countersign/0"

func exampleKey() ed25519.PrivateKey {
	seed := make([]byte, 32)
	for i := range seed {
		seed[i] = byte(i)
	}
	return ed25519.NewKeyFromSeed(seed)
}

// example returns the tree of the two events in the comment of package ledger.
func example(t *testing.T) checkpoint.Checkpoint {
	var b tree.Builder
	for _, text := range []string{
		"fc3623f93e30aab3876faaa6fb2d252b9e59dc74f0e25337243d44b2ee8f991d",
		"ad3dc2483add25f130d6888ca5692a6397179547310af6833e8ebefa46ba6558",
	} {
		hash, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		b.Add(tree.Leaf([32]byte(hash)), nil)
	}
	return checkpoint.Checkpoint{Origin: origin, Size: 2, Root: b.Root()}
}

const exampleNote = origin + "\n2\neU8uOhpgXYnTAyjHs9UKLaaMLBI0cfe4CRQUefdT/ZY=\n\n" +
	"— " + origin + " auY8UM5U1dwt1x6qmpJUzWETxlXsUJQCBYd7rQfkYRXm570hNHYy8MRns4HCvrIQZ9Sk1VBHDAQ5kxIyjPDvKobW6QU=\n" +
	"— " + origin + " vdIOPTfc2gaxbQWagQbpoyNsZ/vXEBWbtYt9wraEHVTVr198yszkL2Lz1gXe8cwt4zSYEKc18gy8nD83GkH68XwU5wM=\n"

// The note is byte for byte the one in the documentation.
func TestTheNoteOfTheExample(t *testing.T) {
	text, err := checkpoint.Sign(example(t), exampleKey())
	if err != nil || string(text) != exampleNote {
		t.Fatalf("%s\n%v", text, err)
	}
	public := exampleKey().Public().(ed25519.PublicKey)
	const vkey = origin + "+6ae63c50+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
	if got := checkpoint.VerifierKey(origin, public); got != vkey {
		t.Error(got)
	}
	if c, err := checkpoint.Open(text, origin, public); err != nil || c != example(t) {
		t.Errorf("%v, %v", c, err)
	}
	// Other programs can read the note.
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, _, err := formats.ParseCheckpoint(text, origin, verifier)
	if err != nil || theirs.Size != 2 {
		t.Errorf("%v, %v", theirs, err)
	}
}

func TestNoOtherNoteIsOpened(t *testing.T) {
	public := exampleKey().Public().(ed25519.PublicKey)
	stranger := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	for name, text := range map[string]string{
		"size":         strings.Replace(exampleNote, "\n2\n", "\n3\n", 1),
		"leading zero": strings.Replace(exampleNote, "\n2\n", "\n02\n", 1),
		"root":         strings.Replace(exampleNote, "eU8u", "eU9u", 1),
		"signature":    strings.Replace(exampleNote, "auY8UM5U", "auY8UM5V", 1),
		"a line more":  strings.Replace(exampleNote, "\n\n", "\nx\n\n", 1),
		"no signature": strings.Split(exampleNote, "—")[0],
		"empty":        "",
	} {
		if _, err := checkpoint.Open([]byte(text), origin, public); !errors.Is(err, checkpoint.ErrNote) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := checkpoint.Open([]byte(exampleNote), origin, stranger); err == nil {
		t.Error("opened with another key")
	}
	if _, err := checkpoint.Open([]byte(exampleNote), "other/0", public); err == nil {
		t.Error("opened as another ledger's")
	}
}

// bucket starts an object store with the S3 protocol. It does not check signatures;
// TestSignatureIsThatOfAWS does.
func bucket(t *testing.T) *checkpoint.S3 {
	return &checkpoint.S3{Endpoint: ledgertest.Bucket(t), Region: "us-east-1", Bucket: "b", Prefix: "p/q", AccessKey: "AK", SecretKey: "SK"}
}

func TestStoresGiveTheNewestNoteBack(t *testing.T) {
	repository := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", repository).CombinedOutput(); err != nil {
		t.Skipf("git: %v %s", err, out)
	}
	for name, store := range map[string]checkpoint.Store{
		"folder": checkpoint.Folder{Path: filepath.Join(t.TempDir(), "made", "when needed")},
		"git":    checkpoint.Git{Folder: checkpoint.Folder{Path: repository}},
		"s3":     bucket(t),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := store.Newest(t.Context(), origin); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("of an empty store: %v", err)
			}
			put := func(epoch, size int64, text string) {
				t.Helper()
				if err := store.Put(t.Context(), epoch, checkpoint.Checkpoint{Origin: origin, Size: size}, []byte(text)); err != nil {
					t.Fatal(err)
				}
				if at, got, err := store.Newest(t.Context(), origin); err != nil || string(got) != text || at != epoch {
					t.Errorf("newest %q, want %q, %v", got, text, err)
				}
			}
			put(1, 9, "nine")
			put(1, 10, "ten")
			put(2, 3, "after a rollback")
			put(2, 3, "the same size again")
			if _, _, err := store.Newest(t.Context(), "another/0"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("of another ledger: %v", err)
			}
		})
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", repository, "rev-list", "--count", "HEAD").Output()
	if err != nil || strings.TrimSpace(string(out)) != "4" {
		t.Errorf("%s commits, %v", out, err)
	}
}

// A store of files returns a file unchanged, and fs.ErrNotExist for a file that it does not have.
func TestFilesComeBackWhole(t *testing.T) {
	folder := t.TempDir()
	for name, files := range map[string]checkpoint.Files{"folder": checkpoint.Folder{Path: folder}, "s3": bucket(t)} {
		t.Run(name, func(t *testing.T) {
			big := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
			for _, octets := range [][]byte{[]byte("first"), big} {
				if err := files.Write(t.Context(), "a_0/one.gz", octets); err != nil {
					t.Fatal(err)
				}
				if got, err := files.Read(t.Context(), "a_0/one.gz", 1<<20); err != nil || !bytes.Equal(got, octets) {
					t.Errorf("%d octets came back, want %d, %v", len(got), len(octets), err)
				}
			}
			if _, err := files.Read(t.Context(), "a_0/one.gz", 1000); err == nil {
				t.Error("a file that is too long was cut")
			}
			if _, err := files.Read(t.Context(), "a_0/two.gz", 1000); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file that is not there: %v", err)
			}
		})
	}
	if info, err := os.Stat(filepath.Join(folder, "a_0", "one.gz")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, bad := range []string{"git:/srv/notes", "ftp://a/b"} {
		if _, err := checkpoint.ParseFiles(bad, func(string) string { return "x" }); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// Of the notes below a size, Prune keeps one for each hour and those that the caller wants to
// keep.
func TestPruneLeavesOneOfEachHour(t *testing.T) {
	f := checkpoint.Folder{Path: t.TempDir()}
	for size := range int64(10) {
		if err := f.Put(t.Context(), 1, checkpoint.Checkpoint{Origin: origin, Size: size}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Prune(origin, 1, 8, func(size int64) bool { return size == 2 }); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(f.Path, "*", "*", "*.note"))
	if err != nil || len(left) < 4 || len(left) > 5 { // notes 9, 8 and 2, and one more, or two more if an hour has just ended
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(left[len(left)-1]); err != nil {
		t.Error(err)
	}
}

func TestParseStore(t *testing.T) {
	env := func(name string) string { return name }
	for place, want := range map[string]string{
		"/mnt/notes": "/mnt/notes", "git:/srv/notes": "git:/srv/notes", "s3://bucket/a/b?region=eu-central-1": "s3://bucket/a/b",
	} {
		if s, err := checkpoint.ParseStore(place, env); err != nil || s.String() != want {
			t.Errorf("%s: %v, %v", place, s, err)
		}
	}
	for _, bad := range []string{"ftp://a/b", "s3:///x", "s3://user:secret@b/x"} {
		if _, err := checkpoint.ParseStore(bad, env); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := checkpoint.ParseStore("s3://b/x", func(string) string { return "" }); err == nil {
		t.Error("S3 without keys")
	}
}

// The expected signature is that of the example "GET object" in the documentation of AWS Signature
// Version 4.
func TestSignatureIsThatOfAWS(t *testing.T) {
	s := &checkpoint.S3{Region: "us-east-1", AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Range", "bytes=0-9")
	s.SignForTest(r, nil, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
	const want = "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
}

// Requests go only to addresses that the operator has configured. A server at such an address
// cannot redirect our requests, which contain credentials, to another host.
func TestNoRedirectIsFollowed(t *testing.T) {
	asked := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(inside.Close)
	place := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	t.Cleanup(place.Close)
	mirror := &checkpoint.S3{Endpoint: place.URL, Region: "us-east-1", Bucket: "b", AccessKey: "AK", SecretKey: "SK"}
	if err := mirror.Put(t.Context(), 1, example(t), []byte(exampleNote)); err == nil {
		t.Error("a mirror that points elsewhere has kept a note")
	}
	public := append([]byte{4}, exampleKey().Public().(ed25519.PublicKey)...) // key of a cosigner
	sum := sha256.Sum256(append([]byte("witness\n"), public...))
	witness, err := checkpoint.ParseWitness("witness+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(public) + " " + place.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := witness.Add(t.Context(), 0, nil, []byte(exampleNote)); err == nil {
		t.Error("a witness that points elsewhere has signed")
	}
	if asked > 0 {
		t.Errorf("another host was asked %d times", asked)
	}
}

// Each note has exactly one text form, and every accepted signature was made by the key.
func FuzzNote(f *testing.F) {
	f.Add([]byte(exampleNote))
	public := exampleKey().Public().(ed25519.PublicKey)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := checkpoint.Parse(text)
		if err != nil {
			if !errors.Is(err, checkpoint.ErrNote) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		again, err := checkpoint.Sign(c, exampleKey())
		if err == nil {
			if body, _, _ := bytes.Cut(again, []byte("\n\n")); !bytes.HasPrefix(text, append(body, "\n\n"...)) {
				t.Errorf("%q is read as %q", text, body)
			}
		}
		if opened, err := checkpoint.Open(text, origin, public); err == nil && !strings.HasPrefix(exampleNote, strings.SplitAfter(string(text), "\n\n")[0]) {
			t.Errorf("%+v was never signed", opened)
		}
	})
}

// A witness's key has exactly one text form, and its hash matches.
func FuzzWitness(f *testing.F) {
	public := append([]byte{4}, exampleKey().Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte("witness\n"), public...))
	f.Add("witness+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(public) + " https://witness.example/")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := checkpoint.ParseWitness(text)
		if err == nil && (w.Name() == "" || !strings.Contains(text, w.Name()+"+")) {
			t.Errorf("%q is witness %q", text, w.Name())
		}
	})
}

// A receipt has the form of RFC 9942. This one is for the first of two events, so its path is the
// second leaf.
func TestAReceiptIsMadeFromTheNote(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	leaves := []tree.Hash{tree.Leaf([32]byte{1}), tree.Leaf([32]byte{2})}
	var b tree.Builder
	for _, l := range leaves {
		b.Add(l, func(tree.Tile) {})
	}
	note, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: "example.com/0", Size: 2, Root: b.Root()}, private)
	if err != nil {
		t.Fatal(err)
	}
	public := private.Public().(ed25519.PublicKey)
	other := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	receipts, err := checkpoint.NewReceipts(note, other, public)
	if err != nil {
		t.Fatal(err)
	}
	got := receipts.Of(1, leaves[1:])
	id, root := sha256.Sum256(public), b.Root()
	protected := fmt.Sprintf("a301270448%x19018b01", id[:8])
	// COSE_Sign1: protected, {396: {-1: [<<[2, 0, [leaf]]>>]}}, null, signature.
	if want := fmt.Sprintf("d28451%sa119018ca120815826830200815820%xf65840%x", protected, leaves[1][:], got[len(got)-64:]); hex.EncodeToString(got) != want {
		t.Errorf("receipt %x, want %s", got, want)
	}
	signed, _ := hex.DecodeString("846a" + hex.EncodeToString([]byte("Signature1")) + "51" + protected + "405820" + hex.EncodeToString(root[:]))
	if !ed25519.Verify(public, signed, got[len(got)-64:]) {
		t.Errorf("the signature of %x is not over %x", got, signed)
	}
	if _, err := checkpoint.NewReceipts(note, other); err == nil {
		t.Error("another key's receipt")
	}
	if _, err := checkpoint.NewReceipts([]byte(strings.ReplaceAll(string(note), "\n2\n", "\n3\n")), public); err == nil {
		t.Error("the receipt of a note that was changed")
	}
}
