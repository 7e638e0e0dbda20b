package store

import (
	"mime"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
)

// downloadLink is a link that returns a file once.
type downloadLink struct {
	DownloadURL string `json:"downloadUrl" jsonschema:"format=uri"`
	ExpiresAt   string `json:"expiresAt" jsonschema:"format=date-time"`
}

// DownloadLink returns the address and the expiry of a link.
func (s *Shop) DownloadLink(l store.DownloadLink) downloadLink {
	return downloadLink{s.Store.BaseURL + "/api/downloads/" + l.Token, ground.Stamp(l.ExpiresAt)}
}

var createDownload = &op.Operation{
	ID: "create_download", Method: http.MethodPost, Path: "/api/entitlements/{slug}/downloads",
	Summary: "Return a link to the file of a product that the signed-in customer has access to. The link works once, for 15 minutes.",
	// Agents may not create downloads: their scope permits only reading, and downloads are
	// limited.
	Access: credential.Access{Kind: credential.Person}, Input: reflect.TypeFor[struct{}](), Optional: true, Output: reflect.TypeFor[downloadLink](),
	Example: `{}`, Success: http.StatusCreated, Errors: []int{400, 401, 403, 404, 409, 413, 503},
}

func (s *Shop) createDownload(c *op.Call) (op.Reply, error) {
	l, err := s.Store.CustomerDownload(c.Request.Context(), c.Session.Customer, c.Vars["slug"])
	return op.Reply{Value: s.DownloadLink(l)}, err
}

// Downloads handles the download links of purchases: it answers people with a page and programs
// with the file.
type Downloads struct {
	Store    *store.Store
	Sessions *credential.Sessions
	Web      *web.Handler
	Answers  *request.Answers
	Callers  *request.Callers
}

// ServeHTTP answers a request for a download link. A link returns the file once, but mail scanners
// open links before people do. So a browser's GET returns a page with a button and does not use
// the link. The button's POST, or a GET by a program, uses the link and returns the file. A HEAD
// never uses it. This is not an operation: the token in the path is the only credential, and the
// answer is a page or a file of any type, which the contract cannot describe.
func (s *Downloads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := mux.Vars(r)["token"]
	browser := strings.Contains(r.Header.Get("Accept"), "text/html")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	product, err := store.Product{}, error(nil)
	if purchaseID.MatchString(token) {
		s.downloadAsPayer(w, r, token, browser)
		return
	}
	switch {
	case r.Method == http.MethodPost && !s.Sessions.SameOrigin(r):
		err = policy.Refuse(organizations.CodeForbidden, "", "cross-origin request refused")
	case r.Method == http.MethodHead, r.Method == http.MethodGet && browser:
		product, err = s.Store.LookUpDownload(r.Context(), token)
	default:
		product, err = s.Store.ConsumeDownload(r.Context(), token)
	}
	switch {
	case err != nil:
		s.failShown(w, r, browser, err)
	case r.Method == http.MethodGet && browser:
		s.Web.ShowDownload(w, r, product)
	default:
		sendFile(w, r, product)
	}
}

func sendFile(w http.ResponseWriter, r *http.Request, p store.Product) {
	media := mime.TypeByExtension(path.Ext(p.FileName))
	if media == "" || path.Ext(p.FileName) == ".zip" { // set these types here, because the table of the machine may differ
		media = map[bool]string{true: "application/zip", false: "application/octet-stream"}[path.Ext(p.FileName) == ".zip"]
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(p.Content)))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": p.FileName}))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(p.Content)
	}
}
