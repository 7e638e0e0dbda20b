-- The schema of the ledger: one append-only, hash-chained table and what belongs to it.
-- Every key contains the partition p (0 on one machine), so that the tables of the
-- ledger can be distributed by p. For the same reason there is no sequence, no serial
-- and no foreign key. Text is compared byte by byte (collate "C"): its order must not
-- depend on a locale of the machine.
--
-- Until version 1.0.0 is released this file is edited in place. From then on it is
-- never changed, and each change is a new migration.
begin;

-- ledger_head and events have no checks: PostgreSQL parses the expressions of all checks again
-- for each statement that writes, which was a quarter of the database's time of an append.
-- What a row may contain is the matter of the sequencer, which alone writes here, and of
-- verification, which names each row and column that it could not have written (package audit,
-- wrongForm). What only the database can refuse, it refuses: nulls, and numbers and keys that
-- are given twice.
--
-- The only contended row of the system. fillfactor leaves room for its next
-- version on the same page, so that an update does not touch the index.
create table ledger_head (
    p         smallint not null,
    origin    text collate "C" not null,
    epoch     bigint not null default 1,
    pos       bigint not null default 0,
    last_hash bytea not null,
    primary key (p)
) with (fillfactor = 50);

-- Up writes the SHA-256 of this file here. A database in which another first
-- migration was applied is refused.
comment on table ledger_head is '{beginning}';

-- payload holds the canonical bytes themselves: jsonb would rewrite numbers,
-- drop duplicates, sort members and refuse some valid strings. It is null while an
-- archive holds it. A signed payload is about 3 KB and hashes do not compress:
-- PostgreSQL's default would try to compress it, and then move it to a table of its
-- own, in two rows with an index entry each. Up to a page it stays in its row.
create table events (
    p              smallint not null,
    pos            bigint not null,
    tenant         text collate "C" not null,
    tseq           bigint not null,
    stream         text collate "C" not null,
    version        bigint not null,
    event_id       text collate "C" not null,
    type           text collate "C" not null,
    schema_version int not null,
    more           smallint not null,
    occurred_us    bigint not null,
    actor          text collate "C" not null,
    key_id         text collate "C" not null,
    idem_key       bytea,
    content_hash   bytea,
    payload        bytea,
    payload_hash   bytea not null,
    prev           bytea not null,
    hash           bytea not null,
    -- Numbers in the series of the tenant and of the agent. An event has all of a number or
    -- nothing of it. Number 1 follows no event, so it has no hash of one.
    series         text collate "C",
    series_n       bigint,
    series_prev    bytea,
    agent          text collate "C",
    agent_n        bigint,
    agent_prev     bytea,
    constraint events_pkey primary key (p, pos),
    constraint events_tenant_key unique (p, tenant, tseq),
    constraint events_stream_key unique (p, tenant, stream, version),
    constraint events_idem_key unique (p, tenant, idem_key)
) with (toast_tuple_target = 8160);

-- A new table has no statistics, and without them the planner takes one index of
-- (p, tenant, …) for as good as another: look-ups by stream or key would read a
-- tenant's whole history. So it analyzes typical rows once, and the numbers of
-- distinct values are fixed whatever a later analyze sees. tenant has no statistics:
-- with them, a tenant younger than the last analyze would be taken for a row or two,
-- and its pages of history would read all of its events.
alter table events alter p set (n_distinct = 1), alter stream set (n_distinct = -0.5),
    alter version set (n_distinct = 200), alter idem_key set (n_distinct = -0.9), alter tenant set statistics 0;
insert into events (p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
        actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash)
    select 0, n, 't' || n % 10, n / 10 + 1, 's' || n, 1, '', '', 0, 0, 1, '', '', h, h, '{}', h, h, h
    from generate_series(1, 3000) n, sha256(n::text::bytea) h;
analyze events;
truncate events;

-- A number is given once. Events without a series cost nothing here.
create unique index events_series_key on events (p, tenant, series, series_n) where series is not null;
create unique index events_agent_key on events (p, tenant, agent, series, agent_n) where agent is not null;

-- Answers to what the keys of events cannot answer: which tenant has a token, which agents a
-- customer claimed, in which modes payments were settled. Only events of a few types have
-- entries, and they write them in their own transaction (package events, EntriesOf). An index
-- of events would cost every other event its predicate, too. What an entry names is then read
-- and hashed like any other event, and verification compares entries and events.
create table directory (
    p     smallint not null check (p >= 0),
    name  text collate "C" not null check (name <> ''),
    value text collate "C" not null check (value <> ''),
    pos   bigint not null check (pos > 0), -- of the first event with the entry
    primary key (p, name, value)
);

-- One object of an archive for each row, with every event from first to last.
create table archives (
    p        smallint not null check (p >= 0),
    first    bigint not null check (first > 0),
    last     bigint not null,
    object   text collate "C" not null check (object <> ''),
    complete boolean not null default false, -- every payload that may go has gone
    constraint archives_range check (last >= first),
    primary key (p, first)
);

-- Nobody changes an event, not even the owner. A superuser can still switch the
-- trigger off; the hash chain and the checkpoints are there for that case.
create function events_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'events are append-only: % refused', lower(tg_op) using errcode = 'insufficient_privilege';
end
$$;

create trigger events_append_only before delete or truncate
    or update of p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
        actor, key_id, idem_key, content_hash, payload_hash, prev, hash,
        series, series_n, series_prev, agent, agent_n, agent_prev on events
    for each statement execute function events_refuse_change();

-- Old payloads may leave the database for objects of an archive; the rest of their
-- rows, all that the chain is made of, stays. The owner moves them, within this rule: a
-- payload goes only where an archive holds it, and comes back only as it was hashed.
create function events_move_payload() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
    if new.payload is null then
        if exists (select from archives a where a.p = new.p and a.first <= new.pos and a.last >= new.pos) then
            return new;
        end if;
    elsif old.payload is null and sha256(new.payload) = old.payload_hash then
        return new;
    end if;
    raise exception 'events are append-only: a payload goes only into an archive, and comes back only as it was' using errcode = 'insufficient_privilege';
end
$$;

create trigger events_payload_moves before update of payload on events
    for each row execute function events_move_payload();

-- Derived from events: tiles of up to 256 hashes of the RFC 6962 tree, and its
-- compact right edge, so that any node can go on where another one stopped.
create table tiles (
    p     smallint not null check (p >= 0),
    level smallint not null check (level >= 0),
    n     bigint not null check (n >= 0),
    data  bytea not null check (octet_length(data) between 32 and 8192 and octet_length(data) % 32 = 0),
    primary key (p, level, n)
);

create table tree_head (
    p    smallint not null check (p >= 0),
    size bigint not null check (size >= 0),
    root bytea not null check (octet_length(root) = 32),
    edge bytea not null check (octet_length(edge) % 32 = 0),
    primary key (p)
);

-- Cosignature lines may be added to note.
create table checkpoints (
    p    smallint not null check (p >= 0),
    size bigint not null check (size >= 0),
    root bytea not null check (octet_length(root) = 32),
    note text collate "C" not null check (note <> ''),
    primary key (p, size)
);

-- Data keys of personal members. Erasure empties a row and sets destroyed_us;
-- the row itself stays, so that verifiers know the key is gone and not missing.
create table subject_keys (
    p            smallint not null check (p >= 0),
    tenant       text collate "C" not null,
    key_id       text collate "C" not null,
    subject_ref  bytea not null check (octet_length(subject_ref) in (0, 32)),
    kek_id       text collate "C" not null,
    wrapped_key  bytea not null,
    destroyed_us bigint check (destroyed_us > 0),
    constraint subject_keys_empty_when_destroyed check (
        case when destroyed_us is null
             then octet_length(subject_ref) = 32 and kek_id <> '' and octet_length(wrapped_key) > 0
             else octet_length(subject_ref) = 0 and kek_id = '' and octet_length(wrapped_key) = 0
        end),
    primary key (p, tenant, key_id)
);

create unique index subject_keys_subject_key on subject_keys (p, tenant, subject_ref) where destroyed_us is null;

-- Destroying a data key erases a person, for ever. The service has no right to update
-- a row: only this function destroys a key, and only for an event subject.erased.
create function erase_subject(of_p smallint, of_pos bigint) returns void
    language sql security definer set search_path = public, pg_temp as $$
    update subject_keys k set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = e.occurred_us
    from events e
    where e.p = of_p and e.pos = of_pos and e.type = 'subject.erased'
      and k.p = e.p and k.tenant = e.tenant and k.destroyed_us is null
      -- The key that names the subjects belongs to no subject.
      and k.key_id = convert_from(e.payload, 'UTF8')::jsonb ->> 'keyId' and k.key_id <> 'subject_ref'
$$;

create table projection_checkpoint (
    name    text collate "C" not null,
    p       smallint not null check (p >= 0),
    version int not null check (version >= 0),
    pos     bigint not null check (pos >= 0),
    hash    bytea not null check (octet_length(hash) = 32),
    state   text collate "C" not null,
    primary key (name, p)
);

create table projection_dead (
    name      text collate "C" not null,
    p         smallint not null check (p >= 0),
    pos       bigint not null check (pos > 0),
    tenant    text collate "C" not null,
    stream    text collate "C" not null,
    attempts  int not null check (attempts >= 0),
    error     text collate "C" not null,
    parked_us bigint not null check (parked_us > 0),
    primary key (name, p, pos)
);

-- Sessions and links are not events: they are short-lived secrets of people, kept as
-- hashes and deleted. What they lead to (a customer, a member, an activation) is in
-- events. data is the session's content as the session library encodes it: customer,
-- chosen organization, time of sign-in.
create table sessions (
    p          smallint not null check (p >= 0),
    token_hash text collate "C" not null check (token_hash <> ''),
    customer   text collate "C" not null check (customer <> ''),
    data       bytea not null,
    expires_at timestamptz not null,
    primary key (p, token_hash)
);

create index sessions_expiry on sessions (expires_at);
create index sessions_of_customer on sessions (p, customer);

-- One row per address, so that only its newest link works. subject_ref is the
-- pseudonym of the address (package ledger, Vault.Reference); the address itself
-- is in box, encrypted under a key made from the link's secret, which is not here.
create table signin_links (
    p           smallint not null check (p >= 0),
    subject_ref bytea not null check (octet_length(subject_ref) = 32),
    token_hash  bytea not null check (octet_length(token_hash) = 32),
    box         bytea not null check (octet_length(box) > 0),
    expires_at  timestamptz not null,
    primary key (p, subject_ref)
);

create index signin_links_token on signin_links (p, token_hash);

-- Links to the files of purchases: short-lived secrets, kept as hashes and deleted.
-- That one was used is an event. A purchase has five slots, so at most five of its
-- links wait to be used; a sixth replaces the oldest.
create table download_links (
    p           smallint not null check (p >= 0),
    purchase_id text collate "C" not null check (purchase_id <> ''),
    slot        smallint not null check (slot between 0 and 4),
    token_hash  bytea not null check (octet_length(token_hash) = 32),
    product     text collate "C" not null check (product <> ''),
    expires_at  timestamptz not null,
    primary key (p, purchase_id, slot)
);

create unique index download_links_token on download_links (p, token_hash);
create index download_links_expiry on download_links (expires_at);

-- Messages to the webhooks of organizations that wait to be sent, could not be sent, or
-- were sent a short time ago. They are work to do and no read model: rebuilt from the
-- events, everything would be sent again.
create table webhook_deliveries (
    p          smallint not null check (p >= 0),
    webhook_id text collate "C" not null check (webhook_id <> ''),
    pos        bigint not null check (pos > 0), -- of the event, or the size of the tree
    topic      text collate "C" not null check (topic <> ''),
    tenant     text collate "C" not null check (tenant <> ''),
    state      text collate "C" not null default 'due' check (state in ('due', 'dead', 'sent')),
    attempts   smallint not null default 0 check (attempts >= 0),
    due_at     timestamptz not null, -- no attempt before it; while one is made, it keeps other nodes away
    status     smallint not null default 0 check (status between 0 and 999), -- of the last answer; 0 for none
    error      text collate "C" not null default '' check (length(error) <= 200),
    primary key (p, webhook_id, pos, topic)
);

create index webhook_deliveries_due on webhook_deliveries (p, due_at) where state = 'due';
create index webhook_deliveries_over on webhook_deliveries (p, due_at) where state <> 'due';

-- The service works as countersign_app: it appends, and moves the head. What is
-- derived or short-lived it may delete; the rest it may not.
grant select, insert on events to countersign_app;
grant select, update (pos, last_hash, epoch) on ledger_head to countersign_app;
grant select, insert on directory to countersign_app;
grant select, insert on subject_keys to countersign_app;
revoke execute on function erase_subject(smallint, bigint) from public;
grant execute on function erase_subject(smallint, bigint) to countersign_app;
grant select on archives to countersign_app;
grant all on tiles, tree_head, checkpoints, projection_checkpoint, projection_dead to countersign_app;
grant select, insert, update, delete on sessions, signin_links, download_links, webhook_deliveries to countersign_app;
grant select on schema_migrations to countersign_app;

-- The service makes and rebuilds its read models itself, in a schema of its own.
create schema readmodels authorization countersign_app;

commit;
