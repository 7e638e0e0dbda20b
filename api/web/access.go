package web

import (
	"context"
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

// organizations returns the organization that the person has chosen, or nil if there is none, and
// the other organizations in which the person is a member.
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

// organizationOf returns the organization id that a request names: in the query of a GET, or in
// the hidden field of a form.
func organizationOf(v *Visit) string {
	if v.Request.Method == http.MethodPost {
		return v.Form.Get(formOrganization)
	}
	return v.Request.URL.Query().Get(formOrganization)
}

// enter checks whether the visitor may open a page. If the page declares a right, enter sets
// Visit.Principal. It may return another view to show instead: the sign-in page, the choice of an
// organization, or a page that says that this page belongs to another organization.
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
		if of, err = s.membership(v.Request.Context(), v.Session.Customer, named); err != nil {
			return nil, err
		}
		if v.Session.Org == "" && of.ID != "" { // do not replace a choice that the person has made
			v.Session.Choose(of.ID)
		}
	}
	// The last argument reads the membership from the ledger for forms, too. Otherwise a change
	// that another process made a moment ago could be missed.
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

// Member returns the visitor as a member of the chosen organization, on a page that is open to
// everybody. ok is false if no organization is chosen, or if the membership cannot be read now.
func (v *Visit) Member() (p organizations.Principal, ok bool) {
	if v.Session == nil || v.Session.Org == "" {
		return p, false
	}
	p, err := v.handler.Credentials.Member(v.Request.Context(), v.Session, true)
	return p, err == nil
}

// membership returns the organization with this id, or the zero value if the person is not a
// member.
func (s *Handler) membership(ctx context.Context, customer, orgID string) (Organization, error) {
	list, err := s.Projections.Memberships(ctx, customer)
	for _, m := range list {
		if m.OrgID == orgID {
			return organizationShown(m), nil
		}
	}
	return Organization{}, query.Error(err)
}

// otherOrganization is the data of a page that explains a mismatch: the address, or the form that
// was sent, belongs to another organization than the chosen one.
type otherOrganization struct {
	Of, Now Organization // Of.ID is empty if the person is not a member of that organization
	Unsent
}

// actsForAnother refuses the request, because its page showed another organization than the chosen
// one. The answer offers to switch to that organization.
func (s *Handler) actsForAnother(v *Visit, p organizations.Principal, of Organization) (View, error) {
	if of.ID == "" && v.Request.Method != http.MethodPost {
		return View{}, ground.ErrNotFound
	}
	now, err := s.membership(v.Request.Context(), v.Session.Customer, p.OrgID)
	shown := View{Template: "other-organization.html", Data: otherOrganization{of, now, s.unsent(v)}}
	if v.Request.Method == http.MethodPost {
		shown.Status = http.StatusConflict
	}
	return shown, err
}

// SignIn is the data of the sign-in page: the address to open after the sign-in, and the fields of
// a form that was refused because there was no session.
type SignIn struct {
	Next string
	Unsent
}

// signInFirst redirects a caller without a session to the sign-in page, which leads back
// afterwards. The answer to a form is the sign-in page itself, so that it can show what was
// written in the form.
func (s *Handler) signInFirst(v *Visit) View {
	next := InOrganization(s.placeOf(v), organizationOf(v))
	if v.Request.Method == http.MethodPost {
		return View{Template: "sign-in.html", Data: SignIn{next, s.unsent(v)}, Status: http.StatusUnauthorized}
	}
	return View{Location: "/sign-in?next=" + url.QueryEscape(next)}
}

// InOrganization adds the organization's id as a parameter to an address of this service.
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
