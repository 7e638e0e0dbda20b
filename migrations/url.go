package migrations

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errURL replaces the library's error, whose text repeats the connection string, which may contain
// a password.
var errURL = errors.New("DATABASE_URL is not a PostgreSQL connection string: it must look like postgres://USER:PASSWORD@HOST:PORT/DATABASE")

// errUnescaped means that a password contains an unescaped @ or /. The rest of the password would
// be used as the name of a host or database, and appear in errors and logs.
var errUnescaped = errors.New("DATABASE_URL has an @ or a / too many: in a user or password write @ as %40 and / as %2F")

// ParseURL parses the connection string of a database. Its errors repeat no part of the string.
func ParseURL(databaseURL string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, errURL
	}
	if strings.LastIndex(config.Host, "@") > 0 || strings.Contains(config.Database, "@") && !strings.Contains(databaseURL, "%40") { // a host that begins with @ is a socket
		return nil, errUnescaped
	}
	return config, nil
}

// ParsePoolURL parses the connection string for a pool of connections, as ParseURL does.
func ParsePoolURL(databaseURL string) (*pgxpool.Config, error) {
	if _, err := ParseURL(databaseURL); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errURL
	}
	return config, nil
}
