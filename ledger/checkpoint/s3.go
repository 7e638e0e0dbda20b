package checkpoint

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// S3 stores notes in a bucket of S3 or of a compatible server, with path-style addresses. It needs
// only PUT and GET requests, signed with AWS Signature Version 4; a client library would need
// twenty modules for that. The operator should enable versioning or an object lock for the bucket:
// then an attacker with these keys can add notes but not remove any.
type S3 struct {
	Endpoint, Region, Bucket, Prefix string
	AccessKey, SecretKey             string
	Client                           *http.Client     // nil means a client with a time-out that follows no redirect
	Now                              func() time.Time // nil means time.Now
}

const (
	s3Timeout   = 10 * time.Second
	fileTimeout = 2 * time.Minute // for files, which may have tens of megabytes
	maxNote     = 64 << 10        // bytes, including the signature lines of many witnesses
)

// String implements Store.
func (s *S3) String() string { return "s3://" + s.Bucket + "/" + s.Prefix }

// Put implements Store. It stores the note, and then an object that contains the name of the
// newest note.
func (s *S3) Put(ctx context.Context, epoch int64, c Checkpoint, text []byte) error {
	key := name(c.Origin, epoch, c.Size)
	if _, err := s.do(ctx, http.MethodPut, key, text); err != nil {
		return err
	}
	_, err := s.do(ctx, http.MethodPut, LedgerName(c.Origin)+"/newest", []byte(key+"\n"))
	return err
}

// Write implements Files.
func (s *S3) Write(ctx context.Context, name string, octets []byte) error {
	_, err := s.ask(ctx, http.MethodPut, name, octets, maxNote, fileTimeout)
	return err
}

// Read implements Files.
func (s *S3) Read(ctx context.Context, name string, most int64) ([]byte, error) {
	return s.ask(ctx, http.MethodGet, name, nil, most, fileTimeout)
}

// Newest implements Store.
func (s *S3) Newest(ctx context.Context, origin string) (int64, []byte, error) {
	key, err := s.do(ctx, http.MethodGet, LedgerName(origin)+"/newest", nil)
	if err != nil {
		return 0, nil, err
	}
	parts := strings.Split(strings.TrimSpace(string(key)), "/")
	if len(parts) != 3 || parts[0] != LedgerName(origin) {
		return 0, nil, fmt.Errorf("%w: the object newest in %s does not contain the name of a note", ErrNote, s)
	}
	epoch, err := epochOf(parts[1])
	if err != nil {
		return 0, nil, err
	}
	text, err := s.do(ctx, http.MethodGet, strings.Join(parts, "/"), nil)
	return epoch, text, err
}

func (s *S3) do(ctx context.Context, method, key string, body []byte) ([]byte, error) {
	return s.ask(ctx, method, key, body, maxNote, s3Timeout)
}

func (s *S3) ask(ctx context.Context, method, key string, body []byte, most int64, within time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	path := "/" + s.Bucket
	for part := range strings.SplitSeq(strings.Trim(s.Prefix+"/"+key, "/"), "/") {
		path += "/" + url.PathEscape(part)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.Endpoint+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", s, err)
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	s.sign(r, body, now())
	client := s.Client
	if client == nil {
		client = outside(within)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", s, err)
	}
	defer answer.Body.Close()
	text, err := readMost(answer.Body, most)
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return nil, fs.ErrNotExist
	case answer.StatusCode/100 != 2:
		return nil, fmt.Errorf("store %s: %s", s, answer.Status)
	case err != nil:
		return nil, fmt.Errorf("store %s: %w", s, err)
	}
	return text, nil
}

// sign adds the headers of AWS Signature Version 4 for the service s3. The signature covers all
// headers that the request has so far.
func (s *S3) sign(r *http.Request, body []byte, now time.Time) {
	stamp, day := now.UTC().Format("20060102T150405Z"), now.UTC().Format("20060102")
	hash := sha256.Sum256(body)
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(hash[:]))
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.URL.Host
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	signed := strings.Join(names, ";")
	request := sha256.Sum256([]byte(strings.Join([]string{r.Method, r.URL.EscapedPath(), "", headers.String(), signed, hex.EncodeToString(hash[:])}, "\n")))
	scope := day + "/" + s.Region + "/s3/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(request[:])
	key := []byte("AWS4" + s.SecretKey)
	for _, part := range []string{day, s.Region, "s3", "aws4_request"} {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.AccessKey+"/"+scope+",SignedHeaders="+signed+",Signature="+hex.EncodeToString(mac(key, toSign)))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
