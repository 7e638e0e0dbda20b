-- The schema of the ledger: one append-only, hash-chained table, and the tables around it.
-- Every key contains the partition p (0 on one machine), so that the tables of the
-- ledger can be distributed by p. For the same reason there is no sequence, no serial
-- and no foreign key. Text is compared byte by byte (collate "C"): its order must not
-- depend on a locale of the machine.
--
-- Until version 1.0.0 is released this file is edited in place. From then on it is
-- never changed, and each change is a new migration.
begin;

-- ledger_head and events have no checks: PostgreSQL parses the expressions of all checks again
-- for each statement that writes, which took a quarter of the database's time for an append.
-- Instead, the sequencer, which alone writes here, ensures valid values, and verification
-- reports each row and column that the sequencer could not have written (package audit,
-- wrongForm). The database still refuses nulls and duplicate numbers and keys.
--
-- ledger_head has the only contended rows of the system. fillfactor leaves room for the next
-- version of a row on the same page, so that an update does not change the index.
create table ledger_head (
    p         smallint not null,
    origin    text collate "C" not null,
    epoch     bigint not null default 1,
    pos       bigint not null default 0,
    last_hash bytea not null,
    primary key (p)
) with (fillfactor = 50);

-- Up writes the SHA-256 of this file here. A database whose first migration was another
-- file is refused.
comment on table ledger_head is '{beginning}';

-- payload contains the canonical bytes themselves (possibly packed, package stored): jsonb
-- would rewrite numbers, drop duplicates, sort members and refuse some valid strings. It is
-- null while an archive contains it. A signed payload has about 3 KB, and hashes cannot be
-- compressed. By default PostgreSQL would try to compress it and then move it to a TOAST
-- table, in two rows with an index entry each. With this setting a payload stays in its row
-- if the row fits on a page.
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
    -- Numbers in the series of the tenant and of the agent. The columns of a number are
    -- all set or all null, except that number 1 has no hash of a previous event.
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

-- A new table has no statistics. Without them the planner considers all indexes of
-- (p, tenant, …) equally good, and look-ups by stream or key would read a tenant's whole
-- history. So this migration analyzes typical rows once, and fixes the numbers of distinct
-- values for every later analyze. tenant has no statistics: otherwise the planner would
-- expect one or two rows for a tenant that is newer than the last analyze, and a page of
-- its history would read all of its events.
alter table events alter p set (n_distinct = 1), alter stream set (n_distinct = -0.5),
    alter version set (n_distinct = 200), alter idem_key set (n_distinct = -0.9), alter tenant set statistics 0;
insert into events (p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
        actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash)
    select 0, n, 't' || n % 10, n / 10 + 1, 's' || n, 1, '', '', 0, 0, 1, '', '', h, h, '{}', h, h, h
    from generate_series(1, 3000) n, sha256(n::text::bytea) h;
analyze events;
truncate events;

-- A number in a series can be used only once. Events without a series need no entries here.
create unique index events_series_key on events (p, tenant, series, series_n) where series is not null;
create unique index events_agent_key on events (p, tenant, agent, series, agent_n) where agent is not null;

-- Answers to questions that the keys of events cannot answer: which tenant has a token, which
-- agents a customer has claimed, in which modes payments were settled. Only events of a few
-- types have entries, which are written in the same transaction (package events, EntriesOf).
-- A partial index on events would cost time for every event, because PostgreSQL evaluates its
-- predicate. Readers then read the events that an entry names and check their hashes, and
-- verification compares entries and events.
create table directory (
    p     smallint not null check (p >= 0),
    name  text collate "C" not null check (name <> ''),
    value text collate "C" not null check (value <> ''),
    pos   bigint not null check (pos > 0), -- position of the first event with the entry
    primary key (p, name, value)
);

-- Each row is an object of the archive. It contains every event from first to last.
create table archives (
    p        smallint not null check (p >= 0),
    first    bigint not null check (first > 0),
    last     bigint not null,
    object   text collate "C" not null check (object <> ''),
    complete boolean not null default false, -- all payloads that may be removed from events are removed
    constraint archives_range check (last >= first),
    primary key (p, first)
);

-- No role may change an event, not even the owner. A superuser can still disable the
-- trigger; the hash chain and the checkpoints reveal changes made in that way.
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

-- Old payloads may be moved to objects of an archive. The other columns stay; the hash chain
-- needs only these. The owner moves payloads, but only within this rule: a payload may be
-- removed only if a row of archives covers it, and restored only if it has the event's hash.
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

-- Derived from events: tiles of up to 256 hashes of the RFC 6962 tree, and its compact right
-- edge, so that any node can continue where another one has stopped.
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

-- Signature lines of witnesses may be added to note. stamp is the answer of a time-stamp authority
-- (RFC 3161) about the note, which does not change any more.
create table checkpoints (
    p     smallint not null check (p >= 0),
    size  bigint not null check (size >= 0),
    root  bytea not null check (octet_length(root) = 32),
    note  text collate "C" not null check (note <> ''),
    stamp bytea check (octet_length(stamp) between 1 and 65536),
    primary key (p, size)
);

create index checkpoints_stamped on checkpoints (p, size) where stamp is not null;

-- Data keys of personal members. An erasure empties the row and sets destroyed_us. The row
-- stays, so that verifiers can distinguish a destroyed key from a missing one.
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

-- Destroying a data key permanently erases the data of a person. The service has no right to
-- update a row: only this function can destroy a key, and only for an event subject.erased.
create function erase_subject(of_p smallint, of_pos bigint) returns void
    language sql security definer set search_path = public, pg_temp as $$
    update subject_keys k set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = e.occurred_us
    from events e
    where e.p = of_p and e.pos = of_pos and e.type = 'subject.erased'
      and k.p = e.p and k.tenant = e.tenant and k.destroyed_us is null
      -- The key subject_ref makes the pseudonyms of all subjects and must stay.
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

-- Sessions and links are not events: they are short-lived secrets, stored as hashes and then
-- deleted. Their effects (a customer, a member, an activation) are in events. data is the
-- session's content as the session library encodes it: customer, chosen organization, time of
-- sign-in.
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

-- One row per e-mail address, so that only its newest link works. subject_ref is the pseudonym
-- of the address (package vault, Vault.Reference). The address itself is in box, encrypted with
-- a key derived from the link's secret, which is not stored.
create table signin_links (
    p           smallint not null check (p >= 0),
    subject_ref bytea not null check (octet_length(subject_ref) = 32),
    token_hash  bytea not null check (octet_length(token_hash) = 32),
    box         bytea not null check (octet_length(box) > 0),
    expires_at  timestamptz not null,
    primary key (p, subject_ref)
);

create index signin_links_token on signin_links (p, token_hash);

-- Links to the files of purchases: short-lived secrets, stored as hashes and then deleted. The
-- use of a link is an event. A purchase has five slots, so at most five of its links are valid
-- at a time; a sixth replaces the oldest.
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

-- Messages to the webhooks of organizations that wait to be sent, could not be sent, or were
-- sent recently. They are not a read model: a rebuild from the events would send all of them
-- again.
create table webhook_deliveries (
    p          smallint not null check (p >= 0),
    webhook_id text collate "C" not null check (webhook_id <> ''),
    pos        bigint not null check (pos > 0), -- position of the event; for a checkpoint the position that it must cover
    topic      text collate "C" not null check (topic <> ''),
    tenant     text collate "C" not null check (tenant <> ''),
    state      text collate "C" not null default 'due' check (state in ('due', 'dead', 'sent')),
    attempts   smallint not null default 0 check (attempts >= 0),
    due_at     timestamptz not null, -- time of the next attempt; during an attempt, the end of its lease
    status     smallint not null default 0 check (status between 0 and 999), -- HTTP status of the last answer; 0 if there was none
    error      text collate "C" not null default '' check (length(error) <= 200),
    primary key (p, webhook_id, pos, topic)
);

create index webhook_deliveries_due on webhook_deliveries (p, due_at) where state = 'due';
create index webhook_deliveries_over on webhook_deliveries (p, due_at) where state <> 'due';

-- The service works as countersign_app: it appends events and moves the head. It may delete
-- only derived and short-lived rows.
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

-- The service itself creates and rebuilds its read models, in this schema.
create schema readmodels authorization countersign_app;

commit;
