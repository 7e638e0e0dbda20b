// Package views creates tables, streams and pages from the events of a bundle, for people and for
// tools that cannot read bundles. An export contains some of them for convenience. The recipient
// of a bundle can create the same files, byte for byte, from verified events. No view needs a
// signing key.
//
//	csv          decisions.csv, receipts.csv, population.csv
//	cloudevents  cloudevents.jsonl, one CloudEvent per line
//	ocsf         ocsf.jsonl, one OCSF event of the class API Activity per line
//	report       report.html, a page for people
//	statement    statement.html, a page, only for an export with a statement
//	dispute      dispute.html, a page, only for a dispute pack, which has no other view
//
// Exports do not contain the following views; only the recipient creates them. Views of proofs
// need the checkpoint keys that the recipient trusts:
//
//	dsse         dsse.jsonl, one DSSE envelope per line
//	tlog-proof   tlog-policy.txt, and POSITION.tlog-proof for each event with a proof
//	cose         POSITION.cose, a receipt for each event with a proof
package views

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
)

// view writes one or several files from events.
type view interface {
	Add(forms.Event) error
	Close(bundle.Manifest) error
}

// makers maps the name of each view to its constructor.
var makers = map[string]func(*Set) (view, error){
	"csv": func(s *Set) (view, error) { return newTables(s.file), nil },
	"cloudevents": func(s *Set) (view, error) {
		return lines{s.file("cloudevents.jsonl"), func(e forms.Event) (any, bool) {
			return forms.NewCloudEvent(s.Origin, e.Event, forms.DataOf(e.Event)), true
		}}, nil
	},
	"ocsf": func(s *Set) (view, error) {
		return lines{s.file("ocsf.jsonl"), func(e forms.Event) (any, bool) { return forms.OCSF(e), true }}, nil
	},
	"dsse": func(s *Set) (view, error) {
		return lines{s.file("dsse.jsonl"), func(e forms.Event) (any, bool) { return forms.DSSE(e) }}, nil
	},
	"report": func(s *Set) (view, error) {
		return &reporting{to: s.file("report.html"), types: map[string]int64{}, totals: map[string]int64{}}, nil
	},
	"statement": func(s *Set) (view, error) { return &stating{to: s.file("statement.html")}, nil },
	"dispute":   func(s *Set) (view, error) { return &disputing{s.file("dispute.html"), disputeStages()}, nil },
	"tlog-proof": func(s *Set) (view, error) {
		if !s.canProve() {
			return nil, errNoProofs
		}
		return proofs{s, "tlog-proof", func(e forms.Event) ([]byte, error) { return forms.TLogProof(e.Position, e.Proof, s.Note), nil }},
			s.put("tlog-policy.txt", forms.TLogPolicy(s.Origin, s.Keys))
	},
	"cose": func(s *Set) (view, error) {
		if !s.canProve() {
			return nil, errNoProofs
		}
		receipts := sync.OnceValues(func() (checkpoint.Receipts, error) { return checkpoint.NewReceipts(s.Note, s.Keys...) })
		return proofs{s, "cose", func(e forms.Event) ([]byte, error) {
			r, err := receipts()
			if err != nil {
				return nil, err
			}
			return r.Of(e.Position, e.Proof), nil
		}}, nil
	},
}

var errNoProofs = errors.New("the views tlog-proof and cose need the checkpoint keys that you trust (--keys), and an export that a checkpoint covers")

// Exported names the views that an export with this manifest contains.
func Exported(m bundle.Manifest) []string {
	names := []string{"cloudevents", "csv", "ocsf", "report"}
	switch {
	case m.Dispute != nil:
		return []string{"dispute"}
	case m.Statement != nil:
		return append(names, "statement")
	}
	return names
}

// Names lists the views that can be created from every export.
func Names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(makers)), func(name string) bool { return name == "dispute" || name == "statement" })
}

// proofs writes a file for each event that has a proof.
type proofs struct {
	set  *Set
	ext  string
	form func(forms.Event) ([]byte, error)
}

// Add implements view.
func (p proofs) Add(e forms.Event) error {
	if !e.Proven {
		return nil
	}
	text, err := p.form(e)
	if err != nil {
		return err
	}
	return p.set.put(fmt.Sprintf("%d.%s", e.Position, p.ext), text)
}

// Close implements view.
func (proofs) Close(bundle.Manifest) error { return nil }

// lines writes a line of canonical JSON for each event for which form returns true.
type lines struct {
	to   io.Writer
	form func(forms.Event) (line any, ok bool)
}

// Add implements view.
func (l lines) Add(e forms.Event) error {
	value, ok := l.form(e)
	if !ok {
		return nil
	}
	line, err := canon.Marshal(value)
	if err != nil {
		return err
	}
	_, err = l.to.Write(append(line, '\n'))
	return err
}

// Close implements view.
func (lines) Close(bundle.Manifest) error { return nil }

// Source contains the data, besides events, that views need.
type Source struct {
	Origin string              // origin of the ledger
	Note   []byte              // checkpoint to which the proofs lead; nil if there is none
	Keys   []ed25519.PublicKey // checkpoint keys that the recipient trusts
}

func (s Source) canProve() bool { return len(s.Keys) > 0 && s.Note != nil }

// Set is a set of views that are being written.
type Set struct {
	Source
	create func(name string) (io.WriteCloser, error)
	views  []view
	files  []io.WriteCloser
	failed error // errors of create
}

// New starts the named views. create creates a file.
func New(from Source, names []string, create func(name string) (io.WriteCloser, error)) (*Set, error) {
	s := &Set{Source: from, create: create}
	for _, name := range names {
		construct := makers[name]
		if construct == nil {
			return nil, errors.Join(fmt.Errorf("there is no view %s", name), s.closeFiles())
		}
		v, err := construct(s)
		if err = errors.Join(err, s.failed); err != nil {
			return nil, errors.Join(err, s.closeFiles())
		}
		s.views = append(s.views, v)
	}
	return s, nil
}

// file creates a file that Close will close.
func (s *Set) file(name string) io.Writer {
	file, err := s.create(name)
	if err != nil {
		s.failed = errors.Join(s.failed, err)
		return io.Discard
	}
	s.files = append(s.files, file)
	return file
}

// put writes a complete file.
func (s *Set) put(name string, text []byte) error {
	file, err := s.create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// Add adds an event whose payload the bundle shows, with its openings in the bundle. It returns the
// event as the views read it, so that the caller need not parse the record again.
func (s *Set) Add(e bundle.Shows) (forms.Event, error) {
	opened, err := forms.NewEvent(s.Origin, e)
	if err != nil {
		return opened, fmt.Errorf("read the payload of event %s: %w", e.ID, err)
	}
	for _, v := range s.views {
		if err := v.Add(opened); err != nil {
			return opened, err
		}
	}
	return opened, nil
}

// Close completes the views and closes their files.
func (s *Set) Close(m bundle.Manifest) (err error) {
	for _, v := range s.views {
		err = errors.Join(err, v.Close(m))
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Set) closeFiles() (err error) {
	for _, file := range s.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// Make creates views from a bundle, which it does not verify. keys are the checkpoint keys that
// the recipient trusts.
func Make(ctx context.Context, b *bundle.Bundle, keys []ed25519.PublicKey, names []string, create func(name string) (io.WriteCloser, error)) error {
	m, err := b.Manifest()
	if err != nil {
		return err
	}
	note, err := b.Text("checkpoint.txt")
	if err != nil {
		return err
	}
	s, err := New(Source{m.Origin, note, keys}, names, create)
	if err != nil {
		return err
	}
	for e, err := range b.Events(ctx) {
		if err == nil {
			_, err = s.Add(e)
		}
		if err != nil {
			return errors.Join(err, s.closeFiles())
		}
	}
	return s.Close(m)
}

// Different returns the files in the bundle's folder "views" that are not the same as those that
// this program creates from the events: files with other content, missing files and unknown files.
// Another version of the program may create other views; the member generator of the manifest
// names the version.
func Different(ctx context.Context, b *bundle.Bundle) ([]string, error) {
	m, err := b.Manifest()
	if err != nil {
		return nil, err
	}
	made := map[string]*sum{}
	if err := Make(ctx, b, nil, Exported(m), func(name string) (io.WriteCloser, error) {
		made["views/"+name] = &sum{sha256.New()}
		return made["views/"+name], nil
	}); err != nil {
		return nil, err
	}
	var different []string
	for name, s := range made {
		if m.Files[name] != hex.EncodeToString(s.Hash.Sum(nil)) {
			different = append(different, name)
		}
	}
	for name := range m.Files {
		if strings.HasPrefix(name, "views/") && made[name] == nil {
			different = append(different, name)
		}
	}
	slices.Sort(different)
	return different, nil
}

// sum is a file that keeps only the hash of its content.
type sum struct{ hash.Hash }

// Close implements io.Closer.
func (sum) Close() error { return nil }
