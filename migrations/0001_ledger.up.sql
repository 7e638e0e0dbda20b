-- The ledger itself: one append-only, hash-chained table and what belongs to it.
-- Every key contains the partition p (0 on one machine), so that the same tables
-- can be distributed by p; for the same reason there is no sequence, no serial
-- and no foreign key. Text is compared octet by octet (collate "C"): order must
-- not depend on a locale of the machine.
begin;

-- The only contended row of the system. fillfactor leaves room for its next
-- version on the same page, so that an update stays away from the index.
create table ledger_head (
    p         smallint not null check (p >= 0),
    origin    text collate "C" not null check (origin <> ''),
    epoch     bigint not null default 1 check (epoch > 0),
    pos       bigint not null default 0 check (pos >= 0),
    last_hash bytea not null check (octet_length(last_hash) = 32),
    primary key (p)
) with (fillfactor = 50);

-- payload holds the canonical bytes themselves: jsonb would rewrite numbers,
-- drop duplicates, sort members and refuse some valid strings.
create table events (
    p              smallint not null check (p >= 0),
    pos            bigint not null check (pos > 0),
    tenant         text collate "C" not null,
    tseq           bigint not null check (tseq > 0),
    stream         text collate "C" not null,
    version        bigint not null check (version > 0),
    event_id       text collate "C" not null,
    type           text collate "C" not null,
    schema_version int not null check (schema_version >= 0),
    more           smallint not null check (more between 0 and 63),
    occurred_us    bigint not null check (occurred_us > 0),
    actor          text collate "C" not null,
    key_id         text collate "C" not null,
    idem_key       bytea check (octet_length(idem_key) = 32),
    content_hash   bytea check (octet_length(content_hash) = 32),
    payload        bytea not null check (octet_length(payload) between 2 and 2097152),
    payload_hash   bytea not null check (octet_length(payload_hash) = 32),
    prev           bytea not null check (octet_length(prev) = 32),
    hash           bytea not null check (octet_length(hash) = 32),
    constraint events_key_has_content check ((idem_key is null) = (content_hash is null)),
    constraint events_pkey primary key (p, pos),
    constraint events_tenant_key unique (p, tenant, tseq),
    constraint events_stream_key unique (p, tenant, stream, version),
    constraint events_idem_key unique (p, tenant, idem_key)
);

-- A fresh table has no statistics, and without them the planner takes one index
-- of (p, tenant, …) for as good as another: look-ups by stream or key would read
-- a tenant's whole history. It is shown rows as they will be, once, and keeps the
-- numbers of distinct values whatever a later analyze may see.
alter table events alter p set (n_distinct = 1), alter stream set (n_distinct = -0.5),
    alter version set (n_distinct = 200), alter idem_key set (n_distinct = -0.9);
insert into events (p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
        actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash)
    select 0, n, 't' || n % 10, n / 10 + 1, 's' || n, 1, '', '', 0, 0, 1, '', '', h, h, '{}', h, h, h
    from generate_series(1, 3000) n, sha256(n::text::bytea) h;
analyze events;
truncate events;

-- Nobody changes an event, not even the owner. A superuser can still switch the
-- trigger off; the hash chain and the checkpoints are there for that case.
create function events_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'events are append-only: % refused', lower(tg_op) using errcode = 'insufficient_privilege';
end
$$;

create trigger events_append_only before update or delete or truncate on events
    for each statement execute function events_refuse_change();

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

-- The service works as countersign_app: it appends, and moves the head. What is
-- derived it may throw away; what is not it cannot delete.
grant select, insert on events to countersign_app;
grant select, update (pos, last_hash, epoch) on ledger_head to countersign_app;
grant select, insert, update on subject_keys to countersign_app;
grant all on tiles, tree_head, checkpoints, projection_checkpoint, projection_dead to countersign_app;
grant select on schema_migrations to countersign_app;

-- Read models are made and remade by the service itself, in a schema of its own.
create schema readmodels authorization countersign_app;

commit;
