package bundle

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Folder is a bundle that is being written: what goes into it is hashed on its way,
// so that nothing has to be held in memory.
type Folder struct {
	path  string
	Files map[string]string // SHA-256 by name
}

// NewFolder writes into an empty folder.
func NewFolder(path string) *Folder { return &Folder{path, map[string]string{}} }

// File is one of its files. Close counts it among Files.
type File struct {
	folder *Folder
	name   string
	file   *os.File
	buffer *bufio.Writer
	hash   hash.Hash
}

// Create begins a file, by its name in the bundle.
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

// Close ends the file.
func (w *File) Close() error {
	err := errors.Join(w.buffer.Flush(), w.file.Close())
	w.folder.Files[w.name] = hex.EncodeToString(w.hash.Sum(nil))
	if err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	return nil
}

// Put writes a whole file.
func (f *Folder) Put(name string, text []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Close())
}

// Pack writes the folder as a tar.gz whose octets depend on nothing but the files:
// sorted names, one time, no owner.
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
	slices.Sort(names)
	for _, path := range names {
		err = errors.Join(err, f.pack(archive, path))
	}
	return errors.Join(err, archive.Close(), compressed.Close())
}

// epoch is the time of every file in an archive.
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
	header := &tar.Header{Name: "export/" + filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), ModTime: epoch, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

// maxFile and maxFiles bound what is read of a bundle: it comes from somebody else.
const (
	maxFile  = 4 << 30
	maxFiles = 100_000
)

// Read reads a bundle: a folder, or a tar.gz as Pack writes it.
func Read(path string) (map[string][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readFolder(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readArchive(file)
}

func readFolder(path string) (map[string][]byte, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := map[string][]byte{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if len(files) == maxFiles {
			return errors.New("the bundle has too many files")
		}
		files[name], err = fs.ReadFile(root.FS(), name)
		return err
	})
	return files, err
}

func readArchive(from io.Reader) (map[string][]byte, error) {
	compressed, err := gzip.NewReader(from)
	if err != nil {
		return nil, errors.New("the file is no bundle: want a folder or a .tar.gz of countersign export")
	}
	archive, files, left := tar.NewReader(compressed), map[string][]byte{}, int64(maxFile)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the bundle: %w", err)
		}
		name, ours := strings.CutPrefix(header.Name, "export/")
		if header.Typeflag == tar.TypeDir {
			continue
		}
		if left -= header.Size; !ours || header.Typeflag != tar.TypeReg || files[name] != nil || left < 0 || len(files) == maxFiles {
			return nil, errors.New("the file is no bundle of countersign export, or is too large")
		}
		if files[name], err = io.ReadAll(archive); err != nil {
			return nil, fmt.Errorf("read the bundle: %w", err)
		}
		if files[name] == nil {
			files[name] = []byte{}
		}
	}
}
