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

// organizations returns the organization that the person acts for, nil if there is none, and their
// other ones.
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

// organizationOf returns the organization that the address names, or that the page of a form
// showed.
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
		if v.Session.Org == "" && of.ID != "" { // another choice stays as it is
			v.Session.Choose(of.ID)
		}
	}
	// The principal is confirmed for forms, too: what another process has changed a moment ago counts.
	p, err := s.Credentials.Member(v.Request.Context(), v.Session, true)
	switch {
	case errors.Is(err, credential.ErrChooseFirst):
		return &View{Location: "/account?next=" + url.QueryEscape(s.placeOf(v))}, nil
	case errors.Is(err, credential.ErrNoOrganization):
		return &View{Location: "/start"}, nil
	case err != nil:
		return nil, err
	case named != "" && named != p.OrgID:
		to, err := s.actsForAnother(v, p, of)
		return &to, err
	}
	v.Principal = p
	return nil, p.May(access.Right)
}

// Member returns the visitor as a member of the organization that they have chosen, on a page that is
// open to everybody. ok is false if they act for none, or if the membership cannot be read now.
func (v *Visit) Member() (p organizations.Principal, ok bool) {
	if v.Session == nil || v.Session.Org == "" {
		return p, false
	}
	p, err := v.handler.Credentials.Member(v.Request.Context(), v.Session, true)
	return p, err == nil
}

// membership returns the person's organization with an id, or the zero value if they are not a
// member of it.
func (s *Handler) membership(v *Visit, orgID string) (Organization, error) {
	list, err := s.Projections.Memberships(v.Request.Context(), v.Session.Customer)
	for _, m := range list {
		if m.OrgID == orgID {
			return organizationShown(m), nil
		}
	}
	return Organization{}, query.Error(err)
}

// otherOrganization is the data of the page that says: what you opened, or the page of the form that
// you sent, is of another organization than the one you act for now.
type otherOrganization struct {
	Of, Now Organization // Of has no id if the person is not a member of it
	Unsent
}

// actsForAnother refuses to do for one organization what a page showed of another one, and offers to
// act for the other one.
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

// SignIn is the data of the sign-in page: where to go afterwards, and what was written in a form
// that was refused for want of a session.
type SignIn struct {
	Next string
	Unsent
}

// signInFirst leads a caller without a session to the sign-in page and back afterwards. A form is
// answered with the sign-in page itself, which shows what was written.
func (s *Handler) signInFirst(v *Visit) View {
	next := InOrganization(s.placeOf(v), organizationOf(v))
	if v.Request.Method == http.MethodPost {
		return View{Template: "sign-in.html", Data: SignIn{next, s.unsent(v)}, Status: http.StatusUnauthorized}
	}
	return View{Location: "/sign-in?next=" + url.QueryEscape(next)}
}

// InOrganization adds to an address of this service for which organization it is.
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
