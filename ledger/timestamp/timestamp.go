// Package timestamp asks a time-stamp authority (TSA, RFC 3161) to sign the hash of a text
// together with the time, and checks the answers. An answer proves that the text existed before
// that time. It does not prove how long before.
//
// A request is the DER encoding of
//
//	TimeStampReq ::= SEQUENCE { version 1, SHA-256 of the text, nonce, certReq TRUE }
//
// It is sent by POST as application/timestamp-query. The answer, application/timestamp-reply, has
// a CMS signature (RFC 5652) and the certificate of the authority. "openssl ts" reads and checks
// requests and answers.
package timestamp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha1" // #nosec G505 -- only to find a certificate that an authority names by its SHA-1
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"time"
)

// MaxAnswer is the largest size of an answer in bytes.
const MaxAnswer = 64 << 10

// within is the time limit for an answer.
const within = 10 * time.Second

// outside follows no redirect, so it sends requests only to the address that the operator has
// configured.
var outside = &http.Client{Timeout: within, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Authority is a time-stamp authority.
type Authority struct{ URL string }

// Ask requests a time stamp of a text and returns the authority's answer, which Parse has checked.
// Ask does not check who issued the authority's certificate.
func (a Authority) Ask(ctx context.Context, text []byte) (answer []byte, err error) {
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	query, err := request(text, nonce)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(query))
	if err != nil {
		return nil, errors.New("the address of the time-stamp authority is not a URL")
	}
	r.Header.Set("Content-Type", "application/timestamp-query")
	response, err := outside.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the time-stamp authority: %w", err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the time-stamp authority: %w", err)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the time-stamp authority answered %s", response.Status)
	case len(answer) > MaxAnswer:
		return nil, fmt.Errorf("the answer of the time-stamp authority is longer than %d bytes", MaxAnswer)
	}
	stamp, err := Parse(answer, text)
	if err == nil && (stamp.nonce == nil || stamp.nonce.Cmp(nonce) != 0) {
		err = errors.New("the answer of the time-stamp authority is about another request")
	}
	return answer, err
}

var (
	oidSHA256      = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidSHA384      = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2}
	oidSHA512      = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3}
	oidSignedData  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidTSTInfo     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4}
	oidContentType = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	oidDigest      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
	oidSigner      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 12} // signing certificate, by SHA-1
	oidSignerV2    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 47} // signing certificate, by another hash
	oidRSA         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	oidECDSA       = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	oidEd25519     = asn1.ObjectIdentifier{1, 3, 101, 112}
)

type imprint struct {
	Algorithm pkix.AlgorithmIdentifier
	Hash      []byte
}

type query struct {
	Version int
	Imprint imprint
	Nonce   *big.Int
	CertReq bool
}

// request returns the DER encoding of a request.
func request(text []byte, nonce *big.Int) ([]byte, error) {
	sum := sha256.Sum256(text)
	return asn1.Marshal(query{1, imprint{pkix.AlgorithmIdentifier{Algorithm: oidSHA256, Parameters: asn1.NullRawValue}, sum[:]}, nonce, true})
}

type reply struct {
	Status struct {
		Status int
		Text   []asn1.RawValue `asn1:"optional"`
		Reason asn1.BitString  `asn1:"optional"`
	}
	Token contentInfo `asn1:"optional"`
}

type contentInfo struct {
	Type    asn1.ObjectIdentifier
	Content asn1.RawValue `asn1:"explicit,tag:0"`
}

type signedData struct {
	Version int
	Digests []pkix.AlgorithmIdentifier `asn1:"set"`
	Encap   struct {
		Type    asn1.ObjectIdentifier
		Content []byte `asn1:"explicit,tag:0"`
	}
	Certificates asn1.RawValue `asn1:"optional,tag:0"`
	CRLs         asn1.RawValue `asn1:"optional,tag:1"`
	Signers      []signerInfo  `asn1:"set"`
}

type signerInfo struct {
	Version    int
	ID         asn1.RawValue
	Digest     pkix.AlgorithmIdentifier
	Attributes asn1.RawValue `asn1:"tag:0"`
	Algorithm  pkix.AlgorithmIdentifier
	Signature  []byte
	Unsigned   asn1.RawValue `asn1:"optional,tag:1"`
}

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

type tstInfo struct {
	Version  int
	Policy   asn1.ObjectIdentifier
	Imprint  imprint
	Serial   *big.Int
	Time     asn1.RawValue
	Accuracy struct {
		Seconds int `asn1:"optional"`
		Millis  int `asn1:"optional,tag:0"`
		Micros  int `asn1:"optional,tag:1"`
	} `asn1:"optional"`
	Ordering   bool          `asn1:"optional"`
	Nonce      *big.Int      `asn1:"optional"`
	Name       asn1.RawValue `asn1:"optional,explicit,tag:0"`
	Extensions asn1.RawValue `asn1:"optional,tag:1"`
}

// Stamp is a checked answer: its signature is by the certificate in it.
type Stamp struct {
	Time      time.Time // latest time at which the text already existed, according to the authority
	Authority string    // subject of the authority's certificate

	nonce  *big.Int
	signer *x509.Certificate
	others []*x509.Certificate // other certificates of the answer
}

// Parse checks that an answer is a granted time stamp of a text, signed by the certificate in it.
// It does not check who issued the certificate: Chain does that.
func Parse(answer, text []byte) (*Stamp, error) {
	var r reply
	if err := parse(answer, &r); err != nil {
		return nil, err
	}
	if s := r.Status.Status; s != 0 && s != 1 {
		return nil, fmt.Errorf("the time-stamp authority refused the request with status %d", s)
	}
	var data signedData
	if !r.Token.Type.Equal(oidSignedData) {
		return nil, errForm
	}
	if err := parse(r.Token.Content.Bytes, &data); err != nil {
		return nil, err
	}
	var info tstInfo
	if err := parse(data.Encap.Content, &info); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	switch {
	case !data.Encap.Type.Equal(oidTSTInfo) || info.Version != 1 || len(data.Signers) != 1:
		return nil, errForm
	case !info.Imprint.Algorithm.Algorithm.Equal(oidSHA256) || !bytes.Equal(info.Imprint.Hash, sum[:]):
		return nil, errors.New("the time stamp is of another text")
	}
	at, err := time.Parse("20060102150405.999999999Z", string(info.Time.Bytes))
	if err != nil || info.Time.Class != asn1.ClassUniversal || info.Time.Tag != asn1.TagGeneralizedTime {
		return nil, errForm
	}
	a := info.Accuracy
	at = at.Add(time.Duration(a.Seconds)*time.Second + time.Duration(a.Millis)*time.Millisecond + time.Duration(a.Micros)*time.Microsecond)
	certificates, err := x509.ParseCertificates(data.Certificates.Bytes)
	if err != nil {
		return nil, errors.New("the time stamp has no readable certificate")
	}
	signer, err := data.Signers[0].check(data.Encap.Content, certificates)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(certificates, func(c *x509.Certificate) bool { return c == signer })
	return &Stamp{Time: at, Authority: signer.Subject.String(), nonce: info.Nonce, signer: signer, others: others}, nil
}

// Chain checks that a root certificate has issued the authority's certificate, directly or by
// other certificates of the answer, and that the authority's certificate was valid at the time of
// the stamp and may be used for time stamps.
func (s *Stamp) Chain(roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range s.others {
		between.AddCert(c)
	}
	_, err := s.signer.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: s.Time, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}})
	return err
}

var errForm = errors.New("the time stamp is malformed")

// parse decodes DER without trailing data.
func parse(der []byte, into any) error {
	if rest, err := asn1.Unmarshal(der, into); err != nil || len(rest) > 0 {
		return errForm
	}
	return nil
}

// check verifies the signature over a content and returns the certificate of the signer. The
// signed attributes must name that certificate by its hash.
func (s *signerInfo) check(content []byte, certificates []*x509.Certificate) (*x509.Certificate, error) {
	// The signature is over the attributes as a SET, but they are stored with another tag.
	signed := bytes.Clone(s.Attributes.FullBytes)
	if len(signed) == 0 {
		return nil, errForm
	}
	signed[0] = asn1.TagSet | 0x20
	var attributes []attribute
	if rest, err := asn1.UnmarshalWithParams(signed, &attributes, "set"); err != nil || len(rest) > 0 {
		return nil, errForm
	}
	hash, ok := hashOf(s.Digest.Algorithm)
	if !ok {
		return nil, errors.New("the time stamp has a hash algorithm that this program does not know")
	}
	var kind asn1.ObjectIdentifier
	var digest []byte
	var names func(*x509.Certificate) bool
	for _, a := range attributes {
		if len(a.Values) != 1 {
			continue
		}
		value := a.Values[0].FullBytes
		var err error
		switch {
		case a.Type.Equal(oidContentType):
			err = parse(value, &kind)
		case a.Type.Equal(oidDigest):
			err = parse(value, &digest)
		case a.Type.Equal(oidSigner) && names == nil, a.Type.Equal(oidSignerV2):
			names, err = naming(value, a.Type.Equal(oidSignerV2))
		}
		if err != nil {
			return nil, err
		}
	}
	h := hash.New()
	h.Write(content)
	if !kind.Equal(oidTSTInfo) || !bytes.Equal(digest, h.Sum(nil)) || names == nil {
		return nil, errors.New("the content of the time stamp differs from what its authority signed")
	}
	at := slices.IndexFunc(certificates, names)
	if at < 0 {
		return nil, errors.New("the time stamp has no certificate of its authority")
	}
	signer := certificates[at]
	if err := signer.CheckSignature(s.algorithm(hash), signed, s.Signature); err != nil {
		return nil, fmt.Errorf("the signature of the time stamp is not valid: %w", err)
	}
	return signer, nil
}

// naming returns a function that reports whether the attribute names a certificate by its hash.
func naming(value []byte, v2 bool) (func(*x509.Certificate) bool, error) {
	var listed struct {
		Certificates []asn1.RawValue
		Policies     []asn1.RawValue `asn1:"optional"`
	}
	if err := parse(value, &listed); err != nil || len(listed.Certificates) == 0 {
		return nil, errForm
	}
	first := listed.Certificates[0].FullBytes
	if !v2 {
		var id struct {
			Hash   []byte
			Issuer asn1.RawValue `asn1:"optional"`
		}
		return func(c *x509.Certificate) bool {
			sum := sha1.Sum(c.Raw) // #nosec G401 -- RFC 2634 has no other hash here; the signature does not depend on it
			return bytes.Equal(sum[:], id.Hash)
		}, parse(first, &id)
	}
	// The hash algorithm is left out if it is SHA-256.
	var id struct {
		Algorithm pkix.AlgorithmIdentifier `asn1:"optional"`
		Hash      []byte
		Issuer    asn1.RawValue `asn1:"optional"`
	}
	if err := parse(first, &id); err != nil {
		return nil, err
	}
	hash, ok := crypto.SHA256, true
	if len(id.Algorithm.Algorithm) > 0 {
		hash, ok = hashOf(id.Algorithm.Algorithm)
	}
	return func(c *x509.Certificate) bool {
		if !ok {
			return false
		}
		h := hash.New()
		h.Write(c.Raw)
		return bytes.Equal(h.Sum(nil), id.Hash)
	}, nil
}

// hashOf returns the hash algorithm with this identifier. ok is false if a signature must not use
// it, as for SHA-1.
func hashOf(id asn1.ObjectIdentifier) (hash crypto.Hash, ok bool) {
	switch {
	case id.Equal(oidSHA256):
		return crypto.SHA256, true
	case id.Equal(oidSHA384):
		return crypto.SHA384, true
	case id.Equal(oidSHA512):
		return crypto.SHA512, true
	}
	return 0, false
}

// algorithm returns the algorithm of the signature, or an unknown one, which CheckSignature
// refuses. If the answer names only the algorithm of the key, the hash algorithm completes the
// name.
func (s *signerInfo) algorithm(hash crypto.Hash) x509.SignatureAlgorithm {
	id := s.Algorithm.Algorithm
	for _, a := range algorithms {
		if a.hash == hash && (id.Equal(a.key) || id.Equal(a.combined)) {
			return a.algorithm
		}
	}
	if id.Equal(oidEd25519) {
		return x509.PureEd25519
	}
	return x509.UnknownSignatureAlgorithm
}

var algorithms = []struct {
	key, combined asn1.ObjectIdentifier
	hash          crypto.Hash
	algorithm     x509.SignatureAlgorithm
}{
	{oidRSA, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, crypto.SHA256, x509.SHA256WithRSA},
	{oidRSA, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 12}, crypto.SHA384, x509.SHA384WithRSA},
	{oidRSA, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 13}, crypto.SHA512, x509.SHA512WithRSA},
	{oidECDSA, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}, crypto.SHA256, x509.ECDSAWithSHA256},
	{oidECDSA, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 3}, crypto.SHA384, x509.ECDSAWithSHA384},
	{oidECDSA, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 4}, crypto.SHA512, x509.ECDSAWithSHA512},
}
