package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"

	"github.com/countersign/countersign/api/credential"
)

var issueAccountKey = &operation{
	anew: true, id: "issue_account_key", method: http.MethodPost, path: "/api/account/keys",
	summary: "Issue an API key in the account. All its keys share one count of free calls and then draw on the account's pass. It is shown once.",
	access:  credential.Access{Kind: credential.Person}, input: reflect.TypeFor[struct{}](), optional: true, output: reflect.TypeFor[freeKey](),
	example: `{}`, success: http.StatusCreated, errors: []int{400, 401, 403, 413, 429, 503},
}

func (s *Server) issueAccountKey(c *call) (reply, error) {
	issued, err := s.app.IssueAccountKey(c.request.Context(), c.Session.Customer)
	return reply{value: freeKey{
		APIKey: issued.APIKey, KeyID: issued.KeyID, Plan: "free", CallsPerMonth: accounts.FreeCallsPerMonth,
		ResetsAt: ground.Stamp(issued.ResetsAt), StatusURL: s.app.BaseURL + "/api/keys/free/status",
	}}, err
}

type accountKeyList struct {
	Keys []accounts.AccountKey `json:"keys"`
	paged
}

var listAccountKeys = &operation{
	id: "list_account_keys", method: http.MethodGet, path: "/api/account/keys",
	summary: "The API keys of the account, without their secrets." + pagedBy,
	access:  credential.Access{Kind: credential.Person}, output: reflect.TypeFor[accountKeyList](), errors: []int{400, 401, 403, 503},
}

func (s *Server) listAccountKeys(c *call) (reply, error) {
	list, err := s.app.AccountKeys(c.request.Context(), c.Session.Customer)
	if err != nil {
		return reply{}, err
	}
	list, page, err := pageOf(c.request.URL.RawQuery, list, func(k accounts.AccountKey) string { return k.KeyID })
	return reply{value: accountKeyList{list, page}}, err
}

var revokeAccountKey = &operation{
	id: "revoke_account_key", method: http.MethodDelete, path: "/api/account/keys/{id}",
	summary: "End an API key of the account at once.",
	access:  credential.Access{Kind: credential.Person}, output: reflect.TypeFor[state](), errors: []int{401, 403, 404, 503},
}

func (s *Server) revokeAccountKey(c *call) (reply, error) {
	err := s.app.RevokeAccountKey(c.request.Context(), c.Session.Customer, c.vars["id"])
	return reply{value: state{c.vars["id"], "revoked"}}, err
}
