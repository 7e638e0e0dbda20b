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

// A form is answered with a redirect, so that a reload never sends the form again. The next page
// shows a new secret, or a note about the change, exactly once. The redirect carries this text in
// a cookie, which the page removes. The service does not store it. The cookie is encrypted with a
// key derived from the session token: only this session can read it, no other session can forge
// it, and every node can decrypt it.

// Names of the cookies.
const (
	onceCookie = "countersign_once" // carries a secret
	doneCookie = "countersign_done" // carries a note
)

// onceFor limits the time between the redirect and the request for the page.
const onceFor = 2 * time.Minute

// ShowOnce returns a redirect to a page that shows a secret once.
func (v *Visit) ShowOnce(page, secret string) (View, error) {
	cookie, err := v.sealed(onceCookie, page, secret)
	return View{Location: page, Cookie: cookie}, err
}

// ShownOnce returns the secret that this page shows, and the cookie that removes it from the
// browser. Without a secret both are zero.
func (v *Visit) ShownOnce() (secret string, removes *http.Cookie) {
	return v.opened(onceCookie, v.Request.URL.Path)
}

// sealed returns a cookie with an encrypted text that only the page at this path can decrypt.
func (v *Visit) sealed(name, page, text string) (*http.Cookie, error) {
	seal, err := v.onceSeal()
	if err != nil {
		return nil, err
	}
	until := strconv.FormatInt(v.handler.Commands.Clock().Add(onceFor).Unix(), 10)
	sealed := seal.Seal(nil, nil, []byte(until+" "+text), []byte(name+page))
	return v.onceCookie(name, base64.RawURLEncoding.EncodeToString(sealed), int(onceFor/time.Second)), nil
}

// opened returns the text of an encrypted cookie, and the cookie that removes it from the browser.
func (v *Visit) opened(name, page string) (text string, removes *http.Cookie) {
	cookie, err := v.Request.Cookie(v.onceCookie(name, "", 0).Name)
	if err != nil || v.Session == nil || v.Request.Method != http.MethodGet {
		return "", nil
	}
	removes = v.onceCookie(name, "", -1)
	seal, err := v.onceSeal()
	if err != nil {
		return "", removes
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return "", removes
	}
	opened, err := seal.Open(nil, nil, sealed, []byte(name+page))
	if err != nil {
		return "", nil // the cookie is for another page that has not been opened yet, so it is not removed
	}
	until, text, _ := strings.Cut(string(opened), " ")
	if end, err := strconv.ParseInt(until, 10, 64); err != nil || v.handler.Commands.Clock().Unix() > end {
		return "", removes
	}
	return text, removes
}

func (v *Visit) onceCookie(name, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: maxAge}
	if strings.HasPrefix(v.handler.Commands.BaseURL, "https://") {
		c.Name, c.Secure = "__Host-"+name, true
	}
	return c
}

// onceSeal returns a cipher with a key derived from the session token.
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
