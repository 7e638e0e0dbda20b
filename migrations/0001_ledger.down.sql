-- Down in Go refuses while there are events: a ledger is not dropped by a slip.
-- Read models go too; without their checkpoints they would be filled twice.
begin;

drop schema readmodels cascade;
drop table projection_dead, projection_checkpoint, subject_keys, checkpoints, tree_head, tiles, events, ledger_head;
drop function events_refuse_change();
revoke all on schema_migrations from countersign_app;

commit;
