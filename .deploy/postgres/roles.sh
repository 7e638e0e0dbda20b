#!/bin/sh
# Makes the roles of the service in a new database, once: who owns the tables, who
# may only add events, and a login for each. Run by the image of PostgreSQL at its
# first start; by hand: POSTGRES_DB=countersign MIGRATE_PASSWORD=… SERVE_PASSWORD=… PGUSER=postgres sh roles.sh
set -eu
psql -v ON_ERROR_STOP=1 --username "${POSTGRES_USER:-${PGUSER:-postgres}}" --dbname "$POSTGRES_DB" \
	-v db="$POSTGRES_DB" -v migrate="$MIGRATE_PASSWORD" -v serve="$SERVE_PASSWORD" <<'SQL'
create role countersign_owner nologin;
create role countersign_app nologin;
grant countersign_app to countersign_owner;

create role countersign_migrate login password :'migrate' in role countersign_owner;
create role countersign_serve login password :'serve' in role countersign_app;

grant connect, create on database :"db" to countersign_owner, countersign_app;
grant usage, create on schema public to countersign_owner;
revoke create on schema public from public;
SQL
