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
	Place       string  // the path of the place in the header that the page belongs to, such as "/reviews"
	Person      *Person // who is signed in; nil: nobody
	Here        string  // the address of the page, or of the page whose form was sent
	BaseURL     string  // of this service, without a slash at the end
	Description string  // one sentence for indexers; empty: the page is not for them
	Canonical   string  // absolute address; only of a page with a description
	Markdown    string  // path of the page's Markdown twin, if it has one
	Links       []Link  // at the foot
}

// Link is an address of this service with its name.
type Link struct{ Path, Name string }

// Person is who is signed in, as the header shows them.
type Person struct {
	Customer      string // id
	Email         string
	Organizations []Organization
	OrgID         string // the chosen organization's; empty: none is chosen
	Reviews       int    // decisions that wait for this person's verdict
	MoreReviews   bool   // there may be more than were counted
}

// Organization is one a person may act for.
type Organization struct{ ID, Name, Plan, Role string }

// SeesMembers says whether the role may read the organization's members, tokens and
// webhooks.
func (o Organization) SeesMembers() bool {
	return organizations.RoleMay(o.Role, organizations.RightMembers)
}

// Manages says whether the role may change them.
func (o Organization) Manages() bool { return organizations.RoleMay(o.Role, organizations.RightManage) }

// SeesGuards says whether the role may read what the guards of coding agents reported.
func (o Organization) SeesGuards() bool {
	return organizations.RoleMay(o.Role, organizations.RightExport)
}

// OwnOnly says whether the reader sees only the decisions they caused.
func (f Frame) OwnOnly() bool {
	return f.Person != nil && f.Person.Chosen() != nil && organizations.Principal{Role: f.Person.Chosen().Role}.OwnOnly()
}

// SeesMembers says whether the header leads to members and keys: not those whose role
// may not read them.
func (p *Person) SeesMembers() bool { return p.Chosen() == nil || p.Chosen().SeesMembers() }

// Manages says whether the person may issue tokens.
func (p *Person) Manages() bool { return p.Chosen() != nil && p.Chosen().Manages() }

// Chosen is the organization the person acts for, nil before one is chosen.
func (p *Person) Chosen() *Organization {
	for i := range p.Organizations {
		if p.Organizations[i].ID == p.OrgID {
			return &p.Organizations[i]
		}
	}
	return nil
}

// Again is where to sign in again, to come back to this page of this organization.
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
	f := Frame{Place: "/" + place, Here: s.placeOf(v), BaseURL: s.Commands.BaseURL, Links: s.links}
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
