package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// page is one address for people, as the table of pages declares it. Its access is checked
// before it runs, and a page with a right finds in visit.principal who acts.
type page struct {
	method, path string
	access       credential.Access // Anybody, Person, or Member with a right
	run          func(*Handler, *visit) (view, error)
}

// signedIn is access for everybody who is signed in.
var signedIn = credential.Access{Kind: credential.Person}

// visit is one request for a page.
type visit struct {
	request *http.Request
	session *credential.Session // nil without one
	form    url.Values          // of a POST
	vars    map[string]string

	// principal acts for the organization; only on a page that declares a right.
	principal organizations.Principal
}

// view is what a page shows: a template with its data, or another address.
type view struct {
	template string
	data     any
	location string // see other
	status   int
	header   http.Header // beside those of every page
	cookie   *http.Cookie
	file     *webFile // to save, instead of a page
	public   bool     // the same for everybody who is not signed in
}

// pages is every page.
func (s *Handler) pages() []page {
	list := []page{
		{http.MethodGet, "/", credential.Access{}, showHome},
		{http.MethodPost, "/", credential.Access{}, postHome},
		{http.MethodGet, "/pricing", credential.Access{}, showPrices},
		{http.MethodPost, "/pricing", credential.Access{}, postBuy},
		{http.MethodPost, "/tools/{operation}/try", credential.Access{}, postService},
		{http.MethodGet, "/search", credential.Access{}, showSearch},
		{http.MethodGet, "/sign-in", credential.Access{}, showSignIn},
		{http.MethodPost, "/sign-in", credential.Access{}, postSignIn},
		{http.MethodGet, "/sign-in/confirm", credential.Access{}, showConfirm},
		{http.MethodPost, "/sign-in/confirm", credential.Access{}, postConfirm},
		{http.MethodGet, ConfirmAgentPath, credential.Access{}, showConfirmAgent},
		{http.MethodPost, ConfirmAgentPath, credential.Access{}, postConfirmAgent},
		{http.MethodGet, "/account", signedIn, showAccount},
		{http.MethodPost, "/account/organization", signedIn, postOrganization},
		{http.MethodPost, "/account/keys", signedIn, postKey},
		{http.MethodPost, "/account/keys/revoke", signedIn, postRevokeKey},
		{http.MethodPost, "/account/agents/revoke", signedIn, postRevokeAgent},
		{http.MethodPost, "/account/download", signedIn, postDownload},
		{http.MethodPost, "/account/billing", signedIn, postBilling},
		{http.MethodPost, "/sign-out", credential.Access{}, postSignOut},
		{http.MethodGet, "/ledger", credential.Access{}, showLedger},
		{http.MethodGet, "/verify", credential.Access{}, showVerify},
		{http.MethodPost, "/verify", credential.Access{}, postVerify},
		{http.MethodGet, "/members", credential.WithRight(organizations.RightMembers), showMembers},
		{http.MethodPost, "/members", credential.WithRight(organizations.RightManage), postMember},
		{http.MethodPost, "/members/remove", credential.WithRight(organizations.RightManage), postRemoveMember},
		{http.MethodPost, "/members/arguments", credential.WithRight(organizations.RightManage), postArguments},
		{http.MethodGet, "/keys", credential.WithRight(organizations.RightMembers), showKeys},
		{http.MethodPost, "/keys", credential.WithRight(organizations.RightManage), postToken},
		{http.MethodPost, "/keys/revoke", credential.WithRight(organizations.RightManage), postRevokeToken},
		{http.MethodGet, "/webhooks", credential.WithRight(organizations.RightMembers), showWebhooks},
		{http.MethodPost, "/webhooks", credential.WithRight(organizations.RightManage), postWebhook},
		{http.MethodGet, "/webhooks/{id}", credential.WithRight(organizations.RightMembers), showWebhook},
		{http.MethodPost, "/webhooks/{id}/again", credential.WithRight(organizations.RightManage), postSendAgain},
		{http.MethodPost, "/webhooks/{id}/rotate", credential.WithRight(organizations.RightManage), postRotateWebhook},
		{http.MethodPost, "/webhooks/{id}/remove", credential.WithRight(organizations.RightManage), postRemoveWebhook},
		{http.MethodGet, "/overview", credential.WithRight(organizations.RightRead), showOverview},
		{http.MethodGet, "/reviews", credential.WithRight(organizations.RightRead), listReviews},
		{http.MethodGet, "/reviews/{id}", credential.WithRight(organizations.RightRead), showReview},
		{http.MethodPost, "/reviews/{id}", credential.WithRight(organizations.RightRead), postReview},
		{http.MethodGet, "/decisions", credential.WithRight(organizations.RightRead), showDecisions},
		{http.MethodGet, "/decisions.csv", credential.WithRight(organizations.RightExport), exportDecisions},
		{http.MethodGet, "/decisions.jsonl", credential.WithRight(organizations.RightExport), exportDecisions},
		{http.MethodPost, "/decisions/bundle", credential.WithRight(organizations.RightExport), bundleDecisions},
		{http.MethodGet, "/guard", credential.WithRight(organizations.RightExport), showGuard},
		{http.MethodGet, "/decisions/{id:asd_[^/]+}", credential.WithRight(organizations.RightRead), showDecision},
		{http.MethodGet, "/decisions/{id}/download", credential.WithRight(organizations.RightRead), downloadDecision},
		{http.MethodGet, "/policies", credential.WithRight(organizations.RightPolicies), showPolicies},
		{http.MethodGet, "/policies/new", credential.WithRight(organizations.RightDraft), newPolicy},
		{http.MethodPost, "/policies/new", credential.WithRight(organizations.RightDraft), postPolicy},
		{http.MethodPost, "/policies/freeze", credential.WithRight(organizations.RightActivate), postFreeze},
		{http.MethodGet, "/policies/drafts/{id}", credential.WithRight(organizations.RightPolicies), showDraftPage},
		{http.MethodPost, "/policies/drafts/{id}", credential.WithRight(organizations.RightPolicies), postActivate},
		{http.MethodGet, "/policies/{version:[0-9]+}", credential.WithRight(organizations.RightPolicies), showPolicyVersion},
	}
	if s.outbox != nil {
		list = append(list, page{http.MethodGet, "/outbox", credential.Access{}, showOutbox}, page{http.MethodPost, "/outbox", credential.Access{}, openOutbox})
	}
	return list
}

// serve is the path of a request for a page.
func (s *Handler) serve(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), pageTimeout)
		defer cancel()
		if p.method == http.MethodGet && s.Twin(w, r) {
			return
		}
		v := &visit{request: r.WithContext(ctx), vars: mux.Vars(r)}
		shows, err := s.visit(w, v, p)
		if kept := s.sessions.Keep(w, v.session); err == nil {
			err = kept
		}
		if err != nil {
			shows = s.pageError(v, err)
		}
		s.show(w, v, shows)
	}
}

func (s *Handler) visit(w http.ResponseWriter, v *visit, p page) (view, error) {
	if !s.sessions.SameOrigin(v.request) {
		return view{}, policy.Refuse(organizations.CodeForbidden, "", "cross-origin request refused")
	}
	var err error
	if v.session, err = s.sessions.Load(v.request); err != nil {
		return view{}, err
	}
	if p.method == http.MethodPost {
		if err := s.MaySend(v.request, v.session); err != nil {
			return view{}, err
		}
		if v.form, err = ReadForm(w, v.request, formLimit(p.path)); err != nil {
			return view{}, err
		}
		if as := v.form.Get(formPerson); as != "" && v.session != nil && as != v.session.Customer {
			return view{}, errAnotherPerson
		}
	}
	instead, err := s.enter(v, p.access)
	if err != nil || instead != nil {
		return *cmp.Or(instead, &view{}), err
	}
	return p.run(s, v)
}

// failed is what the error page says: what happened, whether anything was recorded,
// and the ways on.
type failed struct {
	Status    int
	Message   string
	As        *Organization  // for which the person acts, where that may be why
	SignAgain bool           // the same will do after a new sign-in
	Elsewhere []Organization // of the person, where the page may be
	unsent
}

func (s *Handler) pageError(v *visit, err error) view {
	shows, message := s.because(v, view{template: "error.html"}, err)
	f := failed{Status: shows.status, Message: message, SignAgain: errors.Is(err, organizations.ErrSignInAgain), unsent: s.unsent(v)}
	f.Unknown = shows.status >= http.StatusInternalServerError
	switch {
	case shows.status == http.StatusMethodNotAllowed:
		f.Back = s.pageAbove(v.request.URL.Path)
	case shows.status == http.StatusForbidden && !f.SignAgain:
		f.As, _ = s.organizations(v)
	case shows.status == http.StatusNotFound && !f.Sent:
		if f.As, f.Elsewhere = s.organizations(v); len(f.Elsewhere) == 0 {
			f.As = nil
		}
	}
	shows.data = f
	return shows
}

// because makes a page the answer to a request that was refused: with the status and
// the headers of the refusal, such as when to come back, and its sentence for the page.
func (s *Handler) because(v *visit, shows view, err error) (answer view, message string) {
	shows.header = http.Header{}
	shows.status, message = s.Problem(shows.header, v.request, err)
	return shows, message
}

// show writes a page in its frame.
func (s *Handler) show(w http.ResponseWriter, v *visit, shows view) {
	h := w.Header()
	Headers(h, s.app.BaseURL)
	if shows.cookie != nil {
		http.SetCookie(w, shows.cookie)
	}
	if shows.location != "" {
		h.Set("Location", shows.location)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if shows.file != nil {
		shows.file.send(w, v.request)
		return
	}
	body, err := s.templates.Render(shows.template, View{Frame: s.frame(v), Data: shows.data})
	if err != nil {
		s.Fail(w, v.request, err)
		return
	}
	maps.Copy(h, shows.header)
	h.Set("Content-Type", "text/html; charset=utf-8")
	if shows.public {
		h.Add("Vary", "Accept, Cookie")
		if v.session == nil {
			h.Set("Cache-Control", "public, max-age=300")
		}
	}
	w.WriteHeader(cmp.Or(shows.status, http.StatusOK))
	if v.request.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// frame is what stands around a page. Without a part of what it shows of a person
// it is still a frame: the page itself says what is wrong.
func (s *Handler) frame(v *visit) Frame {
	place, _, _ := strings.Cut(strings.TrimPrefix(v.request.URL.Path, "/"), "/")
	f := Frame{Place: "/" + place, Here: s.placeOf(v), BaseURL: s.app.BaseURL, Links: s.links}
	if from, err := s.Site(); err == nil {
		if p, public := from.Page(v.request.URL.Path); public {
			f.Description, f.Canonical, f.Markdown = p.Description, s.app.BaseURL+p.Path, p.MarkdownPath()
		}
	}
	if v.session == nil {
		return f
	}
	f.Person = &Person{Customer: v.session.Customer, OrgID: v.session.Org}
	ctx := v.request.Context()
	var err error
	if f.Person.Email, err = s.app.Address(ctx, v.session.Customer); err != nil {
		s.log.Warn("a page without its reader's address", "requestId", s.RequestID(ctx), "error", err)
	}
	list, err := s.projections.Memberships(ctx, v.session.Customer)
	if err != nil {
		return f
	}
	for _, m := range list {
		f.Person.Organizations = append(f.Person.Organizations, organizationShown(m))
		if m.OrgID != v.session.Org || !organizations.RoleMay(m.Role, organizations.RightApprove) {
			continue
		}
		if f.Person.Reviews, err = s.projections.CountOpenReviews(ctx, m.OrgID, openReviews); err != nil {
			s.log.Warn("a page without the number of reviews", "requestId", s.RequestID(ctx), "error", err)
		}
	}
	f.Person.MoreReviews = f.Person.Reviews == openReviews
	return f
}

// footLinks are the addresses at the foot of every page, as far as they are there.
func footLinks(pages []page) (list []Link) {
	for _, l := range []Link{
		{Path: "/docs", Name: "Documentation"}, {Path: "/rules", Name: "Rules"}, {Path: "/pricing", Name: "Pricing"}, {Path: "/verify", Name: "Verify a record"},
		{Path: "/changelog", Name: "Changelog"}, {Path: "/terms", Name: "Terms"}, {Path: "/privacy", Name: "Privacy"}, {Path: "/refunds", Name: "Refunds"},
	} {
		if site.Written(l.Path) || slices.ContainsFunc(pages, func(p page) bool { return p.path == l.Path }) {
			list = append(list, l)
		}
	}
	return list
}
