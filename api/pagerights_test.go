package api_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// askedByCommand lists the forms whose page requires only the right to read, while their command
// requires another right. The command checks this right if the form has the listed fields. The
// page of such a form shows the refusal together with what was written, so that the person does
// not have to type it again.
var askedByCommand = map[string]struct {
	right  organizations.Right
	fields url.Values
}{
	"POST /reviews/{id}":         {organizations.RightApprove, url.Values{"verdict": {"approved"}, "reason": {"not of this member"}}},
	"POST /policies/drafts/{id}": {organizations.RightActivate, nil},
}

// filled lists fields that a page checks before its command checks the right. If the member has
// the right, a form with these fields is refused for another reason, or does no harm.
var filled = map[string]url.Values{
	"POST /members/remove":       {"reason": {"left"}},
	"POST /keys":                 {"scope": {"x"}},
	"POST /webhooks":             {"topic": {"x"}},
	"POST /webhooks/{id}/remove": {"reason": {"moved"}},
	"POST /policies/freeze":      {"sure": {"yes"}},
	"POST /evidence/export":      {"period": {"x"}},
	"POST /evidence/pack":        {"period": {"x"}},
}

// TestEveryPageAsksForTheRightThatItDeclares opens every page in every role, signed out, as a
// member of no organization and as a member of another one. Each answer must follow from the right
// that the page declares, and a command must not require more.
func TestEveryPageAsksForTheRightThatItDeclares(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	things := c.furnish(t)
	draft, err := s.app.DraftPolicy(t.Context(), c.now(t), []byte(toolPolicy), "") // the draft is by another member, so that only the role decides who may activate it
	if err != nil {
		t.Fatal(err)
	}
	waiting := c.decide(t, toolBody("k2", "agent-7", "write", "critical")).decision(t).Record.DecisionID
	things["drafts"], things["reviews"], things["decisions"] = draft.DraftID, waiting, waiting
	things["version"], things["operation"] = "1", "action_safety_quick_gate"
	things["agents"] = regexp.MustCompile(`sub_[0-9A-Z]{26}`).FindString(c.people["owner"].get("/spend").body)
	w := pageWalk{t: t, crew: c, things: things, stranger: s.browser(t), foreign: s.signedIn(t, "eve@example.com"), alone: s.signedIn(t, "ada@example.com")}
	if _, err := s.app.CreateOrganization(t.Context(), "operator", "Eve's", "team", "eve@example.com"); err != nil {
		t.Fatal(err)
	}
	w.round(true)
	s.clock.Add(11 * time.Minute) // a sign-in counts as recent for 10 minutes
	w.round(false)
	if w.tried < 600 {
		t.Errorf("only %d pages were asked for", w.tried)
	}
	clean(t, s)
}

// pageWalk opens pages as different visitors.
type pageWalk struct {
	t                        *testing.T
	crew                     *crew
	things                   belongings
	stranger, foreign, alone *browser
	tried                    int
}

// round opens all pages, with recent or old sign-ins.
func (w *pageWalk) round(fresh bool) {
	w.t.Helper()
	for _, page := range w.crew.site.server.Pages() {
		if page.Path == "/sign-out" { // it would end the sessions of the test
			continue
		}
		switch page.Access.Kind {
		case credential.Anybody:
			w.isOpen(page)
		case credential.Person:
			w.asksForASignIn(page)
			for _, b := range []*browser{w.foreign, w.alone, w.crew.people["auditor"]} {
				got := w.ask(page, b, nil)
				w.wants(page, "somebody who is signed in", !toSignIn(got), got)
			}
		case credential.Member:
			w.asksForASignIn(page)
			w.isClosedToOthers(page)
			for _, role := range organizations.Roles {
				w.holdsTheRight(page, role, fresh)
			}
		default:
			w.t.Errorf("%s %s: a page is for anybody, for who is signed in, or for members with a right", page.Method, page.Path)
		}
	}
}

var pathVariables = regexp.MustCompile(`([a-z]+)/\{([a-z]+)[^}]*\}`)

// ask opens the page as this visitor, or sends its form with some fields.
func (w *pageWalk) ask(page web.Route, b *browser, fields url.Values) answer {
	w.t.Helper()
	w.tried++
	path := pathVariables.ReplaceAllStringFunc(page.Path, func(part string) string {
		names := pathVariables.FindStringSubmatch(part)
		id := w.things[names[2]]
		if names[2] == "id" {
			id = w.things[names[1]]
		}
		if id == "" {
			w.t.Fatalf("%s: this test knows no value for %s", page.Path, part)
		}
		return names[1] + "/" + id
	})
	if page.Method == http.MethodGet {
		return b.get(path+"?org="+w.crew.orgID, "Accept", "text/html")
	}
	sent := url.Values{"org": {w.crew.orgID}}
	maps.Copy(sent, filled[page.Method+" "+page.Path])
	maps.Copy(sent, fields)
	return b.form(path, sent)
}

func (w *pageWalk) wants(page web.Route, who string, ok bool, got answer) {
	w.t.Helper()
	if !ok {
		w.t.Errorf("%s %s (%v %q) as %s: %d %s %.3000s", page.Method, page.Path, page.Access.Kind, page.Access.Right, who, got.status, got.header.Get("Location"), got.body)
	}
}

// isOpen checks that every visitor gets the same status.
func (w *pageWalk) isOpen(page web.Route) {
	w.t.Helper()
	stranger := w.ask(page, w.stranger, nil)
	w.wants(page, "a stranger", !toSignIn(stranger), stranger)
	for who, b := range map[string]*browser{"a member of another organization": w.foreign, "a member of none": w.alone, "an auditor": w.crew.people["auditor"]} {
		got := w.ask(page, b, nil)
		w.wants(page, fmt.Sprintf("%s, where a stranger gets %d", who, stranger.status), got.status == stranger.status, got)
	}
}

func (w *pageWalk) asksForASignIn(page web.Route) {
	w.t.Helper()
	got := w.ask(page, w.stranger, nil)
	w.wants(page, "a stranger", toSignIn(got), got)
}

// toSignIn reports whether an answer asks the visitor to sign in: a page by a redirect, a form by
// a page that keeps what was written.
func toSignIn(got answer) bool {
	return got.status == http.StatusSeeOther && strings.HasPrefix(got.header.Get("Location"), "/sign-in?next=") ||
		got.status == http.StatusUnauthorized && strings.Contains(got.body, `action="/sign-in"`)
}

// isClosedToOthers checks that members of another organization learn nothing, and that people
// without an organization are sent to their account.
func (w *pageWalk) isClosedToOthers(page web.Route) {
	w.t.Helper()
	status := http.StatusNotFound
	if page.Method == http.MethodPost {
		status = http.StatusConflict
	}
	got := w.ask(page, w.foreign, nil)
	w.wants(page, "a member of another organization", got.status == status && !strings.Contains(got.body, "Acme"), got)
	got = w.ask(page, w.alone, nil)
	w.wants(page, "a member of none", got.status == http.StatusSeeOther && got.header.Get("Location") == "/start", got)
}

// holdsTheRight checks that a member may open the page, or gets the reason, according to the
// declared right and the role.
func (w *pageWalk) holdsTheRight(page web.Route, role string, fresh bool) {
	w.t.Helper()
	b, member := w.crew.people[role], organizations.Principal{Role: role, Plan: organizations.PlanBusiness, FreshSignIn: fresh}
	if err := member.May(page.Access.Right); err != nil {
		w.isRefused(page, role, w.ask(page, b, nil), err)
		return
	}
	if asked, is := askedByCommand[page.Method+" "+page.Path]; is {
		if err := member.May(asked.right); err != nil {
			w.isRefused(page, role, w.ask(page, b, asked.fields), err)
			if asked.fields == nil { // the command checks its right even for an empty form
				return
			}
		}
	}
	w.passes(page, role)
}

func (w *pageWalk) isRefused(page web.Route, role string, got answer, err error) {
	w.t.Helper()
	var refused *policy.Error
	if !errors.As(err, &refused) {
		w.t.Fatal(err)
	}
	says := []string{refused.Message}
	if errors.Is(err, organizations.ErrSignInAgain) {
		says = append(says, "This needs a sign-in within the last 10 minutes.")
	}
	said := strings.Contains(got.body, says[0]) || strings.Contains(got.body, says[len(says)-1])
	w.wants(page, role+", who must read "+says[0], got.status == http.StatusForbidden && said, got)
}

// passes checks that a member with the right is not refused because of the role.
func (w *pageWalk) passes(page web.Route, role string) {
	w.t.Helper()
	got := w.ask(page, w.crew.people[role], nil)
	w.wants(page, role+", who may", !toSignIn(got) && got.status != http.StatusForbidden && got.status != http.StatusConflict, got)
}
