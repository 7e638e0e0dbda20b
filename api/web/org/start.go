package org

import (
	"context"
	"strings"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// firstSteps is the data of the page that leads a new member to the first decision. It lists steps
// in order, each with what is already done.
type firstSteps struct {
	Private   bool // the person may create an organization here; otherwise a subscription creates it
	Member    bool // the person has chosen an organization
	Policy    *decisions.Activation
	MayDo     bool // the person may activate a policy alone and issue tokens
	Fresh     bool // the person signed in recently enough for these changes
	Starters  []assurance.Starter
	Token     bool   // the organization has a valid token
	Issued    string // new token, which only this answer shows
	Sample    string // request body that the sample agent sends
	First     *query.ListedDecision
	MayTokens bool // the person may see the tokens
}

// Requests of the sample agent: a tool call, or a payment if the policy allows payments.
const (
	sampleCall    = `{"protocol":"mcp","idempotencyKey":"first-steps-1","subject":{"runId":"first-steps","agentId":"sample-agent"},"intent":{"serverId":"files","toolName":"read_file","toolArguments":{"path":"README.md"},"declaredRisk":"low"}}`
	samplePayment = `{"protocol":"x402","idempotencyKey":"first-steps-1","subject":{"runId":"first-steps","agentId":"sample-agent"},"intent":{"resourceUrl":"https://api.example.com/forecast","method":"GET","scheme":"exact","network":"base","amountUsd":0.25}}`
)

// SampleCall returns the tool call of the sample agent.
func (firstSteps) SampleCall() string { return sampleCall }

func (r *Room) showStart(v *web.Visit) (web.View, error) {
	steps := firstSteps{Private: r.AddressOf != nil, Starters: assurance.Starters(), Sample: sampleCall}
	shows := web.View{Template: "start.html"}
	steps.Issued, shows.Cookie = v.ShownOnce()
	p, member := v.Member()
	steps.Member = member
	var err error
	if member {
		err = r.addDone(v.Request.Context(), p, &steps)
	}
	shows.Data = steps
	return shows, err
}

// addDone sets the members of firstSteps that show what the organization has already done.
func (r *Room) addDone(ctx context.Context, p organizations.Principal, steps *firstSteps) error {
	steps.MayDo = p.MayActAlone() && organizations.RoleMay(p.Role, organizations.RightActivate) && organizations.RoleMay(p.Role, organizations.RightManage)
	steps.Fresh = p.FreshSignIn
	if p.May(organizations.RightPolicies) == nil {
		_, activations, err := r.Commands.Policies(ctx, p)
		if err != nil {
			return err
		}
		if n := len(activations); n > 0 {
			steps.Policy = &activations[n-1]
			if strings.Contains(string(steps.Policy.Canonical), "api.example.com") {
				steps.Sample = samplePayment
			}
		}
	}
	if p.May(organizations.RightMembers) == nil {
		steps.MayTokens = true
		tokens, err := r.Commands.Tokens(ctx, p)
		if err != nil {
			return err
		}
		for _, t := range tokens {
			steps.Token = steps.Token || t.State == "active"
		}
	}
	page, err := r.queries().Search(ctx, p, query.Filter{}, 1, "")
	if err == nil && len(page.Items) > 0 {
		steps.First = &page.Items[0]
	}
	return err
}

// postStart creates an organization. The signed-in person becomes its owner.
func (r *Room) postStart(v *web.Visit) (web.View, error) {
	if r.AddressOf == nil {
		return web.View{}, policy.Refuse(organizations.CodeForbidden, "", "an organization is created by a subscription to the Team or Business plan: see /pricing")
	}
	ctx := v.Request.Context()
	address, err := r.AddressOf(ctx, v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	created, err := r.Commands.CreateOrganization(ctx, v.Session.Customer, strings.TrimSpace(v.Form.Get("name")), organizations.PlanTeam, address)
	if err != nil {
		return web.View{}, err
	}
	v.Session.Choose(created.OrgID)
	return web.View{Location: "/start"}, nil
}

// postStartPolicy activates a starter policy.
func (r *Room) postStartPolicy(v *web.Visit) (web.View, error) {
	name := v.Form.Get("template")
	text, known := assurance.Starter{Name: name}.Text()
	if !known {
		return web.View{}, policy.Refuse("invalid_enum", "/template", "template must be x402, mcp or strict")
	}
	_, err := r.Commands.DraftAndActivate(v.Request.Context(), v.Principal, []byte(text), "first policy, from the template "+name)
	return web.View{Location: "/start"}, err
}

// postStartToken issues a token with the usual scopes and redirects to the page that shows it
// once.
func (r *Room) postStartToken(v *web.Visit) (web.View, error) {
	issued, err := r.Commands.IssueToken(v.Request.Context(), v.Principal, organizations.TokenOrder{Name: "sample agent"})
	if err != nil {
		return web.View{}, err
	}
	return v.ShowOnce("/start", issued.Token)
}
