package web

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign/countersign/commands/organizations"
)

// People are the e-mail addresses of an organization's members by their ids, as far as the reader may
// know them. The empty id is for members who are not among them.
type People map[string]string

// PeopleOf returns the people that a principal may know.
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

// Name returns what a page calls the member, token or program with an id.
func (p People) Name(id string) string {
	if strings.HasPrefix(id, "cus_") {
		return cmp.Or(p[id], p[""], id)
	}
	return cmp.Or(p[id], id)
}
