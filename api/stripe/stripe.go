// Package stripe implements checkout.Provider with Stripe. Prices are sent with each checkout, so
// that only the catalogue contains them. The service stores no object of Stripe.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// Provider implements checkout.Provider.
type Provider struct {
	key     string
	secrets []string // secrets of the webhook endpoint; more than one during a rotation
	backend stripe.Backend
	slots   chan struct{} // one element per request in progress
	clock   func() time.Time
}

// Config configures a provider.
type Config struct {
	SecretKey      string
	WebhookSecrets string // separated by commas
	APIBase        string // empty means Stripe's own API; otherwise a loopback address
	Clock          func() time.Time
}

// New returns a provider, or an error that names the invalid setting.
func New(c Config) (*Provider, error) {
	p := &Provider{key: c.SecretKey, slots: make(chan struct{}, maxRequests), clock: c.Clock}
	for secret := range strings.SplitSeq(c.WebhookSecrets, ",") {
		if secret = strings.TrimSpace(secret); secret != "" {
			p.secrets = append(p.secrets, secret)
		}
	}
	if p.key == "" || len(p.secrets) == 0 {
		return nil, errors.New("STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET need each other: set both, or neither")
	}
	base := stripe.APIURL
	if c.APIBase != "" {
		if base = strings.TrimSuffix(c.APIBase, "/"); !loopbackURL(base) {
			return nil, errors.New("STRIPE_API_BASE must be a loopback address such as http://127.0.0.1:12111")
		}
	}
	p.backend = stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: &base, EnableTelemetry: stripe.Bool(false), MaxNetworkRetries: stripe.Int64(1),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, // the library would log texts that quote keys; we log errors ourselves
		HTTPClient: &http.Client{Timeout: requestTimeout, Transport: boundedAnswers{&http.Transport{MaxIdleConnsPerHost: maxRequests}},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("the checkout provider sent a redirect, which is not followed")
			}},
	})
	return p, nil
}

func loopbackURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// boundedAnswers limits the size of answers.
type boundedAnswers struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Begin creates a checkout session and returns its address.
func (p *Provider) Begin(ctx context.Context, o checkout.Order) (string, error) {
	var made stripe.CheckoutSession
	err := p.call(ctx, http.MethodPost, "/v1/checkout/sessions", sessionParams(o), &made)
	return p.address(made.URL, err)
}

// sessionParams converts an order to parameters of the provider.
func sessionParams(o checkout.Order) *stripe.CheckoutSessionParams {
	price := &stripe.CheckoutSessionLineItemPriceDataParams{Currency: stripe.String("usd"), UnitAmount: &o.Product.PriceCents,
		ProductData: &stripe.CheckoutSessionLineItemPriceDataProductDataParams{Name: &o.Product.Name, Description: &o.Product.Description}}
	slug := map[string]string{"slug": o.Product.Slug}
	p := &stripe.CheckoutSessionParams{
		LineItems: []*stripe.CheckoutSessionLineItemParams{{PriceData: price, Quantity: stripe.Int64(1)}},
		Metadata:  slug, SuccessURL: &o.SuccessURL, CancelURL: &o.CancelURL,
	}
	if o.CustomerID != "" {
		p.ClientReferenceID = &o.CustomerID
	}
	switch {
	case o.ProviderCustomer != "":
		p.Customer = &o.ProviderCustomer
	case o.Email != "":
		p.CustomerEmail = &o.Email
	}
	if o.Product.Kind == store.Subscription {
		price.Recurring = &stripe.CheckoutSessionLineItemPriceDataRecurringParams{Interval: stripe.String("month")}
		p.Mode = stripe.String("subscription")
		p.SubscriptionData = &stripe.CheckoutSessionSubscriptionDataParams{Metadata: slug}
		return p
	}
	p.Mode = stripe.String("payment")
	p.PaymentIntentData = &stripe.CheckoutSessionPaymentIntentDataParams{Metadata: slug}
	if p.Customer == nil {
		p.CustomerCreation = stripe.String("always")
	}
	return p
}

// Portal creates a session of the billing portal and returns its address.
func (p *Provider) Portal(ctx context.Context, customer, returnURL string) (string, error) {
	var made stripe.BillingPortalSession
	err := p.call(ctx, http.MethodPost, "/v1/billing_portal/sessions",
		&stripe.BillingPortalSessionParams{Customer: &customer, ReturnURL: &returnURL}, &made)
	return p.address(made.URL, err)
}

// address returns an address from the provider's answer if it is safe to redirect a caller there.
func (p *Provider) address(text string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "https" && !loopbackURL(text) {
		return "", errors.New("the checkout provider's answer has no address")
	}
	return text, nil
}

// rawSubscription keeps the provider's answer as bytes, because it is parsed like a notice.
type rawSubscription struct{ stripe.APIResource }

// Subscription reads the current state of a subscription from the provider.
func (p *Provider) Subscription(ctx context.Context, id string) (string, events.SubscriptionUpdated, error) {
	if !providerID(id) {
		return "", events.SubscriptionUpdated{}, errors.New("the id is not that of a subscription")
	}
	var got rawSubscription
	if err := p.call(ctx, http.MethodGet, "/v1/subscriptions/"+id, &stripe.SubscriptionParams{}, &got); err != nil {
		return "", events.SubscriptionUpdated{}, err
	}
	customer, fact, err := readSubscription(got.LastResponse.RawJSON, "read")
	if err == nil && fact.Subscription != id {
		err = errors.New("the checkout provider returned another subscription")
	}
	return customer, fact, err
}

// call sends one request. It fails if too many are in progress, because a slow provider must not
// take all resources of the service.
func (p *Provider) call(ctx context.Context, method, path string, params stripe.ParamsContainer, into stripe.LastResponseSetter) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		return errors.New("too many requests to the checkout provider are under way")
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	params.GetParams().Context = ctx
	return quiet(p.backend.Call(method, path, p.key, params, into))
}

// quiet reduces an error to what may be logged, because the provider's texts quote keys and
// addresses.
func quiet(err error) error {
	var refused *stripe.Error
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return fmt.Errorf("status %d, type %s, code %s, param %s, request %s",
			refused.HTTPStatusCode, refused.Type, refused.Code, refused.Param, refused.RequestID)
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	}
	return errors.New("the answer could not be read")
}

// codeInvalid is the code of every refused notice.
const codeInvalid = "invalid_request"

// errSignature is the error for a notice whose signature is missing, wrong or too old.
var errSignature = policy.Refuse(codeInvalid, "", "Stripe-Signature is missing, wrong or not recent")

// signed checks that one of the secrets signed the body, at most five minutes before or after now.
// The library's own check uses the clock of the machine and limits only the past.
func (p *Provider) signed(body []byte, h http.Header) error {
	values := h.Values("Stripe-Signature")
	if len(values) != 1 || len(values[0]) > maxSignatureHeader {
		return errSignature
	}
	var stamps []int64
	for part := range strings.SplitSeq(values[0], ",") {
		if digits, isTime := strings.CutPrefix(part, "t="); isTime {
			stamp, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				return errSignature
			}
			stamps = append(stamps, stamp)
		}
	}
	if len(stamps) != 1 {
		return errSignature
	}
	if away := p.clock().Sub(time.Unix(stamps[0], 0)); away.Abs() > signatureTolerance {
		return errSignature
	}
	for _, secret := range p.secrets {
		if webhook.ValidatePayloadIgnoringTolerance(body, values[0], secret) == nil {
			return nil
		}
	}
	return errSignature
}
