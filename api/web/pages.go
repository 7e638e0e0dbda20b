package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// page is one address for people. Its form is read like a browser sends it; the
// session, if there is one, is loaded before and kept after.
type page struct {
	method, path string
	run          func(*Handler, *visit) (view, error)
}

// visit is one request for a page.
type visit struct {
	request *http.Request
	session *credential.Session // nil without one
	form    url.Values          // of a POST
	vars    map[string]string
}

// view is what a page shows: a template with its data, or another address.
type view struct {
	template string
	data     any
	location string // see other
	status   int
	header   http.Header // beside those of every page
	file     *webFile    // to save, instead of a page
	public   bool        // the same for everybody who is not signed in
}

// pages is every page.
func (s *Handler) pages() []page {
	list := []page{
		{http.MethodGet, "/", showHome},
		{http.MethodPost, "/", postHome},
		{http.MethodGet, "/pricing", showPrices},
		{http.MethodPost, "/pricing", postBuy},
		{http.MethodPost, "/tools/{operation}/try", postService},
		{http.MethodGet, "/search", showSearch},
		{http.MethodGet, "/sign-in", showSignIn},
		{http.MethodPost, "/sign-in", postSignIn},
		{http.MethodGet, "/sign-in/confirm", showConfirm},
		{http.MethodPost, "/sign-in/confirm", postConfirm},
		{http.MethodGet, ConfirmAgentPath, showConfirmAgent},
		{http.MethodPost, ConfirmAgentPath, postConfirmAgent},
		{http.MethodGet, "/account", showAccount},
		{http.MethodPost, "/account/organization", postOrganization},
		{http.MethodPost, "/account/keys", postKey},
		{http.MethodPost, "/account/keys/revoke", postRevokeKey},
		{http.MethodPost, "/account/agents/revoke", postRevokeAgent},
		{http.MethodPost, "/account/download", postDownload},
		{http.MethodPost, "/account/billing", postBilling},
		{http.MethodPost, "/sign-out", postSignOut},
		{http.MethodGet, "/ledger", showLedger},
		{http.MethodGet, "/verify", showVerify},
		{http.MethodPost, "/verify", postVerify},
		{http.MethodGet, "/members", showMembers},
		{http.MethodPost, "/members", postMember},
		{http.MethodPost, "/members/remove", postRemoveMember},
		{http.MethodPost, "/members/arguments", postArguments},
		{http.MethodGet, "/keys", showKeys},
		{http.MethodPost, "/keys", postToken},
		{http.MethodPost, "/keys/revoke", postRevokeToken},
		{http.MethodGet, "/webhooks", showWebhooks},
		{http.MethodPost, "/webhooks", postWebhook},
		{http.MethodGet, "/webhooks/{id}", showWebhook},
		{http.MethodPost, "/webhooks/{id}/again", postSendAgain},
		{http.MethodPost, "/webhooks/{id}/rotate", postRotateWebhook},
		{http.MethodPost, "/webhooks/{id}/remove", postRemoveWebhook},
		{http.MethodGet, "/overview", showOverview},
		{http.MethodGet, "/reviews", listReviews},
		{http.MethodGet, "/reviews/{id}", showReview},
		{http.MethodPost, "/reviews/{id}", postReview},
		{http.MethodGet, "/decisions", showDecisions},
		{http.MethodGet, "/decisions.csv", exportDecisions},
		{http.MethodGet, "/decisions.jsonl", exportDecisions},
		{http.MethodPost, "/decisions/bundle", bundleDecisions},
		{http.MethodGet, "/guard", showGuard},
		{http.MethodGet, "/decisions/{id:asd_[^/]+}", showDecision},
		{http.MethodGet, "/decisions/{id}/download", downloadDecision},
		{http.MethodGet, "/policies", showPolicies},
		{http.MethodGet, "/policies/new", newPolicy},
		{http.MethodPost, "/policies/new", postPolicy},
		{http.MethodPost, "/policies/freeze", postFreeze},
		{http.MethodGet, "/policies/drafts/{id}", showDraftPage},
		{http.MethodPost, "/policies/drafts/{id}", postActivate},
		{http.MethodGet, "/policies/{version:[0-9]+}", showPolicyVersion},
	}
	if s.outbox != nil {
		list = append(list, page{http.MethodGet, "/outbox", showOutbox}, page{http.MethodPost, "/outbox", openOutbox})
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
		return view{}, policy.Refuse(commands.CodeForbidden, "", "cross-origin request refused")
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
	return p.run(s, v)
}

var errAnotherPerson = policy.Refuse(commands.CodeConflict, "", "somebody else has signed in here since the page was opened: open it again, or sign out and in as yourself")

// ReadForm reads a browser's form; nothing in the query is part of it.
func ReadForm(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, policy.Refuse(codeInvalid, "", "content type must be application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		var overLimit *http.MaxBytesError
		if errors.As(err, &overLimit) {
			return nil, policy.Refuse(codeTooLarge, "", "the body is too large")
		}
		var refused *policy.Error // that the body was sent too slowly
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, policy.Refuse(codeInvalid, "", "the form could not be read")
	}
	return r.PostForm, nil
}

// formLimit is how many octets a form may have: each may be written as three.
func formLimit(path string) int64 {
	switch path {
	case "/verify":
		return 3 * maxRecord
	case "/policies/new":
		return 3 * maxPolicy
	}
	return maxForm
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
	f := failed{Status: shows.status, Message: message, SignAgain: errors.Is(err, commands.ErrSignInAgain), unsent: s.unsent(v)}
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

// unsent is a form that was sent and did nothing: where it stood, and what was
// written in it, so that nobody has to write it again. The zero value is of a
// request without a form.
type unsent struct {
	Sent    bool
	Unknown bool // whether it did nothing is not known
	Back    string
	Written []Member
}

// written are the fields of forms that people write texts in, in words. What is
// secret is not shown again.
var written = []Member{{"reason", "Reason"}, {"policy", "Policy"}, {"arguments", "Arguments"}, {"name", "Name"}, {"email", "E-mail address"}, {"url", "Address"}}

func (s *Handler) unsent(v *visit) unsent {
	u := unsent{Sent: v.request.Method == http.MethodPost, Back: s.placeOf(v)}
	for _, field := range written {
		if text := v.form.Get(field.Name); text != "" {
			u.Written = append(u.Written, Member{field.Value, text})
		}
	}
	return u
}

// placeOf is the address of the page that somebody looks at: of a form that was
// sent, the page on which it stood.
func (s *Handler) placeOf(v *visit) string {
	at := v.request.URL.RequestURI()
	if v.request.Method == http.MethodPost {
		at = v.form.Get(formPlace)
	}
	if commands.LocalPath(at) == at {
		return at
	}
	return s.pageAbove(v.request.URL.Path)
}

// pageAbove is the nearest page at or above a path, which may be that of a form only.
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

// organizations are the one for which the person acts, nil for none, and their others.
func (s *Handler) organizations(v *visit) (now *Organization, others []Organization) {
	if v.session == nil || v.session.Org == "" {
		return nil, nil
	}
	list, err := s.projections.Memberships(v.request.Context(), v.session.Customer)
	if err != nil {
		return nil, nil
	}
	for _, m := range list {
		of := organizationShown(m)
		if m.OrgID == v.session.Org {
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
		if m.OrgID != v.session.Org || !commands.RoleMay(m.Role, commands.RightApprove) {
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

// signInPage asks who somebody is, and knows where to go on, and what has not been
// sent.
type signInPage struct {
	Next string
	unsent
}

func showSignIn(_ *Handler, v *visit) (view, error) {
	return view{template: "sign-in.html", data: signInPage{Next: commands.LocalPath(v.request.URL.Query().Get("next"))}}, nil
}

func postSignIn(s *Handler, v *visit) (view, error) {
	if err := s.SendLink(v.request, strings.TrimSpace(v.form.Get("email")), v.form.Get("next")); err != nil {
		return view{}, err
	}
	return view{template: "sent.html", data: s.outbox != nil, status: http.StatusAccepted}, nil
}

// showConfirm shows a button: programs that look at links must not use them up.
func showConfirm(_ *Handler, v *visit) (view, error) {
	return view{template: "confirm.html", data: v.request.URL.Query().Get("token")}, nil
}

func postConfirm(s *Handler, v *visit) (view, error) {
	who, err := s.app.ConfirmSignIn(v.request.Context(), v.form.Get("token"))
	if err != nil {
		return view{}, err
	}
	if v.session, err = s.sessions.Begin(v.request, who.CustomerID); err != nil {
		return view{}, err
	}
	return view{location: who.Next}, nil
}

// ConfirmAgentPath is where the link goes that verifies an agent.
const ConfirmAgentPath = "/agents/confirm"

func showConfirmAgent(_ *Handler, v *visit) (view, error) {
	return view{template: "agent-confirm.html", data: v.request.URL.Query().Get("token")}, nil
}

func postConfirmAgent(s *Handler, v *visit) (view, error) {
	agent, err := s.app.ConfirmAgent(v.request.Context(), v.form.Get("token"))
	return view{template: "agent-confirmed.html", data: agent}, err
}

// reader is who reads for an organization with a right; another view sends whoever
// is not signed in, or does not act for the organization of the page, where that is
// done.
func (s *Handler) reader(v *visit, right commands.Right) (commands.Principal, *view, error) {
	return s.principalOf(v, true, right)
}

// actor is who changes something for an organization; the command asks for the
// right.
func (s *Handler) actor(v *visit) (commands.Principal, *view, error) {
	return s.principalOf(v, false, "")
}

// Every form says for which person and organization its page was, and at which address
// it stood (see withForms). What is shown in one tab must not be done by whom, or for
// the organization that, another tab has chosen since.
const (
	formPerson       = "as"
	formOrganization = "org"
	formPlace        = "at"
)

// organizationOf is the organization that a form's page was of, or that an address
// names.
func organizationOf(v *visit) string {
	if v.request.Method == http.MethodPost {
		return v.form.Get(formOrganization)
	}
	return v.request.URL.Query().Get(formOrganization)
}

func (s *Handler) principalOf(v *visit, onlyReads bool, right commands.Right) (commands.Principal, *view, error) {
	if v.session == nil {
		to := s.signInFirst(v)
		return commands.Principal{}, &to, nil
	}
	named, of := organizationOf(v), Organization{}
	if v.request.Method == http.MethodPost && named == "" {
		return commands.Principal{}, nil, policy.Refuse("missing_field", "/"+formOrganization, formOrganization+" must be the organization that the page shows: open the page again")
	}
	if named != "" && named != v.session.Org {
		var err error
		if of, err = s.membership(v, named); err != nil {
			return commands.Principal{}, nil, err
		}
		if v.session.Org == "" && of.ID != "" { // no other choice is undone
			v.session.Choose(of.ID)
		}
	}
	p, err := s.credentials.Member(v.request.Context(), v.session, onlyReads)
	switch {
	case errors.Is(err, credential.ErrChooseFirst):
		return p, &view{location: "/account?next=" + url.QueryEscape(s.placeOf(v))}, nil
	case errors.Is(err, credential.ErrNoOrganization):
		return p, &view{location: "/account"}, nil
	case err == nil && named != "" && named != p.OrgID:
		to, err := s.actsForAnother(v, p, of)
		return p, &to, err
	}
	if err == nil && right != "" {
		err = p.May(right)
	}
	return p, nil, err
}

// membership is one of the person's organizations by its id; the zero value: they
// are no member of it.
func (s *Handler) membership(v *visit, orgID string) (Organization, error) {
	list, err := s.projections.Memberships(v.request.Context(), v.session.Customer)
	for _, m := range list {
		if m.OrgID == orgID {
			return organizationShown(m), nil
		}
	}
	return Organization{}, HistoryError(err)
}

// otherOrganization is that a page, or the page of a form, is of another organization
// than the one the session acts for now.
type otherOrganization struct {
	Of, Now Organization // Of without an id: one of which the person is no member
	unsent
}

// actsForAnother refuses to do for one organization what was shown of another, and
// offers to act for that one.
func (s *Handler) actsForAnother(v *visit, p commands.Principal, of Organization) (view, error) {
	if of.ID == "" && v.request.Method != http.MethodPost {
		return view{}, policy.Refuse(codeNotFound, "", "not found")
	}
	now, err := s.membership(v, p.OrgID)
	shown := view{template: "other-organization.html", data: otherOrganization{of, now, s.unsent(v)}}
	if v.request.Method == http.MethodPost {
		shown.status = http.StatusConflict
	}
	return shown, err
}

// redirected is the view that stands in the place of a page's own, which may be none.
func redirected(to *view) view {
	if to == nil {
		return view{}
	}
	return *to
}

// signInFirst sends somebody without a session to sign in and come back. Of whom a
// form came it says so at once, with what was written.
func (s *Handler) signInFirst(v *visit) view {
	next := inOrganization(s.placeOf(v), organizationOf(v))
	if v.request.Method == http.MethodPost {
		return view{template: "sign-in.html", data: signInPage{next, s.unsent(v)}, status: http.StatusUnauthorized}
	}
	return view{location: "/sign-in?next=" + url.QueryEscape(next)}
}

// inOrganization is an address of ours that says for which organization it is.
func inOrganization(address, orgID string) string {
	u, err := url.Parse(address)
	if err != nil || orgID == "" {
		return address
	}
	q := u.Query()
	q.Set(formOrganization, orgID)
	u.RawQuery = q.Encode()
	return u.String()
}

func showAccount(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	as, err := s.credentials.Describe(v.request.Context(), v.session)
	if err != nil {
		return view{}, err
	}
	bought, err := s.bought(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	keys, err := s.app.AccountKeys(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	usage, err := s.app.AccountUsage(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	agents, err := s.app.AccountAgents(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	count, err := s.sessions.Count(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, commands.Unreadable(err)
	}
	page := accountPage{SignedIn: as, Bought: bought, Keys: keys, Agents: agents, Usage: usage, Free: commands.FreeCallsPerMonth, NearLimit: nearLimit, Sessions: count}
	if next := v.request.URL.Query().Get("next"); next != "" && len(as.Organizations) > 0 {
		page.GoesOn = commands.LocalPath(next)
	}
	return view{template: "account.html", data: page}, nil
}

// nearLimit is the use of the free calls of a month from which on it is said.
const nearLimit = commands.FreeCallsPerMonth * 8 / 10

// accountPage is what somebody who is signed in sees.
type accountPage struct {
	credential.SignedIn
	Bought []boughtProduct
	Keys   []commands.AccountKey
	Agents []commands.AccountAgent
	commands.Usage
	Free, NearLimit int64  // calls a month, and from which use on it is said
	GoesOn          string // where a choice of organization leads; empty: nowhere else
	Sessions        int
}

// postKey shows a new key of the account, this once.
func postKey(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	issued, err := s.app.IssueAccountKey(v.request.Context(), v.session.Customer)
	return view{template: "key.html", data: issued.APIKey, status: http.StatusCreated}, err
}

// postRevokeKey ends a key of the account.
func postRevokeKey(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	err := s.app.RevokeAccountKey(v.request.Context(), v.session.Customer, v.form.Get("keyId"))
	return view{location: "/account"}, err
}

// postRevokeAgent ends an agent of the account.
func postRevokeAgent(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	err := s.app.RevokeAccountAgent(v.request.Context(), v.session.Customer, v.form.Get("clientId"))
	return view{location: "/account"}, err
}

// boughtProduct is a product the customer has, or had, access to.
type boughtProduct struct {
	commands.Entitlement
	Name         string
	Downloadable bool
	Subscription bool
}

func (s *Handler) bought(ctx context.Context, customer string) ([]boughtProduct, error) {
	s.Resync(ctx, customer)
	list, err := s.app.Entitlements(ctx, customer)
	if err != nil {
		return nil, err
	}
	var bought []boughtProduct
	for _, e := range list {
		b := boughtProduct{Entitlement: e, Name: e.Product}
		if p, known := s.app.Product(e.Product); known {
			b.Name = p.Name
			b.Downloadable = p.FileName != "" && e.Status == commands.StatusActive
			b.Subscription = p.Kind == commands.Subscription && s.CardCheckout
		}
		bought = append(bought, b)
	}
	return bought, nil
}

// postDownload leads to the page with the button.
func postDownload(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	l, err := s.app.CustomerDownload(v.request.Context(), v.session.Customer, v.form.Get("slug"))
	return view{location: s.DownloadURL(l)}, err
}

// postBilling leads to the provider's page.
func postBilling(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	to, err := s.BillingPortal(v.request.Context(), v.session.Customer)
	return view{location: to}, err
}

func postOrganization(s *Handler, v *visit) (view, error) {
	if v.session == nil {
		return s.signInFirst(v), nil
	}
	list, err := s.projections.Memberships(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	for _, m := range list {
		if m.OrgID == v.form.Get("orgId") {
			v.session.Choose(m.OrgID)
			return view{location: goesOnTo(v)}, nil
		}
	}
	return view{}, policy.Refuse(commands.CodeForbidden, "", "organization credential required")
}

// goesOnTo is where a choice of organization leads: where its form says, or the page on
// which it stood waited to go.
func goesOnTo(v *visit) string {
	if next := v.form.Get("next"); next != "" {
		return commands.LocalPath(next)
	}
	at, err := url.Parse(v.form.Get(formPlace))
	if err != nil || at.Path != "/account" {
		return "/account"
	}
	return commands.LocalPath(at.Query().Get("next"))
}

func postSignOut(s *Handler, v *visit) (view, error) {
	if v.session != nil {
		if v.form.Get("everywhere") != "" {
			if err := s.sessions.EndAll(v.request.Context(), v.session.Customer); err != nil {
				return view{}, commands.Unreadable(err)
			}
		}
		if err := v.session.End(); err != nil {
			return view{}, commands.Unreadable(err)
		}
	}
	return view{location: "/sign-in"}, nil
}

// outboxShown is what the outbox page shows: a form for the code, or letters.
type outboxShown struct {
	Open, Wrong bool
	Letters     []Letter
}

// atOutbox refuses whoever is not at this machine: a name of somebody else's that
// was made to point here, an address that is not this machine's, and what any proxy
// has passed on.
func atOutbox(v *visit) error {
	name, peer := v.request.Host, v.request.RemoteAddr
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if host, _, err := net.SplitHostPort(peer); err == nil {
		peer = host
	}
	for _, host := range []string{name, peer} {
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return policy.Refuse(codeNotFound, "", "not found")
		}
	}
	for header := range v.request.Header {
		if header == "Forwarded" || header == "Via" || header == "X-Real-Ip" || strings.HasPrefix(header, "X-Forwarded-") || strings.HasPrefix(header, "Cf-") {
			return policy.Refuse(codeNotFound, "", "not found")
		}
	}
	return nil
}

func showOutbox(s *Handler, v *visit) (view, error) {
	return view{template: "outbox.html", data: outboxShown{}}, atOutbox(v)
}

// openOutbox shows the letters to who knows the code that the service has printed.
func openOutbox(s *Handler, v *visit) (view, error) {
	if err := atOutbox(v); err != nil {
		return view{}, err
	}
	if !s.MayEnterCode() {
		return view{}, policy.Refuse(codeRateLimited, "", "too many codes were entered, try again in a minute")
	}
	if !s.outbox.opens(v.form.Get("code")) {
		return view{template: "outbox.html", data: outboxShown{Wrong: true}, status: http.StatusForbidden}, nil
	}
	return view{template: "outbox.html", data: outboxShown{Open: true, Letters: s.outbox.Letters()}}, nil
}
