package web

import (
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// Names of the hidden fields of every form: the address of its page, the person who opened the
// page, and the organization that it showed (see withForms). Another tab of the browser may have
// signed in another person or chosen another organization in the meantime. Then the form is
// refused.
const (
	FormPlace        = "at"
	formPerson       = "as"
	formOrganization = "org"
)

var errAnotherPerson = policy.Refuse(organizations.CodeConflict, "", "another person has signed in with this browser since the page was opened: open the page again, or sign in with your own account")

// ReadForm reads the form of a POST. It ignores the query of the URL. Most is the largest body in
// bytes.
func ReadForm(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, policy.Refuse(CodeInvalid, "", "content type must be application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		var overLimit *http.MaxBytesError
		if errors.As(err, &overLimit) {
			return nil, policy.Refuse(codeTooLarge, "", "the form is larger than "+strconv.FormatInt(most, 10)+" bytes: shorten its texts")
		}
		var refused *policy.Error // ParseForm returns this error if the body was sent too slowly
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, policy.Refuse(CodeInvalid, "", "the form could not be read: open the page again and send it once more")
	}
	return r.PostForm, nil
}

// Field is a field of a form: its label and the text that was written in it.
type Field struct{ Name, Value string }

// Unsent contains a form that was refused: the address of its page and the texts that were written in
// it, so that the person does not have to type them again. The zero value means that no form was
// sent.
type Unsent struct {
	Sent    bool
	Unknown bool // the form may have taken effect
	Back    string
	Written []Field
}

// written lists the fields with texts that people write, with their labels. It contains no secret,
// because a secret must not be shown again.
var written = []Field{{"reason", "Reason"}, {"policy", "Policy"}, {"arguments", "Arguments"}, {"name", "Name"}, {"email", "E-mail address"}, {"url", "Address"}}

// unsent returns the texts of the form that was sent.
func (s *Handler) unsent(v *Visit) Unsent {
	u := Unsent{Sent: v.Request.Method == http.MethodPost, Back: s.placeOf(v)}
	for _, field := range written {
		if text := v.Form.Get(field.Name); text != "" {
			u.Written = append(u.Written, Field{field.Value, text})
		}
	}
	return u
}

// placeOf returns the address of the page. For a form it returns the address of the page that has
// the form.
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

// pageAbove returns the nearest path, at or above this one, that can be opened with GET. The path
// itself may accept only forms.
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

// formTag matches the start tag of a form that changes something. It never matches text that
// people wrote, because templates escape < as &lt;.
var formTag = regexp.MustCompile(`<form [^>]*method="post"[^>]*>`)

// withForms adds the hidden fields to every form of a page that a signed-in person opens. It does
// this on the finished page, so that no template can forget the fields.
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

// inert prepares a text for the replacement in withForms: it escapes HTML, and doubles each $,
// because ReplaceAll would otherwise replace it by a part of the match.
func inert(text string) string {
	return strings.ReplaceAll(template.HTMLEscapeString(text), "$", "$$")
}
