package proof

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/ledger/tree"
)

// stamped adds to the result what the time stamp of an export shows: the time before which the
// stamped events existed. A stamp that shows nothing adds a gap; the export stays valid. If the
// export has no stamp, stamped changes nothing.
func (c *Verify) stamped(opened *bundle.Bundle, keys []bundle.Key, result *bundle.Result) error {
	roots, err := c.roots()
	if err != nil || !result.Valid {
		return err
	}
	m, err := opened.Manifest()
	if err != nil || m.Files[bundle.StampFile] == "" {
		return err
	}
	says, err := readStamp(opened, m, headKeysOf(keys), roots)
	var no noStamp
	switch {
	case errors.As(err, &no):
		result.Gaps = append(result.Gaps, "anything by the time stamp: "+no.Error())
		return nil
	case err != nil:
		return err
	}
	result.Stated = append(result.Stated, says)
	return nil
}

// noStamp is the reason why a time stamp shows nothing.
type noStamp struct{ error }

// roots reads the certificates of --tsa-ca. It returns nil if there are none.
func (c *Verify) roots() (*x509.CertPool, error) {
	if c.TSACA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.TSACA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("--tsa-ca must be a file with certificates in PEM")
	}
	return roots, nil
}

// readStamp checks that a checkpoint key signed the stamped note, that the tree of the export
// extends its tree, and that the stamp is of the note.
func readStamp(opened *bundle.Bundle, m bundle.Manifest, keys headKeys, roots *x509.CertPool) (says string, err error) {
	var texts [3][]byte
	for i, name := range []string{bundle.StampedFile, bundle.StampFile, "checkpoint.txt"} {
		if texts[i], err = opened.Text(name); err != nil {
			return "", err
		}
	}
	var heads [2]checkpoint.Checkpoint
	for i, text := range [][]byte{texts[0], texts[2]} {
		claimed, _ := checkpoint.Parse(text) // Open reports an unreadable note
		if heads[i], err = checkpoint.Open(text, m.Origin, keys.at(m.Partition, claimed.Size)...); err != nil {
			return "", noStamp{errors.New("no checkpoint key that you trust has signed its note")}
		}
	}
	no, err := refuses(heads[0], heads[1], func(from, _ int64) ([]tree.Hash, error) { return provenIn(opened, from) })
	if err == nil && no != "" {
		err = errors.New("its note is of another history")
	}
	if err != nil {
		return "", noStamp{err}
	}
	stamp, err := timestamp.Parse(texts[1], texts[0])
	if err != nil {
		return "", noStamp{err}
	}
	issued := "its certificate is not checked: name the root certificate with --tsa-ca"
	if roots != nil {
		if err := stamp.Chain(roots); err != nil {
			return "", noStamp{fmt.Errorf("its certificate: %w", err)}
		}
		issued = "a root certificate of --tsa-ca has issued its certificate"
	}
	return fmt.Sprintf("the events up to position %d existed before %s, according to the time-stamp authority %s (%s)",
		heads[0].Size, stamp.Time.UTC().Format(time.RFC3339), words.Visible(stamp.Authority), issued), nil
}

// provenIn returns the proof of an export that its tree extends the tree of a size.
func provenIn(opened *bundle.Bundle, from int64) ([]tree.Hash, error) {
	proven, err := opened.Text(bundle.ConsistencyFile)
	if err != nil {
		return nil, err
	}
	line := consistencyLine(proven, from)
	if line == nil {
		return nil, errors.New("the export has no proof that its tree extends the stamped one")
	}
	return readHashes(line)
}
