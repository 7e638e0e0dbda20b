package web

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// verifyPage is a record that is checked by the service itself: the way without
// scripts. With them the page checks in the browser, and asks nobody.
type verifyPage struct {
	Text    string
	Problem string
	Found   *seal.Examination
}

func showVerify(*Handler, *visit) (view, error) {
	return view{template: "verify.html", data: verifyPage{}}, nil
}

func postVerify(s *Handler, v *visit) (view, error) {
	page := verifyPage{Text: v.form.Get("record")}
	text := oneDocument(page.Text)
	found, err := s.Examine(v.request, text)
	if err == nil {
		page.Found = &found
		return view{template: "verify.html", data: page}, nil
	}
	var refused *policy.Error
	if !errors.As(err, &refused) {
		return view{}, err
	}
	shows, _ := s.because(v, view{template: "verify.html"}, err)
	page.Problem = refused.Message
	shows.data = page
	return shows, nil
}

// oneDocument makes a list of JSON lines, as they are downloaded, one document.
func oneDocument(text string) []byte {
	lines := bytes.Split(bytes.TrimSpace([]byte(text)), []byte("\n"))
	for _, line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 0 || canon.Check(line) != nil {
			return []byte(strings.TrimSpace(text))
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join([][]byte{[]byte("["), bytes.Join(lines, []byte(",")), []byte("]")}, nil)
}

// ledgerPage is the state of the ledger as anybody may know it.
type ledgerPage struct {
	Head       int64
	Checkpoint *checkpointShown
	Check      ledger.SelfCheck // its last verification of itself
	State      ledger.Condition
	Keys       []ledgerKey
}

// ledgerKey is a public key and where in the ledger it is good.
type ledgerKey struct {
	ID       string
	From, To int64 // To 0: still
}

func showLedger(s *Handler, v *visit) (view, error) {
	ctx := v.request.Context()
	page := ledgerPage{Checkpoint: s.newestCheckpoint()}
	var err error
	if page.Head, err = s.app.Ledger.Total(ctx); err != nil {
		return view{}, ground.Unreadable(err)
	}
	rings, err := s.app.Ledger.Keyrings(ctx)
	page.Check, page.State = s.app.Ledger.LastCheck(), s.app.Ledger.Condition()
	switch {
	case errors.Is(err, ledger.ErrTampered): // which is what the page has to say
		return view{template: "ledger.html", data: page}, nil
	case err != nil:
		return view{}, ground.Unreadable(err)
	}
	for id, k := range rings[0] { // the other partitions repeat them, at positions of their own
		if k.Purpose == ledger.PurposeRecord {
			page.Keys = append(page.Keys, ledgerKey{id, k.From, k.To})
		}
	}
	slices.SortFunc(page.Keys, func(a, b ledgerKey) int { return cmp.Compare(b.From, a.From) })
	return view{template: "ledger.html", data: page}, nil
}
