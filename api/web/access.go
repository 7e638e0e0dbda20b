package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// organizations are the one for which the person acts, nil for none, and their others.
func (s *Handler) organizations(v *Visit) (now *Organization, others []Organization) {
	if v.Session == nil || v.Session.Org == "" {
		return nil, nil
	}
	list, err := s.Projections.Memberships(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return nil, nil
	}
	for _, m := range list {
		of := organizationShown(m)
		if m.OrgID == v.Session.Org {
			now = &of
			continue
		}
		others = append(others, of)
	}
	return now, others
}

func organizationShown(m projections.Membership) Organization {
	return Organization{ID: m.OrgID, Name: m.Name, Plan: m.Plan, Role: m.Role}
}

// organizationOf is the organization that a form's page was of, or that an address
// names.
func organizationOf(v *Visit) string {
	if v.Request.Method == http.MethodPost {
		return v.Form.Get(formOrganization)
	}
	return v.Request.URL.Query().Get(formOrganization)
}

// enter checks whether the visitor may open a page, and finds out who acts for the
// organization of a page with a right. Instead of the page it may return another view: where to
// sign in, where to choose an organization, or that the page is of another organization.
func (s *Handler) enter(v *Visit, access credential.Access) (instead *View, err error) {
	switch {
	case access.Kind == credential.Anybody:
		return nil, nil
	case v.Session == nil:
		to := s.signInFirst(v)
		return &to, nil
	case access.Kind == credential.Person:
		return nil, nil
	}
	named, of := organizationOf(v), Organization{}
	if v.Request.Method == http.MethodPost && named == "" {
		return nil, policy.Refuse("missing_field", "/"+formOrganization, formOrganization+" must be the organization that the page shows: open the page again")
	}
	if named != "" && named != v.Session.Org {
		if of, err = s.membership(v, named); err != nil {
			return nil, err
		}
		if v.Session.Org == "" && of.ID != "" { // no other choice is undone
			v.Session.Choose(of.ID)
		}
	}
	// Confirmed, also of a form: a role of a moment ago neither refuses nor permits anything.
	p, err := s.Credentials.Member(v.Request.Context(), v.Session, true)
	switch {
	case errors.Is(err, credential.ErrChooseFirst):
		return &View{Location: "/account?next=" + url.QueryEscape(s.placeOf(v))}, nil
	case errors.Is(err, credential.ErrNoOrganization):
		return &View{Location: "/account"}, nil
	case err != nil:
		return nil, err
	case named != "" && named != p.OrgID:
		to, err := s.actsForAnother(v, p, of)
		return &to, err
	}
	v.Principal = p
	return nil, p.May(access.Right)
}

// membership is one of the person's organizations by its id; the zero value: they
// are no member of it.
func (s *Handler) membership(v *Visit, orgID string) (Organization, error) {
	list, err := s.Projections.Memberships(v.Request.Context(), v.Session.Customer)
	for _, m := range list {
		if m.OrgID == orgID {
			return organizationShown(m), nil
		}
	}
	return Organization{}, query.Error(err)
}

// otherOrganization is that a page, or the page of a form, is of another organization
// than the one the session acts for now.
type otherOrganization struct {
	Of, Now Organization // Of without an id: one of which the person is no member
	Unsent
}

// actsForAnother refuses to do for one organization what was shown of another, and
// offers to act for that one.
func (s *Handler) actsForAnother(v *Visit, p organizations.Principal, of Organization) (View, error) {
	if of.ID == "" && v.Request.Method != http.MethodPost {
		return View{}, policy.Refuse(ground.CodeNotFound, "", "not found")
	}
	now, err := s.membership(v, p.OrgID)
	shown := View{Template: "other-organization.html", Data: otherOrganization{of, now, s.unsent(v)}}
	if v.Request.Method == http.MethodPost {
		shown.Status = http.StatusConflict
	}
	return shown, err
}

// SignIn is the data of the page that asks who somebody is: where to go afterwards, and what was
// written in a form that was not sent.
type SignIn struct {
	Next string
	Unsent
}

// signInFirst sends somebody without a session to sign in and come back. Of whom a
// form came it says so at once, with what was written.
func (s *Handler) signInFirst(v *Visit) View {
	next := InOrganization(s.placeOf(v), organizationOf(v))
	if v.Request.Method == http.MethodPost {
		return View{Template: "sign-in.html", Data: SignIn{next, s.unsent(v)}, Status: http.StatusUnauthorized}
	}
	return View{Location: "/sign-in?next=" + url.QueryEscape(next)}
}

// InOrganization is an address of ours that says for which organization it is.
func InOrganization(address, orgID string) string {
	u, err := url.Parse(address)
	if err != nil || orgID == "" {
		return address
	}
	q := u.Query()
	q.Set(formOrganization, orgID)
	u.RawQuery = q.Encode()
	return u.String()
}
