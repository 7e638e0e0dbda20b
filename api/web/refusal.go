package web

import (
	"errors"
	"net/http"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
)

// failed is the data of the error page: what happened, whether anything may have been recorded,
// and where the visitor can continue.
type failed struct {
	Status    int
	Message   string
	Names     bool           // the message says what does not exist
	As        *Organization  // chosen organization, if it may be the reason for the refusal
	SignAgain bool           // the request needs a new sign-in and works after it
	Elsewhere []Organization // other organizations of the person, which may have the page
	Unsent
}

// pageError returns the view of an error.
func (s *Handler) pageError(v *Visit, err error) View {
	shows, message := v.Explain(View{Template: "error.html"}, err)
	f := failed{Status: shows.Status, Message: message, Names: !errors.Is(err, ground.ErrNotFound), SignAgain: errors.Is(err, organizations.ErrSignInAgain), Unsent: s.unsent(v)}
	f.Unknown = shows.Status >= http.StatusInternalServerError
	switch {
	case shows.Status == http.StatusMethodNotAllowed:
		f.Back = s.pageAbove(v.Request.URL.Path)
	case shows.Status == http.StatusForbidden && !f.SignAgain:
		f.As, _ = s.organizations(v)
	case shows.Status == http.StatusNotFound && !f.Sent:
		if f.As, f.Elsewhere = s.organizations(v); len(f.Elsewhere) == 0 {
			f.As = nil
		}
	}
	shows.Data = f
	return shows
}

// Explain turns a view into the answer to a refused request. It sets the status of the refusal and
// adds its headers, such as Retry-After, to the view. The message is the sentence that the page
// shows.
func (v *Visit) Explain(shows View, err error) (answer View, message string) {
	if shows.Header == nil {
		shows.Header = http.Header{}
	}
	shows.Status, message = v.handler.Problem(shows.Header, v.Request, err)
	return shows, message
}
