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

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// policyPage is the policy in force, the versions there were and the drafts that
// are none yet.
type policyPage struct {
	Active      *policyVersion
	Versions    []policyVersion // the newest first
	Drafts      []commands.Draft
	People      map[string]string
	Starters    []assurance.Starter
	On          string         // a day that was asked about
	OnThat      *policyVersion // what was in force at its end
	MayDraft    bool
	MayActivate bool
	Fresh       bool // signed in a moment ago, as that needs
}

// Name is a member's address, or the id.
func (p policyPage) Name(member string) string {
	if name := p.People[member]; name != "" {
		return name
	}
	return member
}

// policyVersion is one version, as sentences and as text.
type policyVersion struct {
	commands.Activation
	Sentences []string
	Text      string
	Diff      []DiffLine // to the version before
	Name      func(string) string
}

func versionShown(a commands.Activation, name func(string) string) (policyVersion, error) {
	said, err := PolicySentences(a.Canonical)
	return policyVersion{Activation: a, Sentences: said, Text: IndentJSON(a.Canonical), Name: name}, err
}

func (s *Handler) policyPage(ctx context.Context, p commands.Principal) (policyPage, error) {
	drafts, activations, err := s.app.Policies(ctx, p)
	if err != nil {
		return policyPage{}, err
	}
	page := policyPage{People: s.people(ctx, p), Starters: assurance.Starters(), MayDraft: p.May(commands.RightDraft) == nil,
		MayActivate: commands.RoleMay(p.Role, commands.RightActivate), Fresh: p.FreshSignIn}
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
			v.Diff = Diff(page.Versions[n-1].Text, v.Text)
		}
		page.Versions = append(page.Versions, v)
	}
	slices.Reverse(page.Versions)
	if len(page.Versions) > 0 {
		page.Active = &page.Versions[0]
	}
	return page, nil
}

// readPolicies is the page of policies for who has a right, and who that is.
func (s *Handler) readPolicies(v *visit, right commands.Right) (commands.Principal, policyPage, *view, error) {
	p, redirect, err := s.reader(v, right)
	if err != nil || redirect != nil {
		return p, policyPage{}, redirect, err
	}
	page, err := s.policyPage(v.request.Context(), p)
	return p, page, nil, err
}

func showPolicies(s *Handler, v *visit) (view, error) {
	_, page, redirect, err := s.readPolicies(v, commands.RightPolicies)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	if page.On = v.request.URL.Query().Get("on"); page.On != "" {
		day, err := time.Parse(time.DateOnly, page.On)
		if err != nil {
			return view{}, policy.Refuse("invalid_format", "/on", "on must be a date such as 2026-03-31")
		}
		end := commands.Stamp(day.Add(24 * time.Hour))
		i := slices.IndexFunc(page.Versions, func(version policyVersion) bool { return version.ActivatedAt < end })
		if i >= 0 {
			page.OnThat = &page.Versions[i]
		}
	}
	return view{template: "policies.html", data: page}, nil
}

func showPolicyVersion(s *Handler, v *visit) (view, error) {
	_, page, redirect, err := s.readPolicies(v, commands.RightPolicies)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	for _, version := range page.Versions {
		if strconv.Itoa(version.Version) == v.vars["version"] {
			return view{template: "policy.html", data: version}, nil
		}
	}
	return view{}, policy.Refuse(codeNotFound, "", "not found")
}

// policyEditor is a policy that is being written: form and text side by side.
type policyEditor struct {
	Text     string
	Problem  string // why it is no policy
	Lint     []events.PolicyLint
	Checked  bool
	Said     []string
	Diff     []DiffLine // to the active version
	Preview  *commands.Preview
	Fields   []policyField
	Draft    *commands.Draft // that it is, once it was kept
	Starters []assurance.Starter
	Activate bool // the reader may put it in force
	Own      bool // but not this draft, which is their own
	Fresh    bool // signed in a moment ago, as that needs
}

// policyField is one member of a policy in the form.
type policyField struct {
	Name, Label, Hint, Kind, Value string
	Checked                        bool
}

// policyFields are the members in the order of the form. A list has one entry a
// line; an empty one is absent, and the word none stands for a list that allows
// nothing.
func policyFields(text string) []policyField {
	var members map[string]jsontext.Value
	_ = json.Unmarshal([]byte(text), &members) // what cannot be read leaves the form empty
	fields := []policyField{
		{Name: "maxUsdPerTransaction", Label: "At most, for one purchase", Hint: "US dollars", Kind: "number"},
		{Name: "allowedHosts", Label: "Hosts that may be paid", Hint: "one a line; *.example.com for all below", Kind: "list"},
		{Name: "blockedHosts", Label: "Hosts that never may", Kind: "list"},
		{Name: "allowedNetworks", Label: "Networks", Hint: "base, ethereum, solana …", Kind: "list"},
		{Name: "allowedPayTo", Label: "Addresses that may receive", Kind: "list"},
		{Name: "allowedMcpServers", Label: "MCP servers that may be called", Kind: "list"},
		{Name: "allowedMcpTools", Label: "Tools that may be called", Hint: "tool, or server/tool", Kind: "list"},
		{Name: "blockedMcpTools", Label: "Tools that never may", Kind: "list"},
		{Name: "reviewMcpRiskAtOrAbove", Label: "A person decides from this declared risk on", Hint: "medium, high or critical", Kind: "text"},
		{Name: "requireHttps", Label: "https only", Kind: "flag"},
		{Name: "requireExactScheme", Label: "Scheme exact only", Kind: "flag"},
		{Name: "requireResourceBinding", Label: "The payment names its resource", Kind: "flag"},
		{Name: "requirePaymentIdentifier", Label: "Every payment has an identifier", Kind: "flag"},
		{Name: "requireMcpArgumentBinding", Label: "Tool calls name their arguments", Kind: "flag"},
	}
	for i, f := range fields {
		value, present := members[f.Name]
		if !present {
			continue
		}
		var list []string
		switch {
		case f.Kind == "flag":
			fields[i].Checked = string(value) == "true"
		case f.Kind == "list" && json.Unmarshal(value, &list) == nil:
			fields[i].Value = strings.Join(list, "\n")
			if len(list) == 0 {
				fields[i].Value = "none"
			}
		default:
			fields[i].Value = strings.Trim(string(value), `"`)
		}
	}
	return fields
}

// applyFields writes the form into the text, which keeps what the form does not
// have.
func applyFields(text string, form func(string) string) (string, error) {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		members = map[string]jsontext.Value{"policyId": jsontext.Value(`"default"`)}
	}
	for _, f := range policyFields("") {
		given := strings.TrimSpace(form("f_" + f.Name))
		delete(members, f.Name)
		var value any
		switch {
		case given == "":
			continue
		case f.Kind == "flag":
			value = true
		case f.Kind == "number":
			value = jsontext.Value(given)
			if !jsontext.Value(given).IsValid() || jsontext.Value(given).Kind() != '0' {
				return "", policy.Refuse("invalid_format", "/"+f.Name, f.Name+" must be a number")
			}
		case f.Kind == "list":
			list := []string{}
			for line := range strings.Lines(given) {
				if line = strings.TrimSpace(line); line != "" && line != "none" {
					list = append(list, line)
				}
			}
			value = list
		default:
			value = given
		}
		text, err := json.Marshal(value)
		if err != nil {
			return "", policy.Refuse("invalid_format", "/"+f.Name, f.Name+" could not be read")
		}
		members[f.Name] = text
	}
	whole, err := json.Marshal(members, json.Deterministic(true))
	return IndentJSON(whole), err
}

func newPolicy(s *Handler, v *visit) (view, error) {
	p, page, redirect, err := s.readPolicies(v, commands.RightDraft)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	text := "{\n  \"policyId\": \"default\"\n}\n"
	query := v.request.URL.Query()
	if starter, ok := (assurance.Starter{Name: query.Get("template")}).Text(); ok && query.Get("template") != "" {
		text = starter
	}
	if page.Active != nil {
		if query.Get("template") == "" {
			text = withoutVersion(page.Active.Text)
		}
		text = namedAs(text, page.Active.PolicyID)
	}
	e, err := s.checkPolicy(v.request.Context(), p, page, text)
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
	return IndentJSON(whole)
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
func (s *Handler) checkPolicy(ctx context.Context, p commands.Principal, page policyPage, text string) (policyEditor, error) {
	e := policyEditor{Text: text, Fields: policyFields(text), Checked: true, Starters: page.Starters}
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
	if e.Said, err = PolicySentences([]byte(text)); err != nil {
		return e, err
	}
	if page.Active != nil {
		e.Diff = Diff(withoutVersion(page.Active.Text), withoutVersion(text))
	}
	preview, err := s.app.PreviewPolicy(ctx, p, []byte(text))
	e.Preview = &preview
	return e, err
}

func lintOf(d assurance.Draft) (list []events.PolicyLint) {
	for _, w := range d.Warnings {
		list = append(list, events.PolicyLint{RuleID: w.ID, Severity: w.Severity, Field: w.Path, Message: w.Message, Evidence: w.Evidence})
	}
	return list
}

// postPolicy checks what is written, writes the form into the text, or keeps it as
// a draft.
func postPolicy(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.actor(v)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	if err := p.May(commands.RightDraft); err != nil {
		return view{}, err
	}
	ctx, text := v.request.Context(), strings.ReplaceAll(v.form.Get("policy"), "\r\n", "\n")
	page, err := s.policyPage(ctx, p)
	if err != nil {
		return view{}, err
	}
	if v.form.Get("do") == "form" {
		written, err := applyFields(text, v.form.Get)
		if err != nil {
			return view{}, err
		}
		text = written
	}
	e, err := s.checkPolicy(ctx, p, page, text)
	if err != nil || v.form.Get("do") != "draft" || e.Problem != "" {
		status := http.StatusOK
		if e.Problem != "" {
			status = http.StatusBadRequest
		}
		return view{template: "policy-editor.html", data: e, status: status}, err
	}
	d, err := s.app.DraftPolicy(ctx, p, bytes.TrimSpace([]byte(text)))
	return view{location: "/policies/drafts/" + d.DraftID}, err
}

func showDraftPage(s *Handler, v *visit) (view, error) {
	p, page, redirect, err := s.readPolicies(v, commands.RightPolicies)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	for _, d := range page.Drafts {
		if d.DraftID != v.vars["id"] {
			continue
		}
		e := policyEditor{Text: IndentJSON(d.Canonical), Lint: d.Lint}
		if p.May(commands.RightDraft) == nil {
			if e, err = s.checkPolicy(v.request.Context(), p, page, IndentJSON(d.Canonical)); err != nil {
				return view{}, err
			}
		}
		e.Draft, e.Activate, e.Fresh = &d, page.MayActivate, p.FreshSignIn
		e.Own = d.Author == p.Member && !p.MayActAlone()
		return view{template: "policy-draft.html", data: e}, nil
	}
	return view{}, policy.Refuse(codeNotFound, "", "not found")
}

func postActivate(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.actor(v)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	a, err := s.app.ActivatePolicy(v.request.Context(), p, v.vars["id"], strings.TrimSpace(v.form.Get("reason")))
	return view{location: "/policies/" + strconv.Itoa(a.Version)}, err
}

func postFreeze(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.actor(v)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	if v.form.Get("sure") != "yes" {
		return view{}, policy.Refuse("missing_field", "/sure", "tick the box: a freeze stops every agent of the organization")
	}
	a, err := s.app.FreezePolicy(v.request.Context(), p, strings.TrimSpace(v.form.Get("reason")))
	return view{location: "/policies/" + strconv.Itoa(a.Version)}, err
}
