package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"

	"github.com/countersign/countersign/ledger/bundle"
)

// assetFiles contains the style sheet, the scripts, the icons and the preview picture for links.
// In a released program it also contains the verifier (make wasm).
//
//go:embed assets
var assetFiles embed.FS

// Asset is a file that pages load, or that people download. It is served at the root of the service.
type Asset struct {
	Path      string // path of the URL, such as "/style.css"
	mediaType string
	tag       string // strong ETag
	content   []byte
}

// ExportVerifierPath is the path of verify.py, the verifier of exports in Python, which is also in
// every export.
const ExportVerifierPath = "/verify.py"

// Assets lists these files.
func Assets() ([]Asset, error) {
	files, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		return nil, err
	}
	var list []Asset
	for _, file := range files {
		content, err := assetFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list = append(list, newAsset("/"+path.Base(file), compact(file, content)))
	}
	return append(list, newAsset(ExportVerifierPath, bundle.VerifierPy)), nil
}

func newAsset(at string, content []byte) Asset {
	sum := sha256.Sum256(content)
	return Asset{at, mediaTypeOf(at), `"` + hex.EncodeToString(sum[:8]) + `"`, content}
}

var (
	sheetComment  = regexp.MustCompile(`(?s)/\*.*?\*/\n?`)
	sheetSpace    = regexp.MustCompile(`;?\s*([{};,])\s*|(:)\s+`)
	scriptComment = regexp.MustCompile(`(?m)^\s*//.*\n`)
)

// compact returns a style sheet without comments and without space around punctuation, and a script
// without lines that are comments. Every page loads these files, and a page with its files must not
// exceed 60 KB.
func compact(file string, content []byte) []byte {
	switch path.Ext(file) {
	case ".css":
		return sheetSpace.ReplaceAll(sheetComment.ReplaceAll(content, nil), []byte("$1$2"))
	case ".js":
		return scriptComment.ReplaceAll(content, nil)
	}
	return content
}

// HasVerifier reports whether this program was built with the verifier. Released programs are.
func HasVerifier() bool {
	_, err := fs.Stat(assetFiles, "assets"+VerifierPath)
	return err == nil
}

// VerifierPath is the path of the verifier: WebAssembly, compressed by gzip.
const VerifierPath = "/verify.wasm.gz"

// mediaTypeOf returns the media type of a file. The types that we serve are listed here, because
// the table of the machine may name them differently.
func mediaTypeOf(file string) string {
	switch path.Ext(file) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".py":
		return "text/x-python; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".gz":
		return "application/gzip"
	case ".ico":
		return "image/vnd.microsoft.icon"
	}
	return mime.TypeByExtension(path.Ext(file))
}

// ServeHTTP answers with the file, or with 304 if the caller already has this version.
func (a Asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("ETag", a.tag)
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.mediaType)
	h.Set("Content-Length", strconv.Itoa(len(a.content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.content)
	}
}
