package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands/organizations"
)

// Frame contains what every page shows around its content.
type Frame struct {
	Place       string  // path of the header link that is marked as current, such as "/reviews"
	Person      *Person // nil if the visitor is not signed in
	Here        string  // address of the page, or of the page that had the form
	Path        string  // path that the page shows; without parameters, because agents may have written them
	BaseURL     string  // base URL of this service, without a slash at the end
	Description string  // one sentence for search engines; empty if they must not index the page
	Canonical   string  // absolute address; set only together with Description
	Markdown    string  // path of the page as Markdown; empty if there is none
	Links       []Link  // links in the footer
	Done        string  // what the previous form changed; empty if there was no form

	rights map[string]organizations.Right // right that each page declares, by the page's path
}

// Link is a path of this service with its label.
type Link struct{ Path, Name string }

// Place is a link in the header.
type Place struct {
	Path, Name string
	Current    bool
}

// Places lists the header links to the pages that the person may open.
func (f Frame) Places() (list []Place) {
	for _, p := range []Place{
		{Path: "/overview", Name: "Overview"}, {Path: "/reviews", Name: "Reviews"}, {Path: "/decisions", Name: "Decisions"}, {Path: "/spend", Name: "Spend"}, {Path: "/policies", Name: "Policies"},
		{Path: "/evidence", Name: "Evidence"}, {Path: "/members", Name: "Members"}, {Path: "/keys", Name: "API tokens"}, {Path: "/ledger", Name: "Ledger"},
	} {
		if p.Current = p.Path == f.Place; f.Opens(p.Path) {
			list = append(list, p)
		}
	}
	return list
}

// CurrentPlace returns the label of the current header link, or "Menu" if the page has no such
// link.
func (f Frame) CurrentPlace() string {
	for _, p := range f.Places() {
		if p.Current {
			return p.Name
		}
	}
	return "Menu"
}

// Person is the signed-in person, with the data that the header shows.
type Person struct {
	Customer      string // customer id
	Email         string
	Organizations []Organization
	OrgID         string // id of the chosen organization; empty if none is chosen
	Reviews       int    // number of decisions of the organization that wait for a verdict, at most MostReviews
	MoreReviews   bool   // the count stopped at MostReviews, so there may be more
	Approves      bool   // the role may give verdicts, so the header shows the number of reviews
}

// Organization is an organization in which the person is a member.
type Organization struct{ ID, Name, Plan, Role string }

// Opens reports whether the person has the right that the page at a path declares. The header
// omits other pages. It returns true before an organization is chosen, because the page then asks
// for it.
func (f Frame) Opens(path string) bool {
	if f.Person == nil || f.Person.Chosen() == nil || f.rights[path] == "" {
		return true
	}
	return organizations.RoleMay(f.Person.Chosen().Role, f.rights[path])
}

// OwnOnly reports whether the role of the person may see only decisions that the person or their
// tokens requested.
func (f Frame) OwnOnly() bool {
	return f.Person != nil && f.Person.Chosen() != nil && organizations.Principal{Role: f.Person.Chosen().Role}.OwnOnly()
}

// Manages reports whether the person may issue tokens.
func (p *Person) Manages() bool {
	return p.Chosen() != nil && organizations.RoleMay(p.Chosen().Role, organizations.RightManage)
}

// Chosen returns the chosen organization, or nil if none is chosen.
func (p *Person) Chosen() *Organization {
	for i := range p.Organizations {
		if p.Organizations[i].ID == p.OrgID {
			return &p.Organizations[i]
		}
	}
	return nil
}

// Again returns the address of the sign-in page, which leads back to this page and organization.
func (f Frame) Again() string {
	orgID := ""
	if f.Person != nil {
		orgID = f.Person.OrgID
	}
	return "/sign-in?next=" + url.QueryEscape(InOrganization(f.Here, orgID))
}

// frame returns the frame of a page. It omits data about the person that cannot be read, because
// the content of the page reports the failure.
func (s *Handler) frame(v *Visit) Frame {
	place, _, _ := strings.Cut(strings.TrimPrefix(v.Request.URL.Path, "/"), "/")
	if place == "agents" { // the page of an agent belongs to the header link Spend
		place = "spend"
	}
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
		s.Log.Warn("a page is shown without its reader's e-mail address, which could not be read", "requestId", v.requestID, "error", err)
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
		f.Person.Approves = true
		if f.Person.Reviews, err = s.Projections.CountOpenReviews(ctx, m.OrgID, MostReviews); err != nil {
			s.Log.Warn("a page is shown without the number of reviews, which could not be read", "requestId", v.requestID, "error", err)
		}
	}
	f.Person.MoreReviews = f.Person.Reviews == MostReviews
	return f
}

// footLinks returns the links in the footer of every page, without links to pages that do not
// exist.
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
