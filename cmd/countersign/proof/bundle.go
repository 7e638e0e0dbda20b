package proof

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/views"
	"github.com/countersign/countersign/policy/canon"
)

var gzipMagic = []byte{0x1f, 0x8b}

// openNamed opens the source that the user names. If it is a folder or a compressed file, it
// returns an export, otherwise the complete text of the file. The name "-" means standard input.
func openNamed(ctx context.Context, o *screen.Output, name string) (export *bundle.Bundle, text []byte, err error) {
	progress := func(text string) { o.Progress.Say("%s", text) }
	if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
		export, err = bundle.Open(ctx, name, progress)
		return export, nil, err
	}
	in, err := files.OpenInput(name)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	from := bufio.NewReader(in)
	if magic, _ := from.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) { // a shorter file is a text
		export, err = bundle.Unpack(ctx, from, progress)
		return export, nil, err
	}
	text, err = files.ReadAtMost(from, files.MaxInput)
	return nil, text, err
}

// exports verifies the named exports, offline. If two are named, it also checks whether the second
// starts where the first ends.
func (c *Verify) exports(ctx context.Context, o *screen.Output, first *bundle.Bundle, keys []bundle.Key) error {
	result, text, err := c.bundle(ctx, o, first, keys)
	if err != nil {
		return err
	}
	if c.Sample > 0 && result.Valid {
		return c.sample(ctx, o, first, result, text)
	}
	if len(c.Files) == 1 {
		return answer(o, result, text, result.Valid)
	}
	second, _, err := openNamed(ctx, o, c.Files[1])
	if err != nil {
		return err
	}
	if second == nil {
		return errors.New("two files can be compared only if both are exports; verify each record alone")
	}
	defer second.Close()
	next, more, err := c.bundle(ctx, o, second, keys)
	if err != nil {
		return err
	}
	both := joinedExports{Exports: []bundle.Result{result, next}}
	text += "\n" + more + "\n"
	if !result.Valid || !next.Valid {
		return answer(o, both, text+"NOT PROVEN  that the exports are joined, because they are not both valid\n", false)
	}
	if both.Joint, err = bundle.Join(ctx, first, second, result, next); err != nil {
		return err
	}
	for _, part := range []struct {
		word string
		said []string
	}{{"FALSE       ", both.False}, {"JOINED      ", both.Joined}, {"NOT JOINED  ", both.Apart}} {
		for _, said := range part.said {
			text += part.word + said + "\n"
		}
	}
	return answer(o, both, text, len(both.False) == 0 && len(both.Apart) == 0)
}

// joinedExports is the result for two exports.
type joinedExports struct {
	Exports []bundle.Result `json:"exports"`
	bundle.Joint
}

// answer prints a result. It returns ErrNo, which means exit code 1, if good is false.
func answer(o *screen.Output, result any, text string, good bool) error {
	if err := o.Result(result, o.Wrapped("%s", text)); err != nil {
		return err
	}
	if !good {
		return screen.ErrNo
	}
	return nil
}

// bundle verifies one export and updates the pin.
func (c *Verify) bundle(ctx context.Context, o *screen.Output, opened *bundle.Bundle, keys []bundle.Key) (result bundle.Result, text string, err error) {
	// Collect the trusted keys, the pin and the kept answers.
	trust := bundle.Trust{Keys: keys}
	if c.Pin != "" {
		if trust.Pin, err = readPin(c.Pin); err != nil {
			return result, "", err
		}
	}
	if c.With != "" {
		if info, err := os.Stat(c.With); err != nil || !info.IsDir() {
			return result, "", errors.New("--with must be a folder with the signed answers that you have kept")
		}
		trust.With = os.DirFS(c.With)
	}
	// Verify the bundle, its time stamp and its recall if it has them, and its views if --views is
	// set.
	if result, err = bundle.Verify(ctx, opened, trust, func(text string) { o.Progress.Say("%s", text) }); err != nil {
		return result, "", err
	}
	if err := c.stamped(opened, keys, &result); err != nil {
		return result, "", err
	}
	recalled, err := c.recalled(ctx, opened, &result)
	if err != nil {
		return result, "", err
	}
	said, err := c.views(ctx, opened, &result)
	if err != nil {
		return result, "", err
	}
	// Describe the result.
	text = fmt.Sprintf("VALID\n%d events of %s, checkpoint of %d events\nSEEN        %s %d %s\n", result.Events, result.Tenant, result.Size,
		result.Tenant, result.Last.Sequence, result.Last.Hash)
	if result.Filters != (bundle.Filters{}) {
		filters, err := canon.Marshal(result.Filters)
		if err != nil {
			return result, "", err
		}
		text += "FILTERS     " + words.Visible(string(filters)) + "\n"
	}
	for _, proven := range result.Proven {
		text += "PROVEN      " + proven + "\n"
	}
	for _, stated := range result.Stated {
		text += "STATED      " + stated + "\n"
	}
	if !result.Valid {
		text = "NOT VALID\nFALSE       " + result.Reason + "\n" + inWords(result.Reason)
	}
	text += recalled + said
	for _, gap := range append(result.Gaps, bundle.Unprovable...) {
		text += "NOT PROVEN  " + gap + "\n"
	}
	// Update the pin file if the checkpoint continues the pin.
	if result.Pin != nil {
		err = files.Replace(c.Pin, result.Pin)
	}
	return result, text, err
}

// views compares the views of an export with views that are made from its events, if --views is
// set. A difference makes the result not valid.
func (c *Verify) views(ctx context.Context, opened *bundle.Bundle, result *bundle.Result) (text string, err error) {
	if !c.Views || !result.Valid {
		return "VIEWS not checked: of views/, pack/, keys.jsonl, VERIFY.md and verify.py it is only known that they are the files the manifest names\n", nil
	}
	different, err := views.Different(ctx, opened)
	if err != nil {
		return "", err
	}
	if len(different) == 0 {
		result.Views = "same"
		return "VIEWS checked: they are what this program makes from the events\n", nil
	}
	m, err := opened.Manifest()
	if err != nil {
		return "", err
	}
	result.Valid, result.Views, result.Reason, result.Pin = false, "different", "views: "+bundle.Shown(different[0])+" is not what this program makes from the events", nil
	for _, name := range different {
		text += "VIEW DIFFERS  " + bundle.Shown(name) + "\n"
	}
	return fmt.Sprintf("%sVIEWS        the export was made by %q: a program of another version may make other views; the events are verified (make the views yourself: countersign views)\n", text, m.Generator), nil
}

// readPin reads the checkpoint that the user has stored. A missing file is an error, because a
// mistyped name must not be treated as a first verification.
func readPin(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("--pin: there is no such file; make it with countersign pin https://... --pin FILE, or name the one you have")
	}
	return text, err
}

// inWords explains why an export does not match the pin, or the answers that the user has stored.
// It returns "" for other reasons.
func inWords(reason string) string {
	switch {
	case strings.HasPrefix(reason, "pin: ROLLBACK: "):
		return "ROLLBACK    The export says that the history of this tenant, or a series of it, ends before an event that you have seen.\n" +
			"            If it is an old export, ask for a new one. If it is new, events were taken away: keep it and your pin, and show both to the operator of the service.\n"
	case reason == "pin: ROLLBACK":
		return "ROLLBACK    You have seen more events of this ledger than this checkpoint covers.\n" +
			"            If the checkpoint is only older than your pin, nothing is wrong: ask for a new export, and never replace the pin by hand.\n" +
			"            If history was taken back, the newest checkpoint of the service (countersign pin https://...) is older than your pin, too: show both to the operator of the service.\n"
	case strings.HasPrefix(reason, "with: "):
		return "KEPT        You have a record, signed by the service, that this export must contain and does not contain: show both to the operator of the service.\n" +
			"            A decision from before an erasure of its agent is under an earlier data key, which an export of the agent alone does not cover: compare it with an export of the whole history.\n"
	case strings.HasPrefix(reason, "pin: FORK"):
		return "FORK        This is another history than the one your pin knows: the service has shown two histories. Keep both, and show them to the operator of the service.\n"
	}
	return ""
}
