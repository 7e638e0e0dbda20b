package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Store stores notes outside the database. It has three implementations: a Folder, a Git folder
// and an S3-compatible bucket.
type Store interface {
	// Put stores a note permanently, as the newest of its ledger and epoch.
	Put(ctx context.Context, epoch int64, c Checkpoint, text []byte) error
	// Newest returns the note with the highest epoch of a ledger and, within it, the largest size.
	// It also returns the epoch. If there is no note, the error is fs.ErrNotExist.
	Newest(ctx context.Context, origin string) (epoch int64, text []byte, err error)
	// String returns a description of the store for people, without secrets.
	String() string
}

// Files stores files by name, outside of the database. The parts of a name are separated by
// slashes. It has two implementations: a Folder and an S3-compatible bucket.
type Files interface {
	// Write stores a file. It replaces an existing file of the same name completely.
	Write(ctx context.Context, name string, octets []byte) error
	// Read returns a file. It fails if the file is longer than most bytes. If there is no such
	// file, the error is fs.ErrNotExist.
	Read(ctx context.Context, name string, most int64) ([]byte, error)
	// String returns a description of the store for people, without secrets.
	String() string
}

// ParseFiles parses the address of a store of files: the path of a folder, or s3://BUCKET/PREFIX
// as in ParseStore.
func ParseFiles(address string, env func(string) string) (Files, error) {
	store, err := ParseStore(address, env)
	if err != nil {
		return nil, err
	}
	files, ok := store.(Files)
	if _, git := store.(Git); git || !ok {
		return nil, errors.New("the store must be a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME")
	}
	return files, nil
}

// ParseStore parses the address of a store of notes: the path of a folder, git:PATH for a folder
// that is a Git working tree, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME. For S3 it takes the
// keys from env("AWS_ACCESS_KEY_ID") and env("AWS_SECRET_ACCESS_KEY").
func ParseStore(address string, env func(string) string) (Store, error) {
	if path, ok := strings.CutPrefix(address, "git:"); ok {
		return Git{Folder{path}}, nil
	}
	if !strings.Contains(address, "://") {
		return Folder{address}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return nil, errors.New("the store must be a folder, git:FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME")
	}
	s := &S3{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Region: u.Query().Get("region"), Endpoint: strings.TrimSuffix(u.Query().Get("endpoint"), "/"),
		AccessKey: env("AWS_ACCESS_KEY_ID"), SecretKey: env("AWS_SECRET_ACCESS_KEY")}
	if s.Region == "" {
		s.Region = "us-east-1"
	}
	if s.Endpoint == "" {
		s.Endpoint = "https://s3." + s.Region + ".amazonaws.com"
	}
	if s.AccessKey == "" || s.SecretKey == "" {
		return nil, errors.New("an S3 bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	return s, nil
}

// name returns the path of a note: ledger, epoch and size. The digits have a fixed length, so in
// the order of names the last name is the newest note.
func name(origin string, epoch, size int64) string {
	return fmt.Sprintf("%s/epoch-%06d/%019d.note", LedgerName(origin), epoch, size)
}

// epochOf returns the epoch in the name of a note's folder.
func epochOf(folder string) (int64, error) {
	digits, ok := strings.CutPrefix(folder, "epoch-")
	if !ok {
		return 0, fmt.Errorf("%w: %s is not the folder of an epoch", ErrNote, folder)
	}
	return strconv.ParseInt(digits, 10, 64)
}

// LedgerName converts an origin to a name that can be one part of a path.
func LedgerName(origin string) string {
	return strings.NewReplacer("/", "_", `\`, "_", ":", "_", "..", "__").Replace(origin)
}

// Folder stores notes as files. It writes a temporary file, syncs it and renames it, so a note is
// either complete or absent.
type Folder struct{ Path string }

// String implements Store.
func (f Folder) String() string { return f.Path }

// Put implements Store.
func (f Folder) Put(_ context.Context, epoch int64, c Checkpoint, text []byte) error {
	if err := f.write(name(c.Origin, epoch, c.Size), text, 0o755, 0o644); err != nil {
		return fmt.Errorf("store a checkpoint: %w", err)
	}
	return nil
}

// PutStamp stores the answer of a time-stamp authority next to the note that it is about.
func (f Folder) PutStamp(origin string, epoch, size int64, answer []byte) error {
	if err := f.write(stampName(origin, epoch, size), answer, 0o755, 0o644); err != nil {
		return fmt.Errorf("store a time stamp: %w", err)
	}
	return nil
}

// HasStamp reports whether the folder has a time stamp of a note.
func (f Folder) HasStamp(origin string, epoch, size int64) bool {
	_, err := os.Stat(filepath.Join(f.Path, filepath.FromSlash(stampName(origin, epoch, size))))
	return err == nil
}

// stampName returns the path of the time stamp of a note.
func stampName(origin string, epoch, size int64) string {
	return strings.TrimSuffix(name(origin, epoch, size), ".note") + ".tsr"
}

// Write implements Files. Unlike notes, these files can be read only by their owner.
func (f Folder) Write(_ context.Context, name string, octets []byte) error {
	err := f.write(name, octets, 0o700, 0o600)
	// The caller may delete its own copy after this, so the directory entries of new folders must
	// be synced, too.
	for part := path.Dir(name); err == nil && part != "."; part = path.Dir(part) {
		err = syncFolder(filepath.Join(f.Path, filepath.FromSlash(path.Dir(part))))
	}
	return err
}

// Read implements Files.
func (f Folder) Read(_ context.Context, name string, most int64) ([]byte, error) {
	file, err := os.Open(filepath.Join(f.Path, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readMost(file, most)
}

// readMost reads r to the end. It fails if there are more than most bytes.
func readMost(r io.Reader, most int64) ([]byte, error) {
	octets, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(octets)) > most {
		err = fmt.Errorf("the file is longer than %d bytes", most)
	}
	return octets, err
}

func (f Folder) write(name string, octets []byte, folders, mode fs.FileMode) error {
	path := filepath.Join(f.Path, filepath.FromSlash(name))
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folders); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(folder, ".part-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(octets)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return err
	}
	return syncFolder(folder)
}

// syncFolder syncs a folder, so that a rename in it survives a crash.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Newest implements Store.
func (f Folder) Newest(_ context.Context, origin string) (int64, []byte, error) {
	if _, err := os.ReadDir(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, nil, err
	}
	ledger := filepath.Join(f.Path, LedgerName(origin))
	for _, folder := range backwards(ledger) {
		for _, file := range backwards(filepath.Join(ledger, folder)) {
			if !strings.HasSuffix(file, ".note") {
				continue
			}
			epoch, err := epochOf(folder)
			if err != nil {
				return 0, nil, err
			}
			text, err := os.ReadFile(filepath.Join(ledger, folder, file))
			return epoch, text, err
		}
	}
	return 0, nil, fs.ErrNotExist
}

// Ledgers lists the ledgers whose notes are in the folder, by the names that LedgerName returns.
func (f Folder) Ledgers() []string {
	names := backwards(f.Path)
	return slices.DeleteFunc(names, func(name string) bool {
		epochs := backwards(filepath.Join(f.Path, name))
		return !slices.ContainsFunc(epochs, func(epoch string) bool { _, err := epochOf(epoch); return err == nil })
	})
}

// backwards lists the names in a folder in reverse order, without hidden ones.
func backwards(path string) []string {
	entries, _ := os.ReadDir(path) // a folder that cannot be listed counts as empty
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

// Prune deletes notes of an epoch whose size is below a limit. It keeps the newest note of each
// hour (by file time) and the notes whose size keep accepts.
func (f Folder) Prune(origin string, epoch, below int64, keep func(size int64) bool) error {
	folder := filepath.Dir(filepath.Join(f.Path, filepath.FromSlash(name(origin, epoch, 0))))
	hours := map[int64]bool{}
	var failed error
	for _, file := range backwards(folder) {
		size, err := strconv.ParseInt(strings.TrimSuffix(file, ".note"), 10, 64)
		info, statErr := os.Stat(filepath.Join(folder, file))
		if err != nil || statErr != nil || size >= below || keep(size) {
			continue
		}
		if hour := info.ModTime().Unix() / 3600; !hours[hour] {
			hours[hour] = true
			continue
		}
		failed = errors.Join(failed, os.Remove(filepath.Join(folder, file)))
	}
	return failed
}

// Git is a Folder inside a Git working tree. Each note is a commit. The operator must arrange that
// the commits are pushed to another machine.
type Git struct{ Folder }

// String implements Store.
func (g Git) String() string { return "git:" + g.Path }

// Put implements Store.
func (g Git) Put(ctx context.Context, epoch int64, c Checkpoint, text []byte) error {
	if err := g.Folder.Put(ctx, epoch, c, text); err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"add", "--", LedgerName(c.Origin)},
		{"-c", "user.name=countersign", "-c", "user.email=countersign@localhost", "-c", "commit.gpgsign=false",
			"commit", "--quiet", "--allow-empty", "-m", "checkpoint " + strconv.FormatInt(c.Size, 10)},
	} {
		command := exec.CommandContext(ctx, "git", append([]string{"-C", g.Path}, arguments...)...)
		if said, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s in %s: %w: %s", arguments[0], g.Path, err, strings.TrimSpace(string(said)))
		}
	}
	return nil
}
