package proof

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/views"
)

// Views makes tables, streams and a report from the events of an export, offline.
type Views struct {
	Export string   `arg:"" help:"The export (folder or .tar.gz)."`
	Out    string   `help:"Folder to write, which must be empty or not exist." default:"views" placeholder:"FOLDER"`
	Form   []string `help:"Forms to write: ${viewForms}. Default: the forms in the export, and dsse. The forms of proofs (tlog-proof, cose) write a file for each event and need --keys." placeholder:"FORM"`
	setting.TrustedKeys
}

// madeViews is the result of views.
type madeViews struct {
	Files    []string `json:"files"`
	Verified bool     `json:"verified"`
	Tenant   string   `json:"tenant"`
}

// Run verifies the export, if keys are given, and writes the views.
func (c *Views) Run(ctx context.Context, o *screen.Output) error {
	export, _, err := openNamed(ctx, o, c.Export)
	if err != nil {
		return err
	}
	if export == nil {
		return errors.New("the argument must be an export: a folder or .tar.gz file that countersign export wrote")
	}
	defer export.Close()
	// Choose the forms and check that each is known.
	m, err := export.Manifest()
	if err != nil {
		return err
	}
	exported := views.Exported(m)
	if len(c.Form) == 0 {
		c.Form = append(exported, "dsse")
	}
	allowed := slices.Compact(slices.Sorted(slices.Values(append(views.Names(), exported...))))
	for _, form := range c.Form {
		if !slices.Contains(allowed, form) {
			return fmt.Errorf("--form must be one of %s", strings.Join(allowed, ", "))
		}
	}
	// With keys, verify the export first. For an export that is not valid, write no views.
	made := madeViews{Files: []string{}, Tenant: m.Tenant}
	var heads []ed25519.PublicKey
	if c.Keys != "" || len(c.Key) > 0 {
		keys, err := c.Trusted()
		if err != nil {
			return err
		}
		result, err := bundle.Verify(ctx, export, bundle.Trust{Keys: keys}, func(text string) { o.Progress.Say("%s", text) })
		if err != nil {
			return err
		}
		if !result.Valid {
			return answer(o, result, "NOT VALID   no view was made\nFALSE       "+result.Reason+"\n", false)
		}
		made.Verified = true
		heads = headKeysOf(keys).at(m.Partition, result.Size)
	}
	// Write the views.
	if err := c.write(ctx, export, heads, &made); err != nil {
		return err
	}
	text := "NOT VERIFIED  no keys were given: what the views say is not checked (countersign verify, or --keys here)\n"
	if made.Verified {
		text = "VERIFIED      the views are made from events that were verified; they are no evidence themselves\n"
	}
	return o.Made(made, strings.Join(made.Files, "\n"), o.Wrapped("%s", text))
}

// write writes the views into a folder. It refuses a folder inside the export, because a file that
// the manifest does not list makes an export invalid.
func (c *Views) write(ctx context.Context, export *bundle.Bundle, heads []ed25519.PublicKey, made *madeViews) error {
	out, err := filepath.Abs(c.Out)
	if err != nil {
		return err
	}
	from, err := filepath.Abs(c.Export)
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(from, out); err == nil && filepath.IsLocal(inside) {
		return errors.New("--out must be outside of the export")
	}
	if err := os.MkdirAll(out, 0o700); err != nil {
		return err
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		return errors.Join(err, errors.New("--out must be an empty folder, or one that does not exist"))
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close()
	return views.Make(ctx, export, heads, c.Form, func(name string) (io.WriteCloser, error) {
		made.Files = append(made.Files, filepath.Join(c.Out, name))
		return root.Create(name)
	})
}
