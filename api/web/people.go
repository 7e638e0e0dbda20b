package web

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign/countersign/commands/organizations"
)

// People maps the ids of members to their e-mail addresses. If the reader may not see the
// addresses, it has only the reader, as "you". The entry with the empty id is the name of all
// other members.
type People map[string]string

// PeopleOf returns the names of the members, as far as a principal may see them.
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
