-- Down in Go refuses while there are events: a ledger is not dropped by mistake.
-- Read models go too; without their checkpoints they would be filled twice.
begin;

drop schema readmodels cascade;
drop function erase_subject(smallint, bigint);
drop table webhook_deliveries, download_links, signin_links, sessions, projection_dead, projection_checkpoint,
    subject_keys, checkpoints, tree_head, tiles, archives, directory, events, ledger_head;
drop function events_move_payload(), events_refuse_change();
revoke all on schema_migrations from countersign_app;

commit;
