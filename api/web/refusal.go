package web

import (
	"errors"
	"net/http"

	"github.com/countersign/countersign/commands/organizations"
)

// failed is the data of the error page: what happened, whether anything was recorded, and where
// to go on.
type failed struct {
	Status    int
	Message   string
	As        *Organization  // for which the person acts, if that may be the reason
	SignAgain bool           // the same works after a new sign-in
	Elsewhere []Organization // organizations of the person that may have the page
	Unsent
}

// pageError returns the view of an error.
func (s *Handler) pageError(v *Visit, err error) View {
	shows, message := v.Explain(View{Template: "error.html"}, err)
	f := failed{Status: shows.Status, Message: message, SignAgain: errors.Is(err, organizations.ErrSignInAgain), Unsent: s.unsent(v)}
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

// Explain makes a view the answer to a request that was refused: with the status and the headers
// of the refusal, such as when to come back, next to the view's own. The message is the refusal's sentence for the page.
func (v *Visit) Explain(shows View, err error) (answer View, message string) {
	if shows.Header == nil {
		shows.Header = http.Header{}
	}
	shows.Status, message = v.handler.Problem(shows.Header, v.Request, err)
	return shows, message
}
