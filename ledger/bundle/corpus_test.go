package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// The published corpus contains 1,000 altered bundles with the verdict and the reason for each,
// with which authors test other verifiers. It is an archive of folders, because every verifier
// reads folders. It has only half a megabyte, because neighbouring bundles are alike. The repository
// contains the archive and not only the seed of its generator, because the service offers the
// archive for download.
const (
	corpusFile = "../../api/web/assets/altered-bundles.tar.gz"
	corpusSize = 1000
	corpusSeed = 28
	// sameReason is the largest number of generated bundles in the corpus with the same verdict
	// and reason.
	sameReason = 20
)

var updateCorpus = flag.Bool("update", false, "write the corpus of altered bundles again")

// expectation is a line of expected.jsonl in the corpus: how a bundle was altered, which keys and
// pin the verifier gets, and what it must answer.
type expectation struct {
	Bundle  string `json:"bundle"` // the folder
	Altered string `json:"altered"`
	Keys    string `json:"keys"` // file
	Pin     string `json:"pin,omitempty"`
	verdict
}

// verdict is the answer of a verifier. Reason names the first check that failed. If Verdict is
// "unchecked", Reason says what is missing and what to do about it.
type verdict struct {
	Verdict string `json:"verdict"` // valid, invalid or unchecked
	Reason  string `json:"reason"`
}

// published returns the verdict as it is in the corpus. If it is "unchecked", its reason there
// names only what is missing ("keys", "pin" or a file), because the words of the advice may
// change.
func (v verdict) published() verdict {
	if v.Verdict == "unchecked" {
		v.Reason, _, _ = strings.Cut(v.Reason, ":")
	}
	return v
}

// question is a bundle in a folder, with the keys and the pin for its verification.
type question struct {
	folder string
	keys   []bundle.Key
	pin    []byte // nil: none
}

func goSays(t *testing.T, q question) verdict {
	t.Helper()
	b, err := bundle.Open(t.Context(), q.folder, nil)
	if err != nil {
		return verdict{"unchecked", err.Error()}
	}
	defer b.Close()
	r, err := bundle.Verify(t.Context(), b, bundle.Trust{Keys: q.keys, Pin: q.pin}, nil)
	return verdictOf(t, r, err)
}

func verdictOf(t *testing.T, r bundle.Result, err error) verdict {
	t.Helper()
	if lacks := bundle.Unchecked(""); errors.As(err, &lacks) {
		return verdict{"unchecked", string(lacks)}
	} else if err != nil {
		t.Fatal(err)
	}
	return verdict{map[bool]string{true: "valid", false: "invalid"}[r.Valid], r.Reason}
}

// verdictsPy prints a verdict of verify.py for each question.
const verdictsPy = `
import json, sys
sys.path.insert(0, sys.argv[1])
import verify
for folder, keys, pin in json.load(sys.stdin):
    try:
        result = verify.verdict(folder, verify.read_keys(keys.encode()), None if pin is None else pin.encode())[:2]
    except (verify.Unchecked, OSError) as e:
        result = ("unchecked", str(e))
    except Exception as e:
        result = ("crash", type(e).__name__ + " " + str(e))
    print(json.dumps({"verdict": result[0], "reason": result[1]}))
`

func pythonSays(t *testing.T, python string, questions []question) (verdicts []verdict) {
	t.Helper()
	var asks [][3]any
	for _, q := range questions {
		ask := [3]any{q.folder, string(jwks(q.keys)), nil}
		if q.pin != nil {
			ask[2] = string(q.pin)
		}
		asks = append(asks, ask)
	}
	tool := t.TempDir()
	write(t, tool, map[string][]byte{"verify.py": bundle.VerifierPy})
	command := exec.CommandContext(t.Context(), python, "-c", verdictsPy, tool)
	command.Stdin, command.Stderr = bytes.NewReader(must(json.Marshal(asks))), t.Output()
	out, err := command.Output()
	for from := json.NewDecoder(bytes.NewReader(out)); err == nil && from.More(); {
		var v verdict
		err = from.Decode(&v)
		verdicts = append(verdicts, v)
	}
	if err != nil || len(verdicts) != len(questions) {
		t.Fatalf("Python answered %d of %d times: %v", len(verdicts), len(questions), err)
	}
	return verdicts
}

// browserVerdicts returns the verdicts of the verifier on the page /verify, by the index of the
// question. It skips bundles with links, which an archive of the page cannot contain, and
// questions with an empty pin, which the page does not accept.
func browserVerdicts(t *testing.T, module string, questions []question) map[int]verdict {
	t.Helper()
	var asks []asked
	var indices []int
	archives := t.TempDir()
	for i, q := range questions {
		if q.pin != nil && len(q.pin) == 0 || hasLinks(t, q.folder) {
			continue
		}
		archive := filepath.Join(archives, strconv.Itoa(i))
		file, err := os.Create(archive)
		if err == nil {
			err = errors.Join(bundle.NewFolder(q.folder).Pack(file), file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		asks, indices = append(asks, asked{string(jwks(q.keys)), string(q.pin), archive}), append(indices, i)
	}
	verdicts := map[int]verdict{}
	for i, answer := range moduleSays(t, module, asks) {
		var r bundle.Result
		var lacks error
		if answer.Lacks != "" {
			lacks = bundle.Unchecked(answer.Lacks)
		} else if err := json.Unmarshal([]byte(answer.Says), &r); err != nil {
			t.Fatal(err)
		}
		verdicts[indices[i]] = verdictOf(t, r, lacks)
	}
	return verdicts
}

func hasLinks(t *testing.T, folder string) (has bool) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		has = has || err == nil && d.Type()&fs.ModeSymlink != 0
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return has
}

// allSay checks that Go, Python and, if verifierModule is set, the verifier of the page /verify
// give the same verdicts. want contains the verdicts of Go.
func allSay(t *testing.T, names []string, questions []question, want []verdict) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; .ci/bundle/run has one")
	}
	for i, says := range pythonSays(t, python, questions) {
		if says != want[i] {
			t.Errorf("bundle %s: want %v, and Python says %v", names[i], want[i], says)
		}
	}
	if module := os.Getenv(verifierModule); module != "" {
		says := browserVerdicts(t, module, questions)
		for i, v := range says {
			if v != want[i] {
				t.Errorf("bundle %s: want %v, and the module of the page says %v", names[i], want[i], v)
			}
		}
		t.Logf("%d bundles have the same verdict in the module of the page", len(says))
	}
}

// generator makes altered bundles: it changes one detail of one of its bases, and chooses keys and
// a pin.
type generator struct {
	*rand.Rand
	bases []base
	pins  [][]byte
}

type base struct {
	name  string
	files map[string][]byte
}

func newGenerator(seed uint64) generator {
	good := draw()
	return generator{rand.New(rand.NewPCG(seed, 1)), []base{
		{"a history", good}, {"a period", cut(0, 5, "15:00:01", "15:00:03")}, {"a period to the end", cut(1, 3, "15:00:02", "")},
		{"a selection", told{}.draw()}, {"a selection with receipts", told{filters: bundle.Filters{Agent: "a-k", Receipts: true}}.draw()},
		{"a selection of a run", told{filters: bundle.Filters{Decision: "deny", Run: "r"}}.draw()},
		{"a statement", liesInAStatement()["as it is"].files}, {"a dispute", disputed{}.draw()},
	}, [][]byte{pinOf(5, good), pinOf(3, good), pinOf(4, draw(), 9), note(0, tree.Empty()), seen(seenSize), seen(3), good["checkpoint.txt"], note(8, tree.Hash{1}), note(seenSize, tree.Hash{1}), note(3, tree.Hash{1}), {}, []byte("nonsense")}}
}

// generated is a bundle that a generator has made. keys is an index of keySets.
type generated struct {
	base  base
	files map[string][]byte
	keys  int
	pin   []byte
	says  verdict
}

func (g generator) next() generated {
	made := generated{base: g.bases[g.IntN(len(g.bases))]}
	made.files = mutate(g.Rand, made.base.files)
	if n := g.IntN(10); n < len(keySets()) {
		made.keys = n
	}
	if g.IntN(3) > 0 {
		made.pin = g.pins[g.IntN(len(g.pins))]
	}
	return made
}

// altered says which files of the bundle differ from those of the base.
func (m generated) altered() string {
	text := []string{m.base.name}
	for _, name := range slices.Sorted(maps.Keys(m.base.files)) {
		if now, has := m.files[name]; !has {
			text = append(text, "without "+name)
		} else if !bytes.Equal(now, m.base.files[name]) {
			text = append(text, name+" changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if _, was := m.base.files[name]; !was {
			text = append(text, "with "+name)
		}
	}
	if len(text) == 1 {
		text = append(text, "as it is")
	}
	return strings.Join(text, ", ")
}

// The verifiers (Go, Python and, if COUNTERSIGN_VERIFIER is set, the one of the page /verify) give
// the same verdict and the same first reason for every bundle that a generator makes.
// MUTATED_BUNDLES is the number of bundles; its default is 60.
func TestTheVerifiersAgree(t *testing.T) {
	count, seed := 60, rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv("MUTATED_BUNDLES")); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	g := newGenerator(seed)
	reasons, valid := map[string]int{}, 0
	for from := 0; from < count; from += 500 { // so that at most 500 folders are on the disk
		folder, err := os.MkdirTemp(t.TempDir(), "bundles")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var questions []question
		var verdicts []verdict
		for i := from; i < min(from+500, count); i++ {
			made := g.next()
			q := question{filepath.Join(folder, strconv.Itoa(i)), keySets()[made.keys], made.pin}
			write(t, q.folder, made.files)
			v := goSays(t, q)
			names, questions, verdicts = append(names, fmt.Sprintf("%d (%s)", i, made.altered())), append(questions, q), append(verdicts, v)
			if v.Verdict == "valid" {
				valid++
			}
			_, what, _ := strings.Cut(v.Reason, ": ")
			reasons[what[:min(len(what), 20)]]++
		}
		allSay(t, names, questions, verdicts)
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d bundles, %d of them valid, reasons %v", count, valid, reasons)
	if count >= 60 && valid == 0 {
		t.Error("none of them is valid")
	}
}

// A manifest whose exportId is null is not valid. (The generator found that the verifier in Go
// accepted it and the one in Python did not.)
func TestAnExportIDIsAString(t *testing.T) {
	files := draw()
	var envelope struct{ Record map[string]any }
	if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
		t.Fatal(err)
	}
	envelope.Record["exportId"] = nil
	signRecord(files, envelope.Record)
	bothSay(t, map[string]altered{"null": {files: files, reason: "manifest.json: record"}})
}

// corpus makes the uncompressed archive of the published corpus. It begins with the attacks of
// this package's tests, each with its name. Bundles of the generator follow.
func corpus(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	archive := tar.NewWriter(&text)
	put := func(name string, content []byte) {
		must(0, archive.WriteHeader(&tar.Header{Name: "altered-bundles/" + name, Mode: 0o644, Size: int64(len(content)), Format: tar.FormatUSTAR}))
		must(archive.Write(content))
	}
	put("README.md", must(os.ReadFile("testdata/corpus.md")))
	keyFiles := []string{"keys/all.json", "keys/none-of-checkpoints.json", "keys/record-key-retired-at-7.json", "keys/record-key-compromised-from-4.json", "keys/checkpoint-key-retired-at-7.json"}
	for i, set := range keySets() {
		put(keyFiles[i], jwks(set))
	}
	pinFiles := map[string]string{}
	var expected []expectation
	add := func(altered string, keys int, pin []byte, files, links map[string][]byte, says verdict) {
		e := expectation{Bundle: fmt.Sprintf("bundles/%04d", len(expected)+1), Altered: altered, Keys: keyFiles[keys], verdict: says.published()}
		if pin != nil {
			name, has := pinFiles[string(pin)]
			if !has {
				name = fmt.Sprintf("pins/%02d.txt", len(pinFiles)+1)
				pinFiles[string(pin)] = name
				put(name, pin)
			}
			e.Pin = name
		}
		expected = append(expected, e)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			put(e.Bundle+"/"+name, files[name])
		}
		for _, name := range slices.Sorted(maps.Keys(links)) {
			must(0, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "altered-bundles/" + e.Bundle + "/" + name, Linkname: string(links[name]), Mode: 0o777, Format: tar.FormatUSTAR}))
		}
	}
	seen := map[string]bool{}
	selected := told{filters: bundle.Filters{Agent: "a-k", Decision: "deny"}}.draw()
	for _, table := range []struct {
		subject string
		cases   map[string]altered
	}{
		{"a period", trimmedPeriods()}, {"a pin", pinnedTails()}, {"files", foreignFiles()}, {"a note", falseSignatureLines()}, {"numbers of a history", falseNumbers()},
		{"a selection", liesInASelection()}, {"a pin of a selection", pinnedSeries(verified(t, selected, selected["checkpoint.txt"]).Pin)}, {"a statement", liesInAStatement()}, {"a dispute", liesInADispute()},
		{"a record", liesInRecords()}, {"an opening", liesInOpenings()}, {"a manifest", formsOfAManifest()}, {"a pin of a history", pinnedHistories()}, {"a text", differentlyRead()}, {"a key", severalKeys()},
	} {
		for _, name := range slices.Sorted(maps.Keys(table.cases)) {
			c, folder := table.cases[name], t.TempDir()
			write(t, folder, c.files)
			if c.lay != nil {
				c.lay(t, folder)
			}
			files, links := contentOf(t, folder)
			if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), odd) {
				add(table.subject+": "+name, 0, c.pin, files, links, goSays(t, question{folder, trusted(), c.pin}))
			}
		}
	}
	reasons := map[verdict]int{}
	var kept []generated
	for g := newGenerator(corpusSeed); len(expected)+len(kept) < corpusSize; {
		made := g.next()
		id := canon.Hash(must(json.Marshal([]any{made.files, made.keys, made.pin})))
		if seen[id] {
			continue
		}
		seen[id] = true
		made.says = inMemorySays(t, made)
		if reasons[made.says]++; reasons[made.says] <= sameReason {
			kept = append(kept, made)
		}
	}
	slices.SortStableFunc(kept, func(a, b generated) int { return strings.Compare(a.base.name, b.base.name) })
	for _, made := range kept {
		add(made.altered(), made.keys, made.pin, made.files, nil, made.says)
	}
	put("expected.jsonl", must(bundle.Lines(expected)))
	must(0, archive.Close())
	return text.Bytes()
}

// odd reports whether a name has characters that some file systems do not accept.
func odd(name string) bool {
	return strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' })
}

// contentOf reads the files of a folder, and the targets of its links.
func contentOf(t *testing.T, folder string) (files, links map[string][]byte) {
	t.Helper()
	files, links = map[string][]byte{}, map[string][]byte{}
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := filepath.ToSlash(must(filepath.Rel(folder, path)))
		if d.Type()&fs.ModeSymlink != 0 {
			links[name] = []byte(must(os.Readlink(path)))
			return nil
		}
		files[name] = must(os.ReadFile(path))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return files, links
}

// inMemorySays verifies a bundle without writing it to a disk.
func inMemorySays(t *testing.T, made generated) verdict {
	t.Helper()
	var text bytes.Buffer
	packed := must(gzip.NewWriterLevel(&text, gzip.NoCompression))
	archive := tar.NewWriter(packed)
	for name, content := range made.files {
		must(0, archive.WriteHeader(&tar.Header{Name: "export/" + name, Mode: 0o644, Size: int64(len(content))}))
		must(archive.Write(content))
	}
	must(0, errors.Join(archive.Close(), packed.Close()))
	b, err := bundle.UnpackInMemory(t.Context(), &text, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bundle.Verify(t.Context(), b, bundle.Trust{Keys: keySets()[made.keys], Pin: made.pin}, nil)
	return verdictOf(t, r, err)
}

// The published corpus is exactly what the tests and the generator make now. With -update the test
// writes the corpus.
func TestThePublishedCorpusIsMadeFromItsSeed(t *testing.T) {
	t.Parallel()
	made := corpus(t)
	if *updateCorpus {
		var packed bytes.Buffer
		w := must(gzip.NewWriterLevel(&packed, gzip.BestCompression))
		must(w.Write(made))
		must(0, w.Close())
		if err := os.WriteFile(corpusFile, packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published := must(os.Open(corpusFile))
	defer published.Close()
	if !bytes.Equal(must(io.ReadAll(must(gzip.NewReader(published)))), made) {
		t.Errorf("%s is another one; after an intended change: go test ./ledger/bundle -run Corpus -update", corpusFile)
	}
}

// unpackCorpus unpacks the published corpus into a folder, but only every step-th bundle.
func unpackCorpus(t *testing.T, folder string, step int) {
	t.Helper()
	published := must(os.Open(corpusFile))
	defer published.Close()
	for archive := tar.NewReader(must(gzip.NewReader(published))); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(header, err)
		name := strings.TrimPrefix(header.Name, "altered-bundles/")
		if in, is := strings.CutPrefix(name, "bundles/"); is {
			number, _, _ := strings.Cut(in, "/")
			if (must(strconv.Atoi(number))-1)%step != 0 {
				continue
			}
		}
		if header.Typeflag == tar.TypeSymlink {
			must(0, os.Symlink(header.Linkname, filepath.Join(folder, name)))
			continue
		}
		write(t, folder, map[string][]byte{name: must(io.ReadAll(archive))})
	}
}

// Every verifier gives the expected verdicts for the published corpus. Unless MUTATED_BUNDLES is
// set, the test checks only one bundle in 20.
func TestThePublishedCorpusHasTheseVerdicts(t *testing.T) {
	t.Parallel()
	folder, step := t.TempDir(), 20
	if os.Getenv("MUTATED_BUNDLES") != "" {
		step = 1
	}
	unpackCorpus(t, folder, step)
	var names []string
	var questions []question
	var want []verdict
	lines := bytes.SplitAfter(must(os.ReadFile(filepath.Join(folder, "expected.jsonl"))), []byte("\n"))
	if lines = lines[:len(lines)-1]; len(lines) != corpusSize {
		t.Fatalf("it has %d bundles", len(lines))
	}
	verdicts := map[string]int{}
	for i, line := range lines {
		var e expectation
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if verdicts[e.Verdict]++; i%step != 0 {
			continue
		}
		q := question{folder: filepath.Join(folder, e.Bundle), keys: must(bundle.ReadKeySet(must(os.ReadFile(filepath.Join(folder, e.Keys)))))}
		if e.Pin != "" {
			q.pin = must(os.ReadFile(filepath.Join(folder, path.Clean(e.Pin))))
		}
		says := goSays(t, q)
		if says.published() != e.verdict {
			t.Errorf("bundle %s (%s): want %v, and Go says %v", e.Bundle, e.Altered, e.verdict, says)
		}
		names, questions, want = append(names, e.Bundle), append(questions, q), append(want, says)
	}
	allSay(t, names, questions, want)
	t.Logf("%d of the corpus: %v", len(names), verdicts)
}
