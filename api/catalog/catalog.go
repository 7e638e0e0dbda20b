// Package catalog reads the catalogue of products: catalog.json, and the files that buyers of
// one-time products download. The catalogue is the only source of these prices.
//
//	{"products": [
//	  {"slug": "kit", "name": "Kit", "description": "What it is and for whom.", "kind": "one_time",
//	   "priceCents": 100, "deliverable": "ZIP archive: …", "file": "files/kit"},
//	  {"slug": "pass", "name": "Pass", "description": "…", "kind": "subscription",
//	   "priceCents": 2900, "deliverable": "$35 of credit per paid month.", "creditCents": 3500},
//	  {"slug": "team", "name": "Team", "description": "…", "kind": "subscription",
//	   "priceCents": 9900, "deliverable": "An organization.", "plan": "team"}
//	]}
//
// The path in file is relative to the catalogue. It names a file, or a folder, which becomes a ZIP
// archive. The archive of the same files always has the same bytes. Subscriptions are paid
// monthly.
package catalog

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/canon"
)

//go:embed catalog.json all:files
var embedded embed.FS

const (
	maxCatalog = 1 << 20  // bytes of catalog.json
	maxFile    = 16 << 20 // bytes of a product's file; every file is kept in memory
	maxText    = 1000     // characters of a description
	minPrice   = 50       // cents; the minimum of the checkout provider
	maxPrice   = 99_999_999
)

var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// stored is the format of catalog.json.
type stored struct {
	Products []product `json:"products"`
}

type product struct {
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Kind        string `json:"kind"`
	PriceCents  int64  `json:"priceCents"`
	Deliverable string `json:"deliverable"`
	Plan        string `json:"plan,omitempty"`
	CreditCents int64  `json:"creditCents,omitzero"`
	File        string `json:"file,omitempty"`
}

// Default returns the built-in catalogue. Its verification kit contains the same verifier as every
// bundle, so that auditors do not have to take the verifier from the party that they audit.
func Default() ([]store.Product, error) {
	return read(source{embedded, map[string][]byte{"files/verification-kit/verify.py": bundle.VerifierPy}}, "catalog.json")
}

// source gives access to a catalogue and the files of its products.
type source struct {
	fs.FS
	more map[string][]byte // content of files that other packages embed, by path
}

// Load reads a catalogue file. Its errors name the product and the invalid member.
func Load(name string) ([]store.Product, error) {
	root, err := os.OpenRoot(filepath.Dir(name)) // os.Root keeps the files of products inside the catalogue's folder
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer root.Close()
	return read(source{FS: root.FS()}, filepath.Base(name))
}

func read(files source, name string) ([]store.Product, error) {
	text, err := readFile(files, name, maxCatalog)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	var s stored
	if err := canon.Decode(text, &s); err != nil {
		var where string
		var refused *canon.Error
		if errors.As(err, &refused) && refused.Path != "" {
			where = refused.Path + ": "
		}
		return nil, fmt.Errorf("read the catalogue: %s%w", where, err)
	}
	list := []store.Product{}
	for i, p := range s.Products {
		made, err := p.read(files)
		if err == nil && slices.ContainsFunc(list, func(other store.Product) bool { return other.Slug == p.Slug }) {
			err = errors.New("slug must be different from that of every other product")
		}
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: /products/%d (%q): %w", i, p.Slug, err)
		}
		list = append(list, made)
	}
	return list, nil
}

// read validates one product and reads its file.
func (p product) read(files source) (store.Product, error) {
	if err := p.check(); err != nil {
		return store.Product{}, err
	}
	made := store.Product{Slug: p.Slug, Name: p.Name, Description: p.Description, Kind: p.Kind,
		PriceCents: p.PriceCents, Deliverable: p.Deliverable, Plan: p.Plan, CreditCents: p.CreditCents}
	if p.File == "" {
		return made, nil
	}
	info, err := fs.Stat(files, p.File)
	if err == nil && info.IsDir() {
		made.FileName = path.Base(p.File) + ".zip"
		made.Content, err = archive(files, p.File)
	} else if err == nil {
		made.FileName = path.Base(p.File)
		made.Content, err = readFile(files, p.File, maxFile)
	}
	if err == nil && len(made.Content) == 0 {
		err = errors.New("the catalogue has no products")
	}
	if err != nil {
		return made, fmt.Errorf("file: %w", err)
	}
	return made, nil
}

func (p product) check() error {
	oneTime := p.Kind == store.OneTime
	switch {
	case !slug.MatchString(p.Slug) || len(p.Slug) > 64:
		return errors.New("slug must have at most 64 lower-case letters and digits, with single dashes between them")
	case p.Name == "" || len(p.Name) > 100:
		return errors.New("name must have 1 to 100 characters")
	case p.Description == "" || len(p.Description) > maxText:
		return errors.New("description must have 1 to 1000 characters")
	case p.Deliverable == "" || len(p.Deliverable) > maxText:
		return errors.New("deliverable must have 1 to 1000 characters")
	case !oneTime && p.Kind != store.Subscription:
		return errors.New("kind must be one_time or subscription")
	case p.PriceCents < minPrice || p.PriceCents > maxPrice:
		return errors.New("priceCents must be from 50 to 99999999")
	case oneTime != (p.File != ""):
		return errors.New("file must be set for a one-time product and absent for a subscription")
	case p.File != "" && !fs.ValidPath(p.File):
		return errors.New("file must be a path relative to the catalogue, with / as separator")
	case p.Plan != "" && (oneTime || p.Plan != organizations.PlanTeam && p.Plan != organizations.PlanBusiness):
		return errors.New("plan must be team or business, and is allowed only for a subscription")
	case p.CreditCents < 0 || p.CreditCents > maxPrice || p.CreditCents > 0 && oneTime:
		return errors.New("creditCents must be from 1 to 99999999, and is allowed only for a subscription")
	}
	return nil
}

func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return text, err
}

// firstDay is the earliest time that a ZIP archive can contain. Some unpacking programs refuse a
// missing time.
var firstDay = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// archive packs a folder as ZIP. Files are sorted by name and all have the same time, so that the
// same files give the same bytes.
func archive(files source, folder string) ([]byte, error) {
	var names []string
	for name := range files.more {
		if strings.HasPrefix(name, folder+"/") {
			names = append(names, name)
		}
	}
	err := fs.WalkDir(files, folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range names {
		text, ours := files.more[name]
		if !ours {
			if text, err = readFile(files, name, maxFile); err != nil {
				return nil, err
			}
		}
		entry, err := w.CreateHeader(&zip.FileHeader{Name: path.Join(path.Base(folder), name[len(folder)+1:]), Method: zip.Deflate, Modified: firstDay})
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(text); err != nil {
			return nil, err
		}
		if packed.Len() > maxFile {
			return nil, fmt.Errorf("%s is larger than %d bytes", folder, maxFile)
		}
	}
	err = w.Close()
	return packed.Bytes(), err
}
