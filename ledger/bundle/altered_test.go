package bundle_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// altered is a bundle, intact or changed by an attacker, with the verdict that every verifier must
// give.
type altered struct {
	files  map[string][]byte
	pin    []byte
	reason string // empty if the bundle is valid
	lacks  string // beginning of the text about what could not be checked
	lay    func(t *testing.T, folder string)
}

// bothSay checks that the verifiers in Go and Python, and the one of the page /verify, give the
// expected verdict for each bundle.
func bothSay(t *testing.T, cases map[string]altered) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("there is no Python here; .ci/bundle/run has one")
	}
	tool := t.TempDir()
	write(t, tool, map[string][]byte{"verify.py": bundle.VerifierPy, "jwks.json": jwks(trusted())})
	names := slices.Sorted(maps.Keys(cases))
	var results []bundle.Result
	var arguments [][]string // arguments of verify.py for each case
	for i, name := range names {
		c := cases[name]
		folder := t.TempDir()
		write(t, folder, c.files)
		if c.lay != nil {
			c.lay(t, folder)
		}
		want := altered{reason: c.reason, lacks: c.lacks}
		b, err := bundle.Open(t.Context(), folder, nil)
		var r bundle.Result
		if err == nil {
			r, err = bundle.Verify(t.Context(), b, bundle.Trust{Keys: trusted(), Pin: c.pin}, nil)
			b.Close()
		}
		if !said(want, r.Reason, err) || r.Valid != (c.reason == "" && c.lacks == "") {
			t.Errorf("%s: Go says %+v, %v; want %q%q", name, r, err, c.reason, c.lacks)
		}
		results, arguments = append(results, r), append(arguments, []string{"--keys", filepath.Join(tool, "jwks.json"), folder})
		if c.pin != nil {
			pin := fmt.Sprint("pin", i)
			write(t, tool, map[string][]byte{pin: c.pin})
			arguments[i] = append(arguments[i], "--pin", filepath.Join(tool, pin))
		}
	}
	browserSays(t, names, cases)
	if python == "" {
		return
	}
	for i, ran := range verifyPy(t, python, tool, arguments) {
		name, c, out := names[i], cases[names[i]], ran.Out
		first, _, _ := strings.Cut(out, "\n")
		switch {
		case c.lacks != "":
			if ran.Code != 2 || !strings.HasPrefix(first, "could not be checked: "+c.lacks) {
				t.Errorf("%s: Python says %s; want %q", name, out, c.lacks)
			}
		case c.reason == "" && (ran.Code != 0 || first != "VALID"):
			t.Errorf("%s: Python says %s; want it valid", name, out)
		case c.reason != "" && (ran.Code != 1 || !strings.HasPrefix(out, "NOT VALID\nFALSE       "+c.reason+"\n")):
			t.Errorf("%s: Python says %s; want %q", name, out, c.reason)
		}
		for _, gap := range results[i].Gaps {
			if !strings.Contains(out, "NOT PROVEN  "+gap+"\n") && c.reason == "" && c.lacks == "" {
				t.Errorf("%s: Python does not say %q: %s", name, gap, out)
			}
		}
		if !strings.Contains(out, "\nVIEWS not checked") && c.lacks == "" {
			t.Errorf("%s: Python does not say that views are not checked", name)
		}
	}
}

// runEach is a Python program that calls verify.py with each list of arguments from its input. One
// process for all cases saves most of the time, because Python takes longer to start than to
// verify.
const runEach = `
import io, json, sys, traceback
sys.path.insert(0, sys.argv[1])
import verify
answers = []
for arguments in json.load(sys.stdin):
    sys.stdout = sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        code = verify.main(arguments)
    except SystemExit as e:
        code = e.code
    except Exception:
        traceback.print_exc()
        code = 1
    answers.append({"code": code, "out": sys.stdout.buffer.getvalue().decode()})
json.dump(answers, sys.__stdout__)
`

// pythonRun is the exit code and the output of a run of verify.py.
type pythonRun struct {
	Code int    `json:"code"`
	Out  string `json:"out"`
}

// verifyPy runs the verify.py in a folder with each list of arguments.
func verifyPy(t *testing.T, python, folder string, arguments [][]string) (answers []pythonRun) {
	t.Helper()
	command := exec.CommandContext(t.Context(), python, "-c", runEach, folder)
	command.Stdin, command.Stderr = bytes.NewReader(must(json.Marshal(arguments))), t.Output()
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &answers)
	}
	if err != nil || len(answers) != len(arguments) {
		t.Fatalf("Python ran %d of %d verifications: %v", len(answers), len(arguments), err)
	}
	return answers
}

func said(want altered, reason string, err error) bool {
	if want.lacks != "" {
		return err != nil && strings.HasPrefix(err.Error(), want.lacks)
	}
	return err == nil && reason == want.reason
}

// cut makes a bundle of some events of draw: those with the indices from (included) and to
// (excluded). Its period lasts from begin to end, two times of that day. Events outside the
// period, and those with an index in hide, have no payload.
func cut(from, to int, begin, end string, hide ...int) map[string][]byte {
	files, leaves := drawn()
	return cutOf(files, leaves, from, to, bundle.Filters{From: onTheDay(begin), To: onTheDay(end)}, hide...)
}

func onTheDay(clock string) string {
	if clock == "" {
		return ""
	}
	return "2026-11-20T" + clock + "Z"
}

func cutOf(files map[string][]byte, leaves []tree.Hash, from, to int, filters bundle.Filters, hide ...int) map[string][]byte {
	all := linesOf(files)
	prev := ledger.Hash(ledger.Genesis(origin, "org_1")).String()
	if from > 0 {
		prev = all[from-1].Hash
	}
	lines, withheld, proofs := slices.Clone(all[from:to]), int64(0), []bundle.Proof{}
	for i := range lines {
		clock := fmt.Sprintf("2026-11-20T15:00:%02dZ", min(from+i, 3))
		if filters.From != "" && clock < filters.From || filters.To != "" && clock >= filters.To || slices.Contains(hide, from+i) {
			lines[i].Payload, withheld = nil, withheld+1
		}
		proofs = append(proofs, bundle.NewProof(bundle.Proof{Position: lines[i].Position}, inclusion(leaves, int(lines[i].Position)-1)))
	}
	files["events.jsonl"], files["proofs/inclusion.jsonl"] = must(bundle.Lines(lines)), must(bundle.Lines(proofs))
	prior := map[string]string{}
	if from > 1 || from == 1 && lines[0].Payload == nil {
		delete(files, "openings.jsonl")
		prior["asd_1"] = recordHash(*all[1].Payload)
	} else if len(lines) < 2 || lines[1-from].Payload == nil {
		delete(files, "openings.jsonl")
	}
	return signedAnew(files, func(m *bundle.Manifest) {
		m.FirstSequence, m.Count, m.PrevBeforeFirst, m.LastHash = int64(from)+1, int64(len(lines)), prev, all[to-1].Hash
		m.Filters, m.Withheld, m.PriorDecisions = filters, withheld, prior
	})
}

func recordHash(payload string) string {
	var p struct{ Integrity struct{ RecordHash string } }
	if err := json.Unmarshal([]byte(payload), &p); err != nil {
		panic(err)
	}
	return p.Integrity.RecordHash
}

func linesOf(files map[string][]byte) (lines []ledger.Line) {
	for text := range bytes.SplitSeq(bytes.TrimSuffix(files["events.jsonl"], []byte("\n")), []byte("\n")) {
		var l ledger.Line
		if err := canon.Decode(text, &l); err != nil {
			panic(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// pinOf returns the pin of a verifier that has seen the events of draw up to a sequence number. If
// other is given, the pin contains a wrong hash for the last of these events.
func pinOf(sequence int64, files map[string][]byte, other ...byte) []byte {
	hash := linesOf(draw())[min(sequence, 5)-1].Hash
	for _, c := range other {
		hash = hex.EncodeToString(bytes.Repeat([]byte{c}, 32))
	}
	return checkpoint.Pin{Note: files["checkpoint.txt"], Tenants: map[string]checkpoint.Seen{"org_1": {Sequence: sequence, Hash: hash}, "service": {Sequence: 3, Hash: hash}}}.Text()
}

// Verifiers compare the manifest's period with the events. A bundle must contain an event before
// the period and one after it, so even the owner of the signing key cannot leave out events at the
// beginning or end of the period.
func TestATrimmedPeriodIsFalse(t *testing.T) { bothSay(t, trimmedPeriods()) }

func trimmedPeriods() map[string]altered {
	changed := func(files map[string][]byte, change func(*bundle.Manifest)) map[string][]byte {
		return signedAnew(files, change)
	}
	withFilters := func(f bundle.Filters) map[string][]byte {
		return changed(draw(), func(m *bundle.Manifest) { m.Filters = f })
	}
	agents := func(from, to int, hide ...int) map[string][]byte {
		files, leaves := drawn()
		return cutOf(files, leaves, from, to, bundle.Filters{Agent: "agent-ü"}, hide...)
	}
	cases := map[string]altered{
		"a period":                                   {files: cut(0, 5, "15:00:01", "15:00:03")},
		"from the first event on":                    {files: cut(0, 5, "14:00:00", "15:00:03")},
		"to the end":                                 {files: cut(1, 5, "15:00:02", "")},
		"a period of a moment":                       {files: cut(0, 3, "15:00:01", "15:00:02")},
		"without its first event":                    {files: cut(2, 5, "15:00:01", "15:00:03"), reason: "events.jsonl line 1: from"},
		"without the event before it":                {files: cut(1, 5, "15:00:01", "15:00:03"), reason: "events.jsonl line 1: from"},
		"without its last event":                     {files: cut(0, 2, "15:00:01", "15:00:03"), reason: "events.jsonl: to"},
		"without the event after it":                 {files: cut(0, 3, "15:00:01", "15:00:03"), reason: "events.jsonl: to"},
		"with half of the append after it":           {files: cut(0, 4, "15:00:01", "15:00:03"), reason: "events.jsonl: more"},
		"an end that is never reached":               {files: cut(0, 5, "", "15:00:04"), reason: "events.jsonl: to"},
		"an event within it without payload":         {files: cut(0, 5, "15:00:01", "15:00:03", 2), reason: "events.jsonl line 3: payload"},
		"an event outside with its payload":          {files: withFilters(bundle.Filters{From: onTheDay("15:00:01")}), reason: "events.jsonl line 1: payload"},
		"a first event that is not the first":        {files: changed(draw(), func(m *bundle.Manifest) { m.PrevBeforeFirst = m.LastHash }), reason: "manifest.json: prevBeforeFirst"},
		"a schema that nobody knows":                 {files: changed(draw(), func(m *bundle.Manifest) { m.Schema = "svc-export-v2" }), reason: "manifest.json: record"},
		"a period in another form":                   {files: withFilters(bundle.Filters{From: "2026-11-20T15:00:00+00:00"}), reason: "manifest.json: record"},
		"a day that does not exist":                  {files: withFilters(bundle.Filters{To: "2026-02-30T15:00:00Z"}), reason: "manifest.json: record"},
		"a leap second":                              {files: withFilters(bundle.Filters{To: "2026-06-30T23:59:60Z"}), reason: "manifest.json: record"},
		"the year 0":                                 {files: withFilters(bundle.Filters{From: "0000-06-30T23:59:00Z"}), reason: "manifest.json: record"},
		"digits of another script":                   {files: withFilters(bundle.Filters{From: "٢026-06-30T23:59:00Z"}), reason: "manifest.json: record"},
		"more withheld than it says":                 {files: changed(cut(0, 5, "15:00:01", "15:00:03"), func(m *bundle.Manifest) { m.Withheld-- }), reason: "manifest.json: withheld"},
		"less withheld than it says":                 {files: changed(draw(), func(m *bundle.Manifest) { m.Withheld++ }), reason: "manifest.json: withheld"},
		"decisions of one agent":                     {files: agents(0, 5, 1, 2)},
		"decisions of one agent, and others hidden":  {files: agents(0, 5, 1, 2, 0), reason: "events.jsonl line 1: payload"},
		"nothing selected, and a decision is hidden": {files: cut(0, 5, "", "", 1, 2), reason: "events.jsonl line 2: payload"},
	}
	files := draw()
	var envelope struct{ Record map[string]any }
	if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
		panic(err)
	}
	for name, filters := range map[string]any{"unknown": map[string]any{"until": "x"}, "a number": map[string]any{"from": 1}, "null": map[string]any{"from": nil}, "a text": map[string]any{"noPersonal": "no"}, "a list": []any{}} {
		record := maps.Clone(envelope.Record)
		record["filters"] = filters
		changed := maps.Clone(files)
		signRecord(changed, record)
		cases["filters with "+name] = altered{files: changed, reason: "manifest.json: record"}
	}
	return cases
}

// A verifier with a pin notices if a tenant's last events are missing. The proofs of the tree
// alone do not show this.
func TestAPinProtectsATenantsTail(t *testing.T) {
	bothSay(t, pinnedTails())
	whole := draw()
	r := verified(t, cut(0, 3, "", "15:00:02"), pinOf(5, whole))
	if want := pinOf(5, whole); !bytes.Equal(r.Pin, want) {
		t.Errorf("an older period left the pin\n%s, want\n%s", r.Pin, want)
	}
	if r := verified(t, draw(), pinOf(3, whole)); !bytes.Contains(r.Pin, []byte("\n\norg_1 5 ")) || !bytes.Contains(r.Pin, []byte("\nservice 3 ")) {
		t.Errorf("the pin is not brought up to date: %s", r.Pin)
	}
}

func pinnedTails() map[string]altered {
	whole := draw()
	shorter := func() map[string][]byte { return cut(0, 3, "", "") }
	return map[string]altered{
		"as it was seen":                          {files: draw(), pin: pinOf(5, whole)},
		"continued":                               {files: draw(), pin: pinOf(3, whole)},
		"without the last two events":             {files: shorter(), pin: pinOf(5, whole), reason: "pin: ROLLBACK: it ends at sequence 3, and you have seen sequence 5"},
		"without the last two, under an old note": {files: shorter(), pin: pinOf(5, map[string][]byte{"checkpoint.txt": seen(3)}), reason: "pin: ROLLBACK: it ends at sequence 3, and you have seen sequence 5"},
		"from a time to the end, without them":    {files: cut(0, 3, "15:00:01", ""), pin: pinOf(5, whole), reason: "pin: ROLLBACK: it ends at sequence 3, and you have seen sequence 5"},
		"another event with that number":          {files: draw(), pin: pinOf(4, whole, 9), reason: "pin: FORK: the event with sequence 4 is not the one you have seen"},
		"another event before the first":          {files: cut(2, 5, "", ""), pin: pinOf(2, whole, 9), reason: "pin: FORK: the event with sequence 2 is not the one you have seen"},
		"after the event that was seen":           {files: cut(2, 5, "", ""), pin: pinOf(1, whole)},
		"a period before it":                      {files: cut(0, 3, "", "15:00:02"), pin: pinOf(5, whole)},
		"a note of no events":                     {files: draw(), pin: note(0, tree.Empty())},
		"a note of no events with another root":   {files: draw(), pin: note(0, tree.Hash{1}), reason: "pin: FORK"},
		"a tenant's line of another form":         {files: draw(), pin: append(bytes.Clone(pinOf(5, whole)), "org_2 x\n"...), lacks: "pin: it must be a checkpoint"},
		"a tenant twice":                          {files: draw(), pin: append(bytes.Clone(pinOf(5, whole)), "org_1 5 "+strings.Repeat("0", 64)+"\n"...), lacks: "pin: it must be a checkpoint"},
		"a line without an end":                   {files: draw(), pin: bytes.TrimSuffix(pinOf(5, whole), []byte("\n")), lacks: "pin: it must be a checkpoint"},
	}
}

// A verifier refuses additional entries in a bundle's folder (links, other files) and names them.
// It ignores files that operating systems create.
func TestFilesBesideABundle(t *testing.T) { bothSay(t, foreignFiles()) }

func foreignFiles() map[string]altered {
	add := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, folder string) { write(t, folder, map[string][]byte{name: []byte(text)}) }
	}
	link := func(to, name string) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
				t.Skip(err)
			}
		}
	}
	without := draw()
	delete(without, "redactions.jsonl")
	return map[string]altered{
		"a link to a folder":         {files: draw(), lay: link("views", "more"), lacks: "more is a link"},
		"a link to a folder outside": {files: draw(), lay: link("..", "more"), lacks: "more is a link"},
		"a link to a file":           {files: draw(), lay: link("VERIFY.md", "views/more"), lacks: "views/more is a link"},
		"a link to nothing":          {files: draw(), lay: link("nothing", "more"), lacks: "more is a link"},
		"a file of somebody":         {files: draw(), lay: add("views/more.csv", "x"), reason: "files: views/more.csv is not in the manifest"},
		"a file with an odd name":    {files: draw(), lay: add("a\nVALID\x1b[2J ü", "x"), reason: "files: a%0AVALID%1B%5B2J%20%C3%BC is not in the manifest"},
		"the first of two":           {files: draw(), lay: func(t *testing.T, folder string) { add("b", "")(t, folder); add("a", "")(t, folder) }, reason: "files: a is not in the manifest"},
		"a file that is missing":     {files: without, reason: "files: redactions.jsonl is missing"},
		"what a Mac leaves":          {files: draw(), lay: add(".DS_Store", "x")},
		"what a Mac leaves in a folder": {files: draw(), lay: func(t *testing.T, folder string) {
			add("policies/.DS_Store", "x")(t, folder)
			add("._views", "")(t, folder)
		}},
		"what Windows leaves": {files: draw(), lay: add("views/Thumbs.db", "x")},
		"an empty folder":     {files: draw(), lay: func(t *testing.T, folder string) { must(0, os.Mkdir(filepath.Join(folder, "empty"), 0o700)) }},
	}
}

// A note is refused if a signature line of a trusted key is invalid, even if another line is
// valid. Signature lines of unknown keys are ignored.
func TestAFalseSignatureLineNextToAGoodOne(t *testing.T) { bothSay(t, falseSignatureLines()) }

func falseSignatureLines() map[string]altered {
	good := draw()["checkpoint.txt"]
	body, line, _ := bytes.Cut(good, []byte("\n\n"))
	_, false_, _ := bytes.Cut(must(checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: 3, Root: tree.Hash{1}}, key(2))), []byte("\n\n"))
	_, stranger, _ := bytes.Cut(must(checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: 3, Root: tree.Hash{1}}, key(7))), []byte("\n\n"))
	with := func(lines ...[]byte) altered {
		files := draw()
		files["checkpoint.txt"] = slices.Concat(body, []byte("\n\n"), slices.Concat(lines...))
		return altered{files: signedAnew(files, func(*bundle.Manifest) {}), reason: "checkpoint.txt: note"}
	}
	fine := func(lines ...[]byte) altered {
		a := with(lines...)
		a.reason = ""
		return a
	}
	return map[string]altered{
		"good and false":           with(line, false_),
		"false and good":           with(false_, line),
		"false alone":              with(false_),
		"good twice":               fine(line, line),
		"a stranger's after it":    fine(line, stranger),
		"a stranger's before it":   fine(stranger, line),
		"a stranger's alone":       with(stranger),
		"an empty line between":    with(line, []byte("\n"), line),
		"a line of another form":   with(line, []byte("— x y\n")),
		"a line without an end":    with(line, bytes.TrimSuffix(stranger, []byte("\n"))),
		"more lines than are read": with(line, bytes.Repeat(stranger, 100)),
	}
}
