package credential

import (
	"encoding/base64"
	"net/url"
	"testing"
)

func basic(c ClientSecret) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(c.ClientID)+":"+url.QueryEscape(c.Secret)))
}

// FuzzBasicClient parses any header. If the header is accepted, encoding the result gives the same
// two parts again.
func FuzzBasicClient(f *testing.F) {
	for _, header := range []string{basic(ClientSecret{"agt_01KAAAAAAAAAAAAAAAAAAAAAAA", "svca_x"}), "Basic ", "basic OjpZ", "Bearer a.b.c", "Basic %%%"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		c, ok := basicClient(header)
		if !ok {
			return
		}
		again, ok := basicClient(basic(c))
		if !ok || again != c {
			t.Errorf("%q: %+v, then %+v", header, c, again)
		}
	})
}
