begin;
drop trigger if exists events_payload_moves on events; -- Distribute takes it away
drop function events_move_payload();
drop trigger if exists events_append_only on events;
create trigger events_append_only before update or delete or truncate on events
    for each statement execute function events_refuse_change();
alter table events alter payload set not null;
drop table archives;
commit;
