#!/bin/sh
# Prepares a new database for the service, and makes the roles that its server does
# not have yet: who owns the tables, who may only add events, and a login for each.
# Run by the image of PostgreSQL at its first start; by hand, also for a second
# database that a backup is restored into (the logins keep their passwords then):
# POSTGRES_DB=countersign MIGRATE_PASSWORD=… SERVE_PASSWORD=… PGUSER=postgres sh roles.sh
set -eu
psql -v ON_ERROR_STOP=1 --quiet --username "${POSTGRES_USER:-${PGUSER:-postgres}}" --dbname "$POSTGRES_DB" \
	-v db="$POSTGRES_DB" -v migrate="$MIGRATE_PASSWORD" -v serve="$SERVE_PASSWORD" <<'SQL'
set client_min_messages = warning;
select format('create role %I %s', name, options)
from (values (1, 'countersign_owner', 'nologin'),
	(2, 'countersign_app', 'nologin'),
	(3, 'countersign_migrate', 'login in role countersign_owner password ' || quote_literal(:'migrate')),
	(4, 'countersign_serve', 'login in role countersign_app password ' || quote_literal(:'serve'))) as wanted (n, name, options)
where not exists (select from pg_roles where rolname = name)
order by n \gexec
grant countersign_app to countersign_owner;

grant connect, create on database :"db" to countersign_owner, countersign_app;
grant usage, create on schema public to countersign_owner;
revoke create on schema public from public;
SQL
