package web

import (
	"net/http"

	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
)

// Purchase is the data of the page of a purchase that no account has claimed. Its payer can claim
// it.
type Purchase struct {
	ID         string
	Product    store.Product
	Refundable bool
	Refund     *payments.Refund // nil if no refund was requested
}

// ShowPurchase writes the page of an unclaimed purchase.
func (s *Handler) ShowPurchase(w http.ResponseWriter, r *http.Request, p Purchase) {
	s.show(w, s.visit(w, r), View{Template: "purchase.html", Data: p})
}

// ShowDownload writes the page with the button that downloads a file.
func (s *Handler) ShowDownload(w http.ResponseWriter, r *http.Request, p store.Product) {
	s.show(w, s.visit(w, r), View{Template: "download.html", Data: p})
}
