package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const oauthBearer = "OAUTHBEARER"

// parameters lists the allowed URL parameters, each with the parameter that it requires, or with
// empty text.
var parameters = map[string]string{
	"tls": "", "ca": "tls=true", "cert": "tls=true", "key": "tls=true",
	"sasl": "", "token": "sasl=" + oauthBearer, "token_url": "sasl=" + oauthBearer, "scope": "sasl=" + oauthBearer,
}

// parse returns the client options for a Kafka URL.
func parse(address string) ([]kgo.Opt, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "kafka" || u.Host == "" {
		return nil, errors.New("the URL must look like kafka://user:password@host:9092,host2:9092/topic?tls=true")
	}
	q, err := query(u.RawQuery)
	if err != nil {
		return nil, err
	}
	brokers, topic := strings.Split(u.Host, ","), strings.TrimPrefix(u.Path, "/")
	if slices.Contains(brokers, "") {
		return nil, errors.New("the URL must name the brokers, as host:port separated by commas")
	}
	if topic == "" || strings.Contains(topic, "/") {
		return nil, errors.New("the URL must name one topic after the brokers: kafka://host:9092/topic")
	}
	options := []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic)}
	for _, of := range []func(url.Values, *url.Userinfo) (kgo.Opt, error){secure, authenticated} {
		o, err := of(q, u.User)
		if err != nil {
			return nil, err
		}
		if o != nil {
			options = append(options, o)
		}
	}
	return options, nil
}

// query parses and checks the parameters of a Kafka URL.
func query(raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errors.New("the parameters of the URL must be name=value, separated by &")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		wants, known := parameters[name]
		other, value, _ := strings.Cut(wants, "=")
		switch {
		case !known: // the error does not contain the unknown name, because after an unescaped question mark in a password it would be a part of the password
			return nil, fmt.Errorf("the URL has an unknown parameter; the parameters of a Kafka URL are %s", strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
		case len(q[name]) > 1 || q.Get(name) == "":
			return nil, fmt.Errorf("%s must have one value", name)
		case q.Get(other) != value:
			return nil, fmt.Errorf("%s needs %s", name, wants)
		}
	}
	if tls := q.Get("tls"); q.Has("tls") && tls != "true" && tls != "false" {
		return nil, errors.New("tls must be true or false")
	}
	return q, nil
}

// secure returns the TLS option with the client's certificate, or nil if the URL does not ask for
// TLS.
func secure(q url.Values, _ *url.Userinfo) (kgo.Opt, error) {
	if q.Get("tls") != "true" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if q.Has("ca") {
		config.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(q.Get("ca")); err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca must be a readable file of PEM certificates")
		}
	}
	if q.Has("key") && !q.Has("cert") {
		return nil, errors.New("key needs cert, the certificate of the key")
	}
	if q.Has("cert") {
		keyFile := q.Get("key")
		if keyFile == "" {
			keyFile = q.Get("cert")
		}
		own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(q.Get("cert"), keyFile)
			if err != nil {
				return nil, errors.New("cert and key must be readable files with a PEM certificate and its key")
			}
			return &pair, nil
		}
		if _, err := own(nil); err != nil {
			return nil, err
		}
		config.GetClientCertificate = own
	}
	return kgo.DialTLSConfig(config), nil
}

// authenticated returns the option with which the client authenticates to brokers, or nil if the
// URL asks for no authentication.
func authenticated(q url.Values, user *url.Userinfo) (kgo.Opt, error) {
	if user == nil && !q.Has("sasl") {
		return nil, nil
	}
	m, err := mechanism(q, user)
	if err != nil {
		return nil, err
	}
	return kgo.SASL(m), nil
}

func mechanism(q url.Values, user *url.Userinfo) (sasl.Mechanism, error) {
	name, secure := q.Get("sasl"), q.Get("tls") == "true"
	if (name == "PLAIN" || name == oauthBearer) && !secure {
		return nil, fmt.Errorf("sasl=%s needs tls=true, because without TLS the network can read the secret", name)
	}
	if name == oauthBearer {
		return bearer(q, user)
	}
	if user == nil {
		return nil, errors.New("sasl needs a user and a password")
	}
	password, _ := user.Password()
	switch name {
	case "", "SCRAM-SHA-512":
		return scram.Auth{User: user.Username(), Pass: password}.AsSha512Mechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user.Username(), Pass: password}.AsSha256Mechanism(), nil
	case "PLAIN":
		return plain.Auth{User: user.Username(), Pass: password}.AsMechanism(), nil
	}
	return nil, errors.New("sasl must be SCRAM-SHA-512, SCRAM-SHA-256, PLAIN or OAUTHBEARER")
}

// bearer returns the mechanism OAUTHBEARER. The token comes from a file or from a token server, at
// which the client authenticates with user and password.
func bearer(q url.Values, user *url.Userinfo) (sasl.Mechanism, error) {
	if q.Has("token") == q.Has("token_url") {
		return nil, errors.New("sasl=OAUTHBEARER needs either token, a file, or token_url, a server that issues tokens")
	}
	if q.Has("token_url") {
		return byCredentials(q, user)
	}
	if user != nil || q.Has("scope") {
		return nil, errors.New("token=FILE cannot be combined with a user, a password or scope, because the token in the file identifies the client")
	}
	read := func(context.Context) (oauth.Auth, error) {
		text, err := os.ReadFile(q.Get("token"))
		token := strings.TrimSpace(string(text))
		if err != nil || token == "" || strings.ContainsAny(token, "\x00\x01\r\n ") {
			return oauth.Auth{}, errors.New("token must be a readable file with one token")
		}
		return oauth.Auth{Token: token}, nil
	}
	if _, err := read(context.Background()); err != nil {
		return nil, err
	}
	return oauth.Oauth(read), nil
}

// byCredentials returns the mechanism OAUTHBEARER with tokens from a token server. The answer of
// the server may contain a secret, so an error contains only its OAuth error code.
func byCredentials(q url.Values, user *url.Userinfo) (sasl.Mechanism, error) {
	at, err := url.Parse(q.Get("token_url"))
	switch {
	case err != nil || at.Host == "" || at.User != nil:
		return nil, errors.New("token_url must be the URL of a server such as https://id.example.com/token")
	case at.Scheme != "https" && !(at.Scheme == "http" && net.ParseIP(at.Hostname()).IsLoopback()):
		return nil, errors.New("token_url must be https, because otherwise the network can read the password")
	case user == nil:
		return nil, errors.New("token_url needs a user and a password in the Kafka URL: the client id and its secret")
	}
	password, _ := user.Password()
	config := clientcredentials.Config{ClientID: user.Username(), ClientSecret: password, TokenURL: q.Get("token_url"), Scopes: strings.Fields(q.Get("scope"))}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	tokens := config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client))
	return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
		token, err := tokens.Token()
		var refused *oauth2.RetrieveError
		switch {
		case errors.As(err, &refused):
			return oauth.Auth{}, fmt.Errorf("the server of token_url issued no token: answer %d %.40q", refused.Response.StatusCode, refused.ErrorCode)
		case err != nil:
			return oauth.Auth{}, errors.New("the server of token_url cannot be reached, or issued no token")
		}
		return oauth.Auth{Token: token.AccessToken}, nil
	}), nil
}
