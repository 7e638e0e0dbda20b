package migrations

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errURL replaces the library's error, whose text repeats the connection string, which may
// contain a password.
var errURL = errors.New("DATABASE_URL is not a PostgreSQL connection string: it must be such as postgres://USER:PASSWORD@HOST:PORT/DATABASE")

// errUnescaped is returned for a password that ends too early: the part after its first @ or /
// would be resolved as a host or used as a database name, and appear in errors and logs.
var errUnescaped = errors.New("DATABASE_URL has an @ or a / too many: in a user or password write @ as %40 and / as %2F")

// ParseURL reads the connection string of a database. Its errors repeat no part of it.
func ParseURL(databaseURL string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, errURL
	}
	if strings.LastIndex(config.Host, "@") > 0 || strings.Contains(config.Database, "@") && !strings.Contains(databaseURL, "%40") { // @NAME alone is a socket
		return nil, errUnescaped
	}
	return config, nil
}

// ParsePoolURL is ParseURL for a pool of connections.
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
