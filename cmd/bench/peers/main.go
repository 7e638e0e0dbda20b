// Command peers measures countersign next to programs of other people that do a part of the same
// work, in alternating rounds on the same machine:
//
//	peers appends  an append, a plain insert, and the appends of watermill-sql, River and Tessera
//	peers calls    a call of the quick gate, a signed decision, and a bare HTTP handler that
//	               inserts a row and signs its answer
//	peers feed     read models that catch up, and a consumer of watermill-sql
//	peers policy   a verdict on a payment, and the same policy in Cedar and in OPA
//
// It is a module of its own, so that nobody who builds countersign downloads the other programs.
// Run it in its folder: go run . appends. It starts its own PostgreSQL in a temporary folder,
// like command bench.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
	"k8s.io/klog/v2"

	"github.com/countersign/countersign/ledger/localpg"
)

func main() {
	klog.LogToStderr(false) // the log of Tessera
	klog.SetOutput(io.Discard)
	localpg.DieWithGoRun()
	var c struct {
		Appends appends `cmd:"" help:"Compare appends with a plain insert, watermill-sql, River and Tessera."`
		Calls   calls   `cmd:"" help:"Compare calls over HTTP with a bare handler."`
		Feed    feed    `cmd:"" help:"Compare read models that catch up with a consumer of watermill-sql."`
		Policy  verdict `cmd:"" help:"Compare a verdict on a payment with Cedar and OPA."`
	}
	command := kong.Parse(&c, kong.Name("peers"), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
}
