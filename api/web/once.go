package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A form that issues a secret is answered with a redirect to the page that shows it, so that a reload
// never issues a second one. The service does not store the secret: it travels with the redirect in
// a cookie, which the page removes. The cookie is sealed under a key made of the session's token, so
// only this session can read it, no other session can put a secret into it, and every node can
// open it.

// onceCookie is the name of the cookie with the sealed secret.
const onceCookie = "countersign_once"

// onceFor is how long a browser may take to follow the redirect.
const onceFor = 2 * time.Minute

// ShowOnce returns a view that leads to a page, which shows a secret once.
func (v *Visit) ShowOnce(page, secret string) (View, error) {
	seal, err := v.onceSeal()
	if err != nil {
		return View{}, err
	}
	until := strconv.FormatInt(v.handler.Commands.Clock().Add(onceFor).Unix(), 10)
	sealed := seal.Seal(nil, nil, []byte(until+" "+secret), []byte(page))
	return View{Location: page, Cookie: v.onceCookie(base64.RawURLEncoding.EncodeToString(sealed), int(onceFor/time.Second))}, nil
}

// ShownOnce returns the secret that the page shows this once, and the cookie that removes it. Without
// a secret they are empty and nil.
func (v *Visit) ShownOnce() (secret string, removes *http.Cookie) {
	cookie, err := v.Request.Cookie(v.onceCookie("", 0).Name)
	if err != nil || v.Session == nil || v.Request.Method != http.MethodGet {
		return "", nil
	}
	removes = v.onceCookie("", -1)
	seal, err := v.onceSeal()
	if err != nil {
		return "", removes
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return "", removes
	}
	text, err := seal.Open(nil, nil, sealed, []byte(v.Request.URL.Path))
	if err != nil {
		return "", nil // it is for another page, which has not been opened yet
	}
	until, secret, _ := strings.Cut(string(text), " ")
	if end, err := strconv.ParseInt(until, 10, 64); err != nil || v.handler.Commands.Clock().Unix() > end {
		return "", removes
	}
	return secret, removes
}

func (v *Visit) onceCookie(value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: onceCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: maxAge}
	if strings.HasPrefix(v.handler.Commands.BaseURL, "https://") {
		c.Name, c.Secure = "__Host-"+onceCookie, true
	}
	return c
}

// onceSeal returns a cipher with a key made of the session's token.
func (v *Visit) onceSeal() (cipher.AEAD, error) {
	token, err := v.Request.Cookie(v.handler.Credentials.Sessions.Cookie())
	if err != nil {
		return nil, err
	}
	key := hmac.New(sha256.New, []byte(token.Value))
	key.Write([]byte("shown once"))
	block, err := aes.NewCipher(key.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
