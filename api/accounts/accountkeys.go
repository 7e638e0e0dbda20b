package accounts

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
)

var issueAccountKey = &op.Operation{
	Creates: true, ID: "issue_account_key", Method: http.MethodPost, Path: "/api/account/keys",
	Summary: "Issue an API key in the account. All keys of the account share one count of free calls, and after those the account's pass pays. The key is shown once.",
	Access:  credential.Access{Kind: credential.Person}, Input: reflect.TypeFor[struct{}](), Optional: true, Output: reflect.TypeFor[freeKey](),
	Example: `{}`, Success: http.StatusCreated, Errors: []int{400, 401, 403, 413, 429, 503},
}

func (s *Keys) issueAccountKey(c *op.Call) (op.Reply, error) {
	issued, err := s.Commands.IssueAccountKey(c.Request.Context(), c.Session.Customer)
	return op.Reply{Value: freeKey{
		APIKey: issued.APIKey, KeyID: issued.KeyID, Plan: "free", CallsPerMonth: accounts.FreeCallsPerMonth,
		ResetsAt: ground.Stamp(issued.ResetsAt), StatusURL: s.Commands.BaseURL + "/api/keys/free/status",
	}}, err
}

type accountKeyList struct {
	Keys []accounts.AccountKey `json:"keys"`
	op.Paged
}

var listAccountKeys = &op.Operation{
	ID: "list_account_keys", Method: http.MethodGet, Path: "/api/account/keys",
	Summary: "The API keys of the account, without their secrets." + op.PagedBy,
	Access:  credential.Access{Kind: credential.Person}, Output: reflect.TypeFor[accountKeyList](), Errors: []int{400, 401, 403, 503},
}

func (s *Keys) listAccountKeys(c *op.Call) (op.Reply, error) {
	list, err := s.Commands.AccountKeys(c.Request.Context(), c.Session.Customer)
	if err != nil {
		return op.Reply{}, err
	}
	list, page, err := op.Page(c.Request.URL.RawQuery, list, func(k accounts.AccountKey) string { return k.KeyID })
	return op.Reply{Value: accountKeyList{list, page}}, err
}

var revokeAccountKey = &op.Operation{
	ID: "revoke_account_key", Method: http.MethodDelete, Path: "/api/account/keys/{id}",
	Summary: "Revoke an API key of the account at once.",
	Access:  credential.Access{Kind: credential.Person}, Output: reflect.TypeFor[op.Ended](), Errors: []int{401, 403, 404, 503},
}

func (s *Keys) revokeAccountKey(c *op.Call) (op.Reply, error) {
	err := s.Commands.RevokeAccountKey(c.Request.Context(), c.Session.Customer, c.Vars["id"], "revoked in the account")
	return op.Reply{Value: op.Ended{ID: c.Vars["id"], State: "revoked"}}, err
}
