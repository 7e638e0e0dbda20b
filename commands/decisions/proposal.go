package decisions

import (
	"context"
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
)

// Proposal is a draft that waits for its activation, as an e-mail about it describes it.
type Proposal struct {
	Draft
	Active      []byte   // canonical JSON of the active policy; nil if there is none
	Older       int      // number of older drafts that wait, too, among those that the caller named
	AuthorEmail string   // empty if the author is no member, or the address was erased
	ByToken     bool     // a token sent the draft
	Admins      []string // e-mail addresses of the members who may activate the draft
}

// Propose describes the newest of the named drafts that waits for its activation. It returns false
// if none waits. Members whose address was erased are left out of Admins. It checks no right.
func (a *Decisions) Propose(ctx context.Context, orgID string, draftIDs []string) (Proposal, bool, error) {
	s, err := a.readPolicies(ctx, orgID)
	if err != nil {
		return Proposal{}, false, ground.Refusal(err)
	}
	waiting := slices.DeleteFunc(s.drafts, func(d Draft) bool { return d.Activated || !slices.Contains(draftIDs, d.DraftID) })
	if len(waiting) == 0 {
		return Proposal{}, false, nil
	}
	newest := waiting[len(waiting)-1]
	p := Proposal{Draft: newest, Older: len(waiting) - 1, ByToken: strings.HasPrefix(newest.actor, organizations.TokenActor(""))}
	if n := len(s.activations); n > 0 {
		p.Active = s.activations[n-1].Canonical
	}
	members, err := a.MembersOf(ctx, orgID)
	if err != nil {
		return Proposal{}, false, err
	}
	for _, m := range members {
		if m.MemberID == newest.Author {
			p.AuthorEmail = m.Email
		}
		if m.Email == "" || !organizations.RoleMay(m.Role, organizations.RightActivate) {
			continue
		}
		own, err := a.IsOwn(ctx, organizations.Principal{OrgID: orgID, Member: m.MemberID}, newest.actor)
		if err != nil {
			return Proposal{}, false, err
		}
		if !own {
			p.Admins = append(p.Admins, m.Email)
		}
	}
	return p, true, nil
}
