package migrations_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign/countersign/migrations"
)

// No error about a malformed connection string repeats any part of its password.
func TestNoErrorRepeatsAPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"host=127.0.0.1 password = SECRET1 port=a",
		"password=SECRET1 host",
		"postgres://u:SECRET1@127.0.0.1:a/db",
		"postgres://u:SECRET1@SECRET2@127.0.0.1:1/db",
		"postgres://u:SECRET1@SECRET2@127.0.0.1:1,127.0.0.1:2/db",
		"postgres://u:1/SECRET2@127.0.0.1:1/db",
		"postgres://u:SECRET1%@127.0.0.1:1/db",
		"postgres://u:SECRET1@127.0.0.1:1/db?sslmode=SECRET2",
	} {
		_, one := migrations.ParseURL(url)
		_, pool := migrations.ParsePoolURL(url)
		if one == nil || pool == nil {
			t.Errorf("%s is taken", url)
		}
		for _, err := range []error{one, pool, migrations.Up(t.Context(), url, "")} {
			if text := errors.Join(err).Error(); strings.Contains(text, "SECRET") || !strings.Contains(text, "DATABASE_URL") {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
	for _, url := range []string{"postgres://u:a%40b%2Fc@127.0.0.1:1/db", "host=@socket user=u", "postgres://u:p@h/a%40b", "host=h password='a@b/c'", "postgres:///db?host=/tmp&user=a@b"} {
		if _, err := migrations.ParseURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := migrations.ParsePoolURL("postgres://u:p@h/db?pool_max_conns=SECRET1"); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("pool: %v", err)
	}
}
