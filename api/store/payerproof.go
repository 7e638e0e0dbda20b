package store

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// payerProof is the body of a POST to the page of an unclaimed purchase.
type payerProof struct {
	ClaimSecret string `json:"claimSecret"`
	Refund      bool   `json:"refund"` // requests a refund instead of the file; requires no proof
}

// purchaseID matches the id of a purchase. It never matches the token of a link, which is longer.
var purchaseID = regexp.MustCompile(`^pur_[0-9A-HJKMNP-TV-Z]{26}$`)

var errNoProof = policy.Refuse(ground.CodeNotTheBuyer, "", "claimSecret does not belong to the purchase: send the claimSecret of the first answer, or sign in with the paying address (SIGN-IN-WITH-X)")

// downloadAsPayer handles the page of a purchase that is bound neither to an e-mail address nor to
// an identifier. It sends the file only to a caller who proves to be the payer. Until the first
// download it also accepts a request for a refund.
func (s *Downloads) downloadAsPayer(w http.ResponseWriter, r *http.Request, id string, browser bool) {
	var product store.Product
	u, err := s.Store.FindUnboundPurchase(r.Context(), id)
	if err == nil && !s.Callers.MayWork(r, credential.Caller{}, 1) {
		err = policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute")
	}
	if err != nil {
		s.failShown(w, r, browser, err)
		return
	}
	signed := r.Header.Get(x402.HeaderSignIn)
	switch {
	case r.Method == http.MethodPost:
		var proof payerProof
		if proof, err = s.readProof(w, r); err != nil {
			break
		}
		if proof.Refund {
			s.refundAsPayer(w, r, u, browser)
			return
		}
		if err = errNoProof; s.Store.IsClaimSecret(id, proof.ClaimSecret) || signed != "" && s.signedByPayer(r, u, signed) {
			err = nil
		}
	case signed != "" && !s.signedByPayer(r, u, signed), signed == "" && !browser:
		var d *payments.Demand
		if d, err = s.demandProof(u); err == nil {
			err = d
		}
	case signed == "" || r.Method == http.MethodHead:
		s.Web.ShowPurchase(w, r, web.Purchase{ID: id, Product: u.Product, Refundable: u.Refundable, Refund: u.Refund})
		return
	}
	if err == nil {
		product, err = s.Store.DownloadUnbound(r.Context(), u)
	}
	if err != nil {
		s.failShown(w, r, browser, err)
		return
	}
	sendFile(w, r, product)
}

// failShown writes an error as a page or as JSON.
func (s *Downloads) failShown(w http.ResponseWriter, r *http.Request, browser bool, err error) {
	if browser {
		s.Answers.Page(w, r, err)
		return
	}
	s.Answers.Fail(w, r, false, err)
}

// readProof parses the body: the form of the page, or JSON.
func (s *Downloads) readProof(w http.ResponseWriter, r *http.Request) (p payerProof, err error) {
	if !s.Sessions.SameOrigin(r) {
		return p, policy.Refuse(organizations.CodeForbidden, "", "cross-origin request refused")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, op.LimitOther))
	if err != nil {
		return p, request.TooLarge(op.LimitOther)
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(text))
		if err != nil {
			return p, policy.Refuse(op.CodeInvalidBody, "", "the form cannot be read")
		}
		return payerProof{form.Get("claimSecret"), form.Get("refund") != ""}, nil
	}
	if len(text) == 0 {
		return p, nil
	}
	if canon.Check(text) != nil || json.Unmarshal(text, &p) != nil {
		return p, policy.Refuse(op.CodeInvalidBody, "", "the body must be an object with claimSecret (a string) or refund (true)")
	}
	return p, nil
}

func (s *Downloads) refundAsPayer(w http.ResponseWriter, r *http.Request, u store.UnboundPurchase, browser bool) {
	made, err := s.Store.RefundUnbound(r.Context(), u.PurchaseID)
	switch {
	case err != nil:
		s.failShown(w, r, browser, err)
	case browser:
		s.Web.ShowPurchase(w, r, web.Purchase{ID: u.PurchaseID, Product: u.Product, Refund: &made})
	default:
		s.Answers.Reply(w, r, &op.Operation{Success: http.StatusOK}, op.Reply{Value: map[string]refund{"refund": refund(made)}})
	}
}

// payerPage returns the address of the page of a purchase.
func payerPage(base, id string) string { return base + "/api/downloads/" + id }

// signIn returns the message that the payer of a purchase must sign, issued at this time.
func (s *Downloads) signIn(u store.UnboundPurchase, issuedAt string) (asked x402.SignIn, err error) {
	at, err := time.Parse(time.RFC3339, issuedAt)
	if err != nil {
		return asked, err
	}
	nonce, err := s.Store.SignInNonce(u.PurchaseID, issuedAt)
	if err != nil {
		return asked, err
	}
	base, err := url.Parse(s.Store.BaseURL)
	if err != nil {
		return asked, err
	}
	return x402.NewSignIn(payerPage(s.Store.BaseURL, u.PurchaseID), base.Host, "Download a purchase of this address: "+u.Product.Name, nonce, at), nil
}

// demandProof returns a 402 that demands the payer's signature instead of a payment.
func (s *Downloads) demandProof(u store.UnboundPurchase) (*payments.Demand, error) {
	asked, err := s.signIn(u, ground.Stamp(s.Store.Clock()))
	return &payments.Demand{Required: asked.Challenge(u.Network, u.Product.Name)}, err
}

// signedByPayer reports whether the header SIGN-IN-WITH-X proves that the caller controls the
// paying address.
func (s *Downloads) signedByPayer(r *http.Request, u store.UnboundPurchase, header string) bool {
	proof, ok := x402.ReadSignIn(header)
	if !ok || u.Payer == "" {
		return false
	}
	asked, err := s.signIn(u, proof.IssuedAt)
	return err == nil && proof.Fresh(asked, u.Network, s.Store.Clock()) && proof.By(r.Context(), u.Payer, s.Store.Settler)
}
