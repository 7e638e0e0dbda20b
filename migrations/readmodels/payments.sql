-- Payments over x402 and their state. The service settles the open ones (claimed,
-- unknown); operators list the others.
create table payments (
    payment_id  text collate "C" primary key,
    state       text collate "C" not null check (state in ('claimed', 'unknown', 'settled', 'refused')),
    mode        text collate "C" not null check (mode in ('dev', 'facilitator')),
    operation   text collate "C" not null,
    payer       text collate "C" not null,
    network     text collate "C" not null,
    amount      text collate "C" not null,
    price_cents integer not null,
    transaction text collate "C" not null default '',
    reason      text collate "C" not null default '',
    refund      text collate "C" not null default '' check (refund in ('', 'requested', 'approved', 'sent')),
    claimed_at  timestamptz not null,
    claimed_pos bigint not null
);

create index payments_open on payments (claimed_pos) where state in ('claimed', 'unknown');
create index payments_order on payments (claimed_pos);
create index payments_refund on payments (claimed_pos) where refund <> '';
