package accounts

import (
	"strings"
	"testing"
)

// FuzzLocalPath checks that LocalPath returns no path that leads a browser to another host.
func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/reviews", "//evil.example", `/\evil.example`, "https://evil.example", "/\t/x", "", "/", "/a?b=c#d", "/\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		path := LocalPath(next)
		if path[0] != '/' || len(path) < 2 || path[1] == '/' || path[1] == '\\' || strings.ContainsAny(path, "\r\n\t\x00\\ ") || len(path) > maxNext {
			t.Errorf("%q leads to %q", next, path)
		}
		if path != next && path != "/account" {
			t.Errorf("%q became %q", next, path)
		}
	})
}

func TestBoxOpensWithItsSecretOnly(t *testing.T) {
	t.Parallel()
	one, two := []byte(strings.Repeat("1", 32)), []byte(strings.Repeat("2", 32))
	box, err := boxOf(one, linked{Address: "ada@example.com", Next: "/account"})
	if err != nil || strings.Contains(string(box), "ada@") {
		t.Fatalf("%q %v", box, err)
	}
	if l, err := openBox(one, box); err != nil || l != (linked{Address: "ada@example.com", Next: "/account"}) {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := openBox(two, box); err == nil {
		t.Error("opened with another secret")
	}
	for i := range box {
		changed := append([]byte{}, box...)
		changed[i] ^= 1
		if _, err := openBox(one, changed); err == nil {
			t.Fatalf("opened with octet %d changed", i)
		}
	}
}
