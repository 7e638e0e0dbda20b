package org

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// policyPage is the data of the policy page: the active version, all versions, and the drafts.
type policyPage struct {
	Active      *policyVersion
	Versions    []policyVersion // newest first
	Drafts      []decisions.Draft
	People      web.People
	Starters    []assurance.Starter
	On          string         // requested day
	OnThat      *policyVersion // version that was active at the end of that day
	MayDraft    bool
	MayActivate bool
	Fresh       bool // the person signed in recently enough to activate
}

// Name returns the name by which the page shows a member.
func (p policyPage) Name(member string) string { return p.People.Name(member) }

// policyVersion is a version of the policy, as text and as sentences.
type policyVersion struct {
	decisions.Activation
	Sentences []string
	Text      string
	previous  string // text of the previous version; empty for version 1
	Name      func(string) string
	Stops     bool // the version allows no payment and no call, as after an emergency stop
	MayDraft  bool // the person may start a draft from this version

	// Set only for a person who has just tried to activate the draft of this version:
	Before     bool   // another member had activated it first
	Unrecorded string // reason that the person wrote
}

// Diff returns the changes since the previous version. It runs only for the version that a page
// compares, because comparing long policies is slow.
func (v policyVersion) Diff() []words.DiffLine {
	if v.previous == "" {
		return nil
	}
	return words.Diff(v.previous, v.Text)
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

func (r *Room) policyPage(ctx context.Context, p organizations.Principal) (policyPage, error) {
	drafts, activations, err := r.Commands.Policies(ctx, p)
	if err != nil {
		return policyPage{}, err
	}
	page := policyPage{People: web.PeopleOf(ctx, r.Commands.Organizations, p), Starters: assurance.Starters(), MayDraft: p.May(organizations.RightDraft) == nil,
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
			v.previous = page.Versions[n-1].Text
		}
		page.Versions = append(page.Versions, v)
	}
	slices.Reverse(page.Versions)
	if len(page.Versions) > 0 {
		page.Active = &page.Versions[0]
	}
	return page, nil
}

// newest returns the newest version that satisfies a condition, or nil.
func (p policyPage) newest(is func(policyVersion) bool) *policyVersion {
	i := slices.IndexFunc(p.Versions, is)
	if i < 0 {
		return nil
	}
	return &p.Versions[i]
}

// version returns the version with this number, or nil.
func (p policyPage) version(number string) *policyVersion {
	return p.newest(func(version policyVersion) bool { return strconv.Itoa(version.Version) == number })
}

// BeforeStop returns the newest version that allows something, if the active version stops
// everything. Otherwise it returns nil.
func (p policyPage) BeforeStop() *policyVersion {
	if p.Active == nil || !p.Active.Stops {
		return nil
	}
	return p.newest(func(version policyVersion) bool { return !version.Stops })
}

// madeOf returns the version that the draft became when it was activated, or nil if it was not.
func (p policyPage) madeOf(draftID string) *policyVersion {
	return p.newest(func(version policyVersion) bool { return version.DraftID == draftID })
}

func (r *Room) showPolicies(v *web.Visit) (web.View, error) {
	page, err := r.policyPage(v.Request.Context(), v.Principal)
	if err != nil {
		return web.View{}, err
	}
	if page.On = v.Request.URL.Query().Get("on"); page.On != "" {
		day, err := time.Parse(time.DateOnly, page.On)
		if err != nil {
			return web.View{}, policy.Refuse("invalid_format", "/on", "on must be a date such as 2026-03-31")
		}
		end := ground.Stamp(day.Add(24 * time.Hour))
		page.OnThat = page.newest(func(version policyVersion) bool { return version.ActivatedAt < end })
	}
	return web.View{Template: "policies.html", Data: page}, nil
}

func (r *Room) showPolicyVersion(v *web.Visit) (web.View, error) {
	page, err := r.policyPage(v.Request.Context(), v.Principal)
	if err != nil {
		return web.View{}, err
	}
	version := page.version(v.Vars["version"])
	if version == nil {
		return web.View{}, ground.ErrNotFound
	}
	version.MayDraft = page.MayDraft
	return web.View{Template: "policy.html", Data: *version}, nil
}

// policyEditor is the data of a page that edits a policy, as a form and as text.
type policyEditor struct {
	Text     string
	Problem  string // why the text is not a valid policy
	Refused  string // why the policy was not checked, saved or activated
	Reason   string // reason for the draft or for its activation, as written
	Lint     []events.PolicyLint
	Said     []string
	Changes  words.Changes    // what the text changes in the active version
	Author   string           // name of the draft's author
	Diff     []words.DiffLine // changes since the active version
	Preview  *decisions.Preview
	Form     policyForm
	Draft    *decisions.Draft // nil until the text is saved as a draft
	Activate bool             // the person may activate drafts
	Own      bool             // the person wrote the draft, and another member must activate it
	Fresh    bool             // the person signed in recently enough to activate
}

// Asks reports whether the page shows the form that asks for a reason and activates the draft.
func (e policyEditor) Asks() bool { return e.Activate && !e.Own && e.Fresh }

func (r *Room) newPolicy(v *web.Visit) (web.View, error) {
	page, err := r.policyPage(v.Request.Context(), v.Principal)
	if err != nil {
		return web.View{}, err
	}
	text := "{\n  \"policyId\": \"default\"\n}\n"
	query := v.Request.URL.Query()
	if starter, ok := (assurance.Starter{Name: query.Get("template")}).Text(); ok && query.Get("template") != "" {
		text = starter
	}
	if page.Active != nil {
		from := page.Active
		if query.Has("from") {
			if from = page.version(query.Get("from")); from == nil {
				return web.View{}, policy.Refuse(ground.CodeNotFound, "/from", "from must be the number of a version of the policy")
			}
		}
		if query.Get("template") == "" {
			text = withoutVersion(from.Text)
		}
		text = namedAs(text, page.Active.PolicyID)
	}
	e, err := r.checkPolicy(v.Request.Context(), v.Principal, page, text)
	return web.View{Template: "policy-editor.html", Data: e}, err
}

// withoutVersion returns the text of a version without its version number. A draft has no number.
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

// namedAs writes the organization's policyId into a template. An organization has one policyId.
func namedAs(text, policyID string) string {
	quoted, err := json.Marshal(policyID)
	if err != nil {
		return text
	}
	return strings.Replace(text, `"policyId": "default"`, `"policyId": `+string(quoted), 1)
}

// checkPolicy checks a text and returns what it means, and which decisions it would have changed.
func (r *Room) checkPolicy(ctx context.Context, p organizations.Principal, page policyPage, text string) (policyEditor, error) {
	e := policyEditor{Text: text, Form: formOf(text)}
	done, err := r.Commands.Compute(ctx, len(text))
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
		e.Changes = words.PolicyChanges(page.Active.Sentences, e.Said)
		e.Diff = words.Diff(withoutVersion(page.Active.Text), withoutVersion(text))
	}
	preview, err := r.Commands.PreviewPolicy(ctx, p, []byte(text))
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

// postPolicy writes the changed form fields into the text and checks it. If the button "draft" was
// pressed, postPolicy saves the text as a draft. After a refusal the page shows the text again.
func (r *Room) postPolicy(v *web.Visit) (web.View, error) {
	ctx, p := v.Request.Context(), v.Principal
	page, err := r.policyPage(ctx, p)
	if err != nil {
		return web.View{}, err
	}
	text, form := writeForm(lineFeeds(v.Form.Get("policy")), v.Form)
	e, err := r.checkPolicy(ctx, p, page, text)
	e.Form, e.Reason = form, strings.TrimSpace(v.Form.Get("reason"))
	keep, clean := v.Form.Get("do") == "draft", e.Problem == "" && len(form.Problems) == 0
	if err == nil && keep && clean {
		var d decisions.Draft
		if d, err = r.Commands.DraftPolicy(ctx, p, bytes.TrimSpace([]byte(text)), e.Reason); err == nil {
			r.Drafts.Tell(p.OrgID, d)
			return web.View{Location: "/policies/drafts/" + d.DraftID, Done: "Draft saved. It changes nothing until it is activated."}, nil
		}
	}
	shows := web.View{Template: "policy-editor.html"}
	switch {
	case err != nil:
		shows, e.Refused = v.Explain(shows, err)
	case keep && !clean, len(form.Problems) > 0: // a text that was only to be checked may have problems: the status stays 200
		shows.Status = http.StatusBadRequest
	}
	shows.Data = e
	return shows, nil
}

func (r *Room) showDraftPage(v *web.Visit) (web.View, error) {
	page, err := r.policyPage(v.Request.Context(), v.Principal)
	if err != nil {
		return web.View{}, err
	}
	if version := page.madeOf(v.Vars["id"]); version != nil {
		return web.View{Location: "/policies/" + strconv.Itoa(version.Version)}, nil
	}
	return r.draftPage(v.Request.Context(), v.Principal, page, v.Vars["id"])
}

// draftPage returns the page of a draft that was not activated.
func (r *Room) draftPage(ctx context.Context, p organizations.Principal, page policyPage, id string) (web.View, error) {
	i := slices.IndexFunc(page.Drafts, func(d decisions.Draft) bool { return d.DraftID == id })
	if i < 0 {
		return web.View{}, ground.ErrNotFound
	}
	d := page.Drafts[i]
	e := policyEditor{Text: words.IndentJSON(d.Canonical), Lint: d.Lint}
	if p.May(organizations.RightDraft) == nil {
		var err error
		if e, err = r.checkPolicy(ctx, p, page, e.Text); err != nil {
			return web.View{}, err
		}
	}
	e.Draft, e.Activate, e.Fresh = &d, page.MayActivate, p.FreshSignIn
	e.Author = page.Name(d.Author)
	e.Own = d.Author == p.Member && !p.MayActAlone()
	return web.View{Template: "policy-draft.html", Data: e}, nil
}

func (r *Room) postActivate(v *web.Visit) (web.View, error) {
	reason := strings.TrimSpace(v.Form.Get("reason"))
	a, err := r.Commands.ActivatePolicy(v.Request.Context(), v.Principal, v.Vars["id"], reason)
	if err != nil {
		return r.notActivated(v, reason, err)
	}
	return web.View{Location: "/policies/" + strconv.Itoa(a.Version), Done: fmt.Sprintf("Version %d is active. Every new decision uses it; a repeated request gets its old answer.", a.Version)}, nil
}

// notActivated returns a page that explains why a draft was not activated and shows the reason
// that was written. It is the page of the draft, or of the version if another member activated the
// draft.
func (r *Room) notActivated(v *web.Visit, reason string, refused error) (web.View, error) {
	page, err := r.policyPage(v.Request.Context(), v.Principal)
	if err != nil {
		return web.View{}, refused
	}
	if version := page.madeOf(v.Vars["id"]); version != nil {
		shows, _ := v.Explain(web.View{Template: "policy.html"}, refused)
		version.Before, version.Unrecorded = true, reason
		shows.Data = *version
		return shows, nil
	}
	draft, err := r.draftPage(v.Request.Context(), v.Principal, page, v.Vars["id"])
	if err != nil {
		return web.View{}, refused
	}
	e := draft.Data.(policyEditor)
	shows, message := v.Explain(draft, refused)
	e.Refused, e.Reason = message, reason
	shows.Data = e
	return shows, nil
}

func (r *Room) postFreeze(v *web.Visit) (web.View, error) {
	if v.Form.Get("sure") != "yes" {
		return web.View{}, policy.Refuse("missing_field", "/sure", "tick the box to confirm that the freeze stops all agents of the organization")
	}
	a, err := r.Commands.FreezePolicy(v.Request.Context(), v.Principal, strings.TrimSpace(v.Form.Get("reason")))
	return web.View{Location: "/policies/" + strconv.Itoa(a.Version), Done: "Everything is stopped: no host may be paid, and no MCP server may be called."}, err
}
