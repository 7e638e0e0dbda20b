package web

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign/countersign/commands/organizations"
)

// People maps the ids of members to their e-mail addresses, as far as the reader may see them. The
// entry of the empty id is used for members without an entry.
type People map[string]string

// PeopleOf returns the names that a principal may see.
func PeopleOf(ctx context.Context, o *organizations.Organizations, p organizations.Principal) People {
	people := People{"operator": "the operator", "system": "the service"}
	members, err := o.Members(ctx, p)
	if err != nil {
		people[p.Member], people[""] = "you", "another member"
		return people
	}
	people[""] = "a former member"
	for _, m := range members {
		people[m.MemberID] = m.Email
	}
	return people
}

// Name returns the display name of a member, token or program.
func (p People) Name(id string) string {
	if strings.HasPrefix(id, "cus_") {
		return cmp.Or(p[id], p[""], id)
	}
	return cmp.Or(p[id], id)
}
