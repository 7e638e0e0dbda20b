//go:build unix

package localpg

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
)

// unpack creates dir and writes the folders bin, lib and share of a package into it. It also
// creates the links listed in native/pg-symlinks.json, because npm packages cannot contain links.
// It writes through os.Root, so no file can be outside of dir. It accepts only regular files and
// folders; any other entry is an error, even outside of bin, lib and share.
func unpack(archive, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	u := &unpacker{root: root, tar: tar.NewReader(io.LimitReader(zipped, maxUnpacked))}
	for {
		done, err := u.next()
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if err := u.makeLinks(); err != nil {
		return err
	}
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return root.Chmod(name, 0o755) // creating it applies the umask
	})
}

type unpacker struct {
	root    *os.Root
	tar     *tar.Reader
	entries int
	links   []byte // content of native/pg-symlinks.json
}

// next unpacks the next entry. done is true at the end of the archive.
func (u *unpacker) next() (done bool, err error) {
	header, err := u.tar.Next()
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if u.entries++; u.entries > maxEntries {
		return false, fmt.Errorf("more than %d entries", maxEntries)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return false, nil
	}
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return false, fmt.Errorf("entry %q is neither a file nor a folder", header.Name)
	}
	name := strings.TrimSuffix(header.Name, "/")
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return false, fmt.Errorf("entry %q leaves its folder", header.Name)
	}
	if header.Size > maxFile {
		return false, fmt.Errorf("entry %q is larger than %d bytes", header.Name, maxFile)
	}
	if name == "package/native/pg-symlinks.json" {
		u.links, err = io.ReadAll(io.LimitReader(u.tar, maxLinksFile))
		return false, err
	}
	inside, ok := strings.CutPrefix(name, "package/native/")
	if !ok || !belongs(inside) {
		return false, nil
	}
	if header.Typeflag == tar.TypeDir {
		return false, u.root.MkdirAll(inside, 0o755)
	}
	return false, u.write(inside, header.FileInfo().Mode())
}

// belongs reports whether a path is in one of the three folders that are unpacked.
func belongs(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "bin" || first == "lib" || first == "share"
}

// write writes one file, readable by every user, because the server may run as another user.
func (u *unpacker) write(name string, mode fs.FileMode) error {
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, u.tar)
	return errors.Join(err, f.Chmod(perm), f.Close())
}

// makeLinks creates the links. Each link is in the tree and refers to a file in the tree by a
// relative path, so the tree can be moved.
func (u *unpacker) makeLinks() error {
	if u.links == nil {
		return nil
	}
	var links []struct {
		Source string `json:"source"` // existing file
		Target string `json:"target"` // link to create
	}
	if err := json.Unmarshal(u.links, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	if len(links) > maxLinks {
		return fmt.Errorf("pg-symlinks.json lists more than %d links", maxLinks)
	}
	for _, link := range links {
		file, ok1 := insideNative(link.Source)
		place, ok2 := insideNative(link.Target)
		if !ok1 || !ok2 {
			return fmt.Errorf("link %q to %q leaves its folder", link.Target, link.Source)
		}
		to, err := filepath.Rel(path.Dir(place), file)
		if err != nil {
			return err
		}
		if err := u.root.Symlink(to, place); err != nil {
			return err
		}
	}
	return nil
}

// insideNative removes the prefix native/ from a path of pg-symlinks.json. It returns false for a
// path outside of the three folders.
func insideNative(name string) (string, bool) {
	inside, ok := strings.CutPrefix(name, "native/")
	return inside, ok && filepath.IsLocal(inside) && path.Clean(inside) == inside && belongs(inside)
}
