package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/projections"
)

// WithReadModels opens the ledger, starts the read models and calls the function do. Queries in
// that function wait until the read models have processed all events.
func WithReadModels(ctx context.Context, d *setting.Ledger, do func(*Node, *projections.Projections) error) error {
	log := logs.New(slog.LevelWarn)
	n, err := Start(ctx, d, false, true, "", log, func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	p, err := ReadModels(ctx, n.Ledger, log)
	if err != nil {
		return err
	}
	defer p.Close()
	return do(n, p)
}

// catchUp is the time that a command waits for the read models. A command may be the first to
// start them after many events, so this is longer than in the service, which answers 503 after two
// seconds and lets the caller repeat the request.
const catchUp = 30 * time.Second

// ReadModels starts the read models for a command, whose queries wait up to catchUp.
func ReadModels(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*projections.Projections, error) {
	p, err := projections.Start(ctx, l, log)
	if err == nil {
		p.Patience = catchUp
	}
	return p, err
}
