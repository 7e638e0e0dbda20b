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

// The hidden fields of every form: the address of its page, the person who opened the page, and the
// organization that it showed (see withForms). Another tab of the browser may have signed in another
// person, or chosen another organization, since: then the form is refused.
const (
	FormPlace        = "at"
	formPerson       = "as"
	formOrganization = "org"
)

var errAnotherPerson = policy.Refuse(organizations.CodeConflict, "", "somebody else has signed in here since the page was opened: open it again, or sign out and in as yourself")

// ReadForm reads the form that a browser sent. The query of the address is not part of it.
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
		var refused *policy.Error // the body was sent too slowly
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, policy.Refuse(CodeInvalid, "", "the form could not be read")
	}
	return r.PostForm, nil
}

// Field is the label of a form's field, and what was written in it.
type Field struct{ Name, Value string }

// Unsent is a form that was refused: the address of its page and what was written in it, so that
// the person need not write it again. The zero value is for a request without a form.
type Unsent struct {
	Sent    bool
	Unknown bool // the form may have had its effect
	Back    string
	Written []Field
}

// written are the fields that people write texts in, with their labels. A secret is not among them,
// because it is not shown again.
var written = []Field{{"reason", "Reason"}, {"policy", "Policy"}, {"arguments", "Arguments"}, {"name", "Name"}, {"email", "E-mail address"}, {"url", "Address"}}

// unsent returns what was written in the form of a visit.
func (s *Handler) unsent(v *Visit) Unsent {
	u := Unsent{Sent: v.Request.Method == http.MethodPost, Back: s.placeOf(v)}
	for _, field := range written {
		if text := v.Form.Get(field.Name); text != "" {
			u.Written = append(u.Written, Field{field.Value, text})
		}
	}
	return u
}

// placeOf returns the address of the page. For a form that was sent it is the address of the page
// with the form.
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

// pageAbove returns the nearest page at or above a path. The path itself may take forms only.
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

// formTag is how templates begin a form that changes something. Texts of people never match it,
// because templates write their < as &lt;.
var formTag = regexp.MustCompile(`<form [^>]*method="post"[^>]*>`)

// withForms writes the hidden fields into every form of a page that a signed-in person opens. It is
// done here, so that no template can leave them out.
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

// inert returns a text as the value of an attribute in a replacement: $ does not refer to a match.
func inert(text string) string {
	return strings.ReplaceAll(template.HTMLEscapeString(text), "$", "$$")
}
