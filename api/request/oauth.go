package request

import (
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Codes of RFC 6749 and RFC 8707 for errors of OAuth endpoints.
const (
	CodeInvalidTarget = "invalid_target"
	CodeGrantType     = "unsupported_grant_type"
	CodeResponseType  = "unsupported_response_type"
	codeServerError   = "server_error"
)

// OAuthRefusal marks an error as that of an OAuth endpoint, so that it is answered in OAuth's
// form. code is the endpoint's code for invalid input.
func OAuthRefusal(err error, code string) error { return &oauthRefusal{err, code} }

type oauthRefusal struct {
	error
	code string
}

// Unwrap returns the original error.
func (o *oauthRefusal) Unwrap() error { return o.error }

// in returns the error in OAuth's form.
func (o *oauthRefusal) in(status int, p op.Problem) op.OAuthProblem {
	switch p.Code {
	case accounts.CodeInvalidClient, accounts.CodeInvalidScope, CodeInvalidTarget, CodeGrantType, CodeResponseType:
		return op.OAuthProblem{Error: p.Code, Description: p.Error}
	}
	switch {
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return op.OAuthProblem{Error: ground.CodeUnavailable, Description: p.Error}
	case status >= http.StatusInternalServerError:
		return op.OAuthProblem{Error: codeServerError, Description: p.Error}
	}
	return op.OAuthProblem{Error: o.code, Description: p.Error}
}

// readOAuth reads the body of an OAuth endpoint as canonical JSON. A form becomes an object with
// the members that the operation declares. Empty members are omitted.
func readOAuth(w http.ResponseWriter, r *http.Request, o *op.Operation) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !o.Form || err != nil || media != "application/x-www-form-urlencoded" {
		text, err := readBody(w, r, o.Limit, false)
		if o.Form && errors.Is(err, errMedia) {
			err = policy.Refuse(op.CodeInvalidBody, "", "content type must be application/x-www-form-urlencoded or application/json")
		}
		if err != nil {
			return nil, err
		}
		return canon.Canonical(text)
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return nil, policy.Refuse(op.CodeInvalidBody, "", "content encoding is not supported")
	}
	form, err := web.ReadForm(w, r, o.Limit)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	properties, _ := o.Schema.Document["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch values := form[name]; {
		case len(values) > 1:
			return nil, policy.Refuse(op.CodeInvalidBody, "/"+name, name+" is given twice")
		case len(values) == 1 && values[0] != "":
			members[name] = values[0]
		}
	}
	text, err := canon.Marshal(members)
	if err != nil {
		return nil, policy.Refuse(op.CodeInvalidBody, "", "the form is not UTF-8")
	}
	return text, nil
}
