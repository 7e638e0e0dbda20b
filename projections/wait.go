package projections

import (
	"context"
	"fmt"
	"time"
)

// wait waits until the projection has reached the current head of the tenant's partition. It
// returns ErrBehind if that takes longer than Patience, if the stream has a parked event, or if
// the read model has another version. An empty stream means every stream of the tenant.
func (p *Projections) wait(ctx context.Context, name, tenant, stream string) error {
	return p.models[name].runs[p.ledger.Home(tenant).Number()].wait(ctx, p.Patience, tenant, stream)
}

// waitAll waits in every partition, for queries about the stream of the partition's own tenant,
// which belongs to no organization.
func (p *Projections) waitAll(ctx context.Context, name, stream string) error {
	for _, r := range p.models[name].runs {
		if err := r.wait(ctx, p.Patience, r.partition.Service(), stream); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) wait(ctx context.Context, patience time.Duration, tenant, stream string) error {
	head, err := r.partition.Head(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-r.made:
	case <-ctx.Done():
		return fmt.Errorf("%w: %s is being rebuilt", ErrBehind, r.name)
	}
	defer r.partition.Await()()
	poll := time.NewTicker(pollCheckpoint)
	defer poll.Stop()
	for {
		r.mu.Lock()
		position, moved := r.position, r.moved
		r.mu.Unlock()
		if position >= head {
			there, err := r.shows(ctx, head, tenant, stream)
			if err != nil || there {
				return err
			}
		}
		select {
		case <-moved:
		case <-poll.C:
			if _, err := r.checkpoint(ctx); err != nil {
				return fmt.Errorf("%w: %w", ErrBehind, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: %s is at position %d of %d", ErrBehind, r.name, position, head)
		}
	}
}

// shows checks in the database that the state this node has recorded is still valid: the read
// model has this version, was not moved back before the head, and has no parked events that the
// query concerns.
func (r *run) shows(ctx context.Context, head int64, tenant, stream string) (bool, error) {
	before := r.seen()
	var version int
	var stored int64
	var parked bool
	err := r.ledger.Pool().QueryRow(ctx, `select version, pos, exists (select from projection_dead d
			where d.name = c.name and d.p = c.p and d.tenant = $3 and ($4 = '' or d.stream = $4))
		from projection_checkpoint c where c.name = $1 and c.p = $2`, r.key, r.partition.Number(), tenant, stream).Scan(&version, &stored, &parked)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrBehind, err)
	case version != r.version:
		return false, fmt.Errorf("%w: %w", ErrBehind, r.otherVersion(version))
	case parked:
		return false, fmt.Errorf("%w: %s has parked events of %s %s", ErrBehind, r.name, tenant, stream)
	}
	r.saw(stored, before)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position >= head, nil
}
