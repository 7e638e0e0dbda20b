package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Folder is a bundle that is being written. It hashes each file while writing it, so no file must
// fit in memory.
type Folder struct {
	path  string
	Files map[string]string // SHA-256 of each file by name
}

// NewFolder starts a bundle in an empty folder.
func NewFolder(path string) *Folder { return &Folder{path, map[string]string{}} }

// File is a file of a Folder that is being written. Close adds its hash to Files.
type File struct {
	folder *Folder
	name   string
	file   *os.File
	buffer *bufio.Writer
	hash   hash.Hash
}

// Create starts a file. name is its name in the bundle.
func (f *Folder) Create(name string) (*File, error) {
	path := filepath.Join(f.path, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	w := &File{f, name, file, nil, sha256.New()}
	w.buffer = bufio.NewWriterSize(io.MultiWriter(file, w.hash), 64<<10)
	return w, nil
}

// Write implements io.Writer.
func (w *File) Write(b []byte) (int, error) { return w.buffer.Write(b) }

// Close completes the file.
func (w *File) Close() error {
	err := errors.Join(w.buffer.Flush(), w.file.Close())
	w.folder.Files[w.name] = hex.EncodeToString(w.hash.Sum(nil))
	if err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	return nil
}

// Put writes a complete file.
func (f *Folder) Put(name string, text []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Close())
}

// Pack writes the folder as a tar.gz whose bytes depend only on the files: names are sorted, all
// times are equal, and no owner is stored.
func (f *Folder) Pack(to io.Writer) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	var names []string
	err := filepath.WalkDir(f.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, path := range names {
		if err := f.pack(archive, path); err != nil {
			return err // closing archive and compressed would return the same error
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// epoch is the modification time of every file in an archive.
var epoch = time.Unix(0, 0).UTC()

func (f *Folder) pack(archive *tar.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(f.path, path)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(archived(name, info.Size())); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

// archived returns the tar header of a file. Package tar encodes it as USTAR, or as PAX if the
// file has 8 GiB or more, which USTAR cannot express.
func archived(name string, size int64) *tar.Header {
	return &tar.Header{Name: "export/" + filepath.ToSlash(name), Mode: 0o644, Size: size, ModTime: epoch}
}

// These limits apply when a bundle is read, because its sender may be an attacker.
const (
	maxFile   = 64 << 30 // largest unpacked size of an archive in bytes
	maxRatio  = 100      // largest ratio of unpacked to packed bytes, beyond freeRatio bytes; exports have about 5, a decompression bomb has 1000
	maxFiles  = 100_000
	freeRatio = 64 << 20
	maxText   = 64 << 20 // largest file that is read as a whole, in bytes
	maxLine   = 16 << 20
)

// Bundle is an export that is open for reading. Its files are on disk and only their names in
// memory, unless UnpackInMemory has read it.
type Bundle struct {
	files     source
	names     map[string]bool
	temporary string // folder to remove on Close; empty if the bundle was not unpacked
}

// Open opens a bundle, which is a folder or a tar.gz for Unpack.
func Open(ctx context.Context, path string, progress Progress) (*Bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openFolder(&Bundle{names: map[string]bool{}}, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Unpack(ctx, file, progress)
}

// Unpack unpacks the tar.gz of an export, as Pack writes it, into a temporary folder, and opens
// that folder. Close of the bundle removes the folder. If unpacking fails or ctx ends, Unpack
// removes it.
func Unpack(ctx context.Context, packed io.Reader, progress Progress) (*Bundle, error) {
	b := &Bundle{names: map[string]bool{}}
	var err error
	if b.temporary, err = os.MkdirTemp("", "countersign-bundle-*"); err != nil {
		return nil, err
	}
	if err := unpackInto(ctx, packed, b.temporary, progress); err != nil {
		b.Close()
		return nil, err
	}
	return openFolder(b, b.temporary)
}

func openFolder(b *Bundle, path string) (_ *Bundle, err error) {
	root, err := os.OpenRoot(path)
	if err == nil {
		b.files = onDisk{root}
		err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if !d.Type().IsRegular() {
				return fmt.Errorf("%s is a link or a device: unpack the export again (tar xzf)", Shown(name))
			}
			if len(b.names) == maxFiles {
				return errors.New("the bundle has too many files")
			}
			b.names[name] = true
			return nil
		})
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close closes the bundle, and removes the folder into which it was unpacked, if any.
func (b *Bundle) Close() {
	if b.files != nil {
		_ = b.files.Close()
	}
	if b.temporary != "" {
		_ = os.RemoveAll(b.temporary)
	}
}

// Text returns the content of a small file, or nil if the bundle has no such file.
func (b *Bundle) Text(name string) ([]byte, error) {
	if !b.names[name] {
		return nil, nil
	}
	file, _, err := b.files.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("%s is too large", name)
	}
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// sum returns the SHA-256 of a file in hex.
func (b *Bundle) sum(ctx context.Context, name string, progress Progress) (string, error) {
	file, _, err := b.files.open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	_, err = io.Copy(h, &watched{ctx: ctx, from: file, progress: progress, doing: "read " + name + ":"})
	return hex.EncodeToString(h.Sum(nil)), err
}

// lines calls line for each line of a file, without its line feed. n counts from 1. If the file
// does not end in a line feed, lines returns false and calls line for no line at all. Of a line
// longer than maxLine, line gets only the beginning.
func (b *Bundle) lines(ctx context.Context, name string, line func(n int, text []byte) error) (ended bool, err error) {
	if !b.names[name] {
		return true, nil
	}
	file, size, err := b.files.open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if size == 0 {
		return true, nil
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], size-1); err != nil || last[0] != '\n' {
		return false, err
	}
	from := bufio.NewReaderSize(&watched{ctx: ctx, from: file}, 64<<10)
	var text []byte
	for n := 1; ; n++ {
		if text, err = readLine(from, text[:0]); errors.Is(err, io.EOF) {
			return true, nil
		} else if err != nil {
			return true, err
		}
		if err := line(n, text); err != nil {
			return true, err
		}
	}
}

// readLine appends the next line to text, without its line feed.
func readLine(from *bufio.Reader, text []byte) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full {
			return text, err
		}
		if !full {
			part = part[:len(part)-1]
		}
		if len(text) <= maxLine {
			text = append(text, part...)
		}
		if !full {
			return text, nil
		}
	}
}

// Progress is called from time to time during a long step, with a text about the progress. It may
// be nil.
type Progress func(text string)

// watched is a reader that reports its progress and fails once ctx has ended.
type watched struct {
	ctx         context.Context // context of this one reading
	from        io.Reader
	read, heard int64 // bytes read, and bytes reported to progress
	progress    Progress
	doing       string
}

const heardEvery = 16 << 20

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.from.Read(p)
	if w.read += int64(n); w.progress != nil && w.read-w.heard >= heardEvery {
		w.heard = w.read
		w.progress(fmt.Sprintf("%s %d MiB", w.doing, w.read>>20))
	}
	return n, err
}

// bounded reads the unpacked bytes of an archive. It fails if there are more than a bundle can
// have.
type bounded struct {
	watched
	packed *watched
}

var errTooLarge = fmt.Errorf("the archive unpacks to more than a bundle of countersign export can have (%d times its size, or %d GiB); if you trust it, unpack it yourself (tar xzf) and name the folder", maxRatio, maxFile>>30)

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.watched.Read(p)
	if b.read > maxFile || b.read > freeRatio && b.read > maxRatio*b.packed.read {
		return 0, errTooLarge
	}
	return n, err
}

// unpackInto writes the files of an archive to an empty folder.
func unpackInto(ctx context.Context, packed io.Reader, folder string, progress Progress) error {
	into, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer into.Close()
	return unpack(ctx, packed, func(name string, from io.Reader) error { return unpackFile(into, name, from) }, progress)
}

// unpack calls put for each file of an archive.
func unpack(ctx context.Context, packed io.Reader, put func(name string, from io.Reader) error, progress Progress) error {
	source := &watched{ctx: context.WithoutCancel(ctx), from: packed} // counts the packed bytes for bounded; must not fail before content does
	compressed, err := gzip.NewReader(source)
	if err != nil {
		return errors.New("the file is not a bundle: it must be a folder or a .tar.gz made by countersign export")
	}
	content := &bounded{watched{ctx: ctx, from: compressed, progress: progress, doing: "unpacked"}, source}
	archive, left, seen := tar.NewReader(content), int64(maxFile), map[string]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return padding(content)
		}
		if err != nil {
			return fmt.Errorf("read the bundle: %w", err)
		}
		whole := path.Clean(header.Name) // the folder is ./export if the bundle was packed again by hand
		name, ours := strings.CutPrefix(whole, "export/")
		folder := header.Typeflag == tar.TypeDir && (ours || whole == "export" || whole == ".")
		if left -= header.Size; left < 0 {
			return errNotOurs
		}
		if folder || header.Typeflag == tar.TypeXGlobalHeader || !ours && header.Typeflag == tar.TypeReg && ofSystem(whole) {
			continue
		}
		if !ours || header.Typeflag != tar.TypeReg || isSparse(header) || seen[name] || len(seen) == maxFiles {
			return errNotOurs
		}
		seen[name] = true
		if err := put(name, archive); err != nil {
			return fmt.Errorf("read the bundle: %w", err)
		}
	}
}

// isSparse reports whether a file of an archive is sparse. Its header of a few bytes can stand for
// many gigabytes of zeros, which bounded does not count.
func isSparse(header *tar.Header) bool {
	for record := range header.PAXRecords {
		if strings.HasPrefix(record, "GNU.sparse.") {
			return true
		}
	}
	return false
}

var errNotOurs = errors.New("the file is not a bundle made by countersign export, or is too large")

// padding reads to the end of the stream, so that the checksum of gzip is verified. The rest must
// be zeros, with which programs pad archives.
func padding(content io.Reader) error {
	block := make([]byte, 64<<10)
	for most := 1 << 20; most > 0; {
		n, err := content.Read(block)
		if most -= n; len(bytes.TrimLeft(block[:n], "\x00")) > 0 {
			return errNotOurs
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the bundle: %w", err)
		}
	}
	return errNotOurs
}

func unpackFile(into *os.Root, name string, from io.Reader) error {
	if err := into.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
