-- Messages to the webhooks of organizations that wait to be sent, could not be
-- sent, or were sent a short time ago. They are work to do and no read model: built
-- again from the events, everything would be sent again.
begin;

create table webhook_deliveries (
    p          smallint not null check (p >= 0),
    webhook_id text collate "C" not null check (webhook_id <> ''),
    pos        bigint not null check (pos > 0), -- of the event, or the size of the tree
    topic      text collate "C" not null check (topic <> ''),
    tenant     text collate "C" not null check (tenant <> ''),
    state      text collate "C" not null default 'due' check (state in ('due', 'dead', 'sent')),
    attempts   smallint not null default 0 check (attempts >= 0),
    due_at     timestamptz not null, -- no attempt before, and none by others while one is made
    status     smallint not null default 0 check (status between 0 and 999), -- of the last answer; 0 for none
    error      text collate "C" not null default '' check (length(error) <= 200),
    primary key (p, webhook_id, pos, topic)
);

create index webhook_deliveries_due on webhook_deliveries (p, due_at) where state = 'due';
create index webhook_deliveries_over on webhook_deliveries (p, due_at) where state <> 'due';

grant select, insert, update, delete on webhook_deliveries to countersign_app;

commit;
