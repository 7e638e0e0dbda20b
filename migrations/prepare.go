package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// OwnerRole owns every table and runs migrations. AppRole is the role of the service.
const (
	OwnerRole = "countersign_owner"
	AppRole   = "countersign_app"
)

// want is a requirement on the roles: a condition, and the statement that satisfies it. If a role
// does not exist the condition is null, which counts as not satisfied. {db} and {login} are
// replaced by the quoted names of the database and of the login.
type want struct{ condition, statement string }

var wants = []want{
	{`to_regrole('countersign_owner') is not null`,
		`create role countersign_owner nologin`},
	{`to_regrole('countersign_app') is not null`,
		`create role countersign_app nologin`},
	// The owner creates and drops the schema of read models, which belongs to the service's role.
	{`pg_has_role(to_regrole('countersign_owner'), to_regrole('countersign_app'), 'member')`,
		`grant countersign_app to countersign_owner`},
	{`pg_has_role(session_user, to_regrole('countersign_owner'), 'member')`,
		`grant countersign_owner to {login}`},
	{`has_database_privilege(to_regrole('countersign_owner'), current_database(), 'create')
	  and has_database_privilege(to_regrole('countersign_owner'), current_database(), 'connect')`,
		`grant connect, create on database {db} to countersign_owner`},
	// The service rebuilds a projection in a scratch schema that it creates.
	{`has_database_privilege(to_regrole('countersign_app'), current_database(), 'create')
	  and has_database_privilege(to_regrole('countersign_app'), current_database(), 'connect')`,
		`grant connect, create on database {db} to countersign_app`},
	{`has_schema_privilege(to_regrole('countersign_owner'), 'public', 'create')`,
		`grant usage, create on schema public to countersign_owner`},
	// In databases created before PostgreSQL 15 every role can create tables in public.
	{`not exists (select from pg_namespace n, aclexplode(n.nspacl) a
	   where n.nspname = 'public' and a.grantee = 0 and a.privilege_type = 'CREATE')`,
		`revoke create on schema public from public`},
	// Citus connects to its workers as the role that runs the query, so both roles need a login
	// there.
	{onCitus + `(select rolcanlogin from pg_roles where rolname = 'countersign_owner')`,
		`alter role countersign_owner login`},
	{onCitus + `(select rolcanlogin from pg_roles where rolname = 'countersign_app')`,
		`alter role countersign_app login`},
	// The session settings of the service (package ledger) do not reach the workers; settings of
	// the role do.
	{onCitus + `(select rolconfig @> '{enable_seqscan=off,enable_bitmapscan=off}' from pg_roles where rolname = 'countersign_app')`,
		`alter role countersign_app set enable_seqscan = off; alter role countersign_app set enable_bitmapscan = off`},
}

// onCitus is the start of a condition that applies only to databases with Citus.
const onCitus = `not exists (select from pg_extension where extname = 'citus') or `

// Prepare creates the two roles and grants them the necessary rights in the database of conn. It
// keeps existing roles and rights, so it may be called at every start. If the login lacks the
// rights for that, Prepare changes nothing, and its error lists the statements for an
// administrator.
func Prepare(ctx context.Context, conn *pgx.Conn) error {
	var err error
	for range prepareTries {
		var missing []string
		if missing, err = missingStatements(ctx, conn); err != nil {
			return fmt.Errorf("read the database's roles: %w", err)
		}
		if len(missing) == 0 {
			return nil
		}
		if err = supply(ctx, conn, missing); err == nil {
			return nil
		}
		if isForbidden(err) {
			return forbidden(conn, missing)
		}
		if !isRace(err) {
			break
		}
	}
	return fmt.Errorf("prepare the database's roles: %w", err)
}

func missingStatements(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	var names struct{ login, database string }
	err := conn.QueryRow(ctx, `select quote_ident(session_user), quote_ident(current_database())`).Scan(&names.login, &names.database)
	if err != nil {
		return nil, err
	}
	if names.login == AppRole {
		return nil, fmt.Errorf("%s is the service's role and may not migrate; log in as %s or as a login that can become it", AppRole, OwnerRole)
	}
	conditions := make([]string, len(wants))
	for i, w := range wants {
		conditions[i] = "coalesce(" + w.condition + ", false)"
	}
	var met []bool
	if err := conn.QueryRow(ctx, "select array["+strings.Join(conditions, ", ")+"]").Scan(&met); err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("{login}", names.login, "{db}", names.database)
	var missing []string
	for i, w := range wants {
		if !met[i] {
			missing = append(missing, fill.Replace(w.statement))
		}
	}
	return missing, nil
}

// supply runs the statements in one transaction. It returns errNotGranted if they had no effect,
// because a grant without the right to it only causes a warning.
func supply(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		if left, err := missingStatements(ctx, conn); err != nil || len(left) > 0 {
			return errors.Join(err, errNotGranted)
		}
		return nil
	})
}

var errNotGranted = errors.New("the statements had no effect")

func forbidden(conn *pgx.Conn, statements []string) error {
	return fmt.Errorf("the login %s may not prepare the database; have an administrator run this in the database, then try again:\n  %s;",
		conn.Config().User, strings.Join(statements, ";\n  "))
}

func isForbidden(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, errNotGranted) || errors.As(err, &pg) && pg.Code == "42501"
}

// isRace reports whether another session created or changed the same role at the same time.
func isRace(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42710" || pg.Code == "23505" || pg.Code == "XX000")
}

// becomeOwner switches conn to the role that owns the database objects, for the rest of the
// connection.
func becomeOwner(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `set role countersign_owner`); err != nil {
		return fmt.Errorf("become %s: %w", OwnerRole, err)
	}
	return nil
}
