// Package views makes tables, streams and a report from the events of a bundle, for people and
// for tools that read no bundle. An export contains some of them for convenience; the receiver
// of a bundle makes the same ones, byte for byte, from events that the receiver has verified.
// No view needs a key.
//
//	csv          decisions.csv, receipts.csv, population.csv
//	cloudevents  cloudevents.jsonl, a CloudEvent a line
//	ocsf         ocsf.jsonl, an OCSF event of the class API Activity a line
//	report       report.html, a page for people
//	dsse         dsse.jsonl, a DSSE envelope a line; not in exports
package views

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
)

// view is a file, or several, that is made of events.
type view interface {
	Add(forms.Event) error
	Close(bundle.Manifest) error
}

// makers has the constructor of each view.
var makers = map[string]func(origin string, create func(name string) io.Writer) view{
	"csv": func(_ string, create func(string) io.Writer) view { return newTables(create) },
	"cloudevents": func(origin string, create func(string) io.Writer) view {
		return lines{create("cloudevents.jsonl"), func(e forms.Event) (any, bool) {
			return forms.NewCloudEvent(origin, e.Event, forms.DataOf(e.Event)), true
		}}
	},
	"ocsf": func(_ string, create func(string) io.Writer) view {
		return lines{create("ocsf.jsonl"), func(e forms.Event) (any, bool) { return forms.OCSF(e), true }}
	},
	"dsse": func(_ string, create func(string) io.Writer) view {
		return lines{create("dsse.jsonl"), func(e forms.Event) (any, bool) { return forms.DSSE(e) }}
	},
	"report": func(_ string, create func(string) io.Writer) view {
		return &reporting{create("report.html"), map[string]int64{}, map[string]int64{}}
	},
}

// Exported names the views that an export contains.
var Exported = []string{"cloudevents", "csv", "ocsf", "report"}

// Names returns the names of all views.
func Names() []string { return slices.Sorted(maps.Keys(makers)) }

// lines is a view with a line of canonical JSON for each event that has one.
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

// Set is a set of views that are being made.
type Set struct {
	views  []view
	files  []io.WriteCloser
	origin string
}

// New begins the named views of a ledger's events. create makes a file.
func New(origin string, names []string, create func(name string) (io.WriteCloser, error)) (*Set, error) {
	s := &Set{origin: origin}
	var failed error
	for _, name := range names {
		construct := makers[name]
		if construct == nil {
			return nil, fmt.Errorf("there is no view %s", name)
		}
		s.views = append(s.views, construct(origin, func(name string) io.Writer {
			file, err := create(name)
			if err != nil {
				failed = errors.Join(failed, err)
				return io.Discard
			}
			s.files = append(s.files, file)
			return file
		}))
	}
	if failed != nil {
		s.closeFiles()
		return nil, failed
	}
	return s, nil
}

// Add adds an event whose payload the bundle shows, and the openings that the bundle has of it.
func (s *Set) Add(e bundle.Shows) error {
	opened, err := forms.NewEvent(s.origin, e.Event, e.Openings)
	if err != nil {
		return fmt.Errorf("read the payload of event %s: %w", e.ID, err)
	}
	for _, v := range s.views {
		if err := v.Add(opened); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the views.
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

// Make makes views from a bundle. It does not verify the bundle.
func Make(ctx context.Context, b *bundle.Bundle, names []string, create func(name string) (io.WriteCloser, error)) error {
	m, err := b.Manifest()
	if err != nil {
		return err
	}
	s, err := New(m.Origin, names, create)
	if err != nil {
		return err
	}
	for e, err := range b.Events(ctx) {
		if err == nil {
			err = s.Add(e)
		}
		if err != nil {
			return errors.Join(err, s.closeFiles())
		}
	}
	return s.Close(m)
}

// Different returns the names of the files in the folder views of a bundle that are not those
// that this program makes from its events: other text, missing, or unknown. A program of
// another version may have made other views, which the manifest's generator tells.
func Different(ctx context.Context, b *bundle.Bundle) ([]string, error) {
	m, err := b.Manifest()
	if err != nil {
		return nil, err
	}
	made := map[string]*sum{}
	if err := Make(ctx, b, Exported, func(name string) (io.WriteCloser, error) {
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

// sum is a file of which only the hash is kept.
type sum struct{ hash.Hash }

// Close implements io.Closer.
func (sum) Close() error { return nil }
