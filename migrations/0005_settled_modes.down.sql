begin;

drop index events_settled_modes;

commit;
