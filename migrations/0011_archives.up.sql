-- Old payloads may leave the database for objects of an archive; the rest of their
-- rows, all that the chain is made of, stays. What moves them works as
-- countersign_owner, and the rules are here: a payload goes only where an archive
-- holds it, and comes back only as the one that was hashed.
begin;

-- One object for each row, with every event from first to last.
create table archives (
    p        smallint not null check (p >= 0),
    first    bigint not null check (first > 0),
    last     bigint not null,
    object   text collate "C" not null check (object <> ''),
    complete boolean not null default false, -- every payload that may go has gone
    constraint archives_range check (last >= first),
    primary key (p, first)
);

grant select on archives to countersign_app;

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

do $$
begin
    alter table events alter payload drop not null; -- here, since Citus hands on one statement, not a file of them

    -- Citus takes no triggers on a distributed table; there the service's role still has
    -- no right to change an event.
    if to_regclass('pg_dist_partition') is not null then
        if exists (select from pg_dist_partition where logicalrelid = 'events'::regclass) then
            return;
        end if;
    end if;
    drop trigger events_append_only on events;
    create trigger events_append_only before delete or truncate
        or update of p, pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
            actor, key_id, idem_key, content_hash, payload_hash, prev, hash on events
        for each statement execute function events_refuse_change();
    create trigger events_payload_moves before update of payload on events
        for each row execute function events_move_payload();
end
$$;

commit;
