package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// policyPage is the policy in force, the versions there were and the drafts that
// are none yet.
type policyPage struct {
	Active      *policyVersion
	Versions    []policyVersion // the newest first
	Drafts      []decisions.Draft
	People      map[string]string
	Starters    []assurance.Starter
	On          string         // a day that was asked about
	OnThat      *policyVersion // what was in force at its end
	MayDraft    bool
	MayActivate bool
	Fresh       bool // signed in a moment ago, as that needs
}

// Name is a member's address, as far as the reader may know it.
func (p policyPage) Name(member string) string { return named(p.People, member) }

// policyVersion is one version, as sentences and as text.
type policyVersion struct {
	decisions.Activation
	Sentences []string
	Text      string
	Diff      []words.DiffLine // to the version before
	Name      func(string) string
	Stops     bool // nothing may be paid or called, as after a freeze
	MayDraft  bool // the reader may start another from it

	// Of somebody who wanted to put its draft in force, too:
	Before     bool   // it had been done
	Unrecorded string // the reason they gave
}

func versionShown(a decisions.Activation, name func(string) string) (policyVersion, error) {
	said, err := words.Policy(a.Canonical)
	if err != nil {
		return policyVersion{}, err
	}
	var p assurance.Policy
	err = json.Unmarshal(a.Canonical, &p)
	none := func(list []string) bool { return list != nil && len(list) == 0 }
	return policyVersion{Activation: a, Sentences: said, Text: words.IndentJSON(a.Canonical), Name: name, Stops: none(p.AllowedHosts) && none(p.AllowedMCPServers)}, err
}

func (s *Handler) policyPage(ctx context.Context, p organizations.Principal) (policyPage, error) {
	drafts, activations, err := s.app.Policies(ctx, p)
	if err != nil {
		return policyPage{}, err
	}
	page := policyPage{People: s.people(ctx, p), Starters: assurance.Starters(), MayDraft: p.May(organizations.RightDraft) == nil,
		MayActivate: organizations.RoleMay(p.Role, organizations.RightActivate), Fresh: p.FreshSignIn}
	for _, d := range drafts {
		if !d.Activated {
			page.Drafts = append(page.Drafts, d)
		}
	}
	slices.Reverse(page.Drafts)
	for _, a := range activations {
		v, err := versionShown(a, page.Name)
		if err != nil {
			return page, err
		}
		if n := len(page.Versions); n > 0 {
			v.Diff = words.Diff(page.Versions[n-1].Text, v.Text)
		}
		page.Versions = append(page.Versions, v)
	}
	slices.Reverse(page.Versions)
	if len(page.Versions) > 0 {
		page.Active = &page.Versions[0]
	}
	return page, nil
}

// version is the one with a number; nil if there was none.
func (p policyPage) version(number string) *policyVersion {
	i := slices.IndexFunc(p.Versions, func(version policyVersion) bool { return strconv.Itoa(version.Version) == number })
	if i < 0 {
		return nil
	}
	return &p.Versions[i]
}

// BeforeStop is the newest version that did not stop everything, if the one in force
// does; nil otherwise.
func (p policyPage) BeforeStop() *policyVersion {
	i := slices.IndexFunc(p.Versions, func(version policyVersion) bool { return !version.Stops })
	if i < 1 {
		return nil
	}
	return &p.Versions[i]
}

// madeOf is the version that a draft became; nil while it is a draft.
func (p policyPage) madeOf(draftID string) *policyVersion {
	i := slices.IndexFunc(p.Versions, func(version policyVersion) bool { return version.DraftID == draftID })
	if i < 0 {
		return nil
	}
	return &p.Versions[i]
}

func showPolicies(s *Handler, v *visit) (view, error) {
	page, err := s.policyPage(v.request.Context(), v.principal)
	if err != nil {
		return view{}, err
	}
	if page.On = v.request.URL.Query().Get("on"); page.On != "" {
		day, err := time.Parse(time.DateOnly, page.On)
		if err != nil {
			return view{}, policy.Refuse("invalid_format", "/on", "on must be a date such as 2026-03-31")
		}
		end := ground.Stamp(day.Add(24 * time.Hour))
		i := slices.IndexFunc(page.Versions, func(version policyVersion) bool { return version.ActivatedAt < end })
		if i >= 0 {
			page.OnThat = &page.Versions[i]
		}
	}
	return view{template: "policies.html", data: page}, nil
}

func showPolicyVersion(s *Handler, v *visit) (view, error) {
	page, err := s.policyPage(v.request.Context(), v.principal)
	if err != nil {
		return view{}, err
	}
	version := page.version(v.vars["version"])
	if version == nil {
		return view{}, policy.Refuse(codeNotFound, "", "not found")
	}
	version.MayDraft = page.MayDraft
	return view{template: "policy.html", data: *version}, nil
}

// policyEditor is a policy that is being written: form and text side by side.
type policyEditor struct {
	Text     string
	Problem  string // why it is no policy
	Refused  string // why it could not be checked, kept or put in force
	Reason   string // that was given for putting it in force
	Lint     []events.PolicyLint
	Said     []string
	Diff     []words.DiffLine // to the active version
	Preview  *decisions.Preview
	Form     policyForm
	Draft    *decisions.Draft // that it is, once it was kept
	Activate bool             // the reader may put it in force
	Own      bool             // but not this draft, which is their own
	Fresh    bool             // signed in a moment ago, as that needs
}

// Asks says whether the page of the draft asks for a reason.
func (e policyEditor) Asks() bool { return e.Activate && !e.Own && e.Fresh }

func newPolicy(s *Handler, v *visit) (view, error) {
	page, err := s.policyPage(v.request.Context(), v.principal)
	if err != nil {
		return view{}, err
	}
	text := "{\n  \"policyId\": \"default\"\n}\n"
	query := v.request.URL.Query()
	if starter, ok := (assurance.Starter{Name: query.Get("template")}).Text(); ok && query.Get("template") != "" {
		text = starter
	}
	if page.Active != nil {
		from := page.Active
		if query.Has("from") {
			if from = page.version(query.Get("from")); from == nil {
				return view{}, policy.Refuse(codeNotFound, "/from", "from is no version of the policy")
			}
		}
		if query.Get("template") == "" {
			text = withoutVersion(from.Text)
		}
		text = namedAs(text, page.Active.PolicyID)
	}
	e, err := s.checkPolicy(v.request.Context(), v.principal, page, text)
	return view{template: "policy-editor.html", data: e}, err
}

// withoutVersion is the text of a version as that of a draft.
func withoutVersion(text string) string {
	var members map[string]jsontext.Value
	if json.Unmarshal([]byte(text), &members) != nil {
		return text
	}
	delete(members, "version")
	whole, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return text
	}
	return words.IndentJSON(whole)
}

// namedAs gives a template the organization's one policyId.
func namedAs(text, policyID string) string {
	quoted, err := json.Marshal(policyID)
	if err != nil {
		return text
	}
	return strings.Replace(text, `"policyId": "default"`, `"policyId": `+string(quoted), 1)
}

// checkPolicy says what a text means, and what it would have changed.
func (s *Handler) checkPolicy(ctx context.Context, p organizations.Principal, page policyPage, text string) (policyEditor, error) {
	e := policyEditor{Text: text, Form: formOf(text)}
	done, err := s.app.Compute(ctx, len(text))
	if err != nil {
		return e, err
	}
	draft, err := assurance.Lint([]byte(text))
	done()
	var refused *policy.Error
	switch {
	case errors.As(err, &refused):
		e.Problem = refused.Message
		return e, nil
	case err != nil:
		e.Problem = err.Error()
		return e, nil
	}
	e.Lint = lintOf(draft)
	if e.Said, err = words.Policy([]byte(text)); err != nil {
		return e, err
	}
	if page.Active != nil {
		e.Diff = words.Diff(withoutVersion(page.Active.Text), withoutVersion(text))
	}
	preview, err := s.app.PreviewPolicy(ctx, p, []byte(text))
	if err == nil {
		e.Preview = &preview
	}
	return e, err
}

func lintOf(d assurance.Draft) (list []events.PolicyLint) {
	for _, w := range d.Warnings {
		list = append(list, events.PolicyLint{RuleID: w.ID, Severity: w.Severity, Field: w.Path, Message: w.Message, Evidence: w.Evidence})
	}
	return list
}

// postPolicy writes what was changed in the form into the text, says what it means, and
// keeps it as a draft if that was asked for. Whatever is refused, what somebody wrote
// stays on the page.
func postPolicy(s *Handler, v *visit) (view, error) {
	ctx, p := v.request.Context(), v.principal
	page, err := s.policyPage(ctx, p)
	if err != nil {
		return view{}, err
	}
	text, form := writeForm(lineFeeds(v.form.Get("policy")), v.form)
	e, err := s.checkPolicy(ctx, p, page, text)
	e.Form = form
	keep, clean := v.form.Get("do") == "draft", e.Problem == "" && len(form.Problems) == 0
	if err == nil && keep && clean {
		var d decisions.Draft
		if d, err = s.app.DraftPolicy(ctx, p, bytes.TrimSpace([]byte(text))); err == nil {
			return view{location: "/policies/drafts/" + d.DraftID}, nil
		}
	}
	shows := view{template: "policy-editor.html"}
	switch {
	case err != nil:
		shows, e.Refused = s.because(v, shows, err)
	case keep && !clean, len(form.Problems) > 0: // a check that found a problem is a good check
		shows.status = http.StatusBadRequest
	}
	shows.data = e
	return shows, nil
}

func showDraftPage(s *Handler, v *visit) (view, error) {
	page, err := s.policyPage(v.request.Context(), v.principal)
	if err != nil {
		return view{}, err
	}
	if version := page.madeOf(v.vars["id"]); version != nil {
		return view{location: "/policies/" + strconv.Itoa(version.Version)}, nil
	}
	return s.draftPage(v.request.Context(), v.principal, page, v.vars["id"])
}

// draftPage is the page of a draft that nobody has put in force.
func (s *Handler) draftPage(ctx context.Context, p organizations.Principal, page policyPage, id string) (view, error) {
	i := slices.IndexFunc(page.Drafts, func(d decisions.Draft) bool { return d.DraftID == id })
	if i < 0 {
		return view{}, policy.Refuse(codeNotFound, "", "not found")
	}
	d := page.Drafts[i]
	e := policyEditor{Text: words.IndentJSON(d.Canonical), Lint: d.Lint}
	if p.May(organizations.RightDraft) == nil {
		var err error
		if e, err = s.checkPolicy(ctx, p, page, e.Text); err != nil {
			return view{}, err
		}
	}
	e.Draft, e.Activate, e.Fresh = &d, page.MayActivate, p.FreshSignIn
	e.Own = d.Author == p.Member && !p.MayActAlone()
	return view{template: "policy-draft.html", data: e}, nil
}

func postActivate(s *Handler, v *visit) (view, error) {
	p, reason := v.principal, strings.TrimSpace(v.form.Get("reason"))
	a, err := s.app.ActivatePolicy(v.request.Context(), p, v.vars["id"], reason)
	if err != nil {
		return s.notActivated(v, p, reason, err)
	}
	return view{location: "/policies/" + strconv.Itoa(a.Version)}, nil
}

// notActivated says why a draft was not put in force, with the reason that somebody
// wrote for it: on the page of the draft, or of the version that it became meanwhile.
func (s *Handler) notActivated(v *visit, p organizations.Principal, reason string, refused error) (view, error) {
	page, err := s.policyPage(v.request.Context(), p)
	if err != nil {
		return view{}, refused
	}
	if version := page.madeOf(v.vars["id"]); version != nil {
		shows, _ := s.because(v, view{template: "policy.html"}, refused)
		version.Before, version.Unrecorded = true, reason
		shows.data = *version
		return shows, nil
	}
	draft, err := s.draftPage(v.request.Context(), p, page, v.vars["id"])
	if err != nil {
		return view{}, refused
	}
	e := draft.data.(policyEditor)
	shows, message := s.because(v, draft, refused)
	e.Refused, e.Reason = message, reason
	shows.data = e
	return shows, nil
}

func postFreeze(s *Handler, v *visit) (view, error) {
	if v.form.Get("sure") != "yes" {
		return view{}, policy.Refuse("missing_field", "/sure", "tick the box: a freeze stops every agent of the organization")
	}
	a, err := s.app.FreezePolicy(v.request.Context(), v.principal, strings.TrimSpace(v.form.Get("reason")))
	return view{location: "/policies/" + strconv.Itoa(a.Version)}, err
}
