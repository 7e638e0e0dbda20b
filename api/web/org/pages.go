// Package org contains the pages of an organization: the overview, members, tokens, webhooks, the
// guards of its coding agents, evidence for auditors, and policies.
package org

import (
	"context"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/pack"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/projections"
)

// Room contains the dependencies of the organization pages.
type Room struct {
	Commands    *decisions.Decisions // includes the commands about organizations and members
	Webhooks    *webhooks.Webhooks
	Evidence    Evidence
	Projections *projections.Projections
	Drafts      *mail.Drafts // tells the other admins of a saved draft

	// AddressOf returns the e-mail address of a customer. It is set only if one person runs the
	// service on their own machine. That person may create organizations on the pages.
	AddressOf func(ctx context.Context, customerID string) (string, error)
}

// Evidence lists and creates the files for auditors.
type Evidence struct {
	Commands *evidence.Evidence

	// Export creates an export of the principal's organization and returns the path of its bundle.
	Export func(ctx context.Context, p organizations.Principal, e evidence.Export) (path string, err error)
	// Pack creates an evidence pack of the principal's organization.
	Pack func(ctx context.Context, p organizations.Principal, o pack.Order) (exportID string, file []byte, err error)
}

// Pages returns the table of the organization pages.
func (r *Room) Pages() []web.Page {
	// Rights that the pages declare.
	var (
		read     = credential.WithRight(organizations.RightRead)
		members  = credential.WithRight(organizations.RightMembers)
		manage   = credential.WithRight(organizations.RightManage)
		export   = credential.WithRight(organizations.RightExport)
		policies = credential.WithRight(organizations.RightPolicies)
		draft    = credential.WithRight(organizations.RightDraft)
		activate = credential.WithRight(organizations.RightActivate)
	)
	return []web.Page{
		web.Get("/overview", read, r.showOverview),
		web.Get("/start", web.SignedIn, r.showStart),
		web.Post("/start", web.SignedIn, r.postStart),
		web.Post("/start/policy", activate, r.postStartPolicy),
		web.Post("/start/token", manage, r.postStartToken),
		web.Get("/spend", read, r.showSpend),
		web.Get("/agents/{id:sub_[0-9A-Z]+}", read, r.showAgent),
		web.Get("/members", members, r.showMembers),
		web.Post("/members", manage, r.postMember),
		web.Post("/members/remove", manage, r.postRemoveMember),
		web.Post("/members/arguments", manage, r.postArguments),
		web.Get("/keys", members, r.showKeys),
		web.Post("/keys", manage, r.postToken),
		web.Post("/keys/revoke", manage, r.postRevokeToken),
		web.Get("/webhooks", members, r.showWebhooks),
		web.Post("/webhooks", manage, r.postWebhook),
		web.Get("/webhooks/{id}", members, r.showWebhook),
		web.Post("/webhooks/{id}/again", manage, r.postSendAgain),
		web.Post("/webhooks/{id}/rotate", manage, r.postRotateWebhook),
		web.Post("/webhooks/{id}/remove", manage, r.postRemoveWebhook),
		web.Get("/activity", export, r.showActivity),
		web.Get("/evidence", export, r.showEvidence),
		web.Post("/evidence/export", export, r.postExport),
		web.Post("/evidence/statement", export, r.postStatement),
		web.Post("/evidence/dispute", export, r.postDispute),
		web.Post("/evidence/pack", export, r.postPack),
		web.Get("/guard", export, r.showGuard),
		web.Get("/policies", policies, r.showPolicies),
		web.Get("/policies/new", draft, r.newPolicy),
		web.Post("/policies/new", draft, r.postPolicy).UpTo(3 * maxPolicy),
		web.Post("/policies/freeze", activate, r.postFreeze),
		web.Get("/policies/drafts/{id}", policies, r.showDraftPage),
		// This form requires only the right to read policies; the command ActivatePolicy checks
		// the right to activate. If it refuses, the page of the draft can show why, together with
		// the reason that the person wrote.
		web.Post("/policies/drafts/{id}", policies, r.postActivate),
		web.Get("/policies/{version:[0-9]+}", policies, r.showPolicyVersion),
	}
}

// maxPolicy is the largest form of a policy in bytes. It fits 1000 entries in each list: once in
// the text, once in the original text, and once in the fields. Form encoding may triple a byte.
const maxPolicy = 3 * 262_144

// queries returns the queries about decisions that pages share with the API.
func (r *Room) queries() query.Decisions {
	return query.Decisions{Commands: r.Commands, Projections: r.Projections}
}

// deliveries returns the queries about webhook messages that pages share with the API.
func (r *Room) deliveries() query.Deliveries {
	return query.Deliveries{Commands: r.Webhooks, Projections: r.Projections}
}
