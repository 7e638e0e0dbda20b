package bundle

import (
	"archive/tar"
	"bytes"
	"testing"
)

// A file of 8 GiB or more can be packed. The archive format of smaller files never changes.
func TestFilesOfEverySizeAreArchived(t *testing.T) {
	for _, c := range []struct {
		size int64
		form tar.Format
	}{{0, tar.FormatUSTAR}, {8<<30 - 1, tar.FormatUSTAR}, {8 << 30, tar.FormatPAX}, {maxFile, tar.FormatPAX}} {
		var got, always bytes.Buffer
		if err := tar.NewWriter(&got).WriteHeader(archived("events.jsonl", c.size)); err != nil {
			t.Errorf("%d octets: %v", c.size, err)
			continue
		}
		h, err := tar.NewReader(bytes.NewReader(got.Bytes())).Next()
		if err != nil || h.Size != c.size || h.Format != c.form || h.Name != "export/events.jsonl" {
			t.Errorf("%d octets are read as %+v, %v", c.size, h, err)
		}
		if c.form == tar.FormatUSTAR {
			header := *archived("events.jsonl", c.size)
			header.Format = tar.FormatUSTAR
			if err := tar.NewWriter(&always).WriteHeader(&header); err != nil || !bytes.Equal(got.Bytes(), always.Bytes()) {
				t.Errorf("%d octets: another header, %v", c.size, err)
			}
		}
	}
}
