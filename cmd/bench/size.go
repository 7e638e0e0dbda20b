package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands/accounts"
)

// sizeCmd measures the size of calls in the ledger: of their rows by type, and the growth of
// the table and each of its indexes.
type sizeCmd struct {
	Calls int `help:"Calls of each kind." default:"1000"`

	MostQuick int `help:"Fail if a quick gate call takes more bytes, with indexes; 0: never." default:"1400"`
	MostRun   int `help:"Fail if a run takes more bytes, with indexes; 0: never." default:"2500"`
}

// Run prints a table per kind of call.
func (c *sizeCmd) Run(ctx context.Context) error {
	service, err := startService(ctx)
	if err != nil {
		return err
	}
	defer service.close()
	owner, err := pgx.Connect(ctx, service.scratch.owner)
	if err != nil {
		return err
	}
	defer owner.Close(ctx)
	var large error
	for _, kind := range []struct {
		name, path string
		most       int
	}{{"quick gate", "/api/agent-services/action-safety/quick", c.MostQuick}, {"run", "/api/agent-services/action-safety/run", c.MostRun},
		{"decision", "", 0}} {
		before, err := sizes(ctx, owner)
		if err != nil {
			return err
		}
		if err := service.calls(ctx, kind.path, c.Calls); err != nil {
			return err
		}
		after, err := sizes(ctx, owner)
		if err != nil {
			return err
		}
		each := (after.total() - before.total()) / int64(c.Calls)
		fmt.Printf("%s: %d bytes a call", kind.name, each)
		for i, part := range after.parts {
			fmt.Printf(", %s %d", part.name, (part.size-before.of(i))/int64(c.Calls))
		}
		fmt.Println()
		if err := printTypes(ctx, owner, before.head); err != nil {
			return err
		}
		if kind.most > 0 && each > int64(kind.most) {
			large = fmt.Errorf("a %s takes %d bytes, more than %d", kind.name, each, kind.most)
		}
	}
	return large
}

// sized is the size of the table of events.
type sized struct {
	head  int64 // the last position
	parts []part
}

// part is the table without its indexes, or one index.
type part struct {
	name string
	size int64
}

func (s sized) total() (size int64) {
	for _, p := range s.parts {
		size += p.size
	}
	return size
}

func (s sized) of(i int) int64 { return s.parts[i].size }

func sizes(ctx context.Context, owner *pgx.Conn) (s sized, err error) {
	if err := owner.QueryRow(ctx, `select pos from ledger_head where p = 0`).Scan(&s.head); err != nil {
		return s, err
	}
	rows, err := owner.Query(ctx, `select 'rows', pg_table_size('events')
		union all select * from (select indexrelid::regclass::text, pg_relation_size(indexrelid) from pg_index where indrelid = 'events'::regclass order by 1) i`)
	if err != nil {
		return s, err
	}
	s.parts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p part, err error) { return p, row.Scan(&p.name, &p.size) })
	return s, err
}

// printTypes prints the sizes of the rows of each type after a position.
func printTypes(ctx context.Context, owner *pgx.Conn, behind int64) error {
	rows, err := owner.Query(ctx, `select type, count(*), avg(octet_length(payload))::int, avg(pg_column_size(payload))::int, avg(pg_column_size(e.*))::int
		from events e where p = 0 and pos > $1 group by type order by 2 desc`, behind)
	if err != nil {
		return err
	}
	var kind string
	var n, payload, stored, row int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &n, &payload, &stored, &row}, func() error {
		fmt.Printf("    %-24s %7d events, payload %5d bytes, stored as %5d, row %5d\n", kind, n, payload, stored, row)
		return nil
	})
	return err
}

// calls makes a number of calls of a service with free keys, or requests decisions if there is
// no path.
func (b *benchService) calls(ctx context.Context, path string, calls int) error {
	var token string
	for n := range calls {
		if n%accounts.FreeCallsPerMonth == 0 {
			if path == "" && token == "" {
				var err error
				if token, err = b.organization(ctx); err != nil {
					return err
				}
			} else if path != "" {
				issued, err := b.app.IssueFreeKey(ctx, fmt.Sprintf("size-%s-%d@example.com", path[len(path)-3:], n), "")
				if err != nil {
					return err
				}
				token = issued.APIKey
			}
		}
		at, body := path, fmt.Sprintf(`{"command":"git push --force origin feature-%d","environment":"production"}`, n)
		if path == "" {
			at, body = "/api/assurance/decisions", fmt.Sprintf(`{"protocol":"x402","idempotencyKey":"size-%d","subject":{"runId":"run"},"intent":{`+
				`"resourceUrl":"https://api.weather.example/v1/forecast","method":"GET","scheme":"exact","network":"base",`+
				`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`, n)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+at, bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Idempotency-Key", fmt.Sprintf("size-%d", n))
		if path == "" {
			r.Header.Del("Idempotency-Key")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode/100 != 2 {
			return fmt.Errorf("%s: %s %s %v", at, answer.Status, text, err)
		}
	}
	return nil
}
