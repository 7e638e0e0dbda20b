package web

import (
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// Every form says for which person and organization its page was, and at which address
// it stood (see withForms). What is shown in one tab must not be done by whom, or for
// the organization that, another tab has chosen since.
const (
	FormPlace        = "at"
	formPerson       = "as"
	formOrganization = "org"
)

var errAnotherPerson = policy.Refuse(organizations.CodeConflict, "", "somebody else has signed in here since the page was opened: open it again, or sign out and in as yourself")

// ReadForm reads a browser's form; nothing in the query is part of it.
func ReadForm(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, policy.Refuse(CodeInvalid, "", "content type must be application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		var overLimit *http.MaxBytesError
		if errors.As(err, &overLimit) {
			return nil, policy.Refuse(codeTooLarge, "", "the body is too large")
		}
		var refused *policy.Error // that the body was sent too slowly
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, policy.Refuse(CodeInvalid, "", "the form could not be read")
	}
	return r.PostForm, nil
}

// Field is a field of a form, by its label, and what was written in it.
type Field struct{ Name, Value string }

// Unsent is a form that was sent and did nothing: where it stood, and what was
// written in it, so that nobody has to write it again. The zero value is of a
// request without a form.
type Unsent struct {
	Sent    bool
	Unknown bool // whether it did nothing is not known
	Back    string
	Written []Field
}

// written are the fields of forms that people write texts in, in words. What is
// secret is not shown again.
var written = []Field{{"reason", "Reason"}, {"policy", "Policy"}, {"arguments", "Arguments"}, {"name", "Name"}, {"email", "E-mail address"}, {"url", "Address"}}

func (s *Handler) unsent(v *Visit) Unsent {
	u := Unsent{Sent: v.Request.Method == http.MethodPost, Back: s.placeOf(v)}
	for _, field := range written {
		if text := v.Form.Get(field.Name); text != "" {
			u.Written = append(u.Written, Field{field.Value, text})
		}
	}
	return u
}

// placeOf is the address of the page that somebody looks at: of a form that was
// sent, the page on which it stood.
func (s *Handler) placeOf(v *Visit) string {
	at := v.Request.URL.RequestURI()
	if v.Request.Method == http.MethodPost {
		at = v.Form.Get(FormPlace)
	}
	if accounts.LocalPath(at) == at {
		return at
	}
	return s.pageAbove(v.Request.URL.Path)
}

// pageAbove is the nearest page at or above a path, which may be that of a form only.
func (s *Handler) pageAbove(path string) string {
	for ; strings.HasPrefix(path, "/"); path = path[:strings.LastIndexByte(path, '/')] {
		var match mux.RouteMatch
		if s.places.Match(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}, &match) {
			return path
		}
		if from, err := s.Site(); err == nil {
			if _, written := from.Page(path); written {
				return path
			}
		}
	}
	return "/"
}

// formTag begins a form that changes something, as templates have it. Texts of people
// hold none: a template writes their < as &lt;.
var formTag = regexp.MustCompile(`<form [^>]*method="post"[^>]*>`)

// withForms writes into every form of a signed-in person's page whose it is, the
// organization that it shows and the address at which it stands: here, so that no
// template can leave it out.
func withForms(page []byte, f Frame) []byte {
	if f.Person == nil {
		return page
	}
	carried := `$0<input type="hidden" name="` + FormPlace + `" value="` + inert(f.Here) + `">` +
		`<input type="hidden" name="` + formPerson + `" value="` + inert(f.Person.Customer) + `">`
	if f.Person.OrgID != "" {
		carried += `<input type="hidden" name="` + formOrganization + `" value="` + inert(f.Person.OrgID) + `">`
	}
	return formTag.ReplaceAll(page, []byte(carried))
}

// inert is a text as an attribute's value, in which no $ names a part of a match.
func inert(text string) string {
	return strings.ReplaceAll(template.HTMLEscapeString(text), "$", "$$")
}
