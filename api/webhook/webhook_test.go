package webhook

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/seal"
)

// TestSign checks the example of the specification's own libraries, and a message during the
// rotation of secrets.
func TestSign(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	at, id, body := time.Unix(1614265330, 0), "msg_p5jXN8AQM9LWM0D4loKWxJek", []byte(`{"test": 2432232314}`)
	if got := Sign([][]byte{secret}, id, at, body); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
	if got := Sign([][]byte{[]byte("new"), secret}, id, at, body); !strings.HasSuffix(got, " "+want) {
		t.Errorf("two secrets: %s", got)
	}
}

func TestAddressesThatOnlyTheServiceReachesAreRefused(t *testing.T) {
	for _, ip := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.8",
		"198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1",
		"::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::808:808", "64:ff9b:1:2:3::1", "::ffff:0:127.0.0.1", "::ffff:0:808:808", "2002:7f00:1::", "2001:0:1::1", "::7f00:1",
	} {
		if err := allowed(nil, net.JoinHostPort(ip, "443")); !errors.Is(err, ErrPrivate) {
			t.Errorf("%s: %v", ip, err)
		}
	}
	for _, ip := range []string{"93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"} {
		if err := allowed(nil, net.JoinHostPort(ip, "443")); err != nil {
			t.Errorf("%s: %v", ip, err)
		}
	}
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	if err := allowed(networks, "10.1.2.3:443"); err != nil {
		t.Errorf("an allowed network: %v", err)
	}
	if err := allowed(networks, "10.2.2.3:443"); !errors.Is(err, ErrPrivate) {
		t.Errorf("the network next to an allowed one: %v", err)
	}
}

// TestNameOfAPrivateAddressIsRefused checks that a host name that resolves to a private address is
// refused before anything is sent.
func TestNameOfAPrivateAddressIsRefused(t *testing.T) {
	asked := false
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer receiver.Close()
	url := strings.Replace(receiver.URL, "127.0.0.1", "localhost", 1)
	_, err := NewSender(nil, time.Now).Send(t.Context(), url, Message{ID: "0:1", Media: "application/json", Body: []byte("{}"), Secrets: [][]byte{[]byte("s")}})
	if !errors.Is(err, ErrPrivate) || asked {
		t.Errorf("%v, asked %v", err, asked)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func TestAnswers(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1") // must be ignored: a proxy would connect in our place
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    Answer
		err     string
	}{
		"yes":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, Answer{Status: 204}, ""},
		"no":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, Answer{Status: 500}, "the receiver answered 500"},
		"gone":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, Answer{Status: 410}, "the receiver answered 410"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/more", http.StatusFound) }, Answer{Status: 302}, "the receiver answered 302"},
		"later": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "90"); w.WriteHeader(429) },
			Answer{Status: 429, Wait: 90 * time.Second}, "the receiver answered 429"},
		"much later": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999")
			w.WriteHeader(503)
		},
			Answer{Status: 503, Wait: time.Hour}, "the receiver answered 503"},
		"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Answer{}, "the connection failed"},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := httptest.NewServer(c.handler)
			defer receiver.Close()
			got, err := NewSender(loopback, time.Now).Send(t.Context(), receiver.URL, Message{ID: "0:1", Media: "application/json", Body: []byte("{}"), Secrets: [][]byte{[]byte("s")}})
			if text := errorText(err); got != c.want || text != c.err {
				t.Errorf("%+v, %q", got, text)
			}
		})
	}
}

func TestErrorsTellNoAddress(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	encrypted := httptest.NewTLSServer(nil)
	defer encrypted.Close()
	for url, want := range map[string]string{
		closed.URL:                   "the connection was refused",
		encrypted.URL:                "the TLS connection or certificate of the receiver is not valid",
		"https://nowhere.invalid/S3": "the host has no address",
	} {
		_, err := NewSender(loopback, time.Now).Send(t.Context(), url, Message{ID: "0:1", Media: "application/json"})
		if errorText(err) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := NewSender(loopback, time.Now).Send(late, closed.URL, Message{ID: "0:1", Media: "application/json"}); errorText(err) != "no answer in time" {
		t.Errorf("late: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAMessageIsSignedByThePublishedKey checks that the RFC 9421 signature covers the receiver,
// the id and the body, and is made with the key that signs records.
func TestAMessageIsSignedByThePublishedKey(t *testing.T) {
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	var got *http.Request
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer receiver.Close()
	at := time.Unix(1_795_186_800, 0)
	_, err = NewSender(loopback, func() time.Time { return at }).Send(t.Context(), receiver.URL+"/hooks/a%20b?token=x", Message{ID: "0:1:decisions", Media: "application/json", Body: []byte(`{"hello": "world"}`), Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	// digest of the example in RFC 9530, appendix D
	const digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
	parameters := `("@method" "@authority" "@path" "content-digest" "content-type" "webhook-id");created=1795186800;keyid="` + signer.KeyID() + `";alg="ed25519";tag="countersign-webhook"`
	base := "\"@method\": POST\n\"@authority\": " + strings.TrimPrefix(receiver.URL, "http://") + "\n\"@path\": /hooks/a%20b\n\"content-digest\": " + digest +
		"\n\"content-type\": application/json\n\"webhook-id\": 0:1:decisions\n\"@signature-params\": " + parameters
	encoded := strings.TrimSuffix(strings.TrimPrefix(got.Header.Get("Signature"), "countersign=:"), ":")
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || got.Header.Get("Content-Digest") != digest || got.Header.Get("Signature-Input") != "countersign="+parameters || !ed25519.Verify(signer.Public(), []byte(base), signature) {
		t.Errorf("%v, %v", got.Header, err)
	}
}
