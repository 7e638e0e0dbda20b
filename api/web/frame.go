package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands/organizations"
)

// Frame is what every page shows around its own content.
type Frame struct {
	Place       string  // the link of the header that the page belongs to, such as "/reviews"
	Person      *Person // nil: nobody is signed in
	Here        string  // the address of the page, or of the page whose form was sent
	Path        string  // of the address, as it is printed: without parameters, which may be texts of agents
	BaseURL     string  // of this service, without a slash at the end
	Description string  // one sentence for indexers; empty: the page is not for them
	Canonical   string  // absolute address; only of a page with a description
	Markdown    string  // path of the page's Markdown twin, if it has one
	Links       []Link  // at the foot
	Done        string  // what the form that led here changed; empty if no form did

	rights map[string]organizations.Right // that pages declare, by their paths
}

// Link is an address of this service with its name.
type Link struct{ Path, Name string }

// Place is a page that the header links.
type Place struct {
	Path, Name string
	Current    bool
}

// Places lists the pages that the header links: those that the person may open.
func (f Frame) Places() (list []Place) {
	for _, p := range []Place{
		{Path: "/overview", Name: "Overview"}, {Path: "/reviews", Name: "Reviews"}, {Path: "/decisions", Name: "Decisions"}, {Path: "/spend", Name: "Spend"}, {Path: "/policies", Name: "Policies"},
		{Path: "/members", Name: "Members"}, {Path: "/keys", Name: "API tokens"}, {Path: "/ledger", Name: "Ledger"},
	} {
		if p.Current = p.Path == f.Place; f.Opens(p.Path) {
			list = append(list, p)
		}
	}
	return list
}

// CurrentPlace names the page of the header that the person is on. The name is Menu elsewhere.
func (f Frame) CurrentPlace() string {
	for _, p := range f.Places() {
		if p.Current {
			return p.Name
		}
	}
	return "Menu"
}

// Person is the person who is signed in, as the header shows them.
type Person struct {
	Customer      string // id
	Email         string
	Organizations []Organization
	OrgID         string // of the chosen organization; empty: none is chosen
	Reviews       int    // decisions that wait for a verdict of this person
	MoreReviews   bool   // there may be more than were counted
}

// Organization is an organization that a person may act for.
type Organization struct{ ID, Name, Plan, Role string }

// Opens reports whether the person has the right that the page at a path declares: the header leads
// to no other page. Before an organization is chosen it is true, because the page asks for the choice.
func (f Frame) Opens(path string) bool {
	if f.Person == nil || f.Person.Chosen() == nil || f.rights[path] == "" {
		return true
	}
	return organizations.RoleMay(f.Person.Chosen().Role, f.rights[path])
}

// OwnOnly reports whether the person sees only the decisions that they caused.
func (f Frame) OwnOnly() bool {
	return f.Person != nil && f.Person.Chosen() != nil && organizations.Principal{Role: f.Person.Chosen().Role}.OwnOnly()
}

// Manages reports whether the person may issue tokens.
func (p *Person) Manages() bool {
	return p.Chosen() != nil && organizations.RoleMay(p.Chosen().Role, organizations.RightManage)
}

// Chosen returns the organization that the person acts for, and nil before one is chosen.
func (p *Person) Chosen() *Organization {
	for i := range p.Organizations {
		if p.Organizations[i].ID == p.OrgID {
			return &p.Organizations[i]
		}
	}
	return nil
}

// Again returns the address where to sign in again, which leads back to this page of this
// organization.
func (f Frame) Again() string {
	orgID := ""
	if f.Person != nil {
		orgID = f.Person.OrgID
	}
	return "/sign-in?next=" + url.QueryEscape(InOrganization(f.Here, orgID))
}

// frame returns the frame of a page. If something about the person cannot be read the frame goes
// without it, because the page itself will say what is wrong.
func (s *Handler) frame(v *Visit) Frame {
	place, _, _ := strings.Cut(strings.TrimPrefix(v.Request.URL.Path, "/"), "/")
	f := Frame{Place: "/" + place, Here: s.placeOf(v), Path: v.Request.URL.EscapedPath(), BaseURL: s.Commands.BaseURL, Links: s.links, rights: s.rights}
	if from, err := s.Site(); err == nil {
		if p, public := from.Page(v.Request.URL.Path); public {
			f.Description, f.Canonical, f.Markdown = p.Description, s.Commands.BaseURL+p.Path, p.MarkdownPath()
		}
	}
	if v.Session == nil {
		return f
	}
	f.Person = &Person{Customer: v.Session.Customer, OrgID: v.Session.Org}
	ctx := v.Request.Context()
	var err error
	if f.Person.Email, err = s.Commands.Address(ctx, v.Session.Customer); err != nil {
		s.Log.Warn("a page without its reader's address", "requestId", v.requestID, "error", err)
	}
	list, err := s.Projections.Memberships(ctx, v.Session.Customer)
	if err != nil {
		return f
	}
	for _, m := range list {
		f.Person.Organizations = append(f.Person.Organizations, organizationShown(m))
		if m.OrgID != v.Session.Org || !organizations.RoleMay(m.Role, organizations.RightApprove) {
			continue
		}
		if f.Person.Reviews, err = s.Projections.CountOpenReviews(ctx, m.OrgID, MostReviews); err != nil {
			s.Log.Warn("a page without the number of reviews", "requestId", v.requestID, "error", err)
		}
	}
	f.Person.MoreReviews = f.Person.Reviews == MostReviews
	return f
}

// footLinks returns the links at the foot of every page, without those to pages that do not exist.
func footLinks(pages []Page) (list []Link) {
	for _, l := range []Link{
		{Path: "/docs", Name: "Documentation"}, {Path: "/rules", Name: "Rules"}, {Path: "/pricing", Name: "Pricing"}, {Path: "/verify", Name: "Verify a record"},
		{Path: "/changelog", Name: "Changelog"}, {Path: "/terms", Name: "Terms"}, {Path: "/privacy", Name: "Privacy"}, {Path: "/refunds", Name: "Refunds"},
	} {
		if site.Written(l.Path) || slices.ContainsFunc(pages, func(p Page) bool { return p.Path == l.Path }) {
			list = append(list, l)
		}
	}
	return list
}
